"""How much do checkpoints slow training down?

    python bench/checkpoint.py TEXT [--every 3] [--folder DIR] [--share 0.5] [--repeats 5] [--json FILE]

Skip-gram with negative sampling, 300 dimensions, all processors: training without checkpoints and with one every few
seconds, alternating. The cost of one in seconds, (with − without) / checkpoints, divided by the default interval, is
the slowdown. The pause is how long the threads wait for one, while the matrices are copied.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from common import alternate, arguments, finish, prepared, seconds, spread
from peers import BASE

from w2v.system.threads import processors
from w2v.training.checkpoint import Checkpoint, Checkpoints
from w2v.training.config import RunConfig
from w2v.training.initialisation import Initialisation
from w2v.training.run import Run
from w2v.training.schedule import DEFAULT_INTERVAL, interval


class Timed(Checkpoints):
    """Records how long the threads wait."""

    def __init__(self, folder: str, every: str) -> None:
        super().__init__(folder, every)
        self.pauses: list[float] = []

    def copy(self, state: Checkpoint) -> None:
        self.pauses.append(seconds(lambda: super(Timed, self).copy(state), time.perf_counter))


def main() -> None:
    parser = arguments(__doc__, 5, corpus=True)
    parser.add_argument("--every", type=float, default=3, help="seconds between checkpoints [%(default)s]")
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure")
    options = parser.parse_args()
    settings = replace(BASE, workers=processors())
    config = RunConfig(settings=settings)
    counts: list[int] = []
    pauses: list[float] = []
    sizes: list[int] = []
    with prepared(options.corpus, options.share, settings) as text:

        def without() -> float:
            run = Run(config, Initialisation(text.vocabulary), text.store)
            return seconds(run.train)

        def kept() -> float:
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                checkpoints = Timed(folder, f"{options.every}s")
                run = Run(config, Initialisation(text.vocabulary), text.store, checkpoints=checkpoints)
                taken = seconds(run.train)
                assert checkpoints.newest, "no checkpoint was written"
                sizes.append(checkpoints.newest.stat().st_size)
            counts.append(len(checkpoints.pauses) + 1)  # and the one at the end
            pauses.extend(checkpoints.pauses)
            return taken

        found = alternate({"without": without, "with": kept}, options.repeats)
    costs = [(b - a) / n for a, b, n in zip(found["without"], found["with"], counts, strict=True)]
    every = interval(DEFAULT_INTERVAL)[0]
    finish(
        options,
        "Checkpoints",
        f"Slowdown at the default interval, {DEFAULT_INTERVAL}: seconds of one checkpoint / {every:.0f}; goal: "
        f"below 2 %. A checkpoint has {statistics.median(sizes) / 1e6:,.0f} MB; "
        f"each run wrote {statistics.median(counts):.0f}.",
        seconds_of_training={name: spread(times) for name, times in found.items()},
        one_checkpoint={"seconds": spread(costs), "seconds of pause": spread(pauses)},
        slowdown={"per cent": spread((100 * cost / every for cost in costs), 2)},
    )


if __name__ == "__main__":
    main()
