"""Any text in a picture, and the same bytes each time."""

import sys
import warnings
from pathlib import Path

import pytest
from matplotlib import font_manager

from w2v.errors import SettingsError, W2VError
from w2v.plotting import figure
from w2v.plotting.figure import EXTENSIONS, NO_GLYPH, Lettering, Picture, families_for, format_of, set_title

HOSTILE = [
    "$x$", r"\frac{1}", "_hidden", "<script>&amp;", "שלום", "سلام", "👍🏽", "日本語", "a\u0301" * 50, "x" * 10_000,
    "\udcff", "\x1b[31m", "\u202eabc", "\n", "", " ", "\ufdd0",
]  # fmt: skip


def hostile_picture() -> Picture:
    picture = Picture(3, 3)
    axes = picture.subplots()
    set_title(axes, "".join(HOSTILE))
    lettering = Lettering(HOSTILE)
    for number, word in enumerate(HOSTILE):
        lettering.set(axes.text(0, number / len(HOSTILE), "-"), word)
    return picture


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_the_same_bytes_without_a_warning(extension: str, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}{extension}" for name in ("first", "second")]
    for file in files:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            hostile_picture().save(file)
    content = files[0].read_bytes()
    assert content == files[1].read_bytes()
    assert content[:1000].find({".png": b"PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[extension]) in (0, 1)


def test_words_are_shown_as_they_are_or_shortened() -> None:
    lettering = Lettering(HOSTILE)
    assert lettering("$x$") == "$x$"
    assert lettering("x" * 10_000) == "x" * 23 + "…"
    assert lettering("\x1b[31m\n") == r"\x1b[31m\n"
    assert lettering("\ufdd0") == NO_GLYPH  # in no font: it is not a character
    picture = hostile_picture()
    assert picture.axes[0].texts[0].get_text() == "$x$"
    assert not any(
        text.get_parse_math() or text.get_usetex() for text in [*picture.axes[0].texts, picture.axes[0].title]
    )


def test_another_font_is_found_for_what_the_usual_one_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = font_manager.findfont(font_manager.FontProperties())

    def without_glyph(file: str, characters: list[str]) -> list[str]:
        return [character for character in characters if (file == usual and character in "語日") or character == "本"]

    monkeypatch.setattr(figure, "_without_glyph", without_glyph)
    families, missing = families_for(["a", "日", "本", "語"])
    assert len(families) > 1
    assert missing == ["本"]
    assert families_for(["a"])[1] == []


def test_a_picture_is_not_replaced_unasked(tmp_path: Path) -> None:
    picture = hostile_picture()
    (tmp_path / "a.png").write_text("mine")
    with pytest.raises(W2VError, match="File exists"):
        picture.save(tmp_path / "a.png", replace=False)
    assert (tmp_path / "a.png").read_text() == "mine"
    with pytest.raises(SettingsError, match=r"b\.gif: unknown extension of a picture: use \.png, \.svg or \.pdf"):
        picture.save(tmp_path / "b.gif")
    assert format_of("a.b.SVG") == "svg"
    assert picture._repr_png_()[1:4] == b"PNG"


@pytest.mark.parametrize(
    ("module", "missing", "message"),
    [
        ("w2v.plotting.figure", "matplotlib", "a picture needs matplotlib"),
        ("w2v.plotting.labels", "textalloc", "a picture with labels needs textalloc"),
    ],
)
def test_missing_library_is_named(module: str, missing: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(W2VError, match=rf"^{message}: pip install 'w2v\[plot\]'$"):
        __import__(module)
