"""How fast does w2v turn texts into vectors, and how well do these classify texts?

    OMP_NUM_THREADS=1 python bench/texts.py MODEL TEXT RAW [--classes 50] [--repeats 5] [--json FILE]

MODEL is a .safetensors file. Speed is measured on TEXT, in lines of 25 words, as words per second of processor time;
the goal is 1 million. For classification, RAW is text in <doc …> elements, as WikiExtractor writes it. From the
`classes` articles with the most paragraphs, a linear classifier learns a quarter of the paragraphs, and says of the
others which article they are from. The program compares w2v's weights, mean vectors of the same words by model2vec and
spaCy, all of length 1, and word counts (TF-IDF).
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, get_args

import numpy as np
from common import alternate, benchmark_parser, report_results, summarise, time_call
from model2vec import StaticModel
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import train_test_split

import w2v
from w2v._text.corpus import Corpus
from w2v._text.normalise import Normaliser, TextOptions
from w2v._vectors.encode import Encoder, Weights

LINE_WORDS, MIN_WORDS = 25, 20
SPLITS = 3


def write_lines(text: Path, target: Path) -> int:
    """Write a text in lines of LINE_WORDS words; return the number of words."""
    words = text.read_text("utf-8").split()
    with target.open("w") as file:
        file.writelines(" ".join(words[k : k + LINE_WORDS]) + "\n" for k in range(0, len(words), LINE_WORDS))
    return len(words)


def paragraphs(raw: Path, classes: int) -> tuple[list[str], list[str]]:
    """Return the paragraphs with MIN_WORDS words or more, in lower case, and the titles of their articles."""
    normaliser = Normaliser(TextOptions(lower=True, tokenize="words"))
    titled: list[tuple[str, str]] = []
    title = ""
    for line in raw.read_text("utf-8").splitlines():
        opening_tag = re.match(r"<doc .*title=\"([^\"]*)\"", line)
        title = opening_tag[1] if opening_tag else title
        words = normaliser.words(line)
        if len(words) >= MIN_WORDS and not opening_tag:
            titled.append((" ".join(words), title))
    chosen = {title for title, _ in Counter(title for _, title in titled).most_common(classes)}
    texts, labels = zip(*(pair for pair in titled if pair[1] in chosen), strict=True)
    return list(texts), list(labels)


def accuracies(rows: Any, labels: list[str]) -> list[float]:
    """Return the percentage of correct answers for each of SPLITS random splits, training on a quarter of the rows."""
    percentages = []
    for seed in range(SPLITS):
        split = {"train_size": 0.25, "random_state": seed, "stratify": labels}
        train, test, train_labels, test_labels = train_test_split(rows, labels, **split)
        classifier = RidgeClassifierCV(np.logspace(-3, 3, 7))
        percentages.append(100 * float(classifier.fit(train, train_labels).score(test, test_labels)))
    return percentages


def encoders(vectors: w2v.KeyedVectors, folder: Path) -> dict[str, Callable[[list[str]], Any]]:
    """Return, by name, functions that turn texts into rows."""
    import spacy

    vectors.save(folder / "m.model2vec")
    vectors.save(folder / "m.spacy")
    static, pipeline = StaticModel.from_pretrained(folder / "m.model2vec"), spacy.load(folder / "m.spacy")
    return {f"w2v, {kind}": partial(w2v.encode, vectors, weights=kind) for kind in get_args(Weights)} | {
        "model2vec, mean": lambda texts: static.encode(texts, use_multiprocessing=False, max_length=None),
        "spaCy, mean": lambda texts: np.array([document.vector for document in pipeline.pipe(texts)]),
    }


def main() -> None:
    parser = benchmark_parser(__doc__, repeats=5)
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("raw", type=Path)
    parser.add_argument("--classes", type=int, default=50)
    options = parser.parse_args()
    vectors = w2v.load(options.model)
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines.txt"
        tokens = write_lines(options.text, lines)

        def encode(kind: Weights) -> float:
            encoder = Encoder(vectors, kind)
            duration = time_call(lambda: [None for _ in encoder.blocks(Corpus(lines))], process_time)
            assert encoder.words == tokens, "some words were not encoded"
            return duration

        times = alternate({kind: partial(encode, kind) for kind in get_args(Weights)}, options.repeats)
        texts, labels = paragraphs(options.raw, options.classes)
        words = sum(len(text.split()) for text in texts)
        scores, speeds = {"TF-IDF": summarise(accuracies(TfidfVectorizer().fit_transform(texts), labels))}, {}
        for name, encoder in encoders(vectors, Path(folder)).items():
            encoder(texts[:10])
            speeds[name] = summarise(
                words / 1e6 / time_call(partial(encoder, texts), process_time) for _ in range(SPLITS)
            )
            rows = np.asarray(encoder(texts), np.float64)
            scores[name] = summarise(accuracies(rows / np.linalg.norm(rows, axis=1, keepdims=True), labels))
    report_results(
        options,
        "Texts as vectors",
        f"One thread; {len(texts):,} paragraphs with {words:,} words, {options.classes} articles, "
        f"{vectors.vector_size} dimensions.",
        million_words_per_second={
            name: summarise((tokens / 1e6 / duration for duration in times[name]), 1) for name in times
        },
        percent_right=scores,
        million_words_per_second_of_a_list=speeds,
    )


if __name__ == "__main__":
    main()
