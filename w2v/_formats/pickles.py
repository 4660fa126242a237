"""A reader of pickles as plain data: it never imports, looks up or calls anything that a pickle names.

It is Python's own unpickler, written in Python. For each class or function that a pickle names, it gets a subclass of
PickledObject, which only remembers its name, arguments and state.
"""

from __future__ import annotations

import pickle
import struct
from typing import Any, ClassVar, NoReturn

from w2v._errors import W2VError, one_line
from w2v._progress import Meter, Report
from w2v._system.files import PathLike, open_regular, translate_os_errors
from w2v._system.memory import MappedFile

_PythonUnpickler: Any = pickle._Unpickler  # the one in C cannot be changed
# The errors that the unpickler raises for damaged files.
DAMAGE = (
    pickle.UnpicklingError,
    EOFError,
    struct.error,
    AttributeError,
    LookupError,
    OverflowError,
    TypeError,
    ValueError,
)


class PickledObject:
    """An object, described by the name of the class or function that makes it, its arguments and its state, if any.

    The items of objects that are lists, sets or dictionaries are not kept.
    """

    __slots__ = ("arguments", "state")
    name: ClassVar[str]
    arguments: Any
    state: Any

    def __new__(cls, *arguments: Any, **_: Any) -> Any:
        made = super().__new__(cls)
        made.arguments, made.state = arguments, None
        return made

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def append(self, *_: Any) -> None:
        """Ignore an item."""

    extend = add = __setitem__ = append

    def attributes(self) -> dict[str, Any]:
        """Return the attributes in the state of the object, by name."""
        state = self.state if isinstance(self.state, dict) else {}
        names = (name.decode("latin-1") if isinstance(name, bytes) else name for name in state)
        return {name: value for name, value in zip(names, state.values(), strict=True) if isinstance(name, str)}


class _Bytes(PickledObject):
    """Bytes, which Python 3 writes as a call in protocol 2."""

    __slots__ = ()

    def __new__(cls, text: Any = "", encoding: Any = "latin1") -> Any:
        if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
            raise ValueError("bytes that are not encoded as latin1")
        return text.encode("latin-1")


class _Dict(PickledObject):
    """A dictionary with a default value, in which gensim 3 counts phrases."""

    __slots__ = ()

    def __new__(cls, *_: Any) -> Any:
        return {}


VALUES: dict[str, type[PickledObject]] = {
    **dict.fromkeys(("_codecs.encode", "builtins.bytes", "__builtin__.bytes"), _Bytes),
    "collections.defaultdict": _Dict,
}


def read(path: PathLike, progress: Report | None = None) -> Any:
    """Read the value in a pickle.

    Check the type of a value before you format or copy it. Nested values can share parts, so a small file can describe
    an exponentially large value.

    Returns:
        Plain values as Python reads them, except that sets are lists; subclasses of PickledObject for classes and
        functions; and their instances.

    Raises:
        W2VError: If the file cannot be read or is damaged.
    """
    with translate_os_errors(path), open_regular(path) as file, MappedFile(file) as data:
        try:
            unpickler = _Unpickler(data, Meter(progress, "load"))
            value = unpickler.load()
            if unpickler.stack or unpickler.metastack:
                raise ValueError("it has several values")
        except DAMAGE as error:
            problem = "its end is missing" if isinstance(error, EOFError) else one_line(error)
            raise W2VError(f"{path}: damaged: not a complete pickle: {problem}") from error
    return value


class _Memo(list[Any]):
    """The values that a pickle may use again, by number. Python's dict takes ten times the memory."""

    def __setitem__(self, number: Any, value: Any) -> None:
        if number > len(self) + 1:  # Python 2 numbers values from 1
            raise ValueError(f"a value remembered as number {number} after {len(self)}")
        self.extend([None] * (number + 1 - len(self)))
        super().__setitem__(number, value)


class _Unpickler(_PythonUnpickler):  # type: ignore[misc]
    """Python's unpickler, without what imports, and with the same memory for each byte of a file."""

    def __init__(self, data: MappedFile, meter: Meter) -> None:
        super().__init__(data, encoding="bytes")
        self.memo, self.data, self.meter = _Memo(), data, meter
        self.classes = dict(VALUES)

    def find_class(self, module: str, name: str) -> type[PickledObject]:
        full = f"{module}.{name}"
        if full not in self.classes:
            self.classes[full] = type("PickledObject", (PickledObject,), {"__slots__": (), "name": full})
        return self.classes[full]

    def get_extension(self, code: int) -> NoReturn:
        raise ValueError("a class by its number in a registry of this process")

    def load_bytearray(self) -> None:
        self.append(self.read(int.from_bytes(self.read(8), "little")))

    def load_mark(self) -> None:
        """Begin a group of items, and report how far the file is read."""
        self.meter(self.data.tell(), len(self.data))
        super().load_mark()

    dispatch: ClassVar[dict[int, Any]] = _PythonUnpickler.dispatch | {
        pickle.BYTEARRAY8[0]: load_bytearray,
        pickle.MARK[0]: load_mark,
        # An empty list takes a quarter of the memory of an empty set.
        pickle.EMPTY_SET[0]: _PythonUnpickler.dispatch[pickle.EMPTY_LIST[0]],
        pickle.ADDITEMS[0]: _PythonUnpickler.dispatch[pickle.APPENDS[0]],
        pickle.FROZENSET[0]: _PythonUnpickler.dispatch[pickle.LIST[0]],
    }
