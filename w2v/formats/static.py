"""Folders of static embeddings, which model2vec and sentence-transformers load: texts become mean vectors of words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from w2v.errors import W2VError, counted, one_line
from w2v.formats import bfloat16, native
from w2v.formats.vector_file import Array, VectorFile, check_content, checked
from w2v.progress import Meter, Report
from w2v.system import schema
from w2v.system.files import Errors, PathLike, atomic_folder, atomic_write, errors_named
from w2v.system.schema import Count
from w2v.text.words import Words

MATRIX, TOKENIZER = "model.safetensors", "tokenizer.json"
MATRICES = ("embeddings", "embedding.weight")  # its name in model2vec, and in sentence-transformers
UNKNOWN = "[UNK]"
SMALL = 1 << 20  # bytes of a tokenizer; in memory they become some twenty times as many
ROWS_AT_ONCE = 1 << 12
MODULE = "sentence_transformers.models"
MODULES = [
    {"idx": 0, "name": "0", "path": ".", "type": f"{MODULE}.StaticEmbedding"},
    {"idx": 1, "name": "1", "path": "1_Normalize", "type": f"{MODULE}.Normalize"},
]
CARD = """---
library_name: model2vec
tags: [embeddings, static-embeddings, sentence-transformers, word2vec]
---

# {name}

Word vectors of {words:,} words with {size:,} values each, {made} by w2v. The vector of a text is the mean of the
vectors of its words, which white space separates; unknown words do not count.

```python
from model2vec import StaticModel
from sentence_transformers import SentenceTransformer

StaticModel.from_pretrained("{name}").encode(["a text"])
SentenceTransformer("{name}").encode(["a text"])
```
{tables}"""


# -- writing --------------------------------------------------------------------------------


def write(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write a folder, atomically; one that exists is never replaced. Raises W2VError if it cannot be written."""
    check_content(path, content)
    with atomic_folder(path) as folder:
        _write_matrix(folder / MATRIX, content.vectors, Meter(progress, "save"))
        with atomic_write(folder / TOKENIZER) as file:
            file.writelines(_tokenizer(content))
        texts = {
            "config.json": json.dumps({"model_type": "model2vec", "normalize": True, "embedding_dtype": "float32"}),
            "modules.json": json.dumps(MODULES),
            "README.md": _card(Path(path), content),
        }
        for name, text in texts.items():
            with atomic_write(folder / name) as file:
                file.write(text.encode())


def _write_matrix(path: Path, vectors: Array, meter: Meter) -> None:
    """The rows of the words, and one of zeros for unknown ones, which sentence-transformers averages, too."""
    rows, columns = vectors.shape
    shape = np.broadcast_to(np.float32(0), (rows + 1, columns))
    _, header = native.header_bytes(path, {MATRICES[0]: shape}, {})
    with atomic_write(path) as file:
        file.write(header)
        for start, block in bfloat16.blocks(vectors, ROWS_AT_ONCE):
            file.write(block.data)
            meter(start, rows)
        file.write(np.zeros(columns, np.float32).data)
        meter(rows, rows)


def _tokenizer(content: VectorFile) -> Iterator[bytes]:
    """The parts of the tokenizer's JSON: words are separated by white space."""
    unknown = UNKNOWN
    while unknown in content.words:
        unknown = f"[{unknown}]"
    lower = content.header.text.lower
    steps = {"normalizer": {"type": "Lowercase"} if lower else None, "pre_tokenizer": {"type": "WhitespaceSplit"}}
    steps |= dict.fromkeys(("truncation", "padding", "post_processor", "decoder"))
    yield json.dumps({"version": "1.0", "added_tokens": [], **steps})[:-1].encode()
    yield b', "model": {"type": "WordLevel", "unk_token": %s, "vocab": {' % json.dumps(unknown).encode()
    yield from (b"%s: %d, " % (json.dumps(word).encode(), row) for row, word in enumerate(content.words))
    yield b"%s: %d}}}" % (json.dumps(unknown).encode(), len(content.words))


def _card(path: Path, content: VectorFile) -> str:
    rows, size = content.vectors.shape
    tables = ""
    header = content.header
    for title, values in ("settings", header.settings or {}), ("metrics", header.metrics), ("scores", header.scores):
        lines = [f"| {key} | {value} |" for key, value in values.items() if value not in (None, {}, [])]
        tables += "\n".join(["", f"## {title.capitalize()}", "", "| | |", "|---|---|", *lines, ""]) if lines else ""
    made = "trained" if header.metrics else "converted"  # files of fastText, too, have settings
    return CARD.format(name=path.name, words=rows, size=size, made=made, tables=tables)


# -- reading --------------------------------------------------------------------------------


class _Model(msgspec.Struct):
    vocab: msgspec.Raw  # of _Vocabulary
    unk_token: str | None = None


class _Tokenizer(msgspec.Struct):
    model: _Model


_Vocabulary = dict[str, Count] | list[tuple[str, float]]  # a list: of Unigram, with logarithms of probabilities


def read(path: PathLike, errors: Errors | None, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read the tokens and vectors of a folder, also of subword tokenizers; weights of tokens are multiplied in."""
    matrix_path, tokenizer_path = Path(path) / MATRIX, Path(path) / TOKENIZER
    tensors, _ = native.read_native(matrix_path, mmap=True, foreign=True)
    matrix = next((tensors[name] for name in MATRICES if name in tensors), np.empty(0))
    with errors_named(tokenizer_path):
        size = tokenizer_path.stat().st_size
    if size > max(SMALL, matrix.nbytes // 2):
        raise W2VError(f"{tokenizer_path}: {size:,} bytes, too many for {counted(len(matrix), 'vector')}")
    tokens = schema.read(dict[str, int], tokenizer_path, _tokens)
    numbers = np.fromiter(tokens.values(), np.int64, len(tokens))
    try:
        rows = _mapped(tensors["mapping"], numbers) if "mapping" in tensors else numbers
        vectors = np.take(matrix, rows, axis=0).astype(np.float32, copy=False)
        if "weights" in tensors:
            vectors *= tensors["weights"].astype(np.float32)[numbers, np.newaxis]
    except (LookupError, ValueError) as error:
        raise W2VError(f"{path}: damaged: its tokens do not fit its matrix: {one_line(error)}") from error
    return checked(path, VectorFile(Words.of(tokens), vectors), errors)


def _tokens(content: bytes, type: object) -> dict[str, int]:
    """The number of each token of a tokenizer but the unknown one. Raises ValueError for any other file."""
    model = msgspec.json.decode(content, type=_Tokenizer).model
    plain = bytes(model.vocab).replace(rb"\\", b"")
    texts = (plain.count(b'"') - plain.count(rb"\"")) // 2
    del plain
    found = msgspec.json.decode(model.vocab, type=_Vocabulary)
    tokens = found if isinstance(found, dict) else {word: row for row, (word, _) in enumerate(found)}
    if len(tokens) != texts:  # of equal keys, only the last has been kept
        raise ValueError("a token is listed twice")
    tokens.pop(model.unk_token or "", None)
    return tokens


def _mapped(mapping: Array, numbers: Array) -> Array:
    """The rows of n tokens, int64 (n,), from their numbers. Raises LookupError or ValueError for wrong ones."""
    if mapping.ndim != 1 or mapping.dtype.kind not in "iu":
        raise ValueError(f"a mapping of shape {mapping.shape} and type {mapping.dtype}")
    rows: Array = mapping[numbers].astype(np.int64)
    if np.any(rows < 0):
        raise ValueError(f"a mapping to row {rows.min()}")
    return rows
