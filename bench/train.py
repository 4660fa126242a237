"""How fast is training, compared with other programs?

    python bench/train.py TEXT [--only sg-ns-300 … whole] [--share 0.25] [--repeats 3] [--json FILE]
                          [--word2vec PATH] [--pword2vec PATH] [--fasttext PYTHON]

For each configuration, only training is timed: window 5, negative 5, sample 1e-4, min_count 5, one epoch, two threads.
w2v reads ids. gensim has a fixed vocabulary and reads the text in both of its modes; the faster one counts. With
subwords, gensim's FastText takes the place of its Word2Vec. `whole` times the whole process, from text file to vector
file, for skip-gram, negative sampling, 300 dimensions.

gensim cuts sentences at 10,000 words, so the text is copied in lines of 1000 words to a temporary folder, and both
train on this copy. --share trains only on its first part; the vocabulary still covers the whole text. The other
programs train on all of it; the time of their training is what a second epoch adds. Speeds are words of the text per
second ("raw", all words) and words left by subsampling ("trained").
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from common import (
    Summary,
    Text,
    alternate,
    benchmark_parser,
    prepared,
    report_results,
    round_ratios,
    run_command,
    summarise,
    training_seconds,
    w2v_command,
    wall_seconds,
)
from peers import BASE, CONFIGURATIONS, MODES, Gensim, binary_command, gensim_command

from w2v._losses.registry import Settings

GOALS = {
    "sg-ns-300": 10,
    "sg-ns-100": 14,
    "sg-hs-300": 6,
    "cbow-ns-300": 4,
    "cbow-hs-300": 4,
    "sg-subwords-100": 10,
    "whole": 8,
}
TOOLS = ("word2vec", "pword2vec", "fasttext")


def epoch_seconds(tool: str, path: str, settings: Settings, text: Text, folder: Path) -> float:
    """Measure the seconds that a second epoch adds to a program's time, scaled to the size of the part."""
    commands = [
        binary_command(tool, path, replace(settings, epochs=epochs), text.full, folder / tool) for epochs in (1, 2)
    ]
    one_epoch, two_epochs = map(wall_seconds, commands)
    return (two_epochs - one_epoch) * text.part.stat().st_size / text.full.stat().st_size


def process_seconds(command: list[str], vocabulary_size: int) -> float:
    """Return the wall-clock seconds of a process that trains; check the size of its vocabulary."""
    output, wall = run_command(command)
    assert json.loads(output)["vocabulary_size"] == vocabulary_size, "the vocabularies differ"
    return wall


def main() -> None:
    parser = benchmark_parser(__doc__, 3, corpus=True)
    parser.add_argument("--only", nargs="+", choices=list(GOALS), default=list(GOALS))
    for tool in TOOLS:
        parser.add_argument(f"--{tool}")
    options = parser.parse_args()
    binaries = {tool: vars(options)[tool] for tool in TOOLS if vars(options)[tool]}
    raw: dict[str, Summary] = {}
    trained: dict[str, Summary] = {}
    ratios: dict[str, Summary] = {}
    walls: dict[str, Summary] = {}
    with tempfile.TemporaryDirectory() as name, prepared(options.corpus, options.share, BASE) as text:
        folder = Path(name)
        for configuration in options.only:
            settings = CONFIGURATIONS.get(configuration, BASE)
            work: dict[str, Callable[[], float]] = {}
            if configuration == "whole":
                size = len(text.vocabulary)
                work["w2v"] = partial(process_seconds, w2v_command(settings, options.corpus, folder / "w2v.bin"), size)
                for mode in MODES:
                    command = gensim_command(settings, mode, text.full, folder / "gensim.bin")
                    work[f"gensim {mode}"] = partial(process_seconds, command, size)
            else:
                work["w2v"] = partial(training_seconds, settings, text.vocabulary, text.store)
                gensim = Gensim(settings, text.vocabulary, text.part, text.store.tokens, text.trained_words)
                work |= {f"gensim {mode}": partial(gensim.seconds, mode) for mode in MODES}
            for tool, path in binaries.items():
                if tool != "pword2vec" or (settings.model, settings.loss) == ("skipgram", "ns"):
                    command = binary_command(tool, path, settings, text.full, folder / tool)
                    epoch = partial(epoch_seconds, tool, path, settings, text, folder)
                    work[tool] = partial(wall_seconds, command) if configuration == "whole" else epoch
            results = alternate(work, options.repeats)
            best = min((f"gensim {mode}" for mode in MODES), key=lambda peer: summarise(results[peer])["median"])
            ratios[f"{configuration}, {best}"] = summarise(
                round_ratios(results[best], results["w2v"]), GOALS[configuration]
            )
            for tool in binaries.keys() & results.keys():
                ratios[f"{configuration}, {tool}"] = summarise(round_ratios(results[tool], results["w2v"]))
            for tool, times in results.items():
                if configuration == "whole":
                    walls[tool] = summarise(times)
                else:
                    raw[f"{configuration}, {tool}"] = summarise(text.store.tokens / duration for duration in times)
                    trained[f"{configuration}, {tool}"] = summarise(text.trained_words / duration for duration in times)
    report_results(
        options,
        "Training",
        "Two threads. Ratios: speed of w2v / speed of the peer, gensim in the faster of its modes.",
        raw_words_a_second=raw,
        trained_words_a_second=trained,
        seconds_of_the_whole_process=walls,
        ratios=ratios,
    )


if __name__ == "__main__":
    main()
