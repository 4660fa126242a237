"""`compare_losses`: train a text with each loss, at equal settings, and compare time, perplexity and scores."""

from __future__ import annotations

import logging
import math
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from w2v._errors import Diverged, SettingsError
from w2v._evaluation.analogies import analogies
from w2v._evaluation.held_out import GapTest
from w2v._formats.vector_file import WORD_VIEW
from w2v._kernel.kernels import numba_kernel
from w2v._losses.full_softmax import OneVsAll
from w2v._losses.registry import LOSSES, Settings, loss_for
from w2v._options import options_of, refuse_unknown, suggestion
from w2v._progress import Progress, Report, notebook_bar
from w2v._settings import RENAMED
from w2v._system.files import PathLike, temporary_folder
from w2v._text.corpus import Corpus, Source
from w2v._text.idstore import ReadingOptions
from w2v._text.text_checks import warn_about_text
from w2v._text.vocabulary import Vocabulary
from w2v._training.config import RunConfig
from w2v._training.model import View
from w2v._training.perplexity import perplexity_of_ids
from w2v._training.reading import ReadText, read_words
from w2v._training.schedule import FEW_EPOCHS
from w2v._training.train import start_runs

log = logging.getLogger("w2v")

WORD_LOSSES = ",".join(name for name in LOSSES if name != OneVsAll.name)  # one-vs-all is for labels
# Defaults that would otherwise depend on the loss. Each loss keeps its best alpha.
EQUAL_SETTINGS: dict[str, Any] = {"vectors": "input", "epochs": FEW_EPOCHS}


def compare_losses(
    corpus: Source,
    *,
    losses: str = WORD_LOSSES,
    questions: PathLike | None = None,
    progress: Report | None = None,
    **given: Any,
) -> dict[str, Any]:
    """Train a text with each loss, at equal settings, and compare the models on the end of the text.

    Args:
        corpus: See `train`. The text is read once, and all models have the same words.
        losses: The names of the losses, divided by commas.
        questions: The analogy questions; see `analogies`.
        progress: See `train`. The field `view` of a report is the loss.
        given: The settings of all models, and arguments of read_corpus. A setting that only some losses have is used
            with these. By default, word vectors are the input rows, and there are 5 epochs.

    Returns:
        "losses", a dictionary for each loss: its name, "alpha", the "seconds" of the training, the "perplexity" (see
        Perplexity) and "gaps" (see GapTest) of the end of the text, which was held out, and the "accuracy" on the
        questions, None if no question has only words of the model. Then what all models share: "vocabulary_size",
        which is the perplexity of a guess among all words, "unigram_perplexity" and "epochs".

    Raises:
        W2VError: See `train`.
        SettingsError: See `train`; before the first training.
    """
    settings = (name for name in options_of(Settings) if name != "documents")
    refuse_unknown(given, [*settings, *options_of(ReadingOptions)], RENAMED)
    names = losses.split(",")
    for name in names:
        if name not in (known := WORD_LOSSES.split(",")):
            raise SettingsError(f"losses has no loss {name[:60]!r}: {suggestion(name, known)}")
    if len({*names}) < len(names):
        raise SettingsError(f"losses {losses[:60]!r}: a loss appears twice")
    runs = [RunConfig.from_options({**EQUAL_SETTINGS, **given, "loss": loss}) for loss in names]
    reported, config = progress or notebook_bar(), runs[0]
    with ExitStack() as stack:
        store, _ = read_words(Corpus(corpus), config, reported)
        stack.enter_context(store)
        vocabulary = Vocabulary.from_store(store, config.settings.min_count, config.settings.max_vocab)
        share, gaps = GapTest.at_end(store, vocabulary)
        for run in runs:
            loss_for(run.settings, vocabulary)
            if run.settings.kernel == "numba":
                numba_kernel()
        warn_about_text(store, config.settings.epochs, config.text, vocabulary.words)
        text, folder, found = ReadText(store, store), temporary_folder(config.reading.cache), list[dict[str, Any]]()
        for run in runs:
            try:
                view = _trained(run, text, share, vocabulary, reported)
            except Diverged as error:
                log.warning("loss %s is left out: %s", run.settings.loss, error)
                continue
            result = perplexity_of_ids(view, store, folder, math.ceil(share * len(store.ids)), reported)
            found.append(
                {
                    "loss": run.settings.loss,
                    "alpha": run.settings.start_alpha,
                    "seconds": view.metrics["seconds"]["train"],
                    "perplexity": result.perplexity,
                    "gaps": gaps.score(view.wv.vectors),
                    "accuracy": analogies(view.wv, questions).accuracy,
                }
            )
    if not found:
        raise Diverged("training diverged with every loss: lower alpha")
    shared = {"vocabulary_size": len(vocabulary), "unigram_perplexity": result.unigram_perplexity}
    return {"losses": found, **shared, "epochs": view.settings.epochs}


def _trained(config: RunConfig, text: ReadText, share: float, vocabulary: Vocabulary, report: Report | None) -> View:
    """Train a model on the first `share` of a text, and report its loss as the view."""

    def report_loss(progress: Progress) -> None:
        if report:
            report(replace(progress, view=config.settings.loss))

    settings = {WORD_VIEW: config.settings}
    (run,) = start_runs(config, settings, text, share=share, vocabulary=vocabulary).values()
    run.train(report_loss)
    return run.view()
