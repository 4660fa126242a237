"""A reader of pickles as plain data: it never imports, looks up or calls anything that a pickle names.

It is Python's own unpickler, written in Python, with another meaning of the few opcodes that make objects. A class or
function is represented by its name, and an object by the name of its class, its arguments and state. All opcodes that
gensim models do not have are refused.
"""

from __future__ import annotations

import pickle
import struct
from typing import Any, ClassVar

from w2v.errors import W2VError, one_line
from w2v.progress import Meter, Report
from w2v.system.files import PathLike, open_regular, translate_os_errors
from w2v.system.memory import MappedFile

_PythonUnpickler: Any = pickle._Unpickler  # the one in C cannot be changed
# The methods of the opcodes that mean the same as in any pickle.
_PLAIN = {
    getattr(pickle, name)[0]: _PythonUnpickler.dispatch[getattr(pickle, name)[0]]
    for name in (
        *("PROTO", "FRAME", "STOP", "INT", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "NONE", "NEWTRUE"),
        *("NEWFALSE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8"),
        *("SHORT_BINSTRING", "BINSTRING", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_LIST", "MARK"),
        *("POP", "POP_MARK", "MEMOIZE", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET", "GLOBAL", "STACK_GLOBAL"),
    )
}
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


class GlobalName(str):
    """The name of a class or function, with its module."""

    __slots__ = ()


class DictItems(list[Any]):
    """The keys and values of a dictionary, alternating. A dict would hash hostile keys, which can take forever."""

    __slots__ = ()


class PickledObject:
    """An object, described by the name of the class or function that makes it, its arguments and its state, if any.

    The items of objects that are lists or dictionaries are not kept.
    """

    __slots__ = ("arguments", "name", "state")

    def __init__(self, name: GlobalName, arguments: Any) -> None:
        self.name, self.arguments = name, arguments
        self.state: Any = None

    def attributes(self) -> dict[str, Any]:
        """Return the attributes in the state of the object, by name."""
        state = self.state if isinstance(self.state, DictItems) else DictItems()
        names = (name.decode("latin-1") if isinstance(name, bytes) else name for name in state[::2])
        return {name: value for name, value in zip(names, state[1::2], strict=True) if isinstance(name, str)}


def read(path: PathLike, progress: Report | None = None) -> Any:
    """Read the value in a pickle.

    Check the type of a value before you format, compare or copy it. Nested values can share parts, so a small file can
    describe an exponentially large value.

    Returns:
        Numbers, strings, bytes, None, tuples, lists (also for sets), DictItems, GlobalName and PickledObject.

    Raises:
        W2VError: If the file cannot be read or is damaged, or if it has opcodes that gensim models do not have.
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


class _Opcodes(dict[int, Any]):
    """The methods of the unpickler by opcode."""

    def __missing__(self, opcode: int) -> Any:
        raise ValueError(f"it has the opcode {chr(opcode)!r}, which gensim models do not have")


class _Unpickler(_PythonUnpickler):  # type: ignore[misc]
    """Python's unpickler, without the opcodes that import, call or change anything."""

    def __init__(self, data: MappedFile, meter: Meter) -> None:
        super().__init__(data, encoding="bytes")
        self.memo, self.data, self.meter = _Memo(), data, meter

    def find_class(self, module: str, name: str) -> GlobalName:
        return GlobalName(f"{module}.{name}")

    def load_bytearray(self) -> None:
        self.append(self.read(int.from_bytes(self.read(8), "little")))

    def load_reduce(self) -> None:
        """Replace a function and its arguments by the result or by a PickledObject. The function is not called."""
        arguments, name = self.stack.pop(), self.stack.pop()
        if name == "_codecs.encode":  # Python 3 writes bytes like this in protocol 2
            text, encoding = arguments
            if not isinstance(text, str) or not isinstance(encoding, str) or encoding not in ("latin1", "latin-1"):
                raise ValueError("bytes that are not encoded as latin1")
            self.append(text.encode("latin-1"))
        elif name in ("builtins.bytes", "__builtin__.bytes") and arguments == ():
            self.append(b"")  # Python 3 writes empty bytes like this in protocol 2
        elif name == "collections.defaultdict":
            self.append(DictItems())  # gensim 3 counts phrases in one
        else:
            self.push_object(name, arguments)

    def load_new_object(self) -> None:
        arguments = self.stack.pop()
        self.push_object(self.stack.pop(), arguments)

    def load_new_object_with_keywords(self) -> None:
        self.stack.pop()
        self.load_new_object()

    def push_object(self, name: Any, arguments: Any) -> None:
        if type(name) is not GlobalName:
            raise ValueError("an object without a class")
        self.append(PickledObject(name, arguments))

    def load_state(self) -> None:
        state = self.stack.pop()
        if not isinstance(self.stack[-1], PickledObject):
            raise ValueError("a state without an object")
        self.stack[-1].state = state

    def load_dictionary(self) -> None:
        self.append(DictItems())

    def load_list(self) -> None:
        values = self.pop_mark()  # changes self.append
        self.append(values)

    def load_item(self) -> None:
        value = self.stack.pop()
        self.add([value], list)

    def load_items(self) -> None:
        self.add(self.pop_mark(), list)

    def load_pair(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.add([key, value], DictItems)

    def load_pairs(self) -> None:
        self.add(self.pop_mark(), DictItems)

    def add(self, values: list[Any], kind: type[list[Any]]) -> None:
        """Add values to the list, or keys and values to the dictionary, on top of the stack."""
        self.meter(self.data.tell(), len(self.data))
        target = self.stack[-1]
        if isinstance(target, PickledObject):
            return
        if type(target) is not kind or (kind is DictItems and len(values) % 2):
            raise ValueError("values are added to an object that cannot hold them")
        target.extend(values)

    dispatch: ClassVar[dict[int, Any]] = _Opcodes(
        _PLAIN
        | {
            pickle.BYTEARRAY8[0]: load_bytearray,
            pickle.REDUCE[0]: load_reduce,
            pickle.NEWOBJ[0]: load_new_object,
            pickle.NEWOBJ_EX[0]: load_new_object_with_keywords,
            pickle.BUILD[0]: load_state,
            pickle.EMPTY_DICT[0]: load_dictionary,
            pickle.EMPTY_SET[0]: _PLAIN[pickle.EMPTY_LIST[0]],
            pickle.FROZENSET[0]: load_list,
            pickle.APPEND[0]: load_item,
            pickle.APPENDS[0]: load_items,
            pickle.ADDITEMS[0]: load_items,
            pickle.SETITEM[0]: load_pair,
            pickle.SETITEMS[0]: load_pairs,
        }
    )
