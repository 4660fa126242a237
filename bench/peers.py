"""Run gensim, fastText, word2vec.c and pWord2Vec with the settings of w2v.

    python bench/peers.py TEXT OUTPUT --mode corpus_file|iterable [--NAME VALUE ...]

As a program, this trains gensim from a text file to a vector file and prints the same metrics as `w2v train --json`.
Its options are the names of Settings. gensim cuts sentences at 10,000 words and distributes work by lines, so TEXT must
have lines: see split_lines.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from common import BENCH, time_call

from w2v._losses.registry import Settings
from w2v._options import options_of
from w2v._system.memory import peak_resident_bytes
from w2v._text.vocabulary import Vocabulary

MODES = ("corpus_file", "iterable")
BASE = Settings(
    model="skipgram", vector_size=300, window=5, negative=5, ns_exponent=0.75, sample=1e-4, min_count=5, epochs=1,
    workers=2, vectors="input",
)  # fmt: skip
CONFIGURATIONS = {
    "sg-ns-300": BASE,
    "sg-ns-100": replace(BASE, vector_size=100),
    "sg-hs-300": replace(BASE, loss="hs"),
    "cbow-ns-300": replace(BASE, model="cbow"),
    "cbow-ns-100": replace(BASE, model="cbow", vector_size=100),
    "cbow-hs-300": replace(BASE, model="cbow", loss="hs"),
    "sg-subwords-100": replace(BASE, vector_size=100, subwords="3-6", alpha=0.05),
    "cbow-subwords-100": replace(BASE, model="cbow", vector_size=100, subwords="3-6"),
}
FASTTEXT = """
import fasttext, sys
name, loss, *lengths, size, window, negative, sample, min_count, epochs, threads, alpha, source, target = sys.argv[1:]
model = fasttext.train_unsupervised(
    source, model=name, loss=loss, dim=int(size), ws=int(window), neg=int(negative), t=float(sample),
    minCount=int(min_count), epoch=int(epochs), thread=int(threads), lr=float(alpha), minn=int(lengths[0]),
    maxn=int(lengths[1]), verbose=0)
if target.endswith(".vec"):
    with open(target, "w", encoding="utf-8") as file:
        print(len(model.words), size, file=file)
        for word in model.words:
            print(word, *model.get_word_vector(word), file=file)
else:
    model.save_model(target)
"""


def untrained_gensim(settings: Settings) -> Any:
    """Return a gensim model with these settings, without a vocabulary."""
    from gensim.models import FastText, Word2Vec

    ngrams = settings.ngrams
    model_class = partial(FastText, min_n=ngrams.shortest, max_n=ngrams.longest) if ngrams else Word2Vec
    negatives: dict[str, Any] = {"negative": 0}
    if settings.loss == "ns":
        negatives = {"negative": settings.negative, "ns_exponent": settings.ns_exponent}
    return model_class(
        sg=int(settings.model == "skipgram"),
        hs=int(settings.loss == "hs"),
        **negatives,
        vector_size=settings.vector_size,
        window=settings.window_size,
        min_count=settings.min_count,
        sample=settings.sample,
        alpha=settings.start_alpha,
        min_alpha=settings.end_alpha,
        epochs=settings.epochs,
        workers=settings.threads,
        seed=settings.seed,
    )


def source_of(mode: str, text: Path) -> dict[str, Any]:
    """Return the argument that names the text in one of gensim's two modes."""
    from gensim.models.word2vec import LineSentence

    return {"corpus_file": str(text)} if mode == "corpus_file" else {"corpus_iterable": LineSentence(str(text))}


class Gensim:
    """A gensim model with a fixed vocabulary, to time its training without reading and saving."""

    def __init__(self, settings: Settings, vocabulary: Vocabulary, text: Path, words: int, trained: float) -> None:
        """Build the vocabulary. The text has `words` words, and `trained` of them should remain after subsampling."""
        self.text, self.words, self.trained = text, words, trained
        self.lines = text.read_bytes().count(b"\n")
        self.model = untrained_gensim(settings)
        counts = dict(zip(vocabulary.words, vocabulary.counts.tolist(), strict=True))
        self.model.build_vocab_from_freq(counts, corpus_count=self.lines)

    def seconds(self, mode: str) -> float:
        """Train once; return the seconds for all words. The file mode reads a few words more, to the end of a batch."""
        source = source_of(mode, self.text)
        start = time.perf_counter()
        trained, raw = self.model.train(**source, total_words=self.words, total_examples=self.lines, epochs=1)
        duration = time.perf_counter() - start
        share = raw / self.words
        assert 0.99 < share < 1.05, f"gensim read {raw} words of {self.words}"
        assert abs(trained / (share * self.trained) - 1) < 0.03, f"gensim trained {trained} of {raw} words"
        return duration / float(share)


def binary_command(tool: str, path: str, settings: Settings, text: Path, output: Path) -> list[str]:
    """Return the command of word2vec.c, pWord2Vec or fastText; for fastText, `path` is a Python that has it."""
    negative = settings.negative if settings.loss == "ns" else 0
    values = {
        "size": settings.vector_size, "window": settings.window_size, "negative": negative,
        "sample": settings.sample, "min-count": settings.min_count, "iter": settings.epochs,
        "threads": settings.threads, "alpha": settings.start_alpha, "train": text, "output": output, "binary": 1,
    }  # fmt: skip
    if tool == "fasttext":
        order = ("size", "window", "negative", "sample", "min-count", "iter", "threads", "alpha", "train", "output")
        lengths = str(settings.subwords or "0-0").split("-")
        return [path, "-c", FASTTEXT, settings.model, settings.loss, *lengths, *(str(values[name]) for name in order)]
    if tool == "word2vec":
        values |= {"cbow": int(settings.model == "cbow"), "hs": int(settings.loss == "hs")}
    return [path, *(word for name, value in values.items() for word in (f"-{name}", str(value)))]


def gensim_command(settings: Settings, mode: str, text: Path, output: Path) -> list[str]:
    values = {name: value for name, value in settings.as_dict().items() if value is not None}
    options = [word for name, value in values.items() for word in (f"--{name}", json.dumps(value))]
    return [sys.executable, str(BENCH / "peers.py"), str(text), str(output), "--mode", mode, *options]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--mode", choices=MODES, default="corpus_file")
    for name in options_of(Settings):
        parser.add_argument(f"--{name}", type=json.loads, default=argparse.SUPPRESS)
    options = vars(parser.parse_args())
    text, output, mode = options.pop("text"), options.pop("output"), options.pop("mode")
    settings = Settings(**options)
    start = time.perf_counter()
    model, source = untrained_gensim(settings), source_of(mode, text)
    read = time_call(lambda: model.build_vocab(**source))
    counts = {"total_words": model.corpus_total_words, "total_examples": model.corpus_count}
    train = time_call(lambda: model.train(**source, **counts, epochs=settings.epochs))
    save = time_call(lambda: model.wv.save_word2vec_format(str(output), binary=True))
    result = {
        "output": str(output),
        "vocabulary_size": len(model.wv),
        "words_per_second": model.corpus_total_words * settings.epochs / train,
        "seconds": {"read": read, "train": train, "save": save, "total": time.perf_counter() - start},
        "peak_memory_bytes": peak_resident_bytes(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
