"""The version of this package, read once: reading it again may fail when a run is out of memory or file descriptors."""

from importlib.metadata import version

__version__ = version("w2v")
