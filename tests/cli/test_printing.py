"""The text that commands print for a result, compared with the text that a reader should see."""

import json
import math
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from w2v._cli import printing
from w2v._evaluation.analogies import AnalogyResult, Section
from w2v._evaluation.compare import Band, Comparison
from w2v._evaluation.scores import Evaluation, EvaluationResult, Score
from w2v._evaluation.similarity import PairsResult
from w2v._losses.code_lengths import CodeLengths, TreeLength, WordCodes
from w2v._training.effective_rank import EffectiveRank
from w2v._training.perplexity import Perplexity
from w2v._training.search import Trial

OTHER_SETS = (
    "w2v evaluate MODEL --questions FILE --pairs FILE uses your own test sets, and w2v evaluate MODEL --held-out FILE "
    "needs only a text"
)
ANALOGIES = AnalogyResult(
    accuracy=0.125, semantic=0.25, syntactic=None, answered=1600, questions=3200, malformed=3, first_malformed=7,
    restrict_vocab=30_000, method="add",
    sections=[Section("capitals", 150, 400, 2000), Section("family", 50, 1200, 1200)],
)  # fmt: skip
PAIRS = PairsResult(
    pearson=0.25, spearman=-0.125, found=1000, known=1000, known_spearman=-0.125, pairs=4000, malformed=1,
    first_malformed=9, unknown=["of", "the"],
)  # fmt: skip
SCORES = [
    Score(0.25, 0.125, 0.5, 1000, 2000),
    Score(0.5, 0.375, 0.625, 1500, 2000, difference=0.125, p=0.0625),
]
RESULTS = [
    EvaluationResult("questions", "accuracy", SCORES),
    EvaluationResult("pairs", "spearman", [SCORES[0], replace(SCORES[1], difference=-0.25, p=0.0005)]),
    EvaluationResult("text", "gaps", [SCORES[0], Score(None, None, None, 0, 2000)], chance=0.5),
]
EVALUATION = Evaluation(RESULTS, ["one", "two"])
COMPARISON = Comparison(
    shared=1234, only_first=1, only_second=2345, bands=[Band(1, 100, 90, 0.5), Band(101, 1234, 1000, 0.25)],
    results=EVALUATION,
)  # fmt: skip
COMPARED_LOSSES = {
    "losses": [
        {"loss": "ns", "alpha": 0.05, "seconds": 1.24, "perplexity": 999.91, "gaps": 0.75, "accuracy": 0.25},
        {"loss": "softmax", "alpha": 0.01, "seconds": 12_345.67, "perplexity": 2000.5, "gaps": 0.5, "accuracy": None},
    ],
    "vocabulary_size": 2000, "unigram_perplexity": 1234.56, "epochs": 5,
}  # fmt: skip
RANK = EffectiveRank(
    rank=7,
    max_rank=8,
    contexts=1200,
    words=1,
    vector_size=6,
    singular_values=[1000 / number for number in range(1, 1201)],
)
PERPLEXITY = Perplexity(
    perplexity=1234.567, cross_entropy_bits=10.26979, unigram_perplexity=2345.678, perplexity_as_trained=3456.789,
    tokens=3000, predictions=1, skipped=1000, vocabulary_size=2000,
)  # fmt: skip
CODES = CodeLengths(
    vocabulary_size=2000, tokens=30_000, entropy_bits=1.2345, huffman_speed_up=1.5,
    trees=[TreeLength("balanced", 11.0, 12, 1234.56), TreeLength("huffman", 7.25, 15, 275.86)],
    words=[WordCodes("king", 1, 3.5, {"balanced": "0101", "huffman": "11"})],
)  # fmt: skip
METRICS: dict[str, Any] = {
    "output": "new.bin", "vocabulary_size": 1234, "vector_size": 1, "words_per_second": 1_230_000.0,
    "peak_memory_bytes": 2_345_600_000, "tokens": 5000, "tokens_trained": 10_000, "loss": [3.0, 2.5, None],
    "seconds": {"read": 0.5, "total": 12.34}, "instruction_set": "avx2", "cache_reused": False, "pruned": 0,
    "noun": "word",
    "settings": {"model": "cbow", "loss": "ns", "window": 8, "epochs": 2, "negative": 5},
}  # fmt: skip


UNSCORED = Score(None, None, None, 0, 500)
VIEWS = {"words": {"loss": [1.5]}, "grams": {"loss": [4.0]}}
EVALUATION_TABLE = """\
set                        measure                   one                   two
questions                 accuracy  0.250 [0.125, 0.500]  0.500 [0.375, 0.625]
           difference to the first                            +0.125 (p 0.062)
                            scored        1,000 of 2,000        1,500 of 2,000
pairs                     spearman  0.250 [0.125, 0.500]  0.500 [0.375, 0.625]
           difference to the first                          -0.250 (p < 0.001)
                            scored        1,000 of 2,000        1,500 of 2,000
text           gaps (chance 0.500)  0.250 [0.125, 0.500]                     -
                            scored        1,000 of 2,000            0 of 2,000
gaps: how often the words around a gap in the text are nearer to the word in the gap than to another word; chance is 0.5
"""
EVALUATION_NOTES = """\
95 % intervals in brackets (bootstrap; Wilson for labels); p: McNemar's test for items right or wrong, otherwise \
bootstrap
differences are over the items that both models score
"""


# By result: a function that prints it, and the text.
SHOWN: dict[str, tuple[Callable[[], None], str]] = {
    "analogies": (
        lambda: printing.print_analogies(ANALOGIES),
        """\
section    accuracy  correct  answered  questions
capitals      37.5%      150       400       2000
family         4.2%       50      1200       1200
semantic      25.0%
syntactic         -
all           12.5%      200      1600       3200
answered 50.0% of the questions; the others contain words outside the 30,000 most frequent; \
3CosAdd: cos(x, b) - cos(x, a) + cos(x, c)
skipped 3 malformed lines: the first is line 7
""",
    ),
    "all analogies by 3CosMul": (
        lambda: printing.print_analogies(
            replace(ANALOGIES, sections=[], answered=3200, malformed=0, syntactic=0.75, method="mul")
        ),
        """\
section    accuracy  correct  answered  questions
semantic      25.0%
syntactic     75.0%
all           12.5%        0      3200       3200
answered 100.0% of the questions; 3CosMul: cos(x, b) * cos(x, c) / cos(x, a), cosines shifted to 0..1
""",
    ),
    "no analogies": (
        lambda: printing.print_analogies(replace(ANALOGIES, sections=[], accuracy=None, answered=0)),
        f"""\
section    accuracy  correct  answered  questions
semantic      25.0%
syntactic         -
all               -        0         0       3200
no question has only words of the model: {OTHER_SETS}
""",
    ),
    "pairs, verbose": (
        lambda: printing.print_word_pairs(PAIRS, verbose=True),
        """\
Spearman  -0.1250
Pearson   0.2500
found 1,000 of 4,000 pairs (25.0%)
not in the vocabulary: of, the
skipped 1 malformed line: line 9
""",
    ),
    "no pairs": (
        lambda: printing.print_word_pairs(replace(PAIRS, pearson=None, found=0, known=0, malformed=0), verbose=False),
        f"""\
Spearman  -0.1250
Pearson   -
found 0 of 4,000 pairs (0.0%)
no pair has both words in the model: {OTHER_SETS}
not in the vocabulary: 2 words (--verbose: which)
""",
    ),
    "pairs of unknown words": (
        lambda: printing.print_word_pairs(replace(PAIRS, unknown=[], malformed=0, known=900), verbose=True),
        """\
Spearman  -0.1250
Pearson   0.2500
found 1,000 of 4,000 pairs (25.0%)
only the 900 pairs of words in the vocabulary: Spearman -0.1250
""",
    ),
    "evaluation": (
        lambda: print(EVALUATION),
        f"""\
{EVALUATION_TABLE}{EVALUATION_NOTES}""",
    ),
    "evaluation of one model": (
        lambda: print(Evaluation([EvaluationResult("q", "accuracy", SCORES[:1])], ["one"])),
        """\
set   measure                   one
q    accuracy  0.250 [0.125, 0.500]
       scored        1,000 of 2,000
95 % intervals in brackets (bootstrap; Wilson for labels); p: McNemar's test for items right or wrong, otherwise \
bootstrap
""",
    ),
    "evaluation of models that lack words": (
        lambda: print(
            Evaluation(
                [
                    EvaluationResult("q", "accuracy", [SCORES[0], UNSCORED]),
                    EvaluationResult("p", "spearman", [SCORES[0], UNSCORED]),
                    EvaluationResult("words", "rare neighbours", [UNSCORED, SCORES[0]]),
                ],
                ["one", "two"],
            )
        ),
        f"""\
set            measure                   one                   two
q             accuracy  0.250 [0.125, 0.500]                     -
                scored        1,000 of 2,000              0 of 500
p             spearman  0.250 [0.125, 0.500]                     -
                scored        1,000 of 2,000              0 of 500
words  rare neighbours                     -  0.250 [0.125, 0.500]
                scored              0 of 500        1,000 of 2,000
one has no counts of its words, or no rare words, so rare neighbours cannot be counted
every item of q and p has a word that two lacks: {OTHER_SETS}
{EVALUATION_NOTES}""",
    ),
    "comparison": (
        lambda: printing.print_comparison(["one", "two"], COMPARISON),
        f"""\
1,234 words in both models, 1 only in one, 2,345 only in two
frequency rank  words compared  same among the 10 nearest
1-100                       90                      50.0%
101-1,234                1,000                      25.0%
{EVALUATION_TABLE}{EVALUATION_NOTES}""",
    ),
    "rank": (
        lambda: printing.print_rank(RANK),
        """\
rank                         7 of 1,200
highest rank with this loss  8
matrix                       1,200 contexts, 1 word
singular value
1                1000
2                 500
5                 200
7               142.9
8                 125
9               111.1
10                100
20                 50
50                 20
100                10
200                 5
500                 2
1000                1
""",
    ),
    "rank without a limit": (
        lambda: printing.print_rank(replace(RANK, rank=2, max_rank=None, singular_values=[4.0, 3.0])),
        """\
rank                         2 of 2
highest rank with this loss  none
matrix                       1,200 contexts, 1 word
singular value
1               4
2               3
""",
    ),
    "perplexity": (
        lambda: printing.print_perplexity(PERPLEXITY),
        """\
perplexity             1,234.57, 10.2698 bits a prediction
unigram perplexity     2,345.68, from word frequencies only
perplexity as trained  3,456.79, with subsampling
predicted              3,000 words in 1 prediction
skipped                1,000 words not in the vocabulary
perplexities are comparable only between models of the same vocabulary: 25.0% of the words are skipped, and a model \
with more words has to predict some of them
""",
    ),
    "perplexity of a bad model": (
        lambda: printing.print_perplexity(replace(PERPLEXITY, perplexity=2000.01, skipped=0)),
        """\
perplexity             2,000.01, 10.2698 bits a prediction
unigram perplexity     2,345.68, from word frequencies only
perplexity as trained  3,456.79, with subsampling
predicted              3,000 words in 1 prediction
skipped                0 words not in the vocabulary
worse than a guess among all words: the model is too sure of its predictions. It has learnt too long from too little \
text, or this text is of another kind. Its vectors may still be good: w2v evaluate --held-out tests them
""",
    ),
    "losses": (
        lambda: printing.print_losses(COMPARED_LOSSES),
        """\
loss     alpha   seconds  perplexity   gaps  analogies
ns        0.05       1.2       999.9  0.750      25.0%
softmax   0.01  12,345.7     2,000.5  0.500          -
perplexity of word frequencies only: 1,234.6; of a guess among all words: 2,000; 5 epochs each
worse than a guess: softmax, which learnt too long from too little text
gaps: how often the words around a gap in the text are nearer to the word in the gap than to another word; chance is 0.5
""",
    ),
    "code lengths": (
        lambda: printing.print_code_lengths(CODES),
        """\
2,000 words, 30,000 tokens, entropy 1.234 bits
tree      expected bits  longest code  fewer rows than softmax
balanced         11.000            12                1,234.6 ×
huffman           7.250            15                  275.9 ×
the Huffman tree uses 1.50 × fewer rows than the balanced tree
king: 1 time, 3.500 bits
balanced  4  0101
huffman   2  11
""",
    ),
    "training": (
        lambda: printing.print_training(METRICS | {"noun": "node", "pruned": 1}),
        """\
output    new.bin: 1,234 nodes, 1 value each, in 12.3 s with 2,346 MB
trained   10,000 nodes at 1.23 M nodes/s, loss 2.5 in the last epoch
settings  model cbow, loss ns, window 8, epochs 2; all: --verbose
pruned    1 rare node dropped, because of --max-types
""",
    ),
    "training of two views": (
        lambda: printing.print_training(METRICS | {"views": VIEWS}),
        """\
output    new.bin: 1,234 words, 1 value each, in 12.3 s with 2,346 MB
trained   10,000 words at 1.23 M words/s, loss 1.5 and 4 in the last epoch
settings  model cbow, loss ns, window 8, epochs 2; all: --verbose
""",
    ),
    "neighbours": (
        lambda: printing.print_neighbours(
            "cos(x, a)",
            [{"word": "b", "score": 0.25, "count": 1234}, {"word": "cc", "score": -0.5, "count": 1}],
            {"a": [0.1234567, 2]},
        ),
        """\
cos(x, a)
b   0.2500   1,234 times
cc  -0.5000  1 time
a: 0.123457 2
""",
    ),
    "conversion": (
        lambda: printing.print_conversion({"output": "new.bin", "lost": ["counts", "metrics"], "empty": []}),
        """\
output  new.bin
lost    counts, metrics
""",
    ),
}


@pytest.mark.parametrize("name", SHOWN)
def test_results_are_printed_for_readers(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    show, expected = SHOWN[name]
    show()
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"some_name": 1234, "none": None, "no": [], "empty": {}, "list": [1.5, True], "zero": 0},
         "some name  1,234\nlist       1.5 yes\nzero       0\n"),
        (Band(1, 100, 90, 0.5), None),
    ],
)  # fmt: skip
def test_results_are_printed_as_json_or_text_or_not_at_all(
    result: Any, text: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    values = result if isinstance(result, dict) else asdict(result)
    for quiet in False, True:
        printing.print_result(result, True, quiet)
        assert json.loads(capsys.readouterr().out) == values
    printing.print_result(result, False, True)
    assert capsys.readouterr().out == ""
    printing.print_result(result, False, print_text=lambda shown: print("own", shown is result))
    assert capsys.readouterr().out == "own True\n"
    if text:
        printing.print_result(result, False)
        assert capsys.readouterr().out == text


def test_numbers_that_json_lacks_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    values = [np.float64(math.inf), -math.inf, math.nan, np.float64(1.5), (1 << 64) - 1, "inf", None, True]
    printing.print_json({"a": values, "b": {"c": tuple(values)}})
    expected = [None, None, None, 1.5, (1 << 64) - 1, "inf", None, True]
    assert json.loads(capsys.readouterr().out) == {"a": expected, "b": {"c": expected}}


def test_paths_that_are_not_utf8_are_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    path = os.fsdecode(b"n\xff.bin")
    printing.print_json({"output": path})
    assert json.loads(capsys.readouterr().out) == {"output": path}


def test_tables_print_words_literally_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    printing.print_table([["[bold]:smile:[/bold]", "x" * 500], ["a\x1bb"]], ["[i]", "n"])
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "[i]" + " " * 518 + "n", "[bold]:smile:[/bold]  " + "x" * 500, "a\\x1bb"
    ]  # fmt: skip


def test_trials_are_printed_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A trial without a score has diverged."""
    tuner: Any = SimpleNamespace(trials=[1], changed=lambda choices: choices, score=0.12345)
    tuner.details = lambda trial: f"seed {trial.seed}"
    printing.print_trial(Trial({}, 1.0, 7, 0.12345, 12.34), tuner)
    tuner.trials, tuner.score = list(range(12)), 0.5
    for score in None, -math.inf:
        printing.print_trial(Trial({"window": 9, "alpha": 0.0125}, 1 / 3, 8, score, 1.25), tuner)
    first, *others = capsys.readouterr().err.splitlines()
    assert first == "w2v: trial 1: score 12.35, best 12.35, with the defaults; seed 7, 12.3 s"
    line = "w2v: trial 12: score -, best 50.00, with window=9 alpha=0.0125; seed 8, 1.2 s"
    assert others == [line, line]


def test_each_view_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    views = {"words": {"loss": [2.5], "predictions": 7}, "subwords": {"loss": [1.5], "predictions": 7}}
    printing.print_values({"vector_size": 20, "views": views, "seconds": {"read": 1.0}, "skipped": {}})
    assert capsys.readouterr().out.splitlines() == [
        "vector size     20",
        "views words     loss 2.5, predictions 7",
        "views subwords  loss 1.5, predictions 7",
        "seconds         read 1",
    ]
