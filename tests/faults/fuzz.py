"""Coverage-guided fuzzing of every loader: whatever the bytes, it loads them or says in one line why not.

    python tests/faults/fuzz.py SECONDS [LOADER ...]

Without names, all loaders take their turns, each in a process of its own: of limited memory, where an input may take
thirty seconds. The Python side of the loaders is instrumented (atheris, libFuzzer's Python face); the compiled side is
when the build is (see variants.py: with the build `sanitize`, memory errors in it are found too). What harms a loader
is left in build/fuzz as NAME-crash-*, NAME-oom-* or NAME-timeout-* and shown on standard error; the other loaders still
take their turns, and the exit code is 1. Inputs worth mutating are kept there for the next time.
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
import shutil
import sqlite3
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
# By loader: the format of w2v.formats.table that it reads.
FORMATS = {
    "native": "native",
    "fasttext": "fasttext",
    "pickle": "gensim",
    "parquet": "arrow",
    "arrow": "arrow",
    "sqlite": "sqlite",
    "numpy": "numpy",
    "projector": "projector",
    "static": "static embeddings",
    "spacy": "spacy",
    "binary": "word2vec binary",
    "glove": "glove",
    "text": "word2vec text",
}
# By loader: the name of vectors that are several files, and which of these is replaced.
FILES = {
    "numpy": ("m.npy", "m.npy"),
    "numpy-words": ("m.npy", "m.words.txt"),
    "projector": ("m.tsv", "m.tsv"),
    "projector-words": ("m.tsv", "m.metadata.tsv"),
    "static": ("m.model2vec", "m.model2vec/tokenizer.json"),
    "static-matrix": ("m.model2vec", "m.model2vec/model.safetensors"),
    "spacy": ("m.spacy", "m.spacy/vocab/key2row"),
    "spacy-matrix": ("m.spacy", "m.spacy/vocab/vectors"),
    "spacy-strings": ("m.spacy", "m.spacy/vocab/strings.json"),
    "spacy-settings": ("m.spacy", "m.spacy/vocab/vectors.cfg"),
}
NATIVE = ("native", "checkpoint", "gensim", "static-matrix")  # loaders of safetensors files
WORDS = ["the", "köln", "a", "b"]


def sound() -> dict[str, dict[str, bytes]]:
    """Whole files, by loader and name: what mutation starts from."""
    import gensim
    import pyarrow
    from pyarrow import feather, parquet

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
    vectors = KeyedVectors(WORDS, np.arange(12, dtype=np.float32).reshape(4, 3) - 5.5)
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

        ends = ("bin", "txt", "glove.txt", "safetensors", "parquet", "arrow")
        plain = {end: saved(f"m.{end}", vectors) for end in ends}
        for whole in {whole for whole, _ in FILES.values()}:
            vectors.save(folder / whole)
        parts = {name: {"plain": (folder / part).read_bytes()} for name, (_, part) in FILES.items()}
        texts = pyarrow.table({"t": ["the köln", "a", None] * 2, "n": [1, 2, 3] * 2})
        parquet.write_table(texts, folder / "texts.parquet", compression="zstd")
        dictionary = pyarrow.table({"word": pyarrow.array(WORDS).dictionary_encode(), "vector": [[1.0, 2]] * 4})
        parquet.write_table(dictionary, folder / "dictionary.parquet", compression="gzip")
        feather.write_feather(dictionary, str(folder / "dictionary.arrow"), compression="zstd")
        vectors.save(folder / "m.db")
        with closing(sqlite3.connect(folder / "m.db", isolation_level=None)) as base:
            base.executescript("pragma page_size = 512; vacuum")  # less than LARGEST in all
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
                "gzip": gzip.compress(plain["txt"]),
            },
            "glove": {"plain": plain["glove.txt"], "gzip": gzip.compress(plain["glove.txt"])},
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
            **parts,
            "sqlite": {"plain": (folder / "m.db").read_bytes()},
            "parquet": {"plain": plain["parquet"], "dictionary": (folder / "dictionary.parquet").read_bytes()},
            "arrow": {"plain": plain["arrow"], "dictionary": (folder / "dictionary.arrow").read_bytes()},
            "columns": {
                "parquet": (folder / "texts.parquet").read_bytes(),
                "json": '{"t": "the köln", "n": 1}\n{"n": [{}], "t": null}\n'.encode(),
                "csv": 'n,t\n1,"the ""köln"""\n2,\n'.encode(),
                "tsv": b"t\tn\na\t2\n",
            },
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
    from w2v.evaluation.analogies import analogies
    from w2v.evaluation.similarity import word_pairs
    from w2v.gensim.models.phrases import Phrases
    from w2v.gensim.models.word2vec import Word2Vec
    from w2v.losses import hierarchical_softmax
    from w2v.text import corpus, idstore
    from w2v.text.vocabulary import Vocabulary
    from w2v.training import checkpoint
    from w2v.training.config import read_options
    from w2v.training.model import Model
    from w2v.vectors.keyed import KeyedVectors, load

    checkpoint.checksum = unchecked

    known = KeyedVectors(WORDS, np.eye(4, dtype=np.float32))
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

    def among(whole: str, part: str) -> Callable[[Path], None]:
        """Reads vectors that are several files, one of which is replaced."""

        def read(path: Path) -> None:
            if not path.with_name(whole).exists():
                known.save(path.with_name(whole))
            shutil.copyfile(path, path.parent / part)
            model(path.with_name(whole))

        return read

    def column(path: Path) -> None:
        for block in corpus.Corpus(path).blocks(column="t"):
            assert block.text

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
        **dict.fromkeys(("binary", "text", "glove", "sqlite", "parquet", "arrow"), model),
        **{name: among(*files) for name, files in FILES.items()},
        "native": native,
        "fasttext": native,
        "checkpoint": checkpoint.read,
        "vocabulary": Vocabulary.load,
        "questions": lambda path: analogies(known, path),
        "pairs": lambda path: word_pairs(known, path),
        "tree": lambda path: hierarchical_softmax.build_tree(vocabulary, str(path)),
        "config": read_options,
        "phrases": lambda path: without_gensims_errors(Phrases.load, path),
        "pickle": native,
        "gensim": lambda path: without_gensims_errors(Word2Vec.load, path),
        "corpus": text,
        "columns": column,
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


def fuzz(name: str, load: Callable[[Path], object], contents: dict[str, bytes], seconds: int) -> None:
    """Runs in a process of its own, which libFuzzer ends."""
    import atheris

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

    for content in contents.values():  # what the first uses import and keep is not the inputs'
        path.write_bytes(content)
        with suppress(W2VError):  # vectors without a model
            load(path)
    options = [
        f"-max_total_time={seconds}",
        f"-seed={os.environ.get('FAULTS_SEED', '0')}",  # 0: another each time
        f"-timeout={SECONDS}",
        f"-rss_limit_mb={MEMORY >> 20}",
        "-print_final_stats=1",
    ]
    options += [f"-max_len={LARGEST}", f"-artifact_prefix={FOLDER}/{name}-", "-verbosity=0"]
    mutator = {"custom_mutator": part_by_part} if name in NATIVE else {}
    atheris.Setup([sys.argv[0], *options, str(FOLDER / name)], once, **mutator)
    atheris.Fuzz()


def fuzzed(name: str, load: Callable[[Path], object], contents: dict[str, bytes], seconds: int) -> dict[str, Any]:
    """The figures of fuzzing a loader in a process of its own. What is found is shown on standard error."""
    (FOLDER / name).mkdir(parents=True, exist_ok=True)
    for seed, content in contents.items():
        (FOLDER / name / f"seed-{seed}").write_bytes(content)
    before = {*FOLDER.glob(f"{name}-*")}
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        child = os.fork()
        if not child:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            fuzz(name, load, contents, seconds)  # ends the process, after it has kept what it found
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        log.seek(0)
        said = log.read()
    found = sorted(path.name for path in {*FOLDER.glob(f"{name}-*")} - before)
    if code:
        print(f"fuzzing {name}: exit code {code}, {found or 'no input'}:\n{said[-4000:]}", file=sys.stderr, flush=True)
    figures = dict(re.findall(r"stat::(\w+): +(\d+)", said))
    return {"loader": name, "seconds": seconds, **figures, "code": code, "found": found}


def main() -> None:
    import atheris

    seconds, *names = sys.argv[1:]
    with atheris.instrument_imports(include=["w2v"]):
        known = loaders()
    contents = sound()
    harmed = []
    for name in names or known:
        figures = fuzzed(name, known[name], contents[name], int(seconds))
        print(json.dumps(figures), flush=True)
        harmed += [name] * bool(figures["code"])
    if harmed:
        raise SystemExit(f"harmed: {', '.join(harmed)}")


if __name__ == "__main__":
    main()
