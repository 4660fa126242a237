"""The exceptions that gensim raises for files, in the place of w2v's."""

from collections.abc import Iterator
from contextlib import contextmanager

from w2v.errors import CutFile, W2VError
from w2v.system.files import PathLike


@contextmanager
def gensims_exceptions(path: PathLike) -> Iterator[None]:
    """Raises OSError, such as FileNotFoundError, for a file that the system refuses to open, EOFError for one that is
    cut, and W2VError, a ValueError, for other damage.
    """
    try:
        yield
    except CutFile as error:
        raise EOFError(str(error)) from error
    except W2VError as error:
        cause = error.__cause__
        if isinstance(cause, OSError):
            raise OSError(cause.errno, cause.strerror, str(path)) from None
        raise
