"""Safe writing of files: names, modes, links, and restricted folders."""

import errno
import io
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest

import w2v
from w2v._errors import W2VError
from w2v._system import files
from w2v._system.files import (
    atomic_folder,
    atomic_write,
    atomic_write_together,
    check_files_unchanged,
    check_unchanged,
    open_regular,
    reserve_space,
)


def write(path: Path, **options: Any) -> None:
    with atomic_write(path, **options) as file:
        file.write(b"new")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("letter", ["a", "大", "😀"])
def test_the_longest_possible_name_can_be_written(tmp_path: Path, letter: str) -> None:
    path = tmp_path / (letter * (251 // len(letter.encode())) + ".bin")
    write(path)
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o444])
def test_replacing_a_file_keeps_its_mode(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "old"
    path.touch()
    path.chmod(kept)
    write(path)
    assert path.read_bytes() == b"new"
    assert mode(path) == kept


def test_a_new_file_is_private_until_it_is_complete(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    with atomic_write(tmp_path / "new") as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
    assert mode(tmp_path / "new") == mode(tmp_path / "usual")
    write(tmp_path / "secret", mode=0o600)
    assert mode(tmp_path / "secret") == 0o600


def test_failed_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "v.bin"
    path.write_bytes(b"old")

    def fail() -> None:
        with atomic_write(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_created_during_writing_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "v.bin"

    def write(during: Any) -> None:
        with atomic_write(path, replace=False) as file:
            file.write(b"second")
            during()

    for during in (lambda: path.write_bytes(b"first"), pytest.fail):  # the second time, the file exists from the start
        with pytest.raises(W2VError, match=r"cannot write .*v\.bin: File exists; name another file, or replace it w"):
            write(during)
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_links_and_devices_are_written_through(tmp_path: Path) -> None:
    (tmp_path / "link.bin").symlink_to(tmp_path / "real.bin")
    write(tmp_path / "link.bin")
    assert (tmp_path / "link.bin").is_symlink()
    assert (tmp_path / "real.bin").read_bytes() == b"new"
    write(Path("/dev/null"))
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("name", ["missing/v.bin", "", "file/v.bin"])
def test_unwritable_paths_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(W2VError, match=f"cannot write {re.escape(str(tmp_path / name))}: "):
        write(tmp_path / name)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("target", ["existing", "missing"])
def test_a_planted_link_is_not_followed(tmp_path: Path, target: str, replace: bool) -> None:
    victim, path = tmp_path / "victim", tmp_path / "predictable"
    if target == "existing":
        victim.write_bytes(b"mine")
    path.symlink_to(victim)
    if replace:
        write(path, follow=False)
        assert not path.is_symlink()
        assert path.read_bytes() == b"new"
    else:
        with pytest.raises(W2VError, match="File exists"):
            write(path, follow=False, replace=False)
        assert path.is_symlink()
    assert victim.read_bytes() == b"mine" if target == "existing" else not victim.exists()


def test_links_in_a_chain_of_folders_are_followed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "up").symlink_to("folder/..")
    (tmp_path / "folder/link").symlink_to("../up/folder/../new")
    write(tmp_path / "up/folder/link")
    assert (tmp_path / "folder/link").is_symlink()
    assert (tmp_path / "new").read_bytes() == b"new"
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(W2VError, match=r"cannot write .*circle: Too many levels"):
        write(tmp_path / "circle")


def test_an_open_pipe_without_a_name_can_be_written() -> None:
    reader, writer = os.pipe()
    write(Path(f"/dev/fd/{writer}"), replace=False)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        assert file.read() == b"new"


def test_a_planted_pipe_is_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    write(tmp_path / "pipe", follow=False)
    assert (tmp_path / "pipe").read_bytes() == b"new"


@pytest.mark.parametrize("call", ["open", "fsync"])
def test_a_folder_that_cannot_be_synced_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    system_open, system_fsync = os.open, os.fsync

    def unreadable(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        if Path(path) == tmp_path and flags == os.O_RDONLY:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return system_open(path, flags, *rest, **options)

    def files_only(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        system_fsync(descriptor)

    monkeypatch.setattr(os, "open", unreadable) if call == "open" else monkeypatch.setattr(os, "fsync", files_only)
    write(tmp_path / "new")
    assert (tmp_path / "new").read_bytes() == b"new"


@pytest.mark.parametrize("code", [None, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSPC])
def test_space_is_reserved_where_possible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int | None) -> None:
    """Only a full disk is an error. `code` is the error of the system, or None if it has no such function."""

    def fail(*arguments: int) -> None:
        raise OSError(code, os.strerror(code or 0))

    if code is None:
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
    else:
        monkeypatch.setattr(os, "posix_fallocate", fail, raising=False)
    with (tmp_path / "new").open("wb") as file:
        if code == errno.ENOSPC:
            with pytest.raises(OSError, match=re.escape(os.strerror(errno.ENOSPC))):
                reserve_space(file, 1000)
        else:
            reserve_space(file, 1000)


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    before = sorted(Path("/dev/fd").iterdir())
    write(tmp_path / "new")
    write(tmp_path / "new")
    with pytest.raises(W2VError, match="exists"):
        write(tmp_path / "new", replace=False)
    with atomic_write_together([tmp_path / "new", tmp_path / "other"]):
        pass
    with pytest.raises(ZeroDivisionError), atomic_write_together([tmp_path / "new", tmp_path / "other"]):
        raise ZeroDivisionError
    with atomic_folder(tmp_path / "folder"):
        pass
    with open_regular(tmp_path / "new"), pytest.raises(W2VError, match="it is a folder"):
        open_regular(tmp_path / "folder")
    assert sorted(Path("/dev/fd").iterdir()) == before


def test_training_without_a_temporary_folder_needs_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "nowhere")])
    train = partial(w2v.train, [["a", "b"]] * 9, min_count=1, vector_size=4, epochs=1, workers=1, sample=0)
    with pytest.raises(W2VError, match="variable TMPDIR, or with --cache"):
        train()
    train(cache=tmp_path)


def record_calls(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    """Record the calls that write a file or the folder to disk, and the names that files get."""
    calls: list[str] = []
    fsync, replace, rename = os.fsync, os.replace, os.rename

    def recorded_fsync(descriptor: int) -> None:
        calls.append("sync folder" if os.path.samestat(os.fstat(descriptor), folder.stat()) else "sync file")
        fsync(descriptor)

    def recorded(change: Any) -> Any:
        def call(old: Any, new: Any, **options: Any) -> None:
            name = Path(new).name
            calls.append(f"hide {Path(old).name}" if name.endswith(".tmp") else f"write {name}")
            change(old, new, **options)

        return call

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(os, "replace", recorded(replace))
    monkeypatch.setattr(os, "rename", recorded(rename))
    return calls


def test_data_and_names_are_on_disk_before_the_next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a power failure could leave an empty file, or a mixture of old and new files."""
    with monkeypatch.context() as patch:
        calls = record_calls(patch, tmp_path)
        write(tmp_path / "words")
    assert calls == ["sync file", "write words", "sync folder"]
    write_pair(tmp_path, b"old", True)
    with monkeypatch.context() as patch:
        calls = record_calls(patch, tmp_path)
        write_pair(tmp_path, b"new", True)
    hidden = ["hide matrix", "hide words", "sync folder"]
    assert calls == ["sync file", "sync file", *hidden, "write words", "sync folder", "write matrix", "sync folder"]
    with monkeypatch.context() as patch:
        calls = record_calls(patch, tmp_path)
        with atomic_folder(tmp_path / "folder") as temporary:
            assert re.fullmatch(r"\.folder\.\w{16}\.tmp", temporary.name)
    assert calls == ["write folder", "sync folder"]


def test_a_new_file_in_place_of_a_private_one_is_never_readable_by_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, modes, system_open = tmp_path / "secret", [], os.open
    path.touch(mode=0o600)

    def recorded(path: Any, flags: int, mode: int = 0, **options: Any) -> int:
        if flags & os.O_RDWR:
            modes.append(mode)
        return system_open(path, flags, mode, **options)

    monkeypatch.setattr(os, "open", recorded)
    write(path)
    assert modes
    assert all(mode & 0o077 == 0 for mode in modes)


@pytest.mark.parametrize("change", [b"longer", b"same"])
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, change: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"data")
    os.utime(path, ns=(0, 0))
    earlier = path.stat()

    def read(info: os.stat_result | None = None, error: Exception | None = None) -> None:
        with path.open("rb") as file, check_unchanged("file", file, info):
            if info is None:
                path.write_bytes(change)
            if error:
                raise error

    message = rf"^file changed while it was read: it had 4 bytes, and has {len(change)} now; try again when nothing"
    with pytest.raises(W2VError, match=message):
        read()
    with pytest.raises(W2VError, match=message):  # the file changed before the block
        read(earlier)
    read(path.stat())
    with pytest.raises(ValueError, match="damaged"):
        read(earlier, ValueError("damaged"))
    with check_unchanged("memory", io.BytesIO()):
        pass
    with Path("/dev/zero").open("rb") as device, check_unchanged("device", device):
        pass


@pytest.mark.parametrize(
    ("path", "expected"),
    [("a\0b", False), ("a\ud800", False), ("a\udc80", True), ("大", True), (Path("a"), True), ("a" * 300, True)],
)
def test_names_that_no_file_can_have_are_recognised(path: Any, expected: bool) -> None:
    assert files.is_nameable(path) == expected


def test_errors_of_the_system_name_the_file_and_the_action() -> None:
    def fail(error: OSError, *arguments: str) -> None:
        with files.translate_os_errors(*arguments):
            raise error

    missing = FileNotFoundError(errno.ENOENT, "No such file")
    for arguments, message in (
        (["a\nb"], r"cannot read a\nb: No such file"),
        (["a", "write"], "cannot write a: No such file"),
        (["a", "write", "; try b"], "cannot write a: No such file; try b"),
        (["a\0b", "write"], r"cannot write 'a\\x00b': no file can have this name"),
    ):
        with pytest.raises(W2VError) as caught:
            fail(missing, *arguments)
        assert str(caught.value) == message
    with pytest.raises(W2VError, match=r"^cannot read a: only text$"):
        fail(OSError("only text"), "a")


def test_a_folder_is_created_only_when_it_is_complete(tmp_path: Path) -> None:
    def create(error: BaseException | None = None) -> None:
        with atomic_folder(tmp_path / "folder") as temporary:
            (temporary / "file").touch()
            assert not (tmp_path / "folder").exists()
            if error:
                raise error

    with pytest.raises(KeyboardInterrupt):
        create(KeyboardInterrupt())
    assert list(tmp_path.iterdir()) == []
    create()
    assert [path.name for path in tmp_path.rglob("*")] == ["folder", "file"]
    with pytest.raises(W2VError, match=r"cannot write .*folder: it exists already; name another folder"):
        create()
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(W2VError, match="it exists already"), atomic_folder(tmp_path / "link"):
        pass
    assert len(list(tmp_path.iterdir())) == 2


CHANGES = ("rename", "replace", "link", "unlink", "fsync")  # the calls that change names or write changes to disk


class Killed(BaseException):
    """Simulates the death of the process: no later call has an effect."""


def inject_failures(monkeypatch: pytest.MonkeyPatch, at: int, error: BaseException, *, later: bool) -> list[str]:
    """Make call number `at` to CHANGES fail and, with `later`, all calls after it. Return the list of calls so far."""
    calls = []

    def make(name: str, system: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            calls.append(name)
            if len(calls) == at or (later and len(calls) > at):
                raise error
            return system(*arguments, **options)

        return call

    for name in CHANGES:
        monkeypatch.setattr(os, name, make(name, getattr(os, name)))
    return calls


def write_pair(folder: Path, content: bytes, replace: bool) -> None:
    with atomic_write_together([folder / "words", folder / "matrix"], replace) as files:
        for file in files:
            file.write(content)


@pytest.mark.parametrize("old", [b"old", b""], ids=["old files", "no files"])
@pytest.mark.parametrize(
    ("error", "later"),
    [(OSError(errno.EIO, "broken"), False), (OSError(errno.EROFS, "read-only"), True), (Killed(), True)],
    ids=["one call fails", "one call and all later ones fail", "killed"],
)
def test_files_that_belong_together_are_never_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bytes, error: BaseException, later: bool
) -> None:
    pair = [tmp_path / "words", tmp_path / "matrix"]
    seen, at, calls = set(), 0, [""]
    while len(calls) > at:  # make each call fail in turn
        at += 1
        for path in tmp_path.iterdir():
            path.unlink()
        if old:
            write_pair(tmp_path, old, True)
        with monkeypatch.context() as patch:
            calls = inject_failures(patch, at, error, later=later)
            message = ""
            try:
                write_pair(tmp_path, b"new", bool(old))
            except (W2VError, Killed) as raised:
                message = str(raised)
        words, matrix = (path.read_bytes() if path.exists() else b"" for path in pair)
        seen.add((words, matrix))
        temporary = [path for path in tmp_path.iterdir() if path not in pair]
        if matrix or not later:
            assert (words, matrix) in {(old, old), (b"new", b"new")}
            assert later or not temporary
        elif old:  # without the matrix, nothing can be read; both old files still exist, and an error names them
            kept = [path.name for path in temporary if path.read_bytes() == old]
            assert len(kept) + (words == old) == 2
            assert all(f" is now {name}" in message for name in kept if isinstance(error, OSError))
    assert {(old, old), (b"new", b"new")} <= seen


def test_one_file_and_a_device_are_written_together(tmp_path: Path) -> None:
    for name in ("new", "old"):
        with atomic_write_together([Path("/dev/null"), tmp_path / "file"]) as files:
            for file in files:
                file.write(name.encode())
        assert (tmp_path / "file").read_bytes() == name.encode()
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_files_created_during_writing_together_are_not_replaced(tmp_path: Path) -> None:
    def write(name: str) -> None:
        with atomic_write_together([tmp_path / "words", tmp_path / "matrix"], replace=False):
            (tmp_path / name).write_bytes(b"mine")

    for name in ("words", "matrix"):
        with pytest.raises(W2VError, match=rf"cannot write .*{name}: File exists"):
            write(name)
        assert list(tmp_path.iterdir()) == [tmp_path / name]
        (tmp_path / name).unlink()


def modify(path: Path) -> None:
    path.write_bytes(b"newer")
    os.utime(path, ns=(0, 1))


def replace_with_same_times(path: Path) -> None:
    status = path.stat()
    path.with_name("new").write_bytes(b"new")
    path.with_name("new").replace(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("change", [modify, replace_with_same_times, Path.unlink])
@pytest.mark.parametrize("error", [None, ValueError("damaged")])
@pytest.mark.parametrize("name", ["first", "second"])
def test_a_change_while_files_are_read_is_an_error(
    tmp_path: Path, change: Callable[[Path], None], error: Exception | None, name: str
) -> None:
    for path in (tmp_path / "first", tmp_path / "second"):
        path.write_bytes(b"old")

    def read(path: Path | None, error: Any) -> None:
        with check_files_unchanged(tmp_path / "first") as watch:
            watch([tmp_path / "second"])
            if path:
                change(path)
            if error:
                raise error

    with pytest.raises(W2VError, match=f"{name} changed while it was read: try again when nothing writes to it"):
        read(tmp_path / name, error)
    read(None, None)
    with pytest.raises(ValueError, match="damaged"):
        read(None, ValueError("damaged"))


def test_open_regular_refuses_other_files_without_waiting(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("/dev/zero")
    for path, kind in ((pipe, "pipe"), (link, "device"), (tmp_path, "folder")):
        with pytest.raises(W2VError, match=f"cannot read {path}: it is a {kind}"):
            files.open_regular(path)
    (tmp_path / "file").write_bytes(b"some")
    with files.open_regular(tmp_path / "file") as file:
        assert file.read() == b"some"


def test_the_last_of_files_that_belong_together_is_restored_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / "words", tmp_path / "matrix"]
    for path in paths:
        path.write_text("old")
    renamed, rename = [], Path.rename

    def recorded(path: Path, target: Path) -> Path:
        renamed.append(Path(target).name)
        return rename(path, target)

    def refuse(path: Path, target: Path) -> NoReturn:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Path, "rename", recorded)
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(W2VError, match="Input/output error"), atomic_write_together(paths):
        pass
    assert renamed[-2:] == ["words", "matrix"]
    assert [path.read_text() for path in paths] == ["old", "old"]
    assert sorted(tmp_path.iterdir()) == sorted(paths)


@pytest.mark.skipif(sys.platform != "win32", reason="other systems replace open files")
def test_open_file_is_not_replaced_on_windows(tmp_path: Path) -> None:
    path = tmp_path / "m.bin"
    write(path)
    with path.open("rb"), pytest.raises(W2VError, match=r"m\.bin: Permission denied, or a program has"):
        write(path)
    assert [each.name for each in tmp_path.iterdir()] == ["m.bin"]
    write(path)
