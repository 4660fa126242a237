"""Files that give each word its code in a binary tree: a word and its code of zeros and ones on each line."""

from w2v.errors import W2VError
from w2v.files import PathLike, lines

MAX_CODE_LENGTH = 1024  # bits


def read_codes(path: PathLike) -> dict[str, str]:
    """The code of each word in the file, in the file's order. Blank lines are skipped.

    Raises W2VError, naming the line, for a file that cannot be read, a line that is not a word and a code of at most
    MAX_CODE_LENGTH bits, a word that is not UTF-8 and a word that has a code already.
    """
    codes: dict[str, str] = {}
    for number, line in lines(path):
        fields = line.split(None, 2)
        if not fields:
            continue
        place = f"{path}, line {number}"
        if len(fields) != 2 or fields[1].strip(b"01") or len(fields[1]) > MAX_CODE_LENGTH:
            raise W2VError(f"{place}: not a word and its code of at most {MAX_CODE_LENGTH} zeros and ones")
        try:
            word = fields[0].decode()
        except UnicodeDecodeError:
            raise W2VError(f"{place}: {fields[0][:60]!r} is not UTF-8") from None
        if word in codes:
            raise W2VError(f"{place}: {word[:60]!r} has a code already")
        codes[word] = fields[1].decode()
    return codes
