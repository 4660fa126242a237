"""Pictures with arbitrary text, saved as the same bytes every time."""

import struct
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import font_manager
from matplotlib.colors import to_rgb

from w2v._errors import SettingsError, W2VError, install_command
from w2v._plotting import figure
from w2v._plotting.figure import (
    COLOURS,
    EXTENSIONS,
    NO_GLYPH,
    Picture,
    TextFormatter,
    add_legend,
    colour_of,
    families_for,
    format_of,
    map_axes,
    set_title,
    shorten,
)

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


@pytest.fixture
def few_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide all fonts except those that come with matplotlib."""
    fonts = font_manager.fontManager.ttflist
    bundled = [font for font in fonts if Path(font.fname).is_relative_to(mpl.get_data_path())]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", bundled)
    monkeypatch.setattr(font_manager, "findSystemFonts", list)


def test_newly_installed_font_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The font is bold only, and another new one is damaged. matplotlib's own list lacks them."""
    damaged, bold = tmp_path / "damaged.ttf", Path(mpl.get_data_path(), "fonts", "ttf", "STIXGeneralBol.ttf")
    damaged.write_bytes(b"no font")
    fonts = [font for font in font_manager.fontManager.ttflist if font.name == "DejaVu Sans"]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", fonts)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(damaged), str(bold)])
    picture = Picture(1, 1)
    set_title(picture.subplots(), "Ⓐ")
    picture.save(tmp_path / "title.svg")
    assert "#STIXGeneral" in (tmp_path / "title.svg").read_text()


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
        w2v.word_map(vectors, method=method)
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


@pytest.mark.parametrize("rc", [{}, {"savefig.dpi": 20, "figure.dpi": 30}])
def test_a_picture_has_its_size_in_inches_at_150_dots_per_inch(rc: dict[str, int], tmp_path: Path) -> None:
    with mpl.rc_context(rc):
        picture = Picture(2, 1)
        picture.save(tmp_path / "a.PNG")
        for content in ((tmp_path / "a.PNG").read_bytes(), picture._repr_png_()):
            assert struct.unpack(">II", content[16:24]) == (300, 150)  # width and height in the header of a PNG
    assert (picture.words, picture.labels) == (0, 0)


def test_only_texts_beyond_the_limit_are_shortened_and_escapes_count() -> None:
    lengths = {(24, 24): "x" * 24, (25, 24): "x" * 23 + "…", (1, 1): "x", (2, 1): "…", (0, 1): ""}
    assert {(length, limit): shorten("x" * length, limit) for length, limit in lengths} == lengths
    assert [shorten("\x1b" * 3, limit) for limit in (12, 11)] == [r"\x1b" * 3, r"\x1b" * 2 + r"\x…"]


def test_a_title_may_be_longer_than_a_label() -> None:
    for length, expected in ((80, "x" * 80), (81, "x" * 79 + "…")):
        axes = Picture(3, 3).subplots()
        set_title(axes, "x" * length)
        assert axes.get_title() == expected


def test_colours_of_groups_are_first_pure_then_lighter_then_repeated() -> None:
    pure = [to_rgb(colour) for colour in COLOURS]
    size = len(pure)
    colours = [colour_of(number) for number in range(3 * size)]
    assert colours[:size] == colours[2 * size :] == pure
    np.testing.assert_allclose(colours[size : 2 * size], (np.array(pure) + 1) / 2)


@pytest.mark.parametrize(("groups", "last"), [(30, "group 29"), (31, "and 1 more"), (45, "and 15 more")])
def test_legend_lists_at_most_30_groups_in_their_colours(groups: int, last: str) -> None:
    picture, names = Picture(8, 8), [f"group {number}" for number in range(groups)]
    add_legend(picture, names, TextFormatter(names))
    legend = picture.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == [*names[:30], *[last] * (groups > 30)]
    assert [line.get_color() for line in legend.get_lines()[:30]] == [colour_of(number) for number in range(30)]
    markers = [line.get_marker() for line in legend.get_lines()]
    assert len(set(markers[:30])) == 1
    assert "o" not in markers[30:]  # the last line is not a group


def test_legend_shortens_names_and_fits_the_width() -> None:
    columns = []
    for width in (2, 5, 9, 16):
        picture = Picture(width, 5)
        names = ["x" * 40, "x" * 41, "_hidden", "$x$"]
        add_legend(picture, names, TextFormatter(names))
        texts = picture.legends[0].get_texts()
        assert [text.get_text() for text in texts] == ["x" * 40, "x" * 39 + "…", "_hidden", "$x$"]
        picture.draw_without_rendering()
        columns.append(len({round(text.get_window_extent().x0) for text in texts}))
    assert columns == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("points", "width", "ratio"),
    [
        ([[0, 0], [1, 1]], 5, 1),
        ([[0, 0], [1, 0.7]], 5, 0.7),
        ([[0, 0], [100, 1]], 5, 0.6),
        ([[0, 0], [1, 100]], 5, 1.15),
        ([[3, 3], [3, 3]], 5, 1),
        ([[0, 0], [1, 1]] * 10_000, 16, 1),
    ],
)
def test_a_map_has_the_shape_of_its_points_within_limits(points: list[list[float]], width: float, ratio: float) -> None:
    picture, axes = map_axes(np.array(points))
    assert picture.get_figwidth() == width
    assert picture.get_figheight() / width == pytest.approx(ratio)
    assert axes.get_aspect() == 1


def test_a_map_has_an_area_in_proportion_to_its_words_and_their_space() -> None:
    points = np.tile([[0, 0], [1, 1]], (80, 1))
    areas = [map_axes(points[:words], space)[0].get_figwidth() ** 2 for words, space in ((80, 1), (160, 1), (80, 2))]
    assert areas == pytest.approx([areas[0], 2 * areas[0], 2 * areas[0]])


def font_entry(name: str, file: str = "a", **properties: Any) -> font_manager.FontEntry:
    usual = {"style": "normal", "variant": "normal", "weight": 400, "stretch": "normal", "size": "scalable"}
    return font_manager.FontEntry(fname=file, name=name, **usual | properties)


def test_sans_serif_upright_and_regular_fonts_are_preferred() -> None:
    ordered = [
        font_entry("A Gothic"), font_entry("Noto Sans"), font_entry("Noto Sans", "b"),
        font_entry("Noto Sans", weight="semibold"), font_entry("Noto Sans", weight=100),
        font_entry("Noto Sans", style="italic"), font_entry("Noto Sans", "b", stretch="condensed"),
        font_entry("A Serif"), font_entry("A Serif", style="italic"),
    ]  # fmt: skip
    fonts = ordered[::-1]
    fonts.sort(key=figure._preference)
    assert fonts == ordered


def test_the_font_with_most_missing_characters_is_added_first(monkeypatch: pytest.MonkeyPatch) -> None:
    glyphs = {"few": "xy", "many": "xyz", "none": "", "other": "w", "Last Resort": "wxyzv"}
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [font_entry(name, name) for name in glyphs])
    monkeypatch.setattr(font_manager, "findfont", lambda *_: "none")
    monkeypatch.setattr(font_manager, "findSystemFonts", list)
    monkeypatch.setattr(
        figure, "_without_glyph", lambda file, characters: [each for each in characters if each not in glyphs[file]]
    )
    default = list(mpl.rcParams["font.family"])
    assert families_for(["x", "y", "z", "w", "v"]) == ([*default, "many", "other"], ["v"])
    assert mpl.rcParams["font.family"] == default


@pytest.mark.usefixtures("few_fonts")
def test_warning_counts_the_missing_characters_and_shows_five(caplog: pytest.LogCaptureFixture) -> None:
    TextFormatter(["한국중가나다"])
    assert "has 6 characters of the picture, such as 가 국 나 다 중: install" in caplog.text
