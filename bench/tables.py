"""How fast does `w2v vocab` read a long table, and in how much memory?

    python bench/tables.py [--rows 20000000] [--repeats 3] [--other FOLDER] [--json FILE]

The table is Parquet with the columns session, item and time: whole numbers, 20 rows for each session in random order.
FOLDER has the sources of another version of w2v, which is built there; the versions run alternately, with one thread.
"""

import os
import subprocess
import sys
import tempfile
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from common import W2V, alternate, benchmark_parser, report_results, round_ratios, summarise
from pyarrow import parquet

HERE = Path(__file__).parents[1]
COLUMNS = ("--item", "item", "--session", "session", "--order", "time")


def write_table(path: Path, rows: int) -> None:
    random = np.random.default_rng(1)
    columns = {
        "session": random.integers(0, max(1, rows // 20), rows),
        "item": (100_000 * random.random(rows) ** 3).astype(np.int64),
        "time": 1_700_000_000 + random.integers(0, 10_000_000, rows),
    }
    parquet.write_table(pyarrow.table(columns), path)


def main() -> None:
    parser = benchmark_parser(__doc__, repeats=3)
    parser.add_argument("--rows", type=int, default=20_000_000, help="rows of the table [%(default)s]")
    parser.add_argument("--other", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    peaks: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        writer = get_context("spawn").Process(target=write_table, args=(path, options.rows))  # its memory would count
        writer.start()
        writer.join()

        def read(name: str, sources: Path) -> float:
            """Return the processor seconds of the command, and note its peak memory."""
            command: list[Any] = [*W2V, "vocab", path, *COLUMNS, "--workers", "1", "--quiet", "--force"]
            environment = os.environ | {"PYTHONPATH": str(sources)}
            with subprocess.Popen([*command, "-o", path.with_name("words")], cwd=sources, env=environment) as process:
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            assert process.returncode == 0, "w2v vocab failed"
            peaks.setdefault(name, []).append(usage.ru_maxrss * (1024 if sys.platform == "linux" else 1) / 1e6)
            return usage.ru_utime + usage.ru_stime

        versions = {"w2v": HERE} | ({"other": options.other} if options.other else {})
        times = alternate({name: partial(read, name, folder) for name, folder in versions.items()}, options.repeats)
    results: dict[str, Any] = {"seconds": {name: summarise(values) for name, values in times.items()}}
    if options.other:
        results["ratio"] = {"other / w2v": summarise(round_ratios(times["other"], times["w2v"]), goal=2)}
    results["MB"] = {name: summarise(values) for name, values in peaks.items()}
    report_results(options, "Long tables", f"{options.rows:,} rows; processor seconds of w2v vocab", **results)


if __name__ == "__main__":
    main()
