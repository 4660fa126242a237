"""The former place of NegativeSampling, which version 0.3 will remove."""

import warnings

from w2v.losses.sampling import NegativeSampling as NegativeSampling

warnings.warn(
    "w2v.losses.negative_sampling is now w2v.losses.sampling: import NegativeSampling from there",
    DeprecationWarning,
    stacklevel=2,
)
