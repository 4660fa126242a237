"""Commands that prepare training: `vocab`, `phrases`, `walks` and `tree`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from w2v._cli import options, outputs
from w2v._cli.console import say
from w2v._cli.printing import Result, print_code_lengths
from w2v._detect import kind_of, read_head
from w2v._graph.readers import check_edges, read_graph
from w2v._graph.walks import WalkOptions, check_separable, write_walks
from w2v._losses.code_lengths import code_lengths
from w2v._losses.registry import Settings
from w2v._options import options_of
from w2v._progress import Report
from w2v._system import memory
from w2v._system.files import atomic_write
from w2v._text.idstore import ReadingOptions, read_corpus
from w2v._text.phrases import PhraseOptions, Phrases, read_connectors, refuse_items
from w2v._text.vocabulary import Vocabulary

HELD_OUT_SHARE = 0.1  # of the edges of a graph
BEST_PHRASES = 10  # number of phrases shown for each pass


@click.command(cls=options.ResultCommand)
@options.CORPUS
@options.file_option("-o", "--output", required=True, help="File to write: one word and its count per line.")
@options.options_for(Settings, "min_count", "max_vocab", "workers", common=True)
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
    source = options.corpus_of(corpus)
    outputs.check_text(output, force, map(Path, source.files))
    with read_corpus(source, options.reading_options(given), workers=settings.threads, progress=progress) as store:
        vocabulary = Vocabulary.from_store(store, settings.min_count, settings.max_vocab)
    outputs.save([(output, outputs.saver(vocabulary, store.sentences))], force)
    return {
        "output": str(output),
        "vocabulary_size": len(vocabulary),
        "tokens": vocabulary.tokens,
        "corpus_tokens": store.tokens,
        "sentences": store.sentences,
        "pruned": store.pruned,
        "cache_reused": store.reused,
    }


@click.command(cls=options.ResultCommand)
@options.CORPUS
@options.file_option(
    "-o", "--output", help="Text file to write: one sentence per line, with the words of phrases joined."
)
@options.options_for(PhraseOptions)
@click.option(
    "--connectors",
    metavar="english|FILE",
    shell_complete=options.complete("english"),
    help="Words that may be inside a phrase but not at its ends: english (articles, prepositions and conjunctions), or "
    "the words of a file.  [default: none]",
)
@options.file_option("--save-phrases", help="Write the phrases, their counts and scores to this file.")
@options.file_option("--read-phrases", help="Join the phrases in this file instead of searching for phrases.")
@options.options_for(Settings, "workers")
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
    """Find phrases in a CORPUS and join their words.

    Two words become one token, such as new_york, if they occur next to each other more often than their frequencies
    suggest. Phrases do not cross lines. All counts are exact. If there are many pairs, they are counted in several
    parts, which limits the memory.

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
    settings, source = options.chosen_settings(given), options.corpus_of(corpus)
    connectors = None if given["connectors"] in (None, "english") else Path(given["connectors"])
    inputs = [*map(Path, source.files), *filter(None, [read_phrases, connectors])]
    for number, path in enumerate(written):
        option = "with -o" if path is output else "with --save-phrases"
        outputs.check_text(path, force, [*inputs, *written[:number]], option)
    words = read_connectors(given["connectors"]) if given["connectors"] else frozenset()
    phrase_options = PhraseOptions(**options.given_options(PhraseOptions, given), connectors=words)
    reading = options.reading_options(given)
    work: dict[str, Any] = {"workers": settings.threads, "progress": progress}
    loaded = Phrases.load(read_phrases) if read_phrases else None
    store = read_corpus(source, reading, check_items=refuse_items, **work)
    found = Phrases.find(store, options=phrase_options, **work) if loaded is None else loaded
    tokens = None

    def write(path: Path, force: bool) -> None:
        nonlocal tokens
        tokens = found.write(store, path, force=force, **work)

    writers = ((save_phrases, outputs.saver(found)), (output, write))
    outputs.save([(path, writer) for path, writer in writers if path], force)
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


@click.command(cls=options.ResultCommand)
@click.argument("graphs", nargs=-1, required=True, type=click.Path(), metavar="GRAPH...")
@options.file_option("-o", "--output", required=True, help="Text file to write: one walk per line.")
@options.file_option(
    "--hold-out",
    help="Write a share of the edges to this file, and make no walks along them. w2v evaluate --edges uses them. No "
    "connected part of the graph is divided.",
)
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="X",
    help=f"With --hold-out: the share of the edges.  [default: {HELD_OUT_SHARE}]",
)
@options.options_for(WalkOptions, common=True)
@options.number_option(
    "--seed", default=1, help="Seed of the random numbers. The walks do not depend on the number of threads."
)
@options.options_for(Settings, "workers", common=True)
@options.WRITING
def walks(
    graphs: tuple[str, ...],
    output: Path,
    hold_out: Path | None,
    share: float | None,
    force: bool,
    progress: Report,
    **given: Any,
) -> Result:
    """Write random walks on a GRAPH.

    GRAPH is an edge list: each line has two nodes and possibly a weight. Lines that begin with # or % are comments. Or
    it is a file in another format of --format. Files may be compressed. - is standard input. The walks are made as in
    node2vec, or with the defaults as in DeepWalk. w2v train --graph trains on walks without writing them.

    \b
    w2v walks edges.tsv -o walks.txt
    w2v walks edges.csv -o walks.txt --weighted --directed -p 0.5 -q 2
    w2v walks matrix.npz -o walks.txt --walk-length 40 --walks 20
    w2v walks edges.tsv -o walks.txt --hold-out held-out.tsv --share 0.2
    """
    if not hold_out:
        options.refuse_without("--hold-out", ["share"])
    settings, walk_options = options.chosen_settings(given), WalkOptions(**options.given_options(WalkOptions, given))
    source = options.corpus_of(graphs)
    inputs = [*map(Path, source.files)]
    outputs.check_text(output, force, inputs)
    if hold_out:
        outputs.check_text(hold_out, force, [*inputs, output], "with --hold-out")
    work: dict[str, Any] = {"workers": settings.threads, "progress": progress}
    graph = read_graph(source, walk_options, **work)
    check_edges(graph, str(source))
    check_separable(graph.names, output)  # before any output replaces an old one
    held_out = np.empty((0, 2), np.int64)
    if hold_out:
        graph, held_out = graph.hold_out(share or HELD_OUT_SHARE, settings.seed)
    written = 0

    def write(path: Path, force: bool) -> None:
        nonlocal written
        written = write_walks(graph, path, walk_options, seed=settings.seed, force=force, **work)

    def write_edges(path: Path, force: bool) -> None:
        names = graph.names.tolist()
        with atomic_write(path, force) as file:
            file.writelines(f"{names[first]}\t{names[second]}\n".encode() for first, second in held_out.tolist())

    outputs.save([(output, write), *([(hold_out, write_edges)] if hold_out else [])], force)
    return {
        "output": str(output),
        **({"held_out_edges": len(held_out)} if hold_out else {}),
        "nodes": graph.nodes,
        "edges": graph.edges,
        "isolated_nodes": graph.isolated,
        "walks": graph.nodes * walk_options.num_walks,
        "tokens": written,
        "peak_memory_bytes": memory.peak_resident_bytes(),
    }


@click.command(cls=options.ResultCommand)
@options.CORPUS
@options.options_for(Settings, "min_count", "max_vocab", "workers", "tree", "tree_vectors", common=True)
@click.option("--word", "words", multiple=True, metavar="WORD", help="Show the codes of this word. May be repeated.")
@click.option(
    "--vocabulary/--text",
    "counted",
    default=None,
    help="Read CORPUS as a file of words and counts (--vocabulary) or as text (--text).  [default: detected]",
)
@options.READING
@options.REPORTING
def tree(
    corpus: tuple[str, ...], words: tuple[str, ...], counted: bool | None, progress: Report, **given: Any
) -> Result:
    """Compare Huffman and other trees by expected code length.

    Hierarchical softmax uses one output row for each bit of a word's code. This command shows the entropy of the word
    frequencies, and the expected code length of the balanced tree, the Huffman tree and a third one (--tree). This
    length is the mean number of rows that a prediction uses; w2v also shows how many times more rows the full softmax
    uses. The words are counted in a CORPUS, or read from a file written by w2v vocab.

    \b
    w2v tree corpus.txt --word france --word the
    w2v tree words.txt --tree clustered --tree-vectors model.bin
    """
    settings = options.chosen_settings(given | {"loss": "hs"})
    if counted is None:
        counted = len(corpus) == 1 and Path(corpus[0]).is_file() and kind_of(read_head(corpus[0])) == "vocabulary"
    if counted and len(corpus) > 1:
        raise click.UsageError("--vocabulary takes one file")
    if counted:
        options.refuse_together("a file of words and counts", options_of(ReadingOptions))
        vocabulary = Vocabulary.load(corpus[0], settings.min_count, settings.max_vocab)
    else:
        source, reading = options.corpus_of(corpus), options.reading_options(given)
        with read_corpus(source, reading, workers=settings.threads, progress=progress) as store:
            vocabulary = Vocabulary.from_store(store, settings.min_count, settings.max_vocab)
    return code_lengths(vocabulary, settings.tree, settings.tree_vectors, words), print_code_lengths
