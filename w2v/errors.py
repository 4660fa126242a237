"""What can be wrong with a user's data or settings."""


class W2VError(ValueError):
    """A user's data cannot be used as asked: what was found, where, and what to do, in one line."""


def said_by(error: Exception) -> str:
    """What an error says, in one line, and no more than is useful: a damaged file may have put anything into it."""
    text = str(error)[:300] or type(error).__name__
    return "".join(character if character.isprintable() else "?" for character in text)


class SettingsError(W2VError):
    """An option or argument has an impossible value, or contradicts another."""


class LossMissing(W2VError):
    """A file names a user's own loss that has not been imported."""
