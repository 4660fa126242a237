"""Training on pairs: `w2v train --pairs` and `w2v.train_pairs`."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import w2v
from tests.helpers import new_plan, run, run_json, run_threads, train_and_stop
from w2v._errors import SettingsError, W2VError
from w2v._graph.pairs import PairSource
from w2v._kernels import Kernel
from w2v._losses.registry import Settings, loss_for
from w2v._losses.sampling import SamplingLoss, draw_from_groups
from w2v._system import memory
from w2v._text.examples import Examples
from w2v._text.vocabulary import Vocabulary
from w2v._training.pairs import _Pairs as Pairs
from w2v._training.pairs import examples_of

SMALL: dict[str, Any] = {"vector_size": 8, "workers": 1, "epochs": 3}
Triples = list[tuple[Any, Any, Any]]


def plays(users: int = 60, kinds: int = 3, per_kind: int = 12) -> Triples:
    """Return users with the songs of their kind, and how often they played them."""
    random = np.random.default_rng(1)
    songs = [
        (user, user % kinds * per_kind + song) for user in range(users) for song in random.permutation(per_kind)[:6]
    ]
    return [(f"user {user}", f"song {song}", int(random.integers(1, 5))) for user, song in songs]


def both(model: w2v.Model) -> list[Any]:
    return [model.wv.index_to_key, model.wv.vectors, model.contexts.index_to_key, model.contexts.vectors]


def assert_same_model(model: w2v.Model, other: w2v.Model) -> None:
    for value, expected in zip(both(model), both(other), strict=True):
        np.testing.assert_array_equal(value, expected)


def test_inputs_and_contexts_of_a_kind_have_similar_vectors() -> None:
    model = w2v.train_pairs(plays(), vector_size=16, workers=1, epochs=100)
    assert model.settings.model == "skipgram"
    for vectors, kind in (model.wv, lambda name: int(name[5:]) % 3), (model.contexts, lambda name: int(name[5:]) // 12):
        names = vectors.index_to_key
        nearest = [(name, other) for name in names for other, _ in vectors.most_similar(name, topn=5)]
        assert np.mean([kind(name) == kind(other) for name, other in nearest]) > 0.95
    (liked,) = w2v.recommend(model.contexts, [["song 0", "song 1"]], topn=5)
    assert all(int(song[5:]) < 12 for song, _ in liked)


def test_a_weight_of_three_equals_three_pairs() -> None:
    triples = plays()
    repeated = [(user, song) for user, song, weight in triples for _ in range(weight)]
    expected = w2v.train_pairs(triples, **SMALL)
    assert_same_model(w2v.train_pairs(repeated, **SMALL), expected)
    users, songs, weights = zip(*triples, strict=True)
    assert_same_model(w2v.train_pairs(zip(users, songs, strict=True), weights=np.array(weights), **SMALL), expected)


def test_all_sources_of_the_same_pairs_give_the_same_model(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    random = np.random.default_rng(2)
    matrix = scipy.sparse.coo_array(np.round(random.uniform(0, 2, (9, 7)) * (random.random((9, 7)) < 0.7), 1))
    order = matrix.tocsr().tocoo()
    triples = [*zip(order.row.tolist(), order.col.tolist(), order.data.tolist(), strict=True)]
    table = pd.DataFrame(triples, columns=["user", "item", "weight"])
    table.to_csv(tmp_path / "pairs.csv", index=False)
    table.to_parquet(tmp_path / "pairs.parquet")
    table.to_json(tmp_path / "pairs.jsonl", orient="records", lines=True)
    scipy.sparse.save_npz(tmp_path / "pairs.npz", matrix)
    columns = {"edges": "user,item,weight"}
    expected = named(w2v.train_pairs(triples, **SMALL))
    assert {type(name) for name in w2v.train_pairs(triples, **SMALL).wv.index_to_key} == {int}
    sources: list[tuple[Any, dict[str, Any]]] = [
        (table, {}),
        (table, columns),
        (pyarrow.Table.from_pandas(table), {}),
        (matrix, {}),
        (matrix.tocsr(), {}),
        *((tmp_path / f"pairs.{kind}", columns) for kind in ("csv", "parquet", "jsonl")),
        (tmp_path / "pairs.npz", {}),
    ]
    for source, options in sources:
        found = named(w2v.train_pairs(source, **SMALL, **options))
        assert found.keys() == expected.keys()


def named(model: w2v.Model) -> dict[tuple[str, str], int]:
    """Return the count of each input and each context."""
    sides = {"input": model.wv, "context": model.contexts}
    return {
        (side, str(name)): int(count)
        for side, vectors in sides.items()
        for name, count in zip(vectors.index_to_key, vectors.counts, strict=True)
    }


def test_user_1_and_item_1_are_two_words_unless_there_is_one_vocabulary() -> None:
    pairs = [(1, 1), (1, 2), (2, 1), (3, 2), (2, 3)]
    two = w2v.train_pairs(pairs, **SMALL)
    assert named(two) == {("input", "1"): 2, ("input", "2"): 2, ("input", "3"): 1} | {
        ("context", "1"): 2, ("context", "2"): 2, ("context", "3"): 1
    }  # fmt: skip
    one = w2v.train_pairs(pairs, bipartite=False, vectors="combined", **SMALL)
    assert named(one) == {(side, name): 4 if name != "3" else 2 for side in ("input", "context") for name in "123"}
    assert one.views["words"].contexts is None


def test_rare_inputs_and_contexts_are_left_out() -> None:
    pairs = [("a", "x", 3), ("a", "y", 2), ("b", "x", 1), ("b", "y", 1), ("c", "z", 1)]
    assert named(w2v.train_pairs(pairs, min_count=2, **SMALL)) == {
        ("input", "a"): 5, ("input", "b"): 2, ("context", "x"): 4, ("context", "y"): 3
    }  # fmt: skip


@pytest.mark.parametrize("size", [1, 4])
def test_examples_have_each_repetition_once_and_different_inputs(size: int, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    cells = random.permutation(40 * 30)[:400]
    contexts, inputs = np.divmod(np.sort(cells), 30)
    weights = np.where(random.random(400) < 0.5, random.integers(1, 12, 400), random.integers(1, 30, 400) / 4)
    pairs = Pairs(contexts.astype(np.int32), inputs.astype(np.int32), weights)
    examples = examples_of(pairs, size, seed=4, folder=tmp_path)
    totals = np.zeros((40, 30))
    for number in range(len(examples)):
        part = examples.part(number, number + 1)
        assert 1 <= len({*part.rows.tolist()}) == len(part.rows) <= size
        totals[part.labels[0], part.rows] += part.importance[0]
    expected = np.zeros((40, 30))
    expected[contexts, inputs] = weights
    np.testing.assert_allclose(totals, expected, rtol=1e-6)
    assert len(examples.rows) == np.ceil(weights).sum()
    assert np.mean(np.diff(examples.labels) < 0) > 0.3  # in random order


def test_subsampling_drops_repetitions_of_frequent_words() -> None:
    pairs = [("often", "x", 1000), ("often", "y", 1000), *((f"rare{k}", "xy"[k % 2], 1) for k in range(50))]
    counts = {sample: w2v.train_pairs(pairs, sample=sample, **SMALL).metrics["tokens"] for sample in (0, 1e-2)}
    assert counts[0] == 2050
    assert 20 < counts[1e-2] < 600


@pytest.mark.parametrize(
    "settings",
    [
        {"loss": "hs"},
        {"loss": "nce"},
        {"loss": "softmax"},
        {"loss": "sampled"},
        {"storage": "bf16"},
        {"per_pair": True},
    ],
    ids=str,
)
def test_losses_and_settings(settings: dict[str, Any]) -> None:
    if "storage" in settings:
        pytest.importorskip("ml_dtypes")
    model = w2v.train_pairs(plays(), **SMALL | {"epochs": 30} | settings)
    losses = model.metrics["loss"]
    assert losses[-1] < losses[0]
    assert sum(model.metrics["predictions"]) == 30 * model.metrics["tokens"]
    if settings != {"loss": "hs"}:
        assert model.contexts.vectors.dtype == np.float32
    else:
        with pytest.raises(SettingsError, match="contexts have no vectors"):
            _ = model.contexts


@pytest.mark.slow
def test_numba_trains_pairs_alike() -> None:
    model, other = (w2v.train_pairs(plays(), kernel=kernel, **SMALL) for kernel in ("cython", "numba"))
    np.testing.assert_allclose(model.contexts.vectors, other.contexts.vectors, atol=1e-5)
    np.testing.assert_allclose(model.wv.vectors, other.wv.vectors, atol=1e-5)


def test_deterministic_threads_give_the_same_bits() -> None:
    options = {**SMALL, "workers": 3, "deterministic": True}
    assert_same_model(w2v.train_pairs(plays(), **options), w2v.train_pairs(plays(), **options))


def test_saved_and_continued_models_keep_both_vocabularies(tmp_path: Path) -> None:
    model = w2v.train_pairs(plays(), **SMALL)
    model.save(tmp_path / "model.safetensors")
    loaded = w2v.Model.load(tmp_path / "model.safetensors")
    assert_same_model(loaded, model)
    more = w2v.train_pairs([*plays(), ("user new", "song 3")], continue_from=loaded, workers=1, epochs=1, alpha=1e-9)
    assert more.wv.index_to_key == model.wv.index_to_key
    np.testing.assert_allclose(more.contexts.vectors, model.contexts.vectors, atol=1e-5)
    started = w2v.train_pairs(plays(), init=model.wv, workers=1, epochs=1, alpha=1e-9)
    np.testing.assert_allclose(started.wv.vectors, model.wv.vectors, atol=1e-5)
    with pytest.raises(SettingsError, match="continued model has two vocabularies"):
        w2v.train_pairs(plays(), continue_from=loaded, bipartite=False)
    with pytest.raises(SettingsError, match="vocab union"):
        w2v.train_pairs(plays(), continue_from=loaded, vocab="union")
    with pytest.raises(W2VError, match="trained on pairs"):
        w2v.train(["user 1 song 1"] * 5, continue_from=loaded)
    for measure in (lambda: w2v.perplexity(loaded, ["user 1 song 1"]), lambda: w2v.effective_rank(loaded)):
        with pytest.raises(W2VError, match="trained on pairs"):
            measure()
    with pytest.raises(SettingsError, match="choose input"):
        loaded.with_vectors("combined")


def test_a_resumed_run_gives_the_same_bits(tmp_path: Path) -> None:
    options = {**SMALL, "epochs": 40}
    expected = w2v.train_pairs(plays(), **options)
    train_and_stop(tmp_path / "states", PairSource(plays()), **options)
    resumed = w2v.resume(tmp_path / "states", plays())
    assert_same_model(resumed, expected)


def test_the_command_writes_both_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = "".join(f"{user},{song},{count}\n" for user, song, count in plays())
    Path("plays.csv").write_text("user,song,plays\n" + lines)
    options = ["--edges", "user,song,plays", "--vector-size", "8", "--workers", "1", "--epochs", "3"]
    found = run_json(
        "train", "--pairs", "plays.csv", "-o", "users.safetensors", "--contexts", "songs.safetensors", *options
    )
    assert found["settings"]["min_count"] == 1
    model = w2v.Model.load("users.safetensors")
    contexts = w2v.load("songs.safetensors")
    np.testing.assert_array_equal(contexts.vectors, model.contexts.vectors)
    assert contexts.index_to_key == model.contexts.index_to_key
    assert_same_model(model, w2v.train_pairs(plays(), **SMALL))
    run("train", "--pairs", "plays.csv", "-o", "first.safetensors", "--save-config", "run.toml", *options)
    run("train", "--config", "run.toml", "-o", "second.safetensors")
    assert_same_model(w2v.Model.load("second.safetensors"), model)
    assert "white space" in run("train", "--pairs", "plays.csv", *options, "--contexts", "songs.vec", code=1).stderr
    lost = "inputs.bin has no contexts: write .safetensors to keep them, or their vectors with --contexts FILE"
    Path("ids.csv").write_text("user,song,plays\na,x,1\nb,y,2\n")
    train = ["train", "--pairs", "ids.csv", *options, "-o", "inputs.bin"]
    assert lost in run(*train).stderr
    assert "no contexts" not in run(*train, "--contexts", "contexts.bin", "--force").stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--pairs --cbow", "model cbow: each input predicts its context"),
        ("--pairs --window 3", "--window has no effect with --pairs"),
        ("--pairs --graph", "--graph has no effect with --pairs"),
        ("--pairs --lower", "--lower has no effect with --pairs"),
        ("--pairs --walks 3", "--walks has no effect with --pairs"),
        ("--pairs --subwords 3-4", "subwords: the inputs of pairs have none"),
        ("--pairs --stop-early 2", "stop_early: pairs cannot be held out"),
        ("--pairs --vectors combined", "two vocabularies"),
        ("--pairs --loss hs --contexts c.vec", "loss hs gives contexts no vectors"),
        ("--pairs --format adjlist", "adjacency lists are not pairs"),
        ("--pairs --format gml", "is a graph of the format gml"),
    ],
)
def test_options_that_do_not_suit_pairs(options: str, message: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pairs").write_text("a x\nb y\n")
    code = 1 if "--format" in options else 2
    assert message in run("train", *options.split(), "pairs", code=code).stderr


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("a", "x", float("nan")), ("b", "y", 1)], "pair 1: the weight nan is not a number from 0 to 3.4e38"),
        ([("a", "x", 1), ("b", "y", -1)], "pair 2: the weight -1 is not a number"),
        ([("a", "x", "2")], "pair 1: the weight '2' is not a number"),
        ([("a", "x", 0)], "the pairs: no pair has a weight above 0"),
        ([], "the pairs: no pair has a weight above 0"),
        ([("a",)], "pair 1: ('a',) is not an input, a context and perhaps a weight"),
        (["ab"], "pair 1: 'ab' is not an input, a context and perhaps a weight"),
        ([("a", None)], "pair 1: an input or context is missing"),
        ([("a", 1.5)], "pair 1: an input or context is 1.5"),
        ([("a", "x"), ("b", "x")], "the pairs has one context, 'x': at least 2 are needed"),
        ([("\ue000a", "x"), ("b", "y")], r"the pairs: the input '\ue000a' begins with U+E000, which marks contexts"),
        ([("a\ud800", "x"), ("b", "y")], r"the word 'a\ud800' cannot be written as UTF-8"),
        (pd.DataFrame({"user": ["a"]}), "a table with the columns ['user']: pairs need an input and a context"),
        (np.eye(3), "pairs: an array of shape (3, 3) is a matrix: give scipy.sparse.csr_array(array)"),
        (scipy.sparse.csr_array([[-1.0, 1.0]]), "for a graph, leave out --weighted"),
        (5, "pairs are triples, a table, a matrix or a path, not of type int"),
        ({"a": "x"}, "pairs are triples, a table, a matrix or a path, not of type dict"),
    ],
    ids=str,
)
def test_pairs_that_cannot_be_used(pairs: Any, message: str) -> None:
    with pytest.raises(W2VError) as error:
        w2v.train_pairs(pairs, **SMALL)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\nb\n", "line 1: 'a' has only one field"),
        ("a x 1\nb y -2\n", "line 2: 'b y -2' has a weight that is not a number from 0 to 3.4e38"),
        ("a x 1\nb y nan\n", "line 2: 'b y nan' has a weight that is not a number"),
        ("a x 0\nb y 0\n", "no pair has a weight above 0"),
        (
            "a x 1\nb y\n",
            "line 2: 'b y' has 2 fields, and the first line has 3: name the columns of the input and the context, "
            "such as --edges 1,3",
        ),
        ("\ue000a x\nb y\n", "begins with U+E000, which marks contexts: rename it"),
        ('{"user": 1, "item": 2}\n', "is a table: name its columns with --edges"),
    ],
)
def test_files_that_cannot_be_used(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "pairs").write_text(text)
    with pytest.raises(W2VError) as error:
        w2v.train_pairs(tmp_path / "pairs", **SMALL)
    assert message in str(error.value)
    with pytest.raises(SettingsError, match="weights"):
        w2v.train_pairs(tmp_path / "pairs", weights=[1, 2], **SMALL)


def test_weights_that_do_not_fit_the_pairs() -> None:
    message = r"^1 weight \(weights=\) for 2 pairs: one number is needed for each pair$"
    with pytest.raises(W2VError, match=message):
        w2v.train_pairs([("a", "x"), ("b", "y")], weights=[1], **SMALL)


def test_a_model_of_texts_cannot_be_continued_with_pairs() -> None:
    model = w2v.train(["a b c d"] * 30, documents="dbow", min_count=1, **SMALL)
    with pytest.raises(SettingsError, match="was not trained on pairs of two vocabularies"):
        w2v.train_pairs([("a", "x"), ("b", "y")], continue_from=model)


def test_negatives_come_from_the_group_of_the_context_in_proportion_to_counts() -> None:
    counts, examples_of_label, alpha = np.array([64, 36, 25, 16, 9, 4, 1, 1]), 4000, 1e-6
    settings = Settings(model="skipgram", vector_size=4, alpha=alpha, min_alpha=alpha, negative=1, ns_exponent=0.5)
    loss = loss_for(settings, Vocabulary([*"abcdefgh"], counts))
    assert isinstance(loss, SamplingLoss)
    restricted = draw_from_groups(loss, np.array([0, 1, 0, 1, 0, 0, 0, 2]))
    for label, negatives in (0, [2, 4, 5, 6]), (3, [1]), (7, [0, 1, 2, 3, 4, 5, 6]):  # h has a group of its own
        starts, chunks = np.arange(examples_of_label + 1), np.arange(0, examples_of_label + 1, 500)
        rows, labels = np.zeros((2, examples_of_label), np.int32)
        importance = np.ones(examples_of_label, np.float32)
        plan = new_plan(
            restricted, ids=np.zeros(1, np.uint32), word_of_type=np.zeros(1, np.int32), settings=settings,
            examples=Examples(starts, rows, np.empty(0, np.float32), starts, labels + np.int32(label), importance),
            chunk_starts=chunks, keep_thresholds=np.zeros(1, np.uint32), chunk_size=500,
        )  # fmt: skip
        inputs, outputs = memory.aligned_rows(1, 4), memory.aligned_rows(8, 4)
        inputs[0, 0] = 1
        run_threads(Kernel(replace(plan, tokens_before=chunks), inputs, outputs), 1)
        drawn = outputs[:, 0] / (-alpha / 2)  # the scores are about 0, so each negative moves its row by -alpha / 2
        drawn[label] += examples_of_label
        expected = np.zeros(8)
        expected[negatives] = np.sqrt(counts[negatives]) / np.sqrt(counts[negatives]).sum() * examples_of_label
        assert not drawn[expected == 0].round(-2).any()
        np.testing.assert_allclose(drawn, expected, atol=5 * np.sqrt(examples_of_label) / 2)


def market(number: int) -> pd.DataFrame:
    """Return pairs of users and songs; song k is of market k % `number`."""
    table = pd.DataFrame(plays(), columns=["user", "song", "plays"])
    return table.assign(market=table["song"].str[5:].astype(int) % number)


def test_one_group_of_all_contexts_is_the_same_as_no_groups() -> None:
    expected = w2v.train_pairs(market(1)[["user", "song", "plays"]], **SMALL)
    assert_same_model(w2v.train_pairs(market(1), negatives_from="market", **SMALL), expected)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_columns_of_files_name_the_groups(suffix: str, tmp_path: Path, caplog: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    table = market(5)  # the first market has 8 contexts, the others 7
    table.loc[table["song"] == "song 0", "market"] = 9
    write = {"csv": table.to_csv, "parquet": table.to_parquet, "jsonl": table.to_json}[suffix]
    write(f"p.{suffix}", **{"index": False} if suffix != "jsonl" else {"orient": "records", "lines": True})
    columns = {"edges": "user,song,plays", "negatives_from": "market"}
    model = w2v.train_pairs(tmp_path / f"p.{suffix}", **columns, **SMALL, deterministic=True)
    assert "negatives-from: 1 of 36 contexts are in groups of at most 5, and draw from all contexts" in caplog.messages
    sizes = dict(zip(model.contexts.index_to_key, model.views["words"].loss.data["noise_size"].tolist(), strict=True))
    assert sizes == {f"song {song}": 36 if song == 0 else 7 for song in range(36)}
    expected = w2v.train_pairs(table, **columns, **SMALL, deterministic=True)
    assert_same_model(expected, model)
    if suffix == "csv":
        given = "--edges user,song,plays --negatives-from market --vector-size 8 --workers 1 --epochs 3 --quiet"
        run("train", "--pairs", "p.csv", *given.split(), "--deterministic", "-o", "m.safetensors")
        assert_same_model(w2v.Model.load("m.safetensors"), expected)
        train_and_stop(tmp_path / "states", PairSource(table), 0.3, **{**SMALL, "epochs": 30}, **columns)
        resumed, whole = (
            w2v.resume(tmp_path / "states", table),
            w2v.train_pairs(table, **{**SMALL, "epochs": 30}, **columns),
        )
        assert_same_model(resumed, whole)
        with pytest.raises(W2VError, match=r"text"):
            w2v.resume(tmp_path / "states", table.assign(market=1))


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (
            {"market": [1, 2, 2]},
            {},
            "the table, row 3: the context 'x' has another group, '2', than in a row before: a",
        ),
        (
            {"market": ["a", None, "b"]},
            {},
            "the table, row 2: a group of a context is missing: it must be text or a whole",
        ),
        ({"market": [1, 1.5, 2]}, {}, "the table, row 2: a group of a context is 1.5: it must be text or a whole"),
        ({}, {"negatives_from": "nothing"}, "column 'nothing'"),
        ({}, {"loss": "hs"}, "negatives_from: loss hs, kernel cython: choose loss ns and kernel cython"),
        ({}, {"kernel": "numba"}, "negatives_from: loss ns, kernel numba: choose"),
        ({}, {"delimiter": "tab"}, "(negatives_from=) names a column: give a table, without"),
    ],
    ids=str,
)
def test_groups_that_cannot_be_used(change: dict[str, Any], options: dict[str, Any], message: str) -> None:
    table = pd.DataFrame({"user": list("abc"), "song": list("xyx"), "market": [1, 2, 1]}).assign(**change)
    with pytest.raises(W2VError) as error:
        w2v.train_pairs(table, edges="user,song", **{"negatives_from": "market"} | options, **SMALL)
    assert message in str(error.value)


def test_groups_may_be_whole_floats_and_rows_of_weight_0_have_none() -> None:
    table = market(5).astype({"market": float})
    more = pd.DataFrame([("u", "song 1", 0, 4)], columns=table.columns)
    expected = w2v.train_pairs(market(5), edges="user,song,plays", negatives_from="market", **SMALL)
    found = w2v.train_pairs(pd.concat([table, more]), edges="user,song,plays", negatives_from="market", **SMALL)
    assert_same_model(found, expected)


def test_groups_need_a_table_of_pairs() -> None:
    with pytest.raises(SettingsError, match="names a column: give a table"):
        w2v.train_pairs([("a", "x"), ("b", "y")], negatives_from="market", **SMALL)
    with pytest.raises(SettingsError, match=r"negatives_from=\) has no effect without --pairs"):
        w2v.train("text", negatives_from="market", **SMALL)
