"""The commands for texts with labels: `classify`, `predict`, and `evaluate` and `plot` with --labelled."""

import json
import random
import re
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import w2v
from tests.helpers import run, run_json, start

WORDS = {
    "sport": ["ball", "team", "goal", "match", "coach"],
    "food": ["bread", "soup", "cook", "salt", "oven"],
    "home town": ["street", "house", "bridge", "park", "tram"],
}
COMMON = ["the", "of", "and", "to", "very"]
WRONG = 6  # texts of the test set with a wrong label


def examples(number: int) -> list[tuple[str, str]]:
    """Return labels and texts, which have words of their label and common words."""
    random_words = random.Random(number)
    return [
        (label, " ".join(random_words.choice(words if place % 2 else COMMON) for place in range(8)))
        for _ in range(number // len(WORDS))
        for label, words in WORDS.items()
    ]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with texts as lines and as tables, and a classifier of each."""
    folder = tmp_path_factory.mktemp("labels")
    test = examples(30)
    test[:WRONG] = [("food" if label == "sport" else "sport", text) for label, text in test[:WRONG]]
    for name, rows in ("train", examples(90)), ("test", test):
        lines = [f"__label__{label.replace(' ', '-')} {text}\n" for label, text in rows]
        (folder / f"{name}.txt").write_text("".join(lines))
        (folder / f"{name}.csv").write_text("".join(["topic,text\n", *(f"{label},{text}\n" for label, text in rows)]))
        objects = [json.dumps({"topic": [label], "text": text}) + "\n" for label, text in rows]
        (folder / f"{name}.jsonl").write_text("".join(objects))
    run("classify", folder / "train.txt", "--workers", 1, "-o", folder / "lines.safetensors")
    columns = ["--column", "text", "--labels", "topic"]
    run("classify", folder / "train.csv", *columns, "--workers", 1, "-o", folder / "table.safetensors")
    return folder


@pytest.fixture(autouse=True)
def in_folder(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(data)


def test_classify_shows_the_size_of_the_model_and_its_scores_on_a_test_file(data: Path) -> None:
    result = run("classify", "train.txt", "-o", "shown.safetensors", "--test", "test.txt")
    output, trained, settings, *scores = result.stdout.splitlines()
    assert output.startswith("output    shown.safetensors: 3 labels, 21 words, ")
    assert trained.startswith("trained   90 texts in ")
    assert "model direct, pooling idf, word_ngrams 2, loss ova" in settings
    assert scores[1].split()[:5] == ["texts", "accuracy", "(chance", "0.400)", "0.800"]
    assert "model_kind" not in result.stdout
    values = run_json("classify", "train.txt", "-o", "shown.safetensors", "--test", "test.txt", "--force")
    assert (values["labels"], values["words"], values["texts"], values["test"]["accuracy"]) == (3, 21, 90, 0.8)
    verbose = run("classify", "train.txt", "-o", "shown.safetensors", "--verbose", "--force").stdout
    assert "smoothing 0.01" in verbose


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_tables_give_the_same_classifier_as_lines(kind: str) -> None:
    columns = ["--column", "text", "--labels", "topic"]
    run("classify", f"train.{kind}", *columns, "--workers", 1, "-o", "other.safetensors", "--force")
    lines, table = w2v.load("lines.safetensors"), w2v.load("other.safetensors")
    assert sorted(table.labels) == ["food", "home town", "sport"]
    texts = [text for _, text in examples(30)]
    order = [table.labels.index(label.replace("-", " ")) for label in lines.labels]
    np.testing.assert_allclose(table.predict_proba(texts)[:, order], lines.predict_proba(texts), atol=1e-4)


def test_predict_prints_a_line_for_each_text_in_order() -> None:
    model = w2v.load("lines.safetensors")
    texts = ["ball goal", "zzz", "", "soup __label__sport salt", "tram"]
    expected = model.predict(["ball goal", "zzz", "", "soup salt", "tram"], k=2)
    result = run("predict", "lines.safetensors", "-k", 2, stdin="\n".join(texts))
    found = [line.split("\t") for line in result.stdout.split("\n")[:-1]]
    assert [line[::2] for line in found] == [[label for label, _ in pairs] or [""] for pairs in expected]
    probabilities = [float(value) for line in found for value in line[1::2]]
    assert probabilities == pytest.approx([p for pairs in expected for _, p in pairs], rel=1e-4)
    lines = run("predict", "lines.safetensors", "-", "--json", stdin="\n".join(texts)).stdout.splitlines()
    labels = [[pair["label"] for pair in json.loads(line)["labels"]] for line in lines]
    assert labels == [["sport"], [], [], ["food"], ["home-town"]]
    sure = run("predict", "lines.safetensors", "--threshold", 0.9, stdin="ball\nball soup\n").stdout.splitlines()
    assert sure[0].startswith("sport\t")
    assert sure[1] == ""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot tell whether a pipe has more bytes")
def test_predict_answers_each_line_of_a_pipe() -> None:
    with start("predict", "lines.safetensors", "-", "--json", stdin=subprocess.PIPE) as program:
        late = threading.Timer(60, program.kill)  # the test fails rather than wait for ever
        late.start()
        for text, label in (("ball goal", "sport"), ("bread", "food")):
            program.stdin.write(f"{text}\n".encode())
            program.stdin.flush()
            assert label in program.stdout.readline().decode()
        late.cancel()
        program.stdin.close()


def test_predict_reads_a_column_and_needs_it() -> None:
    lines = run("predict", "table.safetensors", "test.jsonl", "--column", "text").stdout.splitlines()
    assert len(lines) == 30
    assert lines[8].startswith("home town\t")
    assert "test.jsonl looks like JSON" in run("predict", "table.safetensors", "test.jsonl", code=1).stderr


def test_predict_explains_the_best_label() -> None:
    shown = run("predict", "lines.safetensors", "--explain", stdin="the ball soup ball\nzzz\n").stdout.splitlines()
    parts = w2v.load("lines.safetensors").explain("the ball soup ball").parts
    assert shown[0].startswith("sport\t0.")
    name, value, share = shown[1].split()
    assert (name, float(value)) == (parts[0][0], pytest.approx(parts[0][1], abs=1e-4))
    total = sum(abs(part) for _, part in parts)
    assert float(share.strip("%")) == pytest.approx(100 * parts[0][1] / total, abs=0.06)
    assert shown[-1] == ""
    lines = run("predict", "lines.safetensors", "--explain", "--json", stdin="ball\nzzz\n").stdout.splitlines()
    assert [json.loads(line)["label"] for line in lines] == ["sport", None]
    assert "-k has no effect with --explain" in run("predict", "lines.safetensors", "--explain", "-k", 2, code=2).stderr


def test_evaluate_scores_and_compares_classifiers() -> None:
    values = run_json("evaluate", "lines.safetensors", "lines.safetensors", "--labelled", "test.txt")
    scores, _ = values["classifiers"]
    assert (scores["texts"], scores["accuracy"], scores["unknown_labels"]) == (30, 0.8, 0)
    assert np.sum(scores["confusion"]) == 30
    assert values["results"][0]["scores"][1]["p"] == 1
    columns = ["--column", "text", "--labels", "topic"]
    table = run_json("evaluate", "table.safetensors", "--labelled", "test.csv", *columns)["classifiers"][0]
    assert table["accuracy"] == 0.8
    shown = run("evaluate", "table.safetensors", "table.safetensors", "--labelled", "test.csv", *columns).stdout
    for expected in ("macro F1", "calibration error", "home town", "most confused", "McNemar's test"):
        assert expected in shown
    assert shown.count("labels of table.safetensors:") == 2
    done = run("evaluate", "lines.safetensors", "--labelled", "test.txt", "--seed", 2, code=2)
    assert "--seed has no effect with --labelled and classifiers" in done.stderr
    assert "--labels has no effect without --labelled" in run("evaluate", "m", "--labels", "topic", code=2).stderr
    assert "--lower has no effect with --labelled" in run("evaluate", "m", "--labelled", "t", "--lower", code=2).stderr


def test_the_first_row_of_a_test_table_may_be_a_text(tmp_path: Path) -> None:
    (tmp_path / "test.csv").write_text("sport,ball\nfood,soup\nfood,bread\n")
    table = ["--labelled", tmp_path / "test.csv", "--labels", 1, "--column", 2]
    picture = tmp_path / "confusion.svg"
    for header, texts in (("--no-header", 3), ("--header", 2)):
        assert run_json("evaluate", "table.safetensors", *table, header)["classifiers"][0]["texts"] == texts
        more = [header, "--encoding", "utf-8", "-o", picture, "--force"]
        assert run_json("plot", "table.safetensors", *table, *more)["texts"] == texts


def test_labels_of_a_test_table_that_the_model_lacks_are_counted(tmp_path: Path) -> None:
    test = tmp_path / "test.csv"
    test.write_text("topic,text\nsport,ball goal\nnew,soup\n,bread\nfood,zzz\n")
    result = run("evaluate", "table.safetensors", "--labelled", test, "--column", "text", "--labels", "topic")
    assert "table.safetensors lacks 1 label of the texts, which it cannot predict" in result.stdout
    assert "skipped 1 text without a label" in result.stderr
    assert "table.safetensors knows no word of 1 text\n" in result.stdout


def test_plot_draws_the_confusion_matrix(tmp_path: Path) -> None:
    picture = tmp_path / "confusion.svg"
    columns = ["--column", "text", "--labels", "topic"]
    values = run_json("plot", "table.safetensors", "--labelled", "test.csv", *columns, "-o", picture)
    assert values == {"output": str(picture), "texts": 30, "labels": 3}
    assert picture.stat().st_size > 1000
    refused = run("plot", "m", "a", "--labelled", "test.txt", "-o", tmp_path / "b.svg", code=2)
    assert "[WORDS]... has no effect with --labelled" in refused.stderr or "WORDS has no effect" in refused.stderr


def test_classify_resumes_to_the_same_bits(tmp_path: Path) -> None:
    states, whole, resumed = tmp_path / "states", tmp_path / "whole.safetensors", tmp_path / "resumed.safetensors"
    run("classify", "train.txt", "-o", whole, "--workers", 1, "--checkpoint", states, "--checkpoint-every", "1epoch")
    last = max(states.glob("*.safetensors"), key=lambda path: path.stat().st_mtime_ns)
    last.unlink()
    again = run("classify", "train.txt", "--resume", states, "--held-out", "test.txt", code=2).stderr
    assert f"w2v classify train.txt --resume {states} -o {whole} --held-out test.txt" in again
    error = run("train", "train.txt", "--resume", states, "-o", "model.bin", code=2).stderr
    assert f"{states} has a run of w2v classify: resume it with that command, not with w2v train" in error
    assert (
        "--labels has no effect with --resume"
        in run("classify", "a", "--resume", states, "--labels", "b", code=2).stderr
    )
    run("classify", "train.txt", "-o", resumed, "--resume", states)
    first, second = w2v.load(whole), w2v.load(resumed)
    assert np.array_equal(first.inputs, second.inputs)
    assert first.temperature == second.temperature


def test_classify_continues_with_new_labels(tmp_path: Path) -> None:
    more = tmp_path / "more.txt"
    more.write_text("__label__art paint brush\n__label__sport ball\n" * 5)
    run("classify", more, "--continue", "lines.safetensors", "-o", tmp_path / "more.safetensors")
    assert "art" in w2v.load(tmp_path / "more.safetensors").labels
    w2v.KeyedVectors(["ball", "soup"], np.eye(2, 7)).save(tmp_path / "words.bin")
    run("classify", "train.txt", "--init", tmp_path / "words.bin", "--freeze", "-o", tmp_path / "init.safetensors")
    assert np.array_equal(w2v.load(tmp_path / "init.safetensors").vectors["soup"], np.eye(2, 7)[1])


def test_classify_stops_early_by_a_held_out_file(tmp_path: Path) -> None:
    states, options = tmp_path / "states", ["--held-out", "test.csv", "--column", "text", "--labels", "topic"]
    unused = run("classify", "train.csv", *options, "-o", tmp_path / "new.safetensors", code=2).stderr
    assert "--held-out has no effect without --stop-early" in unused
    output = tmp_path / "model.safetensors"
    done = run("classify", "train.csv", *options, "--stop-early", 1, "-o", output, "--checkpoint", states).stdout
    assert re.search(r"loss \d\.\d+ in the last epoch", done)  # of those that were trained
    assert w2v.load(output).metrics["held_out_scores"][-1] == 0.8
    again = ["train.csv", "--resume", states, "-o", output, "--force"]
    assert "another run, with held-out texts" in run("classify", *again, code=1).stderr
    run("classify", *again, "--held-out", "test.csv")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("ball\nsoup\n", "", "no word begins with __label__: write the labels into the lines"),
        ("__label__a ball\n__label__a soup\n", "", "has one label, 'a': at least 2 are needed"),
        ("topic,text\na,ball\nb,soup\n", "--column txt --labels topic", "has no column 'txt'"),
        ("topic,text\na,ball\nb,soup\n", "--column text --labels tpic", "has no column 'tpic'"),
        ("topic,text\na,ball\nb,soup\n", "", "looks like CSV with the columns topic, text"),
        (
            '{"topic":1.5,"text":"ball"}\n',
            "--column text --labels topic",
            "row 1: the label or tag 1.5 is neither text nor",
        ),
        ('{"topic":"a","text":7}\n', "--column text --labels topic", "row 1: the text 7 is neither text nor"),
    ],
)
def test_impossible_texts_are_refused_in_one_line(text: str, options: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "texts"
    path.write_text(text)
    error = run("classify", path, "-o", tmp_path / "new.safetensors", *options.split(), code=1).stderr
    assert message in error
    assert not (tmp_path / "new.safetensors").exists()


def test_options_are_refused_before_the_work(tmp_path: Path) -> None:
    existing = run("classify", "train.txt", "-o", "lines.safetensors", code=1).stderr
    assert "lines.safetensors exists: name another file with -o, or add --force" in existing
    assert "only .safetensors stores every classifier" in run("classify", "train.txt", "-o", "new.bin", code=2).stderr
    new = tmp_path / "new.safetensors"
    assert "'missing' does not exist" in run("classify", "train.txt", "-o", new, "--test", "missing", code=1).stderr
    needed = run("classify", "train.csv", "--labels", "topic", "-o", new, code=2).stderr
    assert "topic, needs --column (column=)" in needed
    assert "--negative has no effect with --loss ova" in run("classify", "train.txt", "--negative", 3, code=2).stderr
    for command in ("evaluate lines.safetensors --labelled test.csv --column text", "predict test.txt test.txt"):
        assert run(*command.split(), code=1).stderr
    unused = run("classify", "train.txt", "--word-ngrams", 1, "--buckets", 100, "-o", new, code=2).stderr
    assert "--buckets has no effect without --subwords" in unused
    run("classify", "train.txt", "--buckets", 100, "-o", new)
    foreign = run("classify", "train.txt", "-wordNgrams", 2, code=2).stderr
    assert foreign == "w2v: -wordNgrams: write --word-ngrams; see w2v classify --help\n"
    unlabelled = run("evaluate", "lines.safetensors", "--labelled", "test.csv", "--column", "text", code=1).stderr
    assert "has no text with a label" in unlabelled


def test_empty_texts_are_skipped_and_predicted_as_nothing(tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("__label__a ball\n\n__label__b\nplain\n__label__b soup\n")
    assert (
        "skipped 2 texts without words or without a label"
        in run("classify", texts, "-o", tmp_path / "m.safetensors").stderr
    )
    assert run("predict", tmp_path / "m.safetensors", texts).stdout.splitlines()[1] == ""


def test_other_commands_use_the_words_of_a_classifier(tmp_path: Path) -> None:
    facts = run_json("info", "table.safetensors")["classifier"]
    assert (facts["labels"], facts["words"], facts["options"]["classifier"]) == (3, 21, "direct")
    assert "home town" in run("info", "table.safetensors").stdout
    nearest = run("query", "lines.safetensors", "ball", "--topn", 4).stdout.splitlines()[1:]
    assert {line.split()[0] for line in nearest} == {*WORDS["sport"]} - {"ball"}
    lost = run_json("convert", "lines.safetensors", tmp_path / "words.bin")["lost"]
    assert "classifier" in lost
    assert len(w2v.load(tmp_path / "words.bin")) == 21
    run("convert", "lines.safetensors", tmp_path / "same.safetensors")
    assert w2v.load(tmp_path / "same.safetensors").labels == w2v.load("lines.safetensors").labels
    run("convert", "lines.safetensors", tmp_path / "fewer.safetensors", "--max-vocab", 5)
    assert isinstance(w2v.load(tmp_path / "fewer.safetensors"), w2v.KeyedVectors)
    for command in ("perplexity lines.safetensors test.txt", "rank lines.safetensors"):
        assert (
            "lines.safetensors is a classifier, and this needs a model of words" in run(*command.split(), code=1).stderr
        )
    scored = run("evaluate", "lines.safetensors", "--quiet").stderr
    assert "lines.safetensors is a classifier: these are scores of its word vectors" in scored
    continued = run("train", "train.txt", "--continue", "lines.safetensors", "-o", tmp_path / "c.bin", code=1).stderr
    assert "is a classifier" in continued


def test_train_on_texts_with_labels_names_classify(tmp_path: Path) -> None:
    error = run("train", "train.txt", "-o", tmp_path / "words.bin", "--min-count", 1, "--epochs", 1).stderr
    assert "have the form of a label, such as '__label__sport': w2v classify (train_classifier) learns" in error


def test_tune_finds_settings_and_says_how_to_train_with_them(tmp_path: Path) -> None:
    """Each word occurs once, and only its first letters tell the label, so that character n-grams are needed."""
    letters, train, test = random.Random(4), tmp_path / "train.txt", tmp_path / "test.txt"

    def lines(number: int) -> str:
        endings = ["".join(letters.choices("xyzuvw", k=5)) for _ in range(number)]
        return "".join(f"__label__{start} {start * 3}{end}\n" for start in "ab" for end in endings)

    train.write_text(lines(40))
    test.write_text(lines(20))
    fixed = ["--pooling", "idf", "--word-ngrams", 1, "--epochs", 5, "--min-count", 1, "--alpha", 10, "--time", "20s"]
    command = ["tune", train, "--classify", *fixed, "-o", tmp_path / "best.safetensors"]
    result = run(*command, "--held-out", test)
    values = dict(line.split(None, 1) for line in result.stdout.splitlines())
    assert "trial 1: score 0.00, best -, with the defaults; held-out texts, " in result.stderr
    (tmp_path / "best.safetensors").rename(tmp_path / "first.safetensors")
    assert "best.tune.json exists: add --resume" in run(*command, code=1).stderr
    assert run_json(*command, "--held-out", test, "--resume")["trials"] >= int(values["trials"])
    assert values["score"] == "1"
    assert w2v.load(tmp_path / "best.safetensors").evaluate(["aaaq", "bbbq"], ["a", "b"]).accuracy == 1
    repeat = shlex.split(values["command"])
    assert repeat[:3] == ["w2v", "classify", str(train)]
    run(*repeat[1:], "-o", tmp_path / "again.safetensors")
    same, best = (w2v.load(tmp_path / f"{name}.safetensors") for name in ("again", "best"))
    assert (same.settings, same.options) == (best.settings, best.options)
    again = run_json(*command, "--force", "--folds", 2, "--metric", "macro_f1")
    assert (again["metric"], again["changed_settings"]["subwords"] in ("2-4", "3-6")) == ("macro_f1", True)


def test_tune_stops_at_once_if_nothing_can_be_trained(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("__label__a ball\n__label__a soup\n" * 5)
    error = run(
        "tune", tmp_path / "one.txt", "--classify", "--time", "20s", "-o", tmp_path / "m.safetensors", code=1
    ).stderr
    assert "has one label, 'a': at least 2 are needed" in error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--classify -o new.bin", "only .safetensors stores every classifier"),
        ("--classify --window 3", "--window has no effect with --classify"),
        ("--classify --questions a", "--questions has no effect with --classify"),
        ("--classify --folds 1", "folds 1: it must be a whole number, 2 or more"),
        ("--classify --metric f2", "metric 'f2': choose accuracy, macro_f1, f1, f1:LABEL"),
        ("--metric accuracy", "--metric has no effect without --classify"),
        ("--labels topic", "--labels has no effect without --classify"),
    ],
)
def test_tune_refuses_options_of_the_other_kind(options: str, message: str) -> None:
    assert message in run("tune", "train.txt", *options.split(), code=2).stderr
