"""Advice about texts that are small or not preprocessed, and no advice about other texts."""

import re
import shlex
import subprocess
import textwrap
import warnings
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

import w2v
from tests.helpers import QUICK, SMALL, Stop, read_text, run
from w2v._text import text_checks
from w2v._text.corpus import Corpus
from w2v._text.normalise import TextOptions
from w2v._text.words import Words
from w2v.data import make

PLAIN = "it was the best of times , it was the worst of times . new_york #one @two <s>\n"
RAW = 'It was the best of times, it was the worst of times. "Was it?" she said.\n'
CHINESE = "那是最美好的时代那是最糟糕的时代那是智慧的年头那是愚昧的年头。\n"


def advice(
    text: str, path: Path, epochs: int | str = "auto", vocabulary: list[str] | None = None, **options: Any
) -> list[str]:
    path.write_text(text, "utf-8")
    with read_text(Corpus(path), **options) as store, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        words = store.types if vocabulary is None else Words.of(vocabulary)
        text_checks.warn_about_text(store, epochs, TextOptions(**options), words)
    assert all(each.category is w2v.TextWarning for each in caught)
    return [str(each.message) for each in caught]


def test_a_small_text_gets_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = tmp_path / "text"
    expected = "the text has only 18 words, which is not much to learn from: add more text"
    assert advice(PLAIN, text) == advice(PLAIN, text, epochs=10) == [expected]
    assert advice(PLAIN, text, epochs=9) == [f"{expected}; more epochs than 9 would also help"]
    monkeypatch.setattr(text_checks, "SMALL_TEXT", 18)
    assert advice(PLAIN, text) == []


def test_punctuation_and_capitals_get_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_checks, "SMALL_TEXT", 0)
    (line,) = advice(RAW, tmp_path / "text")
    assert line.startswith("31% of the words begin or end with punctuation, 12% have capital letters: ")
    assert advice(PLAIN + RAW.lower() + 20 * PLAIN, tmp_path / "text") == []
    assert len(advice(RAW + 100 * PLAIN, tmp_path / "text")) == 0
    assert line.endswith('; add --lower (lower=True) and --tokenize words (tokenize="words")')
    (line,) = advice(3 * PLAIN.title(), tmp_path / "text")
    assert line.endswith("; add --lower (lower=True)")


JAPANESE = "東京は日本の首都であり、世界でも有数の大都市である。\nコンピューターは現代の生活に欠かせない。\n"
THAI = "ภาษาไทยเป็นภาษาที่ไม่มีช่องว่างระหว่างคำ\nกรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย และเป็นเมืองที่มีประชากรมากที่สุด\n"
KOREAN = "서울은 대한민국의 수도이며, 한강을 끼고 있는 도시이다.\n"
GERMAN = "Die Würde des Menschen ist unantastbar. Sie zu achten ist Verpflichtung.\n"
RUSSIAN = "Москва является столицей России, и крупнейшим городом страны.\n"
SEGMENTED = (
    "那 是 最 美好 的 时代 ， 那 是 最 糟糕 的 时代 。\n",
    "東京 は 日本 の 首都 で あり 、 世界 で も 有数 の 大 都市 で ある 。\n",
    "ภาษา ไทย เป็น ภาษา ที่ ไม่ มี ช่องว่าง ระหว่าง คำ\n",
)
DOCUMENT = '<doc id="7" url="https://en.wikipedia.org/wiki?curid=7" title="A">\n{}</doc>\n'


@pytest.mark.parametrize("text", [CHINESE, JAPANESE, THAI])
def test_text_without_spaces_gets_advice(text: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    (line,) = advice(text, path)
    assert line.startswith("words have ")
    assert (
        " characters on average, so the text has hardly any spaces, like Chinese, Japanese or Thai: split it " in line
    )
    tags, line = advice(DOCUMENT.format(text) + "<p>NATO was founded in the year 1949.<br />\n", path)
    assert "markup" in tags
    assert "hardly any spaces" in line
    for options in ({"tokenize": "words"}, {"tokenize": "words+punctuation"}):
        (line,) = advice(DOCUMENT.format(text), path, strip_markup=True, **options)
        assert "% of the words in Chinese, Japanese or Thai are single characters, because --tokenize words" in line


def test_wrapped_lines_get_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_checks, "SMALL_TEXT", 0)
    random = Random(1)
    lines = [" ".join(random.choices(PLAIN.split(), k=random.randrange(5, 300))) for _ in range(60)]
    assert advice("\n".join(lines), tmp_path / "text") == []
    (line,) = advice("\n\n".join(map(textwrap.fill, lines)), tmp_path / "text")
    assert line.startswith("lines seem to be wrapped")
    _, command = line.removesuffix(" > JOINED").split(" each with ")
    paragraphs = "\r\n\r\n".join(map(textwrap.fill, lines)).replace("\n", "\r\n")
    (tmp_path / "text").write_text(paragraphs, newline="")
    joined = subprocess.check_output(
        command.replace("TEXT", shlex.quote(str(tmp_path / "text"))), shell=True, text=True
    )
    assert joined == "\n".join(lines) + "\n"
    walks = [" ".join(random.choices(PLAIN.split(), k=12)) for _ in range(200)]
    assert advice("\n".join(walks), tmp_path / "text") == []


CONLLU = "# text = Dogs bark\n1\tDogs\tdog\tNOUN\tNNS\tNumber=Plur\t2\tnsubj\n2\tbark\tbark\tVERB\t_\t_\t0\t_\n\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PLAIN.replace(" ", "\xa0"), "a space inside that is not an ASCII space"),
        (PLAIN.replace(" ", "\u200b"), "a space inside that is not an ASCII space"),
        (PLAIN.replace(" ", "\u3000"), "--tokenize words"),
        (">chr1 test\n" + 9 * ("GATTACAN" * 8 + "\n"), "like a FASTA file: leave out the records' names"),
        (CONLLU, "the form of tags in CoNLL-U, such as 'NOUN': extract the words with awk"),
        (CONLLU.replace("\n", "\r\n"), "the form of tags in CoNLL-U, such as 'NOUN': extract the words with awk"),
        (CONLLU.replace("Number=Plur", "_"), "the form of tags in CoNLL-U, such as 'NOUN': extract the words with awk"),
        (
            "-DOCSTART- -X- -X- O\n\nDogs NNS B-NP O\nbark VBP B-VP O\n\n",
            "the form of tags in CoNLL-2003, such as 'B-NP': extract the words with awk",
        ),
        (
            "1\n00:00:01,000 --> 00:00:02,500\nwhat a day\n\n",
            "the form of arrows in subtitles, such as '-->': extract the words with",
        ),
        ("the/DT dog/NN barks/VBZ ./.\n", "a tag after the word, such as 'the/DT': extract the words with sed"),
        ("the|DT dog|NN barks|VBZ .|.\n", "a tag after the word, such as 'the|DT': extract the words with sed"),
        ("the_DT dog_NN barks_VBZ ._.\n", "a tag after the word, such as 'the_DT': extract the words with sed"),
    ],
)
def test_other_formats_get_one_line_of_advice(text: str, expected: str, tmp_path: Path) -> None:
    (line,) = advice(text, tmp_path / "text")
    assert expected in line
    if command := re.search("extract the words with (.*) TEXT", line):
        words = subprocess.check_output(f"{command[1]} {tmp_path / 'text'}", shell=True, text=True)
        assert words.split() in (["Dogs", "bark"], ["what", "a", "day"], ["the", "dog", "barks", "."])


def test_capitals_without_other_letters_get_no_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_checks, "SMALL_TEXT", 0)
    assert advice("GATT ACAG TTAC ACGN\n", tmp_path / "text") == []


@pytest.mark.parametrize("text", [*SEGMENTED, " ".join(CHINESE.removesuffix("。\n")) + "\n"])
def test_segmented_text_gets_no_advice(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_checks, "SMALL_TEXT", 0)
    assert advice(text, tmp_path / "text") == []


@pytest.mark.parametrize("text", [KOREAN, GERMAN, RUSSIAN])
def test_text_with_spaces_gets_no_advice_to_use_a_segmenter(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_checks, "SMALL_TEXT", 0)
    (line,) = advice(20 * text + CHINESE, tmp_path / "text")
    assert "--tokenize words" in line
    assert advice(20 * text + CHINESE, tmp_path / "text", lower=True, tokenize="words") == []


def test_markup_gets_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_checks, "SMALL_TEXT", 0)
    path, advised = tmp_path / "text", ": add --strip-markup (strip_markup=True)"
    plain = 100 * PLAIN
    (line,) = advice(DOCUMENT.format(plain), path)
    assert line == "0.11% of the words have HTML or XML markup, such as '<doc'" + advised
    line, _ = advice(2 * "a good film<br /><br />and &quot;more&quot;\n", path)
    assert line == "67% of the words have HTML or XML markup, such as 'film<br'" + advised
    for text, found in ((DOCUMENT.format(plain), "curid"), (plain + "it<br />was &nbsp; the", "br")):
        (line,) = advice(text, path, tokenize="words", lower=True)
        assert line.endswith(f"% of the words have HTML or XML markup, such as '{found}'{advised}")
        assert advice(text, path, tokenize="words", lower=True, strip_markup=True) == []
    assert advice(50 * plain + "<br>\n", path) == []
    assert advice(plain + "<s> the <unk> cat </s> a < b --> &c. <url> <num>\n", path) == []
    (line,) = advice(plain + "{{cite web}} the [[link|links]] it\n", path, strip_markup=True)
    assert line.endswith(
        "% of the words have wiki markup, such as '{{cite': remove it first, with WikiExtractor for instance"
    )


@pytest.mark.parametrize(
    "items",
    [
        "17 4 233 17 9",
        "B00QX4 B01TX9 B00QX4",
        "user:anna artist/queen genre=rock",
        "cat_food_dry cat_food_wet Dog",
        "user_ID sku_A sku_XL user/ABC",
        "2f1c7a9e-6d0b-4c55-9a51-0e6f1b7d8c21 7d8c21aa-6d0b-4c55-9a51-0e6f1b7d8c99",
    ],
)
def test_sequences_of_items_get_no_advice(items: str, tmp_path: Path) -> None:
    assert advice(10 * f"{items}\n", tmp_path / "text") == []


def test_vocabulary_words_that_cannot_occur_get_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_checks, "SMALL_TEXT", 0)
    path, words = tmp_path / "text", ["was", "Paris", "wisdom", "it's", "tick-tock", "1984", "new_york"]
    text = PLAIN.replace("it", "Paris")
    for options, expected in (
        ({"lower": True}, "1 of the 7 words of the vocabulary, such as 'Paris', cannot occur in the text, which is "),
        ({"lower": True, "tokenize": "words"}, "2 of the 7 words of the vocabulary, such as 'Paris', cannot occur"),
        ({"lower": True, "digits": "zero"}, "2 of the 7 words of the vocabulary, such as 'Paris', cannot occur"),
    ):
        (line,) = advice(text, path, vocabulary=words, **options)
        assert line.startswith(expected)
    assert line.endswith(" read with --lower --digits zero: count words with the same options, as w2v vocab does")
    assert advice(text, path, vocabulary=[word.lower() for word in words], lower=True) == []


def test_a_vocabulary_file_is_checked_against_the_text_options(tmp_path: Path) -> None:
    text, words = tmp_path / "text", tmp_path / "words"
    text.write_text(100 * PLAIN)
    words.write_text("was 200\nthe 200\nWisdom 9\n")
    shown = run("train", text, "--read-vocab", words, "--lower", "--sample", 0, "-o", tmp_path / "m.bin", *QUICK).stderr
    assert (
        "w2v: 1 of the 3 words of the vocabulary, such as 'Wisdom', cannot occur in the text, which is read " in shown
    )


def test_the_error_for_an_empty_vocabulary_mentions_missing_spaces(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text(CHINESE, "utf-8")
    refused = run("train", text, "-o", tmp_path / "m.bin", code=1).stderr
    assert refused.startswith(
        "w2v: no word occurs 5 times: words have 31 characters on average, so the text has hardly"
    )


def test_the_sample_gets_no_advice(sample: Path, tmp_path: Path) -> None:
    assert advice(sample.read_text("utf-8"), tmp_path / "text") == []
    assert len(advice("".join(make.corpus(1_000, seed=1)), tmp_path / "text")) == 1


def test_decomposed_unicode_gets_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_checks, "SMALL_TEXT", 0)
    composed, decomposed = "caf\u00e9 ol\u00e9\n", "cafe\u0301\n"
    (line,) = advice(3000 * composed + decomposed, tmp_path / "text")
    assert line == (
        "'café' occurs in two Unicode spellings (NFC and NFD), which count as two words: add --normalize nfc "
        '(normalize="nfc")'
    )
    (line,) = advice(decomposed, tmp_path / "text")
    assert line.startswith("'café' is decomposed (Unicode NFD), but usually composed (NFC) in queries: ")
    assert advice(composed + 2000 * PLAIN + decomposed.replace("c", "d"), tmp_path / "text") == []
    with read_text(Corpus(tmp_path / "text"), normalize="nfc") as store:
        assert "dafé" in store.types


def test_warnings_point_to_the_calling_line(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text(1000 * RAW)

    def stop(*_: object) -> None:
        raise Stop

    calls = {
        "train": lambda: w2v.train(text, **SMALL),
        "tune": lambda: w2v.tune(text, time="9s", on_trial=stop, **SMALL),
    }
    for name, call in calls.items():
        with pytest.warns(w2v.TextWarning) as caught, suppress(Stop):
            call()
        assert {each.filename for each in caught} == {__file__}, name
        assert len(caught) == 2


def test_the_command_gives_advice_once_and_none_with_quiet(tmp_path: Path) -> None:
    text, states = tmp_path / "text", tmp_path / "states"
    text.write_text(100 * RAW)
    shown = run("train", text, "-o", tmp_path / "m.bin", *QUICK, "--checkpoint", states)
    assert [line.split(":")[0] for line in shown.stderr.splitlines()] == 2 * ["w2v"]
    assert run("train", text, "-o", tmp_path / "n.bin", *QUICK, "--quiet").output == ""
    resumed = run("train", text, "--resume", states, "-o", tmp_path / "m.bin", "--force")
    assert resumed.stderr == "w2v: resuming after 1,600 of 1,600 words\n"


def test_markup_that_is_left_after_its_removal_gets_no_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_checks, "SMALL_TEXT", 0)
    text = "a &amp;lt; b &amp;quot; c\n"
    assert "markup" in advice(text, tmp_path / "text")[0]
    assert "markup" not in "".join(advice(text, tmp_path / "text", strip_markup=True))
