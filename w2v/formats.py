"""What a format of another package needs; docs/formats.md says how to add one."""

from w2v._formats.base import Format
from w2v._formats.vector_file import VectorFile

__all__ = ["Format", "VectorFile"]
