"""The errors that a user's data or settings can cause."""


class W2VError(ValueError):
    """A user's data cannot be used: one line that says what was found, where, and what to do."""


class SettingsError(W2VError):
    """An option or argument has an impossible value, or contradicts another."""


class LossMissing(W2VError):
    """A file names a user's own loss that has not been imported."""


def one_line(error: object) -> str:
    """The message of an error, or other text, as one short printable line: a damaged file can put anything into it."""
    text = str(error)[:300] or type(error).__name__
    return "".join(character if character.isprintable() else "?" for character in text)
