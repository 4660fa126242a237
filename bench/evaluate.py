"""How fast are analogy questions answered? Against a bare matrix product of the same shape, and gensim.

    python bench/evaluate.py MODEL QUESTIONS [--restrict-vocab 30000] [--repeats 7] [--json FILE]

The product is (questions answered × D) · (D × top), in blocks of 256 questions, float32, by the same BLAS: what the
usual evaluator computes before it searches for the best answer. First the number of correct answers in each section is
compared with that of the product; then all run alternately.
"""

from pathlib import Path

import numpy as np
from common import alternate, arguments, finish, quotients, seconds, spread
from gensim.models import KeyedVectors
from numpy.typing import NDArray

import w2v

BLOCK = 256  # questions


def main() -> None:
    parser = arguments(__doc__, repeats=7)
    parser.add_argument("model", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--restrict-vocab", type=int, default=30_000)
    options = parser.parse_args()
    vectors = w2v.load(options.model)
    top = min(options.restrict_vocab, len(vectors))
    result = w2v.analogies(vectors, options.questions, top)
    unit, rows = prepared(vectors, options.questions, top)
    right = bare(unit, rows, answer=True)
    assert result.answered == len(rows), "other questions are answered"
    difference = sum(section.correct for section in result.sections) - right
    assert abs(difference) <= 2, "other answers"  # two scores may differ by a rounding only

    peer = KeyedVectors(vectors.vector_size)
    peer.add_vectors(vectors.index_to_key, vectors.vectors)
    times = alternate(
        {
            "bare product": lambda: seconds(lambda: bare(unit, rows, answer=False)),
            "w2v, 3CosAdd": lambda: seconds(lambda: w2v.analogies(vectors, options.questions, top)),
            "w2v, 3CosMul": lambda: seconds(lambda: w2v.analogies(vectors, options.questions, top, method="mul")),
        },
        options.repeats,
    )
    times["gensim, 3CosAdd (once)"] = [
        seconds(lambda: peer.evaluate_word_analogies(str(options.questions), restrict_vocab=top))
    ]
    ratio = spread(quotients(times["w2v, 3CosAdd"], times["bare product"]), goal=2)
    finish(
        options,
        "Evaluating",
        f"{len(rows)} of {result.questions} questions, {top} words, {vectors.vector_size} dimensions, {right} correct.",
        seconds={name: spread(found) for name, found in times.items()},
        ratio={"w2v, 3CosAdd / bare product": ratio},
    )


def prepared(vectors: w2v.KeyedVectors, questions: Path, top: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Unit vectors (top, D), and the rows of the four words of each question that can be answered (Q, 4)."""
    unit = vectors.vectors[:top] / np.linalg.norm(vectors.vectors[:top], axis=1, keepdims=True)
    index = {word.lower(): row for row, word in reversed(list(enumerate(vectors.index_to_key[:top])))}
    lines = [line.lower().split() for line in questions.read_text().splitlines() if not line.startswith(":")]
    rows = [[index[word] for word in line] for line in lines if len(line) == 4 and index.keys() >= set(line)]
    return unit, np.array(rows)


def bare(unit: NDArray[np.float32], rows: NDArray[np.int64], answer: bool) -> int:
    """Only the scores, block by block; with `answer` also the number of correct answers."""
    right = 0
    for start in range(0, len(rows), BLOCK):
        a, b, c, d = rows[start : start + BLOCK].T
        scores = (unit[b] - unit[a] + unit[c]) @ unit.T
        if answer:
            for given in (a, b, c):
                scores[np.arange(len(a)), given] = -np.inf
            right += int(np.sum(scores.argmax(axis=1) == d))
    return right


if __name__ == "__main__":
    main()
