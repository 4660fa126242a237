"""What can be wrong with a user's data or settings."""


class W2VError(ValueError):
    """A user's data cannot be used as asked: what was found, where, and what to do, in one line."""


class SettingsError(W2VError):
    """An option or argument has an impossible value, or contradicts another."""
