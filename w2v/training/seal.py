"""Seals of checkpoints, which show that a run of this user wrote one to this folder.

A checkpoint names files to read and to write. Those of a stranger's checkpoint must not be used: they could make a run
overwrite any file of the user. So a checkpoint contains a keyed hash (HMAC-SHA-256, RFC 2104) of the folder and of its
content. Only this user can read the key: $XDG_STATE_HOME/w2v/key, by default ~/.local/state/w2v/key.
"""

from __future__ import annotations

import hmac
import json
import logging
import os
import secrets
from contextlib import suppress
from pathlib import Path

from w2v.errors import W2VError
from w2v.system.files import atomic_write, is_own

KEY_BYTES = 32

log = logging.getLogger("w2v")


def key_path() -> Path:
    """The file of the key. Raises RuntimeError if the user has no home folder."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (state if state.is_absolute() else Path.home() / ".local" / "state") / "w2v" / "key"


def make_key() -> None:
    """Make this user's key if there is none. Warns if that is impossible: checkpoints then have no seal."""
    try:
        path = key_path()
        if not os.path.lexists(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(W2VError), atomic_write(path, replace=False, mode=0o600) as file:
                file.write(secrets.token_bytes(KEY_BYTES))
        _key()
    except (OSError, RuntimeError, ValueError) as error:
        log.warning("no key for the seals of checkpoints: %s; --resume will need the corpus and -o again", error)


def seal(folder: Path, checksum: str) -> str:
    """The seal of a content with this checksum in a folder; "" without a key."""
    try:
        key = _key()
    except (OSError, RuntimeError, ValueError):
        return ""
    text = json.dumps([os.path.realpath(folder), checksum])
    return hmac.digest(key, text.encode(), "sha256").hex()


def is_sealed(found: str, folder: Path, checksum: str) -> bool:
    """Whether `found` is the seal of a content with this checksum in a folder."""
    expected = seal(folder, checksum)
    return bool(expected) and hmac.compare_digest(found.encode(), expected.encode())


def _key() -> bytes:
    """The key. Raises OSError, RuntimeError or ValueError if there is none that only this user can read."""
    path = key_path()
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if not is_own(descriptor, others=0o077):
            raise ValueError(f"{path} must be a file of this user with mode 0600")
        key = os.read(descriptor, KEY_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(key) != KEY_BYTES:
        raise ValueError(f"{path} holds no key: remove it")
    return key
