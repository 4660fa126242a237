"""`tune`: search for good settings of word vectors on a text within a time budget, then train with the best.

In each bracket of the search, nine candidates are trained briefly, the best three of them three times as long, and the
best one of these three times as long again. If there is time, candidates are trained with several seeds instead,
because on little text the seeds matter more than the settings.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from statistics import mean
from typing import Any

from w2v.detect import read_lines
from w2v.errors import SettingsError, W2VError
from w2v.evaluation.analogies import analogies
from w2v.evaluation.held_out import GapTest
from w2v.evaluation.similarity import word_pairs
from w2v.losses import registry
from w2v.losses.registry import Settings, loss_for
from w2v.options import check_numbers, options_of, refuse_unknown
from w2v.progress import Report, duration, notebook_bar
from w2v.settings import RENAMED, ViewOptions, Views
from w2v.system.files import PathLike, as_paths
from w2v.text.corpus import Corpus, Source
from w2v.text.idstore import ReadingOptions
from w2v.text.text_checks import warn_about_text
from w2v.text.vocabulary import Vocabulary
from w2v.training.checkpoint import checksum
from w2v.training.config import RunConfig
from w2v.training.identity import checksum_of_files, identity_of
from w2v.training.reading import ReadText, read_words
from w2v.training.schedule import epochs_for
from w2v.training.search import ETA, Choice, Choices, Search, TimeBudget, Trial, Tuned, seconds_of
from w2v.training.train import Training, start_runs
from w2v.training.views import choose_views, settings_of_views
from w2v.vectors.keyed import HasWordVectors

log = logging.getLogger("w2v")

READING_NAMES = {each.name for each in fields(ReadingOptions)}  # the arguments of read_corpus

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


@dataclass(frozen=True)
class Scorer:
    """A function that scores a model.

    The score is the mean of the accuracies on analogy questions and the rank correlations with word pairs, or the score
    on held-out text.

    Attributes:
        questions: Files of analogy questions.
        pairs: Files of word pairs.
        held_out: The held-out text to use instead, if there is any.
    """

    questions: Sequence[PathLike]
    pairs: Sequence[PathLike]
    held_out: GapTest | None

    def __call__(self, model: HasWordVectors) -> float:
        """Return the score of a model.

        Raises:
            W2VError: A file has too few words of the vocabulary.
        """
        if self.held_out:
            return self.held_out.score(model.wv.vectors)
        scores = [(file, analogies(model.wv, file).accuracy) for file in self.questions]
        scores += [(file, word_pairs(model.wv, file).spearman) for file in self.pairs]
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
    refuse_unknown(given, [*options_of(Settings), *READING_NAMES], RENAMED)
    fixed, choices = _fixed_and_choices({name: given[name] for name in given if name not in READING_NAMES}, max_size)
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
            scorer=Scorer(questions, pairs, held_out),
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
