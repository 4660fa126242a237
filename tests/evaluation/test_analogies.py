"""Analogies: comparison with a slow reference and gensim, and files with faults."""

import importlib.resources
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import import_gensim, related_vectors, run
from w2v._errors import SettingsError, W2VError
from w2v._evaluation import analogies as analogies_module
from w2v._evaluation.analogies import Section, analogies, section_pairs
from w2v._evaluation.evaluate import evaluate
from w2v._vectors import _search
from w2v._vectors.keyed import KeyedVectors

GensimVectors = import_gensim("gensim.models").KeyedVectors
Question = tuple[str, str, str, str]


def write_questions(path: Path, sections: dict[str, list[Question]]) -> Path:
    lines = [line for name, questions in sections.items() for line in (f": {name}", *map(" ".join, questions))]
    path.write_text("\n".join(lines))
    return path


def all_questions(rows: range) -> list[Question]:
    return [(f"a{i}", f"b{i}", f"a{j}", f"b{j}") for i in rows for j in rows if i != j]


def slow_answer(vectors: KeyedVectors, question: Question, restrict_vocab: int, method: str, fold: bool) -> bool:
    """Return True if a question is answered correctly, computed in float64 over every candidate."""
    unit = vectors.vectors[:restrict_vocab].astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    names = [word.lower() if fold else word for word in vectors.index_to_key[:restrict_vocab]]
    a, b, c = (unit @ unit[names.index(word)] for word in question[:3])
    scores = b - a + c if method == "add" else (1 + b) / 2 * (1 + c) / 2 / ((1 + a) / 2 + 1e-6)
    order = [names[row] for row in np.argsort(-scores) if names[row] not in question[:3]]
    return order[0] == question[3]


@pytest.mark.parametrize("method", ["add", "mul"])
@pytest.mark.parametrize(("width", "questions"), [(1, 5), (7, 50), (1024, 1 << 15)])
@given(seed=st.integers(0, 1000), restrict_vocab=st.integers(4, 60))
@settings(max_examples=10)
def test_answers_equal_the_slow_reference(
    tmp_path_factory: pytest.TempPathFactory, method: str, width: int, questions: int, seed: int, restrict_vocab: int
) -> None:
    vectors = related_vectors(30, seed=seed)
    sections = {"one": all_questions(range(8)), "gram2-two": all_questions(range(20, 26))}
    path = write_questions(tmp_path_factory.getbasetemp() / "questions", sections)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_search, "WIDTH", width)
        patch.setattr(analogies_module, "QUESTIONS_AT_ONCE", questions)
        result = analogies(vectors, path, restrict_vocab, method)
    known = set(vectors.index_to_key[:restrict_vocab])
    for (name, asked), section in zip(sections.items(), result.sections, strict=True):
        answered = [question for question in asked if known.issuperset(question)]
        correct = sum(slow_answer(vectors, question, restrict_vocab, method, fold=True) for question in answered)
        assert section == Section(name, correct, len(answered), len(asked))
    one, two = result.sections
    assert (result.semantic, result.syntactic) == tuple(
        section.correct / section.answered if section.answered else None for section in (one, two)
    )
    assert (result.answered, result.questions) == (one.answered + two.answered, 56 + 30)
    assert (result.restrict_vocab, result.method, result.malformed) == (restrict_vocab, method, 0)
    if result.answered:
        assert result.accuracy == (one.correct + two.correct) / result.answered


def test_accuracy_equals_gensim(tmp_path: Path) -> None:
    vectors = related_vectors(60)
    gensim_vectors = GensimVectors(8)
    gensim_vectors.add_vectors(vectors.index_to_key, vectors.vectors)
    path = write_questions(tmp_path / "questions", {"one": all_questions(range(25)), "gram": all_questions(range(9))})
    for restrict in (40, 300_000):
        score, sections = gensim_vectors.evaluate_word_analogies(str(path), restrict_vocab=restrict)
        assert 0 < score < 1
        result = analogies(vectors, path, restrict)
        assert result.accuracy == pytest.approx(score)
        counts = [(section.correct, section.answered) for section in result.sections]
        assert counts == [
            (len(theirs["correct"]), len(theirs["correct"]) + len(theirs["incorrect"])) for theirs in sections[:-1]
        ]


def test_words_that_differ_in_case_count_as_one(tmp_path: Path) -> None:
    """A question uses the first variant, variants of a, b and c cannot be answers, any variant of d is right."""
    words = ["king", "man", "woman", "Queen", "KING", "queen", "Woman"]
    vectors = KeyedVectors(words, [[1, 1, 0], [1, 0, 0], [0.1, 0, 1], [0, 1, 0.8], [1, 1, 0], [0, 1, 1], [0, 0, 1]])
    path = write_questions(tmp_path / "questions", {"family": [("Man", "King", "WOMAN", "queen")]})
    result = analogies(vectors, path)
    assert (result.answered, result.accuracy) == (1, 1)
    assert analogies(vectors, path, case_insensitive=False).answered == 0
    question = ("man", "king", "woman", "queen")
    path = write_questions(tmp_path / "questions", {"family": [question]})
    assert analogies(vectors, path).accuracy == slow_answer(vectors, question, 7, "add", fold=True) == 1
    question = (*question[:3], "Queen")
    path = write_questions(tmp_path / "questions", {"family": [question]})
    result = analogies(vectors, path, case_insensitive=False)
    assert result.accuracy == slow_answer(vectors, question, 7, "add", fold=False) == 0


def test_malformed_lines_are_counted_and_unusable_files_refused(tmp_path: Path) -> None:
    vectors = related_vectors(5)
    path = tmp_path / "questions"
    path.write_bytes(b"\xef\xbb\xbfa0 b0 a1 b1\r\n\r\n: empty\r\na0 b0 a1\na0 b0 a1 b1 a2\n: gram\na0 b0 a1 nowhere\n")
    result = analogies(vectors, path)
    assert (result.questions, result.answered, result.malformed, result.first_malformed) == (2, 1, 2, 4)
    sections = [(section.name, section.answered, section.total) for section in result.sections]
    assert sections == [("without a section", 1, 1), ("empty", 0, 0), ("gram", 0, 1)]
    assert result.syntactic is None
    assert result.accuracy == result.semantic
    path.write_text("nothing here\n: section\n")
    with pytest.raises(W2VError, match="no questions found: a question is"):
        analogies(vectors, path)
    for content, message in [
        (b"a0 b0 a1 b1\ncaf\xe9 b0 a1 b1\n", r"questions, line 2: b'caf\\xe9' is not UTF-8$"),
        ("a0 b0 a1 b1\n".encode("utf-16"), "questions is UTF-16 or UTF-32: convert it to UTF-8"),
        (b"a b " * (1 << 23), "questions, line 1: longer than 16777216 bytes$"),
    ]:
        path.write_bytes(content)
        with pytest.raises(W2VError, match=message):
            analogies(vectors, path)
    with pytest.raises(W2VError, match="No such file"):
        analogies(vectors, tmp_path / "none")
    with pytest.raises(W2VError, match="directory"):
        analogies(vectors, tmp_path)


def test_impossible_settings_are_refused(tmp_path: Path) -> None:
    path = write_questions(tmp_path / "questions", {"all": all_questions(range(2))})
    with pytest.raises(SettingsError, match="restrict_vocab 0: it must be"):
        analogies(related_vectors(3), path, restrict_vocab=0)
    with pytest.raises(SettingsError, match="divide"):
        analogies(related_vectors(3), path, method="divide")  # type: ignore[arg-type]


def test_bundled_questions_are_well_formed() -> None:
    text = (importlib.resources.files("w2v.data") / "questions.txt").read_text()
    words = sorted({word for line in text.split("\n")[:200] if ":" not in line for word in line.split()})
    vectors = KeyedVectors(words, np.random.default_rng(0).standard_normal((len(words), 9)))
    result = analogies(vectors)
    assert result.questions > 1000
    assert result.malformed == 0
    assert 0 < result.answered < result.questions
    assert any(section.name.startswith("gram") for section in result.sections)


def test_names_of_sections_need_no_space_after_the_colon(tmp_path: Path) -> None:
    (tmp_path / "questions").write_text(":one\na0 b0 a1 b1\n:  grams  of two \na0 b0 a2 b2\n:gram3\na1 b1 a2 b2\n")
    result = analogies(related_vectors(5), tmp_path / "questions")
    sections = [(section.name, section.total) for section in result.sections]
    assert sections == [("one", 1), ("grams  of two", 1), ("gram3", 1)]
    one, *syntactic = (section.correct for section in result.sections)
    assert (result.semantic, result.syntactic) == (one, sum(syntactic) / 2)


def test_by_default_answers_come_from_as_many_words_as_the_help_says(tmp_path: Path) -> None:
    shown = re.search(r"--restrict-vocab.*?\[default:\s+([\d,]+)", run("analogy", "--help").stdout, re.DOTALL)
    assert shown
    limit = int(shown[1].replace(",", ""))
    path = write_questions(tmp_path / "questions", {"one": [("a", "b", "c", "last"), ("a", "b", "c", "d")]})
    vectors = np.zeros((limit + 1, 4), np.float32)
    vectors[:4] = np.eye(4)
    for outside in (0, 1):  # the answer is the last of the searched words, or the word after it
        words = [*"abcd", *(f"w{row}" for row in range(limit - 4))]
        words.insert(len(words) - 1 + outside, "last")
        result = analogies(KeyedVectors(words, vectors), path)
        assert (result.restrict_vocab, result.method, result.answered) == (limit, "add", 2 - outside)
        assert evaluate(KeyedVectors(words, vectors), questions=path)[1].scores[0].items == 2 - outside


def test_distinct_pairs_of_a_section_are_in_file_order(tmp_path: Path) -> None:
    path = tmp_path / "questions"
    path.write_text("x a0 a1 b1\n: one\nb3 a3 A1 b1\nx a0 b3 a3\n: two\na0 b0 a1 b1\n")
    vectors = related_vectors(4)  # the words are a0 b0 a1 b1 ...
    for section, case_insensitive, name, pairs in (
        (None, True, "without a section", [[2, 3]]),
        ("one", True, "one", [[7, 6], [2, 3]]),
        ("one", False, "one", [[7, 6]]),
        ("two", False, "two", [[0, 1], [2, 3]]),
    ):
        found = section_pairs(vectors, path, section, case_insensitive)
        assert (found[0], found[1].tolist()) == (name, pairs)
