"""Forged files: sound in their structure, with values of wrong types, sizes and extremes, and sound checksums.

    python tests/faults/forge.py SECONDS [KIND ...]

Whatever is forged, a reader loads it or raises W2VError with one short line, within twice the file and 64 MB. Unlike
fuzz.py, which changes bytes, this changes what files say: it gets past every checksum and past JSON.
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

import gensim
import numpy as np

import w2v
from tests.faults.peak import bounded
from w2v.cli import info
from w2v.errors import W2VError
from w2v.formats.native import read_native, write_native
from w2v.gensim.models.keyedvectors import KeyedVectors
from w2v.gensim.models.phrases import Phrases
from w2v.gensim.models.word2vec import Word2Vec
from w2v.text import idstore
from w2v.text.corpus import Corpus
from w2v.training import checkpoint
from w2v.training.config import RunConfig, read_options
from w2v.vectors.keyed import load

NUMBERS = (0, -1, 1, 2, 3, 255, 1 << 14, 1 << 20, 1 << 31, 1 << 32, (1 << 53) + 1, 1 << 62, 1 << 63, 1 << 64, 10**400)
FLOATS = (0.5, -0.0, 1e-320, 1e308, float("inf"), float("-inf"), float("nan"))
# As a path, none of these names a file that is there.
TEXTS = ("", "\0", "\ud800", "\x1b[2J\n", "a:b", "z\n:z", "1s", "1epoch", "9" * 999, "w" * 100_000, "é", "no such")
NAMES = ("ns", "hs", "class", "mos", "charcnn", "dsoftmax", "softmax", "sampled", "objective", "cbow", "bf16", "numba")
DTYPES = ("f8", "f4", "f2", "i8", "i4", "u4", "u1", "?")


class Stop(Exception):
    pass


def stop(_: object) -> None:
    raise Stop


def value(chance: random.Random, depth: int = 2) -> Any:
    """Any value that JSON holds, extremes often."""
    kind = chance.randrange(8 if depth else 6)
    if kind == 6:
        return [value(chance, depth - 1) for _ in range(chance.randrange(4))]
    if kind == 7:
        return {chance.choice(TEXTS + NAMES): value(chance, depth - 1) for _ in range(chance.randrange(4))}
    return chance.choice(((None, True, False), NUMBERS, NUMBERS, FLOATS, TEXTS, NAMES)[kind])


def places(inside: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values inside a JSON value."""
    yield path
    inner = inside.items() if isinstance(inside, dict) else enumerate(inside) if isinstance(inside, list) else ()
    for key, part in inner:
        yield from places(part, (*path, key))


def forged(sound: str, chance: random.Random) -> str:
    """A sound JSON text of which one to three values are replaced, left out or given twice under other names."""
    made = json.loads(sound)
    for _ in range(chance.randint(1, 3)):
        path = chance.choice([*places(made)])
        if not path:
            made = value(chance)
            continue
        part = made
        for key in path[:-1]:
            part = part[key]
        match chance.randrange(4):
            case 0 if isinstance(part, dict):
                del part[path[-1]]
            case 1 if isinstance(part, dict):
                part[chance.choice(TEXTS + NAMES)] = part[path[-1]]
            case _:
                part[path[-1]] = value(chance)
    return json.dumps(made)


def forged_arrays(arrays: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """The same arrays, one of them in another type or shape, with extreme values, left out, or under another name."""
    made = dict(arrays)
    name = chance.choice([*made])
    array = np.array(made[name])
    match chance.randrange(6):
        case 0:
            del made[name]
        case 1:
            made[chance.choice(["parameter.gates", "outputs", "counts", "inputs", "z" * 999])] = array
        case 2:
            with np.errstate(all="ignore"):
                made[name] = array.astype(chance.choice(DTYPES))
        case 3:
            made[name] = array[: chance.randrange(len(array) + 1)] if array.ndim else array
        case 4:
            made[name] = array.reshape(chance.choice([(-1,), (-1, 1), (1, -1), (1, 1, -1)])) if array.size else array
        case _:
            made[name] = array = array.copy()
            if array.size:
                extremes = np.array([0, 1, 2, -1, 1 << 31, 1 << 62, -(1 << 62)])
                with np.errstate(all="ignore"):
                    array.reshape(-1)[chance.randrange(array.size)] = chance.choice(extremes).astype(array.dtype)
    return made


class Forger:
    """Sound files, and for each kind of file a method that writes a forged one to a folder and uses it."""

    KINDS = ("model", "header", "checkpoint", "cache", "gensim", "pickle", "phrases", "config")

    def __init__(self, folder: Path) -> None:
        self.room = folder / "room"
        self.text = folder / "corpus"
        self.text.write_text("the quick brown fox jumps over the lazy dog\n" * 300)
        options: dict[str, Any] = {"min_count": 1, "vector_size": 2, "negative": 1, "epochs": 1, "workers": 1}
        self.models, self.states = [], []
        for loss in ("ns", "hs", "class", "sampled"):
            states = folder / f"states-{loss}"
            model = w2v.train(self.text, checkpoint=states, loss=loss, **options)
            model.save(folder / f"{loss}.safetensors")
            self.models.append(read_native(folder / f"{loss}.safetensors"))
            self.states.append(read_native(checkpoint.latest(states).path))
        composed = w2v.train(self.text, subwords="1-2", buckets=4, **options)
        composed.save(folder / "ngrams.safetensors")
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
        composed = gensim.models.FastText(sentences, min_n=1, max_n=2, bucket=3, **small)
        self.theirs = [pickle.dumps(one) for one in (gensim.models.Word2Vec(sentences, **small), composed)]
        Phrases(sentences, min_count=1, threshold=0.1).save(folder / "phrases")
        self.counted = (folder / "phrases").read_text()

    def make(self, kind: str, chance: random.Random) -> tuple[Path, list[Callable[[], object]]]:
        """Write a forged file of this kind; returns it, and what reads it."""
        shutil.rmtree(self.room, ignore_errors=True)
        self.room.mkdir()
        made: tuple[Path, list[Callable[[], object]]] = getattr(self, kind)(chance)
        return made

    def model(self, chance: random.Random) -> tuple[Path, list[Callable[[], object]]]:
        arrays, metadata = chance.choice(self.models)
        path = self.room / "m.safetensors"
        if chance.random() < 0.3:
            arrays = forged_arrays(arrays, chance)
        else:
            name = chance.choice([name for name, text in metadata.items() if "{" in text])
            metadata = metadata | {name: forged(metadata[name], chance)}
        write_native(path, arrays, metadata)
        return path, self._uses(path)

    @staticmethod
    def _uses(path: Path) -> list[Callable[[], object]]:

        def encode() -> None:
            mapped = load(path, mmap=True)  # less is checked: it must do no harm to use it
            with np.errstate(all="ignore"):
                mapped.encode(["the quick unknown"], "mean")

        return [
            lambda: w2v.Model.load(path),
            lambda: info.model(path, load(path)),
            lambda: read_options(path),
            encode,
        ]

    def header(self, chance: random.Random) -> tuple[Path, list[Callable[[], object]]]:
        end = 8 + int.from_bytes(self.native[:8], "little")
        made = forged(self.native[8:end].decode(), chance).encode()
        path = self.room / "m.safetensors"
        path.write_bytes(len(made).to_bytes(8, "little") + made + self.native[end:])
        return path, self._uses(path)

    def checkpoint(self, chance: random.Random) -> tuple[Path, list[Callable[[], object]]]:
        arrays, metadata = chance.choice(self.states)
        kept, what = metadata["settings"], chance.randrange(4)
        if what == 0:
            kept = forged(kept, chance)
        elif what == 1:
            arrays = forged_arrays(arrays, chance)
        else:
            run = forged(arrays["run"].tobytes().decode(), chance)
            arrays = arrays | {"run": np.frombuffer(run.encode(), np.uint8)}
        path = self.room / "checkpoint-000001.safetensors"
        write_native(path, arrays, metadata | {"settings": kept, "checksum": checkpoint.checksum(arrays, kept)})

        return path, [lambda: w2v.resume(self.room, self.text, progress=stop)]

    def cache(self, chance: random.Random) -> tuple[Path, list[Callable[[], object]]]:
        tail = len(self.ids) - len(idstore.SIGNATURE) - 8
        start = tail - int.from_bytes(self.ids[tail : tail + 8], "little")
        made = forged(self.ids[start:tail].decode(), chance).encode()
        path = self.room / self.cached.name
        path.write_bytes(self.ids[:start] + made + len(made).to_bytes(8, "little") + idstore.SIGNATURE)

        def use() -> None:
            with idstore.read_corpus(Corpus(self.text), idstore.ReadingOptions(cache=self.room)) as store:
                assert store.tokens == 2700  # the file was written anew where it was damaged

        return path, [use]

    def gensim(self, chance: random.Random) -> tuple[Path, list[Callable[[], object]]]:
        arrays, metadata = self.word2vec
        path = self.room / "gensim"
        what = chance.randrange(3)
        if what == 0:
            arrays = forged_arrays(arrays, chance)
        elif what == 1:
            name = chance.choice(["vecattr", "gensim.model"])
            made = forged(arrays[name].tobytes().decode(), chance)
            arrays = arrays | {name: np.frombuffer(made.encode(), np.uint8)}
        else:
            metadata = metadata | {name: forged(text, chance) for name, text in metadata.items() if "{" in text}
        write_native(path, arrays, metadata)
        return path, [lambda: Word2Vec.load(path), lambda: KeyedVectors.load(path).wv.most_similar("a")]

    def pickle(self, chance: random.Random) -> tuple[Path, list[Callable[[], object]]]:
        theirs = pickle.loads(chance.choice(self.theirs))
        parts = [vars(theirs), vars(theirs.wv)]
        for _ in range(chance.randint(1, 3)):
            attributes = chance.choice(parts)
            name = chance.choice([*attributes, "syn1", "vocab", "__numpys", "hash2index", "ngrams", "min_n", "bucket"])
            array = np.array([[1, 2]] * 3, chance.choice(DTYPES)).reshape(
                chance.choice([(3, 2), (2, 3), (6,), (1, 6, 1)])
            )
            shared: Any = ()
            for _ in range(60):  # in full, it would have no end
                shared = (shared, shared)
            other = chance.choice([{"count": array[0]}, {2: 1, 0: 0}, {"<a": 2}, list("abc"), ["vectors"], shared])
            attributes[name] = chance.choice([value(chance), array, other])
        path = self.room / "their.model"
        path.write_bytes(pickle.dumps(theirs, chance.randint(2, 5)))

        def use() -> None:
            with suppress(AttributeError, EOFError):  # as gensim's
                Word2Vec.load(path)

        return path, [lambda: info.model(path, load(path)), lambda: w2v.Model.load(path), use]

    def phrases(self, chance: random.Random) -> tuple[Path, list[Callable[[], object]]]:
        path = self.room / "phrases"
        path.write_text(forged(self.counted, chance))

        def use() -> None:
            with suppress(AttributeError):  # as gensim's: the file of another class
                list(Phrases.load(path)[[["a", "b", "c"]]])

        return path, [use]

    def config(self, chance: random.Random) -> tuple[Path, list[Callable[[], object]]]:
        names = [*w2v.Settings.names(), "cache", "errors", "max_types", "corpus", "output", chance.choice(NAMES)]
        path = self.room / "run.toml"
        found = (value(chance) for _ in range(chance.randrange(6)))
        text = "".join(f"{chance.choice(names)} = {json.dumps(one)}\n" for one in found)
        path.write_text(text, "utf-8", "surrogatepass")
        return path, [lambda: RunConfig.from_options(read_options(path))]


def check(forger: Forger, kind: str, chance: random.Random) -> str:
    """Forge a file and use it. Returns "loaded" or "refused", by the first use; raises what breaks a rule."""
    path, uses = forger.make(kind, chance)
    result = "loaded"
    for number, use in enumerate(uses):
        with bounded(2 * path.stat().st_size + (64 << 20)):
            try:
                use()
            except W2VError as error:
                said = str(error)
                assert "\n" not in said
                assert len(said) < 1000, said
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
            found = {"loaded": 0, "refused": 0}
            end, seed = time.monotonic() + int(seconds), int(os.environ.get("FAULTS_SEED", time.time_ns()))
            while time.monotonic() < end:
                seed += 1
                try:
                    found[check(forger, kind, random.Random(seed))] += 1
                except BaseException as error:
                    error.add_note(f"{kind}, seed {seed}")
                    raise
            print(json.dumps({"kind": kind, **found}), flush=True)


if __name__ == "__main__":
    main()
