"""Word pairs: comparison with gensim, and files in various layouts and with faults."""

import importlib.resources
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import w2v
from tests.helpers import SMALL, import_gensim, related_vectors
from w2v._errors import W2VError
from w2v._evaluation import similarity as similarity_module
from w2v._evaluation.similarity import MAX_LINE_BYTES, rated_pairs, word_pairs
from w2v._formats.header import ModelHeader
from w2v._text.normalise import TextOptions
from w2v._vectors.keyed import KeyedVectors


def test_correlations_equal_gensim(tmp_path: Path) -> None:
    vectors = related_vectors(40)
    gensim_vectors = import_gensim("gensim.models").KeyedVectors(8)
    gensim_vectors.add_vectors(vectors.index_to_key, vectors.vectors)
    scores = np.random.default_rng(1).integers(0, 9, 40)  # with ties
    lines = [f"a{row}\tb{row // 2}\t{score}" for row, score in enumerate(scores)] + ["a1\tnowhere\t3"]
    path = tmp_path / "pairs"
    path.write_text("# comment\n" + "\n".join(lines) + "\n")
    pearson, spearman, missing = gensim_vectors.evaluate_word_pairs(str(path))
    result = word_pairs(vectors, path)
    assert result.pearson == pytest.approx(pearson[0], abs=1e-6)
    assert result.spearman == pytest.approx(spearman[0], abs=1e-6)
    assert (result.found, result.pairs, result.malformed, result.unknown) == (40, 41, 0, ["nowhere"])
    assert 100 * (1 - result.found / result.pairs) == pytest.approx(missing)


def test_malformed_lines_are_counted_and_unusable_files_refused(tmp_path: Path) -> None:
    vectors = related_vectors(9)
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
    none = "no pairs found: a pair is a line of two words and a score"
    for content, message in (
        (b"# nothing\n", f"{none}$"),
        (b"# nothing\na0 b0\nb1\n", f"{none}, but line 2 is 'a0 b0'$"),
        (b"x" * 1000, f"{none}, but line 1 is 'x{{40,80}}'$"),
        (b"x " * 40_000, f"{none}, but line 1 is longer than 65,536 bytes$"),
        (b"a0,b0,1\na1,b1,2\na2,caf\xe9,3\n", r"pairs, line 3: b'a2,caf\\xe9,3\\n' is not UTF-8$"),
    ):
        path.write_bytes(content)
        with pytest.raises(W2VError, match=message):
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
    "decimal commas, semicolons": "x;y;score;1\na0;b0;1,5;3,1\na1;b1;2,50;2,1\na2;b2;,5;0\n",
    "decimal commas, TSV": "x\ty\tscore\na0\tb0\t1,5\na1\tb1\t2,500\na2\tb2\t0,5\n",
    "decimal commas, no header": "a0;b0;1,5\na1;b1;2,5\na2;b2;0,5\n",
    "decimal commas, CSV": 'a0,b0,"1,5"\na1,b1,"2,5"\na2,b2,"0,5"\n',
    "an empty column": "a0\tb0\t\t1.5\na1\tb1\t\t2.5\na2\tb2\t\t0.5\n",
    "numbered rows with an empty column": "1,a0,b0,,1.5\n2,a1,b1,,2.5\n3,a2,b2,,0.5\n",
    "a comment": "# Word 1, Word 2, score\na0\tb0\t1.5\na1\tb1\t2.5\na2\tb2\t0.5\n",
}


@pytest.mark.parametrize("name", SETS)
def test_published_table_layouts_are_read(tmp_path: Path, name: str) -> None:
    vectors = related_vectors(9)
    path = tmp_path / "pairs"
    path.write_text(SETS[name])
    rated = rated_pairs(vectors, path)
    assert rated.rows.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert rated.scores.tolist() == [1.5, 2.5, 0.5]
    assert (rated.malformed, rated.first_malformed) == (0, None)
    path.write_text(SETS[name] + "a3 b3\n")
    assert word_pairs(vectors, path).first_malformed == SETS[name].count("\n") + 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a0;b0;1,5\na1;b1;2.5\n", r"line 1: the score '1,5' has a comma, but '2.5' in line 2 has a point: write all"),
        ("a0\tb0\t7\na1\tb1\t1,234\n", r"line 2: the score '1,234' may be 1.234 or 1234: write scores with a"),
    ],
)
def test_ambiguous_commas_in_scores_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "pairs").write_text(text)
    with pytest.raises(W2VError, match=f"^{re.escape(str(tmp_path / 'pairs'))}, {message}"):
        word_pairs(related_vectors(9), tmp_path / "pairs")


def test_words_may_be_numbers_or_contain_spaces_and_commas(tmp_path: Path) -> None:
    vectors = KeyedVectors(["3", "q17", "new york", "a,b"], np.eye(4) + 0.1)
    path = tmp_path / "pairs"
    for text in ("3 q17 0.5\nq17 3 0.25\n", "new york\ta,b\t0.5\n3\tq17\t1\n", '"a,b",new york,0.5\n3,q17,1\n'):
        path.write_text(text)
        assert word_pairs(vectors, path).found == 2


@pytest.mark.parametrize(
    ("content", "malformed", "first_malformed"),
    [
        (f"a0 b0 1\na1 b1 2 {'x' * MAX_LINE_BYTES}\na2 b2 3\n", 1, 2),  # too long
        ("a0\tb0\t1\nword1\tword2\tscore\na1\tb1\t2\n", 1, 2),  # names of columns belong into the first line
        ("word\na0\tb0\t1\na1\tb1\t2\n", 1, 1),  # too few names of columns
        ("a0\tb0\t1\na1\t\t2\n\tb2\t3\na3\tb3\t4\n", 2, 2),  # pairs without one of their words
    ],
    ids=["long", "names", "few names", "one word"],
)
def test_lines_without_two_words_and_a_score_are_malformed(
    tmp_path: Path, content: str, malformed: int, first_malformed: int
) -> None:
    (tmp_path / "pairs").write_text(content)
    result = word_pairs(related_vectors(9), tmp_path / "pairs")
    assert (result.found, result.malformed, result.first_malformed) == (2, malformed, first_malformed)
    assert result.unknown == []


def test_bundled_pairs_are_well_formed() -> None:
    text = (importlib.resources.files("w2v.data") / "pairs.txt").read_text()
    lines = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    words = sorted({word for first, second, _ in lines[::2] for word in (first, second)})
    pairs = word_pairs(KeyedVectors(words, np.random.default_rng(0).standard_normal((len(words), 9))))
    assert 0 < pairs.found < pairs.pairs == len(lines)
    assert pairs.malformed == 0


def test_two_pairs_are_enough_for_a_correlation(tmp_path: Path) -> None:
    vectors = KeyedVectors(["a", "b", "c"], [[1, 0], [1, 1], [0, 1]])
    for scores, expected in (((2, 1), 1), ((1, 2), -1)):
        (tmp_path / "pairs").write_text(f"a b {scores[0]}\na c {scores[1]}\n")
        result = word_pairs(vectors, tmp_path / "pairs")
        assert (result.pearson, result.spearman) == (pytest.approx(expected), pytest.approx(expected))


def test_words_are_normalised_as_in_training(tmp_path: Path) -> None:
    """A word is looked up as it is written and, if unknown, as the training's tokenizer writes it."""
    words = ["Bar", "two", "words", "route00"]
    options = TextOptions(lower=True, digits="zero")
    vectors = KeyedVectors(words, np.eye(4) + 0.1, header=ModelHeader(text=options))
    (tmp_path / "pairs").write_text("Route66\ttwo\t1\nBar\twords\t2\ntwo words\troute00\t3\nBAR\ttwo\t4\n")
    rated = rated_pairs(vectors, tmp_path / "pairs", case_insensitive=False)
    assert rated.rows.tolist() == [[3, 1], [0, 2], [4, 3]]  # row 4 is the text "two words"
    assert rated.unknown == ["BAR"]  # a word that is only known in another case


def test_unknown_words_get_vectors_from_ngrams(tmp_path: Path, sample: Path) -> None:
    options = SMALL | {"epochs": 1, "subwords": "3-4", "buckets": 1000, "lower": True, "max_vocab": 50}
    vectors = w2v.train(sample, **options).wv
    first, second, *_ = vectors.index_to_key
    (tmp_path / "pairs").write_text(f"{first}\t{second}\t1\n{first}\tKingship\t2\nqqq\tqueenish\t3\nnew york\tqq\t4\n")
    rated = rated_pairs(vectors, tmp_path / "pairs", case_insensitive=False)
    assert rated.rows.tolist() == [[0, 1], [0, len(vectors)]]  # known words have their own rows
    assert rated.unknown == ["qqq", "qq"]  # no word of the text has one of their n-grams
    np.testing.assert_allclose(
        rated.cosines, [vectors.similarity(first, second), vectors.similarity(first, "kingship")], rtol=1e-5
    )


def test_correlation_of_known_words_leaves_out_unknown_words(tmp_path: Path) -> None:
    vectors = w2v.train(["a b c"] * 50, **SMALL | {"min_count": 1, "sample": 0, "epochs": 1, "subwords": "1-2"}).wv
    known = "a b 3\nb c 2\na c 1\n"
    (tmp_path / "known").write_text(known)
    (tmp_path / "all").write_text(known + "ab c 9\nbc a 0\n")
    expected, result = (word_pairs(vectors, tmp_path / name) for name in ("known", "all"))
    assert (expected.known, expected.found, expected.known_spearman) == (3, 3, expected.spearman)
    assert (result.known, result.found, result.known_spearman) == (3, 5, expected.spearman)
    assert result.spearman != result.known_spearman


def test_pairs_are_scored_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = related_vectors(9)
    (tmp_path / "pairs").write_text("".join(f"a{row} b{8 - row} {row}\n" for row in range(9)))
    expected = [vectors.similarity(f"a{row}", f"b{8 - row}") for row in range(9)]
    for batch in (1, 4, 9):
        monkeypatch.setattr(similarity_module, "PAIRS_AT_ONCE", batch)
        np.testing.assert_allclose(rated_pairs(vectors, tmp_path / "pairs").cosines, expected, rtol=1e-5)


def test_pairs_of_texts_have_the_cosines_of_their_encoded_vectors(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    vectors = w2v.KeyedVectors([f"w{row}" for row in range(30)], random.normal(size=(30, 5)), np.arange(60, 30, -1))
    texts = [" ".join(f"w{row}" for row in random.integers(0, 32, 6)) for _ in range(20)]
    pairs = [*zip(texts[:10], texts[10:], range(10), strict=True), ("w1", "w2 w3", 11), ("w1", "x y", 12)]
    (tmp_path / "sts.tsv").write_text("".join(f"{one}\t{two}\t{score}\n" for one, two, score in pairs))
    encoded = [w2v.encode(vectors, [str(pair[side]) for pair in pairs[:11]]) for side in (0, 1)]
    encoded[0][10] = vectors["w1"]  # a single word has its own vector
    first, second = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in encoded)
    found = w2v.word_pairs(vectors, tmp_path / "sts.tsv")
    expected = stats.spearmanr((first * second).sum(axis=1), [pair[2] for pair in pairs[:11]]).statistic
    assert found.spearman == pytest.approx(expected)
    assert (found.found, found.known, found.pairs) == (11, 0, 12)
    assert found.unknown == ["x y"]


def test_unknown_pairs_can_count_as_unrelated(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    vectors = w2v.KeyedVectors([f"w{row}" for row in range(30)], random.normal(size=(30, 5)))
    rows = random.integers(0, 40, (50, 2)).tolist()
    (tmp_path / "p.txt").write_text("".join(f"w{one} w{two} {score}\n" for score, (one, two) in enumerate(rows)))
    found = {
        one.measure: one.scores[0] for one in w2v.evaluate(vectors, pairs=tmp_path / "p.txt") if one.name == "p.txt"
    }
    is_known = [max(row) < 30 for row in rows]
    cosines = [vectors.similarity(f"w{one}", f"w{two}") if max(one, two) < 30 else 0 for one, two in rows]
    score = found["spearman, unknown pairs as 0"]
    assert score.value == pytest.approx(stats.spearmanr(cosines, range(50)).statistic)
    assert (found["spearman"].items, score.items, score.total) == (sum(is_known), 50, 50)
