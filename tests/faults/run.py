"""The long run: all of tests/faults, and a table of what was tried, how often, and what came of it.

    python tests/faults/run.py --kills 1000 --fuzz 60 [--markdown FILE]

A row that says "none" in the last column is what is promised: no committed checkpoint lost, the old model or a whole
new one there, the same vectors in the end, one clear line otherwise. The program ends with the first thing lost.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.faults import injection  # noqa: E402

Row = tuple[str, str, str, str]


def injected(kills: int) -> list[Row]:
    rows = []
    for name, what in injection.SCENARIOS.items():
        with tempfile.TemporaryDirectory() as folder:
            command = injection.preloaded(
                Path(folder), name, str(kills if name in ("random", "signals") else 1), str(int(time.time()))
            )
            done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{what}:\n{done.stderr}")
        said = done.stdout.strip()
        rows.append((what, str(sum(map(int, re.findall(r"\d+", said)))), said, "none"))
        print(*rows[-1], sep=": ", flush=True)
    return rows


def workers(text: Path) -> list[Row]:
    """Whether every token is trained once an epoch, and how far the loss is from that of one worker."""
    import w2v

    rows = []
    for count in (1, 2, 4, 16, 64):
        trained = w2v.train(text, workers=count, epochs=3, vector_size=50)
        metrics = trained.metrics
        if metrics["tokens_trained"] != 3 * metrics["tokens"]:
            raise SystemExit(f"{count} workers trained {metrics['tokens_trained']} tokens, not 3 × {metrics['tokens']}")
        losses = [round(loss, 3) for loss in metrics["loss"]]
        rows.append(
            (f"{count} workers: tokens trained, loss by epoch", "1", f"{metrics['tokens_trained']}, {losses}", "none")
        )
        print(*rows[-1], sep=": ", flush=True)
    losses = [float(row[2].split(",")[-1].strip(" ]")) for row in rows]
    if max(losses) > 1.05 * min(losses):
        raise SystemExit(f"the last loss depends on the number of workers: {losses}")
    return rows


def fuzzed(seconds: int) -> list[Row]:
    rows = []
    command = [sys.executable, str(ROOT / "tests/faults/fuzz.py"), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    for line in done.stdout.splitlines():
        metrics = json.loads(line)
        if metrics["code"]:
            raise SystemExit(f"fuzzing found {metrics['found']}\n{done.stderr}")
        executions = metrics["number_of_executed_units"]
        rows.append(
            (f"any bytes to the loader: {metrics['loader']}, {seconds} s", executions, "loaded or refused", "none")
        )
        print(*rows[-1], sep=": ", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--fuzz", type=int, default=60, help="seconds for each loader; 0: none")
    parser.add_argument("--text", type=Path, help="to train with many workers; by default the sample corpus")
    parser.add_argument("--markdown", type=Path, help="write the table here")
    given = parser.parse_args()
    rows = injected(given.kills)
    with tempfile.TemporaryDirectory() as folder:
        text = given.text or Path(folder, "text")
        if not given.text:
            from w2v.data import make

            text.write_text("".join(make.corpus(300_000, seed=1)), "utf-8")
        rows += workers(text)
    rows += fuzzed(given.fuzz) if given.fuzz else []
    lines = ["| what | times | what came of it | lost |", "|---|---|---|---|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    print("\n".join(lines))
    if given.markdown:
        given.markdown.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
