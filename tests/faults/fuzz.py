"""Coverage-guided fuzzing of every loader: it must load any bytes, or refuse them with one line.

    python tests/faults/fuzz.py SECONDS [LOADER ...]

Without names, all loaders take turns, each in a process with limited memory. An input may take thirty seconds at most.
atheris, the Python interface of libFuzzer, instruments the Python side of the loaders. The compiled side is
instrumented if the build is (see variants.py): with the build `sanitize`, fuzzing also finds memory errors. An input
that breaks a loader is stored in build/fuzz as NAME-crash-*, NAME-oom-* or NAME-timeout-* and shown on standard error.
The other loaders still take their turns, and the exit code is 1. Inputs that reach new code stay in build/fuzz for the
next run.
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
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from w2v._vectors.encode import encode

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.faults.fasttext_classifier import File as ClassifierFile  # noqa: E402
from tests.faults.peak import bounded  # noqa: E402

FOLDER = Path("build/fuzz")
MEMORY_LIMIT = 1 << 30  # bytes of memory of the process that fuzzes a loader
TIME_LIMIT = 30  # seconds for an input
MAX_INPUT = 4096  # bytes
# For each loader, the format of w2v._formats.registry that it reads. Formats that a library reads are not fuzzed.
FORMATS = {
    "native": "native",
    "fasttext": "fasttext",
    "pickle": "gensim",
    "numpy": "numpy",
    "projector": "projector",
    "static": "static embeddings",
    "binary": "word2vec binary",
    "glove": "glove",
    "text": "word2vec text",
}
# For each loader of vectors in several files: the path to load, and the file that fuzzing replaces.
FILES = {
    "numpy": ("m.npy", "m.npy"),
    "numpy-words": ("m.npy", "m.words.txt"),
    "projector": ("m.tsv", "m.tsv"),
    "projector-words": ("m.tsv", "m.metadata.tsv"),
    "static": ("m.model2vec", "m.model2vec/tokenizer.json"),
    "static-matrix": ("m.model2vec", "m.model2vec/model.safetensors"),
}
NATIVE = ("native", "classifier", "checkpoint", "gensim", "static-matrix")  # the loaders of safetensors files
WORDS = ["the", "köln", "a", "b"]


def seed_files() -> dict[str, dict[str, bytes]]:
    """Return the valid files that fuzzing mutates, by loader and name."""
    import gensim

    import w2v
    from w2v._formats import registry
    from w2v._text.corpus import Corpus
    from w2v._text.idstore import ReadingOptions, read_corpus
    from w2v._training import checkpoint, checkpoint_folder
    from w2v._vectors.keyed import KeyedVectors
    from w2v._vectors.reduce import change_storage
    from w2v.gensim.models.phrases import Phrases
    from w2v.gensim.models.word2vec import Word2Vec

    checkpoint.checksum = empty_checksum
    vectors = KeyedVectors(WORDS, np.arange(12, dtype=np.float32).reshape(4, 3) - 5.5)
    text, lines = "the köln the a\nb the a b\n".encode() * 3, [["a", "b", "c"]] * 9
    small: dict[str, Any] = {"min_count": 1, "vector_size": 2, "epochs": 1}
    training = small | {"sample": 0, "negative": 1}
    labels = ["x", "y z", "x"]
    classifiers = {
        "direct": w2v.train_classifier(lines[:3], labels, subwords="1-2", buckets=9),
        "hs": w2v.train_classifier(lines[:3], labels, loss="hs", vector_size=2, epochs=1, tokenize="words"),
    }
    subword_model = w2v.train(lines, subwords="1-2", buckets=4, **training)
    word2vec = gensim.models.Word2Vec(lines, **small)
    fasttext = gensim.models.FastText(lines, bucket=4, min_n=1, max_n=2, **small)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def save(name: str, content: Any) -> bytes:
            """Save a model or vectors; return the bytes of the file."""
            content.save(folder / name)
            return (folder / name).read_bytes()

        suffixes = ("bin", "txt", "glove.txt", "safetensors")
        plain = {suffix: save(f"m.{suffix}", vectors) for suffix in suffixes}
        for vectors_name in {vectors_name for vectors_name, _ in FILES.values()}:
            vectors.save(folder / vectors_name)
        parts = {name: {"plain": (folder / part).read_bytes()} for name, (_, part) in FILES.items()}
        registry.write(folder / "int8.safetensors", change_storage(registry.read(folder / "m.safetensors"), "int8"))
        (folder / "text").write_bytes(text)
        checkpoints = {}

        for loss, storage in (("ns", "float32"), ("class", "bf16")):
            w2v.train(folder / "text", loss=loss, storage=storage, checkpoint=folder / loss, **training)
            checkpoints[loss] = checkpoint_folder.latest(folder / loss).path.read_bytes()
        read_corpus(Corpus(folder / "text"), ReadingOptions(cache=folder)).close()
        return {
            "binary": {"plain": plain["bin"], "gzip": gzip.compress(plain["bin"])},
            "text": {"plain": plain["txt"], "gzip": gzip.compress(plain["txt"])},
            "glove": {"plain": plain["glove.txt"], "gzip": gzip.compress(plain["glove.txt"])},
            "native": {
                "m.safetensors": plain["safetensors"],
                "int8.safetensors": (folder / "int8.safetensors").read_bytes(),
                "model.safetensors": save("model.safetensors", w2v.train(lines, **training)),
                "hs.safetensors": save("hs.safetensors", w2v.train(lines, loss="hs", storage="bf16", **training)),
                "ngrams.safetensors": save("ngrams.safetensors", subword_model),
            },
            "classifier": {name: save(f"{name}.labels.safetensors", model) for name, model in classifiers.items()},
            "fasttext": {"plain": save("m.ft.bin", subword_model)},
            "fasttext-classifier": {
                "hs": ClassifierFile(loss=1, size=2, buckets=7).data(),
                "pruned": ClassifierFile(size=2, buckets=7, kept=[3, 1], part_size=2).data(),
            },
            "checkpoint": checkpoints,
            "vocabulary": {
                "plain": "</s> 2\nthe 9\nköln 3\na 3\n".encode(),
                "unsorted": b"a 1\r\n\nb\t9223372036854775806\n",
            },
            "questions": {"plain": b": capital\na b the a\nb a the b\n\n: gram1\na b a b\n"},
            "pairs": {"plain": b"# pairs\na b 1.5\nthe\ta\t-3e2\n"},
            "tree": {"plain": b"the 0\na 10\nb 110\nk\xc3\xb6ln 111\n"},
            "config": {"plain": b'corpus = ["a", "b"]\noutput = "m.bin"\nepochs = 3\nloss = "hs"\ntree = "x"\n'},
            "phrases": {"plain": save("phrases", Phrases(lines, min_count=1, threshold=0.1))},
            "gensim": {"plain": save("gensim", Word2Vec(lines, **small))},
            "pickle": {
                f"{kind}-{protocol}": pickle.dumps(content, protocol)
                for kind, content in (
                    ("model", word2vec),
                    ("kv", word2vec.wv),
                    ("ngrams", fasttext),
                    ("ngrams-kv", fasttext.wv),
                )
                for protocol in (2, 4)
            },
            **parts,
            "sessions": {"json": '{"t": ["köln", "a b", null, 5]}\n{"t": null}\n{"t": [7, []]}\n'.encode()},
            "rows": {
                "json": '{"i": "köln", "s": 1, "o": 2.5}\n{"i": "a", "s": 1, "o": null}\n'.encode(),
                "csv": b"i,s,o\n7,a,2024-01-02\n8,a,2024-01-01T10:00:00Z\n,b,\n",
            },
            "columns": {
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
            "graph": {
                "edges": "# edges\na b 1\nköln\ta\t2.5e-1\n".encode(),
                "gzip": gzip.compress(b"a,b,1\nb,c,2\n"),
                "quoted": b'x,y,weight\n"a ""b""",c,2\n',
                "attributes": b"a b {'weight': 2}\n",
            },
            "ids": {"plain": next(folder.glob("*.w2v-ids")).read_bytes()},
        }


def empty_checksum(arrays: object, settings: object) -> str:
    """Replace the checksum of a checkpoint, which mutated files would never pass."""
    return ""


def loaders() -> dict[str, Callable[[Path], object]]:
    """Return a function for each loader, which reads a file. For any file it may raise only W2VError."""
    from w2v._cli import info
    from w2v._errors import W2VError
    from w2v._evaluation.analogies import analogies
    from w2v._evaluation.similarity import word_pairs
    from w2v._graph import readers
    from w2v._graph.walks import WalkOptions, walk_blocks
    from w2v._losses import hierarchical_softmax
    from w2v._text import corpus, idstore
    from w2v._text.vocabulary import Vocabulary
    from w2v._training import checkpoint
    from w2v._training.classifier import Classifier
    from w2v._training.config import read_options
    from w2v._training.model import Model
    from w2v._vectors.keyed import KeyedVectors, load
    from w2v.gensim.models.phrases import Phrases
    from w2v.gensim.models.word2vec import Word2Vec

    checkpoint.checksum = empty_checksum

    known = KeyedVectors(WORDS, np.eye(4, dtype=np.float32))
    vocabulary = Vocabulary(["the", "a", "b", "köln"], [4, 3, 2, 1])

    def read_vectors(path: Path) -> None:
        loaded = load(path)
        assert np.isfinite(loaded.vectors).all()
        assert len(set(loaded.index_to_key)) == len(loaded)
        info.model(path, loaded)
        if loaded.ngrams:
            assert np.isfinite(loaded.get_mean_vector(["unknown"], pre_normalize=False)).all()

    def read_model(path: Path) -> None:
        try:
            read_vectors(path)
        except W2VError:
            mapped = load(path, mmap=True)  # mapped files are checked less, so using them must be harmless, too
            encode(mapped, ["the köln unknown"], "mean")
            mapped.save(path.with_name("copy.bin"), force=True)
        Model.load(path)

    def reader_of_files(vectors_name: str, replaced: str) -> Callable[[Path], None]:
        """Return a function that replaces one of several files of vectors, and reads the vectors."""

        def read(path: Path) -> None:
            if not path.with_name(vectors_name).exists():
                known.save(path.with_name(vectors_name))
            shutil.copyfile(path, path.parent / replaced)
            read_vectors(path.with_name(vectors_name))

        return read

    def read_classifier(path: Path) -> None:
        for mmap in (False, True):
            model = Classifier.load(path, mmap)
            probabilities = model.predict_proba(["the a c", "unknown", ""])
            assert probabilities.shape == (3, len(model.labels))

    def read_column(path: Path) -> None:
        for block in corpus.Corpus(path).blocks(column="t"):
            assert not isinstance(block, corpus.TextBlock) or block.text

    def read_items(path: Path, **columns: str) -> None:
        options = idstore.ReadingOptions(errors="replace", **columns)
        with idstore.read_corpus(corpus.Corpus(path), options) as store:
            assert int(store.counts.sum()) == len(store.ids)
            words = Vocabulary.from_store(store, 1).words
            if store.key_type == "int":
                words.to_ints()

    def read_text(path: Path) -> None:
        with idstore.read_corpus(corpus.Corpus(path), idstore.ReadingOptions(errors="replace")) as store:
            vocabulary = Vocabulary.from_store(store, 1)
            assert int(store.counts.sum()) == len(store.ids)
            assert store.remap(vocabulary.words).max() == len(vocabulary) - 1
        idstore.read_corpus(corpus.Corpus(path))

    def read_edges(path: Path) -> None:
        for weighted in (False, True):
            with suppress(W2VError):  # otherwise a file without weights would never be read without them
                graph = readers.read_graph(corpus.Corpus(path), readers.GraphOptions(weighted=weighted))
                readers.check_edges(graph, "the graph")  # as before each walk: a graph without edges is refused
                options = WalkOptions(walk_length=5, num_walks=1, p=0.5, q=2)
                ids = np.concatenate([*walk_blocks(graph, options)])
                assert int(ids.max()) < graph.nodes + 2
                assert np.count_nonzero(ids == 0) == graph.nodes
        readers.read_graph(corpus.Corpus(path))

    def read_ids(path: Path) -> None:
        try:
            with path.open("rb") as file:
                store = idstore.IdStore(file, reused=True)
        except (OSError, ValueError, TypeError, LookupError, RecursionError):  # with these, read_corpus ignores a cache
            return
        Vocabulary.from_store(store, 1)

    return {
        **dict.fromkeys(("binary", "text", "glove"), read_vectors),
        **{name: reader_of_files(*files) for name, files in FILES.items()},
        "native": read_model,
        "classifier": read_classifier,
        "fasttext": read_model,
        "fasttext-classifier": read_classifier,
        "checkpoint": checkpoint.read_checkpoint,
        "vocabulary": Vocabulary.load,
        "questions": lambda path: analogies(known, path),
        "pairs": lambda path: word_pairs(known, path),
        "tree": lambda path: hierarchical_softmax.build_tree(vocabulary, str(path)),
        "config": read_options,
        "phrases": lambda path: load_with_gensim_errors(Phrases.load, path),
        "pickle": read_model,
        "gensim": lambda path: load_with_gensim_errors(Word2Vec.load, path),
        "corpus": read_text,
        "columns": read_column,
        "graph": read_edges,
        "sessions": partial(read_items, column="t"),
        "rows": partial(read_items, item="i", session="s", order="o"),
        "ids": read_ids,
    }


def load_with_gensim_errors(load: Callable[[Path], object], path: Path) -> None:
    """Load a file as gensim does: AttributeError for another class and EOFError for a cut file are allowed."""
    with suppress(AttributeError, EOFError):
        load(path)


def mutate_native(data: bytes, max_size: int, seed: int) -> bytes:
    """Mutate any bytes of a native file, or one array or string, adjusting lengths and offsets in the header.

    Blind mutations seldom get past the header, because it describes each byte.
    """
    import atheris

    from w2v._formats import native

    generator = random.Random(seed)
    start = 8 + int.from_bytes(data[:8], "little")
    try:
        header = json.loads(data[8:start])
        name = generator.choice([*header, "any bytes"])
        body = b""
        for key, entry in header.items():
            if key == "__metadata__":
                continue
            size = np.dtype(native._DTYPES[entry["dtype"]]).itemsize
            begin, end = entry["data_offsets"]
            part = data[start + begin : start + end]
            if key == name:
                part = atheris.Mutate(part, max_size)
                columns = entry["shape"][1] if len(entry["shape"]) > 1 else 1
                rows = len(part) // (size * columns)
                entry["shape"][:1] = [rows]
                part = part[: rows * size * columns]
            entry["data_offsets"] = [len(body), len(body) + len(part)]
            body += part
        if name == "__metadata__":
            key = generator.choice([*header[name]])
            header[name][key] = atheris.Mutate(header[name][key].encode(), max_size).decode("latin-1")
        text = json.dumps(header).encode()
        mutated = len(text).to_bytes(8, "little") + text + body
        return mutated if name != "any bytes" and len(mutated) <= max_size else atheris.Mutate(data, max_size)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
        return atheris.Mutate(data, max_size)


def fuzz(name: str, load: Callable[[Path], object], contents: dict[str, bytes], seconds: int) -> None:
    """Fuzz a loader. Call this in a separate process, because libFuzzer ends it."""
    import atheris

    from w2v._errors import W2VError
    from w2v._text.decompress import is_compressed, max_unpacked

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    folder = Path(tempfile.mkdtemp(prefix="w2v-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    path = folder / "file"

    def load_bytes(data: bytes) -> None:
        path.write_bytes(data)
        unpacked = max_unpacked(len(data)) if is_compressed(data) else len(data)
        with bounded(unpacked, 16 if name == "pickle" else 5):
            try:
                load(path)
            except W2VError as error:
                if "\n" in str(error) or len(str(error)) > 2000:
                    raise AssertionError(f"not one clear line: {error}") from error

    # The memory of first uses (imports, caches) is not counted for an input. No seed file is a table for pyarrow, since
    # damaged ones would test pyarrow, but four bytes of a mutated file are enough to import it.
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401

    for content in contents.values():
        path.write_bytes(content)
        with suppress(W2VError):  # vectors without a model
            load(path)
    options = [
        f"-max_total_time={seconds}",
        f"-seed={os.environ.get('FAULTS_SEED', '0')}",  # 0: a different one each time
        f"-timeout={TIME_LIMIT}",
        f"-rss_limit_mb={MEMORY_LIMIT >> 20}",
        "-print_final_stats=1",
    ]
    options += [f"-max_len={MAX_INPUT}", f"-artifact_prefix={FOLDER}/{name}-", "-verbosity=0"]
    mutator = {"custom_mutator": mutate_native} if name in NATIVE else {}
    atheris.Setup([sys.argv[0], *options, str(FOLDER / name)], load_bytes, **mutator)
    atheris.Fuzz()


def fuzz_in_child(
    name: str, load: Callable[[Path], object], contents: dict[str, bytes], seconds: int
) -> dict[str, Any]:
    """Fuzz a loader in a child process; return its figures, and show failures on standard error."""
    (FOLDER / name).mkdir(parents=True, exist_ok=True)
    for seed, content in contents.items():
        (FOLDER / name / f"seed-{seed}").write_bytes(content)
    before = {*FOLDER.glob(f"{name}-*")}
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        child = os.fork()
        if not child:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            fuzz(name, load, contents, seconds)  # stores failing inputs and ends the process
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        log.seek(0)
        output = log.read()
    failing_inputs = sorted(path.name for path in {*FOLDER.glob(f"{name}-*")} - before)
    if code:
        print(
            f"fuzzing {name}: exit code {code}, {failing_inputs or 'no input'}:\n{output[-4000:]}",
            file=sys.stderr,
            flush=True,
        )
    figures = dict(re.findall(r"stat::(\w+): +(\d+)", output))
    return {"loader": name, "seconds": seconds, **figures, "code": code, "failing_inputs": failing_inputs}


def main() -> None:
    import atheris

    seconds, *names = sys.argv[1:]
    with atheris.instrument_imports(include=["w2v"]):
        all_loaders = loaders()
    contents = seed_files()
    failed = []
    for name in names or all_loaders:
        figures = fuzz_in_child(name, all_loaders[name], contents[name], int(seconds))
        print(json.dumps(figures), flush=True)
        failed += [name] * bool(figures["code"])
    if failed:
        raise SystemExit(f"loaders that failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
