"""Scores, intervals and tests, compared with SciPy, slow resampling and models with known scores."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import w2v
from tests.helpers import TOPICS, run, run_json, topic_sentences
from w2v._evaluation import evaluate as evaluating
from w2v._evaluation import scores as scoring
from w2v._evaluation.evaluate import evaluate
from w2v._evaluation.scores import RESAMPLES, ItemScores, Score, mcnemar, spearman
from w2v._formats.header import ModelHeader
from w2v._progress import Progress
from w2v._text.normalise import TextOptions
from w2v._vectors.keyed import KeyedVectors
from w2v._vectors.neighbours import nearest_rows


def item_scores(values: np.ndarray, strata: np.ndarray) -> ItemScores:
    return ItemScores(np.arange(len(values)), np.asarray(values, float), len(values), strata=strata)


def rated(values: np.ndarray, ratings: np.ndarray) -> ItemScores:
    return ItemScores(np.arange(len(values)), np.asarray(values, float), len(values), ratings=ratings)


def noisy_vectors(seed: int, noise: float) -> KeyedVectors:
    """Return vectors of a0 b0 a1 b1 ...: the lower the number, the nearer its two words are, apart from noise."""
    random, size = np.random.default_rng(seed), 60
    first = random.normal(size=(size, 40))
    second = first + random.normal(size=(size, 40)) * np.linspace(0, 2, size)[:, None]
    vectors = np.stack([first, second], axis=1).reshape(2 * size, 40) + noise * random.normal(size=(2 * size, 40))
    counts = np.arange(2 * size, 0, -1)
    return KeyedVectors([f"{letter}{row}" for row in range(size) for letter in "ab"], vectors, counts)


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.txt"
    path.write_text("".join(f"a{row} b{row} {60 - row}\n" for row in range(60)))
    return path


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3), st.integers(0, 5)), min_size=2, max_size=30))
def test_spearman_equals_scipy(items: list[tuple[int, int, int]]) -> None:
    weights, first, second = np.array(items).T
    found = spearman(np.stack([weights, np.ones_like(weights)]), first, second)
    for row, times in zip(found, (weights, np.ones_like(weights)), strict=True):
        one, two = np.repeat(first, times), np.repeat(second, times)
        if len(one) < 2 or np.ptp(one) == 0 or np.ptp(two) == 0:
            assert np.isnan(row)
        else:
            assert row == pytest.approx(stats.spearmanr(one, two).statistic, abs=1e-12)


def test_resampled_means_equal_drawing_items_one_by_one() -> None:
    random = np.random.default_rng(3)
    strata = np.repeat([0, 1, 2], [50, 200, 7])
    values = random.integers(0, 11, len(strata)) / 10 + strata
    found = scoring.means([item_scores(values, strata)], seed=1)[:, 1:]
    assert found.shape == (1, RESAMPLES)
    slow = [
        np.concatenate([random.choice(values[strata == one], (strata == one).sum()) for one in range(3)]).mean()
        for _ in range(RESAMPLES)
    ]
    assert found.mean() == pytest.approx(values.mean(), abs=0.01)
    assert found.std() == pytest.approx(np.std(slow), rel=0.1)
    assert stats.ks_2samp(found[0], slow).pvalue > 0.01
    constant = scoring.means([item_scores(strata, strata)], seed=1)  # values do not vary within a stratum
    np.testing.assert_allclose(constant, strata.mean())


def test_models_share_their_resamples() -> None:
    values = np.random.default_rng(3).random(50)
    one, two = item_scores(values, np.zeros(50)), item_scores(values + 1, np.zeros(50))
    first, second = scoring.means([one, two], seed=1)
    np.testing.assert_allclose(second - first, 1)
    scores = np.arange(50.0)
    first, second = scoring.correlations([rated(values, scores), rated(-values, scores)], seed=1)
    np.testing.assert_allclose(first, -second)


def test_spearman_intervals_equal_scipy_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(4)
    first = random.normal(size=80)
    second = np.round(first + random.normal(size=80))
    expected = stats.bootstrap(
        (first, second), lambda one, two: stats.spearmanr(one, two).statistic, paired=True, vectorized=False,
        n_resamples=500, method="percentile", random_state=random,
    ).confidence_interval  # fmt: skip
    found = scoring._interval(scoring.correlations([rated(first, second)], seed=1)[0])
    value = stats.spearmanr(first, second).statistic
    assert found[0] == pytest.approx(value)
    assert found[1:] == pytest.approx((expected.low, expected.high), abs=0.03)
    monkeypatch.setattr(scoring, "RESAMPLED_AT_ONCE", 1000)
    assert scoring.correlations([rated(first, second)], seed=1).shape == (1, 1 + RESAMPLES)


def test_mcnemar_is_the_exact_binomial_test() -> None:
    first = np.array([True] * 20 + [False] * 20)
    other = first.copy()
    assert mcnemar(first, other) == 1
    other[:1], other[20:29] = False, True
    assert mcnemar(first, other) == mcnemar(other, first) == pytest.approx(2 * (1 + 10) / 2**10)


def test_scores_equal_the_results_of_other_functions(pairs: Path, tmp_path: Path) -> None:
    questions = tmp_path / "questions.txt"
    questions.write_text(": one\n" + "".join(f"a{row} b{row} a{row + 1} b{row + 1}\n" for row in range(50)))
    vectors = noisy_vectors(1, 1.0)  # in some pairs, only one word is among the nearest of the other
    before = vectors.vectors.copy()
    vectors.vectors.flags.writeable = False
    found = {(one.name, one.measure): one.scores[0] for one in evaluate(vectors, questions=questions, pairs=[pairs])}
    assert len(found) == 7  # four of any vectors, one of the questions and two of the pairs
    np.testing.assert_array_equal(vectors.vectors, before)
    accuracy = found["questions.txt", "accuracy"]
    expected = w2v.analogies(vectors, questions)
    assert (accuracy.value, accuracy.items, accuracy.total) == (expected.accuracy, 50, 50)
    assert 0 < accuracy.low < accuracy.value < accuracy.high < 1  # type: ignore[operator]
    correlation = found["pairs.txt", "spearman"]
    assert correlation.value == pytest.approx(w2v.word_pairs(vectors, pairs).spearman)
    assert found["bundled pairs", "spearman"] == Score(None, None, None, 0, 210)  # these vectors know none of its words
    nearest = {word: {near for near, _ in vectors.most_similar(word)} for word in vectors}
    third = range(20)  # with the highest scores
    mutual = [f"b{row}" in nearest[f"a{row}"] and f"a{row}" in nearest[f"b{row}"] for row in third]
    assert any(mutual)
    related = found["pairs.txt", "related neighbours"]
    assert (related.value, related.items, related.total) == (pytest.approx(np.mean(mutual)), 20, 20)
    rare = set(vectors.index_to_key[-19:])  # with counts of 19 to 1: words with fewer than 20 are rare
    shares = [len(nearest[word] & rare) / 10 for word in vectors]
    neighbours = found["frequent words", "rare neighbours"]
    assert (neighbours.value, neighbours.items) == (pytest.approx(np.mean(shares)), 120)


def test_worse_models_differ_significantly(pairs: Path) -> None:
    good, bad = noisy_vectors(1, 0.0), noisy_vectors(1, 3.0)
    found = {(one.name, one.measure): one.scores for one in evaluate(good, good, bad, pairs=[pairs])}
    for measure in ("spearman", "related neighbours"):
        first, same, worse = found["pairs.txt", measure]
        assert (first.difference, first.p) == (None, None)
        assert (same.difference, same.p) == (0, 1)
        assert worse.difference == pytest.approx(worse.value - first.value)  # type: ignore[operator]
        assert worse.difference < -0.2  # type: ignore[operator]
        assert worse.p < 0.01  # type: ignore[operator]
    first = evaluate(good, bad, pairs=[pairs])
    assert first == evaluate(good, bad, pairs=[pairs]) != evaluate(good, bad, pairs=[pairs], seed=2)


def test_p_values_of_equally_good_models_are_below_a_tenth_in_a_tenth_of_the_cases() -> None:
    random = np.random.default_rng(5)
    scores = np.arange(80.0)
    low = 0
    for _ in range(60):
        one, two = (rated(scores + 60 * random.normal(size=80), scores) for _ in range(2))
        _, p = scoring._difference(one, two, scoring.correlations, seed=1)
        low += p is not None and p < 0.1
    assert 1 <= low <= 14  # 6 expected, with a standard deviation of 2.3


def test_differences_use_items_of_both_models(pairs: Path) -> None:
    whole = noisy_vectors(1, 0.0)
    part = KeyedVectors(whole.index_to_key[20:], whole.vectors[20:])
    frequent = KeyedVectors(part.index_to_key, part.vectors, [20] * len(part))
    scores = {one.name + " " + one.measure: one.scores for one in evaluate(whole, part, frequent, pairs=[pairs])}
    first, second, _ = scores["pairs.txt spearman"]
    assert (first.items, second.items, second.total) == (60, 50, 60)
    assert second.difference == 0
    assert first.value != second.value
    nothing = Score(None, None, None, 0, 100)
    assert scores["frequent words rare neighbours"][1:] == [nothing, nothing]  # without counts, without rare words


# -- the command ----------------------------------------------------------------------------


def test_command_compares_all_models_with_the_first(model: Path, pairs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.bin"
    run("convert", model, other)
    result = run_json("evaluate", model, other, "--pairs", pairs)
    assert result["models"] == [str(model), str(other)]
    first, second = result["results"][0]["scores"]
    assert first["value"] == second["value"] == run_json("analogy", model)["accuracy"]
    assert (second["difference"], second["p"]) == (0, 1)
    shown = run("evaluate", model, other, "--pairs", pairs).stdout
    score = f"{first['value']:.3f} [{first['low']:.3f}, "
    for expected in ("bundled questions", "pairs.txt", "rare neighbours", score):
        assert expected in shown
    assert "difference to the first" not in run("evaluate", model).stdout
    assert "missing" in run("evaluate", model, "--questions", tmp_path / "missing", code=1).stderr
    assert "MODEL" in run("evaluate", code=2).stderr
    assert "restrict_vocab 0: it must be" in run("evaluate", model, "--restrict-vocab", 0, code=2).stderr
    restricted = run_json("evaluate", model, "--restrict-vocab", 100)["results"][0]["scores"][0]
    assert restricted["items"] < first["items"]
    questions = tmp_path / "questions.txt"
    questions.write_text(": some\n" + 20 * "a b c d\n")
    error = run("evaluate", model, questions, code=1).stderr
    advice = "questions, not a model: give them to w2v analogy MODEL QUESTIONS, or w2v evaluate MODEL --questions"
    assert advice in error


def test_malformed_lines_are_reported_once(pairs: Path, caplog: pytest.LogCaptureFixture) -> None:
    pairs.write_text(pairs.read_text() + "a1 b1\na2\n")
    evaluate(noisy_vectors(1, 0.0), noisy_vectors(2, 0.0), pairs=pairs)
    assert caplog.messages == [f"{pairs}: skipped 2 malformed lines: the first is line 61"]


def test_an_evaluation_of_no_models_is_refused() -> None:
    for score in (
        w2v.evaluate,
        partial(w2v.next_items, sessions=[["a", "b"]]),
        partial(w2v.link_prediction, edges=[("a", "b")]),
        partial(w2v.probe, texts=[*"abcdef"], labels=[*"xyxyxy"]),
    ):
        with pytest.raises(w2v.SettingsError, match="no models to score: give at least one"):
            score()


def test_models_without_the_words_of_a_set_are_named(model: Path, pairs: Path, tmp_path: Path) -> None:
    noisy_vectors(1, 0.0).save(tmp_path / "own.bin")
    shown = run("evaluate", model, tmp_path / "own.bin", "--pairs", pairs).stdout.splitlines()
    advice = (
        "w2v evaluate MODEL --questions FILE --pairs FILE uses your own test sets, and w2v evaluate MODEL --held-out"
    )
    first, second = (line for line in shown if advice in line)
    assert first.startswith(f"every item of pairs.txt has a word that {model} lacks: ")
    assert second.startswith(
        f"every item of bundled questions and bundled pairs has a word that {tmp_path / 'own.bin'} lacks: "
    )
    (line,) = (line for line in shown if "rare neighbours cannot be counted" in line)
    assert line.startswith(f"{tmp_path / 'own.bin'} has no counts of its words, ")
    assert "lacks" not in run("evaluate", model).stdout


# -- held-out text --------------------------------------------------------------------------


@pytest.fixture
def topics(tmp_path: Path) -> Path:
    """Write a text of 1,500 lines: each has seven words of a single topic, and a word that no model has."""
    path = tmp_path / "later.txt"
    path.write_text("".join(" ".join([*words, "unheard"]) + "\n" for words in topic_sentences(1500)))
    return path


def topic_vectors(noise: float = 0, words: int = 10) -> KeyedVectors:
    """Return vectors of the words of `topics`: the vector of their topic plus noise."""
    names = [f"t{topic}w{word}" for topic in range(TOPICS) for word in range(words)]
    vectors = np.eye(TOPICS)[[int(name[1]) for name in names]]
    return KeyedVectors(names, vectors + noise * np.random.default_rng(2).normal(size=vectors.shape))


def test_gaps_score_is_higher_for_better_vectors(topics: Path) -> None:
    """A word of another topic never wins; a word of the same topic wins in half of the cases."""
    *others, found = evaluate(topic_vectors(), topic_vectors(noise=2), held_out=topics)
    assert others == evaluate(topic_vectors(), topic_vectors(noise=2))
    assert (found.name, found.measure) == ("later.txt", "gaps")
    good, bad = found.scores
    assert good.value == pytest.approx(1 - 1 / TOPICS / 2, abs=0.01)
    assert 0.5 < bad.value < 0.8  # type: ignore[operator]
    assert bad.difference == pytest.approx(bad.value - good.value)  # type: ignore[operator]
    assert bad.p < 0.01  # type: ignore[operator]
    assert (good.items, good.total) == (bad.items, 1500 * 8)
    assert 0 < good.items < 1500 * 7
    texts = [line.split() for line in topics.read_text().splitlines()]
    one, other = (evaluate(topic_vectors(), held_out=each)[-1].scores for each in (texts, topics))
    assert one == other


def test_gaps_use_words_of_all_models(topics: Path) -> None:
    whole, part = topic_vectors(noise=1), topic_vectors(noise=1, words=5)
    first, second = evaluate(whole, part, held_out=topics)[-1].scores
    assert first.items == second.items < evaluate(whole, held_out=topics)[-1].scores[0].items
    renamed = KeyedVectors(["other"], np.ones((1, 4)))
    with pytest.raises(w2v.W2VError, match=r"later\.txt: none of its words is in all models"):
        evaluate(whole, renamed, held_out=topics)


def test_held_out_text_is_split_as_in_training(topics: Path, caplog: pytest.LogCaptureFixture) -> None:
    topics.write_text(topics.read_text().upper())
    plain = topic_vectors()
    lower = KeyedVectors(plain.index_to_key, plain.vectors, header=ModelHeader(text=TextOptions(lower=True)))
    score = evaluate(lower, held_out=topics)[-1].scores[0]
    assert evaluate(plain, held_out=topics, lower=True)[-1].scores[0] == score
    assert not caplog.records
    evaluate(lower, plain, held_out=topics)
    assert "later.txt is split as for the first" in caplog.text
    with pytest.raises(w2v.W2VError, match=r"later\.txt: none of its words is in the model"):
        evaluate(plain, held_out=topics)
    with pytest.raises(w2v.SettingsError, match="lower has no effect without held_out"):
        evaluate(plain, lower=True)


def test_command_scores_models_on_a_held_out_text(topics: Path, tmp_path: Path) -> None:
    topic_vectors().save(tmp_path / "m.bin")
    expected = evaluate(topic_vectors(), held_out=topics)[-1].scores[0]
    result = run("evaluate", tmp_path / "m.bin", "--held-out", topics)
    assert f"{expected.value:.3f} [" in result.stdout
    assert "gaps: how often the words around a gap in the text are nearer" in result.stdout
    assert "later.txt: left out 1,500 of 12,000 words that not all models have" in result.stderr
    topics.write_text(topics.read_text().upper())
    found = run_json("evaluate", tmp_path / "m.bin", "--held-out", topics, "--lower")["results"][-1]
    assert found["scores"][0]["value"] == expected.value


def test_the_p_value_of_resampled_differences_counts_both_sides() -> None:
    one = item_scores(np.array([0.1, 0.2]), np.zeros(2))
    sampled = np.array([[0] * 10, [0.3, *[1] * 8, -1]])  # the score itself, and nine resamples
    assert scoring._difference(one, one, lambda models, seed: sampled, 1) == (0.3, 2 * (1 + 1) / (9 + 1))


@pytest.mark.parametrize(
    ("scores", "related"),
    [([5, 5, 5], 3), ([1, 2, 3], 1), ([3, 2, 2, 1], 3), ([3, 3, 2, 1], 2), ([4, 3, 2, 2, 2, 2, 2], 7)],
)
def test_pairs_with_a_score_at_the_upper_third_are_related(scores: list[int], related: int, tmp_path: Path) -> None:
    """A score that equals the quantile belongs to the upper third, as do all pairs with this score."""
    path = tmp_path / "pairs.txt"
    path.write_text("".join(f"a{row} b{row} {score}\n" for row, score in enumerate(scores)))
    found = {(one.name, one.measure): one.scores[0] for one in evaluate(noisy_vectors(1, 0.1), pairs=path)}
    neighbours = found["pairs.txt", "related neighbours"]
    assert (neighbours.items, neighbours.total) == (related, related)


def test_words_that_occur_fewer_than_20_times_are_rare() -> None:
    for counts, value in (([20, 19], 0.5), ([19, 18], 1.0)):  # the only neighbour of each word is the other word
        scores = evaluate(KeyedVectors(["a", "b"], np.eye(2), counts))[-1].scores
        assert [(score.value, score.items, score.total) for score in scores] == [(value, 2, 2)]
    assert evaluate(KeyedVectors(["a"], [[1.0]], [1]))[-1].scores == [Score(None, None, None, 0, 1)]


def test_rare_neighbours_are_counted_for_the_500_most_frequent_words() -> None:
    vectors = np.random.default_rng(1).normal(size=(510, 3))
    counts = np.arange(510) + 10  # the most frequent words are the last
    found = evaluate(KeyedVectors([f"w{row}" for row in range(510)], vectors, counts))[-1].scores[0]
    nearest = nearest_rows(vectors.astype(np.float32), np.arange(10, 510), 10)
    assert (found.items, found.total, found.value) == (500, 500, pytest.approx((nearest < 10).mean()))


@pytest.mark.parametrize(("sets", "held_out", "measures"), [(0, False, 4), (1, False, 7), (2, False, 10), (1, True, 8)])
def test_evaluation_reports_each_measure(
    sets: int, held_out: bool, measures: int, pairs: Path, topics: Path, tmp_path: Path
) -> None:
    (tmp_path / "questions").write_text("a0 b0 a1 b1\n")
    reports: list[Progress] = []
    model, text = (topic_vectors(), topics) if held_out else (noisy_vectors(1, 1), None)
    files = {"questions": [tmp_path / "questions"] * sets, "pairs": [pairs] * sets}
    found = evaluate(model, **files, held_out=text, progress=reports.append)
    assert len(found) == measures
    finished = [(report.done, report.total) for report in reports if report.phase == "evaluate"]
    assert finished[-1] == (measures, measures)
    assert [done for done, _ in finished] == sorted(done for done, _ in finished)
    assert {report.phase for report in reports} == ({"evaluate", "read"} if held_out else {"evaluate"})


def test_only_the_end_of_a_long_text_is_held_out(topics: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluating, "MAX_IDS", 9 * 20)  # 20 lines of eight words and the end of the sentence
    last = topics.with_name("last.txt")
    last.write_text("".join(topics.read_text().splitlines(keepends=True)[-20:]))
    scores = [evaluate(topic_vectors(noise=1), held_out=text)[-1].scores[0] for text in (topics, last)]
    assert scores[0] == scores[1]
    assert scores[0].total == 160
    assert 0 < scores[0].items <= 140


def test_questions_and_pairs_of_either_method_are_scored(pairs: Path, tmp_path: Path) -> None:
    (tmp_path / "questions").write_text("".join(f"A{row} b{row} a{row + 7} B{row + 7}\n" for row in range(50)))
    vectors = noisy_vectors(1, 1.0)
    for method in ("add", "mul"):
        for size in (50, 100):
            found = evaluate(vectors, questions=tmp_path / "questions", restrict_vocab=size, method=method)[1]  # type: ignore[arg-type]
            expected = w2v.analogies(vectors, tmp_path / "questions", size, method)  # type: ignore[arg-type]
            assert (found.name, found.measure) == ("questions", "accuracy")
            assert (found.scores[0].value, found.scores[0].items) == (expected.accuracy, expected.answered)
    pairs.write_text(pairs.read_text().upper())
    found = evaluate(vectors, pairs=pairs)
    assert [each.scores[0].items for each in found if (each.name, each.measure) == ("pairs.txt", "spearman")] == [60]
