"""How fast does w2v find and join phrases, compared with gensim's Phrases over a LineSentence, and with word2phrase?

    python bench/phrases.py TEXT [--share 1] [--word2phrase PATH] [--repeats 3] [--json FILE]

The programs alternate. Each is a process that reads TEXT, finds phrases (min_count 5; threshold 10, and 100 in
word2phrase) and writes the text with the phrases joined. gensim does this by FrozenPhrases, its faster way. The program
checks that gensim and w2v write the same text. The goal is 10 times gensim's speed, in processor seconds without the
start of Python.
"""

import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from common import (
    W2V,
    Summary,
    alternate,
    benchmark_parser,
    processor_seconds,
    report_results,
    round_ratios,
    run_command,
    split_lines,
    summarise,
)

from w2v._system.memory import peak_resident_bytes

MIN_COUNT, THRESHOLD = 5, 10.0


def measure(command: list[str]) -> dict[str, float]:
    """Return wall-clock and processor seconds of a process, its peak memory in bytes, and the seconds it reports."""
    (output, wall), processor = processor_seconds(lambda: run_command(command))
    result = json.loads(output) if output.startswith("{") else {}
    memory = result.get("peak_memory_bytes", 0)
    return {"wall": wall, "processor": processor, "own": result.get("own", 0), "memory": memory}


def run_gensim(text: Path, output: Path) -> dict[str, float]:
    """Count and join phrases by gensim, in this process."""
    from gensim.models.phrases import FrozenPhrases, Phrases
    from gensim.models.word2vec import LineSentence

    start = time.process_time()
    frozen = FrozenPhrases(Phrases(LineSentence(str(text)), min_count=MIN_COUNT, threshold=THRESHOLD))
    with output.open("w", encoding="utf-8") as file:
        for sentence in frozen[LineSentence(str(text))]:
            file.write(" ".join(sentence) + "\n")
    return {"own": time.process_time() - start, "peak_memory_bytes": peak_resident_bytes()}


def main() -> None:
    if sys.argv[1:2] == ["gensim"]:
        print(json.dumps(run_gensim(Path(sys.argv[2]), Path(sys.argv[3]))))
        return
    parser = benchmark_parser(__doc__, repeats=3, corpus=True)
    parser.add_argument("--word2phrase", metavar="PATH", help="the compiled program")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text, ours, theirs = (Path(folder) / name for name in ("text.txt", "w2v.txt", "gensim.txt"))
        split_lines(options.corpus, text, options.share)
        command = [*W2V, "phrases", str(text), "-o", str(ours), "--force", "--json"]
        command += ["--min-count", str(MIN_COUNT), "--threshold", str(THRESHOLD), "--workers"]
        commands = {"w2v, 1 thread": [*command, "1"], "w2v, 2 threads": [*command, "2"]}
        commands["gensim"] = [sys.executable, __file__, "gensim", str(text), str(theirs)]
        if options.word2phrase:
            program = [options.word2phrase, "-train", str(text), "-output", str(Path(folder) / "c.txt")]
            commands["word2phrase"] = [*program, "-min-count", str(MIN_COUNT), "-threshold", "100", "-debug", "0"]
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in commands}

        def work(name: str) -> float:
            runs[name].append(measure(commands[name]))
            return runs[name][-1]["wall"]

        alternate({name: partial(work, name) for name in commands}, options.repeats)
        assert ours.read_bytes() == theirs.read_bytes(), "w2v and gensim write different texts"

        def values(name: str, metric: str) -> list[float]:
            return [run[metric] for run in runs[name]]

        def table(metric: str, unit: float = 1) -> dict[str, Summary]:
            return {name: summarise(value / unit for value in values(name, metric)) for name in commands}

        report_results(
            options,
            "Phrases",
            f"{text.stat().st_size / 1e6:.0f} MB. gensim and w2v write the same text. Ratios: processor seconds of "
            "gensim's work and of the whole of w2v with one thread; wall-clock seconds of both processes.",
            processor_seconds=table("processor"),
            wall_clock_seconds=table("wall"),
            megabytes=table("memory", 1e6),
            ratio={
                "gensim / w2v, 1 thread": summarise(
                    round_ratios(values("gensim", "own"), values("w2v, 1 thread", "processor")), goal=10
                ),
                "gensim / w2v, 2 threads": summarise(
                    round_ratios(values("gensim", "wall"), values("w2v, 2 threads", "wall"))
                ),
            },
        )


if __name__ == "__main__":
    main()
