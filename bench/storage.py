"""What does `--storage bf16` save, and what does it cost?

    python bench/storage.py TEXT [--share 0.25] [--repeats 5] [--json FILE]

Training alone with matrices in bfloat16, alternating with float32, two threads; and the peak memory of whole processes
(skip-gram, negative sampling, 300 dimensions), one of each. For quality, see quality.py, `--tools bf16`.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

from common import (
    Spread,
    alternate,
    arguments,
    finish,
    prepared,
    quotients,
    spread,
    training_seconds,
    w2v_command,
    watched,
)
from memory import MEGABYTE
from peers import BASE, CONFIGURATIONS

from w2v.settings import Storage


def main() -> None:
    options = arguments(__doc__, 5, corpus=True).parse_args()
    speeds: dict[str, Spread] = {}
    ratios: dict[str, Spread] = {}
    memory: dict[str, Spread] = {}
    with tempfile.TemporaryDirectory() as folder, prepared(options.corpus, options.share, BASE) as text:
        for name, settings in CONFIGURATIONS.items():
            work = {
                storage: partial(training_seconds, replace(settings, storage=storage), text.vocabulary, text.store)
                for storage in get_args(Storage)
            }
            found = alternate(work, options.repeats)
            for storage, times in found.items():
                speeds[f"{name}, {storage}"] = spread(text.store.tokens / taken for taken in times)
            ratios[name] = spread(quotients(found["float32"], found["bf16"]))
        for storage in get_args(Storage):
            command = w2v_command(replace(BASE, storage=storage), options.corpus, Path(folder) / "model.bin")
            memory[storage] = spread([watched(command)[1]["RssAnon"] / MEGABYTE])
    finish(
        options,
        "Storage",
        "Two threads. Memory: peak of a whole process, without mapped files; skip-gram, negative sampling, 300.",
        raw_words_a_second=speeds,
        speed_of_bf16_relative_to_float32=ratios,
        megabytes=memory,
    )


if __name__ == "__main__":
    main()
