"""gensim.downloader: read files that gensim has downloaded. This package does not download."""

import os
from pathlib import Path
from typing import Any

from w2v.gensim.models.keyedvectors import KeyedVectors
from w2v.gensim.sentences import Text8Corpus

BASE_DIR = base_dir = os.environ.get("GENSIM_DATA_DIR", str(Path("~/gensim-data").expanduser()))


def load(name: str, return_path: bool = False) -> Any:
    """Read the file called `name` in BASE_DIR.

    Returns:
        The vectors; for "text8", the sentences; with `return_path`, only the path of the file.

    Raises:
        FileNotFoundError: gensim has not downloaded the file.
    """
    path = Path(BASE_DIR) / name / f"{name}.gz"
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} does not exist: download it with gensim: python -m gensim.downloader --download {name}"
        )
    if return_path:
        return str(path)
    return Text8Corpus(path) if name == "text8" else KeyedVectors.load_word2vec_format(path)
