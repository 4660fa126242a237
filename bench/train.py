"""How fast is training, compared with the peers?

    python bench/train.py TEXT [--only sg-ns-300 … whole] [--share 0.25] [--repeats 3] [--json FILE]
                          [--word2vec PATH] [--pword2vec PATH] [--fasttext PYTHON]

Training alone, for each configuration: window 5, negative 5, sample 1e-4, min_count 5, one epoch, two threads. w2v
reads ids; gensim reads the text in both of its modes, of which the faster counts, with a given vocabulary.
With subwords, gensim's FastText takes the place of its Word2Vec.
`whole` is the whole process, from text file to vector file, skip-gram, negative sampling, 300 dimensions.

gensim cuts sentences at 10,000 words, so the text is copied in lines of 1000 words to a temporary folder, and both
train on that. --share trains on its first part only; the vocabulary is still that of the whole text. The other peers
train on all of it; their time of training alone is what a second epoch adds. Speeds are words of the text per second
("raw", all words) and words left by subsampling ("trained").
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

from w2v.losses.registry import Settings

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
    """What a second epoch adds to a program's time, scaled to the words of the part."""
    commands = [
        binary_command(tool, path, replace(settings, epochs=epochs), text.full, folder / tool) for epochs in (1, 2)
    ]
    one, two = map(wall_seconds, commands)
    return (two - one) * text.part.stat().st_size / text.full.stat().st_size


def whole_seconds(command: list[str], vocabulary_size: int) -> float:
    printed, wall = run_command(command)
    assert json.loads(printed)["vocabulary_size"] == vocabulary_size, "another vocabulary"
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
        for only in options.only:
            settings = CONFIGURATIONS.get(only, BASE)
            work: dict[str, Callable[[], float]] = {}
            if only == "whole":
                size = len(text.vocabulary)
                work["w2v"] = partial(whole_seconds, w2v_command(settings, options.corpus, folder / "w2v.bin"), size)
                for mode in MODES:
                    command = gensim_command(settings, mode, text.full, folder / "gensim.bin")
                    work[f"gensim {mode}"] = partial(whole_seconds, command, size)
            else:
                work["w2v"] = partial(training_seconds, settings, text.vocabulary, text.store)
                gensim = Gensim(settings, text.vocabulary, text.part, text.store.tokens, text.trained_words)
                work |= {f"gensim {mode}": partial(gensim.seconds, mode) for mode in MODES}
            for tool, path in binaries.items():
                if tool != "pword2vec" or (settings.model, settings.loss) == ("skipgram", "ns"):
                    command = binary_command(tool, path, settings, text.full, folder / tool)
                    alone = partial(epoch_seconds, tool, path, settings, text, folder)
                    work[tool] = partial(wall_seconds, command) if only == "whole" else alone
            found = alternate(work, options.repeats)
            best = min((f"gensim {mode}" for mode in MODES), key=lambda peer: summarise(found[peer])["median"])
            ratios[f"{only}, {best}"] = summarise(round_ratios(found[best], found["w2v"]), GOALS[only])
            for tool in binaries.keys() & found.keys():
                ratios[f"{only}, {tool}"] = summarise(round_ratios(found[tool], found["w2v"]))
            for who, times in found.items():
                if only == "whole":
                    walls[who] = summarise(times)
                else:
                    raw[f"{only}, {who}"] = summarise(text.store.tokens / taken for taken in times)
                    trained[f"{only}, {who}"] = summarise(text.trained_words / taken for taken in times)
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
