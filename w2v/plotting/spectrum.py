"""The singular values of what a model predicts, as a picture."""

import numpy as np

from w2v.evaluation.rank import Rank
from w2v.plotting.figure import COLOURS, Picture, set_title


def spectrum(result: Rank, name: str) -> Picture:
    """The singular values relative to the first, with the rank and the limit of the loss; `name` is the title."""
    picture = Picture(6, 4)
    axes = picture.subplots()
    values = np.array(result.singular_values)
    axes.semilogy(np.arange(1, len(values) + 1), values / values[0], color=COLOURS[0])
    if result.max_rank is not None:
        axes.axvline(result.max_rank, color="grey", linestyle=":", label=f"limit of the loss: {result.max_rank:,}")
    axes.axvline(result.rank, color=COLOURS[3], linestyle="--", label=f"rank {result.rank:,}")
    set_title(axes, name)
    axes.set(xlabel="singular value", ylabel="relative to the first")
    axes.legend()
    return picture
