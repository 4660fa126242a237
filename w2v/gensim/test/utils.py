"""gensim.test.utils: the text and the paths of gensim's examples."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# The index terms of nine titles, of Deerwester et al. 1990, "Indexing by latent semantic analysis", table 2.
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
    """The path of a file among the test data of gensim, if it is installed. Raises FileNotFoundError if not."""
    found = (Path(folder) / "gensim" / "test" / "test_data" / fname for folder in sys.path)
    path = next((path for path in found if path.exists()), None)
    if path is None:
        raise FileNotFoundError(f"{fname}: gensim's test data come with gensim alone: pip install gensim")
    return str(path)


def get_tmpfile(suffix: str) -> str:
    """The path of a file of this name in a new temporary folder."""
    return str(Path(tempfile.mkdtemp()) / suffix)


@contextmanager
def temporary_file(name: str = "") -> Iterator[str]:
    """The path of a file of this name in a temporary folder, which lasts as long as a `with` block."""
    with tempfile.TemporaryDirectory() as folder:
        yield str(Path(folder) / name)
