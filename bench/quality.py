"""How good are the vectors over several seeds, compared with other settings and programs?

    python bench/quality.py TEXT --questions FILE --pairs FILE … --json FILE [--only sg-ns …] [--tools w2v …]
                            [--seeds 1 2 3] [--megabytes 2 8 100] [--word2vec PATH] [--fasttext PYTHON]
    python bench/quality.py --table FILE

Configurations: sg-ns, sg-hs, cbow-ns and cbow-hs are equal settings for all: 300 dimensions, window 5, negative 5,
sample 1e-4, min_count 5, 5 epochs, two threads, w2v's alpha. sg and cbow are each program's defaults, with 100
dimensions, and 5 epochs except in w2v. ranks is the defaults with 5 epochs and one thread per rank.

Tools: w2v; bf16, w2v with `--storage bf16`; per-pair, w2v with one step per context word, as in word2vec.c (CBOW takes
one step per window anyway); 2-ranks and 4-ranks, w2v under mpiexec; gensim, from the text in lines of 1000 words;
word2vec, which is gensim with the settings of word2vec.c unless --word2vec names its binary; fasttext, without
subwords, from a Python that has it. Every run is a process; time and memory are measured for the whole process.

--megabytes trains on these first megabytes of the text. Runs are added to the JSON file; a run that is there already is
not repeated.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    open_runs,
    processor_seconds,
    run_command,
    runs_markdown,
    runs_parser,
    split_lines,
    table_of_means,
    w2v_command,
    write_prefixes,
)
from peers import BASE, MODES, binary_command, gensim_command

from w2v._evaluation.analogies import analogies
from w2v._evaluation.evaluate import evaluate
from w2v._evaluation.similarity import word_pairs
from w2v._losses.registry import Settings
from w2v._text.corpus import Corpus
from w2v._text.idstore import read_corpus
from w2v._text.vocabulary import Vocabulary
from w2v._vectors.keyed import KeyedVectors, load

EQUAL = replace(BASE, epochs=5)
CONFIGURATIONS = {
    "sg-ns": EQUAL,
    "sg-hs": replace(EQUAL, loss="hs"),
    "cbow-ns": replace(EQUAL, model="cbow"),
    "cbow-hs": replace(EQUAL, model="cbow", loss="hs"),
    "sg": Settings(model="skipgram"),
    "cbow": Settings(model="cbow"),
    "ranks": Settings(epochs=5, workers=1),
}
DEFAULTS: dict[str, dict[str, Any]] = {  # of other programs, where they differ from w2v's
    "gensim": {"ns_exponent": 0.75, "alpha": 0.025, "min_alpha": 0.0001, "sample": 1e-3, "workers": 3},
    "word2vec": {"ns_exponent": 0.75, "sample": 1e-3, "workers": 12},
    "fasttext": {"alpha": 0.05, "sample": 1e-4, "workers": 12},
}
ALPHAS = {"sg": 0.025, "cbow": 0.05}  # of word2vec.c
TOOLS: dict[str, dict[str, Any]] = {"bf16": {"storage": "bf16"}, "per-pair": {"per_pair": True}}
TOOLS |= {name: {} for name in ("w2v", "2-ranks", "4-ranks", *DEFAULTS)}
MPIEXEC = str(Path(sys.executable).with_name("mpiexec"))
GROUP = ("configuration", "text", "tool")  # the runs that agree in these differ only in their seeds


def settings_of(configuration: str, tool: str, seed: int) -> Settings:
    overrides = TOOLS[tool]
    if configuration in ALPHAS and tool in DEFAULTS:
        overrides = {"window": 5, "epochs": 5, "alpha": ALPHAS[configuration], **DEFAULTS[tool]}
    return replace(CONFIGURATIONS[configuration], seed=seed, **overrides)


def command_of(
    tool: str, settings: Settings, text: Path, lines: Path, output: Path, program: str | None = None
) -> list[str]:
    """Return the command that trains a tool.

    `lines` is the text in lines of 1000 words, `program` the binary of word2vec.c or the Python with fastText.
    """
    if program:
        return binary_command(tool, program, settings, text, output)
    if tool in DEFAULTS:
        return gensim_command(settings, MODES[1], lines, output)
    command = w2v_command(settings, text, output)
    return [MPIEXEC, "-n", tool[0], *command] if tool.endswith("-ranks") else command


def scores(vectors: KeyedVectors, questions: Path, pairs: list[Path]) -> dict[str, float | None]:
    """Return accuracies in percent and Spearman's correlations × 100.

    If the vectors have counts, add the share of rare words among the neighbours of frequent words, in percent.
    """
    analogy = analogies(vectors, questions)
    values = {"semantic": analogy.semantic, "syntactic": analogy.syntactic, "total": analogy.accuracy}
    values |= {path.stem: word_pairs(vectors, path).spearman for path in pairs}
    if vectors.counts is not None:
        rare = [result for result in evaluate(vectors) if result.measure == "rare neighbours"]
        values |= {result.measure: result.scores[0].value for result in rare}
    return {name: None if value is None else round(100 * value, 3) for name, value in values.items()}


def measure(
    command: list[str], model: Path, questions: Path, pairs: list[Path], counts: Vocabulary | None = None
) -> dict[str, float | None]:
    """Run a training command; return the scores of its model, its seconds and its peak memory.

    `counts` adds the counts of words, which model files of other programs lack.
    """
    (output, wall), processor = processor_seconds(lambda: run_command(command))
    vectors = load(model)
    if counts:
        known = dict(zip(counts.words, counts.counts.tolist(), strict=True))
        vectors.counts = np.array([known.get(word, 0) for word in vectors.index_to_key])
    times = {"seconds": round(wall, 2), "processor seconds": round(processor, 2)}
    peak = {"peak MB": round(json.loads(output)["peak_memory_bytes"] / 1e6, 1)} if output.startswith("{") else {}
    return scores(vectors, questions, pairs) | times | peak


def quality_markdown(document: dict[str, Any]) -> str:
    """Return a table with a row for each configuration, text and tool, and a column for each measurement."""
    notes = "Accuracies and shares of rare words in percent, Spearman's correlations × 100: mean over the seeds ± half "
    notes += "of their range."
    return runs_markdown(document, "Quality", *table_of_means(document["runs"], GROUP), notes)


def main() -> None:
    parser = runs_parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=list(CONFIGURATIONS), default=list(CONFIGURATIONS)[:4])
    parser.add_argument("--tools", nargs="+", choices=list(TOOLS), default=["w2v", "per-pair"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--megabytes", type=float, nargs="+", default=[], metavar="N")
    parser.add_argument("--word2vec", metavar="PATH")
    parser.add_argument("--fasttext", metavar="PYTHON")
    options = parser.parse_args()
    runs = open_runs(parser, options, quality_markdown)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = folder / "lines.txt"
        texts = {options.corpus.stem: options.corpus}
        if options.megabytes:
            texts = write_prefixes(options.corpus, options.megabytes, folder)
        for text, path in texts.items():
            split_lines(path, lines)
            with read_corpus(Corpus(lines)) as store:
                counts = Vocabulary.from_store(store)
            for configuration, tool, seed in itertools.product(options.only, options.tools, options.seeds):
                if tool == "per-pair" and configuration.startswith("cbow"):
                    continue
                output = folder / ("model.vec" if tool == "fasttext" else "model.bin")
                settings = settings_of(configuration, tool, seed)
                command = command_of(tool, settings, path, lines, output, vars(options).get(tool))
                work = partial(measure, command, output, options.questions, options.pairs, counts)
                runs.run_once({**dict(zip(GROUP, (configuration, text, tool), strict=True)), "seed": seed}, work)
    print(quality_markdown(runs.document))


if __name__ == "__main__":
    main()
