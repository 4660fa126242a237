"""A reader of pickles as plain data: it interprets a few opcodes, and never imports, looks up or calls anything.

Python's own unpickler cannot be restricted enough. It calls whatever find_class returns and sets its attributes, takes
classes from copyreg's cache without asking find_class, and reserves as much memory as a number in the file demands.
Here, a class or function is represented by its name, and an object by the name of its class, its arguments and state.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pickletools import genops
from sys import getsizeof
from typing import IO, Any, cast

from w2v.errors import W2VError, one_line
from w2v.progress import Meter, Report
from w2v.system.files import PathLike, open_regular, translate_os_errors
from w2v.system.memory import MappedFile

# The content of a pickle may take GROWTH times the size of the file plus SLACK bytes of memory.
GROWTH = 16  # gensim 3 vocabularies need 9 to 13
SLACK = 48 << 20
REPORT_STEP = 1 << 14  # opcodes between two progress reports
MARK_BYTES = 36  # memory of a mark: an entry of a list (8 bytes) and an int (28 bytes)
MAX_INTEGER_BITS = 1024  # the largest integers in gensim models, in random states, have 128 bits

# Functions and classes that gensim models call in their pickles. A pickle that calls anything else is refused.
ALLOWED_CALLS = re.compile(
    r"copy_?reg\._reconstructor|_codecs\.encode|(builtins|__builtin__)\.(bytes|frozenset|object|set)"
    r"|(collections|UserString)\.(OrderedDict|defaultdict)"  # Python 3.4 wrote UserString for collections in protocol 2
    r"|numpy\.(dtype|random\.[\w.]+|_?core\.(multiarray\.(_reconstruct|scalar)|numeric\._frombuffer))"
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
    describe an exponentially large value. Strings are safe: this function limits the total length of all their
    occurrences.

    Returns:
        Numbers, strings, bytes, None, tuples, lists (also for sets), DictItems, GlobalName and PickledObject.

    Raises:
        W2VError: If the file cannot be read or is damaged, if it has opcodes or calls that gensim models do not have,
            or if its objects would take more than GROWTH times the size of the file plus SLACK.
    """
    with translate_os_errors(path), open_regular(path) as file, MappedFile(file) as data:
        size, meter, machine = len(data), Meter(progress, "load"), _Machine(GROWTH * len(data) + SLACK)
        try:
            for number, (opcode, argument, position) in enumerate(genops(cast(IO[bytes], data))):
                handler = HANDLERS.get(opcode.name)
                if handler is None:
                    raise _Forbidden(f"the opcode {opcode.name} at byte {position}")
                handler(machine, argument)
                if number % REPORT_STEP == 0:
                    meter(position or 0, size)
            (value,) = machine.stack
        except _TooLarge:
            raise W2VError(
                f"{path}: refused: its objects would take more than {GROWTH} times the size of the file, far more "
                "than in gensim models"
            ) from None
        except _Forbidden as error:
            raise W2VError(
                f"{path}: refused: its pickle holds {one_line(error)}, which gensim models do not have"
            ) from None
        except (ValueError, IndexError, TypeError, OverflowError) as error:
            raise W2VError(f"{path}: damaged: not a complete pickle: {one_line(error)}") from error
    meter(size, size)
    return value


class _Forbidden(Exception):
    pass


class _TooLarge(Exception):
    pass


class _Machine:
    """The state of the interpreter: the stack of values, marks where open sequences start, and the memo."""

    def __init__(self, limit: int) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: list[Any] = []
        self.remaining_bytes = limit

    def push(self, value: Any) -> None:
        self.charge(getsizeof(value) + 8)
        self.stack.append(value)

    def charge(self, size: int) -> None:
        self.remaining_bytes -= size
        if self.remaining_bytes < 0:
            raise _TooLarge

    def pop(self, count: int = 1) -> list[Any]:
        """Remove and return the last `count` values, in order. Raise IndexError if the open sequence has fewer."""
        start = len(self.stack) - count
        if start < (self.marks[-1] if self.marks else 0):
            raise IndexError("a value is missing")
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def push_integer(self, value: int) -> None:
        if value.bit_length() > MAX_INTEGER_BITS:
            raise _Forbidden(f"a number of {value.bit_length():,} bits")
        self.push(value)

    def push_mark(self, argument: None) -> None:
        self.charge(MARK_BYTES)
        self.marks.append(len(self.stack))

    def memo_get(self, number: int) -> None:
        value = self.memo[number]
        # The length of a text is charged each time it occurs, so callers can safely copy every text in a list.
        self.charge(8 + (len(value) if isinstance(value, str | bytes) else 0))
        self.stack.append(value)

    def pop_mark(self) -> list[Any]:
        """Remove and return the values after the last mark."""
        return self.pop(len(self.stack) - self.marks.pop())

    def memo_put(self, number: int) -> None:
        self.charge(8)
        if number > len(self.memo) + 1:  # Python 2 numbers values from 1
            raise _Forbidden(f"a value remembered as number {number} after {len(self.memo)}")
        self.memo.extend([None] * (number + 1 - len(self.memo)))
        self.memo[number] = self.stack[-1]

    def add(self, values: list[Any], kind: type[list[Any]]) -> None:
        """Add values to the list, or keys and values to the dictionary, on top of the stack."""
        self.charge(8 * len(values))
        target = self.stack[-1]
        if isinstance(target, PickledObject):
            return
        if type(target) is not kind or (kind is DictItems and len(values) % 2):
            raise ValueError("values are added to an object that cannot hold them")
        target.extend(values)

    def replace_call(self, argument: None) -> None:
        """Replace a function and its arguments by the result or by a PickledObject. The function is not called."""
        name, arguments = self.pop(2)
        if type(name) is not GlobalName or not ALLOWED_CALLS.fullmatch(name):
            raise _Forbidden(
                f"a call of {name}" if isinstance(name, str) else "a call of a value that is not a function"
            )
        if name == "_codecs.encode":  # Python 3 writes bytes like this in protocol 2
            text, encoding = arguments
            if not isinstance(text, str) or not isinstance(encoding, str) or encoding not in ("latin1", "latin-1"):
                raise _Forbidden("bytes that are not encoded as latin1")
            self.push(text.encode("latin-1"))
        elif name.endswith("builtin__.bytes") and arguments == ():
            self.push(b"")  # Python 3 writes empty bytes like this in protocol 2
        elif name == "collections.defaultdict":
            self.push(DictItems())  # gensim 3 counts phrases in one
        else:
            self.push(PickledObject(name, arguments))

    def push_object(self, values: list[Any]) -> None:
        name, arguments = values
        if type(name) is not GlobalName:
            raise ValueError("an object without a class")
        self.push(PickledObject(name, arguments))

    def set_state(self, argument: None) -> None:
        target, state = self.pop(2)
        if not isinstance(target, PickledObject):
            raise ValueError("a state without an object")
        target.state = state
        self.stack.append(target)

    def push_global(self, module: Any, name: Any) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise ValueError("a name that is not text")
        self.push(GlobalName(f"{module}.{name}"))


Handler = Callable[[_Machine, Any], object]


def _push_result(make: Callable[[Any], Any]) -> Handler:
    return lambda machine, argument: machine.push(make(argument))


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("PROTO", "FRAME", "STOP"), lambda machine, _: None),
    **dict.fromkeys(
        (
            *("BININT", "BININT1", "BININT2", "BINFLOAT"),
            *("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"),
        ),
        _push_result(lambda argument: argument),
    ),
    **dict.fromkeys(("INT", "LONG1", "LONG4"), _Machine.push_integer),
    **dict.fromkeys(("SHORT_BINSTRING", "BINSTRING"), _push_result(lambda argument: argument.encode("latin-1"))),
    "NONE": _push_result(lambda _: None),
    "NEWTRUE": _push_result(lambda _: True),
    "NEWFALSE": _push_result(lambda _: False),
    "EMPTY_TUPLE": _push_result(lambda _: ()),
    **dict.fromkeys(("EMPTY_LIST", "EMPTY_SET"), _push_result(lambda _: [])),
    "EMPTY_DICT": _push_result(lambda _: DictItems()),
    "MARK": _Machine.push_mark,
    "TUPLE": lambda machine, _: machine.push(tuple(machine.pop_mark())),
    **{
        f"TUPLE{count}": lambda machine, _, count=count: machine.push(tuple(machine.pop(count)))  # type: ignore[misc]
        for count in (1, 2, 3)
    },
    "FROZENSET": lambda machine, _: machine.push(machine.pop_mark()),
    "APPEND": lambda machine, _: machine.add(machine.pop(), list),
    **dict.fromkeys(("APPENDS", "ADDITEMS"), lambda machine, _: machine.add(machine.pop_mark(), list)),
    "SETITEM": lambda machine, _: machine.add(machine.pop(2), DictItems),
    "SETITEMS": lambda machine, _: machine.add(machine.pop_mark(), DictItems),
    "POP": lambda machine, _: machine.pop(),
    "POP_MARK": lambda machine, _: machine.pop_mark(),
    "MEMOIZE": lambda machine, _: machine.memo_put(len(machine.memo)),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), _Machine.memo_put),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), _Machine.memo_get),
    "GLOBAL": lambda machine, names: machine.push_global(*names.split(" ", 1)),
    "STACK_GLOBAL": lambda machine, _: machine.push_global(*machine.pop(2)),
    "REDUCE": _Machine.replace_call,
    "NEWOBJ": lambda machine, _: machine.push_object(machine.pop(2)),
    "NEWOBJ_EX": lambda machine, _: machine.push_object(machine.pop(3)[:2]),
    "BUILD": _Machine.set_state,
}
