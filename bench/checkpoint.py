"""How much do checkpoints slow training?

    python bench/checkpoint.py TEXT [--every 3] [--folder DIR] [--share 0.5] [--repeats 5] [--json FILE]

Skip-gram with negative sampling, 300 dimensions, all processors. Training without checkpoints alternates with training
that writes one every few seconds. The cost of one checkpoint is (seconds with − seconds without) / checkpoints. Divided
by the default interval, this cost is the slowdown. The pause is how long the threads wait for a checkpoint, while the
matrices are copied.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from common import alternate, benchmark_parser, prepared, report_results, summarise, time_call
from peers import BASE

from w2v._system.threads import processors
from w2v._training.checkpoint import Checkpoint
from w2v._training.checkpoint_folder import CheckpointFolder
from w2v._training.config import RunConfig
from w2v._training.reading import ReadText
from w2v._training.run import Run
from w2v._training.schedule import DEFAULT_INTERVAL, interval
from w2v._training.start import Initialisation


class TimedCheckpointFolder(CheckpointFolder):
    """A checkpoint folder that records how long the threads wait for each checkpoint."""

    def __init__(self, folder: str, every: str) -> None:
        super().__init__(folder, every)
        self.pauses: list[float] = []

    def copy(self, checkpoint: Checkpoint) -> None:
        self.pauses.append(time_call(lambda: super(TimedCheckpointFolder, self).copy(checkpoint), time.perf_counter))


def main() -> None:
    parser = benchmark_parser(__doc__, 5, corpus=True)
    parser.add_argument("--every", type=float, default=3, help="seconds between checkpoints [%(default)s]")
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure")
    options = parser.parse_args()
    settings = replace(BASE, workers=processors())
    config = RunConfig(settings=settings)
    counts: list[int] = []
    pauses: list[float] = []
    sizes: list[int] = []
    with prepared(options.corpus, options.share, settings) as text:

        def train() -> float:
            run = Run(config, Initialisation(text.vocabulary), ReadText(text.store, text.store))
            return time_call(run.train)

        def train_with_checkpoints() -> float:
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                checkpoints = TimedCheckpointFolder(folder, f"{options.every}s")
                run = Run(
                    config,
                    Initialisation(text.vocabulary),
                    ReadText(text.store, text.store),
                    checkpoint_folder=checkpoints,
                )
                duration = time_call(run.train)
                newest = checkpoints.wait_for_newest()
                assert newest, "no checkpoint was written"
                sizes.append(newest.stat().st_size)
            counts.append(len(checkpoints.pauses) + 1)  # one more is written at the end
            pauses.extend(checkpoints.pauses)
            return duration

        times = alternate({"without": train, "with": train_with_checkpoints}, options.repeats)
    if not pauses:
        sys.exit("no checkpoint was written during training: use more text, or a smaller --every")
    costs = [(slow - fast) / count for fast, slow, count in zip(times["without"], times["with"], counts, strict=True)]
    every = interval(DEFAULT_INTERVAL)[0]
    report_results(
        options,
        "Checkpoints",
        f"Slowdown at the default interval, {DEFAULT_INTERVAL}: seconds of one checkpoint / {every:.0f}; goal: "
        f"below 2 %. A checkpoint has {statistics.median(sizes) / 1e6:,.0f} MB; "
        f"each run wrote {statistics.median(counts):.0f}.",
        seconds_of_training={name: summarise(values) for name, values in times.items()},
        one_checkpoint={"seconds": summarise(costs), "seconds of pause": summarise(pauses)},
        slowdown={"per cent": summarise((100 * cost / every for cost in costs), 2)},
    )


if __name__ == "__main__":
    main()
