"""How fast do vector files load? Against `cat file > /dev/null` (warm) and gensim.

    python bench/load.py [FILE.bin] [--repeats 9] [--json FILE]

Without FILE a random one of about 1 GB is written to a temporary folder, and a native copy too. What is loaded is
first compared with what was written and with what gensim loads; then all run alternately.
"""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from common import alternate, arguments, finish, quotients, seconds, spread
from gensim.models import KeyedVectors

import w2v

SHAPE = (830_000, 300)


def main() -> None:
    parser = arguments(__doc__, repeats=9)
    parser.add_argument("file", nargs="?", type=Path, help="a word2vec binary file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.file or random_file(Path(folder))
        native = Path(folder) / "native.safetensors"
        validate(path, native)
        times = alternate(
            {
                "cat": lambda: seconds(lambda: subprocess.run(["cat", path], stdout=subprocess.DEVNULL, check=True)),
                "w2v, binary": lambda: seconds(lambda: w2v.load(path)),
                "w2v, native": lambda: seconds(lambda: w2v.load(native)),
                "w2v, native memory-mapped": lambda: seconds(lambda: w2v.load(native, mmap=True)),
            },
            options.repeats,
        )
        times["gensim, binary (once)"] = [seconds(lambda: by_gensim(path))]
        ratio = spread(quotients(times["w2v, binary"], times["cat"]), goal=3)
        finish(
            options,
            "Loading",
            f"{path.stat().st_size / 1e9:.2f} GB. Goals: at most 3 times cat; memory-mapped in 0.01 s.",
            seconds={name: spread(found) for name, found in times.items()},
            ratio={"w2v, binary / cat": ratio},
        )


def random_file(folder: Path) -> Path:
    vectors = np.random.default_rng(1).standard_normal(SHAPE, dtype=np.float32)
    path = folder / "random.bin"
    w2v.KeyedVectors([f"{row * 2654435761 % (1 << 32):x}" for row in range(SHAPE[0])], vectors).save(path)
    assert np.array_equal(w2v.load(path).vectors, vectors), "what is loaded is not what was written"
    return path


def validate(path: Path, native: Path) -> None:
    """Check that gensim loads the same; write the native copy, and check that it holds the same."""
    expected = w2v.load(path)
    expected.save(native)
    for other in (by_gensim(path), w2v.load(native), w2v.load(native, mmap=True)):
        assert other.index_to_key == expected.index_to_key, "other words"
        assert np.array_equal(other.vectors, expected.vectors), "other vectors"


def by_gensim(path: Path) -> Any:
    return KeyedVectors.load_word2vec_format(str(path), binary=True)


if __name__ == "__main__":
    main()
