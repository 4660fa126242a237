"""`w2v train corpus.txt` without options, compared with the defaults of gensim and of word2vec.c.

    python bench/plain.py TEXT --questions FILE --pairs FILE … --json FILE [--word2vec PATH]

gensim's defaults: CBOW, 100 dimensions, alpha 0.025, 5 epochs, 3 threads. word2vec.c's: CBOW, 100 dimensions, alpha
0.05, 5 epochs, 12 threads; without its binary they are given to gensim, whose loops are made after it. Runs are added
to the JSON file; one that is there already is not made again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from common import Runs, commands_markdown, split_lines, table, w2v_command
from peers import MODES, binary_command, gensim_command
from quality import measure

from w2v.losses.registry import Settings

GENSIM = Settings(model="cbow", sample=1e-3, alpha=0.025, min_alpha=0.0001, workers=3, epochs=5)
WORD2VEC = Settings(model="cbow", sample=1e-3, alpha=0.05, workers=12, epochs=5)


def plain_markdown(document: dict[str, Any]) -> str:
    columns = list(document["runs"][0]["figures"])
    rows = [
        [run["tool"], str(run["epochs"]), *(f"{run['metrics'][name]:.1f}" for name in columns)]
        for run in document["runs"]
    ]
    notes = "Accuracies in percent, Spearman's correlations × 100."
    metrics = table(["defaults of", "epochs", *columns], rows)
    return "\n".join(["### Defaults of w2v and others", "", commands_markdown(document), metrics, "", notes])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, metavar="TEXT", nargs="?")
    parser.add_argument("--questions", type=Path)
    parser.add_argument("--pairs", type=Path, nargs="+", default=[])
    parser.add_argument("--word2vec", metavar="PATH")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--table", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.table:
        print(plain_markdown(json.loads(options.table.read_text())))
        return
    if not (options.corpus and options.questions and options.json):
        parser.error("TEXT, --questions and --json are needed, or --table")

    runs = Runs(options.json)

    def made(tool: str, settings: Settings, command: list[str]) -> None:
        work = partial(measure, command, model, options.questions, options.pairs)
        runs.make({"tool": tool, "epochs": settings.epochs}, work)

    with tempfile.TemporaryDirectory() as folder:
        model, lines = Path(folder) / "model.bin", Path(folder) / "lines.txt"
        split_lines(options.corpus, lines)
        made("w2v", Settings(), w2v_command(Settings(), options.corpus, model))
        made("gensim", GENSIM, gensim_command(GENSIM, MODES[0], lines, model))
        if options.word2vec:
            command = binary_command("word2vec", options.word2vec, WORD2VEC, options.corpus, model)
            made("word2vec.c", WORD2VEC, command)
        else:
            made("word2vec.c, by gensim", WORD2VEC, gensim_command(WORD2VEC, MODES[0], lines, model))
    print(plain_markdown(runs.document))


if __name__ == "__main__":
    main()
