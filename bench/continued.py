"""What a continued model forgets: the share of held-out words of the first text and of the second that it predicts.

A model of one part of a text is continued on another part, with several learning rates and numbers of epochs.
"""

import argparse
import itertools
import tempfile
from pathlib import Path
from typing import Any

import w2v

HELD_OUT = 100_000  # words at the end of each part
RUNS: tuple[dict[str, Any], ...] = (
    {},
    *({"alpha": alpha, "epochs": epochs} for alpha in (0.005, 0.01, 0.02, 0.05) for epochs in ("auto", 2)),
)


def write_part(path: Path, words: list[str]) -> str:
    """Write words to a file, 1,000 on each line, and return its path."""
    path.write_text(
        "\n".join(map(" ".join, (words[start : start + 1000] for start in range(0, len(words), 1000)))) + "\n"
    )
    return str(path)


def main() -> None:
    """Train, continue with each setting, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("--first", type=int, default=1_000_000, help="words of the first text")
    parser.add_argument("--second", type=int, default=100_000, help="words of the second text")
    parser.add_argument("--model", default="skipgram")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    with Path(given.corpus).open() as file:
        words = file.read(8 * (given.first + given.second + 2 * HELD_OUT)).split()
    bounds = list(itertools.accumulate((0, given.first, HELD_OUT, given.second, HELD_OUT)))
    parts = [words[start:end] for start, end in itertools.pairwise(bounds)]
    with tempfile.TemporaryDirectory() as folder:
        first, old, second, new = (write_part(Path(folder, f"{n}.txt"), part) for n, part in enumerate(parts))
        model = w2v.train(first, model=given.model, views="words", workers=given.workers)
        runs = [w2v.train(second, continue_from=model, vocab="union", workers=given.workers, **run) for run in RUNS]
        print("| settings | first text | second text | questions |\n|---|---:|---:|---:|")
        names = ["the first model", *(", ".join(f"{k} {v}" for k, v in run.items()) or "defaults" for run in RUNS)]
        results = [w2v.evaluate(model, *runs, held_out=text) for text in (old, new)]
        columns = [results[0][-1], results[1][-1], results[0][0]]
        for row, name in enumerate(names):
            print(f"| {name} | " + " | ".join(f"{100 * (each.scores[row].value or 0):.1f}" for each in columns) + " |")


if __name__ == "__main__":
    main()
