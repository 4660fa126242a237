"""The version of this package, read once, for reading it again may fail while a run is out of memory or files."""

from importlib.metadata import version

__version__ = version("w2v")
