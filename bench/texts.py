"""How fast are texts turned into vectors, and how good are these for classification?

    OMP_NUM_THREADS=1 python bench/texts.py MODEL TEXT RAW [--classes 50] [--repeats 5] [--json FILE]

MODEL is a .safetensors file. Speed: the words of TEXT, in lines of 25, per second of processor time. Classification:
RAW is text in <doc …> elements, as WikiExtractor writes it; the task is to say which of the `classes` articles with
most paragraphs one is from, by a linear classifier trained on a quarter of them. w2v's weights, and mean vectors of the
same words by model2vec and spaCy, all of length 1, are compared with counts of words (TF-IDF). The goal is 1 million
words per second.
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
from w2v.text.corpus import Corpus
from w2v.text.normalise import Normaliser, TextOptions
from w2v.vectors.encode import Weights

LINE_WORDS, MIN_WORDS = 25, 20
SPLITS = 3


def lines_of(text: Path, target: Path) -> int:
    """Write a text in lines of LINE_WORDS words; returns the number of words."""
    words = text.read_text("utf-8").split()
    with target.open("w") as file:
        file.writelines(" ".join(words[k : k + LINE_WORDS]) + "\n" for k in range(0, len(words), LINE_WORDS))
    return len(words)


def paragraphs(raw: Path, classes: int) -> tuple[list[str], list[str]]:
    """Paragraphs of MIN_WORDS words or more, in lower case, and the articles that they are from."""
    split = Normaliser(TextOptions(lower=True, tokenize="words"))
    found: list[tuple[str, str]] = []
    title = ""
    for line in raw.read_text("utf-8").splitlines():
        begins = re.match(r"<doc .*title=\"([^\"]*)\"", line)
        title = begins[1] if begins else title
        words = split.words(line)
        if len(words) >= MIN_WORDS and not begins:
            found.append((" ".join(words), title))
    chosen = {title for title, _ in Counter(title for _, title in found).most_common(classes)}
    texts, labels = zip(*(pair for pair in found if pair[1] in chosen), strict=True)
    return list(texts), list(labels)


def accuracies(rows: Any, labels: list[str]) -> list[float]:
    """Percent right of the rest, trained on a quarter, for each of SPLITS splits."""
    found = []
    for seed in range(SPLITS):
        split = {"train_size": 0.25, "random_state": seed, "stratify": labels}
        train, test, known, wanted = train_test_split(rows, labels, **split)
        classifier = RidgeClassifierCV(np.logspace(-3, 3, 7))
        found.append(100 * float(classifier.fit(train, known).score(test, wanted)))
    return found


def encoders(vectors: w2v.KeyedVectors, folder: Path) -> dict[str, Callable[[list[str]], Any]]:
    """By name: what turns texts into rows."""
    import spacy

    vectors.save(folder / "m.model2vec")
    vectors.save(folder / "m.spacy")
    static, pipeline = StaticModel.from_pretrained(folder / "m.model2vec"), spacy.load(folder / "m.spacy")
    return {f"w2v, {kind}": partial(vectors.encode, weights=kind) for kind in get_args(Weights)} | {
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
        tokens = lines_of(options.text, lines)

        def encode(kind: Weights) -> float:
            encoder = vectors.encoder(kind)
            taken = time_call(lambda: [None for _ in encoder.blocks(Corpus(lines))], process_time)
            assert encoder.words == tokens, "words were left out"
            return taken

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
        million_words_per_second={name: summarise((tokens / 1e6 / t for t in times[name]), 1) for name in times},
        percent_right=scores,
        million_words_per_second_of_a_list=speeds,
    )


if __name__ == "__main__":
    main()
