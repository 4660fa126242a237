"""Figures: any word as text in them, and the same bytes each time that they are saved."""

from __future__ import annotations

import io
import logging
import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v.errors import SettingsError, W2VError, counted, install, printable
from w2v.system.files import PathLike, atomic_write

try:
    import matplotlib as mpl
    from matplotlib import font_manager
    from matplotlib.axes import Axes
    from matplotlib.colors import to_rgb
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.text import Text
except ImportError as error:
    raise W2VError(f"a picture needs matplotlib: {install('plot')}") from error

EXTENSIONS = (".png", ".svg", ".pdf")
DOTS_PER_INCH = 150
SQUARE_INCHES = 0.45  # of a map, for each word
WIDTHS = (5, 16)  # of a map, in inches
HEIGHTS = (0.6, 1.15)  # of a map, as shares of its width
MAX_LEGEND = 30  # groups named
MAX_CHARACTERS = 24  # of a word in a picture
MAX_NAME, MAX_TITLE = 40, 80  # characters of the name of a group, and of a title
NO_GLYPH = "\N{REPLACEMENT CHARACTER}"
USUAL_WEIGHT = 400  # of a font
# The metadata of each format that would differ from run to run.
DATES: dict[str, dict[str, None]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
# In the order of use: those of Okabe & Ito (2008), which colour-blind people can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#B8A800", "#555555")

log = logging.getLogger("w2v")


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

    def save(self, path: PathLike, *, force: bool = False) -> None:
        """Write a file, atomically, in the format of the extension.

        Raises SettingsError for an extension that is not one of EXTENSIONS; W2VError where the file cannot be written,
        or exists and `force` is false.
        """
        kind = format_of(path)
        with atomic_write(path, force) as file:
            self._write(file, kind)

    def _write(self, file: Any, kind: str) -> None:
        with mpl.rc_context({"svg.hashsalt": "w2v"}), warnings.catch_warnings():
            # Of glyphs that a font has, but that its layout cannot use.
            warnings.filterwarnings("ignore", "Glyph|Matplotlib currently does not support", UserWarning)
            self.savefig(file, format=kind, dpi=DOTS_PER_INCH, metadata=DATES[kind])

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self._write(file, "png")
        return file.getvalue()


class Lettering:
    """How arbitrary words are drawn: literally, not as formulas, with the fonts of this machine.

    Long words are cut, control characters are escaped, and characters that no font has become NO_GLYPH.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        """`texts` are all texts to be drawn."""
        characters = sorted({character for text in texts for character in short(text, MAX_TITLE)})
        families, missing = families_for(characters)
        self._table = dict.fromkeys(map(ord, missing), NO_GLYPH)
        self.style: dict[str, Any] = {"family": families, "parse_math": False, "usetex": False}

    def __call__(self, text: str, limit: int = MAX_CHARACTERS) -> str:
        return short(text, limit).translate(self._table)

    def set(self, text: Text, words: str, limit: int = MAX_CHARACTERS) -> None:
        """Set a text of a figure to these words."""
        text.set(text=self(words, limit), **self.style)


def map_axes(points: NDArray[Any], space: float = 1) -> tuple[Picture, Axes]:
    """A picture for labelled points of a plane (n, 2), and its axes, which have the same scale and no ticks.

    A point takes `space` times the area that it needs without lines to others.
    """
    across, along = np.ptp(points, axis=0) + 1e-30
    height = np.clip(along / across, *HEIGHTS)
    width = np.clip((SQUARE_INCHES * space * len(points) / height) ** 0.5, *WIDTHS)
    picture = Picture(float(width), float(width * height))
    axes = picture.subplots()
    axes.set(xticks=[], yticks=[])
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.08)
    axes.spines[:].set_color("#cccccc")
    return picture, axes


def add_legend(picture: Picture, names: Sequence[str], lettering: Lettering) -> None:
    """Name groups below the picture, each with its colour."""
    shown = list(names[:MAX_LEGEND])
    handles = [
        Line2D([], [], marker="o", linestyle="", markersize=5, color=colour_of(number)) for number in range(len(shown))
    ]
    if len(names) > len(shown):
        handles.append(Line2D([], [], linestyle=""))
        shown.append(f"and {len(names) - len(shown)} more")
    columns = max(1, min(4, int(picture.get_figwidth() / 2.5)))
    legend = picture.legend(
        handles, ["-"] * len(shown), loc="outside lower center", ncols=columns, fontsize=8, frameon=False
    )
    for text, name in zip(legend.get_texts(), shown, strict=True):  # not as labels: matplotlib drops those with a _
        lettering.set(text, name, MAX_NAME)


def colour_of(number: int) -> Any:
    """The colour of a group: those of COLOURS, then lighter ones, then again from the first."""
    return blend(COLOURS[number % len(COLOURS)], "white", 0.5 * (number // len(COLOURS) % 2))


def blend(colour: Any, other: Any, share: float) -> Any:
    """A colour with this share of another."""
    return tuple((1 - share) * one + share * two for one, two in zip(to_rgb(colour), to_rgb(other), strict=True))


def set_title(axes: Axes, title: str) -> None:
    Lettering([title]).set(axes.title, title, MAX_TITLE)


def short(text: str, limit: int) -> str:
    """A text as one printable line of at most `limit` characters."""
    text = printable(text[: limit + 1])
    return text if len(text) <= limit else text[: limit - 1] + "…"


def families_for(characters: Sequence[str]) -> tuple[list[str], list[str]]:
    """The font families that draw these characters, the usual ones first; and the characters that none has.

    Says in one line what to install where a character is missing.
    """
    families = list(mpl.rcParams["font.family"])
    missing = _without_glyph(font_manager.findfont(font_manager.FontProperties(family=families)), characters)
    if missing:
        missing = _add_families(families, missing)
    if missing and _new_fonts():
        missing = _add_families(families, missing)
    if drawable := [character for character in missing if unicodedata.category(character)[0] != "C"]:
        packages = " ".join(sorted({_package(character) for character in drawable}))
        log.warning(
            "no font on this machine has %s of the picture, such as %s: install one (on Debian and Ubuntu: apt install "
            "%s)", counted(len(drawable), "character"), " ".join(drawable[:5]), packages,
        )  # fmt: skip
    return families, missing


def _add_families(families: list[str], missing: list[str]) -> list[str]:
    """Add the families that have most of the missing characters. Returns the characters that are still missing."""
    lacks: dict[str, set[str]] = {}
    for font in sorted(font_manager.fontManager.ttflist, key=_choice):
        if font.name not in lacks and "Last Resort" not in font.name:  # it has one sign for all characters of a script
            lacks[font.name] = set(_without_glyph(font.fname, missing))
    while missing and lacks:
        best = min(lacks, key=lambda family: len(lacks[family].intersection(missing)))
        if len(left := [character for character in missing if character in lacks[best]]) == len(missing):
            break
        families.append(best)
        missing = left
    return missing


def _choice(font: font_manager.FontEntry) -> tuple[object, ...]:
    """Sorts fonts: those without serifs first, upright and of usual weight, in an order that does not change."""
    plain = any(kind in font.name.lower() for kind in ("sans", "gothic"))
    weight = font_manager.weight_dict[font.weight] if isinstance(font.weight, str) else font.weight
    usual = (font.style, font.stretch) == ("normal", "normal")
    return not plain, not usual, abs(weight - USUAL_WEIGHT), font.name, font.fname


def _new_fonts() -> bool:
    """Whether there are fonts that were installed after matplotlib made its list, which are then in the list, too."""
    known = {font.fname for font in font_manager.fontManager.ttflist}
    for path in set(font_manager.findSystemFonts()) - known:
        with suppress(Exception):  # of a damaged font: any
            font_manager.fontManager.addfont(path)
    return len(font_manager.fontManager.ttflist) > len(known)


def _package(character: str) -> str:
    """The package of Debian that has a font with a character."""
    if unicodedata.category(character)[0] == "S":
        return "fonts-symbola"
    return "fonts-noto-cjk" if unicodedata.east_asian_width(character) in "FHW" else "fonts-noto-core"


def _without_glyph(file: str, characters: Sequence[str]) -> list[str]:
    """The characters that a font cannot draw: all of them if it is a bitmap font or damaged."""
    try:
        font = font_manager.get_font(file)
    except (OSError, RuntimeError):
        return list(characters)
    return [character for character in characters if not (font.scalable and font.get_char_index(ord(character)))]
