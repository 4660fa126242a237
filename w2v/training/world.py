"""The old name of w2v.training.communicator; this module will be removed after one version."""

from __future__ import annotations

import warnings

from w2v.training.communicator import join_ranks as join

__all__ = ["join"]

warnings.warn("w2v.training.world.join is now w2v.training.communicator.join_ranks", DeprecationWarning, stacklevel=2)
