"""How many passes over a text training takes by default: the less text, the more."""

from __future__ import annotations

import math

from w2v.losses.loss import Loss
from w2v.losses.registry import Settings

FIXED = 5  # for the slower losses and for long texts
LONG = 100_000_000  # words
MIN, MAX = 10, 50
WORDS_FOR_MIN = {"skipgram": 1.3e6, "cbow": 6.6e6}  # bench/README.md, "Out of the box"


def epochs_for(settings: Settings, loss: Loss | type[Loss], tokens: int) -> int:
    """The epochs over a text with this many words of the vocabulary; computed if the setting is "auto".

    10 (w / tokens)^¼, between 10 and 50, with w 1.3 million for skip-gram and 6.6 million for CBOW; 5 above 100 million
    words and for losses slower than ns, nce and sampled.

    | words      | 60,000 | 200,000 | 500,000 | 1.3 million | 3 million | 6 to 100 million | more |
    |------------|--------|---------|---------|-------------|-----------|------------------|------|
    | skip-gram  |     22 |      16 |      13 |          10 |        10 |               10 |    5 |
    | CBOW       |     32 |      24 |      19 |          15 |        12 |               10 |    5 |
    """
    if settings.epochs != "auto":
        return settings.epochs
    if tokens > LONG or not loss.epochs_by_size:
        return FIXED
    return min(MAX, max(MIN, round(MIN * math.pow(WORDS_FOR_MIN[settings.model] / tokens, 1 / 4))))
