"""gensim.test.utils: the sample text and the file paths of gensim's examples."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from w2v.gensim.fall_through import attributes_of

# The index terms of nine titles, from Deerwester et al. 1990, "Indexing by latent semantic analysis", table 2.
common_texts = [
    line.split()
    for line in (
        "human interface computer",
        "survey user computer system response time",
        "eps user interface system",
        "system human system eps",
        "user response time",
        "trees",
        "graph trees",
        "graph minors trees",
        "graph minors survey",
    )
]


def datapath(fname: str) -> str:
    """Return the path of a file of gensim's test data.

    Raises:
        FileNotFoundError: gensim is not installed, or does not have this file.
    """
    candidates = (Path(folder) / "gensim" / "test" / "test_data" / fname for folder in sys.path)
    path = next((path for path in candidates if path.exists()), None)
    if path is None:
        raise FileNotFoundError(f"{fname}: gensim's test data come only with gensim: pip install gensim")
    return str(path)


def get_tmpfile(suffix: str) -> str:
    """Return the path of a file called `suffix` in a new temporary folder."""
    return str(Path(tempfile.mkdtemp()) / suffix)


@contextmanager
def temporary_file(name: str = "") -> Iterator[str]:
    """Yield the path of a file called `name` in a temporary folder, which is removed after the `with` block."""
    with tempfile.TemporaryDirectory() as folder:
        yield str(Path(folder) / name)


__getattr__ = attributes_of(__name__)
