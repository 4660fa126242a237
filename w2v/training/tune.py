"""`tune`: try settings on a text for a given time, then train with the best.

Settings are tried by successive halving (Jamieson & Talwalkar 2016) in brackets, as in Hyperband (Li et al. 2018): nine
candidates are trained briefly, the best three of them three times as long, and the best of these three times as long
again. The resource of a training is a share of its epochs up to 1, and above 1 a number of seeds over which scores are
averaged, since on little text seeds differ more than settings. The candidates of a bracket are drawn around the best
settings so far, at first the defaults; the winner replaces these if its score is higher.
"""

from __future__ import annotations

import json
import logging
import math
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from w2v.detect import lines
from w2v.display import Result
from w2v.errors import Diverged, SettingsError, W2VError, one_line
from w2v.evaluation.analogies import analogies
from w2v.evaluation.held_out import HeldOut
from w2v.evaluation.similarity import word_pairs
from w2v.losses import registry
from w2v.losses.registry import Settings
from w2v.options import refuse_unknown
from w2v.progress import Progress, Report, duration, notebook_bar
from w2v.settings import RENAMED
from w2v.system.files import PathLike, as_paths, atomic_write, errors_named, open_regular
from w2v.system.schema import decode, encode
from w2v.text.corpus import Corpus, Source
from w2v.text.idstore import IdStore, ReadingOptions, read_corpus
from w2v.text.text_checks import warn_about_text
from w2v.text.vocabulary import Vocabulary
from w2v.training.config import RunConfig
from w2v.training.initialisation import Initialisation
from w2v.training.model import Model
from w2v.training.prepare import join_phrases, load_phrases
from w2v.training.run import Run
from w2v.training.schedule import epochs_for, interval

log = logging.getLogger("w2v")

ETA = 3  # the best third of the candidates continues, with three times the resource
CANDIDATES = ETA**2
SEEDS = (1, ETA, ETA**2)
MIN_BRACKETS = 3  # brackets that must fit into the time before more seeds are used
KEEP_PROBABILITY = 0.75  # probability that a candidate keeps a setting of the best
DRAWS = 100 * CANDIDATES  # for a bracket, after which all candidates count as tried
MIN_TRAININGS = 3  # trainings with the defaults that must fit into the time
PROBE = 0.02  # share of the first training after which its time is estimated

WITHOUT_EFFECT = {"cache", "workers"}  # on the scores
READING = {each.name for each in fields(ReadingOptions)}

Choice = str | float | None
Choices = dict[str, Choice]

# The values tried for settings that are not given.
CHOICES: dict[str, tuple[Choice, ...]] = {
    "model": ("skipgram", "cbow"),
    "loss": ("ns", "nce", "sampled", "hs"),
    "window": (2, 3, 5, 8, 10, 15),
    "negative": (3, 5, 10, 15),
    "sample": (1e-2, 1e-3, 3e-4, 1e-4, 3e-5),
    "vectors": (None, "input"),
    "alpha": (0.5, 0.7, 1, 1.4, 2),  # times the default of model and loss
    "min_alpha": (1e-4, 1e-2, 0.1),  # times alpha
    "epochs": (0.5, 1, 2),  # times those by the size of the text
}
FACTORS = ("alpha", "min_alpha", "epochs")
SIZES = (0.5, 0.75, 1)  # times max_size


@dataclass(frozen=True)
class Trial:
    """One training.

    Attributes:
        choices: the values tried, by name of setting; all other settings have their defaults.
        share: of the epochs. seed: see Settings.
        score: None where training diverged. seconds: of training and scoring.
    """

    choices: Choices
    share: float
    seed: int
    score: float | None
    seconds: float


@dataclass(frozen=True)
class TuningState:
    """The content of a state file: the text's checksum, all else that the scores depend on, and the trials."""

    text: str
    about: dict[str, str]
    trials: list[Trial] = field(default_factory=list)


@dataclass(frozen=True)
class Tuned(Result):
    """The result of `tune`.

    Attributes:
        model: trained on the whole text with the best settings found.
        changed: those of the best settings that differ from the defaults.
        score, default_score: scores of the best and of the default settings, over the same seeds.
        trials: number of trainings. seconds: of all of them.
    """

    model: Model
    changed: dict[str, Any]
    score: float
    default_score: float
    trials: int
    seconds: float


@dataclass(frozen=True)
class Scorer:
    """Scores a model: the mean of its accuracies on questions and correlations with pairs, or `held_out`."""

    questions: Sequence[PathLike]
    pairs: Sequence[PathLike]
    held_out: HeldOut | None

    def __call__(self, model: Model) -> float:
        """Raises W2VError for a file whose words the vocabulary lacks."""
        if self.held_out:
            return self.held_out.score(model.wv.vectors)
        scores = [(file, analogies(model.wv, file).accuracy) for file in self.questions]
        scores += [(file, word_pairs(model.wv, file).spearman) for file in self.pairs]
        for file, score in scores:
            if score is None:
                raise W2VError(f"{file}: the vocabulary has too few of its words to score settings by it")
        return mean(score for _, score in scores if score is not None)


def tune(
    corpus: Source,
    *,
    time: str = "10m",
    questions: PathLike | Sequence[PathLike] = (),
    pairs: PathLike | Sequence[PathLike] = (),
    max_size: int | None = None,
    phrases: bool | PathLike = False,
    state: PathLike | None = None,
    ignore_memory: bool = False,
    finished: Callable[[Trial, Tuner], None] | None = None,
    progress: Report | None = None,
    **given: Any,
) -> Tuned:
    """Try settings on a text for a given time, and train a model with the best.

    Args:
        corpus: see train; it is read once.
        time: about how long everything takes: "30s", "10m" or "2h".
        questions, pairs: a file or files that settings are scored by; see analogies and word_pairs. Without any, they
            are scored by the end of the text, on which trials are not trained; see HeldOut.
        max_size: try vector sizes up to this one; otherwise all have that of the settings.
        state: a file in which trials are stored. Those in it, of a run that was stopped, are not repeated, and their
            time counts.
        phrases, ignore_memory: see train. finished: called after each trial.
        progress: called regularly with a `Progress` of phase "tune", which counts the seconds of `time`.
        given: settings, which all trials have, and the arguments of read_corpus.

    Raises W2VError and SettingsError as train does, and if the time is too short or the state is of another run.
    """
    watch = Watch(seconds_of(time), progress or notebook_bar())
    refuse_unknown(given, [*Settings.names(), *READING], RENAMED)
    fixed, choices = _fixed_and_choices({name: given[name] for name in given if name not in READING}, max_size)
    config = RunConfig.from_options({**given, **fixed, "phrases": phrases, "ignore_memory": ignore_memory})
    settings, reading = config.settings, config.reading
    given_phrases = load_phrases(phrases)
    questions, pairs = as_paths(questions), as_paths(pairs)
    for file in (*questions, *pairs):
        next(lines(file), None)  # raises for one that cannot be read
    work: dict[str, Any] = {"workers": settings.threads, "progress": watch}
    with ExitStack() as stack:
        store = stack.enter_context(read_corpus(Corpus(corpus), reading, **work))
        store, joined = join_phrases(store, given_phrases, reading.cache, **work)
        stack.enter_context(store)
        vocabulary = Vocabulary.from_store(store, settings.min_count, settings.max_vocab)
        share, held_out = (1.0, None) if questions or pairs else HeldOut.at_end(store, vocabulary)
        about = {name: str(getattr(settings, name, value)) for name, value in given.items()}
        about |= {"phrases": str(phrases or "")} | ({} if max_size is None else {"max_size": str(max_size)})
        about |= {name: ", ".join(map(str, files)) for name, files in (("questions", questions), ("pairs", pairs))}
        before = _before(state, TuningState(store.checksum(), about))
        read = watch.used
        watch.started -= sum(trial.seconds for trial in before.trials)
        log.info("tuning takes about %s", duration(max(0, watch.seconds - watch.used)))
        scorer, keep = Scorer(questions, pairs, held_out), partial(_keep, state, before, finished)
        tuner = Tuner(store, vocabulary, share, fixed, choices, scorer, watch, keep, config, list(before.trials))
        warn_about_text(store, settings.epochs, config.text, vocabulary.words)
        tuner.search()
        run = Run(replace(config, settings=tuner.settings_for(tuner.best)), Initialisation(vocabulary), store)
        run.phrases, run.read_seconds = joined, read
        run.train(watch)
        model = run.model()
    watch.end()
    return tuner.result(model)


def _keep(
    path: PathLike | None,
    before: TuningState,
    finished: Callable[[Trial, Tuner], None] | None,
    trial: Trial,
    tuner: Tuner,
) -> None:
    """After each trial: store all in the state file, and report it."""
    if path is not None:
        with atomic_write(path) as file:
            file.write(encode(replace(before, trials=tuner.trials), path).encode())
    if finished:
        finished(trial, tuner)


def _fixed_and_choices(
    given: dict[str, Any], max_size: int | None
) -> tuple[dict[str, Any], dict[str, tuple[Choice, ...]]]:
    """The settings of all trials, and the values to try for others. Raises SettingsError if they contradict."""
    if given.get("stop_early"):
        raise SettingsError("stop_early has no effect on tuning, which tries several numbers of epochs: leave it out")
    choices = tried(given)
    if max_size is not None:
        if "vector_size" in given:
            raise SettingsError("max_size has no effect with vector_size: give one of them")
        given |= {"vector_size": max_size}
        choices["vector_size"] = tuple(max(1, round(share * max_size)) for share in SIZES)
    if given.get("objective") is not None:
        registry.find(str(given["objective"]))
    return given, choices


def tried(given: Mapping[str, Any]) -> dict[str, tuple[Choice, ...]]:
    """The values to try for settings that are not given."""
    own = {"loss"} if given.get("objective") is not None else set()
    return {name: values for name, values in CHOICES.items() if name not in given.keys() | own}


def seconds_of(time: str) -> float:
    """The seconds of a time like 30s, 10m or 2h. Raises SettingsError."""
    with suppress(SettingsError):
        if seconds := interval(time).seconds:
            return seconds
    raise SettingsError(f"time {time!r}: it must be a number with s, m or h, like 10m")


def _before(path: PathLike | None, expected: TuningState) -> TuningState:
    """The state in a file, or `expected` if there is none. Raises W2VError if it is damaged or of another run."""
    if path is None:
        return expected
    with errors_named(path):
        if not Path(path).exists():
            return expected
        with open_regular(path) as file:
            found = decode(TuningState, file.read(), path)
    if found.text != expected.text:
        raise W2VError(f"{path}: its trials are of another text")
    for name in sorted({*found.about, *expected.about} - WITHOUT_EFFECT):
        before, now = (one.about.get(name) or "none" for one in (found, expected))
        if before != now:
            raise W2VError(f"{path}: its trials have {name} {one_line(before)}, not {one_line(now)}")
    return found


class _TimeIsUp(Exception):
    pass


@dataclass
class Watch:
    """The time of a whole tuning. It is reported whenever a part of the work reports its progress.

    Attributes:
        seconds: the time limit. report: receives the progress, if given. score: the best so far.
        started: by time.monotonic(), earlier for a resumed run.
    """

    seconds: float
    report: Report | None = None
    score: float | None = None
    started: float = field(default_factory=clock.monotonic)

    @property
    def used(self) -> float:
        return clock.monotonic() - self.started

    def __call__(self, part: Progress | None = None) -> None:
        self._report(min(self.used, self.seconds))

    def end(self) -> None:
        self._report(self.seconds)

    def _report(self, used: float) -> None:
        if self.report:
            total, left = math.ceil(self.seconds), self.seconds - used
            self.report(Progress("tune", total - math.ceil(left), total, "seconds", None, left, score=self.score))


@dataclass
class Tuner:
    """A search for the best settings.

    Attributes:
        store, vocabulary: of the text. share: of the text, from its start, that trials are trained on.
        fixed: settings of all trials. choices: the values to try for other settings.
        scorer: scores a model. watch: knows when the time is up.
        keep: called after each trial. config: of all trials but for what they try.
        trials: the trials so far; none is repeated.
        best: the choices with the highest score. score, default_score: of these and of the defaults.
    """

    store: IdStore
    vocabulary: Vocabulary
    share: float
    fixed: Mapping[str, Any]
    choices: Mapping[str, tuple[Choice, ...]]
    scorer: Callable[[Model], float]
    watch: Watch
    keep: Callable[[Trial, Tuner], None]
    config: RunConfig
    trials: list[Trial] = field(default_factory=list)
    best: Choices = field(default_factory=dict)
    score: float = -np.inf
    default_score: float = -np.inf

    def result(self, model: Model) -> Tuned:
        """The result, with a model trained with the best settings."""
        seconds = sum(trial.seconds for trial in self.trials)
        return Tuned(model, self.changed(self.best), self.score, self.default_score, len(self.trials), seconds)

    def search(self) -> None:
        """Try brackets until the time is up."""
        default = self._trial({}, 1.0, self.settings_for({}).seed)
        self.score = self.default_score = _score_or_lowest(default.score)
        cost = MIN_BRACKETS * ETA * default.seconds  # of brackets with one seed
        max_seeds = max(each for each in SEEDS if each == 1 or each * cost <= self.watch.seconds)
        with suppress(_TimeIsUp):
            self.score = self.default_score = self._mean_score({}, max_seeds)
            for candidates in self._brackets():
                for resource in (max_seeds / ETA**2, max_seeds / ETA, max_seeds):
                    scores = [self._mean_score(each, resource) for each in candidates]
                    order = np.argsort(scores)[::-1]
                    candidates = [candidates[index] for index in order[: -(-len(order) // ETA)]]
                if max(scores) > self.score:
                    self.best, self.score = candidates[0], max(scores)

    def _brackets(self) -> Iterator[list[Choices]]:
        """The candidates of each bracket, all different, until no new ones are found."""
        random, seen = np.random.default_rng(self.settings_for({}).seed), {self._identity({})}
        while found := list(islice(self._drawn(random, seen), CANDIDATES)):
            yield found

    def _drawn(self, random: np.random.Generator, seen: set[str]) -> Iterator[Choices]:
        """Candidates drawn around the best choices, without those in `seen`, to which all that are drawn are added."""
        for _ in range(DRAWS):
            drawn = dict(self.best)
            for name, values in self.choices.items():
                if random.random() >= KEEP_PROBABILITY:
                    drawn[name] = values[random.integers(len(values))]
            if (key := json.dumps(drawn, sort_keys=True)) in seen:
                continue
            seen.add(key)
            with suppress(SettingsError):  # a given min_alpha is above this alpha
                if (identity := self._identity(drawn)) not in seen:
                    seen.add(identity)
                    yield drawn

    def settings_for(self, choices: Choices) -> Settings:
        """Raises SettingsError if choices contradict fixed settings."""
        values: dict[str, Any] = dict(choices)
        factors = {name: values.pop(name) for name in FACTORS if name in choices}
        settings = Settings(**{**self.fixed, **values})
        if "alpha" in factors:
            settings = replace(settings, alpha=settings.start_alpha * factors["alpha"])
        if "min_alpha" in factors:
            settings = replace(settings, min_alpha=settings.start_alpha * factors["min_alpha"])
        epochs = epochs_for(settings, settings.loss_class, self.vocabulary.tokens) * factors.get("epochs", 1)
        return replace(settings, epochs=max(1, round(epochs)))

    def changed(self, choices: Choices) -> dict[str, Any]:
        """Those of these choices whose values differ from the defaults that the other settings imply."""
        chosen = self.settings_for(choices).relevant()

        def default(name: str) -> Any:
            rest = {other: choice for other, choice in choices.items() if other != name}
            return self.settings_for(rest).relevant().get(name)

        return {name: chosen[name] for name in choices if name in chosen and chosen[name] != default(name)}

    def _identity(self, choices: Choices) -> str:
        return json.dumps(self.settings_for(choices).relevant(), default=str)

    def _mean_score(self, choices: Choices, resource: float) -> float:
        """The mean score over `resource` seeds, at least one; below 1, `resource` is the share of the epochs."""
        first = self.settings_for(choices).seed
        seeds = range(first, first + max(1, round(resource)))
        return mean(_score_or_lowest(self._trial(choices, min(1.0, resource), seed).score) for seed in seeds)

    def _trial(self, choices: Choices, share: float, seed: int) -> Trial:
        """Train with this share of the epochs, and score. Raises _TimeIsUp."""
        for trial in self.trials:
            if (trial.choices, trial.share, trial.seed) == (choices, share, seed):
                return trial
        started, score = clock.monotonic(), None
        settings = replace(self.settings_for(choices), seed=seed)
        epochs = share * int(settings.epochs)
        settings = replace(settings, epochs=max(1, round(epochs)))
        text_share = self.share * min(1.0, epochs)
        config = replace(self.config, settings=settings)
        run = Run(config, Initialisation(self.vocabulary), self.store, share=text_share)
        with suppress(Diverged):
            run.train(self._report)
            score = self.scorer(run.model())
        trial = Trial(choices, share, seed, score, clock.monotonic() - started)
        self.trials.append(trial)
        self.keep(trial, self)
        return trial

    def _report(self, progress: Progress) -> None:
        """Raises _TimeIsUp if the rest of the time is needed to train with the best settings at the end."""
        best = [trial.seconds for trial in self.trials if trial.choices == self.best and trial.share == 1]
        left = self.watch.seconds - self.watch.used - max(best, default=0.0)
        if best and left < 0:
            raise _TimeIsUp
        if not self.trials and progress.rate and progress.total and progress.done > PROBE * progress.total:
            whole = progress.total / progress.rate
            if whole * MIN_TRAININGS > left:
                minutes = math.ceil(2 * MIN_TRAININGS * whole / 60)
                raise W2VError(
                    f"training takes about {whole:,.0f} s with the default settings, and tuning needs several times "
                    f'that: give --time {minutes}m (time="{minutes}m") or more'
                )
        self.watch.score = self.score if self.trials else None
        self.watch()


def _score_or_lowest(score: float | None) -> float:
    return -np.inf if score is None else score
