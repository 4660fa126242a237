"""How fast are analogy questions answered, compared with a matrix product of the same shape, and with gensim?

    python bench/evaluate.py MODEL QUESTIONS [--restrict-vocab 30000] [--repeats 7] [--json FILE]

The product is (questions answered × D) · (D × size), in blocks of 256 questions, float32, by the same BLAS. The usual
evaluator computes this product, and then searches it for the best answers. First the program checks that w2v answers as
many questions correctly as the product does; then it times all of them alternately.
"""

from pathlib import Path

import numpy as np
from common import alternate, benchmark_parser, report_results, round_ratios, summarise, time_call
from gensim.models import KeyedVectors
from numpy.typing import NDArray

import w2v

BLOCK = 256  # questions


def main() -> None:
    parser = benchmark_parser(__doc__, repeats=7)
    parser.add_argument("model", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--restrict-vocab", type=int, default=30_000)
    options = parser.parse_args()
    vectors = w2v.load(options.model)
    size = min(options.restrict_vocab, len(vectors))
    result = w2v.analogies(vectors, options.questions, size)
    unit, rows = load_questions(vectors, options.questions, size)
    correct = score_blocks(unit, rows, count_correct=True)
    assert result.answered == len(rows), "w2v and the product answer different numbers of questions"
    difference = sum(section.correct for section in result.sections) - correct
    assert abs(difference) <= 2, "w2v gives other answers"  # rounding may swap two nearly equal scores

    peer = KeyedVectors(vectors.vector_size)
    peer.add_vectors(vectors.index_to_key, vectors.vectors)
    times = alternate(
        {
            "matrix product only": lambda: time_call(lambda: score_blocks(unit, rows, count_correct=False)),
            "w2v, 3CosAdd": lambda: time_call(lambda: w2v.analogies(vectors, options.questions, size)),
            "w2v, 3CosMul": lambda: time_call(lambda: w2v.analogies(vectors, options.questions, size, method="mul")),
        },
        options.repeats,
    )
    times["gensim, 3CosAdd (once)"] = [
        time_call(lambda: peer.evaluate_word_analogies(str(options.questions), restrict_vocab=size))
    ]
    ratio = summarise(round_ratios(times["w2v, 3CosAdd"], times["matrix product only"]), goal=2)
    report_results(
        options,
        "Evaluating",
        f"{len(rows)} of {result.questions} questions, {correct} correct; "
        f"{size} words, {vectors.vector_size} dimensions.",
        seconds={name: summarise(values) for name, values in times.items()},
        ratio={"w2v, 3CosAdd / matrix product only": ratio},
    )


def load_questions(
    vectors: w2v.KeyedVectors, questions: Path, size: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return unit vectors (size, D), and the rows of the four words of each question with known words (Q, 4)."""
    unit = vectors.vectors[:size] / np.linalg.norm(vectors.vectors[:size], axis=1, keepdims=True)
    index = {word.lower(): row for row, word in reversed(list(enumerate(vectors.index_to_key[:size])))}
    lines = [line.lower().split() for line in questions.read_text().splitlines() if not line.startswith(":")]
    rows = [[index[word] for word in line] for line in lines if len(line) == 4 and index.keys() >= set(line)]
    return unit, np.array(rows)


def score_blocks(unit: NDArray[np.float32], rows: NDArray[np.int64], count_correct: bool) -> int:
    """Compute the scores block by block; with `count_correct`, also return the number of correct answers, else 0."""
    correct = 0
    for start in range(0, len(rows), BLOCK):
        a, b, c, d = rows[start : start + BLOCK].T
        scores = (unit[b] - unit[a] + unit[c]) @ unit.T
        if count_correct:
            for question_word in (a, b, c):
                scores[np.arange(len(a)), question_word] = -np.inf
            correct += int(np.sum(scores.argmax(axis=1) == d))
    return correct


if __name__ == "__main__":
    main()
