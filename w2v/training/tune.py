"""`tune`: search for good settings on a text within a time budget, then train with the best."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from w2v.detect import read_lines
from w2v.display import Result
from w2v.errors import SettingsError, W2VError
from w2v.evaluation.analogies import analogies
from w2v.evaluation.held_out import GapTest
from w2v.evaluation.similarity import word_pairs
from w2v.losses import registry
from w2v.losses.registry import Settings, loss_for
from w2v.options import check_numbers, options_of, refuse_unknown
from w2v.progress import Report, duration, notebook_bar
from w2v.settings import RENAMED, ViewOptions, Views
from w2v.system.files import PathLike, as_paths, atomic_write, translate_os_errors
from w2v.system.schema import encode, read
from w2v.text.corpus import Corpus, Source
from w2v.text.idstore import ReadingOptions
from w2v.text.text_checks import warn_about_text
from w2v.text.vocabulary import Vocabulary
from w2v.training.checkpoint import checksum
from w2v.training.config import RunConfig
from w2v.training.identity import Identity, check_identity, checksum_of_files, identity_of
from w2v.training.inputs import Inputs, read_words
from w2v.training.model import Model
from w2v.training.schedule import interval
from w2v.training.successive_halving import SIZE_FACTORS, Choice, TimeBudget, Trial, Tuner, values_to_try
from w2v.training.views import choose_views, settings_of_views
from w2v.vectors.keyed import HasWordVectors

log = logging.getLogger("w2v")

READING_NAMES = {each.name for each in fields(ReadingOptions)}  # the arguments of read_corpus


@dataclass(frozen=True)
class TuningState:
    """The content of a state file. The names of the attributes are the keys of the file.

    Attributes:
        identity: The identity of the search, with all values that the scores depend on.
        trials: The trials so far.
    """

    identity: Identity
    trials: list[Trial] = field(default_factory=list)


@dataclass(frozen=True)
class Tuned(Result):
    """The result of `tune`.

    Attributes:
        model: A model trained on the whole text with the best settings.
        changed: The settings that differ from the defaults.
        score: The score of the best settings.
        default_score: The score of the default settings, with the same seeds.
        trials: The number of trials.
        seconds: The time spent on all trials.
    """

    model: Model
    changed: dict[str, Any]
    score: float
    default_score: float
    trials: int
    seconds: float


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
        stored = _read_state(state, identity_of(config.run_id, inputs, about))
        inputs_of_runs = Inputs(store, store, joined_phrases, seconds=budget.used)
        budget.started -= sum(trial.seconds for trial in stored.trials)  # the time of earlier trials counts
        log.info("tuning takes about %s", duration(max(0, budget.seconds - budget.used)))
        tuner = Tuner(
            inputs=inputs_of_runs,
            views=views,
            vocabulary=vocabulary,
            share=share,
            fixed=fixed,
            choices=choices,
            scorer=Scorer(questions, pairs, held_out),
            budget=budget,
            save=partial(_save_trial, state, stored, on_trial),
            config=config,
            trials=list(stored.trials),
        )
        warn_about_text(store, settings.epochs, config.text, vocabulary.words)
        tuner.search()
        training = tuner.training(tuner.settings_for(tuner.best), share=1.0)
        training.train(budget)
        model = training.model()
    budget.end()
    return Tuned(
        model=model,
        changed=tuner.changed(tuner.best),
        score=tuner.score,
        default_score=tuner.default_score,
        trials=len(tuner.trials),
        seconds=sum(trial.seconds for trial in tuner.trials),
    )


def _save_trial(
    path: PathLike | None,
    stored: TuningState,
    on_trial: Callable[[Trial, Tuner], None] | None,
    trial: Trial,
    tuner: Tuner,
) -> None:
    """Write all trials to the state file, and report the last one."""
    if path is not None:
        with atomic_write(path) as file:
            file.write(encode(replace(stored, trials=tuner.trials), path).encode())
    if on_trial:
        on_trial(trial, tuner)


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


def seconds_of(time: str) -> float:
    """Return the seconds of a time such as 30s, 10m or 2h.

    Raises:
        SettingsError: The time is not valid.
    """
    with suppress(SettingsError):
        if seconds := interval(time).seconds:
            return seconds
    raise SettingsError(f"time {time!r}: it must be a number with s, m or h, like 10m")


def _read_state(path: PathLike | None, identity: Identity) -> TuningState:
    """Read a state file, or return a new state if there is none. Raise W2VError if it is damaged or of another run."""
    with translate_os_errors(path or ""):
        if path is None or not Path(path).exists():
            return TuningState(identity)
    stored = read(TuningState, Path(path))
    expected = replace(identity, run_id=stored.identity.run_id)
    check_identity(
        path, stored.identity, expected, "give the same files and options again, or start again with --force"
    )
    return stored
