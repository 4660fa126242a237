"""The old name of w2v.losses.sampling, kept only so that imports of it work until version 0.3."""

import warnings

from w2v.losses.sampling import NegativeSampling as NegativeSampling

warnings.warn(
    "w2v.losses.negative_sampling is now w2v.losses.sampling: import NegativeSampling from there",
    DeprecationWarning,
    stacklevel=2,
)
