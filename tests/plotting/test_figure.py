"""Pictures with arbitrary text, saved as the same bytes every time."""

import subprocess
import sys
import warnings
from pathlib import Path

import matplotlib as mpl
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager

from w2v.errors import SettingsError, W2VError, install_command
from w2v.plotting import figure
from w2v.plotting.figure import EXTENSIONS, NO_GLYPH, Picture, TextFormatter, families_for, format_of, set_title

HOSTILE = [
    "$x$", r"\frac{1}", "_hidden", "<script>&amp;", "שלום", "سلام", "👍🏽", "日本語", "a\u0301" * 50, "x" * 10_000,
    "\udcff", "\x1b[31m", "\u202eabc", "\n", "", " ", "\ufdd0",
]  # fmt: skip


def hostile_picture() -> Picture:
    picture = Picture(3, 3)
    axes = picture.subplots()
    set_title(axes, "".join(HOSTILE))
    formatter = TextFormatter(HOSTILE)
    for number, word in enumerate(HOSTILE):
        formatter.set(axes.text(0, number / len(HOSTILE), "-"), word)
    return picture


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_saved_bytes_are_reproducible(extension: str, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}{extension}" for name in ("first", "second")]
    for file in files:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            hostile_picture().save(file)
    content = files[0].read_bytes()
    assert content == files[1].read_bytes()
    assert content[:1000].find({".png": b"PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[extension]) in (0, 1)


def test_words_are_drawn_literally_and_shortened() -> None:
    formatter = TextFormatter(HOSTILE)
    assert formatter("$x$") == "$x$"
    assert formatter("x" * 10_000) == "x" * 23 + "…"
    assert formatter("\x1b[31m\n") == r"\x1b[31m\n"
    assert formatter("\ufdd0") == NO_GLYPH  # no font has it, because it is not a character
    picture = hostile_picture()
    assert picture.axes[0].texts[0].get_text() == "$x$"
    assert not any(
        text.get_parse_math() or text.get_usetex() for text in [*picture.axes[0].texts, picture.axes[0].title]
    )


def test_another_font_draws_characters_that_the_default_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    default = font_manager.findfont(font_manager.FontProperties())

    def without_glyph(file: str, characters: list[str]) -> list[str]:
        return [character for character in characters if (file == default and character in "語日") or character == "本"]

    monkeypatch.setattr(figure, "_without_glyph", without_glyph)
    families, missing = families_for(["a", "日", "本", "語"])
    assert len(families) > 1
    assert missing == ["本"]
    assert families_for(["a"])[1] == []


@pytest.fixture
def few_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide all fonts except those that come with matplotlib."""
    fonts = font_manager.fontManager.ttflist
    bundled = [font for font in fonts if Path(font.fname).is_relative_to(mpl.get_data_path())]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", bundled)
    monkeypatch.setattr(font_manager, "findSystemFonts", list)


@pytest.mark.usefixtures("few_fonts")
def test_newly_installed_font_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The font is thin, like the first instance of a variable font. matplotlib's own list lacks it."""
    damaged, thin = tmp_path / "damaged.ttf", tmp_path / "thin.ttf"
    damaged.write_bytes(b"no font")
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    pen.lineTo((500, 700))
    pen.lineTo((500, 0))
    pen.closePath()
    glyphs = dict.fromkeys([".notdef", "han"], pen.glyph())
    font = FontBuilder(1000)
    font.setupGlyphOrder(list(glyphs))
    font.setupCharacterMap({ord("한"): "han"})
    font.setupGlyf(glyphs)
    font.setupHorizontalMetrics(dict.fromkeys(glyphs, (600, 0)))
    font.setupHorizontalHeader()
    font.setupNameTable({"familyName": "Test Sans", "styleName": "Thin", "psName": "TestSans"})
    font.setupOS2(usWeightClass=100)
    font.setupPost()
    font.save(thin)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(damaged), str(thin)])
    picture = Picture(1, 1)
    set_title(picture.subplots(), "한")
    picture.save(tmp_path / "title.svg")
    assert "#TestSans" in (tmp_path / "title.svg").read_text()


@pytest.mark.usefixtures("few_fonts")
@pytest.mark.parametrize(
    ("text", "message_end"),
    [
        ("한국 中", "such as 中 국 한: install one (on Debian and Ubuntu: apt install fonts-noto-cjk)"),
        ("ไทย中🫠", "apt install fonts-noto-cjk fonts-noto-core fonts-symbola)"),
        ("abc\ufdd0", ""),
    ],
)
def test_warning_names_the_package_with_a_missing_font(
    text: str, message_end: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert NO_GLYPH in TextFormatter([text])(text)
    assert len(caplog.messages) == bool(message_end)
    assert "".join(caplog.messages).endswith(message_end)


def test_existing_picture_is_replaced_only_by_force(tmp_path: Path) -> None:
    picture = hostile_picture()
    (tmp_path / "a.png").write_text("mine")
    with pytest.raises(W2VError, match="File exists"):
        picture.save(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_text() == "mine"
    with pytest.raises(SettingsError, match=r"b\.gif: unknown extension of a picture: use \.png, \.svg or \.pdf"):
        picture.save(tmp_path / "b.gif")
    assert format_of("a.b.SVG") == "svg"
    assert picture._repr_png_()[1:4] == b"PNG"


PLOT_WITHOUT_EACH_LIBRARY = """
import sys
import w2v
vectors = w2v.KeyedVectors(list("abcd"), [[1.0, 2.0], [3.0, 4.0], [5.0, 7.0], [0.0, 1.0]])
for library, method in (("matplotlib", "pca"), ("textalloc", "pca"), ("openTSNE", "tsne"), ("umap", "umap")):
    sys.modules[library] = None
    try:
        vectors.plot(method=method)
    except w2v.W2VError as error:
        print(error)
    del sys.modules[library]
"""


def test_missing_libraries_are_named() -> None:
    done = subprocess.run([sys.executable, "-c", PLOT_WITHOUT_EACH_LIBRARY], capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        f"a picture needs matplotlib: {install_command('plot')}",
        f"a picture with labels needs textalloc: {install_command('plot')}",
        f"t-SNE needs openTSNE: {install_command('maps')}, or use the method pca",
        f"UMAP needs umap-learn: {install_command('maps')}, or use the method pca",
    ], done.stderr
