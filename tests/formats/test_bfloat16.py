"""bfloat16 matrices: files and readers keep them exactly, and training rounds to them."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import w2v
from tests.helpers import MODELS, QUICK, SMALL, assert_memory_grows, assert_same, memory_of, read_text, run, run_json
from w2v._errors import install_command
from w2v._formats import bfloat16, word2vec
from w2v._formats.native import read_native, write_native
from w2v._formats.vector_file import VectorFile
from w2v._kernel.plan import initial_inputs
from w2v._losses.registry import LOSSES
from w2v._system import memory
from w2v._text.corpus import Corpus
from w2v._text.words import Words
from w2v._training import checkpoint, checkpoint_folder
from w2v._training.checkpoint_folder import CheckpointFolder
from w2v._training.config import RunConfig
from w2v._training.effective_rank import effective_rank
from w2v._training.reading import ReadText
from w2v._training.run import Run
from w2v._training.start import Initialisation

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT32: dict[str, Any] = SMALL | {"max_vocab": 300, "vectors": "input"}
BF16: dict[str, Any] = FLOAT32 | {"storage": "bf16"}
LINES = ["the king of france and the queen", "a man and a woman"]

values = hnp.arrays(np.uint16, hnp.array_shapes(min_dims=2, max_dims=2)).map(lambda bits: bits.view(BFLOAT16))


def to_float32(array: np.ndarray) -> np.ndarray:
    """Convert bfloat16 to float32 by its definition: it is the upper half of the bits."""
    assert array.dtype == BFLOAT16
    return (np.ascontiguousarray(array).view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def to_bfloat16(array: np.ndarray) -> np.ndarray:
    """Round float32 to the nearest bfloat16 by the definition; ties go to the even one."""
    bits = np.ascontiguousarray(array).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16).view(BFLOAT16)


def converted(model: w2v.Model, storage: Any, convert: Callable[[np.ndarray], np.ndarray]) -> w2v.Model:
    """Return the same model with matrices that `convert` returns."""
    view, settings = model.views["words"], replace(model.settings, storage=storage)
    view = replace(view, settings=settings, inputs=convert(view.inputs), outputs=convert(view.outputs))
    return w2v.Model({"words": view})


@pytest.fixture(scope="module", params=["ns", "hs", "class"])
def bf16_and_float32(request: pytest.FixtureRequest, sample: Path) -> tuple[w2v.Model, w2v.Model]:
    """Return a model with bfloat16 matrices, and the same model with float32 matrices."""
    half = converted(w2v.train(sample, loss=request.param, **FLOAT32), "bf16", to_bfloat16)
    return half, converted(half, "float32", to_float32)


# -- errors ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"kernel": "numba"}, "^storage bf16: kernel numba supports only float32; choose storage float32$"),
        ({"loss": "mos"}, "^storage bf16: loss mos supports only float32"),
        ({"loss": "softmax"}, "^storage bf16: loss softmax supports only float32"),
        ({"objective": "module:Name"}, "^storage bf16: objective module:Name supports only float32"),
    ],
)
def test_settings_that_need_float32_are_refused(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(w2v.SettingsError, match=expected):
        w2v.Settings(storage="bf16", **options)
    w2v.Settings(storage="float32", **options)


def test_a_missing_ml_dtypes_is_named(
    bf16_and_float32: tuple[w2v.Model, w2v.Model], sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = tmp_path / "half.safetensors"
    bf16_and_float32[0].save(half)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    train = ["train", sample, "-o", tmp_path / "m.safetensors", *QUICK]
    run(*train)
    for arguments, place in (
        ([*train, "--force", "--storage", "bf16"], ""),
        (["query", half, "the"], f"{half}: "),
        (["perplexity", half, sample], f"{half}: "),
    ):
        error = run(*arguments, code=2).stderr
        assert error == f"w2v: {place}bfloat16 needs ml_dtypes: {install_command('bf16')}\n"


def test_nan_and_infinity_are_found(bf16_and_float32: tuple[w2v.Model, w2v.Model], tmp_path: Path) -> None:
    view = bf16_and_float32[0].views["words"]
    matrix = memory.aligned_rows(40_000, 70, BFLOAT16)[:, :70]  # several blocks
    assert checkpoint.all_finite([matrix])
    for row, value in (39_999, np.inf), (20_000, -np.inf), (3, np.nan):
        matrix[row, 69] = value
        assert bfloat16.first_non_finite_row(matrix) == row
        assert not checkpoint.all_finite([view.inputs, matrix])
    inputs = view.inputs.copy()
    inputs[7, 3] = np.nan
    broken = w2v.Model({"words": replace(view, inputs=inputs)})
    for name in ("m.bin", "m.safetensors"):
        with pytest.raises(w2v.W2VError, match=r"row 8 \('.*'\) holds NaN"):
            broken.save(tmp_path / name)
    with pytest.raises(w2v.W2VError, match="NaN or infinite values"):
        w2v.train([LINES[0].split()], continue_from=broken, storage="float32")


# -- files ----------------------------------------------------------------------------------


@given(values, st.integers(0, 3))
def test_any_bits_are_read_back(tmp_path_factory: pytest.TempPathFactory, matrix: np.ndarray, padding: int) -> None:
    path = tmp_path_factory.getbasetemp() / "half.safetensors"
    padded = np.pad(matrix.view(np.uint16), ((0, 0), (0, padding))).view(BFLOAT16)
    tensors = {"half": padded[:, : matrix.shape[1]], "bits": matrix.view(np.uint16), "bytes": np.ones(3, np.uint8)}
    write_native(path, tensors, {})
    for mmap in (False, True):
        found, _ = read_native(path, mmap)
        assert {name: array.dtype for name, array in found.items()} == {
            name: array.dtype for name, array in tensors.items()
        }
        np.testing.assert_array_equal(found["half"].view(np.uint16), matrix.view(np.uint16))
        np.testing.assert_array_equal(found["bits"], matrix.view(np.uint16))
        assert found["half"].flags.aligned


@pytest.mark.parametrize("mmap", [False, True])
def test_model_files_have_half_the_size(
    bf16_and_float32: tuple[w2v.Model, w2v.Model], tmp_path: Path, mmap: bool
) -> None:
    half, full = bf16_and_float32
    for name, model in (("half", half), ("full", full)):
        model.save(tmp_path / f"{name}.safetensors")
    sizes = [(tmp_path / f"{name}.safetensors").stat().st_size for name in ("half", "full")]
    saved = 2 * (half.vectors.size + half.views["words"].outputs.size)
    assert abs(sizes[1] - sizes[0] - saved) <= 2 * memory.CACHE_LINE  # the header is padded
    loaded = w2v.Model.load(tmp_path / "half.safetensors", mmap)
    assert loaded.settings.storage == "bf16"
    assert loaded.views["words"].inputs.dtype == loaded.views["words"].outputs.dtype == BFLOAT16
    assert_same(loaded, half)
    assert loaded.wv.vectors.dtype == np.float32
    np.testing.assert_array_equal(loaded.wv.vectors, full.vectors)
    vectors = w2v.load(tmp_path / "half.safetensors", mmap)
    assert vectors.vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors.vectors, full.vectors)
    vectors.save(tmp_path / "converted.safetensors")  # vectors of one type, outputs of the other
    view = w2v.Model.load(tmp_path / "converted.safetensors").views["words"]
    assert_same(w2v.Model({"words": view.to_float32()}), full)


def test_no_function_copies_a_whole_matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word2vec, "BLOCK_BYTES", 1 << 18)
    uses: list[tuple[Callable[[VectorFile], object], int]] = [  # functions, and the size of a result in matrices
        (lambda content: checkpoint.all_finite([content.vectors]), 0),
        (lambda content: initial_inputs(len(content.words), 100, 1, BFLOAT16), 1),
        (lambda content: checkpoint.checksum({"vectors": content.vectors}, ""), 0),
        (lambda content: write_native(tmp_path / "m.safetensors", {"vectors": content.vectors}, {}), 0),
        (lambda content: word2vec.write(tmp_path / "m.bin", content, binary=True), 0),
    ]
    for use, result_matrices in uses:
        found = []
        for rows in 12_500, 50_000:  # 2.5 MB and 10 MB, twice as much as float32
            matrix = memory.aligned_rows(rows, 100, BFLOAT16)[:, :100]
            content = VectorFile(Words.of([f"w{row}" for row in range(rows)]), matrix)
            found.append((matrix.nbytes, memory_of(lambda use=use, content=content: use(content))))
        assert_memory_grows(*found, result_matrices)


# -- commands and functions that read models ------------------------------------------------


def test_commands_give_the_same_answers_as_for_float32(
    bf16_and_float32: tuple[w2v.Model, w2v.Model], tmp_path: Path
) -> None:
    first, second, third = bf16_and_float32[0].vocabulary.words[:3]
    (tmp_path / "text").write_text("\n".join(LINES), "utf-8")
    (tmp_path / "pairs").write_text(f"{first} {second} 5\n{second} {third} 9\n{first} {third} 2\n", "utf-8")
    path, answers = tmp_path / "m.safetensors", []
    for model in bf16_and_float32:
        model.save(path, force=True)
        run("convert", path, tmp_path / "m.txt", "--force")
        info = run_json("info", path)
        assert info["settings"]["storage"] == model.settings.storage
        answers.append(
            [
                run_json("query", path, first, second),
                run_json("query", path, first, "--method", "mul"),
                run_json("analogy", path),
                run_json("similarity", path, tmp_path / "pairs"),
                run_json("perplexity", path, tmp_path / "text"),
                run_json("tree", tmp_path / "text", "--min-count", 1, "--tree", "clustered", "--tree-vectors", path),
                [info[name] for name in ("norms", "tensors", "output_layer", "most_frequent")],
                (tmp_path / "m.txt").read_bytes(),
            ]
        )
    assert answers[0] == answers[1]


def test_rank_is_the_same_as_for_float32(bf16_and_float32: tuple[w2v.Model, w2v.Model]) -> None:
    found, expected = (effective_rank(model, 20, 20) for model in bf16_and_float32)
    assert found.rank == expected.rank
    np.testing.assert_allclose(found.singular_values, expected.singular_values, rtol=1e-6, atol=1e-6)


# -- training -------------------------------------------------------------------------------


def test_initial_inputs_equal_rounded_float32_inputs() -> None:
    full, half = initial_inputs(2000, 300, 7), initial_inputs(2000, 300, 7, BFLOAT16)
    np.testing.assert_array_equal(half[:, :300].view(np.uint16), to_bfloat16(full[:, :300]).view(np.uint16))
    assert not half[:, 300:].any()


def test_estimated_memory_is_smaller_than_for_float32(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "resident_bytes", lambda: 0)
    vocabulary = w2v.Vocabulary([f"w{number}" for number in range(1000)], [1] * 1000)
    needed, checkpoints = {}, CheckpointFolder(tmp_path / "states")
    with read_text(Corpus([["w1"]]), cache=tmp_path) as store:
        for kind in ("float32", "bf16"):
            settings = w2v.Settings(vector_size=3200, min_count=1, workers=1, storage=kind, vectors="input")
            parts = RunConfig(settings=settings), Initialisation(vocabulary), ReadText(store, store)
            for folder in None, checkpoints:
                needed[kind, bool(folder)] = Run(*parts, checkpoint_folder=folder).peak_memory
    assert needed["float32", True] - needed["float32", False] == 2 * 4 * 3200 * 1000
    assert needed["bf16", True] - needed["bf16", False] == 2 * 2 * 3200 * 1000
    assert needed["bf16", False] < 0.6 * needed["float32", False]


@pytest.mark.parametrize("options", [each for each in MODELS if "bf16" in LOSSES[each["loss"]].storages], ids=str)
def test_training_losses_are_close_to_float32(short_text: Path, options: dict[str, Any]) -> None:
    full, half = (w2v.train(short_text, **kind, **options, sample=0) for kind in (FLOAT32, BF16))
    assert half.views["words"].inputs.dtype == half.views["words"].outputs.dtype == BFLOAT16
    assert half.metrics["tokens_trained"] == full.metrics["tokens_trained"]
    np.testing.assert_allclose(half.metrics["loss"], full.metrics["loss"], rtol=0.05)
    assert half.metrics["loss"][0] > half.metrics["loss"][2]


def test_a_checkpoint_with_matrices_of_another_type_is_refused(sample: Path, tmp_path: Path) -> None:
    w2v.train(sample, checkpoint=tmp_path, **BF16)
    path = checkpoint_folder.latest(tmp_path).path
    arrays, metadata = read_native(path)
    metadata["settings"] = metadata["settings"].replace('"bf16"', '"float32"')
    metadata["checksum"] = checkpoint.checksum(arrays, metadata["settings"])
    write_native(path, arrays, metadata)
    with pytest.raises(w2v.W2VError, match=r"safetensors: the array inputs has an unexpected shape or type"):
        checkpoint.read_checkpoint(path)


@pytest.fixture(scope="module")
def first_models(sample: Path) -> dict[str, w2v.Model]:
    return {storage: w2v.train(sample, **FLOAT32 | {"storage": storage}) for storage in ("float32", "bf16")}


@pytest.mark.parametrize("vocab", ["old", "union"])
@pytest.mark.parametrize("from_file", [False, True])
def test_training_continues_in_another_storage(
    first_models: dict[str, w2v.Model], tmp_path: Path, vocab: str, from_file: bool
) -> None:
    """Training changes so little that the initial values are visible: float32 keeps them, bfloat16 rounds them."""
    options: dict[str, Any] = {"vocab": vocab, "alpha": 1e-9, "epochs": 1, "sample": 0, "max_vocab": None}
    for before, after in ("bf16", "float32"), ("float32", "bf16"), ("bf16", "bf16"):
        first = first_models[before]
        if from_file:
            first.save(tmp_path / "first.safetensors", force=True)
        source = tmp_path / "first.safetensors" if from_file else first
        second = w2v.train([["the", "unheard", "king"] * 20], continue_from=source, storage=after, **options)
        assert second.settings.storage == after
        view = second.views["words"]
        assert view.inputs.dtype == view.outputs.dtype == bfloat16.dtype_of(after)
        row_of = {word: row for row, word in enumerate(second.vocabulary.words)}
        rows = [row_of[word] for word in first.vocabulary.words]
        assert (vocab == "union") == ("unheard" in second.vocabulary.words)
        for name in ("inputs", "outputs"):
            old, new = (getattr(model.views["words"].to_float32(), name) for model in (first, second))
            np.testing.assert_allclose(new[rows], old, rtol=2**-7 if after == "bf16" else 0, atol=1e-6)


# -- blocks ---------------------------------------------------------------------------------


def test_blocks_are_contiguous_float32_and_cover_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bfloat16, "BLOCK_VALUES", 12)
    matrix = np.arange(50, dtype=np.float32).reshape(10, 5)
    for source, rows, sizes in (
        (matrix, 4, [4, 4, 2]),
        (matrix[:, ::-1], None, [2] * 5),
        (np.asfortranarray(matrix), None, [2] * 5),
        (matrix.astype(np.float64), None, [2] * 5),
        (to_bfloat16(matrix), 20, [10]),
    ):
        starts, blocks = zip(*bfloat16.float32_blocks(source, rows), strict=True)
        assert [len(block) for block in blocks] == sizes
        assert list(starts) == np.cumsum([0, *sizes[:-1]]).tolist()
        assert all(block.dtype == np.float32 and block.flags.c_contiguous for block in blocks)
        np.testing.assert_array_equal(np.concatenate(blocks), source.astype(np.float32))
    ((start, whole),) = bfloat16.float32_blocks(matrix)
    assert start == 0
    assert whole is matrix
