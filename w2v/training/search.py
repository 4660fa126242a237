"""`Search`: look for the best settings within a time budget. `tune` and `tune_classifier` say what is trained.

The search is successive halving (Jamieson & Talwalkar 2016). It runs in brackets, as in Hyperband (Li et al. 2018). In
each bracket, candidates are trained with few resources, and the best third of them with more, until one is left. A
resource is one number: below 1, the share of the epochs to train; 1 or more, the number of trainings to average over,
each with another seed, or on another part of the texts. The candidates of a bracket are drawn near the best settings so
far, which are the defaults at first. The winner of a bracket replaces them if its score is higher.
"""

from __future__ import annotations

import json
import math
import time as clock
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from w2v.display import Result
from w2v.errors import Diverged, SettingsError, W2VError
from w2v.progress import Progress, Report
from w2v.training.identity import Identity, State, read_state, write_state
from w2v.training.schedule import interval

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
