"""Folders of static embeddings: model2vec and sentence-transformers encode a text as the mean of its word vectors."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from w2v._errors import W2VError, one_line, translate_errors
from w2v._formats import bfloat16, native
from w2v._formats.base import Format, has_files
from w2v._formats.vector_file import Array, VectorFile, as_floats
from w2v._progress import Meter, Report
from w2v._system.files import PathLike, atomic_folder, atomic_write, open_regular, translate_os_errors
from w2v._text.words import Words

MATRIX, TOKENIZER = "model.safetensors", "tokenizer.json"
MATRICES = ("embeddings", "embedding.weight")  # the names of the matrix in model2vec and in sentence-transformers
UNKNOWN = "[UNK]"
DAMAGE = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)
BLOCK_ROWS = 1 << 12
MODULE_PREFIX = "sentence_transformers.models"
MODULES = [
    {"idx": 0, "name": "0", "path": ".", "type": f"{MODULE_PREFIX}.StaticEmbedding"},
    {"idx": 1, "name": "1", "path": "1_Normalize", "type": f"{MODULE_PREFIX}.Normalize"},
]
MODEL_CARD = """---
library_name: model2vec
tags: [embeddings, static-embeddings, sentence-transformers, word2vec]
---

# {name}

Word vectors of {words:,} words with {size:,} values each, {verb} by w2v. Texts are split at white space. The vector
of a text is the mean of the vectors of its known words.

```python
from model2vec import StaticModel
from sentence_transformers import SentenceTransformer

StaticModel.from_pretrained("{name}").encode(["a text"])
SentenceTransformer("{name}").encode(["a text"])
```
{tables}"""


# -- writing --------------------------------------------------------------------------------


def write(path: PathLike, content: VectorFile, replace: bool = True, progress: Report | None = None) -> None:
    """Write a folder atomically. An existing folder is never replaced.

    Raises:
        W2VError: If the folder cannot be written or exists.
    """
    with atomic_folder(path) as folder:
        _write_matrix(folder / MATRIX, content.vectors, Meter(progress, "save"))
        with atomic_write(folder / TOKENIZER) as file:
            file.writelines(_tokenizer_json(content))
        texts = {
            "config.json": json.dumps({"model_type": "model2vec", "normalize": True, "embedding_dtype": "float32"}),
            "modules.json": json.dumps(MODULES),
            "README.md": _model_card(Path(path), content),
        }
        for name, text in texts.items():
            with atomic_write(folder / name) as file:
                file.write(text.encode())


def _write_matrix(path: Path, vectors: Array, meter: Meter) -> None:
    """Write the rows of the words, and a row of zeros for unknown words.

    The mean that sentence-transformers computes includes unknown words.
    """
    rows, columns = vectors.shape
    placeholder = np.broadcast_to(np.float32(0), (rows + 1, columns))  # has the shape of the matrix, but no memory
    _, header = native.header_bytes(path, {MATRICES[0]: placeholder}, {})
    with atomic_write(path) as file:
        file.write(header)
        for _, block in bfloat16.float32_blocks(vectors, BLOCK_ROWS, meter):
            file.write(block.data)
        file.write(np.zeros(columns, np.float32).data)


def _tokenizer_json(content: VectorFile) -> Iterator[bytes]:
    """Yield the parts of the JSON of a tokenizer that splits texts at white space."""
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


def _model_card(path: Path, content: VectorFile) -> str:
    rows, size = content.vectors.shape
    tables = ""
    header = content.header
    for title, values in ("settings", header.settings or {}), ("metrics", header.metrics), ("scores", header.scores):
        lines = [f"| {key} | {value} |" for key, value in values.items() if value not in (None, {}, [])]
        tables += "\n".join(["", f"## {title.capitalize()}", "", "| | |", "|---|---|", *lines, ""]) if lines else ""
    verb = "trained" if header.metrics else "converted"  # fastText files have settings, too, but no metrics
    return MODEL_CARD.format(name=path.name, words=rows, size=size, verb=verb, tables=tables)


# -- reading --------------------------------------------------------------------------------


def read(path: PathLike, limit: int | None = None, progress: Report | None = None) -> VectorFile:
    """Read the tokens and vectors of a folder; see Format.read.

    The tokens of subword tokenizers are read, too. If the folder has weights, the vector of each token is multiplied by
    the token's weight.
    """
    tensors, _ = native.read_native(Path(path) / MATRIX, mmap=True, foreign=True)
    matrix = next((tensors[name] for name in MATRICES if name in tensors), np.empty(0))
    words, numbers = _read_tokens(Path(path) / TOKENIZER)
    try:
        rows = _matrix_rows(tensors["mapping"], numbers) if "mapping" in tensors else numbers
        vectors = as_floats(np.take(matrix, rows, axis=0), path, words)
        if "weights" in tensors:
            vectors *= as_floats(tensors["weights"], path)[numbers, np.newaxis]
    except (LookupError, ValueError) as error:
        if isinstance(error, W2VError):
            raise
        raise W2VError(f"{path}: damaged: its tokens do not fit its matrix: {one_line(error)}") from error
    return VectorFile(words, vectors)


def _read_tokens(path: Path) -> tuple[Words, NDArray[np.int64]]:
    """Read the tokens of a tokenizer, except the unknown token, and their numbers, int64 (V,)."""
    with translate_os_errors(path), open_regular(path) as file:
        content = file.read()
    with translate_errors(f"{path}: damaged", *DAMAGE):
        model = json.loads(content)["model"]
        vocabulary, unknown = model["vocab"], model.get("unk_token")
        if isinstance(vocabulary, list):  # Unigram tokenizers have a list of [token, log probability]
            vocabulary = {token: number for number, (token, _) in enumerate(vocabulary)}
        vocabulary.pop(unknown, None)
        numbers = array("Q", vocabulary.values())  # refuses negative numbers
        return Words.of(vocabulary), np.array(numbers, np.int64)


def _matrix_rows(mapping: Array, numbers: Array) -> Array:
    """Return the matrix rows, int64 (n,), of tokens with these numbers.

    Raises:
        LookupError, ValueError: If the mapping or a number is wrong.
    """
    if mapping.ndim != 1 or mapping.dtype.kind not in "iu":
        raise ValueError(f"a mapping of shape {mapping.shape} and type {mapping.dtype}")
    rows: Array = mapping[numbers].astype(np.int64)
    if np.any(rows < 0):
        raise ValueError(f"a mapping to row {rows.min()}")
    return rows


FORMAT = Format("static embeddings", (".model2vec",), 8, has_files(MATRIX, TOKENIZER), read, write, folder=True)
