"""Analogies and word pairs against slow references, gensim, and files with faults."""

import importlib.resources
from pathlib import Path

import numpy as np
import pytest
from gensim.models import KeyedVectors as GensimVectors
from hypothesis import given, settings
from hypothesis import strategies as st

from w2v.errors import SettingsError, W2VError
from w2v.vectors import _search, benchmarks
from w2v.vectors.benchmarks import Section, analogies, word_pairs
from w2v.vectors.keyed import KeyedVectors

Question = tuple[str, str, str, str]


def related(rows: int, columns: int = 8, seed: int = 5, noise: float = 0.4) -> KeyedVectors:
    """Pairs of words a0 b0, a1 b1… whose second is the first plus a shift and noise: some analogies hold."""
    random = np.random.default_rng(seed)
    first = random.standard_normal((rows, columns))
    second = first + random.standard_normal(columns) + noise * random.standard_normal((rows, columns))
    words = [f"{letter}{row}" for row in range(rows) for letter in "ab"]
    return KeyedVectors(words, np.stack([first, second], axis=1).reshape(2 * rows, columns))


def write_questions(path: Path, sections: dict[str, list[Question]]) -> Path:
    lines = [line for name, questions in sections.items() for line in (f": {name}", *map(" ".join, questions))]
    path.write_text("\n".join(lines))
    return path


def all_questions(rows: range) -> list[Question]:
    return [(f"a{i}", f"b{i}", f"a{j}", f"b{j}") for i in rows for j in rows if i != j]


def slow_answer(vectors: KeyedVectors, question: Question, top: int, method: str, fold: bool) -> bool:
    """One question at a time, in float64, over every candidate."""
    unit = vectors.vectors[:top].astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    names = [word.lower() if fold else word for word in vectors.index_to_key[:top]]
    a, b, c = (unit @ unit[names.index(word)] for word in question[:3])
    scores = b - a + c if method == "add" else (1 + b) / 2 * (1 + c) / 2 / ((1 + a) / 2 + 1e-6)
    order = [names[row] for row in np.argsort(-scores) if names[row] not in question[:3]]
    return order[0] == question[3]


@pytest.mark.parametrize("method", ["add", "mul"])
@pytest.mark.parametrize(("width", "questions"), [(1, 5), (7, 50), (1024, 1 << 15)])
@given(seed=st.integers(0, 1000), top=st.integers(4, 60))
@settings(max_examples=10)
def test_answers_are_those_of_the_slow_reference(
    tmp_path_factory: pytest.TempPathFactory, method: str, width: int, questions: int, seed: int, top: int
) -> None:
    vectors = related(30, seed=seed)
    sections = {"one": all_questions(range(8)), "gram2-two": all_questions(range(20, 26))}
    path = write_questions(tmp_path_factory.getbasetemp() / "questions", sections)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_search, "WIDTH", width)
        patch.setattr(benchmarks, "QUESTIONS_AT_ONCE", questions)
        result = analogies(vectors, path, top, method)
    known = set(vectors.index_to_key[:top])
    for (name, asked), section in zip(sections.items(), result.sections, strict=True):
        answered = [question for question in asked if known.issuperset(question)]
        correct = sum(slow_answer(vectors, question, top, method, fold=True) for question in answered)
        assert section == Section(name, correct, len(answered), len(asked))
    one, two = result.sections
    assert (result.semantic, result.syntactic) == tuple(
        section.correct / section.answered if section.answered else None for section in (one, two)
    )
    assert (result.answered, result.questions) == (one.answered + two.answered, 56 + 30)
    assert (result.top, result.method, result.malformed) == (top, method, 0)
    if result.answered:
        assert result.accuracy == (one.correct + two.correct) / result.answered


def test_more_candidates_than_a_tile(tmp_path: Path) -> None:
    vectors = related(1500, columns=16, noise=0.2)
    questions = all_questions(range(12))
    path = write_questions(tmp_path / "questions", {"all": questions})
    correct = sum(slow_answer(vectors, question, 3000, "add", fold=True) for question in questions)
    assert 0 < correct < len(questions)
    assert analogies(vectors, path).accuracy == correct / len(questions)


def test_analogies_are_gensims(tmp_path: Path) -> None:
    vectors = related(60)
    peer = GensimVectors(8)
    peer.add_vectors(vectors.index_to_key, vectors.vectors)
    path = write_questions(tmp_path / "questions", {"one": all_questions(range(25)), "gram": all_questions(range(9))})
    for restrict in (40, 300_000):
        score, sections = peer.evaluate_word_analogies(str(path), restrict_vocab=restrict)
        assert 0 < score < 1
        ours, our_sections = vectors.evaluate_word_analogies(path, restrict_vocab=restrict)
        assert ours == pytest.approx(score)
        counts = [(section.correct, section.answered) for section in our_sections]
        assert counts == [
            (len(theirs["correct"]), len(theirs["correct"]) + len(theirs["incorrect"])) for theirs in sections[:-1]
        ]


def test_case(tmp_path: Path) -> None:
    """The first of the words that differ in case is asked, all of them are left out, any of them is right."""
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


def test_faults_in_a_question_file(tmp_path: Path) -> None:
    vectors = related(5)
    path = tmp_path / "questions"
    path.write_bytes(b"\xef\xbb\xbfa0 b0 a1 b1\r\n\r\n: empty\r\na0 b0 a1\na0 b0 a1 b1 a2\n: gram\na0 b0 a1 nowhere\n")
    result = analogies(vectors, path)
    assert (result.questions, result.answered, result.malformed, result.first_malformed) == (2, 1, 2, 4)
    assert [(section.name, section.answered, section.total) for section in result.sections] == [
        ("without a section", 1, 1),
        ("empty", 0, 0),
        ("gram", 0, 1),
    ]
    assert result.syntactic is None
    assert result.accuracy == result.semantic
    path.write_text("nothing here\n: section\n")
    with pytest.raises(W2VError, match="no questions: they are"):
        analogies(vectors, path)
    for content, message in [
        (b"a0 b0 a1 b1\ncaf\xe9 b0 a1 b1\n", r"questions, line 2: b'caf\\xe9' is not UTF-8$"),
        ("a0 b0 a1 b1\n".encode("utf-16"), "questions is UTF-16 or UTF-32: convert it to UTF-8"),
        (b": a\n" * 10_001, "questions: more than 10000 sections$"),
        (b"a b " * (1 << 23), "questions, line 1: longer than 16777216 bytes$"),
    ]:
        path.write_bytes(content)
        with pytest.raises(W2VError, match=message):
            analogies(vectors, path)
    with pytest.raises(W2VError, match="No such file"):
        analogies(vectors, tmp_path / "none")
    with pytest.raises(W2VError, match="directory"):
        analogies(vectors, tmp_path)


def test_impossible_settings(tmp_path: Path) -> None:
    path = write_questions(tmp_path / "questions", {"all": all_questions(range(2))})
    with pytest.raises(SettingsError, match="restrict_vocab 0: it must be"):
        analogies(related(3), path, top=0)
    with pytest.raises(SettingsError, match="divide"):
        analogies(related(3), path, method="divide")  # type: ignore[arg-type]


def test_evaluation_changes_nothing(tmp_path: Path) -> None:
    vectors = related(20)
    before = vectors.vectors.copy()
    vectors.vectors.flags.writeable = False
    analogies(vectors, write_questions(tmp_path / "questions", {"all": all_questions(range(5))}), method="mul")
    (tmp_path / "pairs").write_text("a0 b0 1\na1 b1 2\na2 b3 3\n")
    word_pairs(vectors, tmp_path / "pairs")
    np.testing.assert_array_equal(vectors.vectors, before)


def test_pairs_are_gensims(tmp_path: Path) -> None:
    vectors = related(40)
    peer = GensimVectors(8)
    peer.add_vectors(vectors.index_to_key, vectors.vectors)
    scores = np.random.default_rng(1).integers(0, 9, 40)  # with ties
    lines = [f"a{row}\tb{row // 2}\t{score}" for row, score in enumerate(scores)] + ["a1\tnowhere\t3"]
    path = tmp_path / "pairs"
    path.write_text("# comment\n" + "\n".join(lines) + "\n")
    pearson, spearman, missing = peer.evaluate_word_pairs(str(path))
    result = word_pairs(vectors, path)
    assert result.pearson == pytest.approx(pearson[0], abs=1e-6)
    assert result.spearman == pytest.approx(spearman[0], abs=1e-6)
    assert (result.found, result.pairs, result.malformed, result.unknown) == (40, 41, 0, ["nowhere"])
    assert vectors.evaluate_word_pairs(path) == (result.pearson, result.spearman, pytest.approx(missing))


def test_faults_in_a_pair_file(tmp_path: Path) -> None:
    vectors = related(9)
    path = tmp_path / "pairs"
    path.write_text(
        "Word 1\tWord 2\tHuman\n\n# x\nA0 B0 1\r\na1 b1 2\na1 b1\na2 b2 nan\na3 b5 0.5\nno never 3\nno a0 1\n"
    )
    result = word_pairs(vectors, path)
    assert (result.found, result.pairs, result.unknown) == (3, 5, ["no", "never"])
    assert (result.malformed, result.first_malformed) == (2, 6)  # the names of columns are not malformed
    assert result.spearman is not None
    assert word_pairs(vectors, path, case_insensitive=False).found == 2
    for text in ("a0 b0 1\n", "a0 b0 1\na1 b1 1\n", "a0 b0 1\na0 b0 2\n", "no never 1\nno never 2\n"):
        path.write_text(text)  # too few pairs, or all of one score or cosine
        result = word_pairs(vectors, path)
        assert (result.pearson, result.spearman) == (None, None)
    path.write_text("a0 b0 1\n" * 100_001)
    with pytest.raises(W2VError, match="more than 100000 pairs"):
        word_pairs(vectors, path)
    path.write_text("# nothing\n")
    with pytest.raises(W2VError, match=r"no pairs: they are lines of two words and a score$"):
        word_pairs(vectors, path)
    path.write_text("# nothing\na0 b0\nb1\n")
    with pytest.raises(W2VError, match=r"no pairs: they are lines of two words and a score, and line 2 is 'a0 b0'$"):
        word_pairs(vectors, path)
    path.write_bytes(b"a0,b0,1\na1,b1,2\na2,caf\xe9,3\n")
    with pytest.raises(W2VError, match=r"pairs, line 3: b'a2,caf\\xe9,3\\n' is not UTF-8$"):
        word_pairs(vectors, path)


# Tables in the layouts of usual sets, each with the pairs a0 b0 1.5, a1 b1 2.5 and a2 b2 0.5, in this order.
SETS = {
    "SimLex-999": "word1\tword2\tPOS\tSimLex999\tconc(w1)\tconcQ\na0\tb0\tN\t1.5\t3.1\t2\na1\tb1\tV\t2.5\t1\t2\n"
    "a2\tb2\tA\t0.5\t4.2\t1\n",
    "SimVerb-3500": "a0\tb0\tV\t1.5\tSYNONYMS\na1\tb1\tV\t2.5\tNONE\na2\tb2\tV\t0.5\tNONE\n",
    "WordSim-353, CSV": "Word 1,Word 2,Human (mean)\r\na0,b0,1.5\r\na1,b1,2.5\r\na2,b2,0.5\r\n",
    "WordSim-353, all scores": "Word 1,Word 2,Human (mean),1,2\na0,b0,1.5,1,2\na1,b1,2.5,2,3\na2,b2,.5,0,1\n",
    "WordSim-353, TSV": "Word 1\tWord 2\tHuman (mean)\na0\tb0\t1.5\na1\tb1\t2.5\na2\tb2\t0.5\n",
    "semicolons": "a0;b0;1.5\na1;b1;2.5\na2;b2;0.5\n",
    "quoted": '"x","y","score"\n"a0","b0","1.5"\n"a1", "b1", "2.5"\n"a2","b2","0.5"\n',
    "numbered rows": ",x,y,score\n0,a0,b0,1.5\n1,a1,b1,2.5\n2,a2,b2,0.5\n",
    "spaces": "word1 word2 similarity\na0 b0 1.5\na1   b1 2.5 \na2 b2 0.5\n",
    "a comment": "# Word 1, Word 2, score\na0\tb0\t1.5\na1\tb1\t2.5\na2\tb2\t0.5\n",
}


@pytest.mark.parametrize("name", SETS)
def test_tables_of_pairs(tmp_path: Path, name: str) -> None:
    vectors = related(9)
    path = tmp_path / "pairs"
    path.write_text(SETS[name])
    rated = benchmarks.rated_pairs(vectors, path)
    assert rated.rows.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert rated.scores.tolist() == [1.5, 2.5, 0.5]
    assert (rated.malformed, rated.first_malformed) == (0, None)
    path.write_text(SETS[name] + "a3 b3\n")
    assert word_pairs(vectors, path).first_malformed == SETS[name].count("\n") + 1


def test_words_of_pairs_may_be_numbers_and_have_spaces_or_commas(tmp_path: Path) -> None:
    vectors = KeyedVectors(["3", "q17", "new york", "a,b"], np.eye(4) + 0.1)
    path = tmp_path / "pairs"
    for text in ("3 q17 0.5\nq17 3 0.25\n", "new york\ta,b\t0.5\n3\tq17\t1\n", '"a,b",new york,0.5\n3,q17,1\n'):
        path.write_text(text)
        assert word_pairs(vectors, path).found == 2


def test_a_row_too_long_to_be_a_pair_is_malformed(tmp_path: Path) -> None:
    path = tmp_path / "pairs"
    path.write_text("a0 b0 1\na1 b1 2 " + "x" * benchmarks.MAX_LINE_BYTES + "\na2 b2 3\n")
    result = word_pairs(related(9), path)
    assert (result.found, result.malformed, result.first_malformed) == (2, 1, 2)


def test_bundled_sets() -> None:
    text = (importlib.resources.files("w2v.data") / "questions.txt").read_text()
    words = sorted({word for line in text.split("\n")[:200] if ":" not in line for word in line.split()})
    vectors = KeyedVectors(words, np.random.default_rng(0).standard_normal((len(words), 9)))
    result = analogies(vectors)
    assert result.questions > 1000
    assert result.malformed == 0
    assert 0 < result.answered < result.questions
    assert any(section.name.startswith("gram") for section in result.sections)
    pairs = word_pairs(vectors)
    assert 0 < pairs.found < pairs.pairs
    assert pairs.malformed == 0
