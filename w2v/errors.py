"""The errors that a user's data or settings can cause."""


class W2VError(ValueError):
    """A user's data cannot be used: one line that says what was found, where, and what to do."""


class SettingsError(W2VError):
    """An option or argument has an impossible value, or contradicts another."""


class CutFile(W2VError):
    """A file ends before its content does."""


class NothingToTrain(W2VError):
    """A text has no word of the vocabulary, or subsampling has left no word with another near it."""


class LossMissing(W2VError):
    """A file names a user's own loss that has not been imported."""


def one_line(error: Exception) -> str:
    """The message of an error as one short printable line, since a damaged file can put any text into it."""
    text = str(error)[:300] or type(error).__name__
    return "".join(character if character.isprintable() else "?" for character in text)
