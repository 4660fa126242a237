"""Coverage-guided fuzzing of every loader: whatever the bytes, it loads them or says in one line why not.

    python tests/faults/fuzz.py SECONDS [LOADER ...]

Without names, all loaders take their turns, each in a process of its own: of limited memory, where an input may take
thirty seconds. The Python side of the loaders is instrumented (atheris, libFuzzer's Python face); the compiled side is
when the build is (see variants.py: with the build `sanitize`, memory errors in it are found too). What harms a loader
is left in build/fuzz as crash-*, oom-* or timeout-*; inputs worth mutating are kept there for the next time.
"""

import bz2
import gzip
import json
import lzma
import os
import pickle
import random
import re
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.faults.peak import bounded  # noqa: E402

FOLDER = Path("build/fuzz")
MEMORY = 1 << 30  # bytes of data that a loader may hold
SECONDS = 30  # that an input may take
LARGEST = 4096  # bytes of an input


def sound() -> dict[str, dict[str, bytes]]:
    """Whole files, by loader and name: what mutation starts from."""
    import gensim

    import w2v
    from w2v.formats import table
    from w2v.gensim.models.phrases import Phrases
    from w2v.gensim.models.word2vec import Word2Vec
    from w2v.text.corpus import Corpus
    from w2v.text.idstore import ReadingOptions, read_corpus
    from w2v.training import checkpoint
    from w2v.vectors.keyed import KeyedVectors
    from w2v.vectors.reduce import in_storage

    checkpoint.checksum = unchecked
    vectors = KeyedVectors(["the", "köln", "a", "b"], np.arange(12, dtype=np.float32).reshape(4, 3) - 5.5)
    text, lines = "the köln the a\nb the a b\n".encode() * 3, [["a", "b", "c"]] * 9
    small: dict[str, Any] = {"min_count": 1, "vector_size": 2, "epochs": 1}
    trained = small | {"sample": 0, "negative": 1}
    composed = w2v.train(lines, subwords="1-2", buckets=4, **trained)
    theirs = gensim.models.Word2Vec(lines, **small)
    ngrams = gensim.models.FastText(lines, bucket=4, min_n=1, max_n=2, **small)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def saved(name: str, content: Any) -> bytes:
            content.save(folder / name)
            return (folder / name).read_bytes()

        plain = {
            end: saved(f"m.{end}", vectors) for end in ("bin", "txt", "safetensors", "npy", "tsv", "parquet", "arrow")
        }
        vectors.save(folder / "m.db")
        with closing(sqlite3.connect(folder / "m.db", isolation_level=None)) as base:
            base.executescript("pragma page_size = 512; vacuum")  # less than LARGEST in all
        vectors.save(folder / "m.model2vec")
        table.write(folder / "int8.safetensors", in_storage(table.read(folder / "m.safetensors"), "int8"))
        (folder / "text").write_bytes(text)
        states = {}
        for loss, storage in (("ns", "float32"), ("class", "bf16")):
            w2v.train(folder / "text", loss=loss, storage=storage, checkpoint=folder / loss, **trained)
            states[loss] = checkpoint.latest(folder / loss).path.read_bytes()
        read_corpus(Corpus(folder / "text"), ReadingOptions(cache=folder)).close()
        return {
            "binary": {"plain": plain["bin"], "gzip": gzip.compress(plain["bin"])},
            "text": {
                "plain": plain["txt"],
                "bare": plain["txt"].partition(b"\n")[2],
                "gzip": gzip.compress(plain["txt"]),
            },
            "native": {
                "m.safetensors": plain["safetensors"],
                "int8.safetensors": (folder / "int8.safetensors").read_bytes(),
                "model.safetensors": saved("model.safetensors", w2v.train(lines, **trained)),
                "hs.safetensors": saved("hs.safetensors", w2v.train(lines, loss="hs", storage="bf16", **trained)),
                "ngrams.safetensors": saved("ngrams.safetensors", composed),
            },
            "fasttext": {"plain": saved("m.ft.bin", composed)},
            "checkpoint": states,
            "vocabulary": {
                "plain": "</s> 2\nthe 9\nköln 3\na 3\n".encode(),
                "unsorted": b"a 1\r\n\nb\t9223372036854775806\n",
            },
            "questions": {"plain": b": capital\na b the a\nb a the b\n\n: gram1\na b a b\n"},
            "pairs": {"plain": b"# pairs\na b 1.5\nthe\ta\t-3e2\n"},
            "tree": {"plain": b"the 0\na 10\nb 110\nk\xc3\xb6ln 111\n"},
            "config": {"plain": b'corpus = ["a", "b"]\noutput = "m.bin"\nepochs = 3\nloss = "hs"\ntree = "x"\n'},
            "phrases": {"plain": saved("phrases", Phrases(lines, min_count=1, threshold=0.1))},
            "gensim": {"plain": saved("gensim", Word2Vec(lines, **small))},
            "pickle": {
                f"{kind}-{protocol}": pickle.dumps(one, protocol)
                for kind, one in (("model", theirs), ("kv", theirs.wv), ("ngrams", ngrams), ("ngrams-kv", ngrams.wv))
                for protocol in (2, 4)
            },
            "numpy": {"plain": plain["npy"]},
            "projector": {"plain": plain["tsv"]},
            "sqlite": {"plain": (folder / "m.db").read_bytes()},
            "arrow": {end: plain[end] for end in ("parquet", "arrow")},
            "static": {"tokenizer": (folder / "m.model2vec" / "tokenizer.json").read_bytes()},
            "corpus": {
                "plain": text,
                "gzip": gzip.compress(text),
                "bzip2": bz2.compress(text),
                "xz": lzma.compress(text),
                "zstandard": zstandard.compress(text),
            },
            "ids": {"plain": next(folder.glob("*.w2v-ids")).read_bytes()},
        }


def unchecked(arrays: object, settings: object) -> str:
    """In place of the checksum of a checkpoint, which mutation would never meet."""
    return ""


def loaders() -> dict[str, Callable[[Path], object]]:
    """What is done with a file, by loader. Whatever the file, they may raise W2VError only."""
    from w2v.cli import info
    from w2v.errors import W2VError
    from w2v.formats import npy, tsv
    from w2v.gensim.models.phrases import Phrases
    from w2v.gensim.models.word2vec import Word2Vec
    from w2v.losses import hierarchical_softmax
    from w2v.text import corpus, idstore
    from w2v.text.vocabulary import Vocabulary
    from w2v.training import checkpoint
    from w2v.training.config import read_options
    from w2v.training.model import Model
    from w2v.vectors import benchmarks
    from w2v.vectors.keyed import KeyedVectors, load

    checkpoint.checksum = unchecked

    known = KeyedVectors(["a", "b", "the"], np.eye(3, dtype=np.float32))
    vocabulary = Vocabulary(["the", "a", "b", "köln"], [4, 3, 2, 1])

    def model(path: Path) -> None:
        loaded = load(path)
        assert np.isfinite(loaded.vectors).all()
        assert len(set(loaded.index_to_key)) == len(loaded)
        info.model(path, loaded)
        if loaded.ngrams:
            assert np.isfinite(loaded.get_mean_vector(["unknown"], pre_normalize=False)).all()

    def native(path: Path) -> None:
        try:
            model(path)
        except W2VError:
            mapped = load(path, mmap=True)  # less is checked: it must do no harm to use it
            mapped.encode(["the köln unknown"], "mean")
            mapped.save(path.with_name("copy.bin"), force=True)
        Model.load(path)

    def beside(path: Path, end: str, read: Callable[..., object]) -> None:
        path.with_suffix(end).write_text("the\nköln\na\nb\n", "utf-8")
        read(path, "strict")

    def folder(path: Path) -> None:
        there = path.with_name("m.model2vec")
        if not there.exists():
            known.save(there)
        (there / "tokenizer.json").write_bytes(path.read_bytes())
        model(there)

    def text(path: Path) -> None:
        with idstore.read_corpus(corpus.Corpus(path), idstore.ReadingOptions(errors="replace")) as store:
            vocabulary = Vocabulary.from_store(store, 1)
            assert int(store.counts.sum()) == len(store.ids)
            assert store.remap(vocabulary.words).max() == len(vocabulary) - 1
        idstore.read_corpus(corpus.Corpus(path))

    def ids(path: Path) -> None:
        try:
            with path.open("rb") as file:
                store = idstore.IdStore(file, reused=True)
        except (OSError, ValueError, TypeError, LookupError, RecursionError):  # which read_corpus takes for none
            return
        Vocabulary.from_store(store, 1)

    return {
        "binary": model,
        "text": model,
        "native": native,
        "fasttext": native,
        "checkpoint": checkpoint.read,
        "vocabulary": Vocabulary.load,
        "questions": lambda path: benchmarks.analogies(known, path),
        "pairs": lambda path: benchmarks.word_pairs(known, path),
        "tree": lambda path: hierarchical_softmax.tree_of(vocabulary, str(path)),
        "config": read_options,
        "phrases": lambda path: without_gensims_errors(Phrases.load, path),
        "pickle": native,
        "numpy": lambda path: beside(path, npy.WORDS, npy.read),
        "projector": lambda path: beside(path, tsv.METADATA, tsv.read),
        "sqlite": model,
        "arrow": model,
        "static": folder,
        "gensim": lambda path: without_gensims_errors(Word2Vec.load, path),
        "corpus": text,
        "ids": ids,
    }


def without_gensims_errors(load: Callable[[Path], object], path: Path) -> None:
    """Load a file; gensim's classes raise AttributeError for one of another class, EOFError for one that is cut."""
    with suppress(AttributeError, EOFError):
        load(path)


def part_by_part(data: bytes, most: int, seed: int) -> bytes:
    """A native file with any bytes changed, or with one array or string changed and lengths and offsets made to fit.

    Blind changes seldom get past a header that describes each byte.
    """
    import atheris

    from w2v.formats import native

    chance = random.Random(seed)
    start = 8 + int.from_bytes(data[:8], "little")
    try:
        header = json.loads(data[8:start])
        name = chance.choice([*header, "any bytes"])
        body = b""
        for key, entry in header.items():
            if key == "__metadata__":
                continue
            size = np.dtype(native._DTYPES[entry["dtype"]]).itemsize
            begin, end = entry["data_offsets"]
            part = data[start + begin : start + end]
            if key == name:
                part = atheris.Mutate(part, most)
                columns = entry["shape"][1] if len(entry["shape"]) > 1 else 1
                rows = len(part) // (size * columns)
                entry["shape"][:1] = [rows]
                part = part[: rows * size * columns]
            entry["data_offsets"] = [len(body), len(body) + len(part)]
            body += part
        if name == "__metadata__":
            key = chance.choice([*header[name]])
            header[name][key] = atheris.Mutate(header[name][key].encode(), most).decode("latin-1")
        text = json.dumps(header).encode()
        mutated = len(text).to_bytes(8, "little") + text + body
        return mutated if name != "any bytes" and len(mutated) <= most else atheris.Mutate(data, most)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
        return atheris.Mutate(data, most)


def fuzz(name: str, seconds: int) -> None:
    """Runs in a process of its own, which libFuzzer ends."""
    import atheris

    with atheris.instrument_imports(include=["w2v"]):
        load = loaders()[name]
    from w2v.errors import W2VError
    from w2v.text.decompress import is_compressed, max_unpacked

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    room = Path(tempfile.mkdtemp(prefix="w2v-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    path = room / "file"

    def once(data: bytes) -> None:
        path.write_bytes(data)
        unpacked = max_unpacked(len(data)) if is_compressed(data) else len(data)
        with bounded(2 * unpacked + (64 << 20)):
            try:
                load(path)
            except W2VError as error:
                if "\n" in str(error) or len(str(error)) > 2000:
                    raise AssertionError(f"not one clear line: {error}") from error

    for content in sound()[name].values():  # what the first uses import and keep is not the inputs'
        path.write_bytes(content)
        with suppress(W2VError):  # vectors without a model
            load(path)
    kept = FOLDER / name
    options = [
        f"-max_total_time={seconds}",
        f"-timeout={SECONDS}",
        f"-rss_limit_mb={MEMORY >> 20}",
        "-print_final_stats=1",
    ]
    options += [f"-max_len={LARGEST}", f"-artifact_prefix={FOLDER}/{name}-", "-verbosity=0"]
    mutator = {"custom_mutator": part_by_part} if name in ("native", "checkpoint", "gensim") else {}
    atheris.Setup([sys.argv[0], *options, str(kept)], once, **mutator)
    atheris.Fuzz()


def main() -> None:
    seconds, *names = sys.argv[1:]
    files = sound()
    for name in names or list(files):
        kept = FOLDER / name
        kept.mkdir(parents=True, exist_ok=True)
        for seed, content in files[name].items():
            (kept / f"seed-{seed}").write_bytes(content)
        command = [sys.executable, __file__, "--inside", name, seconds]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=os.environ)
        figures = dict(re.findall(r"stat::(\w+): +(\d+)", done.stderr))
        found = [path.name for path in FOLDER.glob(f"{name}-*")]
        print(
            json.dumps({"loader": name, "seconds": int(seconds), **figures, "code": done.returncode, "found": found}),
            flush=True,
        )
        if done.returncode:
            print(done.stderr[-3000:], file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        fuzz(sys.argv[2], int(sys.argv[3]))
    else:
        main()
