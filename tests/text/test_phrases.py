"""Finding and joining phrases, compared with a plain implementation, gensim and the formula of word2phrase."""

import contextlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import w2v
from tests.helpers import QUICK, assert_same, run, run_json
from w2v._errors import SettingsError, W2VError
from w2v._text import _phrases, phrases
from w2v._text.corpus import Corpus
from w2v._text.idstore import ReadingOptions, read_corpus
from w2v._text.phrases import ENGLISH_CONNECTOR_WORDS, PhraseOptions, Phrases

Sentences = Sequence[Sequence[str]]
RANDOM = np.random.default_rng(3)
WORDS = ["times", "of", "the", "a", "state", "_", "__", "a_b", "b", "é", "大", "new", "york", "city", "new_york"]
WORDS += [f"w{number}" for number in range(200)]


def sentences() -> list[list[str]]:
    """Return random sentences with some phrases and with words that contain the delimiter."""
    random = [[WORDS[k] for k in (RANDOM.pareto(0.6, 12) * 3).astype(int) % len(WORDS)] for _ in range(2000)]
    ends = [["new", "york"], ["city", "of", "the", "dead"], ["hong", "kong"], ["x"], *[[]] * 30]
    return [[*words, *ends[k % len(ends)]] for k, words in enumerate(random)]


# -- plain implementation -------------------------------------------------------------------


def pairs(sentence: Iterable[str], connectors: frozenset[str]) -> Iterator[list[str]]:
    """Yield each pair of neighbouring words, with the connectors between them."""
    start: list[str] = []
    for word in sentence:
        if word not in connectors:
            if start:
                yield [*start, word]
            start = [word]
        elif start:
            start.append(word)


def score(scoring: str, first: int, last: int, both: int, types: int, min_count: int, tokens: int) -> float:
    if scoring == "npmi":
        share = both / tokens
        return math.log(share / (first / tokens * (last / tokens))) / -math.log(share) if share < 1 else -math.inf
    return (both - min_count) / (first * last) * (types if scoring == "default" else tokens)


def reference(text: Sentences, options: PhraseOptions) -> dict[str, tuple[int, float]]:
    """Find the phrases of one pass with their counts and scores. Equal joined texts are counted together."""
    counts = Counter(word for sentence in text for word in sentence if word not in options.connectors)
    found = [pair for sentence in text for pair in pairs(sentence, options.connectors)]
    counts.update(options.delimiter.join(pair) for pair in found)
    tokens, chosen = sum(map(len, text)), {}
    for pair in found:
        first, last, both = counts[pair[0]], counts[pair[-1]], counts[options.delimiter.join(pair)]
        value = score(options.scoring, first, last, both, len(counts), options.min_count, tokens)
        if both >= options.min_count and value > options.resolved_threshold:
            chosen[" ".join(pair)] = both, value
    return chosen


def join(sentence: Sequence[str], phrases: Iterable[str], options: PhraseOptions) -> list[str]:
    tokens: list[str] = []
    rest = list(sentence)
    while rest:
        pair = next(pairs(rest, options.connectors), rest)
        starts = rest[0] not in options.connectors and rest[: len(pair)] == pair and " ".join(pair) in phrases
        size = len(pair) if starts and len(pair) > 1 else 1
        tokens.append(options.delimiter.join(rest[:size]))
        rest = rest[size:]
    return tokens


def write(found: Phrases, text: Any, path: Path, **options: Any) -> list[list[str]]:
    found.write(text, path, force=True, **options)
    return [line.split(" ") for line in path.read_text("utf-8").split("\n")[:-1]]


def assert_found(found: Phrases, expected: dict[str, tuple[int, float]]) -> None:
    (scores_of_pass,) = found.passes
    assert scores_of_pass.keys() == expected.keys()
    for phrase, phrase_score in scores_of_pass.items():
        assert phrase_score.count == expected[phrase][0]
        assert phrase_score.score == pytest.approx(expected[phrase][1], rel=1e-13)


TOKENS = st.text("ab_", min_size=1, max_size=3) | st.sampled_from(["of", "the", "大"])
TEXTS = st.lists(st.lists(TOKENS, min_size=1, max_size=12), min_size=1, max_size=30)


OPTIONS = st.builds(
    lambda scored, **others: PhraseOptions(scoring=scored[0], threshold=scored[1], **others),
    st.sampled_from([("default", 0.2), ("npmi", -0.3), ("word2phrase", 0.2)]),
    min_count=st.integers(1, 3),
    delimiter=st.sampled_from(["_", "__", "ab"]),
    connectors=st.sampled_from([frozenset[str](), frozenset({"of", "the"}), frozenset({"a", "_"})]),
)


@example([["x"] * 1000], PhraseOptions(scoring="npmi", threshold=0.0005, min_count=1), 1, 4, 20)
@example([["x"] * 1000], PhraseOptions(threshold=0.0005, min_count=1), 1, 4, 20)
@given(TEXTS, OPTIONS, st.integers(1, 3), st.integers(1, 4), st.integers(1, 20))
def test_phrases_match_a_plain_implementation(
    tmp_path_factory: pytest.TempPathFactory,
    text: Sentences,
    options: PhraseOptions,
    workers: int,
    pairs_at_once: int,
    piece_ids: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(phrases, "PAIRS_AT_ONCE", pairs_at_once)
        patch.setattr(phrases, "PIECE_IDS", piece_ids)
        found = Phrases.find(text, options=options, workers=workers)
        assert_found(found, reference(text, options))
        lines = write(found, text, tmp_path_factory.getbasetemp() / "joined.txt", workers=workers)
    assert lines == [join(sentence, found.passes[0], options) for sentence in text]


def test_a_part_that_does_not_fit_its_table_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    text = sentences()
    options = PhraseOptions(min_count=1, threshold=0.01, connectors=frozenset({"of", "the", "times"}))
    expected = Phrases.find(text, options=options)
    assert_found(expected, reference(text, options))
    splits = []
    frequent_pairs = phrases._frequent_pairs

    def record_splits(counter: _phrases.PairCounter, *more: Any) -> Any:
        splits.extend(counter.remaining_parts)
        return frequent_pairs(counter, *more)

    monkeypatch.setattr(phrases, "_frequent_pairs", record_splits)
    monkeypatch.setattr(phrases, "PAIRS_AT_ONCE", 1)
    for workers in (1, 2, 3):
        splits.clear()
        assert Phrases.find(text, options=options, workers=workers) == expected
        assert len(splits) > 4


# -- gensim ---------------------------------------------------------------------------------


@pytest.mark.parametrize("connectors", [frozenset[str](), ENGLISH_CONNECTOR_WORDS])
@pytest.mark.parametrize(("scoring", "threshold"), [("default", 0.05), ("npmi", -0.1)])
def test_phrases_match_gensim(tmp_path: Path, connectors: frozenset[str], scoring: Any, threshold: float) -> None:
    gensim = pytest.importorskip("gensim.models.phrases")
    text = sentences()
    common: dict[str, Any] = {"min_count": 2, "threshold": threshold, "scoring": scoring}
    found = Phrases.find(text, connectors=connectors, passes=2, workers=2, **common)
    assert all(len(scores_of_pass) > 50 for scores_of_pass in found.passes)
    assert len(found) == sum(map(len, found.passes))
    lines: Any = text
    for number, scores_of_pass in enumerate(found.passes, 1):
        theirs = gensim.Phrases(lines, connector_words=connectors, **common)
        scored = {}
        for sentence in lines:
            for first, *between, last in pairs(sentence, connectors):
                value = theirs.score_candidate(first, last, between)[1]
                if value is not None:
                    scored[" ".join([first, *between, last])] = value
        assert {phrase: each.score for phrase, each in scores_of_pass.items()} == pytest.approx(scored, rel=1e-13)
        lines = [theirs[sentence] for sentence in lines]
        first_passes = Phrases(found.options, found.passes[:number])
        assert write(first_passes, text, tmp_path / "joined.txt") == lines


# -- limits of phrases ----------------------------------------------------------------------


def test_phrases_stay_within_lines_and_sentences(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("x a\nb y\n" * 50)
    (tmp_path / "file1.txt").write_text("c " * 3 + "end")
    (tmp_path / "file2.txt").write_text("start " + "d " * 3)
    for source in (tmp_path / "lines.txt", [["x", "a"], ["b", "y"]] * 50):
        found = Phrases.find(source, min_count=1, threshold=0.001)
        assert set(found.passes[0]) == {"x a", "b y"}
        assert write(found, source, tmp_path / "joined.txt") == [["x_a"], ["b_y"]] * 50
    files = [tmp_path / "file1.txt", tmp_path / "file2.txt"]
    assert "end start" not in Phrases.find(files, min_count=1, threshold=1e-9, scoring="word2phrase").passes[0]


def test_phrases_do_not_span_pruned_words(tmp_path: Path) -> None:
    text = [["a", "rare", "b"], ["c", "d"]] * 3 + [["a", "x1", "b"], ["b", "x2"], ["c", "d"], ["c", "d"]]
    with read_corpus(Corpus(text), ReadingOptions(max_types=4)) as store:
        assert store.pruned
        found = Phrases.find(store, min_count=1, threshold=0.01)
        assert "a b" not in found.passes[0]
        assert "c d" in found.passes[0]
        lines = write(found, store, tmp_path / "joined.txt")
    assert ["a", "b"] in lines
    assert ["c_d"] in lines


def test_too_many_sequences_of_connectors_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"x " + b"and " * (1 << 22) + b"y\n")
    with pytest.raises(W2VError, match="give fewer connectors"):
        Phrases.find(tmp_path / "text", connectors={"and"})


def test_the_rarest_pairs_are_dropped_beyond_max_pairs(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = sentences()
    everything = Phrases.find(text, min_count=2, threshold=1e-6)
    counts = sorted((each.count for each in everything.passes[0].values()), reverse=True)
    size = 40
    monkeypatch.setattr(phrases, "PAIRS_AT_ONCE", 1)  # pairs are then dropped before all parts are counted
    for workers in (1, 2, 3):
        caplog.clear()
        kept = Phrases.find(text, min_count=2, threshold=1e-6, max_pairs=size, workers=workers)
        assert "because of max_pairs" in caplog.text
        assert 0 < len(kept) <= size
        assert kept.passes[0] == {
            phrase: each for phrase, each in everything.passes[0].items() if each.count > counts[size]
        }


def test_max_pairs_may_be_the_number_of_pairs(caplog: pytest.LogCaptureFixture) -> None:
    text = sentences()
    options: dict[str, Any] = {"min_count": 2, "scoring": "npmi", "threshold": -1}  # every frequent pair is a phrase
    everything = Phrases.find(text, **options)
    assert Phrases.find(text, **options, max_pairs=len(everything)).passes == everything.passes
    assert "because of max_pairs" not in caplog.text
    assert 0 < len(Phrases.find(text, **options, max_pairs=len(everything) - 1)) < len(everything)
    assert "because of max_pairs" in caplog.text


def test_joining_gives_the_same_ids_as_reading_the_joined_text(tmp_path: Path) -> None:
    text = sentences()
    found = Phrases.find(text, min_count=2, threshold=0.5, passes=2)
    with read_corpus(Corpus(text)) as store, found.join(store, workers=2) as ids:
        found.write(store, tmp_path / "joined.txt", force=True)
        with read_corpus(Corpus(tmp_path / "joined.txt")) as read:
            assert ids.checksum() == read.checksum()
            np.testing.assert_array_equal(ids.counts, read.counts)
            assert (ids.tokens, ids.sentences) == (read.tokens, read.sentences)
            assert ids.tokens < store.tokens


# -- options and files ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"threshold": 0}, "more than 0"),
        ({"threshold": 2, "scoring": "npmi"}, "from -1 to 1"),
        ({"scoring": "pmi"}, "did you mean npmi"),
        ({"min_count": 0}, "min_count 0"),
        ({"passes": 11}, "from 1 to 10"),
        ({"delimiter": "a b"}, "white space"),
        ({"delimiter": "\udc80"}, "white space"),
        ({"connectors": "of"}, "set of words"),
        ({"connectors": {"of the"}}, "white space"),
        ({"connector_words": {"of"}}, "write connectors"),
        ({"options": PhraseOptions(), "min_count": 3}, "in addition to options"),
    ],
)
def test_impossible_options_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Phrases.find([["a", "b"]], **given)


def test_phrases_round_trip_through_a_file(tmp_path: Path) -> None:
    text = sentences()
    found = Phrases.find(text, min_count=2, threshold=0.5, passes=2, connectors={"of", "the"})
    found.save(tmp_path / "phrases.tsv")
    assert Phrases.load(tmp_path / "phrases.tsv") == found
    with pytest.raises(W2VError, match="exists"):
        found.save(tmp_path / "phrases.tsv")
    header, *rows = (tmp_path / "phrases.tsv").read_text("utf-8").splitlines()
    assert json.loads(header)["connectors"] == ["of", "the"]
    scores = [float(row.split("\t")[2]) for row in rows if row.endswith("\t1")]
    assert scores == sorted(scores, reverse=True)


HEADER = json.dumps(
    {"format": phrases.FORMAT, "scoring": "default", "threshold": 1.0, "min_count": 1, "passes": 1, "delimiter": "_",
     "max_pairs": 9, "connectors": ["of"]}
)  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: not a file of"),
        ("new york\t1\t2\t1", "line 1: not a file of"),
        ("[" * 100_000, "line 1: not a file of"),
        (HEADER.replace("format 1", "format 2"), "line 1: not a file of"),
        (HEADER.replace("1.0", "-1"), "line 1: not a file of .*more than 0"),
        (HEADER.replace('"_"', '" "'), "line 1: not a file of .*white space"),
        (HEADER + "\nnew york\t1\t2", "line 2: b'new york.*is not a phrase, a count"),
        (HEADER + "\nnew york\tmany\t2\t1", "line 2: .*is not a phrase, a count"),
        (HEADER + "\nnew york\t0\t2\t1", "line 2: .*is not a phrase, a count"),
        (HEADER + "\nnew york\t99999999999999999999\t2\t1", "line 2: .*is not a phrase, a count"),
        (HEADER + "\nnew york\t1\tnan\t1", "line 2: the score nan"),
        (HEADER + "\nnew york\t1\t2\t2", "line 2: pass 2 of 1"),
        (HEADER + "\nnew\t1\t2\t1", "line 2: 'new' is not two or more words"),
        (HEADER + "\nnew  york\t1\t2\t1", "line 2: 'new  york' is not two or more words"),
        (HEADER + "\nnew \x0b\t1\t2\t1", "line 2: .*is not two or more words"),
        (HEADER + "\nnew york city\t1\t2\t1", "line 2: .*words inside must be connectors"),
        (HEADER + "\nof york\t1\t2\t1", "line 2: .*words inside must be connectors"),
        (HEADER + "\na b\t1\t2\t1\n\na b\t1\t3\t1", "line 4: the phrase 'a b' appears twice"),
        (HEADER + "\n\udcff b\t1\t2\t1", "line 2: .*is not a phrase, a count"),
    ],
)
def test_malformed_files_are_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "phrases.tsv").write_text(content, "utf-8", errors="surrogateescape")
    with pytest.raises(W2VError, match=message):
        Phrases.load(tmp_path / "phrases.tsv")


@given(st.text("ab_ \t\n1.{}", max_size=40))
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.tsv"
    path.write_text(f"{HEADER}\n{content}", "utf-8")
    with contextlib.suppress(W2VError):  # any other error fails the test
        Phrases.load(path).write([["a", "b", "of", "1"]], path, force=True)


# -- commands -------------------------------------------------------------------------------


def corpus(folder: Path) -> Path:
    path = folder / "corpus.txt"
    path.write_text("\n".join(map(" ".join, sentences())), "utf-8")
    return path


def test_the_command_writes_joined_text_and_phrases(tmp_path: Path) -> None:
    path, out, table = corpus(tmp_path), tmp_path / "joined.txt", tmp_path / "phrases.tsv"
    (tmp_path / "words").write_text("of\nthe a\n")
    given = ["--connectors", tmp_path / "words", "--threshold", "1", "--passes", "2"]
    result = run_json("phrases", path, "-o", out, *given, "--save-phrases", table, "--workers", "2")
    found = Phrases.load(table)
    assert found == Phrases.find(path, connectors={"of", "the", "a"}, threshold=1, passes=2)
    assert result["phrases"] == len(found) > 2
    assert "hong_kong" in result["best"]
    assert result["tokens"] == len(out.read_text("utf-8").split()) < result["corpus_tokens"]
    again = run_json("phrases", "-", "-o", tmp_path / "again.txt", "--read-phrases", table, stdin=path.read_bytes())
    assert (tmp_path / "again.txt").read_bytes() == out.read_bytes()
    assert again["tokens"] == result["tokens"]
    assert "city_of_the_dead" in run("phrases", path, "-o", out, "--force", "--connectors", "english").stdout
    assert run("phrases", path, "-o", out, "--force", "--quiet").stdout == ""


def test_wrong_options_of_the_command_are_refused(tmp_path: Path) -> None:
    path = corpus(tmp_path)
    assert "nothing to write: name a file with -o or --save-phrases" in run("phrases", path, code=2).stderr
    reading = run("phrases", path, "--read-phrases", path, code=2).stderr
    assert "nothing to write: name a file with -o;" in reading
    given = ["phrases", path, "-o", tmp_path / "out"]
    assert (
        "--min-count has no effect with --read" in run(*given, "--read-phrases", path, "--min-count", 3, code=2).stderr
    )
    assert "more than 0" in run(*given, "--threshold", "-1", code=2).stderr
    assert "not a file of w2v phrases" in run(*given, "--read-phrases", path, code=1).stderr
    assert "cannot read" in run(*given, "--connectors", tmp_path / "none", code=1).stderr
    assert not (tmp_path / "out").exists()


def test_training_with_phrases_equals_training_on_the_joined_text(tmp_path: Path) -> None:
    path, out, table = corpus(tmp_path), tmp_path / "joined.txt", tmp_path / "phrases.tsv"
    run("phrases", path, "-o", out, "--save-phrases", table)
    run("train", out, "-o", tmp_path / "joined.safetensors", *QUICK)
    run("train", path, "-o", tmp_path / "found.safetensors", *QUICK, "--phrases")
    config = tmp_path / "run.toml"
    run("train", path, "-o", tmp_path / "read.safetensors", *QUICK, "--phrases", table, "--save-config", config)
    expected = w2v.Model.load(tmp_path / "joined.safetensors")
    assert "phrases" not in expected.metrics
    for name in ("found", "read"):
        model = w2v.Model.load(tmp_path / f"{name}.safetensors")
        assert_same(model, expected)
        assert model.metrics["phrases"] == {"found": len(Phrases.load(table)), "delimiter": "_"}
    run("train", "--config", config, "-o", tmp_path / "config.safetensors")
    assert_same(w2v.Model.load(tmp_path / "config.safetensors"), expected)


def test_a_run_with_phrases_can_be_resumed(tmp_path: Path) -> None:
    path, table, states = corpus(tmp_path), tmp_path / "phrases.tsv", tmp_path / "states"
    Phrases.find(path).save(table)
    for option in (True, table):
        model = w2v.train(path, phrases=option, checkpoint=states, epochs=1, vector_size=8, workers=1)
        assert_same(w2v.resume(states, path, phrases=option), model)
        for state in states.iterdir():
            state.unlink()
    w2v.train(path, phrases=table, checkpoint=states, epochs=1, vector_size=8, workers=1)
    Phrases.find(path, threshold=1).save(table, force=True)
    with pytest.raises(W2VError, match="belongs to another run, with different text"):
        w2v.resume(states, path, phrases=table)


def test_queries_recognise_phrases(tmp_path: Path) -> None:
    path = corpus(tmp_path)
    for options, formula in ((["--phrases"], "cos(x, hong_kong)"), ([], "cos(x, mean of hong, kong), of unit vectors")):
        model = tmp_path / f"{len(options)}.safetensors"
        run("train", path, "-o", model, *QUICK, "--min-count", "1", *options)
        assert run_json("query", model, "hong", "kong")["formula"] == formula
        assert run_json("query", model, "hong kong")["formula"] == formula
    assert run_json("query", tmp_path / "1.safetensors", "hong kong - w1 w2")["positive"] == ["hong_kong", "w2"]


def test_pairs_must_occur_five_times_by_default() -> None:
    text = [["new", "york"]] * 5 + [["hong", "kong"]] * 4 + [["x"]] * 50
    assert set(Phrases.find(text, scoring="npmi").passes[0]) == {"new york"}


@pytest.mark.parametrize("workers", [1, 3])
def test_progress_rises_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    monkeypatch.setattr(phrases, "PIECE_IDS", 1000)
    monkeypatch.setattr(phrases, "PAIRS_AT_ONCE", 2000)
    reports: list[w2v.Progress] = []
    found = Phrases.find(sentences(), min_count=2, threshold=1, workers=workers, progress=reports.append)
    found.write(sentences(), tmp_path / "joined.txt", workers=workers, progress=reports.append)
    for phase in ("count", "join"):
        done = [report.done for report in reports if report.phase == phase]
        totals = [report.total or 0 for report in reports if report.phase == phase]
        assert len(set(done)) > 20
        assert done == sorted(done)
        assert all(0 < part <= total for part, total in zip(done, totals, strict=True))
        assert done[-1] == totals[-1]
        assert totals == sorted(totals)  # a part that does not fit its table is counted again in smaller parts
