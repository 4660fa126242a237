"""The views of a model: when there are two, and the settings of each. `Training` trains them one after the other.

A model has one view, of whole words or of n-grams, or two views.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from w2v._errors import SettingsError
from w2v._formats.vector_file import SUBWORD_VIEW, WORD_VIEW
from w2v._losses.registry import DEFAULT_LOSS, Settings
from w2v._settings import DEFAULT_NGRAMS, Views
from w2v._text.idstore import TypeCounts
from w2v._text.text_checks import has_word_parts

# The values of the option `views` besides "auto". The names of the views themselves are WORD_VIEW and SUBWORD_VIEW.
ONE_VIEW: Views = "words"
TWO_VIEWS: Views = "words+subwords"
# Two views are better than one for this many words of text, and vectors of at least this many values. Longer vectors
# leave enough values to the view of words for the meanings of more words (bench/README.md, "Two views in one vector").
MIN_WORDS, MAX_WORDS, MIN_VECTOR_SIZE = 300_000, 5_000_000, 100
MAX_WORDS_LONG, LONG_VECTOR_SIZE = 25_000_000, 200
SUBWORD_VIEW_WINDOW = 15  # the best window of CBOW for the view of subwords (bench/README.md)

log = logging.getLogger("w2v")


def choose_views(views: Views, settings: Settings, types: TypeCounts) -> Views:
    """Return the views of a new run: for "auto", two for the texts that measured better so, and else one.

    Two views are chosen only for CBOW with negative sampling, for a text of words and not of identifiers or short
    words, and if the user leaves window, vectors and subwords to w2v. The log tells the user.

    Args:
        views: The option `views`.
        settings: The settings of the run.
        types: The types of the whole text.
    """
    if views != "auto":
        return views
    most = MAX_WORDS_LONG if settings.vector_size >= LONG_VECTOR_SIZE else MAX_WORDS
    is_default = (settings.model, settings.loss) == ("cbow", DEFAULT_LOSS)
    is_default = is_default and settings.window is settings.vectors is settings.subwords is settings.documents is None
    is_measured = settings.vector_size >= MIN_VECTOR_SIZE and MIN_WORDS <= types.tokens <= most
    if not (types.is_text and is_default and is_measured and has_word_parts(types, DEFAULT_NGRAMS[0])):
        return ONE_VIEW
    log.info(
        "a text of %s words is best learnt by two models, of words and of subwords: training both; --views words "
        "(views=) trains one",
        f"{types.tokens:,}",
    )
    return TWO_VIEWS


def settings_of_views(views: Views, settings: Settings) -> dict[str, Settings]:
    """Return the settings of the run of each view, by name.

    Args:
        views: The option `views`; "auto" counts as one view.
        settings: The settings that the views share. Two views divide vector_size.

    Raises:
        SettingsError: The settings of a view contradict each other.
    """
    if views != TWO_VIEWS:
        return {WORD_VIEW: settings}
    size = settings.vector_size
    if settings.documents:
        raise SettingsError(f"views {views}: with documents, a model has one view: leave it out")
    if size < 2:
        raise SettingsError(f"vector_size {size}: views {views} needs at least 2 values, one for each view")
    window = settings.window
    if window is None and settings.model == "cbow":
        window = SUBWORD_VIEW_WINDOW
    ngrams = settings.subwords or DEFAULT_NGRAMS
    return {
        WORD_VIEW: replace(settings, vector_size=size - size // 2, subwords=None),
        SUBWORD_VIEW: replace(settings, vector_size=size // 2, subwords=ngrams, vectors="input", window=window),
    }


def whole_settings(views: Sequence[Settings]) -> Settings:
    """Return the settings of a run from the settings of its views, which begin with the view of words."""
    first, *others = views
    if not others:
        return first
    size = sum(each.vector_size for each in views)
    return replace(first, vector_size=size, window=first.window if others[0].window == first.window else None)


def settings_to_repeat(views: Sequence[Settings]) -> Settings:
    """Return the settings that train such views again, as `whole_settings`, without computed values."""
    whole = settings = whole_settings(views)
    for name in ("min_alpha", "alpha", "window", "vectors", "workers"):
        with suppress(SettingsError):  # the default of alpha may be below the min_alpha of the settings
            left_out: dict[str, Any] = {name: None}
            if (found := replace(settings, **left_out)).as_dict() == settings.as_dict():
                settings = found
    if len(views) == 1:
        return settings
    # A window of both views is not the default of one of them, even if it has the same size.
    return replace(settings, window=whole.window, subwords=views[1].subwords)
