"""How fast are phrases found and joined? w2v, gensim's Phrases over a LineSentence, and word2phrase, alternating.

    python bench/phrases.py TEXT [--share 1] [--word2phrase PATH] [--repeats 3] [--json FILE]

Each is a process that reads TEXT, finds phrases (min_count 5; threshold 10, and 100 in word2phrase) and writes the
text with them joined. gensim is measured in two steps, counting and applying (by FrozenPhrases, its faster way). The
texts that gensim and w2v write are compared. Goal: 10 times gensim's speed.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from common import W2V, Spread, alternate, arguments, finish, quotients, split_lines, spread

MIN_COUNT, THRESHOLD = 5, 10.0


def measured(command: list[str]) -> dict[str, float]:
    """Wall-clock and processor seconds and peak memory in MB of a process, and what it prints in JSON."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - start
        if process.returncode:
            sys.exit(f"{shlex.join(command)} failed")
        out.seek(0)
        said = out.read()
    found = {"wall": wall, "processor": usage.ru_utime + usage.ru_stime, "memory": usage.ru_maxrss * 1024 / 1e6}
    return (json.loads(said) if said.startswith("{") else {}) | found


def by_gensim(text: Path, output: Path) -> dict[str, Any]:
    """Count, then apply, in this process."""
    from gensim.models.phrases import FrozenPhrases, Phrases
    from gensim.models.word2vec import LineSentence

    start = time.process_time()
    phrases = Phrases(LineSentence(str(text)), min_count=MIN_COUNT, threshold=THRESHOLD)
    counted = time.process_time()
    frozen = FrozenPhrases(phrases)
    with output.open("w", encoding="utf-8") as file:
        for sentence in frozen[LineSentence(str(text))]:
            file.write(" ".join(sentence) + "\n")
    return {"count": counted - start, "apply": time.process_time() - counted}


def main() -> None:
    if sys.argv[1:2] == ["gensim"]:
        print(json.dumps(by_gensim(Path(sys.argv[2]), Path(sys.argv[3]))))
        return
    parser = arguments(__doc__, repeats=3, corpus=True)
    parser.add_argument("--word2phrase", type=Path, metavar="PATH", help="the program, compiled")
    options: argparse.Namespace = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text, ours, theirs = (Path(folder) / name for name in ("text.txt", "w2v.txt", "gensim.txt"))
        split_lines(options.corpus, text, options.share)
        given = ["--min-count", str(MIN_COUNT), "--threshold", str(THRESHOLD)]
        commands = {
            f"w2v, {threads} thread{'s' * (threads > 1)}": [
                *W2V, "phrases", str(text), "-o", str(ours), "--force", "--json", "--workers", str(threads), *given
            ]
            for threads in (1, 2)
        }  # fmt: skip
        commands["gensim"] = [sys.executable, __file__, "gensim", str(text), str(theirs)]
        if options.word2phrase:
            program = [str(options.word2phrase), "-train", str(text), "-output", str(Path(folder) / "c.txt")]
            commands["word2phrase"] = [*program, "-min-count", str(MIN_COUNT), "-threshold", "100", "-debug", "0"]
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in commands}

        def work(name: str) -> float:
            runs[name].append(measured(commands[name]))
            return runs[name][-1]["wall"]

        alternate({name: partial(work, name) for name in commands}, options.repeats)
        assert ours.read_bytes() == theirs.read_bytes(), "w2v and gensim write different texts"

        def table(metric: str) -> dict[str, Spread]:
            return {name: spread(run[metric] for run in made) for name, made in runs.items()}

        steps = {step: [run[step] for run in runs["gensim"]] for step in ("count", "apply")}
        whole = [count + apply for count, apply in zip(*steps.values(), strict=True)]  # without the start of Python
        one = [run["processor"] for run in runs["w2v, 1 thread"]]
        two = [run["wall"] for run in runs["w2v, 2 threads"]]
        finish(
            options,
            "Phrases",
            f"{text.stat().st_size / 1e6:.0f} MB. gensim and w2v write the same text. Ratios: processor seconds of "
            "gensim's two steps and of the whole of w2v with one thread; wall-clock seconds of both processes.",
            processor_seconds=table("processor")
            | {f"gensim, {step} alone": spread(found) for step, found in steps.items()},
            wall_clock_seconds=table("wall"),
            megabytes=table("memory"),
            ratio={
                "gensim / w2v, 1 thread": spread(quotients(whole, one), goal=10),
                "gensim / w2v, 2 threads": spread(quotients([run["wall"] for run in runs["gensim"]], two)),
            },
        )


if __name__ == "__main__":
    main()
