"""Forge files: their structure and checksums are valid, but their values have wrong types or sizes, or are extreme.

    python tests/faults/forge.py SECONDS [KIND ...]

A reader must load a forged file, or raise W2VError with one short line, within the memory that docs/reliability.md
promises. fuzz.py changes bytes; this program changes the content, so it gets past checksums and JSON parsers.
"""

import json
import logging
import os
import pickle
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import w2v
from tests.faults.peak import bounded
from w2v.cli import info
from w2v.errors import W2VError
from w2v.formats.native import read_native, write_native
from w2v.gensim.models.keyedvectors import KeyedVectors
from w2v.gensim.models.phrases import Phrases
from w2v.gensim.models.word2vec import Word2Vec
from w2v.losses.registry import Settings
from w2v.options import options_of
from w2v.text import idstore
from w2v.text.corpus import Corpus
from w2v.training import checkpoint, checkpoint_folder
from w2v.training.config import RunConfig, read_options
from w2v.vectors.keyed import load

NUMBERS = (0, -1, 1, 2, 3, 255, 1 << 14, 1 << 20, 1 << 31, 1 << 32, (1 << 53) + 1, 1 << 62, 1 << 63, 1 << 64, 10**400)
FLOATS = (0.5, -0.0, 1e-320, 1e308, float("inf"), float("-inf"), float("nan"))
# None of these is the path of an existing file.
TEXTS = ("", "\0", "\ud800", "\x1b[2J\n", "a:b", "z\n:z", "1s", "1epoch", "9" * 999, "w" * 100_000, "é", "no such")
NAMES = ("ns", "hs", "class", "mos", "charcnn", "dsoftmax", "softmax", "sampled", "objective", "cbow", "bf16", "numba")
DTYPES = ("f8", "f4", "f2", "i8", "i4", "u4", "u1", "?")


class Stop(Exception):
    """Raised to end a training that has begun."""


def stop(_: object) -> None:
    raise Stop


def random_value(generator: random.Random, depth: int = 2) -> Any:
    """Return a random JSON value, often an extreme one."""
    kind = generator.randrange(8 if depth else 6)
    if kind == 6:
        return [random_value(generator, depth - 1) for _ in range(generator.randrange(4))]
    if kind == 7:
        return {
            generator.choice(TEXTS + NAMES): random_value(generator, depth - 1) for _ in range(generator.randrange(4))
        }
    return generator.choice(((None, True, False), NUMBERS, NUMBERS, FLOATS, TEXTS, NAMES)[kind])


def value_paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of a JSON value and of all values inside it."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from value_paths(part, (*path, key))


def forge_json(valid: str, generator: random.Random) -> str:
    """Return a valid JSON text after replacing, removing or duplicating one to three of its values."""
    document = json.loads(valid)
    for _ in range(generator.randint(1, 3)):
        path = generator.choice([*value_paths(document)])
        if not path:
            document = random_value(generator)
            continue
        part = document
        for key in path[:-1]:
            part = part[key]
        match generator.randrange(4):
            case 0 if isinstance(part, dict):
                del part[path[-1]]
            case 1 if isinstance(part, dict):
                part[generator.choice(TEXTS + NAMES)] = part[path[-1]]
            case _:
                part[path[-1]] = random_value(generator)
    return json.dumps(document)


def forge_arrays(arrays: dict[str, Any], generator: random.Random) -> dict[str, Any]:
    """Return the arrays after changing one: its type, shape, values or name, or whether it is there at all."""
    changed = dict(arrays)
    name = generator.choice([*changed])
    array = np.array(changed[name])
    match generator.randrange(6):
        case 0:
            del changed[name]
        case 1:
            changed[generator.choice(["parameter.gates", "outputs", "counts", "inputs", "z" * 999])] = array
        case 2:
            with np.errstate(all="ignore"):
                changed[name] = array.astype(generator.choice(DTYPES))
        case 3:
            changed[name] = array[: generator.randrange(len(array) + 1)] if array.ndim else array
        case 4:
            changed[name] = (
                array.reshape(generator.choice([(-1,), (-1, 1), (1, -1), (1, 1, -1)])) if array.size else array
            )
        case _:
            changed[name] = array = array.copy()
            if array.size:
                extremes = np.array([0, 1, 2, -1, 1 << 31, 1 << 62, -(1 << 62)])
                with np.errstate(all="ignore"):
                    array.reshape(-1)[generator.randrange(array.size)] = generator.choice(extremes).astype(array.dtype)
    return changed


class Forger:
    """Valid files, and for each kind of file a method that writes a forged one; see `make`."""

    KINDS = ("model", "header", "checkpoint", "cache", "gensim", "pickle", "phrases", "config")

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "forged"
        self.text = folder / "corpus"
        self.text.write_text("the quick brown fox jumps over the lazy dog\n" * 300)
        options: dict[str, Any] = {"min_count": 1, "vector_size": 2, "negative": 1, "epochs": 1, "workers": 1}
        self.models, self.checkpoints = [], []
        for loss in ("ns", "hs", "class", "sampled"):
            checkpoints = folder / f"checkpoints-{loss}"
            model = w2v.train(self.text, checkpoint=checkpoints, loss=loss, **options)
            model.save(folder / f"{loss}.safetensors")
            self.models.append(read_native(folder / f"{loss}.safetensors"))
            self.checkpoints.append(read_native(checkpoint_folder.latest(checkpoints).path))
        subword_model = w2v.train(self.text, subwords="1-2", buckets=4, **options)
        subword_model.save(folder / "ngrams.safetensors")
        self.models.append(read_native(folder / "ngrams.safetensors"))
        self.native = (folder / "ns.safetensors").read_bytes()
        idstore.read_corpus(Corpus(self.text), idstore.ReadingOptions(cache=folder)).close()
        self.cached = next(folder.glob("*.w2v-ids"))
        self.ids = self.cached.read_bytes()
        sentences = [["a", "b", "c"]] * 9
        model = Word2Vec([[*words, 7] for words in sentences], vector_size=2, min_count=1, epochs=1)
        model.note, model.wv.shares = {"language": "de", "years": [1990]}, np.arange(4)  # type: ignore[attr-defined]
        model.wv.set_vecattr("a", "topic", "sport")
        model.save(folder / "gensim")
        self.word2vec = read_native(folder / "gensim")
        small: dict[str, Any] = {"vector_size": 2, "min_count": 1, "epochs": 1}
        import gensim  # has no wheel for the newest Python

        gensim_models = (
            gensim.models.Word2Vec(sentences, **small),
            gensim.models.FastText(sentences, min_n=1, max_n=2, bucket=3, **small),
        )
        self.gensim_pickles = [pickle.dumps(gensim_model) for gensim_model in gensim_models]
        Phrases(sentences, min_count=1, threshold=0.1).save(folder / "phrases")
        self.phrases_text = (folder / "phrases").read_text()

    def make(self, kind: str, generator: random.Random) -> tuple[Path, list[Callable[[], object]]]:
        """Write a forged file of this kind; return its path, and the functions that read it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        path_and_readers: tuple[Path, list[Callable[[], object]]] = getattr(self, kind)(generator)
        return path_and_readers

    def model(self, generator: random.Random) -> tuple[Path, list[Callable[[], object]]]:
        arrays, metadata = generator.choice(self.models)
        path = self.folder / "m.safetensors"
        if generator.random() < 0.3:
            arrays = forge_arrays(arrays, generator)
        else:
            name = generator.choice([name for name, text in metadata.items() if "{" in text])
            metadata = metadata | {name: forge_json(metadata[name], generator)}
        write_native(path, arrays, metadata)
        return path, self._readers(path)

    @staticmethod
    def _readers(path: Path) -> list[Callable[[], object]]:
        """Return the functions that read a model file."""

        def encode() -> None:
            mapped = load(path, mmap=True)  # mapped files are checked less, so using them must be harmless, too
            with np.errstate(all="ignore"):
                w2v.encode(mapped, ["the quick unknown"], "mean")

        return [
            lambda: w2v.Model.load(path),
            lambda: info.model(path, load(path)),
            lambda: read_options(path),
            encode,
        ]

    def header(self, generator: random.Random) -> tuple[Path, list[Callable[[], object]]]:
        end = 8 + int.from_bytes(self.native[:8], "little")
        header = forge_json(self.native[8:end].decode(), generator).encode()
        path = self.folder / "m.safetensors"
        path.write_bytes(len(header).to_bytes(8, "little") + header + self.native[end:])
        return path, self._readers(path)

    def checkpoint(self, generator: random.Random) -> tuple[Path, list[Callable[[], object]]]:
        arrays, metadata = generator.choice(self.checkpoints)
        settings, what = metadata["settings"], generator.randrange(4)
        if what == 0:
            settings = forge_json(settings, generator)
        elif what == 1:
            arrays = forge_arrays(arrays, generator)
        else:
            run = forge_json(arrays["run"].tobytes().decode(), generator)
            arrays = arrays | {"run": np.frombuffer(run.encode(), np.uint8)}
        path = self.folder / "checkpoint-000001.safetensors"
        write_native(path, arrays, metadata | {"settings": settings, "checksum": checkpoint.checksum(arrays, settings)})

        return path, [lambda: w2v.resume(self.folder, self.text, progress=stop)]

    def cache(self, generator: random.Random) -> tuple[Path, list[Callable[[], object]]]:
        tail = len(self.ids) - len(idstore.SIGNATURE) - 8
        start = tail - int.from_bytes(self.ids[tail : tail + 8], "little")
        header = forge_json(self.ids[start:tail].decode(), generator).encode()
        path = self.folder / self.cached.name
        path.write_bytes(self.ids[:start] + header + len(header).to_bytes(8, "little") + idstore.SIGNATURE)

        def read() -> None:
            with idstore.read_corpus(Corpus(self.text), idstore.ReadingOptions(cache=self.folder)) as store:
                assert store.tokens == 2700  # a damaged cache is written again

        return path, [read]

    def gensim(self, generator: random.Random) -> tuple[Path, list[Callable[[], object]]]:
        arrays, metadata = self.word2vec
        path = self.folder / "gensim"
        what = generator.randrange(3)
        if what == 0:
            arrays = forge_arrays(arrays, generator)
        elif what == 1:
            name = generator.choice(["vecattr", "gensim.model"])
            text = forge_json(arrays[name].tobytes().decode(), generator)
            arrays = arrays | {name: np.frombuffer(text.encode(), np.uint8)}
        else:
            metadata = metadata | {name: forge_json(text, generator) for name, text in metadata.items() if "{" in text}
        write_native(path, arrays, metadata)
        return path, [lambda: Word2Vec.load(path), lambda: KeyedVectors.load(path).wv.most_similar("a")]

    def pickle(self, generator: random.Random) -> tuple[Path, list[Callable[[], object]]]:
        gensim_model = pickle.loads(generator.choice(self.gensim_pickles))
        parts = [vars(gensim_model), vars(gensim_model.wv)]
        for _ in range(generator.randint(1, 3)):
            attributes = generator.choice(parts)
            name = generator.choice(
                [*attributes, "syn1", "vocab", "__numpys", "hash2index", "ngrams", "min_n", "bucket"]
            )
            array = np.array([[1, 2]] * 3, generator.choice(DTYPES)).reshape(
                generator.choice([(3, 2), (2, 3), (6,), (1, 6, 1)])
            )
            shared: Any = ()
            for _ in range(60):  # printed in full, it would be endless
                shared = (shared, shared)
            other = generator.choice([{"count": array[0]}, {2: 1, 0: 0}, {"<a": 2}, list("abc"), ["vectors"], shared])
            attributes[name] = generator.choice([random_value(generator), array, other])
        path = self.folder / "their.model"
        path.write_bytes(pickle.dumps(gensim_model, generator.randint(2, 5)))

        def read() -> None:
            with suppress(AttributeError, EOFError):  # gensim raises these, too
                Word2Vec.load(path)

        return path, [lambda: info.model(path, load(path)), lambda: w2v.Model.load(path), read]

    def phrases(self, generator: random.Random) -> tuple[Path, list[Callable[[], object]]]:
        path = self.folder / "phrases"
        path.write_text(forge_json(self.phrases_text, generator))

        def read() -> None:
            with suppress(AttributeError):  # gensim raises it, too, for a file of another class
                list(Phrases.load(path)[[["a", "b", "c"]]])

        return path, [read]

    def config(self, generator: random.Random) -> tuple[Path, list[Callable[[], object]]]:
        names = [*options_of(Settings), "cache", "errors", "max_types", "corpus", "output", generator.choice(NAMES)]
        path = self.folder / "run.toml"
        values = (random_value(generator) for _ in range(generator.randrange(6)))
        text = "".join(f"{generator.choice(names)} = {json.dumps(value)}\n" for value in values)
        path.write_text(text, "utf-8", "surrogatepass")
        return path, [lambda: RunConfig.from_options(read_options(path))]


def check(forger: Forger, kind: str, generator: random.Random) -> str:
    """Forge a file and read it in all ways. Return "loaded" or "refused" for the first; raise any other error."""
    path, readers = forger.make(kind, generator)
    result = "loaded"
    for number, read in enumerate(readers):
        with bounded(path.stat().st_size, 16 if kind == "pickle" else 5):
            try:
                read()
            except W2VError as error:
                message = str(error)
                assert "\n" not in message
                assert len(message) < 1000, message
                result = result if number else "refused"
            except Stop:
                pass
    return result


def main() -> None:
    seconds, *kinds = sys.argv[1:]
    logging.disable()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        forger = Forger(Path(folder))
        for kind in kinds or Forger.KINDS:
            counts = {"loaded": 0, "refused": 0}
            end, seed = time.monotonic() + int(seconds), int(os.environ.get("FAULTS_SEED", time.time_ns()))
            while time.monotonic() < end:
                seed += 1
                try:
                    counts[check(forger, kind, random.Random(seed))] += 1
                except BaseException as error:
                    error.add_note(f"{kind}, seed {seed}")
                    raise
            print(json.dumps({"kind": kind, **counts}), flush=True)


if __name__ == "__main__":
    main()
