"""How well, and how fast, does w2v classify texts, compared with fastText and with scikit-learn's LinearSVC?

    python bench/classify.py --json FILE [--fasttext BINARY] [--only SET …] [--files TRAIN TEST …] [--seeds 5]
    python bench/classify.py --quantized --fasttext BINARY --json FILE [--only SET …] [--seeds 5]
    python bench/classify.py --training --fasttext BINARY [--only SET …] [--repeats 5] [--json FILE]

The first form trains each program on each set, and scores it on the test lines. Programs and seeds alternate, and FILE
keeps finished runs, so that the command can be repeated. Times, memory and size are of the whole process, from text to
model. The second form makes models of fastText with 16 dimensions smaller with `fasttext quantize` and `w2v quantize`;
fastText predicts with both files. The third form compares the processor seconds of training alone, at equal settings.

The sets are in ../shared/labels, or in pairs of files with fastText's lines (--files). lid is language identification
from n-grams of 2 to 4 characters; a random fifth of its lines is held out. BINARY is fastText's program:

    git clone https://github.com/facebookresearch/fastText
    make -C fastText CXXFLAGS="-pthread -std=c++17 -O3 -march=native -include cstdint" fasttext
"""

from __future__ import annotations

import json
import lzma
import pickle
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    BENCH,
    StoredRuns,
    Summary,
    alternate,
    benchmark_parser,
    format_number,
    group_runs,
    processor_seconds,
    report_results,
    round_ratios,
    run_command,
    runs_markdown,
    summarise,
    time_call,
    watch_process,
)
from numpy.typing import NDArray

import w2v
from w2v._evaluation.labels import Predictions, score_labels
from w2v._text.corpus import Corpus

PREFIX = "__label__"
SETS = ("R8", "TREC", "MR", "lid")
TUNED: dict[str, Any] = {"lr": 0.5, "epoch": 25, "wordNgrams": 2}  # of fastText
CUTOFFS = (20_000, 5000, 1000)  # rows that are kept by --quantized
MEAN: dict[str, Any] = {
    "pooling": "mean", "classifier": "embedded", "loss": "softmax", "alpha": 0.5, "min_alpha": 0.0, "epochs": 25,
    "vector_size": 100,
}  # fmt: skip
CLASSIFY = "import json, sys, w2v; w2v.train_classifier(sys.argv[1], **json.loads(sys.argv[3])).save(sys.argv[2])"
TRAIN = """
import json, sys, time
from w2v._training.config import RunConfig
from w2v._training.run import Run
from w2v._training.train import open_training
from w2v._text.corpus import Corpus
config = RunConfig.from_options({**json.loads(sys.argv[2]), "classify": True})
with open_training(config, Corpus(sys.argv[1]), views="words") as training:
    start = time.process_time()
    Run.train(training.runs["words"])  # without the temperature, which fastText does not have
    print(time.process_time() - start)
"""
SVC = """
import pickle, sys
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
labels, texts = zip(*(line.split(maxsplit=1) for line in open(sys.argv[1], encoding="utf-8")))
words = {"token_pattern": r"\\S+", "ngram_range": (1, 2)}
kind = {"analyzer": "char_wb", "ngram_range": (2, 4)} if sys.argv[3] == "characters" else words
with open(sys.argv[2], "wb") as file:
    pickle.dump(make_pipeline(TfidfVectorizer(sublinear_tf=True, **kind), LinearSVC()).fit(texts, labels), file)
"""

Run = dict[str, float | None]


@dataclass(frozen=True)
class TextSet:
    """Texts for training and testing, in fastText's lines.

    Attributes:
        name: Its name in the tables.
        train, test: The files.
        characters: Whether texts are classified by n-grams of 2 to 4 characters, and not by words and bigrams.
    """

    name: str
    train: Path
    test: Path
    characters: bool = False

    @property
    def lines(self) -> list[tuple[list[str], str]]:
        """The labels and the other words of the test lines."""
        tokens = [line.split() for line in self.test.read_text("utf-8").splitlines()]
        is_label = [[token.startswith(PREFIX) for token in line] for line in tokens]
        return [
            (
                [token.removeprefix(PREFIX) for token, label in zip(line, flags, strict=True) if label],
                " ".join(token for token, label in zip(line, flags, strict=True) if not label),
            )
            for line, flags in zip(tokens, is_label, strict=True)
        ]


def open_sets(shared: Path, names: Iterable[str], files: Sequence[Path], folder: Path) -> list[TextSet]:
    """Unpack the named sets of the shared folder, and add pairs of other files."""
    sets = []
    for name in names:
        paths = [folder / f"{name}.{part}.txt" for part in ("train", "test")]
        if name == "lid":
            lines = lzma.decompress((shared / "lid.train.xz").read_bytes()).splitlines(keepends=True)
            order = np.random.default_rng(1).permutation(len(lines))
            parts = np.split(order, [4 * len(lines) // 5])
            for path, part in zip(paths, parts, strict=True):
                path.write_bytes(b"".join(lines[row] for row in part))
        else:
            for path in paths:
                stored = shared / path.with_suffix(".xz").name.replace("MR", "mr")
                path.write_bytes(lzma.decompress(stored.read_bytes()))
        sets.append(TextSet(name, paths[0], paths[1], name == "lid"))
    return sets + [TextSet(train.stem, train, test) for train, test in zip(files[::2], files[1::2], strict=True)]


# -- the programs -------------------------------------------------------------------------------


def w2v_command(texts: TextSet, model: Path, seed: int, **settings: Any) -> list[str | Path]:
    """Return the command that trains a classifier of w2v."""
    ngrams = {"subwords": "2-4", "word_ngrams": 1} if texts.characters else {}
    return [sys.executable, "-c", CLASSIFY, texts.train, model, json.dumps({"seed": seed} | ngrams | settings)]


def fasttext_command(binary: str, texts: TextSet, model: Path, seed: int, **options: Any) -> list[str | Path]:
    """Return the command that trains a classifier of fastText, with two threads."""
    if texts.characters:
        options |= {"minn": 2, "maxn": 4, "wordNgrams": 1}
    words = [word for name, value in ({"thread": 2, "seed": seed} | options).items() for word in (f"-{name}", value)]
    command = [binary, "supervised", "-input", texts.train, "-output", model.with_suffix(""), "-verbose", 0]
    return [str(word) for word in command + words]


def svc_command(texts: TextSet, model: Path, seed: int) -> list[str | Path]:
    """Return the command that trains tf-idf and LinearSVC, which needs no seed."""
    return [sys.executable, "-c", SVC, texts.train, model, "characters" if texts.characters else "words"]


def predictions_of(texts: TextSet, model: Path, fasttext: str) -> tuple[list[str], NDArray[np.float32]]:
    """Return the labels of a model and its probabilities for the test lines; NaN for lines without a prediction."""
    if model.suffix == ".safetensors":
        classifier = w2v.Classifier.load(model)
        blocks = classifier.read_predictions(Corpus(texts.test), progress=lambda _: None)
        return classifier.labels, np.concatenate([block.probabilities for block in blocks])
    if model.suffix == ".pickle":
        fitted = pickle.loads(model.read_bytes())
        labels = [label.removeprefix(PREFIX) for label in fitted.classes_]
        chosen = fitted.predict([text for _, text in texts.lines])
        return labels, (chosen[:, None] == fitted.classes_).astype(np.float32)
    printed, _ = run_command([fasttext, "predict-prob", model, texts.test, "-1"])
    rows = [line.split() for line in printed.splitlines()]
    labels = sorted({label for row in rows for label in row[::2]})
    columns = {label: column for column, label in enumerate(labels)}
    probabilities = np.full((len(rows), len(labels)), np.nan, np.float32)
    for number, row in enumerate(rows):
        probabilities[number, [columns[label] for label in row[::2]]] = [min(float(each), 1) for each in row[1::2]]
    return [label.removeprefix(PREFIX) for label in labels], probabilities


def measure(texts: TextSet, command: Sequence[str | Path], model: Path, fasttext: str) -> Run:
    """Train in another process; return its cost, the size of the model, and the scores of its predictions."""
    model.unlink(missing_ok=True)
    seconds = 0.0

    def train() -> dict[str, int]:
        nonlocal seconds
        peaks: list[dict[str, int]] = []
        seconds = time_call(lambda: peaks.append(watch_process(command)[1]))
        return peaks[0]

    peaks, processor = processor_seconds(train)
    labels, probabilities = predictions_of(texts, model, fasttext)
    numbers = {label: number for number, label in enumerate(labels)}
    own = [[numbers.get(label, -1) for label in each] for each, _ in texts.lines]
    starts = np.cumsum([0, *map(len, own)], dtype=np.int64)
    gold = np.array([each for row in own for each in row], np.int32)
    scores = score_labels(labels, [Predictions(probabilities, starts, gold)])
    return {
        "accuracy": 100 * scores.accuracy,
        "macro F1": 100 * (scores.macro_f1 or 0),
        "log loss": None if model.suffix == ".pickle" else scores.log_loss,
        "seconds": seconds,
        "processor seconds": processor,
        "peak MB": peaks["VmHWM"] / 1e6,
        "file MB": model.stat().st_size / 1e6,
    }


def collect_runs(options: Any, sets: Sequence[TextSet], folder: Path) -> None:
    """Train and score each program on each set, and print the table."""
    fasttext = partial(fasttext_command, options.fasttext)
    programs: dict[str, tuple[Callable[..., list[str | Path]], str]] = {
        "w2v": (w2v_command, ".safetensors"),
        "w2v, mean pooling": (partial(w2v_command, **MEAN), ".safetensors"),
        "fastText": (fasttext, ".bin"),
        "fastText, lr 0.5, 25 epochs, bigrams": (partial(fasttext, **TUNED), ".bin"),
        "tf-idf, LinearSVC": (svc_command, ".pickle"),
    }
    runs = StoredRuns(options.json)
    for seed in range(1, options.seeds + 1):
        for texts in sets:
            for program, (command, suffix) in programs.items():
                if (suffix == ".bin" and not options.fasttext) or (suffix == ".pickle" and seed > 1):
                    continue
                model = folder / f"model{suffix}"
                trained = partial(measure, texts, command(texts, model, seed), model, options.fasttext)
                runs.run_once({"set": texts.name, "program": program, "seed": seed}, trained)
    print(markdown(runs.document))


def compare_quantised(options: Any, sets: Sequence[TextSet], folder: Path) -> None:
    """Quantise models of fastText with fastText and with w2v, at the same numbers of rows, and print the table."""
    runs, model, small = StoredRuns(options.json), folder / "model.bin", folder / "model.ftz"
    for seed in range(1, options.seeds + 1):
        for texts in sets:
            train = fasttext_command(options.fasttext, texts, model, seed, **TUNED | {"dim": 16, "bucket": 200_000})
            run = partial(measure, texts, train, model, options.fasttext)
            runs.run_once({"set": texts.name, "program": "fastText, 16 dimensions", "seed": seed}, run)
            if not model.exists():  # the stored run was of another call
                run_command(train)
            for cutoff in CUTOFFS:
                name = f"{cutoff:,} rows"
                theirs = [options.fasttext, "quantize", "-input", texts.train, "-output", model.with_suffix("")]
                theirs += [
                    "-qnorm",
                    "-retrain",
                    "-cutoff",
                    cutoff,
                    "-epoch",
                    5,
                    "-lr",
                    0.1,
                    "-thread",
                    2,
                    "-verbose",
                    0,
                ]
                ours = [sys.executable, "-m", "w2v", "quantize", model, "-o", small, "--norm", "--cutoff", cutoff]
                ours += ["--retrain", texts.train, "--epochs", 5, "--alpha", 0.1, "--quiet"]
                for program, command in (("fastText", theirs), ("w2v", ours)):
                    run = partial(measure, texts, [str(word) for word in command], small, options.fasttext)
                    runs.run_once({"set": texts.name, "program": f"{program}, {name}", "seed": seed}, run)
            model.unlink()
    print(markdown(runs.document))


def markdown(document: dict[str, Any]) -> str:
    """Return a table with the median of the seeds, and the lowest and the highest value in brackets."""
    groups = group_runs(document["runs"], ["set", "program"])
    columns = list(next(iter(groups.values()))[0])
    rows = []
    for (name, program), measured in groups.items():
        cells = [format_cell([run[column] for run in measured if run[column] is not None]) for column in columns]
        rows.append([str(name), str(program), *cells])
    return runs_markdown(document, "Classifying texts", ["set", "program", *columns], rows)


def format_cell(values: Sequence[float]) -> str:
    """Format the median and the range, with a decimal for numbers from 10 to 1,000."""
    if not values:
        return ""
    numbers = [f"{value:.1f}" if 10 <= value < 1000 else format_number(value) for value in summarise(values).values()]
    return numbers[0] if len(set(numbers)) == 1 else f"{numbers[0]} ({numbers[1]}–{numbers[2]})"


# -- training alone -------------------------------------------------------------------------------


def training_seconds(texts: TextSet, size: int, threads: int) -> float:
    """Return the processor seconds that w2v trains for 25 epochs."""
    settings = MEAN | {"vector_size": size, "workers": threads}
    return float(run_command([sys.executable, "-c", TRAIN, texts.train, json.dumps(settings)])[0])


def fasttext_seconds(binary: str, texts: TextSet, model: Path, size: int, threads: int) -> float:
    """Return the processor seconds that fastText trains for 25 epochs.

    They are the difference between 30 and 5 epochs, which read the same text and write a file of the same size.
    """
    settings = TUNED | {"dim": size, "thread": threads}
    commands = [fasttext_command(binary, texts, model, 1, **settings | {"epoch": epochs}) for epochs in (30, 5)]
    long, short = (processor_seconds(partial(run_command, command))[1] for command in commands)
    return long - short


def compare_training(options: Any, sets: Sequence[TextSet], folder: Path) -> None:
    """Compare the processor seconds of training with mean pooling, softmax, bigrams and a rate of 0.5."""
    seconds: dict[str, Summary] = {}
    ratios: dict[str, Summary] = {}
    for texts in sets:
        for size in (16, 100):
            for threads in (1, 2):
                times = alternate(
                    {
                        "w2v": partial(training_seconds, texts, size, threads),
                        "fastText": partial(
                            fasttext_seconds, options.fasttext, texts, folder / "model.bin", size, threads
                        ),
                    },
                    options.repeats,
                )
                name = f"{texts.name}, {size} dimensions, {threads} thread{'s' * (threads > 1)}"
                seconds |= {f"{name}, {program}": summarise(each) for program, each in times.items()}
                ratios[name] = summarise(round_ratios(times["fastText"], times["w2v"]), goal=5)
    notes = "Processor seconds of training alone, 25 epochs, mean pooling, softmax, bigrams."
    tables = {"processor_seconds": seconds, "fastText / w2v": ratios}
    report_results(options, "Training a classifier", notes, **tables)


def main() -> None:
    parser = benchmark_parser(__doc__, repeats=5)
    parser.add_argument("--shared", type=Path, default=BENCH.parent.parent / "shared/labels", metavar="FOLDER")
    parser.add_argument("--only", nargs="+", choices=SETS, metavar="SET", help="sets of the folder [all]")
    parser.add_argument("--files", type=Path, nargs="+", default=[], metavar="FILE", help="pairs of TRAIN and TEST")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each program [%(default)s]")
    parser.add_argument("--fasttext", default=shutil.which("fasttext"), metavar="BINARY")
    parser.add_argument("--quantized", action="store_true", help="compare small files")
    parser.add_argument("--training", action="store_true", help="compare training alone")
    options = parser.parse_args()
    if len(options.files) % 2:
        parser.error("--files takes pairs of a training file and a test file")
    if (options.training or options.quantized) and not options.fasttext:
        parser.error("--training and --quantized need --fasttext")
    if not options.training and not options.json:
        parser.error("name a file with --json")
    names = options.only or ([] if options.files else ("R8", "MR") if options.training else SETS)
    with tempfile.TemporaryDirectory() as folder:
        sets = open_sets(options.shared, names, options.files, Path(folder))
        compare = compare_training if options.training else compare_quantised if options.quantized else collect_runs
        compare(options, sets, Path(folder))


if __name__ == "__main__":
    main()
