"""Settings in files: TOML, or those stored in a model, read by `w2v train --config` and written by --save-config."""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from w2v.errors import SettingsError, W2VError, one_line
from w2v.formats import table
from w2v.losses.hierarchical_softmax import TREES
from w2v.losses.registry import OWN, Settings, joined
from w2v.options import checked_value, options_of, refuse_unknown
from w2v.settings import RENAMED
from w2v.system.files import PathLike, atomic_write, errors_named
from w2v.text.idstore import ReadingOptions
from w2v.text.normalise import TextOptions
from w2v.training.model import WHOLE_MODEL

MODEL_SUFFIX = ".safetensors"
MAX_BYTES = 1 << 20  # of a TOML file
KINDS = (Settings, ReadingOptions)


@dataclass(frozen=True)
class Config:
    """The settings of a run in a file. `options` are fields of Settings and ReadingOptions, by name.

    `phrases` is a path of a file of phrases, True to find phrases in the corpus, or False.
    """

    corpus: tuple[str, ...] = ()
    output: Path | None = None
    options: dict[str, Any] = field(default_factory=dict)
    phrases: bool | str = False

    @property
    def settings(self) -> dict[str, Any]:
        return {name: value for name, value in self.options.items() if name in Settings.names()}

    @classmethod
    def load(cls, path: Path) -> Config:
        """Read a TOML file, or the settings that a .safetensors model was trained with.

        Raises SettingsError, naming the file, for an unknown name and for a value of the wrong type or out of range;
        W2VError for a file that cannot be read.
        """
        options = {name: kind for kind in KINDS for name in options_of(kind)}
        if path.suffix == MODEL_SUFFIX:
            # A model may be a stranger's, so its paths are not used.
            values, names = _of_model(path), [*Settings.names(), *options_of(TextOptions)]
        else:
            values, names = _of_toml(path), [*options, "corpus", "output", "phrases"]
        try:
            refuse_unknown(values, names, RENAMED)
            corpus, output = values.pop("corpus", []), values.pop("output", None)
            corpus = [corpus] if isinstance(corpus, str) else corpus
            if not isinstance(corpus, list) or not all(isinstance(each, str) and each for each in corpus):
                raise SettingsError(f"corpus {corpus!r}: it must be a path or a list of paths")
            if output is not None and (not isinstance(output, str) or not output):
                raise SettingsError(f"output {output!r}: it must be a path")
            phrases = values.pop("phrases", False)
            if not isinstance(phrases, bool | str) or phrases == "":
                raise SettingsError(f"phrases {phrases!r}: it must be true, or a path")
            checked = {name: checked_value(options[name], name, joined(name, value)) for name, value in values.items()}
            if path.suffix == MODEL_SUFFIX:
                checked = _open_to_change(checked)
        except SettingsError as error:
            raise SettingsError(f"{path}: {one_line(error)}") from error
        return cls(tuple(corpus), Path(output) if output else None, checked, phrases)

    def save(self, path: PathLike, *, force: bool = False) -> None:
        """Write a TOML file for `load`. Raises W2VError if it cannot be written, or exists and `force` is false."""
        values = {"corpus": list(self.corpus), "output": None if self.output is None else str(self.output)}
        values |= self.options | {"phrases": self.phrases or None}
        with atomic_write(path, force) as file:
            for name, value in values.items():
                if value is not None:
                    file.write(_line(path, name, value))


def _of_toml(path: Path) -> dict[str, Any]:
    with errors_named(path), path.open("rb") as file:
        text = file.read(MAX_BYTES + 1)
    try:
        if len(text) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
        return tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:  # neither UTF-8 nor TOML
        raise W2VError(f"{path} is not a TOML file of settings: {one_line(error)}") from error


def _of_model(path: Path) -> dict[str, Any]:
    header = table.read(path, mmap=True).header
    if header.settings is None:
        raise W2VError(f"{path}: it has no settings: train with -o model.safetensors, which {WHOLE_MODEL}")
    values = dict(header.settings)
    if values.get("loss") == OWN or values.get("objective") is not None:
        raise SettingsError(f"{path}: its loss is your own, and model files run no code: write a TOML file of settings")
    if values.get("tree") not in (None, *TREES) or values.get("tree_vectors") is not None:
        raise SettingsError(
            f"{path}: its tree was made from a file, and paths in models are not used: write a TOML file of settings"
        )
    values |= asdict(header.text)
    return {name: value for name, value in values.items() if value is not None}


def _open_to_change(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a model without the values that training computed: other options given may change these."""
    names = options.keys() & {*Settings.names()}
    settings = Settings(**{name: options[name] for name in names}).left_open()
    others = {name: value for name, value in options.items() if name not in names}
    return replace(settings, workers=None).saved() | others


def _line(path: PathLike, name: str, value: Any) -> bytes:
    try:
        return f"{name} = {_toml(value)}\n".encode()
    except UnicodeEncodeError:  # a file name
        raise W2VError(f"cannot write {path}: {name} is not UTF-8, which TOML requires") from None


def _toml(value: Any) -> str:
    """A value in TOML, which is that of JSON except for the character DEL."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
