"""`tune`: the candidates and their order, scores, time, and how a stopped run is resumed."""

import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import QUICK, Hinge, Stop, run, run_json, stop_after, trials_in
from w2v._progress import Progress
from w2v._text.corpus import Corpus
from w2v._training import search as search_module
from w2v._training.model import Model
from w2v._training.search import TimeBudget, TimeIsUp, Trial, Tuner

TEXT = [[f"w{word}" for word in line] for line in np.random.default_rng(1).integers(400, size=(400, 10)).tolist()]
SMALL: dict[str, Any] = {"vector_size": 8, "min_count": 1, "sample": 0.0, "workers": 1, "epochs": 9}


def replace_scorer(monkeypatch: pytest.MonkeyPatch, score: Callable[[Model], float]) -> None:
    monkeypatch.setattr(search_module, "score_model", lambda *arguments: score(arguments[-1]))


def tune_and_stop(count: int, state: Path, **options: Any) -> list[dict[str, Any]]:
    """Stop a run after `count` trials, and return them."""
    with pytest.raises(Stop):
        w2v.tune(TEXT, state=state, on_trial=stop_after(count), **SMALL | options)
    return trials_in(state)


def test_bracket_continues_with_the_best_third(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(search_module, "SEEDS", (1,))
    replace_scorer(monkeypatch, lambda model: model.settings.window_size / 100)
    trials = tune_and_stop(1 + 9 + 3 + 1, tmp_path / "state.json")  # the default settings, then a bracket
    assert trials[0]["choices"] == {}
    assert Counter(trial["share"] for trial in trials) == {1 / 9: 9, 1 / 3: 3, 1: 2}
    first, second, last = trials[1:10], trials[10:13], trials[13]
    assert len({json.dumps(trial["choices"]) for trial in first}) == 9
    best = sorted((trial["score"] for trial in first), reverse=True)
    assert sorted((trial["score"] for trial in second), reverse=True) == best[:3]
    assert last["score"] == best[0] > trials[0]["score"]


def test_scores_are_averaged_over_seeds_if_there_is_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    replace_scorer(monkeypatch, lambda model: float(model.settings.seed))
    # The default settings train with nine seeds. A bracket then has nine candidates with one seed. The best three get
    # two more seeds, and the best one six more.
    trials = tune_and_stop(9 + 9 + 6 + 6, tmp_path / "state.json", time="10h", seed=7)
    assert [trial["seed"] for trial in trials[:9]] == list(range(7, 16))
    assert Counter(trial["seed"] for trial in trials[9:]) == {7: 9, 8: 3, 9: 3} | dict.fromkeys(range(10, 16), 1)
    assert {trial["share"] for trial in trials} == {1.0}


def test_best_settings_are_trained_on_the_whole_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are only eight candidates, so one bracket tries all of them."""
    monkeypatch.setattr(search_module, "SEEDS", (1,))
    monkeypatch.setattr(search_module, "CHOICES", {"window": (2, 3, 5, 8), "model": ("cbow", "skipgram")})
    trained: list[int] = []

    def score(model: Model) -> float:
        trained.append(model.metrics["tokens"])
        return model.settings.window_size + (model.settings.model == "skipgram") / 2

    replace_scorer(monkeypatch, score)
    reports: list[Progress] = []
    result = w2v.tune(TEXT, progress=reports.append, **SMALL)
    assert (reports[-1].done, reports[-1].total) == (600, 600)
    assert result.changed == {"window": 8, "model": "skipgram"}
    assert (result.model.settings.window_size, result.model.settings.model) == (8, "skipgram")
    assert (result.default_score, result.score) == (8, 8.5)
    assert result.model.metrics["tokens"] == 4000 > max(trained)  # the end of the text is held out
    assert result.model.settings.epochs == 9
    assert result.trials == 1 + 7 + 3 + 1
    html = result._repr_html_()
    assert "<td>changed</td><td>window 8, model skipgram</td>" in html
    assert "<td>default score</td><td>8</td>" in html


def test_progress_counts_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seconds include earlier trials and all steps of the work. The last report is 100%."""
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    reports: list[Progress] = []
    budget = TimeBudget(600, reports.append)
    budget.started, budget.score = 70.0, 0.5
    for step in Progress("read", 1, None, "bytes"), Progress("train", 1, 2, "words", 3, 4, epoch=5, epochs=6):
        budget(step)
        assert reports.pop() == Progress("tune", 30, 600, "seconds", None, 570, score=0.5)
    budget.started = -1000.0
    budget()
    budget.end()
    assert reports == [Progress("tune", 600, 600, "seconds", None, 0, score=0.5)] * 2


def test_given_settings_are_not_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[w2v.Settings] = []
    replace_scorer(monkeypatch, lambda model: seen.append(model.settings) or 0.0)  # type: ignore[func-returns-value]
    small = {name: value for name, value in SMALL.items() if name != "vector_size"}
    with pytest.raises(Stop):
        w2v.tune(TEXT, max_size=8, on_trial=stop_after(40), **small, model="cbow", window=2, alpha=0.01)
    assert {(each.model, each.window, each.alpha, each.sample) for each in seen} == {("cbow", 2, 0.01, 0)}
    assert {each.vector_size for each in seen} == {4, 6, 8}
    assert len({each.loss for each in seen}) > 1


def test_diverged_trials_have_no_score(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(search_module, "KEEP_PROBABILITY", 0)
    monkeypatch.setattr(search_module, "CHOICES", {"alpha": (20_000,), "min_alpha": (1, 0.999)})
    trials = tune_and_stop(11, tmp_path / "state.json", model="cbow", loss="hs", window=15, epochs=12)
    # The default settings with nine seeds, then both candidates.
    assert [trial["score"] is None for trial in trials] == 9 * [False] + 2 * [True]


def test_resume_does_not_repeat_trials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(search_module, "SEEDS", (1,))
    replace_scorer(monkeypatch, lambda model: model.settings.window_size / 100)
    first = tune_and_stop(5, tmp_path / "state.json")
    second = tune_and_stop(14, tmp_path / "state.json", time="1h")
    assert second[:5] == first
    uninterrupted = tune_and_stop(14, tmp_path / "other.json")
    assert [trial["choices"] for trial in second] == [trial["choices"] for trial in uninterrupted]


def test_time_of_earlier_trials_counts(tmp_path: Path) -> None:
    """A resumed search ends at once if no time is left except for the last training."""
    state = tmp_path / "state.json"
    tune_and_stop(2, state)
    content = json.loads(state.read_text())
    for trial in content["trials"]:
        trial["seconds"] = 250
    state.write_text(json.dumps(content))
    reports: list[Progress] = []
    result = w2v.tune(TEXT, state=state, on_trial=stop_after(3), progress=reports.append, **SMALL)
    assert (result.trials, result.seconds) == (2, 500)
    assert any(500 <= report.done < 600 for report in reports)


def test_state_file_of_another_run_is_refused(tmp_path: Path) -> None:
    """Files are matched by their content, and not by their names."""
    state, questions, moved, pairs = (tmp_path / name for name in ("state.json", "questions", "moved", "pairs"))
    questions.write_text("w1 w2 w3 w4\n")
    pairs.write_text("a b 1\n")
    options: dict[str, Any] = {name: value for name, value in SMALL.items() if name != "vector_size"}
    options |= {"corpus": TEXT, "window": 2, "max_size": 8, "questions": questions, "state": state}
    with pytest.raises(Stop):
        w2v.tune(**options, on_trial=stop_after(1))
    questions.rename(moved)
    options["questions"] = moved
    with pytest.raises(Stop):
        w2v.tune(**options, on_trial=stop_after(2))
    questions.write_text("w1 w2 w4 w3\n")
    before = state.read_bytes()
    changes: list[tuple[dict[str, Any], str]] = [
        ({"corpus": TEXT[1:]}, "with different text"),
        ({"negative": 7}, "with negative none, not 7"),
        ({"window": 3}, "with window 2, not 3"),
        ({"max_size": 9}, "with max_size 8, not 9"),
        ({"max_size": None}, "with max_size 8, not none"),
        ({"questions": ()}, "with questions"),
        ({"questions": questions}, "with different questions"),
        ({"pairs": [pairs]}, "without pairs"),
    ]
    for change, message in changes:
        with pytest.raises(w2v.W2VError, match=rf"state\.json belongs to another run, {message}: give the same"):
            w2v.tune(**options | change)
    assert state.read_bytes() == before


class HingeWithData(Hinge):
    def __init__(self, margin: float) -> None:
        self.margin = margin

    def prepare(self) -> None:
        super().prepare()
        self.data = {**self.data, "margin": self.margin}


@pytest.mark.slow
def test_trials_of_another_loss_of_the_same_class_are_refused(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    tune_and_stop(1, state, objective=HingeWithData(1.0))
    with pytest.raises(w2v.W2VError, match="with different data of the objective: give the same"):
        tune_and_stop(3, state, objective=HingeWithData(2.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time": "1epoch"}, "time '1epoch': it must be a number with s, m or h, like 10m"),
        ({"time": "0s"}, "time '0s'"),
        ({"time": "0.00001s"}, r"give --time \d+m"),
        ({"max_size": 9}, "max_size has no effect with vector_size"),
        ({"windows": 3}, "did you mean window"),
        ({"questions": ["none.txt"]}, "none.txt"),
        ({"pairs": Path("none.txt")}, "none.txt"),
    ],
)
def test_impossible_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(w2v.W2VError, match=message):
        w2v.tune(TEXT, **SMALL | options)


def test_unusable_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "questions.txt").write_text("a b c d\n")
    with pytest.raises(w2v.W2VError, match=r"questions\.txt: too few of its words are in the vocabulary"):
        w2v.tune(TEXT, questions=[tmp_path / "questions.txt"], **SMALL)
    (tmp_path / "state.json").write_text('{"text": 3}')
    with pytest.raises(w2v.W2VError, match=r"state\.json: damaged"):
        w2v.tune(TEXT, state=tmp_path / "state.json", **SMALL)


# -- a tuner without a text -----------------------------------------------------------------


class TunerWithoutCandidates(Tuner):
    """A tuner that only tries the default settings. It trains nothing: each trial is recorded as one of 10 seconds."""

    def _trial(self, choices: Any, share: float, seed: int) -> Trial:
        trial = Trial(choices, share, seed, float(seed), 10)
        self.trials.append(trial)
        return trial

    def _brackets(self) -> Iterator[list[Any]]:
        yield from ()


def new_tuner(seconds: float, kind: type[Tuner] = Tuner, **fields: Any) -> Tuner:
    unused: Any = None
    vocabulary = w2v.Vocabulary(["a", "b"], [500, 500])
    defaults: dict[str, Any] = {"fixed": {}, "choices": {}, "budget": TimeBudget(seconds, started=0.0)}
    defaults |= {"text": unused, "views": "words", "vocabulary": vocabulary, "share": 1, "scorer": unused}
    defaults |= {"identity": unused, "config": unused, "seed": fields.get("fixed", {}).get("seed", 1)}
    return kind(**defaults | fields)


@pytest.mark.parametrize(("seconds", "seeds"), [(30, 1), (269, 1), (270, 3), (809, 3), (810, 9), (100_000, 9)])
def test_more_seeds_are_used_if_three_brackets_fit(seconds: float, seeds: int) -> None:
    """A bracket with one seed costs three trainings, of 10 seconds each."""
    tuner = new_tuner(seconds, TunerWithoutCandidates, fixed={"seed": 4})
    tuner.search()
    assert [trial.seed for trial in tuner.trials] == [4, *range(4, 4 + seeds)]  # the first one measures the time
    assert tuner.score == tuner.default_score == 4 + (seeds - 1) / 2


@pytest.mark.parametrize(
    ("choices", "changed"),
    [
        ({"loss": "hs", "negative": 10, "window": 3}, {"loss": "hs", "window": 3}),  # hs has no negatives
        ({"window": 8, "negative": 5, "sample": 1e-3}, {"sample": 1e-3}),  # the others are the defaults of cbow
        ({"model": "skipgram", "window": 8}, {"model": "skipgram", "window": 8}),
        ({"alpha": 2}, {"alpha": 0.15}),  # twice the default
        ({"alpha": 1, "epochs": 1}, {}),
        ({"epochs": 0.5}, {"epochs": 25}),
    ],
    ids=str,
)
def test_only_changed_settings_with_an_effect_are_reported(choices: Any, changed: dict[str, Any]) -> None:
    tuner = new_tuner(100)
    assert tuner.changed(choices) == changed
    assert tuner.details(Trial(choices, 1 / 3, 8, None, 1.0)) == "33% of the epochs, seed 8"


def test_search_leaves_time_for_a_last_training_with_the_best_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    best, other = {"window": 3}, {"window": 2}
    durations = [(best, 1.0, 10), (best, 1.0, 12), (best, 1 / 3, 70), (other, 1.0, 80)]
    trials = [Trial(choices, share, 1, 0.5, seconds) for choices, share, seconds in durations]
    tuner = new_tuner(100, trials=trials, best=best)  # a whole training with the best settings took up to 12 s
    monkeypatch.setattr("time.monotonic", lambda: 87.9)
    tuner.report(Progress("train", 1, 2, "words", rate=1.0))
    for tuner.last_training, now in (1, 88.1), (2, 76.1):
        monkeypatch.setattr("time.monotonic", lambda now=now: now)
        with pytest.raises(TimeIsUp):
            tuner.report(Progress("train", 1, 2, "words", rate=1.0))


def test_time_for_three_trainings_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The duration of a training is estimated from 2% of the first one."""
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    message = (
        r"^training takes about 400 s with the default settings, and tuning needs several times as long: give --time "
        r'40m \(time="40m"\) or more$'
    )
    early, later = (Progress("train", done, 4000, "words", rate=10.0) for done in (80, 81))
    # At 100 s, three trainings of 400 s fit only if the limit is 1300 s or more.
    new_tuner(1299).report(early)
    with pytest.raises(w2v.W2VError, match=message):
        new_tuner(1299).report(later)
    new_tuner(1300).report(later)
    new_tuner(700, trials=[Trial({}, 1.0, 1, 0.5, 1)]).report(later)  # only the first training is measured


def test_score_is_the_mean_over_files_of_questions_and_pairs(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    words = [f"w{number}" for number in range(40)]
    vectors = w2v.KeyedVectors(words, random.normal(size=(40, 5)))
    model: Any = SimpleNamespace(wv=vectors)
    lines = [f"w{a} w{b} {score:.3f}" for a, b, score in zip(range(20), range(20, 40), random.random(20), strict=True)]
    (tmp_path / "pairs").write_text("\n".join(lines))
    (tmp_path / "questions").write_text("".join(f"w{n} w{n + 1} w{n + 2} w{n + 3}\n" for n in range(30)))
    spearman = w2v.word_pairs(vectors, tmp_path / "pairs").spearman
    accuracy = w2v.analogies(vectors, tmp_path / "questions").accuracy
    files = [tmp_path / "questions"], [tmp_path / "pairs"]
    assert spearman is not None
    assert accuracy is not None
    assert search_module.score_model([], files[1], None, model) == spearman
    assert search_module.score_model(files[0], [], None, model) == accuracy
    assert search_module.score_model(*files, None, model) == pytest.approx((spearman + accuracy) / 2)


def test_trials_use_the_whole_text_if_files_score_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trained: list[int] = []
    replace_scorer(monkeypatch, lambda model: trained.append(model.metrics["tokens"]) or 0.0)  # type: ignore[func-returns-value]
    (tmp_path / "pairs").write_text("w1 w2 0.5\nw3 w4 0.3\n")
    for pairs in [tmp_path / "pairs"], []:
        with pytest.raises(Stop):
            w2v.tune(TEXT, pairs=pairs, on_trial=stop_after(1), **SMALL)
    assert trained[0] == 4000 > trained[1] > 3500  # the end of the text is held out


# -- command line -------------------------------------------------------------------------


@pytest.fixture
def text(sample: Path, tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(sample.read_text("utf-8")[:200_000], "utf-8")
    return path


@pytest.mark.usefixtures("few_candidates")
def test_command_writes_model_settings_and_trials(text: Path, tmp_path: Path) -> None:
    output = tmp_path / "best.safetensors"
    figures = run_json("tune", text, "-o", output, *QUICK)
    written = ["best.safetensors", "best.toml", "best.tune.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [*written, "text.txt"]
    settings = w2v.Model.load(output).settings
    for name, value in figures["changed_settings"].items():
        assert getattr(settings, name) == value
    again = run_json("train", "--config", tmp_path / "best.toml", "-o", tmp_path / "again.safetensors")
    assert w2v.Model.load(again["output"]).settings.in_effect() == settings.in_effect()
    for name in written:
        assert f"{name} exists" in run("tune", text, "-o", output, *QUICK, code=1).stderr
        (tmp_path / name).unlink()
    assert "cannot read" in run("tune", text, "-o", output, "--pairs", tmp_path / "none", *QUICK, code=1).stderr


def test_command_reads_the_files_that_match_a_pattern(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def tune(corpus: list[Path], **_: Any) -> None:
        raise w2v.W2VError(", ".join(map(str, Corpus(corpus).files)))

    monkeypatch.setattr(search_module, "tune", tune)
    folder = tmp_path / "my texts"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / name).write_text("some text\n")
    result = run("tune", folder / "*", "-o", tmp_path / "best.bin", code=1)
    assert result.stderr == f"w2v: {folder / 'one'}, {folder / 'two'}\n"


@pytest.mark.usefixtures("few_candidates")
def test_command_joins_phrases(tmp_path: Path) -> None:
    text, output, phrases = tmp_path / "text.txt", tmp_path / "best.safetensors", tmp_path / "phrases.tsv"
    lines = [[*words[:5], "new", "york", *words[5:]] for words in TEXT]
    text.write_text("".join(" ".join(words) + "\n" for words in lines))
    options = ("-o", output, *QUICK, "--min-count", 1)
    run("tune", text, *options, "--phrases")
    assert "new_york" in w2v.load(output)
    assert tomllib.loads((tmp_path / "best.toml").read_text())["phrases"] is True
    run("phrases", text, "--save-phrases", phrases)
    assert run("tune", text, *options, "--phrases", phrases, "--force", "--quiet").stderr == ""
    assert "new_york" in w2v.load(output)
    assert "new" not in w2v.load(output)
    again = run_json("train", "--config", tmp_path / "best.toml", "-o", tmp_path / "again.safetensors")
    assert "new_york" in w2v.load(again["output"])
    result = run("tune", text, "-o", phrases, *QUICK, "--phrases", phrases, "--force", code=2)
    assert f"{phrases} is named twice" in result.stderr


@pytest.mark.usefixtures("few_candidates")
def test_command_resumes(text: Path, tmp_path: Path) -> None:
    output = tmp_path / "best.safetensors"
    first = run("tune", text, "-o", output, *QUICK, "--time", "1h")
    assert first.stderr.startswith("w2v: tuning takes about 60 minutes\nw2v: trial 1: score ")
    assert "the defaults" in first.stderr
    assert "the defaults" not in first.stdout
    before = trials_in(tmp_path / "best.tune.json")
    assert "best.safetensors exists" in run("tune", text, "-o", output, *QUICK, "--resume", code=1).stderr
    run("tune", text, "-o", output, *QUICK, "--resume", "--force")
    assert trials_in(tmp_path / "best.tune.json") == before
    other_settings = (*QUICK, "--vector-size", 9)
    assert "vector_size" in run("tune", text, "-o", output, *other_settings, "--resume", "--force", code=1).stderr
    assert output.exists()
    same_settings = (*QUICK, "--workers", 2, "--cache", tmp_path / "text.ids")
    run("tune", text, "-o", output, *same_settings, "--resume", "--force")
    assert trials_in(tmp_path / "best.tune.json") == before


def test_settings_for_only_some_candidates_are_accepted(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_module, "SEEDS", (1,))
    monkeypatch.setattr(search_module, "CHOICES", {"model": ("skipgram", "cbow"), "loss": ("ns", "hs")})
    monkeypatch.chdir(tmp_path)
    options = (*QUICK, "--per-pair", "--tree", "balanced", "--subwords", "3-4", "--max-vocab", 100)
    assert "model.safetensors" in run("tune", text, *options).stdout
    assert w2v.Model.load("model.safetensors").views["words"].ngrams
    assert "--per-pair has no effect" in run("tune", text, *options, "--model", "cbow", code=2).stderr
    stderr = run("tune", text, *options, "-o", "best.bin").stderr
    assert "best.bin has no n-grams" in stderr
