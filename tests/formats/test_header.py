"""The header of a model file is read back as written, and a damaged header is refused in one line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import w2v
from tests.helpers import assert_refused, run, write_with_strings
from w2v._errors import W2VError
from w2v._formats import native
from w2v._formats.header import GensimObject, ModelHeader, ViewHeader
from w2v._text.normalise import TextOptions
from w2v._text.subwords import Subwords

SAMPLES = Path(__file__).parent / "samples"
FULL_HEADER = ModelHeader(
    settings={"loss": "ns", "window": "2,1", "seed": None},
    metrics={"tokens": 540, "phrases": {"number": 2, "delimiter": "_"}},
    scores={"bundled questions": 0.5},
    text=TextOptions(lower=True, digits="zero", normalize="nfkc"),
    subwords=Subwords(3, 6, 1000),
    ngram_offset=4,
    key_type="int",
    views={"words": ViewHeader({"loss": "ns"}, {"tokens": 7}), "subwords": ViewHeader({"loss": "hs"})},
    coordinates="0123456789abcdef",
    gensim=GensimObject("FastText", {"negative": 5}),
    package_version="0.2.0",
    others={"note": "mine"},
)


@pytest.mark.parametrize("header", [ModelHeader(), FULL_HEADER], ids=["empty", "full"])
def test_a_header_is_read_back_as_written(tmp_path: Path, header: ModelHeader) -> None:
    assert ModelHeader.from_strings(header.to_strings("file"), "file") == header
    vectors = w2v.KeyedVectors(["1"], [[1.0]], header=header)
    vectors.save(tmp_path / "m.safetensors")
    for mmap in (False, True):
        assert w2v.load(tmp_path / "m.safetensors", mmap).header == header


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.safetensors")), ids=lambda path: path.stem)
def test_headers_of_samples_are_rewritten_unchanged(path: Path) -> None:
    _, strings = native.read_native(path)
    again = ModelHeader.from_strings(strings, path).to_strings(path)
    assert again == {name: text for name, text in strings.items() if name not in ("format", "version")}


@pytest.mark.parametrize(
    ("lengths", "buckets", "is_valid"),
    [
        ((1, 1), 1, True),
        ((99, 99), (1 << 31) - 1, True),
        ((0, 3), 5, False),
        ((4, 3), 5, False),
        ((3, 100), 5, False),
        ((3, 6), 0, False),
        ((3, 6), 1 << 31, False),
    ],
)
def test_ngrams_have_1_to_99_characters_and_less_than_2_to_the_31_buckets(
    lengths: tuple[int, int], buckets: int, is_valid: bool
) -> None:
    strings = ModelHeader(subwords=Subwords(*lengths, buckets)).to_strings("file")
    if is_valid:
        assert ModelHeader.from_strings(strings, "file").subwords == Subwords(*lengths, buckets)
    else:
        with pytest.raises(W2VError, match=f"^file: its subwords: damaged: n-grams of {lengths[0]} to {lengths[1]} ch"):
            ModelHeader.from_strings(strings, "file")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        *[("settings", text, "settings: damaged: ") for text in ("", "{oops", "[1]", "null", "[" * 100_000)],
        *[("metrics", text, "metrics: damaged: ") for text in ("nope", "3", '{"phrases": {"delimiter": 5}}')],
        ("metrics", '{"phrases": "_"}', "metrics: damaged: "),
        ("scores", "[1,2]", "scores: damaged: "),
        *[("text", text, "text options: damaged: ") for text in ("", "[]", '{"lower": 1}', '{"digits": "drop"}')],
        *[("subwords", text, "subwords: damaged: ") for text in ("", '{"shortest": 3}')],
        ("subwords", '{"shortest": 5, "longest": 4, "buckets": 9}', "damaged: n-grams of 5 to 4 characters in 9 buck"),
        (
            "subwords",
            f'{{"shortest": 3, "longest": 4, "buckets": {"9" * 4000}}}',
            "subwords: damaged: n-grams of 3 to 4 ",
        ),
        ("coordinates", "5", "coordinates: damaged: "),
        *[("gensim", text, "settings: damaged: ") for text in ("[]", '{"kind": "Word2Vec"}')],
    ],
)
def test_a_damaged_header_is_refused_in_one_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / "m.safetensors"
    write_with_strings(path, **{name: text})
    for mmap in (False, True):
        assert_refused(path, rf"m\.safetensors: its {message}" if "buck" not in message else message, mmap=mmap)
    assert message in run("convert", path, tmp_path / "o.txt", code=1).stderr
    assert not (tmp_path / "o.txt").exists()


@pytest.mark.parametrize("name", ["settings", "metrics", "scores"])
def test_values_that_json_cannot_represent_are_refused(tmp_path: Path, name: str) -> None:
    fields: dict[str, Any] = {name: {"number": np.float32(1)}}
    with pytest.raises(W2VError, match=rf"m\.safetensors: its {name}: not written: "):
        w2v.KeyedVectors(["a"], [[1.0]], header=ModelHeader(**fields)).save(tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())
