"""Removing markup from text in one piece and in pieces of any size."""

from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from w2v._text.markup import MAX_TAG, without_markup

PIECES = st.lists(
    st.sampled_from([
        "a", "é", " ", "\n", "<", ">", "<b>", "</b >", "<p class='x\ny'>", "<br/>", "<x>", "<!--", "-->", "--", "<!-->",
        "<script>", "</script>", "</script", "<style a>", "</STYLE >", "<!DOCTYPE html>", "<?xml?>", "<![CDATA[", "]]>",
        "]", "&amp;", "&", "&lt;", "&#233;", "&#xe9;", "&nbsp;", "&nosuch;", ";",
        '<doc id="1" title="T">', "</doc>", "-",
    ])
)  # fmt: skip


def stripped(*pieces: bytes) -> bytes:
    return b"".join(without_markup(pieces))


@example(["</script", "&amp;", "-->"], [13])
@given(PIECES, st.lists(st.integers(0, 200)))
def test_piece_size_does_not_change_the_text(pieces: list[str], cuts: list[int]) -> None:
    data = "".join(pieces).encode()
    ends = sorted({min(cut, len(data)) for cut in cuts} | {len(data)})
    pieces = [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    assert b"".join(pieces) == data
    assert stripped(*pieces) == stripped(data)


class Text(HTMLParser):
    """Extracts the text of an HTML document with Python's parser."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text, self.hidden = "", False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.hidden = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self.hidden = False

    def handle_data(self, data: str) -> None:
        self.text += "" if self.hidden else data


ELEMENTS = st.sampled_from([
    "one ", "two &amp; three ", "<p>four</p>\n", "<b>fi</b>ve ", "<!-- a > b --> ", "<script>if (a<b) c>d;</script> ",
    "é&#33; ", "<a href='/x'>six</a> ", "<style>p > a {}</style> ", "<!DOCTYPE html> ", "&lt;7&gt; ",
])  # fmt: skip


@given(st.lists(ELEMENTS).map("".join))
def test_html_words_match_pythons_parser(document: str) -> None:
    parser = Text()
    parser.feed(document)
    parser.close()
    assert stripped(document.encode()).decode().split() == parser.text.split()


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ("un<b>believ</b>able", "unbelievable"),
        ("<p>one</p><p>two<br>three", "\none\n\ntwo\nthree"),
        ("<w>the</w><w>cat</w>", " the  cat "),
        ('<doc id="12" url="u" title="T">\nT\n\ntext\n</doc>\n', "\n\nT\n\ntext\n\n\n"),
        ("a < b and c > d, 1<2", "a < b and c > d, 1<2"),
        ("AT&T &amp;lt; &nosuch; &copy &eacute;&nbsp;x", "AT&T &lt; &nosuch; &copy é x"),
        ("a<!-- b\n<i> -->c", "ac"),
        ("a<!-- never closed", "a"),
        ("a<!-->b", "ab"),
        ("a<SCRIPT src=x>b</p></scripts></Script >c<script/>d", "a  c d"),
        ("<![CDATA[<i>a</i> & b]]> [1]]", "a & b [1]]"),
        ("a <unclosed", "a <unclosed"),
        ("a <" + MAX_TAG * "b", "a <" + MAX_TAG * "b"),
        ("a <i " + (MAX_TAG + 200) * "b" + ">", "a <i " + (MAX_TAG + 200) * "b" + ">"),
        ("a <i " + (MAX_TAG - 200) * "b" + ">", "a "),
    ],
    ids=range(15),
)
def test_markup_is_removed(document: str, text: str) -> None:
    assert stripped(document.encode()).decode() == text
    assert stripped(*(bytes([byte]) for byte in document[:2000].encode())) == stripped(document[:2000].encode())


def test_entities_match_pythons_html_module() -> None:
    for entity in ("&aacute;", "&#128;", "&#x1F600;", "&CounterClockwiseContourIntegral;", "&#0;", "&#xD800;"):
        assert stripped(entity.encode()).decode() == unescape(entity)
