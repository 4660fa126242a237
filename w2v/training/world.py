"""The old name of w2v.training.communicator, for one version."""

from __future__ import annotations

import warnings

from w2v.training.communicator import Communicator, join_ranks


def join() -> Communicator | None:
    """Call `join_ranks` of w2v.training.communicator, with a DeprecationWarning."""
    warnings.warn(
        "w2v.training.world.join is now w2v.training.communicator.join_ranks", DeprecationWarning, stacklevel=2
    )
    return join_ranks()
