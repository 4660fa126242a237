"""The old module of NegativeSampling, which will be removed in version 0.3."""

import warnings

from w2v.losses.sampling import NegativeSampling as NegativeSampling

warnings.warn(
    "w2v.losses.negative_sampling is now w2v.losses.sampling: import NegativeSampling from there",
    DeprecationWarning,
    stacklevel=2,
)
