"""Log probabilities of words and the perplexity of texts match their definitions."""

import gzip
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import full_disk, log_probability, run, run_json
from w2v._losses import hierarchical_softmax
from w2v._losses.registry import loss_for
from w2v._progress import Progress
from w2v._system import memory
from w2v._text.normalise import TextOptions
from w2v._training import perplexity as perplexity_module
from w2v._training.model import View

WORDS = ["a", "b", "c", "d", "e", "f", "g"]
COUNTS = [9, 7, 4, 4, 2, 1, 1]
CODES = ["0000", "0001", "001", "01", "10", "110", "111"]
LINES = [list("abcba"), ["a"], list("xd"), ["e", "x", "f", "y", "g", "a", "a"], list("gg")]  # x and y are unknown
DIMENSIONS = 3
LOSSES: dict[str, dict[str, Any]] = {
    "ns": {"loss": "ns", "negative": 2},
    "nce": {"loss": "nce", "negative": 2},
    "sampled": {"loss": "sampled", "negative": 2},
    "class": {"loss": "class"},
    "one class": {"loss": "class", "classes": 1},
    "a class each": {"loss": "class", "classes": 7},
    "softmax": {"loss": "softmax"},
    "huffman": {"loss": "hs"},
    "balanced": {"loss": "hs", "tree": "balanced"},
    "file": {"loss": "hs", "tree": "tree.txt"},
    "clustered": {"loss": "hs", "tree": "clustered", "tree_vectors": "vectors.bin"},
}


def random_model(loss: str, folder: Path, seed: int = 0, scale: float = 1.0, **options: Any) -> View:
    """Return a model of WORDS with random float64 matrices."""
    random = np.random.default_rng(seed)
    (folder / "tree.txt").write_text("".join(map("{} {}\n".format, WORDS, CODES)), "utf-8")
    w2v.KeyedVectors(WORDS, random.normal(size=(7, 2))).save(folder / "vectors.bin", force=True)
    files = {
        name: folder / LOSSES[loss][name] for name in ("tree", "tree_vectors") if "." in LOSSES[loss].get(name, "")
    }
    options.setdefault("sample", 0)
    chosen = w2v.Settings(vector_size=DIMENSIONS, **({"window": 2} | LOSSES[loss] | files | options))
    vocabulary = w2v.Vocabulary(WORDS, COUNTS)
    built_loss = loss_for(chosen, vocabulary)
    inputs, outputs = (random.normal(0, scale, (size, DIMENSIONS)) for size in (7, built_loss.rows))
    return View(chosen, vocabulary, inputs, outputs, built_loss)


def probability(model: View, row: np.ndarray, word: int) -> float:
    return math.exp(log_probability(model.loss, model.outputs, row, word))


@pytest.mark.parametrize("loss", LOSSES)
def test_log_probabilities_match_the_definition(loss: str, tmp_path: Path) -> None:
    model = random_model(loss, tmp_path, ns_exponent=0.6)
    rows = np.random.default_rng(1).normal(size=(5, DIMENSIONS))
    expected = [[probability(model, row, word) for word in range(7)] for row in rows]
    np.testing.assert_allclose(np.exp(model.log_probabilities(rows)), expected, rtol=1e-12)
    rounded = replace(model, outputs=model.outputs.astype(np.float32))
    single = rounded.log_probabilities(rows.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(np.exp(single), expected, rtol=1e-5)
    numbers, words = np.array([4, 0, 2, 2, 4, 0, 2, 3, 3, 0, 2]), np.array([0, 6, 6, 1, 3, 6, 3, 2, 4, 5, 0])
    some = np.exp(model.log_probabilities_of(rows, numbers, words))
    np.testing.assert_allclose(some, np.array(expected)[numbers, words], rtol=1e-12)
    assert model.log_probabilities_of(rows, numbers[:0], words[:0]).shape == (0,)


@pytest.mark.parametrize("loss", ["huffman", "clustered", "class", "a class each"])
@pytest.mark.parametrize("kind", ["skipgram", "cbow"])
def test_tree_and_class_losses_compute_few_probabilities(
    loss: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = random_model(loss, tmp_path, model=kind)
    monkeypatch.setattr(type(model.loss), "log_probabilities", None)  # it computes the probabilities of all words
    assert 1 < w2v.perplexity(model, LINES).perplexity < math.inf


def test_shared_tree_nodes_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, no_predictions = random_model("file", tmp_path), np.zeros(0, np.int64)
    computed: list[int] = []
    original = hierarchical_softmax.log_logistic
    monkeypatch.setattr(hierarchical_softmax, "log_logistic", lambda x: computed.append(x.size) or original(x))
    parameters, words = {"outputs": model.outputs}, np.array([0, 1, 6])
    model.loss.log_probabilities_of(parameters, model.inputs, no_predictions, no_predictions, words)
    assert sum(computed) == len(model.inputs) * len({"0", "00", "000", "0000", "0001", "1", "11", "111"})


def windows(before: int = 2, after: int = 2) -> list[tuple[list[int], int]]:
    """Return the context words and the centre word of each window in LINES with context words."""
    found: list[tuple[list[int], int]] = []
    for line in LINES:
        words = [WORDS.index(word) for word in line if word in WORDS]
        for at, word in enumerate(words):
            if context := words[max(0, at - before) : at] + words[at + 1 : at + 1 + after]:
                found.append((context, word))
    return found


def predictions(model: View, before: int = 2, after: int = 2) -> list[tuple[list[int], int]]:
    """Return the context words and the predicted word of each prediction in LINES."""
    if model.settings.model == "cbow":
        return windows(before, after)
    return [([other], word) for context, word in windows(before, after) for other in context]


@pytest.mark.parametrize("kind", ["skipgram", "cbow"])
@pytest.mark.parametrize("loss", ["ns", "nce", "class", "one class", "huffman", "file"])
@pytest.mark.parametrize(("block", "sides"), [(1, (2, 2)), (20, (3, 1)), (20, (0, 2)), (1 << 20, (2, 2))])
def test_perplexity_matches_the_definition(
    loss: str, kind: str, block: int, sides: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perplexity_module, "MAX_SCORES", block)
    monkeypatch.setattr(perplexity_module, "WORDS_AT_ONCE", block)
    model = random_model(loss, tmp_path, model=kind, window=sides)
    found = w2v.perplexity(model, LINES)
    pairs = predictions(model, *sides)
    bits = [-math.log2(probability(model, model.inputs[context].mean(axis=0), word)) for context, word in pairs]
    assert found.cross_entropy_bits == pytest.approx(np.mean(bits), rel=1e-6)
    assert found.perplexity == pytest.approx(2 ** np.mean(bits), rel=1e-6)
    unigram = [-math.log2(COUNTS[word] / sum(COUNTS)) for _, word in pairs]
    assert found.unigram_perplexity == pytest.approx(2 ** np.mean(unigram))
    assert found.perplexity_as_trained == found.perplexity  # trained without subsampling
    assert (found.predictions, found.skipped, found.tokens) == (len(pairs), 3, len(windows(*sides)))


@pytest.mark.parametrize("kind", ["skipgram", "cbow"])
@pytest.mark.parametrize("loss", LOSSES)
def test_subsampling_is_undone(loss: str, kind: str, tmp_path: Path) -> None:
    """The expected value is computed from the distribution over all words: p(w | c) / keep(w), normalised."""
    model = random_model(loss, tmp_path, model=kind, sample=0.02)
    keep = model.vocabulary.keep_probabilities(0.02)
    assert 0 < np.count_nonzero(keep < 1) < len(keep)
    bits = []
    for context, word in predictions(model):
        weights = np.exp(model.log_probabilities(model.inputs[context].mean(axis=0)[None])[0]) / keep
        bits.append(-math.log2(weights[word] / weights.sum()))
    found = w2v.perplexity(model, LINES)
    assert found.cross_entropy_bits == pytest.approx(np.mean(bits), rel=1e-5)
    assert found.perplexity == pytest.approx(2 ** np.mean(bits), rel=1e-5)
    assert found.perplexity_as_trained != pytest.approx(found.perplexity, rel=1e-3)


def test_subsampled_model_beats_unigram_perplexity(sample: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(sample.read_bytes()[:50_000].rpartition(b"\n")[0])
    options: dict[str, Any] = {"model": "skipgram", "vector_size": 20, "alpha": 0.1, "loss": "softmax", "sample": 1e-4}
    model = w2v.train(sample, epochs=4, max_vocab=300, **options)
    found = w2v.perplexity(model, tmp_path / "text")
    assert found.perplexity < found.unigram_perplexity < found.perplexity_as_trained


def test_perplexity_beyond_float64_is_infinite(tmp_path: Path) -> None:
    model = random_model("softmax", tmp_path, scale=0.0)
    # Every word predicts "b" with certainty.
    outputs = np.where(np.arange(len(model.outputs))[:, None] == 1, 30, model.outputs)
    model = replace(model, inputs=np.full_like(model.inputs, 30), outputs=outputs)
    found = w2v.perplexity(model, [["a", "g"]])
    assert found.cross_entropy_bits == pytest.approx(2700 / math.log(2))
    assert found.perplexity == math.inf


@pytest.mark.parametrize("kind", ["skipgram", "cbow"])
@pytest.mark.parametrize("loss", ["ns", "class", "huffman"])
def test_scores_beyond_float32_are_refused(loss: str, kind: str, tmp_path: Path) -> None:
    model = random_model(loss, tmp_path, model=kind)
    inputs, outputs = (np.full_like(matrix, 1e30, np.float32) for matrix in (model.inputs, model.outputs))
    model = replace(model, inputs=inputs, outputs=outputs)
    with pytest.raises(w2v.W2VError, match="predictions are not numbers: its training has diverged"):
        w2v.perplexity(model, LINES)


@pytest.mark.parametrize("lines", [[["x", "y"]], [["a"], ["b"]], [["a", "x"]]])
def test_text_without_predictions_is_refused(lines: list[list[str]], tmp_path: Path) -> None:
    with pytest.raises(w2v.W2VError, match="nothing to predict: no word of the vocabulary has another"):
        w2v.perplexity(random_model("ns", tmp_path), lines)


# -- the command ----------------------------------------------------------------------------


def test_command_shows_perplexity_and_counts_skipped_words(model: Path, sample: Path, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_bytes(sample.read_bytes()[:50_000].rpartition(b"\n")[0])
    long = run_json("perplexity", model, tmp_path / "long.txt")
    assert long["perplexity"] < 0.5 * long["unigram_perplexity"]
    text = sample.read_bytes()[:5_000].rpartition(b"\n")[0] + b"\nunheard words\n"
    (tmp_path / "held.txt").write_bytes(text)
    found = run_json("perplexity", model, tmp_path / "held.txt")
    assert list(found) == [
        "perplexity", "cross_entropy_bits", "unigram_perplexity", "perplexity_as_trained", "tokens", "predictions",
        "skipped", "vocabulary_size",
    ]  # fmt: skip
    assert found["perplexity"] == pytest.approx(2 ** found["cross_entropy_bits"])
    assert found == vars(w2v.perplexity(w2v.Model.load(model), [line.split() for line in text.decode().split("\n")]))
    vocabulary = w2v.Model.load(model).vocabulary
    known = [word in vocabulary.words for word in text.decode().split()]
    assert 0 < found["skipped"] == known.count(False)
    assert found["tokens"] <= known.count(True) < found["predictions"]
    (tmp_path / "held.gz").write_bytes(gzip.compress(text))
    assert run_json("perplexity", model, tmp_path / "held.gz") == found
    assert run_json("perplexity", model, "-", stdin=text) == found
    shown = run("perplexity", model, tmp_path / "held.txt").stdout
    for name in ("perplexity", "unigram_perplexity", "perplexity_as_trained"):
        assert re.search(rf"^{name.replace('_', ' ')} +{found[name]:,.2f}, ", shown, re.MULTILINE)
    for expected in (f"{found['tokens']:,} words", f"{found['skipped']} words"):
        assert expected in shown
    share = found["skipped"] / (found["skipped"] + found["tokens"])
    expected = "perplexities are comparable only between models of the same vocabulary: "
    assert f"{expected}{share:.1%} of the words are skipped" in shown
    (tmp_path / "known.txt").write_text("king queen\n")
    assert "comparable" not in run("perplexity", model, tmp_path / "known.txt").stdout


def test_perplexity_needs_an_output_layer(model: Path, sample: Path, tmp_path: Path) -> None:
    for name in "m.bin", "m.txt":
        run("convert", model, tmp_path / name)
        error = run("perplexity", tmp_path / name, sample, code=1).stderr
        assert f"{name}: it has only words and vectors: train with -o model.safetensors" in error


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["skipgram", "cbow"])
def test_memory_does_not_grow_with_the_text(kind: str, tmp_path: Path) -> None:
    script = f"""if True:
        from pathlib import Path
        import w2v
        from tests.training.test_perplexity import random_model
        from w2v._training import perplexity as module
        from w2v._system import memory
        module.WORDS_AT_ONCE = module.MAX_SCORES = 1 << 16
        model = random_model("huffman", Path("."), model={kind!r})
        peaks = []
        for words in 1_000_000, 2_500_000:
            Path("text").write_text("a b c d e f\\n" * (words // 6))
            w2v.perplexity(model, "text")
            peaks.append(memory.peak_resident_bytes())
        print(peaks[1] - peaks[0])
        """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 16e6  # the words' temporary files grow by 18e6 bytes in CBOW, by 30e6 in skip-gram


def test_too_little_memory_or_disk_is_reported_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model("ns", tmp_path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full_disk, raising=False)
        with pytest.raises(
            w2v.W2VError, match=r"^cannot write ids to .*: No space left on device; name another folder"
        ):
            w2v.perplexity(model, LINES)
    monkeypatch.setattr(memory, "available", lambda: 1000)
    message = r"^perplexity needs about [\d,]+ MB of memory, but only [\d,]+ MB are available"
    with pytest.raises(w2v.W2VError, match=message):
        w2v.perplexity(model, LINES)


@pytest.mark.parametrize("kind", ["skipgram", "cbow"])
def test_progress_counts_the_known_words(kind: str, tmp_path: Path) -> None:
    reports: list[Progress] = []
    w2v.perplexity(random_model("ns", tmp_path, model=kind), LINES, progress=reports.append)
    known = sum(word in WORDS for line in LINES for word in line)
    assert [(report.done, report.total) for report in reports if report.phase == "predict"][-1] == (known, known)


def test_needed_memory_grows_with_the_scores_of_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needed: list[int] = []
    monkeypatch.setattr(memory, "check", lambda count, *_: needed.append(count))
    for scores in (1000, 2000, 4):  # 4 are fewer than the seven scores of one row, so a batch then has one row
        monkeypatch.setattr(perplexity_module, "MAX_SCORES", scores)
        w2v.perplexity(random_model("softmax", tmp_path), LINES)
    assert needed[1] == 2 * needed[0]
    assert needed[2] / 7 == needed[0] / 1000 >= 4  # bytes of a float32


def test_reading_options_override_those_of_the_training(tmp_path: Path) -> None:
    model = random_model("ns", tmp_path)
    upper = [[word.upper() for word in line] for line in LINES]
    assert w2v.perplexity(model, upper, lower=True) == w2v.perplexity(model, LINES)
    model = replace(model, text=TextOptions(lower=True))
    assert w2v.perplexity(model, upper) == w2v.perplexity(model, LINES)
    with pytest.raises(w2v.SettingsError, match="windows"):
        w2v.perplexity(model, LINES, windows=3)


def test_models_that_cannot_predict_are_refused(tmp_path: Path) -> None:
    model = random_model("ns", tmp_path)
    with pytest.raises(w2v.W2VError, match="word vectors have no output layer"):
        w2v.perplexity(model.wv, LINES)  # type: ignore[arg-type]


def test_the_view_of_words_is_measured_by_default() -> None:
    views = w2v.train(
        [list("abcab")] * 20, views="words+subwords", sample=0, vector_size=4, min_count=1, epochs=1, workers=1
    )
    assert len(views.views) == 2
    assert w2v.perplexity(views, LINES) == w2v.perplexity(views.views["words"], LINES)
    assert w2v.effective_rank(views) == w2v.effective_rank(views.views["words"])
    assert w2v.perplexity(views, LINES) != w2v.perplexity(views.views["subwords"], LINES)
