"""Do time and memory grow as they should, from 10 million to a billion words?

    python bench/scale.py FOLDER [--tokens 1e7 1e8 1e9] [--types 1e7] [--min-count 20] [--limit 50000] [--json FILE]

Texts of bench/generate.py are written to FOLDER (6 GB for a billion words), read, trained for one epoch with 100
dimensions, saved and loaded: with all words that occur 20 times, a vocabulary that grows with the text, and with the
50,000 most frequent. Memory is the process's own (anonymous); the system also counts pages of mapped files.

`bound` is the time that the machine takes at best: `wc -w` for reading; writing and syncing as many bytes for saving
and for a checkpoint; reading them for loading. For training it is the time that the smallest text would need for as
many words, with the same kind of vocabulary. `topics` is the share of the 10 nearest words of the 1,000 most frequent
that have the word's topic; chance gives 1 in 100. An existing text in FOLDER is used again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import W2V, command_line, machine, number, seconds, table, wall_seconds, watched
from generate import generate, rank_of

import w2v

TOPICS = 100
JUDGED = 1000
BLOCK = bytes(1 << 24)
MEGABYTE = 1e6
LOAD = """
import json, sys, time, w2v
start = time.perf_counter()
w2v.load(sys.argv[1])
print(json.dumps({"seconds": time.perf_counter() - start}))
"""
COLUMNS = ("words", "vocabulary", "phase", "seconds", "bound", "seconds / bound", "own memory, MB")


def write_seconds(path: Path, size: int) -> float:
    """The time to write and sync so many bytes."""

    def write() -> None:
        with path.open("wb") as file:
            for start in range(0, size, len(BLOCK)):
                file.write(BLOCK[: size - start])
            os.fsync(file.fileno())

    taken = seconds(write)
    path.unlink()
    return taken


def topic_share(model: Path) -> float:
    vectors = w2v.load(model)
    asked = vectors.index_to_key[:JUDGED]
    pairs = [(word, near) for word in asked for near, _ in vectors.most_similar(word, topn=10)]
    return sum(rank_of(word) % TOPICS == rank_of(near) % TOPICS for word, near in pairs) / len(pairs)


def read(folder: Path, text: Path) -> Iterator[tuple[Any, ...]]:
    command: list[str | Path] = [*W2V, "vocab", text, "-o", folder / "words.txt"]
    command += ["--force", "--json", "--cache", folder / "cache"]
    bound = wall_seconds(["wc", "-w", text])
    memory: dict[str, int] = {}
    taken = seconds(lambda: memory.update(watched(command)[1]))
    yield "read and count", taken, bound, memory["RssAnon"]


def train(folder: Path, text: Path, words: list[str], word_seconds: list[float]) -> Iterator[tuple[Any, ...]]:
    """Train from the cache that `read` left, with the options `words`. `word_seconds` gets the time of a word."""
    model, states = folder / "model.safetensors", folder / "states"
    command: list[str | Path] = [*W2V, "train", text, "-o", model, "--force", "--json"]
    command += ["--epochs", "1", "--vector-size", "100"]
    command += ["--cache", folder / "cache", "--checkpoint", states, "--checkpoint-every", "1epoch"]
    printed, memory = watched([*command, *words])
    taken = printed["seconds"]
    word_seconds.append(taken["train"] / printed["tokens_trained"])
    checkpoint = max(states.iterdir(), key=lambda path: path.stat().st_size)
    yield "open the cache, choose words", taken["read"], None, None
    yield "train", taken["train"], word_seconds[0] * printed["tokens_trained"], memory["RssAnon"]
    rest = taken["total"] - taken["read"] - taken["train"] - taken["save"]
    yield "checkpoint", rest, write_seconds(folder / "plain", checkpoint.stat().st_size), None
    yield "save", taken["save"], write_seconds(folder / "plain", model.stat().st_size), None
    bound = seconds(model.read_bytes)
    loaded, memory = watched([sys.executable, "-c", LOAD, model])
    yield "load", loaded["seconds"], bound, memory["RssAnon"]
    print(f"  {printed['vocabulary_size']:,} words, topics {topic_share(model):.3f}", flush=True)
    for path in [*states.iterdir(), model]:
        path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--tokens", type=float, nargs="+", default=[1e7, 1e8, 1e9], help="smallest first [%(default)s]")
    parser.add_argument("--types", type=float, default=1e7, help="[%(default)g]")
    parser.add_argument("--min-count", type=int, default=20, help="of the larger vocabulary [%(default)s]")
    parser.add_argument("--limit", type=int, default=50_000, help="the smaller vocabulary [%(default)s]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the metrics to this file")
    options = parser.parse_args()
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[list[Any]] = []
    word_seconds: dict[str, list[float]] = {}
    for tokens in map(int, options.tokens):
        text = folder / f"{tokens}.txt"
        if not text.exists():
            print(f"{text.name}: {generate(text, tokens, int(options.types), TOPICS):.0f} MB/s", flush=True)
        kinds = {
            f"count ≥ {options.min_count}": ["--min-count", str(options.min_count)],
            f"{options.limit:,}": ["--max-vocab", str(options.limit)],
        }
        found = [("", read(folder, text))]
        found += [
            (kind, train(folder, text, words, word_seconds.setdefault(kind, []))) for kind, words in kinds.items()
        ]
        for kind, phases in found:
            for row in phases:
                rows.append([tokens, kind, *row])
                print(*rows[-1], flush=True)
        for path in (folder / "cache").iterdir():
            path.unlink()
    cells = [
        [f"{words:,}", kind, phase, number(taken), number(bound), number(bound and taken / bound),
         number(own and own / MEGABYTE)]
        for words, kind, phase, taken, bound, own in rows
    ]  # fmt: skip
    print(f"### Growth\n\n`{command_line()}`\n\n{table(COLUMNS, cells)}\n\n{machine()}")
    if options.json:
        options.json.write_text(
            json.dumps({"machine": machine(), "columns": COLUMNS[:5], "rows": rows}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
