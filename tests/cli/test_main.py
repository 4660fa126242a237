"""The commands from a user's view: output, files, errors, help and signals."""

import bz2
import gzip
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import w2v
from tests.helpers import IS_ROOT, PROGRAM, QUICK, command_of, run, run_json, write_with_strings
from w2v._cli import console, outputs
from w2v._cli import main as cli
from w2v._graph.walks import WalkOptions
from w2v._losses.registry import Settings
from w2v._options import MINIMUM, options_of
from w2v._system import memory
from w2v._system.files import EXISTS
from w2v._system.signals import REPEATED_SIGNALS, TERMINATION_SIGNALS
from w2v._text.idstore import ReadingOptions
from w2v._text.labels import LabelOptions
from w2v._text.phrases import PhraseOptions

# Each command succeeds with these arguments.
ARGUMENTS = {
    "vocab": "{corpus} -o out",
    "phrases": "{corpus} -o out",
    "walks": "{corpus} -o out --format adjlist --walk-length 3 --walks 1",
    "tree": "{corpus}",
    "train": "{corpus} -o out.bin --epochs 1 --vector-size 8",
    # All settings that tune would try are given, so that the result does not depend on time.
    "classify": "{labelled} --workers 1 -o out.safetensors",
    "predict": "{classifier} {line}",
    "quantize": "{classifier} -o out.safetensors --cutoff 2",
    "slices": "{corpus} {other} -o out --epochs 1 --vector-size 8",
    "tune": "{corpus} -o out.bin --epochs 1 --vector-size 8 --model skipgram --loss ns --window 5 --negative 3 "
    "--sample 0 --vectors input --alpha 0.05 --min-alpha 0.001",
    "query": "{model} king",
    "encode": "{model} {corpus} -o out.npy",
    "recommend": "{model} {corpus} -o out.parquet",
    "info": "{model}",
    "convert": "{model} out.txt",
    "combine": "{model} {model} -o out.bin",
    "align": "{model} {model} -o out",
    "analogy": "{model}",
    "similarity": "{model}",
    "evaluate": "{model}",
    "compare": "{model} {model}",
    "change": "{model} {model}",
    "perplexity": "{model} {corpus}",
    "compare-periods": "{corpus} {later}",
    "compare-losses": "{corpus} --losses ns,hs --vector-size 8",
    "rank": "{model} --contexts 9 --targets 9 -o out.svg",
    "plot": "{model} king queen -o out.svg",
    "explore": "{model} --restrict-vocab 9 -o out.html",
}


@pytest.fixture(scope="module")
def labelled_files(short_text: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a file of texts with labels, one text, a classifier, and a copy of the corpus."""
    folder = tmp_path_factory.mktemp("labels")
    files = {name: folder / name for name in ("labelled", "line", "classifier", "later")}
    files["classifier"] = files["classifier"].with_suffix(".safetensors")
    files["labelled"].write_text("__label__a king queen\n__label__b bread soup\n" * 9)
    files["line"].write_text("king soup\n")
    files["later"].write_bytes(short_text.read_bytes())
    w2v.train_classifier(files["labelled"], workers=1).save(files["classifier"])
    return files


TAKES_SETTINGS = {*cli.GROUPS["Prepare"], *cli.GROUPS["Train"], "compare-losses"}


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_all_commands_have_help_errors_json_and_quiet(
    command: str, short_text: Path, model: Path, labelled_files: dict[str, Path], here: Path
) -> None:
    """Help has an example, errors name the wrong argument and nothing is written, --json and --quiet work."""
    shown = run(command, "--help").stdout
    assert f"\n  w2v {command} " in shown == run(command, "-h").stdout
    assert f"\n  {command} " in run().stdout
    inputs = {"corpus": short_text, "other": short_text.with_name("[s]hort.txt"), "model": model}  # other: a pattern
    inputs |= labelled_files
    arguments = ARGUMENTS[command].format(**inputs).split()
    assert re.search("No such option:? '?--unknown", run(command, *arguments, "--unknown", code=2).stderr)
    if command != "info":
        assert "Missing argument" in run(command, code=2).stderr
    for name in inputs:
        if f"{{{name}}}" in ARGUMENTS[command]:
            missing = ARGUMENTS[command].format(**inputs | {name: "missing"}).split()
            assert "missing" in run(command, *missing, code=1).stderr
    assert list(here.iterdir()) == []
    assert isinstance(run_json(command, *arguments), dict)
    if "--quiet" in shown:
        again = ["--force"] if "out" in ARGUMENTS[command] else []
        assert run(command, *arguments, "--quiet", *again).output == ""


# -- train ----------------------------------------------------------------------------------


def test_train_writes_model_bin_by_default(sample: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "LOG_EVERY", math.inf)  # as if training were quick
    Path("text.txt").write_text(sample.read_text("utf-8")[:100_000], "utf-8")
    result = run("train", "text.txt", "--epochs", 2)
    assert sorted(path.name for path in here.iterdir()) == ["model.bin", "text.txt"]
    assert len(w2v.load("model.bin")) > 300
    advice, hint = result.stderr.splitlines()
    assert "words, which is not much to learn from" in advice
    assert hint.startswith("w2v: model.bin has only words and vectors; -o model.safetensors also keeps the counts")
    output, _, settings = result.stdout.splitlines()
    assert output.startswith("output    model.bin: ")
    assert settings == "settings  model cbow, loss ns, window 8, epochs 2; all: --verbose"
    assert "model.bin exists: name another file with -o, or add --force" in run("train", "text.txt", code=1).stderr
    result = run("train", "text.txt", "-o", "other.bin", "--epochs", 2, "--verbose")
    assert "only words" not in result.stderr
    for shown in ("other.bin", "loss", "peak memory bytes", "vector_size 100", "alpha 0.075"):
        assert shown in result.stdout


def test_json_of_train_has_metrics(sample: Path, tmp_path: Path) -> None:
    output, before = tmp_path / "model.bin", memory.peak_resident_bytes()
    metrics = run_json("train", sample, "-o", output, "--epochs", 3, "--vector-size", 20)
    vectors = w2v.load(output)
    assert metrics["output"] == str(output)
    assert (metrics["vocabulary_size"], metrics["vector_size"]) == vectors.vectors.shape
    assert metrics["tokens_trained"] == 3 * metrics["tokens"]
    assert 90_000 < metrics["tokens"] < 100_100  # without the rare words
    assert len(metrics["loss"]) == 3
    assert metrics["loss"] == sorted(metrics["loss"], reverse=True)
    seconds = metrics["seconds"]
    assert list(seconds) == ["read", "train", "save", "total"]
    assert 0 < seconds["read"] + seconds["train"] + seconds["save"] <= seconds["total"]
    assert metrics["words_per_second"] == pytest.approx(metrics["tokens_trained"] / seconds["train"])
    assert before <= metrics["peak_memory_bytes"] <= memory.peak_resident_bytes()
    assert metrics["settings"]["epochs"] == 3
    assert metrics["settings"]["alpha"] == 0.075


def test_model_does_not_depend_on_the_source_of_the_text(short_text: Path, tmp_path: Path) -> None:
    text = short_text.read_bytes()
    half = text.index(b"\n", len(text) // 2) + 1
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "1.txt").write_bytes(text[:half])
    (folder / "2").write_bytes(bz2.compress(text[half:]))
    (tmp_path / "all.gz").write_bytes(gzip.compress(text))
    sources = [[short_text], [tmp_path / "all.gz"], [folder], [f"{folder}/*"], ["-"]]
    sources.append([folder / "1.txt", folder / "2"])
    models = set()
    for number, source in enumerate(sources):
        output = tmp_path / f"{number}.bin"
        run("train", *source, "-o", output, *QUICK, stdin=text if source == ["-"] else None)
        models.add(output.read_bytes())
    assert len(models) == 1


def test_vocabulary_files_are_the_same_from_vocab_and_train(sample: Path, tmp_path: Path) -> None:
    counted, saved, again = (tmp_path / name for name in ("counted", "saved", "again"))
    metrics = run_json("vocab", sample, "-o", counted, "--min-count", 20, "--max-vocab", 500)
    assert metrics["vocabulary_size"] == 500
    assert metrics["tokens"] < metrics["corpus_tokens"] == len(sample.read_text("utf-8").split())
    assert metrics["sentences"] == sample.read_text("utf-8").count("\n")
    options = ["--min-count", 20, "--max-vocab", 500, *QUICK]
    run("train", sample, "-o", tmp_path / "1.bin", "--save-vocab", saved, *options)
    run("train", sample, "-o", tmp_path / "2.bin", "--read-vocab", saved, "--save-vocab", again, *QUICK)
    assert counted.read_bytes() == saved.read_bytes() == again.read_bytes()
    assert (tmp_path / "1.bin").read_bytes() == (tmp_path / "2.bin").read_bytes()
    assert "sentences" in run("vocab", sample, "-o", counted, "--force").stdout


def test_all_commands_normalise_words_alike(sample: Path, tmp_path: Path) -> None:
    """Every command that reads a text normalises and tokenizes it alike, and so do queries of a model."""
    model, raw = tmp_path / "m.safetensors", tmp_path / "raw.txt"
    lines = sample.read_text("utf-8").splitlines()[::10] + ["the king and the queen saw the man and the woman"] * 9
    raw.write_text("".join(f"<p>{line.title().replace('K', 'Ｋ')}, 1984.</p>\n" for line in lines), "utf-8")
    plain = tmp_path / "plain.txt"
    plain.write_text("".join(f"{line} one nine eight four\n" for line in lines), "utf-8")
    options = ["--lower", "--tokenize", "words", "--digits", "spell", "--normalize", "nfkc", "--strip-markup"]
    run("vocab", raw, "-o", tmp_path / "raw.words", *options)
    run("vocab", plain, "-o", tmp_path / "plain.words")
    assert (tmp_path / "raw.words").read_text() == (tmp_path / "plain.words").read_text()
    assert run_json("tree", raw, *options) == run_json("tree", plain)
    run("train", raw, "-o", model, *QUICK, *options, "--save-config", tmp_path / "run.toml")
    run("train", plain, "-o", tmp_path / "plain.safetensors", *QUICK)
    found, expected = w2v.Model.load(model), w2v.Model.load(tmp_path / "plain.safetensors")
    assert found.vocabulary.words == expected.vocabulary.words
    assert np.array_equal(found.views["words"].inputs, expected.views["words"].inputs)
    assert run_json("info", model)["text"] == {
        "lower": True, "tokenize": "words", "digits": "spell", "normalize": "nfkc", "strip_markup": True
    }  # fmt: skip
    assert run_json("info", tmp_path / "plain.safetensors")["text"] == {}

    same = run_json("perplexity", model, raw)
    assert same == run_json("perplexity", tmp_path / "plain.safetensors", plain)
    assert run_json("perplexity", model, raw, "--keep-case")["skipped"] > same["skipped"]

    for asked, words in {
        "King": ["king"],
        "ＫING - Man + 8": ["king", "eight"],
        "King, 18": ["king", "one", "eight"],
    }.items():
        assert run_json("query", model, asked)["positive"] == words
    assert run_json("similarity", model, "King,", "Queen")["cosine"] == pytest.approx(
        w2v.load(model).similarity("king", "queen"), abs=1e-6
    )
    (tmp_path / "pairs.txt").write_text("King, Queen 5\n(king man 4\nking man! 3\n")
    assert run_json("similarity", model, tmp_path / "pairs.txt")["unknown"] == []
    (tmp_path / "questions.txt").write_text(": one\nMan, King. Woman! Queen?\n")
    assert run_json("analogy", model, tmp_path / "questions.txt")["answered"] == 1

    run("train", raw, "-o", tmp_path / "more.safetensors", "--continue", model, "--epochs", 1)
    assert w2v.Model.load(tmp_path / "more.safetensors").text == found.text
    run("train", raw, "-o", tmp_path / "as-is.safetensors", "--continue", model, "--keep-case")
    assert not w2v.Model.load(tmp_path / "as-is.safetensors").text.lower
    for config in (tmp_path / "run.toml", model):
        run("train", raw, "-o", tmp_path / "again.safetensors", "--config", config, "--force")
        assert w2v.Model.load(tmp_path / "again.safetensors").text == found.text


def test_cache_and_pruning_are_reported(sample: Path, tmp_path: Path) -> None:
    command = ["train", sample, "-o", tmp_path / "m.bin", "--force", *QUICK, "--cache", tmp_path / "cache"]
    assert run_json(*command)["cache_reused"] is False
    assert run_json(*command)["cache_reused"] is True
    assert re.search(r"cache reused +yes", run(*command, "--verbose").stdout)
    pruned = ["--max-types", 1000, "--min-count", 1]
    metrics = run_json(*command, *pruned)
    assert metrics["pruned"] > 1000 >= metrics["vocabulary_size"]
    assert "--max-types" in run(*command, *pruned).stdout


def test_malformed_text_is_an_error_by_default(tmp_path: Path) -> None:
    text, output = tmp_path / "text", tmp_path / "m.bin"
    text.write_bytes(b"caf\xe9 a b c d e f\n" * 40)
    error = run("train", text, "-o", output, *QUICK, code=1).stderr
    assert "caf\\xe9" in error
    assert "--errors" in error
    run("train", text, "-o", output, *QUICK, "--errors", "replace")
    assert "caf\ufffd" in w2v.load(output)
    run("train", text, "-o", output, *QUICK, "--errors", "ignore", "--force")
    assert "caf" in w2v.load(output)


@pytest.mark.parametrize("option", ["-o", "--save-vocab"])
def test_file_that_appears_during_the_work_is_not_replaced(
    sample: Path, here: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.setattr(outputs, "check", lambda *_: None)  # as if the file appeared after the check
    monkeypatch.setattr(tempfile, "tempdir", str(here / "tmp"))
    (here / "tmp").mkdir()
    (here / "mine.txt").write_bytes(b"mine")
    error = run("train", sample, option, "mine.txt", *QUICK, code=1).stderr
    (saved,) = (here / "tmp").glob("*/mine.txt")
    assert f"cannot write mine.txt: {EXISTS}; saved as {saved} instead" in error
    assert (here / "mine.txt").read_bytes() == b"mine"
    run("train", sample, "-o", "mine.txt", "--force", *QUICK)
    assert len(w2v.load("mine.txt")) > 2000


@pytest.mark.parametrize("corpus", ["*.txt", "texts", "link.txt"])
@pytest.mark.parametrize("command", ["train {} -o {}", "train {} -o new.bin --save-vocab {}", "vocab {} -o {}"])
def test_output_cannot_be_a_corpus_file(sample: Path, here: Path, corpus: str, command: str) -> None:
    Path("texts").mkdir()
    Path("texts/one.txt").write_bytes(sample.read_bytes())
    Path("tiny.txt").hardlink_to("texts/one.txt")
    Path("link.txt").symlink_to("texts/one.txt")
    assert "is named twice" in run(*command.format(corpus, "tiny.txt").split(), "--force", code=2).stderr
    assert Path("tiny.txt").read_bytes() == sample.read_bytes()


# -- analogy, similarity --------------------------------------------------------------------


def test_analogy_reports_accuracy(model: Path) -> None:
    result = run_json("analogy", model)
    assert result["accuracy"] > 0.6
    assert 0 <= result["semantic"] <= 1
    assert 0 <= result["syntactic"] <= 1
    assert result["questions"] == result["answered"] == sum(part["total"] for part in result["sections"])
    assert result["restrict_vocab"] == len(w2v.load(model))
    assert result["malformed"] == 0
    shown = run("analogy", model).stdout
    for expected in ("country-capital", "semantic", f"{result['accuracy']:.1%}", "3CosAdd: cos(x, b)", "100.0%"):
        assert expected in shown
    assert run_json("analogy", model, "--method", "mul")["formula"].startswith("3CosMul")
    assert run_json("analogy", model, "--restrict-vocab", 100)["restrict_vocab"] == 100


# -- query, info, convert -------------------------------------------------------------------


def test_query_shows_the_formula_and_the_nearest_words(model: Path) -> None:
    result = run_json("query", model, "france", "--topn", 3)
    assert [(one["word"], one["score"]) for one in result["found"]] == w2v.load(model).most_similar("france", topn=3)
    assert result["formula"] == "cos(x, france)"
    shown = run("query", model, "france", "--topn", 3).stdout.splitlines()
    assert shown[0] == "cos(x, france)"
    assert [line.split()[0] for line in shown[1:]] == [one["word"] for one in result["found"]]


@pytest.mark.parametrize(
    ("words", "positive", "negative", "formula"),
    [
        (["king", "-", "man", "+", "woman"], ["king", "woman"], ["man"], "3CosAdd: cos(x, king + woman - man)"),
        (["king", "queen"], ["king", "queen"], [], "cos(x, mean of king, queen)"),
        (["--method", "mul", "king", "-", "man"], ["king"], ["man"], "3CosMul: cos(x, king) / (cos(x, man))"),
        (["--method", "mul", "-", "man"], [], ["man"], "3CosMul: 1 / (cos(x, man))"),
        (["king", "-man", "+woman"], ["king", "woman"], ["man"], "3CosAdd: cos(x, king + woman - man)"),
        (["king", "-man", "--topn", "10", "-queen"], ["king"], ["man", "queen"], "3CosAdd: cos(x, king - man - queen)"),
        (["king", "--vector", "-man"], ["king"], ["man"], "3CosAdd: cos(x, king - man)"),
    ],
)
def test_query_adds_and_subtracts_words(
    model: Path, words: list[str], positive: list[str], negative: list[str], formula: str
) -> None:
    result = run_json("query", model, *words)
    assert (result["positive"], result["negative"]) == (positive, negative)
    assert result["formula"].startswith(formula)
    assert len(result["found"]) == 10
    assert not {one["word"] for one in result["found"]} & {*positive, *negative}


def test_words_that_look_like_options_and_operators_can_be_queried(tmp_path: Path) -> None:
    file = tmp_path / "m.safetensors"
    words = ["-", "--", "+", "-x", "--json", "new york", "a"]
    w2v.KeyedVectors(words, np.eye(7, dtype=np.float32) + 0.1).save(file)
    assert run_json("query", file, "-")["positive"] == ["-"]
    assert "cos(x, -x)" in run("query", file, "--", "-x").stdout
    assert json.loads(run("query", file, "--json", "--", "-x", "-", "-").stdout)["negative"] == ["-"]
    assert run_json("query", file, "new york", "+", "a")["positive"] == ["new york", "a"]
    assert "cos(x, --json)" in run("query", file, "--", "--json").stdout
    assert "after the last +" in run("query", file, "a", "+", code=2).stderr
    assert "no word" in run("query", file, "", code=2).stderr


def test_query_shows_counts_and_vectors_and_restricts_the_vocabulary(model: Path, tmp_path: Path) -> None:
    vectors = w2v.load(model)
    counts = dict(zip(vectors.index_to_key, vectors.counts.tolist(), strict=True))
    result = run_json("query", model, "king", "-", "man", "--vector")
    assert [one["count"] for one in result["found"]] == [counts[one["word"]] for one in result["found"]]
    assert result["vectors"] == {word: vectors[word].tolist() for word in ("king", "man")}
    for method in ("add", "mul"):
        found = run_json("query", model, "king", "--restrict-vocab", 30, "--method", method)["found"]
        assert {one["word"] for one in found} <= set(vectors.index_to_key[:30])
        assert len(found) == 10
    first = result["found"][0]
    shown = run("query", model, "king", "-", "man", "--vector").stdout
    assert f"{first['count']:,} times" in shown
    assert f"\nking: {vectors['king'][0]:.6g} " in shown
    run("convert", model, tmp_path / "m.bin")
    assert "count" not in run_json("query", tmp_path / "m.bin", "king")["found"][0]
    assert "times" not in run("query", tmp_path / "m.bin", "king").stdout


def test_similarity_shows_the_cosine_of_two_words(model: Path) -> None:
    expected = w2v.load(model).similarity("king", "queen")
    assert run_json("similarity", model, "king", "queen") == {"words": ["king", "queen"], "cosine": expected}
    assert run("similarity", model, "king", "queen").stdout == f"{expected:.4f}\n"
    error = run("similarity", model, "king", "http://queen/", code=1).stderr
    assert "not in the vocabulary: 'http://queen/'" in error  # click would change a path
    error = run("similarity", model, "king", "quen", code=1).stderr
    assert "not in the vocabulary: 'quen' (did you mean queen" in error


def test_query_reads_lines_until_the_end_of_input(model: Path) -> None:
    lines = "france\n\nunheard\nking -\nking - man + woman"
    result = run("query", model, "--topn", 2, stdin=lines)
    assert result.stdout.count("cos(x, ") == 2
    assert result.stderr.splitlines() == [
        "w2v: not in the vocabulary: 'unheard' (did you mean heard?)",
        "w2v: a word is missing after the last -",
    ]
    result = run("query", model, "--json", stdin=lines)
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [answer["query"] for answer in answers] == ["france", "unheard", "king -", "king - man + woman"]
    assert ["error" in answer for answer in answers] == [False, True, True, False]
    assert result.stderr == ""
    assert run("query", model, stdin="").output == ""
    assert "not in the vocabulary" in run("query", model, stdin=b"caf\xe9\n").stderr


def test_info_describes_installation_and_models(model: Path, tmp_path: Path) -> None:
    here = run_json("info")
    assert here["version"] == w2v.__version__
    assert here["instruction_set"] in here["instruction_sets"]
    assert here["processors"] >= 1
    assert here["numpy"] in run("info").stdout
    native = run_json("info", model)
    assert native["format"] == "native"
    assert native["settings"]["vector_size"] == native["vector_size"] == 50
    assert native["most_frequent"][:2] == ["the", "and"]
    assert len(native["most_frequent"]) == 10
    assert native["norms"]["min"] < native["norms"]["mean"] < native["norms"]["max"]
    rows = [native["vocabulary_size"], 50]
    assert native["tensors"] == {"inputs": rows, "outputs": rows, "loss_by_epoch": [5]}
    assert native["output_layer"] == {"loss": "ns", "negative": 5, "ns_exponent": 0.5}
    shown = run("info", model).stdout
    assert "word2vec binary" not in shown
    assert "mixtures" not in shown  # a setting of another loss
    for name, kind in (("m.bin", "word2vec binary"), ("m.vec.gz", "word2vec text")):
        run("convert", model, tmp_path / name)
        other = run_json("info", tmp_path / name)
        assert other["format"] == kind
        assert other["settings"] is None
        assert other["output_layer"] == {}
        assert other["vocabulary_size"] == native["vocabulary_size"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--hs --tree balanced", {"loss": "hs", "tree": "balanced"}),
        ("--loss class --classes 3 --max-vocab 50", {"loss": "class", "classes": 3}),
        ("--loss softmax --max-vocab 50", {"loss": "softmax", "large_softmax": False}),
    ],
)
def test_info_describes_the_output_layer(options: str, expected: dict[str, Any], sample: Path, tmp_path: Path) -> None:
    run("train", sample, "-o", tmp_path / "m.safetensors", *QUICK, *options.split())
    assert run_json("info", tmp_path / "m.safetensors")["output_layer"] == expected
    assert f"loss {expected['loss']}" in run("info", tmp_path / "m.safetensors").stdout


def test_convert_keeps_vectors_in_all_formats(model: Path, tmp_path: Path) -> None:
    native = w2v.load(model)
    names = ["1.safetensors", "2.bin", "3.txt", "4.vec.gz", "5.bin.gz", "6.safetensors"]
    source = model
    for name in names:
        result = run_json("convert", source, tmp_path / name)
        assert (result["vocabulary_size"], result["vector_size"]) == native.vectors.shape
        lost = ["counts", "losses by epoch", "input rows", "output layer", "settings", "metrics"]
        assert result["lost"] == (lost if name == "2.bin" else [])
        source = tmp_path / name
        np.testing.assert_array_equal(w2v.load(source).vectors, native.vectors)
    assert (tmp_path / "1.safetensors").read_bytes() == model.read_bytes()
    assert w2v.load(source).index_to_key == native.index_to_key
    assert "counts, losses by epoch, input rows" in run("convert", model, tmp_path / "7.bin").stdout
    for option in ("--encoding=cp1251", "--errors=replace"):
        refused = run("convert", model, tmp_path / "8.bin", "--vectors=input", option, code=2).stderr
        assert f"{option.partition('=')[0]} has no effect with --vectors" in refused


# -- help and errors ------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["train", "tune", "phrases", "plot"])
def test_help_all_lists_every_option_and_help_the_common_ones(command: str) -> None:
    parameters = command_of(click.Context(cli.main), command).params
    options = {name for each in parameters if isinstance(each, click.Option) for name in each.opts[-1:]}
    short, every = (
        re.findall(r"^  (?:-\w, )?(--[\w-]+)(?:, --[\w-]+)? ", run(command, flag).stdout, re.MULTILINE)
        for flag in ("--help", "--help-all")
    )
    assert len(every) == len(options) + 2  # --help and --help-all
    assert 10 < len(short) < 25
    assert short[0] == "--output"
    assert short[-2:] == ["--help-all", "--help"]


def test_help_of_the_program_has_headings_and_is_also_a_command() -> None:
    shown = run("--help").stdout
    assert re.findall(r"^(\w+):$", shown, re.MULTILINE) == ["Options", *cli.GROUPS]
    assert run("help").stdout == shown
    assert run("help", "query").stdout == run("query", "--help").stdout
    assert run("version").stdout == run("--version").stdout == f"w2v {w2v.__version__}\n"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("trian corpus", "No such command 'trian': did you mean train?"),
        ("help sim", "No such command 'sim': did you mean similarity?"),
        ("train corpus --epoch 3", "--epoch: write --epochs; see w2v train --help"),
        ("train corpus --vector_size 3", "--vector_size: write --vector-size; see w2v train --help"),
        ("query model king -topn 3", "No such option '-topn': did you mean --topn?"),
    ],
)
def test_similar_names_are_suggested(command: str, expected: str) -> None:
    assert run(*command.split(), code=2).stderr.endswith(f"{expected}\n")


def test_unknown_names_are_refused_with_similar_or_possible_ones() -> None:
    error = run("query", "model", "king", "--restrict-vocabulary", 3, code=2).stderr
    assert re.search(r"No such option:? '?--restrict-vocabulary'?.* Did you mean '?--restrict-vocab'?", error)
    for option, value, others in (("--loss", "neg", "'ns', 'hs'"), ("--errors", "replaced", "'strict', ")):
        error = run("train", "corpus", option, value, code=2).stderr
        assert f"Invalid value for '{option}': '{value}' is not one of {others}" in error


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("train --phrases {corpus}", "is the FILE of --phrases"),
        ("train {corpus} --alpha nan", "alpha nan"),
        ("train {corpus} --max-types 0", "max_types"),
        ("train {corpus} --sg --cbow", "--cbow contradicts --model skipgram; see"),
        ("train {corpus} --sg --model cbow", "--sg contradicts --model cbow"),
        ("train {corpus} --hs --negative 5", "--negative has no effect with --loss hs"),
        ("train {corpus} --hs --tree clustered", "give both"),
        ("train {corpus} --tree balanced", "--tree has no effect with --loss ns"),
        ("train {corpus} --loss class --classes 90 --max-vocab 80", "classes 90: the vocabulary has 80 words"),
        ("train {corpus} --loss sampled --negative 2 --adaptive-samples", "negative 2: adaptive_samples draws more"),
        ("train {corpus} --sg --cbow-gradient faithful", "--cbow-gradient has no effect with --model skipgram"),
        ("train {corpus} -o model.zip", ".safetensors"),
        ("train {corpus} -o -", "-: outputs cannot be written to standard output"),
        ("convert {model} -", "-: outputs cannot be written to standard output"),
        ("tree {corpus} {corpus} --vocabulary", "--vocabulary takes one file"),
        ("tree {corpus} --vocabulary --lower", "--lower has no effect with a file of words and counts"),
        ("train {corpus} --window 5;0", "window '5;0': write how many words before and after the centre"),
        ("train {corpus} --buckets 50", "--buckets has no effect without --subwords"),
        ("query king {model}", "the model comes first: w2v query "),
        ("similarity {model} a b c", "give one file of word pairs, or two words, not 3: a b c; see"),
        ("similarity {model} --verbose a b", "--verbose has no effect with two words"),
        ("similarity {model} {corpus} {corpus}", "is a file, and two arguments are two words: give one file of pairs"),
        ("similarity {model} king {corpus}", "is a file, and two arguments are two words: give one file of pairs"),
        ("query {model} king --topn -3", "Invalid value for '--topn': -3 is not in the range"),
        ("plot {model} king -o out.svg --analogies", "WORDS has no effect with --analogies"),
        ("evaluate {model} --keep-case", "--lower has no effect without --held-out"),
        ("convert {model} model.h5", "model.h5: unknown extension: use one of .safetensors"),
        (
            "convert {model} model.kv",
            "model.kv: w2v reads gensim files, but cannot write them: use one of .safetensors",
        ),
        ("train {corpus} -o new.model", "new.model: w2v reads gensim files, but cannot write them: use one of"),
        ("train {corpus} --epochs often", "epochs 'often': it must be a whole number, from 1 to 1,000,000, or auto"),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_written(
    command: str, expected: str, sample: Path, model: Path, here: Path
) -> None:
    before = sample.read_bytes()
    error = run(*(part.format(corpus=sample, model=model) for part in command.split()), code=2).stderr
    assert expected in error
    assert list(here.iterdir()) == []
    assert sample.read_bytes() == before


READING = "--lower --tokenize=words --digits=zero --normalize=nfc --strip-markup --column=c --encoding=latin-1 "
READING += "--errors=strict --max-types=9"


@pytest.mark.parametrize(
    ("command", "cause", "others"),
    [
        ("explore m -o page.html", "--output", "--port=9 --host=localhost --approximate"),
        ("plot m king -o out.svg", "WORDS", "--words=list --topn=9 --skip=9"),
        ("plot m -o out.svg --words list", "--words", "--topn=9 --skip=9"),
        (
            "plot m -o out.svg --analogies",
            "--analogies",
            "--words=list --skip=9 --method=pca --groups=clusters --clusters=9 --seed=9",
        ),
        ("plot m -o out.svg --groups sections", "--groups sections", "--clusters=9"),
        ("plot m -o out.svg --groups frequency", "--groups frequency", "--clusters=9"),
        (
            "phrases text -o out --read-phrases list",
            "--read-phrases",
            "--scoring=npmi --threshold=1 --min-count=9 --passes=2 --delimiter=+ --max-pairs=9 --connectors=english "
            "--save-phrases=new",
        ),
        ("tree list --vocabulary", "a file of words and counts", f"{READING} --cache=folder"),
        (
            "train text -o new.bin --resume folder",
            "--resume",
            f"{READING} --graph --directed --walks=2 --read-vocab=list --continue=old --vocab=old --init=old --freeze "
            "--checkpoint=other --config=old --save-config=new",
        ),
    ],
)
def test_options_without_effect_are_refused(command: str, cause: str, others: str) -> None:
    for other in others.split():
        error = run(*command.split(), other, code=2).stderr
        assert f"w2v: {other.split('=')[0]} has no effect with {cause}; see" in error


def test_numbers_are_checked_before_any_file_is_read(here: Path) -> None:
    """With the lowest allowed number, the command goes on and finds that its files are missing."""
    checked = set()
    for command in cli.COMMANDS:
        kinds = (
            (Settings, PhraseOptions, ReadingOptions, WalkOptions, LabelOptions)
            if command in TAKES_SETTINGS
            else (ReadingOptions,)
        )
        checked_later = {name for kind in kinds for name in options_of(kind)}  # still before the text is read
        for parameter in command_of(click.Context(cli.main), command).params:
            if isinstance(parameter.type, click.types.IntParamType) and parameter.name not in checked_later:
                minimum = getattr(parameter.type, "min", MINIMUM.get(str(parameter.name)))
                assert minimum is not None
                arguments = re.sub(r"\{\w+\}", "missing", ARGUMENTS[command]).split()
                error = run(command, *arguments, parameter.opts[0], minimum - 1, code=2).stderr
                assert f"{parameter.name} {minimum - 1}: it must be" in error or "is not in the range" in error
                # Some options of these commands exclude other arguments, or need others.
                if command not in ("align", "evaluate", "explore", "plot", "tune"):
                    assert "missing" in run(command, *arguments, parameter.opts[0], minimum, code=1).stderr
                checked.add(command)
    assert {"query", "analogy", "plot", "explore"} <= checked


@pytest.mark.parametrize(
    "command", ["perplexity missing {} --max-types 0", "evaluate missing --held-out {} --max-types 0"]
)
def test_reading_options_are_checked_before_a_model_is_loaded(command: str, sample: Path) -> None:
    assert "max_types 0: it must be" in run(*command.format(sample).split(), code=2).stderr


@pytest.mark.parametrize("source", ["--init", "--continue", "--resume"])
def test_train_checks_settings_before_it_opens_a_model_or_checkpoint(source: str, sample: Path) -> None:
    command = ["train", sample, "-o", "missing/m.bin", source, "missing"]
    assert "epochs 0: it must be" in run(*command, "--epochs", 0, code=2).stderr
    assert "checkpoint_every '5x'" in run(*command, "--checkpoint-every", "5x", code=2).stderr


@pytest.mark.parametrize("wrong", [["--time", "soon"], ["--alpha", -1], ["--max-types", 0]])
def test_tune_keeps_earlier_trials_if_an_option_is_wrong(wrong: list[object], sample: Path, tmp_path: Path) -> None:
    trials = tmp_path / "best.tune.json"
    trials.write_text("{}")
    run("tune", sample, "-o", tmp_path / "best.bin", "--force", *wrong, code=2)
    assert trials.read_text() == "{}"


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux are names of files any bytes")
def test_tune_refuses_at_once_a_name_that_its_settings_cannot_have(tmp_path: Path, sample: Path) -> None:
    text = tmp_path / os.fsdecode(b"\xff.txt")
    text.symlink_to(sample)
    error = run("tune", text, "-o", tmp_path / "best.bin", code=1).stderr
    assert error.endswith("best.toml: corpus is not UTF-8, which TOML requires\n")
    assert list(tmp_path.iterdir()) == [text]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("train damaged.gz", "damaged.gz"),
        ("train one --min-count 1", "one word, 'word'"),
        ("train {corpus} --read-vocab missing", "missing"),
        ("train {corpus} --read-vocab few", "few, line 1"),
        ("train {corpus} -o folder.bin", "is a folder"),
        ("train {corpus} --cache old.bin", "old.bin"),
        ("analogy folder", "folder"),
        ("analogy {model} missing", "missing"),
        ("analogy {model} empty", "no questions"),
        ("similarity {model} missing", "missing"),
        ("similarity {model} few", "no pairs"),
        ("tree missing --vocabulary", "missing"),
        ("tree {corpus} --vocabulary", "line 1"),
        ("tree foreign --text --min-count 1 --word unheard", "not in the vocabulary: 'unheard'"),
        ("tree {corpus} --tree missing", "cannot read missing"),
        ("query {model} king - mann + womann", "not in the vocabulary: 'womann' (did you mean woman?), 'mann' (did"),
        ("convert old.bin new.bin", "old.bin"),
    ],
)
def test_failing_commands_name_the_cause_and_change_no_file(
    command: str, expected: str, sample: Path, model: Path, here: Path
) -> None:
    for folder in ("folder", "folder.bin"):
        Path(folder).mkdir()
    files = {"empty": b"", "few": b"some words\n", "one": b"word word\n", "old.bin": b"old", "foreign": b"a\nb\n"}
    files |= {"damaged.gz": gzip.compress(b"some words")[:-12]}
    for name, content in files.items():
        Path(name).write_bytes(content)
    error = run(*(part.format(corpus=sample, model=model) for part in command.split()), code=1).stderr
    assert expected in error
    assert {path.name for path in here.iterdir()} == {"folder", "folder.bin", *files}
    assert {name: Path(name).read_bytes() for name in files} == files


@pytest.mark.parametrize(
    "command",
    ["train", "vocab -o out", "phrases -o out", "tree", "perplexity {}", "tune", "encode {} -o o.npy", "recommend {}"],
)
def test_missing_corpus_files_are_named(command: str, model: Path, here: Path) -> None:
    Path("other").write_text("a file")
    arguments = command.format(model).split()
    for name in ("nofile", "no file", "das ist übel"):
        assert run(*arguments, name, code=1).stderr == f"w2v: corpus file {name!r} does not exist\n"
    assert run(*arguments, "", code=1).stderr == "w2v: the path of a corpus is empty\n"


def test_file_named_dash_is_not_standard_input(here: Path) -> None:
    Path("-").write_text("a b\n")
    run("vocab", "./-", "--min-count", 1, "-o", "words", stdin="c d\n")
    assert Path("words").read_text() == "</s> 1\na 1\nb 1\n"


def test_settings_of_a_model_that_are_damaged_or_newer_are_refused(tmp_path: Path) -> None:
    """Settings that are not JSON are tested in tests/formats/test_header.py."""
    unknown = f"w2v {w2v.__version__} does not know 'red': use the version that wrote it"
    for settings, message in (('{"alpha": NaN}', "damaged"), ('{"loss": [5]}', "damaged"), ('{"red": 1}', unknown)):
        write_with_strings(tmp_path / "m.safetensors", settings=settings)
        assert f"its settings: {message}" in run("info", tmp_path / "m.safetensors", code=1).stderr


def test_internal_errors_are_reported_in_one_line(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("w2v._cli.commands.vectors.load", lambda *_, **__: 1 / 0)
    error = run("query", model, "france", code=1).stderr
    assert error == "w2v: internal error: ZeroDivisionError: division by zero\n"


@pytest.mark.skipif(IS_ROOT, reason="root may read and write everything")
def test_missing_permissions_are_reported(sample: Path, tmp_path: Path) -> None:
    secret, locked = tmp_path / "secret", tmp_path / "locked"
    secret.write_text("words", "utf-8")
    secret.chmod(0)
    locked.mkdir(mode=0o500)
    for command in ("train", "info", "analogy"):
        assert "permission denied" in run(command, secret, code=1).stderr.lower()
    assert "cannot write" in run("train", sample, "-o", locked / "m.bin", code=1).stderr


# -- signals and streams --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "signal_number"),
    [
        ("w2v._text.idstore._write_all", signal.SIGINT),
        *(("w2v._training.run.Run._check_divergence", number) for number in (*TERMINATION_SIGNALS, *REPEATED_SIGNALS)),
    ],
)
def test_signals_leave_no_files(
    function: str, signal_number: int, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signals that kill the process are tested in tests/training/test_checkpoint.py."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(function, lambda *_: signal.raise_signal(signal_number))
    run("train", sample, "-o", tmp_path / "model.bin", "--cache", tmp_path / "cache", code=128 + signal_number)
    assert not (tmp_path / "model.bin").exists()
    assert [path for path in tmp_path.rglob("*") if ".tmp" in path.name] == []
    assert list((tmp_path / "tmp").iterdir()) == []


def test_ignored_signals_stay_ignored(model: Path) -> None:
    script = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + PROGRAM[2]
    with subprocess.Popen(
        [sys.executable, "-c", script, "query", model], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdin.write(b"france\n")
        process.stdin.flush()
        assert process.stdout.readline().rstrip() == b"cos(x, france)"
        process.send_signal(signal.SIGINT)
        process.communicate(b"france\n")
    assert process.returncode == 0


def test_characters_that_the_encoding_lacks_are_escaped(tmp_path: Path) -> None:
    w2v.KeyedVectors(["a", "ж"], np.eye(2, dtype=np.float32) + 1).save(tmp_path / "m.txt")
    command = [*PROGRAM, "query", tmp_path / "m.txt", "a"]
    variables = os.environ | {"PYTHONIOENCODING": "latin-1"}
    process = subprocess.run(command, capture_output=True, text=True, env=variables)
    assert (process.returncode, process.stderr) == (0, "")
    assert "\\u0436" in process.stdout


def test_query_imports_no_slow_module(model: Path) -> None:
    script = (
        "import sys; from w2v._cli.main import main\n"
        "try: main(['query', sys.argv[1], 'france'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "assert not {'scipy', 'zstandard', 'gensim', 'matplotlib', 'rich.live', 'ml_dtypes'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script, model], check=True, stdout=subprocess.PIPE)


def test_arguments_after_two_dashes_are_not_read_as_options_of_other_programs(tmp_path: Path) -> None:
    for dashes, message in (([], "-size: write --"), (["--"], "'-size' does not exist")):
        error = run("train", "-o", tmp_path / "m.bin", *dashes, "-size", 100, code=1 if dashes else 2).stderr
        assert message in error
