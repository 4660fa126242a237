"""Figures: any word as text in them, and the same bytes each time that they are saved."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from w2v.errors import SettingsError, W2VError, printable
from w2v.files import PathLike, atomic_write

try:
    import matplotlib as mpl
    from matplotlib import font_manager
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text
except ImportError as error:
    raise W2VError("a picture needs matplotlib: pip install 'w2v[plot]'") from error

EXTENSIONS = (".png", ".svg", ".pdf")
DOTS_PER_INCH = 150
MAX_CHARACTERS = 24  # of a word in a picture
MAX_TITLE = 80  # characters of a title
NO_GLYPH = "\N{REPLACEMENT CHARACTER}"
# The metadata of each format that would differ from run to run.
DATES: dict[str, dict[str, None]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
# In the order of use: those of Okabe & Ito (2008), which colour-blind people can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#B8A800", "#555555")


def format_of(path: PathLike) -> str:
    """The format of a picture of this name. Raises SettingsError for an unknown extension."""
    kind = Path(path).suffix.lower()
    if kind not in EXTENSIONS:
        raise SettingsError(f"{path}: unknown extension of a picture: use .png, .svg or .pdf")
    return kind.removeprefix(".")


class Picture(Figure):
    """A figure of matplotlib that notebooks show, and whose files are the same bytes each time."""

    def __init__(self, width: float, height: float) -> None:
        """`width` and `height` are in inches."""
        super().__init__(figsize=(width, height), dpi=DOTS_PER_INCH, layout="constrained")
        self.words = self.labels = 0  # drawn

    def save(self, path: PathLike, *, replace: bool = True) -> None:
        """Write a file, atomically, in the format of the extension.

        Raises SettingsError for an extension that is not one of EXTENSIONS; W2VError where the file cannot be written,
        or exists and `replace` is false.
        """
        kind = format_of(path)
        with atomic_write(path, replace) as file:
            self._write(file, kind)

    def _write(self, file: Any, kind: str) -> None:
        with mpl.rc_context({"svg.hashsalt": "w2v"}), _no_warnings_of_glyphs():
            self.savefig(file, format=kind, dpi=DOTS_PER_INCH, metadata=DATES[kind])

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self._write(file, "png")
        return file.getvalue()


@contextmanager
def _no_warnings_of_glyphs() -> Iterator[None]:
    """Suppress warnings of glyphs that a font has, but that its layout cannot use."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph|Matplotlib currently does not support", UserWarning)
        yield


class Lettering:
    """How arbitrary words are drawn: literally, not as formulas, with the fonts of this machine.

    Long words are cut, control characters are escaped, and characters that no font has become NO_GLYPH.
    """

    def __init__(self, texts: Iterable[str], limit: int = MAX_CHARACTERS) -> None:
        """`texts` are all texts to be drawn; at most `limit` characters of each are shown."""
        self._limit = limit
        characters = sorted({character for text in texts for character in short(text, limit)})
        families, missing = families_for(characters)
        self._table = dict.fromkeys(map(ord, missing), NO_GLYPH)
        self.style: dict[str, Any] = {"family": families, "parse_math": False, "usetex": False}

    def __call__(self, text: str) -> str:
        return short(text, self._limit).translate(self._table)

    def set(self, text: Text, words: str) -> None:
        """Set a text of a figure to these words."""
        text.set(text=self(words), **self.style)


def set_title(axes: Axes, title: str) -> None:
    Lettering([title], MAX_TITLE).set(axes.title, title)


def short(text: str, limit: int) -> str:
    """A text as one printable line of at most `limit` characters."""
    text = printable(text[: limit + 1])
    return text if len(text) <= limit else text[: limit - 1] + "…"


def families_for(characters: Sequence[str]) -> tuple[list[str], list[str]]:
    """The font families that draw these characters, the usual ones first; and the characters that none has."""
    families = list(mpl.rcParams["font.family"])
    missing = _without_glyph(font_manager.findfont(font_manager.FontProperties(family=families)), characters)
    if missing:
        # By family: the first of its regular fonts, in an order that does not depend on how they were found.
        fonts = {font.name: font.fname for font in sorted(_regular_fonts(), key=lambda font: font.fname, reverse=True)}
        lacks = {family: set(_without_glyph(file, missing)) for family, file in sorted(fonts.items())}
        while lacks and missing:
            best = min(lacks, key=lambda family: len(lacks[family].intersection(missing)))
            if len(left := [character for character in missing if character in lacks[best]]) == len(missing):
                break
            families.append(best)
            missing = left
    return families, missing


def _regular_fonts() -> list[font_manager.FontEntry]:
    """All but Last Resort, which has the same sign for all characters of a script."""
    return [
        font
        for font in font_manager.fontManager.ttflist
        if (font.style, font.weight, font.stretch) == ("normal", 400, "normal") and "Last Resort" not in font.name
    ]


def _without_glyph(file: str, characters: Sequence[str]) -> list[str]:
    """The characters that a font cannot draw: all of them if it is a bitmap font or damaged."""
    try:
        font = font_manager.get_font(file)
    except (OSError, RuntimeError):
        return list(characters)
    return [character for character in characters if not (font.scalable and font.get_char_index(ord(character)))]
