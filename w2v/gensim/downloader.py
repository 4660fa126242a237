"""gensim.downloader: read files that gensim has downloaded. Only an installed gensim downloads others."""

import json
import os
from pathlib import Path
from typing import Any

from w2v.gensim.fall_through import attributes_of
from w2v.gensim.models.keyedvectors import KeyedVectors
from w2v.gensim.sentences import Text8Corpus

BASE_DIR = base_dir = os.environ.get("GENSIM_DATA_DIR", str(Path("~/gensim-data").expanduser()))


class Dataset(Text8Corpus):
    """The sentences of a text. `fn` is the path of its file."""

    @property
    def fn(self) -> str:
        return str(self.fname)


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
    return Dataset(path) if name == "text8" else KeyedVectors.load_word2vec_format(path)


def info(name: str | None = None, show_only_latest: bool = True, name_only: bool = False) -> dict[str, Any]:
    """Return what gensim's list, information.json in BASE_DIR, says of one or of all texts and vectors.

    Raises:
        FileNotFoundError: gensim has not downloaded the list.
        ValueError: The list does not have this name.
    """
    path = Path(BASE_DIR) / "information.json"
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: download it with gensim: python -m gensim.downloader --info")
    information: dict[str, Any] = json.loads(path.read_text("utf-8"))
    kinds = {kind: information[kind] for kind in ("corpora", "models")}
    if name is not None:
        found = next((entries[name] for entries in kinds.values() if name in entries), None)
        if found is None:
            raise ValueError(f"{name!r} is not in {path}")
        return dict(found)
    if not show_only_latest:
        return information
    if name_only:
        return {kind: list(entries) for kind, entries in kinds.items()}
    return {
        kind: {name: entry for name, entry in entries.items() if entry.get("latest", True)}
        for kind, entries in kinds.items()
    }


__getattr__ = attributes_of(__name__)
