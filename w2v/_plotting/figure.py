"""Figures that can show any word as text, and that are saved as the same bytes every time."""

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

from w2v._errors import SettingsError, optional_package, pluralise, printable
from w2v._system.files import PathLike, atomic_write

with optional_package("a picture needs matplotlib", "plot"):
    import matplotlib as mpl
    from matplotlib import font_manager
    from matplotlib.axes import Axes
    from matplotlib.colors import to_rgb
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

EXTENSIONS = (".png", ".svg", ".pdf")
DOTS_PER_INCH = 150
SQUARE_INCHES_PER_WORD = 0.45  # the area of a map grows with its words
WIDTHS = (5, 16)  # smallest and largest width of a map, in inches
HEIGHTS = (0.6, 1.15)  # smallest and largest height of a map, relative to its width
MAX_LEGEND = 30  # groups listed in a legend
MAX_CHARACTERS = 24  # length of a word in a picture
MAX_NAME, MAX_TITLE = 40, 80  # characters of a group's name and of a title
NO_GLYPH = "\N{REPLACEMENT CHARACTER}"
REGULAR_WEIGHT = 400  # the weight of a regular font
# Metadata to leave out of each format, because it would differ between runs.
OMITTED_METADATA: dict[str, dict[str, None]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
# The palette of Okabe & Ito (2008), which colour-blind people can distinguish, in order of use.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#B8A800", "#555555")

log = logging.getLogger("w2v")


def format_of(path: PathLike) -> str:
    """Return the format of a picture from its file name.

    Raises:
        SettingsError: The extension is unknown.
    """
    extension = Path(path).suffix.lower()
    if extension not in EXTENSIONS:
        raise SettingsError(f"{path}: unknown extension of a picture: use .png, .svg or .pdf")
    return extension.removeprefix(".")


class Picture(Figure):
    """A matplotlib figure that notebooks display, and that is saved as the same bytes every time.

    Attributes:
        words: The number of points drawn.
        labels: The number of points with a label.
    """

    def __init__(self, width: float, height: float) -> None:
        """Create a figure. `width` and `height` are in inches."""
        super().__init__(figsize=(width, height), dpi=DOTS_PER_INCH, layout="constrained")
        self.words = self.labels = 0

    def save(self, path: PathLike, *, force: bool = False) -> None:
        """Write the picture atomically, in the format of the extension: PNG, SVG or PDF.

        Raises:
            SettingsError: The extension is unknown.
            W2VError: The file cannot be written, or it exists and `force` is false.
        """
        file_format = format_of(path)
        with atomic_write(path, force) as file:
            self._write(file, file_format)

    def _write(self, file: Any, file_format: str) -> None:
        with mpl.rc_context({"svg.hashsalt": "w2v"}), warnings.catch_warnings():
            # Matplotlib warns of glyphs that it cannot lay out, although a font has them.
            warnings.filterwarnings("ignore", "Glyph|Matplotlib currently does not support", UserWarning)
            self.savefig(file, format=file_format, dpi=DOTS_PER_INCH, metadata=OMITTED_METADATA[file_format])

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self._write(file, "png")
        return file.getvalue()


class TextFormatter:
    """A converter of words to text that a picture can show, which also chooses the fonts.

    Words are drawn literally, not as formulas. Long words are shortened, control characters are escaped, and a
    character in no font of this machine becomes NO_GLYPH.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        """Choose fonts for all texts of a picture."""
        characters = sorted({character for text in texts for character in shorten(text, MAX_TITLE)})
        families, missing = families_for(characters)
        self._table = dict.fromkeys(map(ord, missing), NO_GLYPH)
        self.style: dict[str, Any] = {"family": families, "parse_math": False, "usetex": False}

    def __call__(self, text: str, limit: int = MAX_CHARACTERS) -> str:
        return shorten(text, limit).translate(self._table)

    def set(self, artist: Text, text: str, limit: int = MAX_CHARACTERS) -> None:
        """Set the text of an artist of a figure, such as a title."""
        artist.set(text=self(text, limit), **self.style)


def map_axes(points: NDArray[Any], space: float = 1) -> tuple[Picture, Axes]:
    """Return a picture for labelled points (n, 2), and its axes, which have equal scales and no ticks.

    `space` is the area that a point needs, relative to a point that has a label but no arrow.
    """
    x_range, y_range = np.ptp(points, axis=0) + 1e-30  # not 0, so that their ratio exists
    height = np.clip(y_range / x_range, *HEIGHTS)
    width = np.clip((SQUARE_INCHES_PER_WORD * space * len(points) / height) ** 0.5, *WIDTHS)
    picture = Picture(float(width), float(width * height))
    axes = picture.subplots()
    axes.set(xticks=[], yticks=[])
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.08)
    axes.spines[:].set_color("#cccccc")
    return picture, axes


def add_legend(picture: Picture, names: Sequence[str], formatter: TextFormatter) -> None:
    """List the groups with their colours below the picture."""
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
    # The names are set only now, because matplotlib would drop labels that begin with _.
    for artist, name in zip(legend.get_texts(), shown, strict=True):
        formatter.set(artist, name, MAX_NAME)


def colour_of(number: int) -> Any:
    """Return the colour of a group: COLOURS in order, then lighter versions of them, then COLOURS again."""
    return blend(COLOURS[number % len(COLOURS)], "white", 0.5 * (number // len(COLOURS) % 2))


def blend(colour: Any, other: Any, share: float) -> Any:
    """Mix a colour with a share, 0 to 1, of another."""
    return tuple((1 - share) * a + share * b for a, b in zip(to_rgb(colour), to_rgb(other), strict=True))


def set_title(axes: Axes, title: str) -> None:
    TextFormatter([title]).set(axes.title, title, MAX_TITLE)


def shorten(text: str, limit: int) -> str:
    """Return a text as one printable line of at most `limit` characters."""
    text = printable(text[: limit + 1])
    return text if len(text) <= limit else text[: limit - 1] + "…"


def families_for(characters: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the font families that have these characters, matplotlib's default first, and the characters in no font.

    If characters are missing, log one line that names the packages to install.
    """
    families = list(mpl.rcParams["font.family"])
    missing = _without_glyph(font_manager.findfont(font_manager.FontProperties(family=families)), characters)
    if missing:
        missing = _add_families(families, missing)
    if missing and _add_new_fonts():
        missing = _add_families(families, missing)
    if drawable := [character for character in missing if unicodedata.category(character)[0] != "C"]:
        packages = " ".join(sorted({_package(character) for character in drawable}))
        log.warning(
            "no font on this machine has %s of the picture, such as %s: install one (on Debian and Ubuntu: apt install "
            "%s)", pluralise(len(drawable), "character"), " ".join(drawable[:5]), packages,
        )  # fmt: skip
    return families, missing


def _add_families(families: list[str], missing: list[str]) -> list[str]:
    """Add the families that have most of the missing characters. Return the characters that are still missing."""
    lacking: dict[str, set[str]] = {}  # the missing characters that a family lacks too
    for font in sorted(font_manager.fontManager.ttflist, key=_preference):
        if font.name not in lacking and "Last Resort" not in font.name:  # that font shows one symbol for a whole script
            lacking[font.name] = set(_without_glyph(font.fname, missing))
    while lacking:
        best = min(lacking, key=lambda family: len(lacking[family].intersection(missing)))
        remaining = [character for character in missing if character in lacking[best]]
        if len(remaining) == len(missing):
            break
        families.append(best)
        missing = remaining
    return missing


def _preference(font: font_manager.FontEntry) -> tuple[object, ...]:
    """Return a sort key that prefers sans-serif, upright fonts of regular weight, and sorts equal ones by name."""
    sans_serif = any(word in font.name.lower() for word in ("sans", "gothic"))
    weight = font_manager.weight_dict[font.weight] if isinstance(font.weight, str) else font.weight
    upright = (font.style, font.stretch) == ("normal", "normal")
    return not sans_serif, not upright, abs(weight - REGULAR_WEIGHT), font.name, font.fname


def _add_new_fonts() -> bool:
    """Add fonts that were installed after matplotlib built its font list. Return whether there are any."""
    known = {font.fname for font in font_manager.fontManager.ttflist}
    for path in set(font_manager.findSystemFonts()) - known:
        with suppress(Exception):  # a damaged font can raise any exception
            font_manager.fontManager.addfont(path)
    return len(font_manager.fontManager.ttflist) > len(known)


def _package(character: str) -> str:
    """Return the Debian package with a font for a character."""
    if unicodedata.category(character)[0] == "S":
        return "fonts-symbola"
    return "fonts-noto-cjk" if unicodedata.east_asian_width(character) in "FHW" else "fonts-noto-core"


def _without_glyph(file: str, characters: Sequence[str]) -> list[str]:
    """Return the characters that a font cannot draw: all of them if the font is damaged or is a bitmap font."""
    try:
        font = font_manager.get_font(file)
    except (OSError, RuntimeError):
        return list(characters)
    return [character for character in characters if not (font.scalable and font.get_char_index(ord(character)))]
