"""How do time and memory grow with the text, from 10 million to a billion words?

    python bench/scale.py FOLDER [--tokens 1e7 1e8 1e9] [--types 1e7] [--json FILE]

The program writes texts made by generate.py to FOLDER (6 GB for a billion words), or uses texts that are there. It
reads each text, trains one epoch with 100 dimensions, saves and loads: once with all words that occur at least 20
times, a vocabulary that grows with the text, and once with the 50,000 most frequent words. The table has seconds, and
the process's own (anonymous) memory while it trains; the system also counts pages of mapped files.

The training time per word is compared with that on the shortest text, with the same kind of vocabulary. `topics` is the
share of the 10 nearest words of each of the 1,000 most frequent words that have the same topic as this word; chance
gives 1 in 100.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from common import W2V, command_line, describe_machine, format_number, markdown_table, time_call, watch_memory
from generate import TOPICS, generate, rank_of

import w2v

TOPIC_WORDS = 1000  # most frequent words, to compare topics of
RELATIVE_TIME = "training time per word, relative to the shortest text"  # a column of the table
VOCABULARIES = {"count ≥ 20": ["--min-count", "20"], "50,000": ["--max-vocab", "50000"]}
LOAD = """
import json, sys, time, w2v
start = time.perf_counter()
w2v.load(sys.argv[1])
print(json.dumps({"seconds": time.perf_counter() - start}))
"""


def topic_share(model: Path) -> float:
    """Return the share of nearest words that have the same topic as their word, over the most frequent words."""
    vectors = w2v.load(model)
    words = vectors.index_to_key[:TOPIC_WORDS]
    pairs = [(word, near) for word in words for near, _ in vectors.most_similar(word, topn=10)]
    return sum(rank_of(word) % TOPICS == rank_of(near) % TOPICS for word, near in pairs) / len(pairs)


def read(folder: Path, text: Path) -> float:
    """Read a text, count its words and leave a cache; return the seconds."""
    command: list[str | Path] = [*W2V, "vocab", text, "-o", folder / "words.txt"]
    return time_call(lambda: watch_memory([*command, "--force", "--json", "--cache", folder / "cache"]))


def train(folder: Path, text: Path, vocabulary: list[str]) -> dict[str, float]:
    """Train from the cache that `read` left, with these options for the vocabulary; return the measurements."""
    model, states = folder / "model.safetensors", folder / "states"
    command: list[str | Path] = [*W2V, "train", text, "-o", model, "--force", "--json"]
    command += ["--epochs", "1", "--vector-size", "100", "--views", "words"]
    command += ["--cache", folder / "cache", "--checkpoint", states, "--checkpoint-every", "1epoch"]
    result, memory = watch_memory([*command, *vocabulary])
    seconds = result["seconds"]
    loaded, _ = watch_memory([sys.executable, "-c", LOAD, model])
    measurements = {
        "train": seconds["train"],
        "seconds of a word": seconds["train"] / result["tokens_trained"],
        "checkpoint": seconds["total"] - seconds["read"] - seconds["train"] - seconds["save"],
        "save": seconds["save"],
        "load": loaded["seconds"],
        "MB": memory["RssAnon"] / 1e6,
        "topics": topic_share(model),
    }
    for path in [*states.iterdir(), model]:
        path.unlink()
    return measurements


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--tokens", type=float, nargs="+", default=[1e7, 1e8, 1e9], help="smallest first [%(default)s]")
    parser.add_argument("--types", type=float, default=1e7, help="number of different words [%(default)g]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to this file")
    options = parser.parse_args()
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for tokens in map(int, options.tokens):
        text = folder / f"{tokens}.txt"
        if not text.exists():
            print(f"{text.name}: {generate(text, tokens, int(options.types)):.0f} MB/s", flush=True)
        read_seconds = read(folder, text)
        for kind, vocabulary in VOCABULARIES.items():
            row: dict[str, Any] = {"words": tokens, "vocabulary": kind, "read": read_seconds}
            row |= train(folder, text, vocabulary)
            first = next((other for other in rows if other["vocabulary"] == kind), row)
            row[RELATIVE_TIME] = row["seconds of a word"] / first["seconds of a word"]
            rows.append(row)
            print(rows[-1], flush=True)
        for path in (folder / "cache").iterdir():
            path.unlink()
    cells = [[cell if isinstance(cell, str) else format_number(cell) for cell in row.values()] for row in rows]
    print(f"### Scaling\n\n`{command_line()}`\n\n{markdown_table(list(rows[0]), cells)}\n\n{describe_machine()}")
    if options.json:
        options.json.write_text(json.dumps({"machine": describe_machine(), "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
