"""Compare training on pairs with training on the windows they come from, and with word2vecf.

    python bench/pairs.py TEXT --questions FILE --similar FILE --related FILE --word2vecf FOLDER

Each word of TEXT is paired with the words at most two places away. The pairs are trained as they are, and with the
position in the name of the context (word_-1), which Levy and Goldberg (2014) report to favour words of the same
function: then the correlation with --similar (SimLex-999) rises relative to the one with --related (WordSim-353).
All runs have one thread, because threads of other programs would change the time, and the scores are those of the
input vectors. FOLDER has the programs word2vecf and count_and_filter; each of its runs is one epoch.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    command_line,
    describe_machine,
    format_mean,
    markdown_table,
    processor_seconds,
    runs_parser,
    time_call,
)
from numpy.typing import NDArray

import w2v
from w2v._text.vocabulary import Vocabulary
from w2v._training.run import Run

WINDOW, EPOCHS = 2, 5
SETTINGS: dict[str, Any] = {"vector_size": 100, "sample": 0, "vectors": "input", "workers": 1, "epochs": EPOCHS}


def neighbours(ids: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
    """Yield each distance in the window, the inputs, and the contexts that they predict at this distance."""
    for distance in (*range(-WINDOW, 0), *range(1, WINDOW + 1)):
        first, last = max(0, -distance), len(ids) - max(0, distance)
        yield distance, ids[first + distance : last + distance], ids[first:last]


def write_pairs(path: Path, vocabulary: Vocabulary, ids: NDArray[np.int64], with_positions: bool) -> None:
    """Write the distinct pairs with their counts."""
    names = vocabulary.words.tolist()
    with path.open("w") as file:
        pairs: list[tuple[str, NDArray[np.int64]]] = []
        for distance, inputs, contexts in neighbours(ids):
            pairs.append((f"_{distance}" if with_positions else "", inputs << 32 | contexts))
        if not with_positions:
            pairs = [("", np.concatenate([keys for _, keys in pairs]))]
        for suffix, keys in pairs:
            found, counts = np.unique(keys, return_counts=True)
            for key, count in zip(found.tolist(), counts.tolist(), strict=True):
                file.write(f"{names[key >> 32]}\t{names[key & 0xFFFFFFFF]}{suffix}\t{count}\n")


def scores(model: Any, options: Any) -> list[float]:
    """Return the accuracy on analogies, and the rank correlations with both lists of word pairs, in percent."""
    similar, related = (w2v.word_pairs(model.wv, path).spearman for path in (options.similar, options.related))
    found = w2v.analogies(model.wv, options.questions).accuracy, similar, related
    return [100 * (each or 0) for each in found]


def word2vecf_seconds(folder: Path, pairs: Path) -> float:
    """Return the processor seconds of one epoch of word2vecf on a file with a pair on each line."""
    vocabularies = ["-wvocab", f"{pairs}.words", "-cvocab", f"{pairs}.contexts"]
    subprocess.run(
        [str(folder / "count_and_filter"), "-train", str(pairs), *vocabularies, "-min-count", "1"],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    settings = ["-size", "100", "-negative", "5", "-threads", "1", "-iters", "1", "-output", f"{pairs}.vec"]
    command = [str(folder / "word2vecf"), "-train", str(pairs), *vocabularies, *settings]
    return processor_seconds(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True))[1]


def main() -> None:
    parser = runs_parser(__doc__)
    for name in ("similar", "related", "word2vecf"):
        parser.add_argument(f"--{name}", type=Path, metavar="PATH")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="[%(default)s]")
    options = parser.parse_args()
    train_seconds: list[float] = []
    train = Run.train

    def timed(run: Run, *arguments: Any) -> None:
        train_seconds.append(time_call(lambda: train(run, *arguments), time.process_time))

    Run.train = timed  # type: ignore[method-assign, assignment]
    words = options.corpus.read_text().split()
    with tempfile.TemporaryDirectory() as temporary:
        text, plain, positions = (Path(temporary, name) for name in ("text", "plain", "positions"))
        text.write_text(" ".join(words))
        windows = {"window": WINDOW, "shrink_windows": False, "model": "skipgram", "min_count": 5}
        vocabulary = w2v.train(text, **SETTINGS | windows | {"epochs": 1}).vocabulary
        number = {word: row for row, word in enumerate(vocabulary.words)}
        ids = np.array([number[word] for word in words if word in number])
        write_pairs(plain, vocabulary, ids, with_positions=False)
        write_pairs(positions, vocabulary, ids, with_positions=True)
        runs: dict[str, Any] = {
            "windows": lambda seed: w2v.train(text, seed=seed, **SETTINGS | windows),
            "pairs": lambda seed: w2v.train_pairs(plain, seed=seed, **SETTINGS),
            "pairs with positions": lambda seed: w2v.train_pairs(positions, seed=seed, **SETTINGS),
        }
        rows = []
        for name, run in runs.items():
            found = []
            for seed in options.seeds:
                train_seconds.clear()
                model = run(seed)
                predictions = sum(model.metrics["predictions"])
                found.append([*scores(model, options), predictions / train_seconds[0] / 1e6])
            rows.append([name, *map(format_mean, zip(*found, strict=True))])
        if options.word2vecf:
            lines = Path(temporary, "lines")
            with lines.open("w") as file:
                names = vocabulary.words.tolist()
                for _, *pair in neighbours(ids):
                    file.writelines(f"{names[a]} {names[b]}\n" for a, b in zip(*pair, strict=True))
            seconds = word2vecf_seconds(options.word2vecf, lines)
            pairs = sum(len(inputs) for _, inputs, _ in neighbours(ids))
            rows.append(["word2vecf", "", "", "", f"{pairs / seconds / 1e6:.2f}"])
    header = ["trained on", "analogies %", "similar", "related", "million pairs per processor second"]
    print(f"`{command_line()}`\n\n{markdown_table(header, rows)}\n\n{describe_machine()}")


if __name__ == "__main__":
    main()
