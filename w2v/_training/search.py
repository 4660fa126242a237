"""`tune`: search for good settings of word vectors within a time budget, then train with the best.

`Search` is the search, also of `tune_classifier`; `Tuner` says what is trained. It is successive halving (Jamieson &
Talwalkar 2016), which runs in brackets, as in Hyperband (Li et al. 2018). In each bracket, candidates are trained with
few resources, and the best third of them with more, until one is left. A resource is one number: below 1, the share of
the epochs to train; 1 or more, the number of trainings to average over, each with another seed, or on another part of
the texts. The candidates of a bracket are drawn near the best settings so far, which are the defaults at first. The
winner of a bracket replaces them if its score is higher.

`tune` trains nine candidates briefly, the best three of them three times as long, and the best one of these three times
as long again. If there is time, candidates are trained with several seeds instead, because on little text the seeds
matter more than the settings.
"""

from __future__ import annotations

import json
import logging
import math
import time as clock
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from w2v._detect import read_lines
from w2v._display import Result
from w2v._errors import Diverged, SettingsError, W2VError
from w2v._evaluation.analogies import analogies
from w2v._evaluation.held_out import GapTest
from w2v._evaluation.similarity import word_pairs
from w2v._losses import registry
from w2v._losses.registry import Settings, loss_for
from w2v._options import check_numbers, options_of, refuse_unknown
from w2v._progress import Progress, Report, duration, notebook_bar
from w2v._settings import RENAMED, ViewOptions, Views
from w2v._system.files import PathLike, as_paths
from w2v._text.corpus import Corpus, Source
from w2v._text.idstore import ReadingOptions
from w2v._text.text_checks import warn_about_text
from w2v._text.vocabulary import Vocabulary
from w2v._training.checkpoint import checksum
from w2v._training.config import RunConfig
from w2v._training.identity import Identity, State, checksum_of_files, identity_of, read_state, write_state
from w2v._training.reading import ReadText, read_words
from w2v._training.schedule import epochs_for, interval
from w2v._training.train import Training, start_runs
from w2v._training.views import choose_views, settings_of_views
from w2v._vectors.keyed import HasWordVectors

log = logging.getLogger("w2v")

ETA = 3  # the best third of the candidates continues
KEEP_PROBABILITY = 0.75  # probability that a candidate keeps the best value of a setting
MAX_DRAWS = 900  # per bracket; if they give no new candidate, all candidates count as tried
MIN_TRAININGS = 3  # this many trainings with the defaults must fit into the time
PROBE_SHARE = 0.02  # share of the first training after which its duration is estimated
OTHER_RUN = "give the same files and options again, or start again with --force"

Choice = str | float | None
Choices = dict[str, Choice]


@dataclass(frozen=True)
class Trial:
    """One training with candidate settings, and its score.

    Attributes:
        choices: The values tried, by setting. All other settings have their defaults.
        share: The share of the epochs that was trained.
        seed: See Settings. In a cross-validation, it stands for the part of the texts that is scored.
        score: The score of the model; None if training diverged, or if there was nothing to train.
        seconds: The time spent on training and scoring.
        alpha: The learning rate at the start; None if there was nothing to train.
    """

    choices: Choices
    share: float
    seed: int
    score: float | None
    seconds: float
    alpha: float | None = None


class TimeIsUp(Exception):
    """Ends the search, to leave enough time for the last training."""


@dataclass
class TimeBudget:
    """The time limit of the whole tuning. It reports the elapsed time whenever a step of the work reports progress.

    Attributes:
        seconds: The time limit.
        report: A function that receives the progress.
        score: The best score so far.
        started: The start by clock.monotonic(). For a resumed run it is earlier, by the time of the stored trials.
    """

    seconds: float
    report: Report | None = None
    score: float | None = None
    started: float = field(default_factory=clock.monotonic)

    @property
    def used(self) -> float:
        """The elapsed seconds."""
        return clock.monotonic() - self.started

    def __call__(self, step: Progress | None = None) -> None:
        """Report the elapsed time instead of the progress of a step."""
        self._report(min(self.used, self.seconds))

    def end(self) -> None:
        """Report the end of the tuning."""
        self._report(self.seconds)

    def _report(self, used: float) -> None:
        if self.report:
            total, left = math.ceil(self.seconds), self.seconds - used
            self.report(Progress("tune", total - math.ceil(left), total, "seconds", None, left, score=self.score))


@dataclass(frozen=True)
class TuningState(State):
    """The content of a state file: the identity, with all values that the scores depend on, and the trials so far."""

    trials: list[Trial] = field(default_factory=list)


@dataclass(frozen=True)
class Tuned(Result):
    """The result of `tune`.

    Attributes:
        model: A Model, or a Classifier, trained on the whole text with the best settings.
        changed: The settings that differ from the defaults.
        score: The score of the best settings.
        default_score: The score of the default settings, with the same seeds or parts.
        trials: The number of trials.
        seconds: The time spent on all trials.
    """

    model: Any
    changed: dict[str, Any]
    score: float
    default_score: float
    trials: int
    seconds: float


@dataclass
class Search(ABC):
    """A search for the best settings.

    Attributes:
        fixed: The settings of all trials.
        choices: The values to try for other settings.
        seed: The first seed.
        budget: The time limit.
        identity: All that the scores depend on.
        state: A file that stores the trials. If it has trials of a run that was stopped, they are not repeated, and
            their time counts.
        on_trial: A function that is called after each trial.
        trials: The trials so far.
        best: The choices with the highest score.
        score: The score of these choices.
        default_score: The score of the default settings.

    Raises:
        W2VError: The state file is damaged, or belongs to another run.
    """

    candidates = ETA**2  # per bracket
    last_training = 1  # the duration of the last training, relative to a trial

    fixed: Mapping[str, Any]
    choices: Mapping[str, tuple[Choice, ...]]
    seed: int
    budget: TimeBudget
    identity: Identity
    state: Path | None = None
    on_trial: Callable[[Trial, Any], None] | None = None
    trials: list[Trial] = field(default_factory=list)
    best: Choices = field(default_factory=dict)
    score: float = -np.inf
    default_score: float = -np.inf

    def __post_init__(self) -> None:
        if self.state:
            stored = read_state(self.state, TuningState(self.identity), OTHER_RUN)
            self.identity, self.trials = stored.identity, list(stored.trials)
            self.budget.started -= sum(trial.seconds for trial in self.trials)

    @abstractmethod
    def in_effect(self, choices: Choices) -> dict[str, Any]:
        """Return the settings of a trial, those that have an effect. Raise SettingsError if they are impossible."""

    @abstractmethod
    def resources(self, default: Trial) -> Sequence[float]:
        """Return the resources of the steps of a bracket, given the first trial, with the default settings."""

    @abstractmethod
    def evaluate(self, choices: Choices, share: float, seed: int) -> tuple[float | None, float | None]:
        """Train a model with this share of the epochs. Return its score and its learning rate; see Trial."""

    @abstractmethod
    def details(self, trial: Trial) -> str:
        """Return how a trial was trained, for the line about it."""

    def search(self) -> None:
        """Run brackets until the time is up or all candidates are tried."""
        default = self._trial({}, 1.0, self.seed)
        self.score = self.default_score = _score_or_lowest(default)
        resources = self.resources(default)
        with suppress(TimeIsUp):
            self.score = self.default_score = self._mean_score({}, resources[-1])
            for candidates in self._brackets():
                for resource in resources:
                    scores = [self._mean_score(choices, resource) for choices in candidates]
                    order = np.argsort(scores)[::-1]
                    candidates = [candidates[index] for index in order[: -(-len(order) // ETA)]]
                if max(scores) > self.score:
                    self.best, self.score = candidates[0], max(scores)

    def _brackets(self) -> Iterator[list[Choices]]:
        """Yield the candidates of each bracket, all of them different, until no new candidate is left."""
        random, seen = np.random.default_rng(self.seed), {self._identity({})}
        while candidates := list(islice(self._draw(random, seen), self.candidates)):
            yield candidates

    def _draw(self, random: np.random.Generator, seen: set[str]) -> Iterator[Choices]:
        """Draw candidates near the best choices. Skip candidates in `seen`, and add new ones to it."""
        for _ in range(MAX_DRAWS):
            candidate = dict(self.best)
            for name, values in self.choices.items():
                if random.random() >= KEEP_PROBABILITY:
                    candidate[name] = values[random.integers(len(values))]
            if (key := json.dumps(candidate, sort_keys=True)) in seen:
                continue
            seen.add(key)
            with suppress(SettingsError):  # for instance, a given min_alpha is above the alpha of the candidate
                if (identity := self._identity(candidate)) not in seen:
                    seen.add(identity)
                    yield candidate

    def changed(self, choices: Choices) -> dict[str, Any]:
        """Return the choices that differ from their defaults, given all other settings."""
        chosen = self.in_effect(choices)

        def default(name: str) -> Any:
            return self.in_effect({other: choice for other, choice in choices.items() if other != name}).get(name)

        return {name: chosen[name] for name in choices if name in chosen and chosen[name] != default(name)}

    def result(self, model: Any) -> Tuned:
        """Return the result of the search, with the model that was trained after it."""
        self.budget.end()
        seconds = sum(trial.seconds for trial in self.trials)
        return Tuned(model, self.changed(self.best), self.score, self.default_score, len(self.trials), seconds)

    def _identity(self, choices: Choices) -> str:
        """Return a text that is equal for choices with the same effect."""
        return json.dumps(self.in_effect(choices), default=str)

    def _mean_score(self, choices: Choices, resource: float) -> float:
        """Return the mean score over `resource` seeds, or, if `resource` is below 1, for this share of the epochs."""
        seeds = range(self.seed, self.seed + max(1, round(resource)))
        return mean(_score_or_lowest(self._trial(choices, min(1.0, resource), seed)) for seed in seeds)

    def _trial(self, choices: Choices, share: float, seed: int) -> Trial:
        """Train with this share of the epochs, and score the model. Raise TimeIsUp if time is running out."""
        for trial in self.trials:
            if (trial.choices, trial.share, trial.seed) == (choices, share, seed):
                return trial
        started, score, alpha = clock.monotonic(), None, None
        with suppress(Diverged):
            score, alpha = self.evaluate(choices, share, seed)
        trial = Trial(choices, share, seed, score, clock.monotonic() - started, alpha)
        self.trials.append(trial)
        if self.state:
            write_state(self.state, TuningState(self.identity, self.trials))
        if self.on_trial:
            self.on_trial(trial, self)
        return trial

    def report(self, progress: Progress) -> None:
        """Report the elapsed time.

        Raise TimeIsUp if the remaining time is needed to train with the best settings at the end. Raise W2VError if
        the first training shows that the time is too short.
        """
        best_seconds = [trial.seconds for trial in self.trials if trial.choices == self.best and trial.share == 1]
        left = self.budget.seconds - self.budget.used - self.last_training * max(best_seconds, default=0.0)
        if best_seconds and left < 0:
            raise TimeIsUp
        is_first = progress.phase == "train" and not self.trials
        if is_first and progress.rate and progress.total and progress.done > PROBE_SHARE * progress.total:
            training_seconds = progress.total / progress.rate
            if training_seconds * MIN_TRAININGS > left:
                minutes = math.ceil(2 * MIN_TRAININGS * training_seconds / 60)
                raise W2VError(
                    f"training takes about {training_seconds:,.0f} s with the default settings, and tuning needs "
                    f'several times as long: give --time {minutes}m (time="{minutes}m") or more'
                )
        self.budget.score = self.score if self.trials else None
        self.budget()


def _score_or_lowest(trial: Trial) -> float:
    return -np.inf if trial.score is None else trial.score


def seconds_of(time: str) -> float:
    """Return the seconds of a time such as 30s, 10m or 2h.

    Raises:
        SettingsError: The time is not valid.
    """
    with suppress(SettingsError):
        if seconds := interval(time).seconds:
            return seconds
    raise SettingsError(f"time {time!r}: it must be a number with s, m or h, like 10m")


# -- word vectors ---------------------------------------------------------------------------

SEEDS = (1, ETA, ETA**2)  # numbers of seeds over which scores may be averaged
MIN_BRACKETS = 3  # more seeds are used only if this many brackets fit into the time

# The values to try for settings that the user does not give. For RELATIVE_SETTINGS, they are factors.
CHOICES: dict[str, tuple[Choice, ...]] = {
    "model": ("skipgram", "cbow"),
    "loss": ("ns", "nce", "sampled", "hs"),
    "window": (2, 3, 5, 8, 10, 15),
    "negative": (3, 5, 10, 15),
    "sample": (1e-2, 1e-3, 3e-4, 1e-4, 3e-5),
    "vectors": (None, "input"),
    "alpha": (0.5, 0.7, 1, 1.4, 2),  # times the default for the model and the loss
    "min_alpha": (1e-4, 1e-2, 0.1),  # times alpha
    "epochs": (0.5, 1, 2),  # times the default for the size of the text
}
RELATIVE_SETTINGS = ("alpha", "min_alpha", "epochs")
SIZE_FACTORS = (0.5, 0.75, 1)  # vector sizes to try, relative to max_size


def values_to_try(given: Mapping[str, Any]) -> dict[str, tuple[Choice, ...]]:
    """Return the values to try for the settings that are not given."""
    decided = {"loss"} if given.get("objective") is not None else set()  # an objective decides the loss
    return {name: values for name, values in CHOICES.items() if name not in given.keys() | decided}


@dataclass(kw_only=True)
class Tuner(Search):
    """A search for the best settings of word vectors.

    Attributes:
        text: The text.
        views: The views of the model.
        vocabulary: The words of the text.
        share: The share of the text, from its start, that trials are trained on.
        scorer: A function that scores a model.
        config: The config of all trials, with default settings.
    """

    text: ReadText
    views: Views
    vocabulary: Vocabulary
    share: float
    scorer: Callable[[HasWordVectors], float]
    config: RunConfig

    def resources(self, default: Trial) -> Sequence[float]:
        # A bracket with one seed costs as much as ETA full trainings: 9 × 1/9 + 3 × 1/3 + 1 × 1.
        cost = MIN_BRACKETS * ETA * default.seconds
        seeds = max(seeds for seeds in SEEDS if seeds == 1 or seeds * cost <= self.budget.seconds)
        return seeds / ETA**2, seeds / ETA, seeds

    def in_effect(self, choices: Choices) -> dict[str, Any]:
        return self.settings_for(choices).in_effect()

    def settings_for(self, choices: Choices) -> Settings:
        """Return the settings of a trial. Raise SettingsError if the choices contradict the fixed settings."""
        values: dict[str, Any] = dict(choices)
        factors = {name: values.pop(name) for name in RELATIVE_SETTINGS if name in choices}
        settings = Settings(**{**self.fixed, **values})
        if "alpha" in factors:
            settings = replace(settings, alpha=settings.start_alpha * factors["alpha"])
        if "min_alpha" in factors:
            settings = replace(settings, min_alpha=settings.start_alpha * factors["min_alpha"])
        epochs = epochs_for(settings, settings.loss_class, self.vocabulary.tokens) * factors.get("epochs", 1)
        return replace(settings, epochs=max(1, round(epochs)))

    def training(self, settings: Settings, share: float) -> Training:
        """Return a new training with these settings, on this share of the text."""
        settings_by_view = settings_of_views(self.views, settings)
        return Training(start_runs(self.config, settings_by_view, self.text, share=share, vocabulary=self.vocabulary))

    def evaluate(self, choices: Choices, share: float, seed: int) -> tuple[float | None, float | None]:
        settings = replace(self.settings_for(choices), seed=seed)
        epochs = share * int(settings.epochs)
        settings = replace(settings, epochs=max(1, round(epochs)))
        training = self.training(settings, self.share * min(1.0, epochs))
        training.train(self.report)
        return self.scorer(training.model()), settings.start_alpha

    def details(self, trial: Trial) -> str:
        return f"{trial.share:.0%} of the epochs, seed {trial.seed}"


def score_model(
    questions: Sequence[PathLike], pairs: Sequence[PathLike], held_out: GapTest | None, model: HasWordVectors
) -> float:
    """Return the mean of a model's accuracies and rank correlations, or its score on held-out text if there is any.

    Args:
        questions: Files of analogy questions.
        pairs: Files of word pairs.
        held_out: The held-out text.
        model: The model.

    Raises:
        W2VError: A file has too few words of the vocabulary.
    """
    if held_out:
        return held_out.score(model.wv.vectors)
    scores = [(file, analogies(model.wv, file).accuracy) for file in questions]
    scores += [(file, word_pairs(model.wv, file).spearman) for file in pairs]
    for file, score in scores:
        if score is None:
            raise W2VError(f"{file}: too few of its words are in the vocabulary to score settings with this file")
    return mean(score for _, score in scores if score is not None)


def tune(
    corpus: Source,
    *,
    time: str = "10m",
    questions: PathLike | Sequence[PathLike] = (),
    pairs: PathLike | Sequence[PathLike] = (),
    max_size: int | None = None,
    phrases: bool | PathLike = False,
    views: Views = ViewOptions.views,
    state: PathLike | None = None,
    ignore_memory: bool = False,
    on_trial: Callable[[Trial, Tuner], None] | None = None,
    progress: Report | None = None,
    **given: Any,
) -> Tuned:
    """Search for good settings on a text within a time budget, and train a model with the best.

    Args:
        corpus: See `train`. The text is read once.
        time: The approximate time for everything: "30s", "10m" or "2h".
        questions: A file or files of analogy questions that score the settings; see `analogies`.
        pairs: A file or files of word pairs that score the settings; see `word_pairs`. Without questions and pairs, the
            end of the text is held out to score the settings; see GapTest.
        max_size: Try vector sizes up to this one. By default, all trials have the vector size of the settings.
        phrases, views: See `train`.
        state: A file that stores the trials. If it has trials of a run that was stopped, they are not repeated, and
            their time counts.
        ignore_memory: See `train`.
        on_trial: A function that is called after each trial.
        progress: A function that is called regularly with a `Progress` of phase "tune", which counts seconds.
        given: Settings of all trials, and arguments of read_corpus.

    Returns:
        The best settings, and the model trained with them.

    Raises:
        W2VError: See `train`; or the time is too short, or the state file belongs to another run.
        SettingsError: See `train`.
    """
    budget = TimeBudget(seconds_of(time), progress or notebook_bar())
    of_text = options_of(ReadingOptions)
    refuse_unknown(given, [*options_of(Settings), *of_text], RENAMED)
    fixed, choices = _fixed_and_choices({name: given[name] for name in given if name not in of_text}, max_size)
    config = RunConfig.from_options({**given, **fixed, "phrases": phrases, "ignore_memory": ignore_memory})
    settings = config.settings
    if settings.documents:
        raise SettingsError("documents: tune searches settings for words: leave it out")
    settings_of_views(ViewOptions(views=views).views, settings)  # raises SettingsError now, before the text is read
    questions, pairs = as_paths(questions), as_paths(pairs)
    for file in (*questions, *pairs):
        next(read_lines(file), None)  # raises W2VError if the file cannot be read
    with ExitStack() as stack:
        store, joined_phrases = read_words(Corpus(corpus), config, budget)
        stack.enter_context(store)
        vocabulary = Vocabulary.from_store(store, settings.min_count, settings.max_vocab)
        views = choose_views(views, settings, store)
        share, held_out = (1.0, None) if questions or pairs else GapTest.at_end(store, vocabulary)
        about = {name: getattr(settings, name, value) for name, value in given.items()}
        about |= {"max_size": max_size, "views": views}
        inputs = {"text": store.checksum()}
        inputs |= {"questions": checksum_of_files(questions), "pairs": checksum_of_files(pairs)}
        if settings.objective is not None:
            inputs["data of the objective"] = checksum(loss_for(settings, vocabulary).tensors, "")
        tuner = Tuner(
            fixed=fixed,
            choices=choices,
            seed=settings.seed,
            budget=budget,
            identity=identity_of(config.run_id, inputs, about),
            state=None if state is None else Path(state),
            on_trial=on_trial,
            text=ReadText(store, store, joined_phrases, seconds=budget.used),
            views=views,
            vocabulary=vocabulary,
            share=share,
            scorer=partial(score_model, questions, pairs, held_out),
            config=config,
        )
        warn_about_text(store, settings.epochs, config.text, vocabulary.words)
        log.info("tuning takes about %s", duration(max(0, budget.seconds - budget.used)))
        tuner.search()
        training = tuner.training(tuner.settings_for(tuner.best), share=1.0)
        training.train(budget)
        return tuner.result(training.model())


def _fixed_and_choices(
    given: dict[str, Any], max_size: int | None
) -> tuple[dict[str, Any], dict[str, tuple[Choice, ...]]]:
    """Return the settings of all trials, and the values to try for other settings.

    Raise SettingsError if they contradict each other.
    """
    if given.get("stop_early"):
        raise SettingsError("stop_early has no effect on tuning, which tries several numbers of epochs: leave it out")
    choices = values_to_try(given)
    if max_size is not None:
        if "vector_size" in given:
            raise SettingsError("max_size has no effect with vector_size: give one of them")
        check_numbers(max_size=max_size)
        given |= {"vector_size": max_size}
        choices["vector_size"] = tuple(max(1, round(factor * max_size)) for factor in SIZE_FACTORS)
    if given.get("objective") is not None:
        registry.find(given["objective"])  # imports the user's loss; raises SettingsError if it is missing
    return given, choices
