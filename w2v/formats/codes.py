"""Files of codes: a word and its code of zeros and ones on each line."""

from collections.abc import Iterator

from w2v.detect import lines
from w2v.errors import W2VError
from w2v.system.files import PathLike

MAX_CODE_LENGTH = 1024  # bits


def read_codes(path: PathLike) -> Iterator[tuple[str, str, str]]:
    """The place (file and line, for messages), the word and the code of each line that is not empty.

    Raises W2VError for a file that cannot be read and for a line of another form.
    """
    for number, line in lines(path):
        fields, place = line.split(None, 2), f"{path}, line {number}"
        if not fields:
            continue
        if len(fields) != 2 or fields[1].strip(b"01") or len(fields[1]) > MAX_CODE_LENGTH:
            raise W2VError(f"{place}: not a word and its code of at most {MAX_CODE_LENGTH} zeros and ones")
        try:
            word = fields[0].decode()
        except UnicodeDecodeError:
            raise W2VError(f"{place}: {fields[0][:60]!r} is not UTF-8") from None
        yield place, word, fields[1].decode()
