"""How fast do vector files load, compared with `cat file > /dev/null` (warm) and gensim?

    python bench/load.py [FILE.bin] [--repeats 9] [--json FILE]

Without FILE the program writes random vectors of about 1 GB to a temporary folder. It also writes a native copy. First
it checks that w2v loads what was written, and that gensim loads the same; then it times all of them alternately.
"""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from common import alternate, benchmark_parser, report_results, round_ratios, scattered_words, summarise, time_call
from gensim.models import KeyedVectors

import w2v

SHAPE = (830_000, 300)


def main() -> None:
    parser = benchmark_parser(__doc__, repeats=9)
    parser.add_argument("file", nargs="?", type=Path, help="a word2vec binary file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.file or random_file(Path(folder))
        native = Path(folder) / "native.safetensors"
        validate(path, native)
        times = alternate(
            {
                "cat": lambda: time_call(lambda: subprocess.run(["cat", path], stdout=subprocess.DEVNULL, check=True)),
                "w2v, binary": lambda: time_call(lambda: w2v.load(path)),
                "w2v, native": lambda: time_call(lambda: w2v.load(native)),
                "w2v, native memory-mapped": lambda: time_call(lambda: w2v.load(native, mmap=True)),
            },
            options.repeats,
        )
        times["gensim, binary (once)"] = [time_call(lambda: load_with_gensim(path))]
        ratio = summarise(round_ratios(times["w2v, binary"], times["cat"]), goal=3)
        report_results(
            options,
            "Loading",
            f"{path.stat().st_size / 1e9:.2f} GB. Goals: at most 3 times cat; memory-mapped in 0.01 s.",
            seconds={name: summarise(values) for name, values in times.items()},
            ratio={"w2v, binary / cat": ratio},
        )


def random_file(folder: Path) -> Path:
    vectors = np.random.default_rng(1).standard_normal(SHAPE, dtype=np.float32)
    path = folder / "random.bin"
    w2v.KeyedVectors(scattered_words(SHAPE[0]), vectors).save(path)
    assert np.array_equal(w2v.load(path).vectors, vectors), "the loaded vectors differ from those written"
    return path


def validate(path: Path, native: Path) -> None:
    """Write the native copy; check that gensim and the copy give the same words and vectors as `path`."""
    expected = w2v.load(path)
    expected.save(native)
    for other in (load_with_gensim(path), w2v.load(native), w2v.load(native, mmap=True)):
        assert other.index_to_key == expected.index_to_key, "the words differ"
        assert np.array_equal(other.vectors, expected.vectors), "the vectors differ"


def load_with_gensim(path: Path) -> Any:
    return KeyedVectors.load_word2vec_format(str(path), binary=True)


if __name__ == "__main__":
    main()
