"""Successive halving: search for the settings with the highest score within a time limit.

The search (Jamieson & Talwalkar 2016) runs in brackets, as in Hyperband (Li et al. 2018). In each bracket, nine
candidates are trained briefly, the best three of them three times as long, and the best one of these three times as
long again. How much a candidate is trained is one number, its resource: below 1, the share of the epochs to train; 1 or
more, the number of seeds to average over, because on little text the seeds matter more than the settings. The
candidates of a bracket are drawn near the best settings so far, which are the defaults at first. The winner of a
bracket replaces them if its score is higher.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from statistics import mean
from typing import Any

import numpy as np

from w2v.errors import Diverged, SettingsError, W2VError
from w2v.losses.registry import Settings
from w2v.progress import Progress, Report
from w2v.settings import Views
from w2v.text.vocabulary import Vocabulary
from w2v.training.config import RunConfig
from w2v.training.inputs import Inputs
from w2v.training.schedule import epochs_for
from w2v.training.training import Training, start_runs
from w2v.training.views import settings_of_views
from w2v.vectors.keyed import HasWordVectors

ETA = 3  # the best third of the candidates continues, with three times the resource
CANDIDATES = ETA**2  # per bracket
SEEDS = (1, ETA, ETA**2)  # numbers of seeds over which scores may be averaged
MIN_BRACKETS = 3  # more seeds are used only if this many brackets fit into the time
KEEP_PROBABILITY = 0.75  # probability that a candidate keeps the best value of a setting
MAX_DRAWS = 100 * CANDIDATES  # per bracket; if they give no new candidate, all candidates count as tried
MIN_TRAININGS = 3  # this many trainings with the defaults must fit into the time
PROBE_SHARE = 0.02  # share of the first training after which its duration is estimated

Choice = str | float | None
Choices = dict[str, Choice]

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


@dataclass(frozen=True)
class Trial:
    """One training with candidate settings, and its score.

    Attributes:
        choices: The values tried, by setting. All other settings have their defaults.
        share: The share of the epochs that was trained.
        seed: See Settings.
        score: The score of the model; None if training diverged.
        seconds: The time spent on training and scoring.
    """

    choices: Choices
    share: float
    seed: int
    score: float | None
    seconds: float


def values_to_try(given: Mapping[str, Any]) -> dict[str, tuple[Choice, ...]]:
    """Return the values to try for the settings that are not given."""
    decided = {"loss"} if given.get("objective") is not None else set()  # an objective decides the loss
    return {name: values for name, values in CHOICES.items() if name not in given.keys() | decided}


class _TimeIsUp(Exception):
    """Ends the search, to leave enough time for the last training."""


@dataclass
class TimeBudget:
    """The time limit of the whole tuning. It reports the elapsed time whenever a step of the work reports progress.

    Attributes:
        seconds: The time limit.
        report: A function that receives the progress.
        score: The best score so far.
        started: The start by time.monotonic(). For a resumed run it is earlier, by the time of the stored trials.
    """

    seconds: float
    report: Report | None = None
    score: float | None = None
    started: float = field(default_factory=time.monotonic)

    @property
    def used(self) -> float:
        """The elapsed seconds."""
        return time.monotonic() - self.started

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


@dataclass
class Tuner:
    """A search for the best settings.

    Attributes:
        inputs: The text.
        views: The views of the model.
        vocabulary: The words of the text.
        share: The share of the text, from its start, that trials are trained on.
        fixed: The settings of all trials.
        choices: The values to try for other settings.
        scorer: A function that scores a model.
        budget: The time limit.
        save: A function that is called after each trial.
        config: The config of all trials, with default settings.
        trials: The trials so far. They are not repeated.
        best: The choices with the highest score.
        score: The score of these choices.
        default_score: The score of the default settings.
    """

    inputs: Inputs
    views: Views
    vocabulary: Vocabulary
    share: float
    fixed: Mapping[str, Any]
    choices: Mapping[str, tuple[Choice, ...]]
    scorer: Callable[[HasWordVectors], float]
    budget: TimeBudget
    save: Callable[[Trial, Tuner], None]
    config: RunConfig
    trials: list[Trial] = field(default_factory=list)
    best: Choices = field(default_factory=dict)
    score: float = -np.inf
    default_score: float = -np.inf

    def search(self) -> None:
        """Run brackets until the time is up or all candidates are tried."""
        default = self._trial({}, 1.0, self.settings_for({}).seed)
        self.score = self.default_score = _score_or_lowest(default.score)
        # A bracket with one seed costs as much as ETA full trainings: 9 × 1/9 + 3 × 1/3 + 1 × 1.
        cost = MIN_BRACKETS * ETA * default.seconds
        max_seeds = max(seeds for seeds in SEEDS if seeds == 1 or seeds * cost <= self.budget.seconds)
        with suppress(_TimeIsUp):
            self.score = self.default_score = self._mean_score({}, max_seeds)
            for candidates in self._brackets():
                for resource in (max_seeds / ETA**2, max_seeds / ETA, max_seeds):
                    scores = [self._mean_score(choices, resource) for choices in candidates]
                    order = np.argsort(scores)[::-1]
                    candidates = [candidates[index] for index in order[: -(-len(order) // ETA)]]
                if max(scores) > self.score:
                    self.best, self.score = candidates[0], max(scores)

    def _brackets(self) -> Iterator[list[Choices]]:
        """Yield the candidates of each bracket, all of them different, until no new candidate is left."""
        random, seen = np.random.default_rng(self.settings_for({}).seed), {self._identity({})}
        while candidates := list(islice(self._draw(random, seen), CANDIDATES)):
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
        return Training(start_runs(self.config, settings_by_view, self.inputs, share=share, vocabulary=self.vocabulary))

    def changed(self, choices: Choices) -> dict[str, Any]:
        """Return the choices that differ from their defaults, given all other settings."""
        chosen = self.settings_for(choices).in_effect()

        def default(name: str) -> Any:
            rest = {other: choice for other, choice in choices.items() if other != name}
            return self.settings_for(rest).in_effect().get(name)

        return {name: chosen[name] for name in choices if name in chosen and chosen[name] != default(name)}

    def _identity(self, choices: Choices) -> str:
        """Return a text that is equal for choices with the same effect."""
        return json.dumps(self.settings_for(choices).in_effect(), default=str)

    def _mean_score(self, choices: Choices, resource: float) -> float:
        """Return the mean score over `resource` seeds, or, if `resource` is below 1, for this share of the epochs."""
        first = self.settings_for(choices).seed
        seeds = range(first, first + max(1, round(resource)))
        return mean(_score_or_lowest(self._trial(choices, min(1.0, resource), seed).score) for seed in seeds)

    def _trial(self, choices: Choices, share: float, seed: int) -> Trial:
        """Train with this share of the epochs, and score the model. Raise _TimeIsUp if time is running out."""
        for trial in self.trials:
            if (trial.choices, trial.share, trial.seed) == (choices, share, seed):
                return trial
        started, score = time.monotonic(), None
        settings = replace(self.settings_for(choices), seed=seed)
        epochs = share * int(settings.epochs)
        settings = replace(settings, epochs=max(1, round(epochs)))
        text_share = self.share * min(1.0, epochs)
        training = self.training(settings, text_share)
        with suppress(Diverged):
            training.train(self._report)
            score = self.scorer(training.model())
        trial = Trial(choices, share, seed, score, time.monotonic() - started)
        self.trials.append(trial)
        self.save(trial, self)
        return trial

    def _report(self, progress: Progress) -> None:
        """Report the elapsed time.

        Raise _TimeIsUp if the remaining time is needed to train with the best settings at the end. Raise W2VError if
        the first training shows that the time is too short.
        """
        best_seconds = [trial.seconds for trial in self.trials if trial.choices == self.best and trial.share == 1]
        left = self.budget.seconds - self.budget.used - max(best_seconds, default=0.0)
        if best_seconds and left < 0:
            raise _TimeIsUp
        if not self.trials and progress.rate and progress.total and progress.done > PROBE_SHARE * progress.total:
            training_seconds = progress.total / progress.rate
            if training_seconds * MIN_TRAININGS > left:
                minutes = math.ceil(2 * MIN_TRAININGS * training_seconds / 60)
                raise W2VError(
                    f"training takes about {training_seconds:,.0f} s with the default settings, and tuning needs "
                    f'several times as long: give --time {minutes}m (time="{minutes}m") or more'
                )
        self.budget.score = self.score if self.trials else None
        self.budget()


def _score_or_lowest(score: float | None) -> float:
    return -np.inf if score is None else score
