"""`w2v train` without options, compared with the defaults of gensim, word2vec.c and fastText.

    python bench/plain.py TEXT --questions FILE --pairs FILE … --json FILE [--megabytes 2 8 100]
                          [--word2vec PATH] [--fasttext PYTHON]

Both models are trained with each program's other defaults, 100 dimensions and 5 epochs. gensim: alpha 0.025, 3 threads.
word2vec.c: alpha 0.05 (skip-gram 0.025), 12 threads; without its binary they are given to gensim, whose loops are made
after it. fastText, without parts of words: alpha 0.05, sample 1e-4, 12 threads; PYTHON is one that has it. --megabytes
names beginnings of the text, by default all of it. Runs are added to the JSON file; one that is there already is not
made again.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

from common import beginnings, open_runs, runs_markdown, runs_parser, split_lines, w2v_command
from peers import MODES, binary_command, gensim_command
from quality import measure

from w2v.losses.registry import Settings
from w2v.settings import ModelName
from w2v.text.corpus import Corpus
from w2v.text.idstore import read_corpus
from w2v.text.vocabulary import Vocabulary

GENSIM = Settings(window=5, ns_exponent=0.75, alpha=0.025, min_alpha=0.0001, sample=1e-3, workers=3, epochs=5)
WORD2VEC = Settings(window=5, ns_exponent=0.75, sample=1e-3, workers=12, epochs=5)
FASTTEXT = Settings(window=5, alpha=0.05, sample=1e-4, workers=12, epochs=5)
GROUP = ("text", "model", "defaults of")


def plain_markdown(document: dict[str, Any]) -> str:
    columns = list(document["runs"][0]["figures"])
    rows = []
    for run in document["runs"]:
        values = [run["figures"].get(name) for name in columns]
        rows.append([*(run[name] for name in GROUP), *("" if value is None else f"{value:.1f}" for value in values)])
    notes = "Accuracies and shares of rare words in percent, Spearman's correlations × 100."
    return runs_markdown(document, "Defaults of w2v and others", [*GROUP, *columns], rows, notes)


def main() -> None:
    parser = runs_parser(__doc__)
    parser.add_argument("--megabytes", type=float, nargs="+", default=[], metavar="N")
    parser.add_argument("--models", nargs="+", choices=get_args(ModelName), default=get_args(ModelName))
    parser.add_argument("--word2vec", metavar="PATH")
    parser.add_argument("--fasttext", metavar="PYTHON")
    options = parser.parse_args()
    runs = open_runs(parser, options, plain_markdown)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = folder / "lines.txt"
        whole = {options.corpus.stem: options.corpus}
        texts = beginnings(options.corpus, options.megabytes, folder) if options.megabytes else whole
        for text, path in texts.items():
            split_lines(path, lines)
            with read_corpus(Corpus(lines)) as store:
                counts = Vocabulary.from_store(store)
            for model in options.models:
                output, fasttext_output = folder / "model.bin", folder / "model.vec"
                gensim, fasttext = replace(GENSIM, model=model), replace(FASTTEXT, model=model)
                word2vec = replace(WORD2VEC, model=model, alpha=0.05 if model == "cbow" else 0.025)
                commands = {"w2v": w2v_command(Settings(model=model), path, output)}
                commands["gensim"] = gensim_command(gensim, MODES[0], lines, output)
                if options.word2vec:
                    commands["word2vec.c"] = binary_command("word2vec", options.word2vec, word2vec, path, output)
                else:
                    commands["word2vec.c, by gensim"] = gensim_command(word2vec, MODES[0], lines, output)
                if options.fasttext:
                    command = binary_command("fasttext", options.fasttext, fasttext, path, fasttext_output)
                    commands["fastText"] = command
                for tool, command in commands.items():
                    made = fasttext_output if tool == "fastText" else output
                    work = partial(measure, command, made, options.questions, options.pairs, counts)
                    runs.make(dict(zip(GROUP, (text, model, tool), strict=True)), work)
    print(plain_markdown(runs.document))


if __name__ == "__main__":
    main()
