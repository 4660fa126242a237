"""The version of this package, which pyproject.toml takes from here."""

__version__ = "0.2.0"
