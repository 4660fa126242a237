"""Do the objectives of the literature hold here what their papers say?

    python bench/objectives.py TEXT --questions FILE [--share 0.01] [--held-out 0.002] [--epochs 3] [--size 96]
                               [--only softmax dsoftmax mos charcnn] [--json FILE]

The full softmax, differentiated softmax with about as many parameters, a mixture of softmaxes, and output vectors from
characters, all CBOW on the first --share of a text with the --max-vocab most frequent words of it, without
subsampling. Perplexity is that of the text that follows, all of it and where the word predicted is one of the rarer
half; rank is of 2000 contexts and words.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import arguments, command_line, machine, table

import w2v
from w2v.model import Model
from w2v.perplexity import Text
from w2v.probabilities import log_probabilities
from w2v.rank import rank

HEADER = ["objective", "parameters", "of outputs", "seconds", "perplexity", "rarer half", "analogies", "rank"]


def slices(corpus: Path, share: float, held_out: float, folder: Path) -> tuple[Path, Path]:
    """The first part of a text, and what follows it, in lines of 1000 words."""
    size, paths = corpus.stat().st_size, []
    with corpus.open("rb") as text:
        for name, part in ("train", share), ("held-out", held_out):
            words = text.read(round(part * size)).split()
            path = folder / f"{name}.txt"
            path.write_bytes(b"\n".join(b" ".join(words[at : at + 1000]) for at in range(0, len(words), 1000)))
            paths.append(path)
    return paths[0], paths[1]


def rare_perplexity(model: Model, path: Path) -> float:
    """Perplexity where the word predicted is in the rarer half of the vocabulary."""
    number = {word: k for k, word in enumerate(model.vocabulary.words)}
    lines = [[number[word] for word in line.split() if word in number] for line in path.read_text("utf-8").splitlines()]
    words = np.array([word for line in lines for word in line], np.int32)
    text = Text(words, np.repeat(np.arange(len(lines)), list(map(len, lines))), model.settings.window)
    places = np.flatnonzero((words >= len(model.vocabulary) // 2) & (text.contexts > 0))
    sums = np.zeros((len(places), model.inputs.shape[1]), np.float32)
    for inside, others in text.beside(places):
        sums += model.inputs[others] * inside[:, None]
    total = 0.0
    for part in np.array_split(np.arange(len(places)), -(-len(places) // 512)):
        logs = log_probabilities(model, sums[part] / text.contexts[places[part], None])
        total -= float(logs[np.arange(len(part)), words[places[part]]].sum(dtype=np.float64))
    return float(np.exp(total / len(places)))


def equal_blocks(size: int, words: int) -> tuple[str, int]:
    """Blocks of lengths 4 : 2 : 1 for a tenth, three tenths and six tenths of the words, and their sum.

    Inputs of that sum and outputs together have about as many values as two matrices of `size`.
    """
    unit = round(2 * size / (7 + 4 * 0.1 + 2 * 0.3 + 0.6))
    return f"{4 * unit}:{words // 10},{2 * unit}:{3 * words // 10},{unit}", 7 * unit


def main() -> None:
    parser = arguments(__doc__, 1, corpus=True)
    parser.set_defaults(share=0.01)
    parser.add_argument("--held-out", type=float, default=0.002)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--max-vocab", type=int, default=10_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--size", type=int, default=96)
    parser.add_argument("--mixtures", type=int, default=4)
    parser.add_argument("--only", nargs="+")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        text, held_out = slices(options.corpus, options.share, options.held_out, Path(name))
        blocks, sum_of_lengths = equal_blocks(options.size, options.max_vocab)
        chosen: dict[str, dict[str, Any]] = {
            "softmax": {"kernel": "numba"},
            "dsoftmax": {"blocks": blocks, "vector_size": sum_of_lengths},
            "mos": {"mixtures": options.mixtures},
            "charcnn": {"negative": 20},
        }
        base = {"model": "cbow", "vector_size": options.size, "epochs": options.epochs, "sample": 0, "min_count": 1}
        for loss in options.only or chosen:
            settings = base | {"loss": loss, "max_vocab": options.max_vocab} | chosen[loss]
            started = time.perf_counter()
            model = w2v.train(text, **settings)
            seconds = time.perf_counter() - started
            outputs = sum(array.size for array in model.learnt.values())
            result = w2v.analogies(model.wv, options.questions)
            rows.append(
                {
                    "objective": loss,
                    "parameters": model.inputs.size + outputs,
                    "of outputs": outputs,
                    "seconds": model.figures["seconds"]["train"],
                    "perplexity": w2v.perplexity(model, held_out).perplexity,
                    "rarer half": rare_perplexity(model, held_out),
                    "analogies": result.accuracy,
                    "rank": rank(model).rank,
                }
            )
            print(rows[-1], f"{seconds:.0f} s in all", flush=True)
    document = {"title": "Objectives", "command": command_line(), "machine": machine(), "rows": rows}
    print(table(HEADER, [[str(row["objective"]), *(f"{row[name]:,.4g}" for name in HEADER[1:])] for row in rows]))
    if options.json:
        options.json.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
