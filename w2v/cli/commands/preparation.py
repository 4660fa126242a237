"""Commands that prepare words, phrases and trees for training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from w2v.cli import options, outputs, show
from w2v.cli.console import say
from w2v.cli.options import FILE
from w2v.cli.show import Result
from w2v.detect import head, kind_of
from w2v.losses.code_lengths import code_lengths
from w2v.options import options_of
from w2v.progress import Report
from w2v.system import memory
from w2v.text.idstore import ReadingOptions, read_corpus
from w2v.text.phrases import PhraseOptions, Phrases
from w2v.text.vocabulary import Vocabulary

BEST_PHRASES = 10  # of each pass, that are shown


@click.command(cls=options.Reporting)
@options.CORPUS
@click.option("-o", "--output", type=FILE, required=True, help="File to write: one word and its count per line.")
@options.settings_options("min_count", "max_vocab", "workers", common=True)
@options.READING
@options.WRITING
def vocab(corpus: tuple[str, ...], output: Path, force: bool, progress: Report, **given: Any) -> Result:
    """Count the words of a CORPUS.

    The file has the format of word2vec.c, most frequent words first. w2v train --read-vocab reads it.

    \b
    w2v vocab corpus.txt -o words.txt
    w2v vocab texts/ -o words.txt --min-count 1 --max-vocab 100000
    """
    settings = options.chosen_settings(given)
    text = options.corpus_of(corpus)
    outputs.check(output, force, map(Path, text.files))
    with read_corpus(text, options.reading_options(given), workers=settings.threads, progress=progress) as store:
        vocabulary = Vocabulary.from_store(store, settings.min_count, settings.max_vocab)
    outputs.save([(output, outputs.saving(vocabulary, store.sentences))], force)
    return {
        "output": str(output),
        "vocabulary_size": len(vocabulary),
        "tokens": vocabulary.tokens,
        "corpus_tokens": store.tokens,
        "sentences": store.sentences,
        "pruned": store.pruned,
        "cache_reused": store.reused,
    }


@click.command(cls=options.Reporting)
@options.CORPUS
@click.option(
    "-o", "--output", type=FILE, help="Text file to write: one sentence per line, with the words of phrases joined."
)
@options.PHRASES
@click.option(
    "--connectors",
    metavar="english|FILE",
    shell_complete=options.complete("english"),
    help="Words that may be inside a phrase, but not at its ends: English articles, prepositions and conjunctions, or "
    "the words of a file.  [default: none]",
)
@click.option("--save-phrases", type=FILE, help="Write the phrases, their counts and scores to this file.")
@click.option("--read-phrases", type=FILE, help="Join the phrases of this file instead of finding phrases.")
@options.settings_options("workers")
@options.READING
@options.WRITING
def phrases(
    corpus: tuple[str, ...],
    output: Path | None,
    save_phrases: Path | None,
    read_phrases: Path | None,
    force: bool,
    progress: Report,
    **given: Any,
) -> Result:
    """Find the phrases of a CORPUS, and join their words.

    Two words become one token, such as new_york, if they occur side by side more often than their frequencies suggest.
    Phrases do not cross lines. All counts are exact; many pairs are counted in parts, to limit the memory.

    \b
    w2v phrases corpus.txt -o joined.txt
    w2v phrases news/ 'wiki/*.gz' -o joined.txt --passes 2 --connectors english --save-phrases phrases.tsv
    w2v phrases more.txt -o more-joined.txt --read-phrases phrases.tsv
    """
    written = list(filter(None, [output, save_phrases]))
    if not written:
        raise click.UsageError(f"nothing to write: name a file with -o{'' if read_phrases else ' or --save-phrases'}")
    if read_phrases:
        options.refuse_together("--read-phrases", (*options_of(PhraseOptions), "connectors", "save_phrases"))
    settings, text = options.chosen_settings(given), options.corpus_of(corpus)
    connectors = None if given["connectors"] in (None, "english") else Path(given["connectors"])
    inputs = [*map(Path, text.files), *filter(None, [read_phrases, connectors])]
    for number, path in enumerate(written):
        outputs.check(path, force, [*inputs, *written[:number]], "with -o" if path is output else "with --save-phrases")
    known = Phrases.load(read_phrases) if read_phrases else None
    joined = options.phrase_options(given)
    work: dict[str, Any] = {"workers": settings.threads, "progress": progress}
    store = read_corpus(text, options.reading_options(given), **work)
    found = Phrases.find(store, options=joined, **work) if known is None else known
    tokens = None

    def write(path: Path, force: bool) -> None:
        nonlocal tokens
        tokens = found.write(store, path, force=force, **work)

    files = ((save_phrases, outputs.saving(found)), (output, write))
    outputs.save([(path, saved) for path, saved in files if path], force)
    if store.pruned:
        say(f"{store.pruned:,} rare words were left out of the text because of --max-types")
    return {
        "output": output and str(output),
        "phrases": len(found),
        "phrases_by_pass": [len(one) for one in found.passes],
        "best": [found.joined(phrase) for one in found.passes for phrase in list(one)[:BEST_PHRASES]],
        "corpus_tokens": store.tokens,
        "tokens": tokens,
        "sentences": store.sentences,
        "pruned": store.pruned,
        "peak_memory_bytes": memory.peak_resident_bytes(),
    }


@click.command(cls=options.Reporting)
@options.CORPUS
@options.settings_options("min_count", "max_vocab", "workers", "tree", "tree_vectors", common=True)
@click.option("--word", "words", multiple=True, metavar="WORD", help="Show the codes of this word; may be repeated.")
@click.option(
    "--vocabulary/--text",
    "counted",
    default=None,
    help="Whether CORPUS is a file of words and counts, or text.  [default: detected]",
)
@options.READING
@options.REPORTING
def tree(
    corpus: tuple[str, ...], words: tuple[str, ...], counted: bool | None, progress: Report, **given: Any
) -> Result:
    """Compare Huffman and other trees by expected code length.

    Hierarchical softmax uses one output row for each bit of a word's code. For the words of a CORPUS, or of a file
    written by w2v vocab, this shows the entropy, the expected code length in the balanced tree, in the Huffman tree
    and in another --tree, and how many times fewer rows a prediction uses than with the full softmax.

    \b
    w2v tree corpus.txt --word france --word the
    w2v tree words.txt --tree clustered --tree-vectors model.bin
    """
    settings = options.chosen_settings(given | {"loss": "hs"})
    if counted is None:
        counted = len(corpus) == 1 and Path(corpus[0]).is_file() and kind_of(head(corpus[0])) == "vocabulary"
    if counted and len(corpus) > 1:
        raise click.UsageError("--vocabulary takes one file")
    if counted:
        options.refuse_together("a file of words and counts", options_of(ReadingOptions))
        vocabulary = Vocabulary.load(corpus[0], settings.min_count, settings.max_vocab)
    else:
        text, reading = options.corpus_of(corpus), options.reading_options(given)
        with read_corpus(text, reading, workers=settings.threads, progress=progress) as store:
            vocabulary = Vocabulary.from_store(store, settings.min_count, settings.max_vocab)
    return code_lengths(vocabulary, settings.tree, settings.tree_vectors, words), show.code_lengths
