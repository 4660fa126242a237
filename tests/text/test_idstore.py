"""The id store: independent of block size and workers, cached, replaced if damaged, and cleaned up after errors."""

import functools
import gzip
import io
import mmap
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.helpers import IS_ROOT, LATIN_1, WORDS, full_disk, limit_disk_space, read_text, reference_ids, text_bytes
from w2v._errors import SettingsError, W2VError
from w2v._system.files import text_start
from w2v._text import corpus, idstore, long_table, phrases
from w2v._text._text import FIRST_TYPE, PADDING, PRUNED_TYPE, SENTENCE_END_ID
from w2v._text.corpus import Corpus
from w2v._text.idstore import IdStore, TypeCounts, store_of_ids
from w2v._text.normalise import Digits, Normaliser, Normalize, TextOptions, Tokenize
from w2v._text.phrases import PhraseOptions
from w2v._text.tagging import join_tagged
from w2v._text.words import Words


def words_of(store: TypeCounts) -> Words:
    return store.words(np.arange(FIRST_TYPE, store.counts.size))


def read(path: Any, block: int = corpus.BLOCK_BYTES, **options: Any) -> tuple[list[int], Words]:
    """Read a file in blocks of `block` bytes. Return its ids and words."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "BLOCK_BYTES", block)
        with read_text(Corpus(path), **options) as store:
            ids = store.ids.tolist()
            assert store.counts.tolist() == np.bincount(ids, minlength=store.counts.size).tolist()
            assert (store.tokens, store.sentences) == (len(ids) - ids.count(0), ids.count(0))
            return ids, words_of(store)


@given(
    st.lists(st.tuples(st.text("AbéΣİ1٣.'日\u0301ﬁ´", max_size=5), st.sampled_from(" \n\t")), max_size=60),
    st.integers(1, 60),
    st.integers(1, 3),
    st.builds(
        TextOptions,
        lower=st.booleans(),
        tokenize=st.sampled_from(get_args(Tokenize)),
        digits=st.sampled_from(get_args(Digits)),
        normalize=st.sampled_from(get_args(Normalize)),
    ),
)
def test_block_size_and_workers_do_not_change_the_words(
    tmp_path_factory: pytest.TempPathFactory,
    pairs: list[tuple[str, str]],
    block: int,
    workers: int,
    options: TextOptions,
) -> None:
    text = "".join(chain.from_iterable(pairs))
    words = {word: Normaliser(options).words(word) for word in text.split()}
    expected = [[each for word in line.split() for each in words[word]] for line in text.split("\n")]
    path = tmp_path_factory.mktemp("corpus") / "text"
    path.write_text(text)
    if any(expected):
        ids, types = reference_ids("\n".join(map(" ".join, expected)).encode())
        assert read(path, block, workers=workers, **asdict(options)) == (ids, [word.decode() for word in types])
    else:
        with pytest.raises(W2VError, match="text holds no words"):
            read(path, block, workers=workers, **asdict(options))


PIECES = st.sampled_from(
    [
        *(b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\0", b"\0\0", b"\r\n", b"\r", b"\n"),
        *(b"\xed\xa0\x80", b"\xed\xb0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xf0\x9f"),  # malformed UTF-8
        *(b"a", b"word", "大".encode(), b"\xc2\x85", b"\xe2\x80\xa8", b"\x1c"),
    ]
)


@given(
    st.lists(
        PIECES | st.binary(max_size=8) | st.binary(min_size=1, max_size=3).map(lambda piece: piece * 100), max_size=60
    ).map(b"".join)
    | text_bytes(WORDS | LATIN_1),
    st.integers(1, 300),
    st.integers(1, 3),
    st.sampled_from(["strict", "replace", "ignore"]),
)
def test_any_bytes_are_read_like_the_reference_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: bytes, block: int, workers: int, errors: str
) -> None:
    path = tmp_path_factory.mktemp("corpus") / "text"
    path.write_bytes(text)
    try:
        head = text_start("text", text)
        ids, words = reference_ids(head + b"\n", errors)
        assert words
    except (AssertionError, UnicodeDecodeError, W2VError):
        with pytest.raises(
            W2VError, match=r"holds no words$|is not UTF-8|is UTF-16|^[^\n]* is [a-z ]+[:,] |is truncated|damaged"
        ):
            read(path, block, workers=workers, errors=errors)
    else:
        assert read(path, block, workers=workers, errors=errors) == (ids, [word.decode() for word in words])


def test_millions_of_empty_lines_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"\n" * 5_000_000 + b"a\r\n" + b" \r\n" * 1_000_000 + b"b")
    assert read(tmp_path / "text", workers=2) == ([2, 0, 3, 0], ["a", "b"])


def test_all_kinds_of_sources_give_the_same_ids(tmp_path: Path) -> None:
    sentences = [["the", "cat", "sat"], ["on", "the", "mat\0", "ünder"], ["the"]]
    text = "\n\n".join(" ".join(sentence) for sentence in sentences)
    (tmp_path / "a.txt").write_text("\ufeff" + text)
    (tmp_path / "b.gz").write_bytes(gzip.compress(text.replace("\n", "\r\n").encode()))
    expected = ([2, 3, 4, 0, 5, 2, 6, 7, 0, 2, 0], ["the", "cat", "sat", "on", "mat\0", "ünder"])
    assert read(tmp_path / "a.txt") == expected
    assert read(tmp_path / "b.gz") == expected
    assert read(sentences) == expected
    assert read(iter(sentences)) == expected
    assert read([tmp_path / "a.txt", tmp_path / "b.gz"], workers=2) == (2 * expected[0], expected[1])


def test_words_and_lines_of_many_megabytes_are_read(tmp_path: Path) -> None:
    long = "x" * 10_000_000
    (tmp_path / "text").write_text(f"a {long} b {long}y\n\n" + "a b " * 2_000_000)
    ids, words = read(tmp_path / "text", workers=2)
    assert words == ["a", long, "b", long + "y"]
    assert ids == [2, 3, 4, 5, 0, *([2, 4] * 2_000_000), 0]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("options", [{}, {"lower": True}, {"tokenize": "words"}, {"digits": "zero"}], ids=str)
def test_malformed_text_names_file_byte_and_word(
    tmp_path: Path, options: dict[str, Any], workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "BLOCK_BYTES", 20)
    (tmp_path / "a.txt").write_text("fine\n" * 1000)
    (tmp_path / "b.txt").write_bytes(100 * "İ 1 ".encode() + b"caf\xe9 A " + 100 * b"a ")
    with pytest.raises(W2VError) as caught:
        read_text(Corpus(tmp_path), workers=workers, **options)
    assert str(caught.value) == (
        f"{tmp_path / 'b.txt'}: byte 503, in b'caf\\xe9', is not UTF-8; if it is in another encoding, "
        "such as latin-1 or cp949, add --encoding (encoding=), otherwise --errors replace or --errors ignore"
    )
    with pytest.raises(W2VError, match=r"^the text: byte 2, in b'.*', is not UTF-8"):
        read_text(Corpus([["a", "\ud800"]]), **options)


def test_a_corpus_without_words_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text(" \n \n")
    for source in (path, [], iter([]), [[]], [[], []]):
        with pytest.raises(
            W2VError, match=f"^{re.escape(str(path)) if source is path else 'the text'} holds no words$"
        ):
            read_text(Corpus(source), cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize(
    "options",
    [{"workers": 0}, {"workers": -1}, {"max_types": 0}, {"max_types": 1 << 31}, {"errors": "loose"}],
)
def test_impossible_settings_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=f"^{next(iter(options))} "):
        read_text(Corpus([["a"]]), **options)


def pruned_reference(blocks: list[bytes], max_types: int) -> tuple[list[bytes | None], Counter[bytes], int]:
    """Prune a text in plain Python. Return the words, the counts of the types, and the number of dropped types."""
    counts, text, dropped, least = Counter(), [], 0, 0
    for block in blocks:
        for line in block.removesuffix(PADDING).splitlines(keepends=True):
            counts.update(line.split())
            text += [*line.split(), b"\n"] if line.strip() else []
        if len(counts) > max_types:
            least += 1
            while sum(count > least for count in counts.values()) > max_types:
                least += 1
            gone = {word for word, count in counts.items() if count <= least}
            dropped += len(gone)
            text = [None if word in gone else word for word in text]
            counts = Counter({word: count for word, count in counts.items() if word not in gone})
    return text, counts, dropped


@given(st.lists(st.integers(0, 60), min_size=1, max_size=400), st.integers(1, 30), st.integers(1, 3))
@example([7 * number % 61 for number in range(600)], 3, 2)  # pruned several times
def test_pruning_matches_the_reference(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], max_types: int, workers: int
) -> None:
    path = tmp_path_factory.mktemp("corpus") / "text"
    path.write_text("\n".join(f"w{number * number // 40}" for number in numbers) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "BLOCK_BYTES", 100)
        patch.setattr("w2v._text.idstore.IDS_AT_ONCE", 64)
        blocks = [block.text.replace(b"\n\n", b"\n") for block in Corpus(path).blocks()]
        store = read_text(Corpus(path), max_types=max_types, workers=workers)
    text, counts, dropped = pruned_reference(blocks, max_types)
    words = words_of(store)
    names = {SENTENCE_END_ID: b"\n", PRUNED_TYPE: None}
    found = [names[i] if i in names else words[i - FIRST_TYPE].encode() for i in store.ids.tolist()]
    assert found == text
    assert dict(zip(words, store.counts[FIRST_TYPE:].tolist(), strict=True)) == {
        word.decode(): count for word, count in counts.items()
    }
    assert [word.encode() for word in words] == list(dict.fromkeys(filter(counts.get, text)))
    assert store.pruned == dropped
    assert store.tokens == len(numbers)
    assert store.remap(words).tolist() == [-1, -1, *range(len(words))]
    assert store.cumulative_known_counts(store.remap(words), 5)[-1] == sum(counts.values())


def test_remap_and_cumulative_known_counts_count_vocabulary_words() -> None:
    store = read_text(Corpus([["a", "b", "b"], ["c", "c", "c", "größer"]]))
    remap = store.remap(["c", "nowhere", "größer", "b"])
    assert remap.dtype == np.int32
    assert remap.tolist() == [-1, -1, -1, 3, 0, 2]
    assert store.cumulative_known_counts(remap, 3).tolist() == [0, 2, 4, 6]
    assert store.words(np.array([5, 2])) == ["größer", "a"]


# -- storage --


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_text("a b a\n" * 10)
    return path


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder for temporary files."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_the_temporary_file_has_no_name(text: Path, scratch: Path) -> None:
    store = read_text(Corpus(text))
    assert list(scratch.iterdir()) == []
    assert store.ids.tolist() == [2, 3, 2, 0] * 10
    assert store.ids.dtype == np.uint32
    assert not store.ids.flags.writeable
    store.close()
    store.close()
    assert store.tokens == 30
    assert not store.reused


def test_a_cache_is_reused_until_something_changes(text: Path, tmp_path: Path) -> None:
    cache = tmp_path / "new" / "cache"

    def reused(source: Any = text, **options: Any) -> bool:
        with read_text(Corpus(source), cache=cache, **options) as store:
            assert len(store.ids) == len(reference_ids(Path(text).read_bytes())[0]) * (1 + isinstance(source, list))
            return store.reused

    assert not reused()
    assert reused(workers=2)
    (name,) = [path.name for path in cache.iterdir()]
    status = text.stat()
    text.write_text("a c a\n" * 10)
    os.utime(text, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert not reused()
    assert reused()
    assert [path.name for path in cache.iterdir()] == [name]
    assert not reused(errors="ignore")
    assert not reused(max_types=10)
    options = {"lower": True, "tokenize": "words", "digits": "zero", "normalize": "nfc", "strip_markup": True}
    for name, value in options.items():
        assert not reused(**{name: value})
        assert reused(**{name: value})
    assert not reused(source=[text, text])
    assert reused()


def test_a_damaged_cache_is_replaced(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("w2v._text.idstore.IDS_AT_ONCE", 7)
    with read_text(Corpus(text), cache=tmp_path) as store:
        size, types = len(store.ids), len(store.counts)
    (path,) = tmp_path.glob("*.w2v-ids")
    content = path.read_bytes()
    counts = (4 * size + 7) // 8 * 8
    offsets = counts + 8 * types
    positions = (0, 4 * (size - 1), counts, counts + 7, offsets, offsets + 8)  # a byte of each kind of number
    changed = [content[:position] + b"\xfe" + content[position + 1 :] for position in positions]
    other = content.replace(b"w2v ids, format 1\n", b"w2v ids, format 0\n")
    for number, damaged in enumerate([content[:-1], b"", b"x" * len(content), other, *changed]):
        path.write_bytes(damaged)
        with read_text(Corpus(text), cache=tmp_path) as store:
            assert not store.reused, number
        assert path.read_bytes() == content
    assert {file.name for file in tmp_path.iterdir()} == {"text", path.name}
    assert read_text(Corpus(text), cache=tmp_path).reused


def test_a_cache_inside_the_corpus_folder_is_not_read_as_text(text: Path, tmp_path: Path) -> None:
    for reused in (False, True):
        with read_text(Corpus(tmp_path), cache=tmp_path / "cache") as store:
            assert (store.tokens, store.reused) == (30, reused)


def test_a_text_that_can_be_read_only_once_is_not_cached(tmp_path: Path) -> None:
    assert not read_text(Corpus([["a"]]), cache=tmp_path).reused
    assert list(tmp_path.iterdir()) == []


def test_a_reused_cache_restores_all_attributes(text: Path, tmp_path: Path) -> None:
    first = read_text(Corpus(text), cache=tmp_path, max_types=1)
    again = read_text(Corpus(text), cache=tmp_path, max_types=1)
    assert again.reused
    assert (again.pruned, again.tokens, again.sentences) == (first.pruned, first.tokens, first.sentences) == (1, 30, 10)
    assert again.ids.tolist() == first.ids.tolist() == [2, 1, 2, 0] * 10
    assert words_of(again) == words_of(first) == ["a"]


def test_an_unwritable_folder_is_refused_before_reading(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Corpus, "blocks", lambda self: pytest.fail("the text was read"))
    with pytest.raises(W2VError, match=r"^cannot write ids to .*text.cache: Not a directory; name another folder"):
        read_text(Corpus(text), cache=text / "cache")
    monkeypatch.setattr(tempfile, "tempdir", str(text))
    with pytest.raises(W2VError, match=r"^cannot write ids to .*text: .*; name another folder with --cache or TMPDIR$"):
        read_text(Corpus(text))


@pytest.mark.parametrize("cached", [True, False])
def test_a_full_disk_leaves_no_files(text: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch, cached: bool) -> None:
    monkeypatch.setattr("w2v._text.idstore._write_all", full_disk)
    with pytest.raises(W2VError, match="No space left on device"):
        read_text(Corpus(text), cache=scratch if cached else None)
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("cached", [True, False])
def test_insufficient_disk_space_is_noticed_early(
    text: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch, cached: bool
) -> None:
    text.write_text("a b a\n" * 1_000)  # 16,000 bytes of ids, and some for the words
    monkeypatch.setattr(corpus, "BLOCK_BYTES", 16)
    seen = []

    def read() -> IdStore:
        cache = scratch if cached else None
        return read_text(Corpus(text), cache=cache, progress=lambda now: seen.append(now.done / now.total))

    limit_disk_space(monkeypatch, 8_000)
    with pytest.raises(W2VError, match=r"needs about 0 MB more on disk, but .*scratch has only 0 MB; name another"):
        read()
    assert 0.1 < seen[-1] < 0.3
    assert list(scratch.iterdir()) == []
    limit_disk_space(monkeypatch, 16_000)
    assert read().tokens == 3_000


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("error of the caller")])
def test_interruption_leaves_no_files(text: Path, scratch: Path, cached: bool, workers: int, error: Any) -> None:
    def stop(_: Any) -> None:
        raise error

    expected: Any = OSError if isinstance(error, OSError) else error
    if cached and expected is OSError:  # taken for an error of the cache
        expected = W2VError
    with pytest.raises(expected):
        read_text(Corpus(text), cache=scratch if cached else None, workers=workers, progress=stop)
    assert list(scratch.iterdir()) == []


def test_progress_counts_bytes(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "BLOCK_BYTES", 16)
    seen = []
    text.write_text("a b a\n" * 200, newline="\n")
    read_text(Corpus(text), progress=lambda now: seen.append((now.done, now.total)))
    assert len(seen) > 2
    assert seen == sorted(seen)
    assert seen[-1] == (1200, 1200)
    read_text(Corpus([["a"]]), progress=lambda now: seen.append((now.done, now.total)))
    assert seen[-2:] == [(0, None), (0, 0)]  # the length of a list is unknown until its end


def test_partial_writes_are_completed(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class PartialWriter(io.FileIO):
        def write(self, data: Any) -> int:
            return super().write(bytes(data)[:7])

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda dir, **_: PartialWriter(Path(dir) / "slow", "w+"))
    assert read_text(Corpus(text)).ids.tolist() == [2, 3, 2, 0] * 10


def test_a_cache_is_not_reused_for_a_changed_text_with_the_old_time(tmp_path: Path) -> None:
    cache, path = tmp_path / "cache", tmp_path / "text"
    path.write_text("a b a\n" * 100_000)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as text:
        text[50_000] = text[50_000]  # only the first write to a page may update the file's time
        read_text(Corpus(path), cache=cache).close()
        assert read_text(Corpus(path), cache=cache).reused
        status = path.stat()
        text[50_002] = ord("c")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        with read_text(Corpus(path), cache=cache) as store:
            assert not store.reused
            assert words_of(store) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.chmod(0o620),
        pytest.param(
            lambda path: os.chown(path, 12345, 23456),
            marks=pytest.mark.skipif(not IS_ROOT, reason="only root may give files away"),
        ),
    ],
)
def test_a_cache_that_another_user_could_change_is_not_used(
    text: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    cache = tmp_path / "cache"
    read_text(Corpus(text), cache=cache).close()
    (path,) = cache.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    change(path)
    assert not read_text(Corpus(text), cache=cache).reused
    assert (path.stat().st_uid, path.stat().st_mode & 0o777) == (os.geteuid(), 0o600)
    assert read_text(Corpus(text), cache=cache).reused


def test_each_user_has_separate_caches(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_text(Corpus(text), cache=tmp_path / "cache").close()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    read_text(Corpus(text), cache=tmp_path / "cache").close()
    assert len(list((tmp_path / "cache").iterdir())) == 2


@pytest.mark.parametrize("plant", ["link", "link to a valid cache", "dangling link", "pipe"])
def test_planted_links_and_pipes_in_a_shared_cache_are_replaced(text: Path, tmp_path: Path, plant: str) -> None:
    cache, victim = tmp_path / "cache", tmp_path / "victim"
    read_text(Corpus(text), cache=cache).close()
    (path,) = cache.iterdir()
    content = path.read_bytes()
    path.unlink()
    if plant == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(victim)
    target = {"link": b"mine", "link to a valid cache": content}.get(plant)
    if target:
        victim.write_bytes(target)
    assert not read_text(Corpus(text), cache=cache).reused
    assert path.read_bytes() == content
    assert not path.is_symlink()
    assert victim.read_bytes() == target if target else not victim.exists()


PEAK = """
import sys
from w2v._system import memory
from w2v._text.corpus import Corpus
from w2v._text.idstore import read_corpus
print(read_corpus(Corpus(sys.argv[1]), workers=2).tokens)
print(memory.peak_resident_bytes())
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the peak memory in Linux's /proc")
@pytest.mark.parametrize("pack", [bytes, partial(gzip.compress, compresslevel=1)], ids=["plain", "gzip"])
def test_memory_does_not_grow_with_the_text(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    line = b" ".join(b"word%d" % (i * i % 50_021) for i in range(50_000)) + b"\n"
    peaks = []
    for times in (10, 110):
        (tmp_path / "text").write_bytes(pack(line * times))
        done = subprocess.run([sys.executable, "-c", PEAK, tmp_path / "text"], capture_output=True, check=True)
        tokens, peak = map(int, done.stdout.split())
        assert tokens == times * 50_000
        peaks.append(peak)
    assert peaks[1] - peaks[0] < 8 << 20  # the text grows by 45 MB


@given(st.lists(text_bytes(WORDS), min_size=1, max_size=4))
def test_merged_types_of_parts_equal_the_types_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    whole = folder / "whole"
    whole.write_bytes(b"".join([b"first\n", *contents]))
    stores = []
    for number, content in enumerate(contents):
        (folder / str(number)).write_bytes((b"" if number else b"first\n") + content)
        stores.append(read_text(Corpus(folder / str(number)).part(0, 1)))  # parts may be empty
    merged = functools.reduce(TypeCounts.concat, stores)
    with read_text(Corpus(whole)) as store:
        assert merged.counts.tolist() == store.counts.tolist()
        assert words_of(merged) == words_of(store)
        assert merged.types_checksum() == store.types_checksum()
        assert (merged.tokens, merged.sentences) == (store.tokens, store.sentences)


def test_each_part_has_its_own_cache(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"three four\none two\n")
    for reused in (False, True):
        for number in range(2):
            with read_text(Corpus(path).part(number, 2), cache=tmp_path / "cache") as store:
                assert store.reused == reused
                assert words_of(store) == [["three", "four"], ["one", "two"]][number]
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_ids_from_elsewhere_keep_the_type_of_their_keys(tmp_path: Path) -> None:
    words = Words.of(["", "", "7", "9"])
    pieces = [(np.array([2, 3], np.uint32), 0.5), (np.array([2, 0], np.uint32), 1)]
    counts = np.array([1, 0, 2, 1])
    with store_of_ids(pieces, lambda: (counts, words), tmp_path, key_type="int", noun="node") as store:
        assert (store.key_type, store.noun, store.tokens) == ("int", "node", 3)
        assert store.ids.tolist() == [2, 3, 2, 0]
        assert words_of(store) == ["7", "9"]


@pytest.mark.parametrize(
    ("key_types", "merged"),
    [(["int", "int"], "int"), (["int", "str"], "str"), (["int", "empty"], "int"), (["empty", "empty"], "str")],
)
def test_merged_types_are_numbers_if_all_parts_have_numbers(key_types: list[Any], merged: str) -> None:
    words = Words.of(["", "", "7"])
    parts = []
    for key_type in key_types:
        counts = np.array([0, 0, 0 if key_type == "empty" else 2])
        key_type = "str" if key_type == "empty" else key_type
        parts.append(TypeCounts(counts, words.with_padding(), words.offsets, 3, key_type, noun="item"))
    found = functools.reduce(TypeCounts.concat, parts)
    assert (found.key_type, found.noun, found.pruned) == (merged, "item", 6)


def test_every_temporary_store_checks_the_disk_space(
    text: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = text.with_name("table.csv")
    table.write_text("i,s\n" + "1,1\n" * 100)
    with read_text(Corpus(text)) as store:
        for module, name in ((idstore, "SPACE_CHECK_BLOCKS"), (phrases, "PIECE_IDS"), (long_table, "ROWS_IN_MEMORY")):
            monkeypatch.setattr(module, name, 1)
        limit_disk_space(monkeypatch, 0)
        for write in (
            lambda: join_tagged({"1": store, "2": store}, ["a"], scratch),
            lambda: phrases._join_phrases(store, PhraseOptions(), ["a b"], scratch, 1, None),
            lambda: read_text(Corpus(table), item="i", session="s"),
        ):
            with pytest.raises(W2VError, match="needs about 0 MB more on disk"):
                write()
