"""Pickles as plain data, by an interpreter of a few opcodes that imports, looks up and calls nothing.

The standard unpickler is no base for this: whatever its find_class returns, it calls, and sets attributes of; it takes
classes from copyreg's cache without asking find_class, and reserves memory for any number in the file. Here, a class or
function is its name, and an object is the name of its class with arguments and state.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pickletools import genops
from sys import getsizeof
from typing import IO, Any, cast

from w2v.errors import W2VError, one_line
from w2v.progress import Meter, Report
from w2v.system.files import PathLike, errors_named, open_regular
from w2v.system.memory import MappedFile

GROWTH = 16  # of what a pickle says in memory over its own size: the vocabularies of gensim 3 take 9 to 13 times
SLACK = 48 << 20  # bytes
STEP = 1 << 14  # opcodes between two reports
INTEGER_BITS = 1024  # of a number, at most: the largest in a model of gensim, of a random state, have 128

# What a pickle may say that it calls: what occurs in models of gensim. Nothing of it is called here, either.
CALLS = re.compile(
    r"copy_?reg\._reconstructor|_codecs\.encode|(builtins|__builtin__)\.(bytes|frozenset|object|set)"
    r"|(collections|UserString)\.(OrderedDict|defaultdict)"  # UserString: by Python 3.4, in protocol 2
    r"|numpy\.(dtype|random\.[\w.]+|_?core\.(multiarray\.(_reconstruct|scalar)|numeric\._frombuffer))"
)


class Name(str):
    """The name of a class or function, with its module."""

    __slots__ = ()


class Pairs(list[Any]):
    """The keys and values of a dictionary, in turn: hashing a stranger's keys can take without end."""

    __slots__ = ()


class Made:
    """An object: the name of its class or of the function that makes it, with its arguments and, if given, its state.

    Of one that is a list or dictionary, too, the items are left out.
    """

    __slots__ = ("arguments", "name", "state")

    def __init__(self, name: Name, arguments: Any) -> None:
        self.name, self.arguments = name, arguments
        self.state: Any = None

    def attributes(self) -> dict[str, Any]:
        """Its attributes by name: those of its state that have one."""
        state = self.state if isinstance(self.state, Pairs) else Pairs()
        names = (name.decode("latin-1") if isinstance(name, bytes) else name for name in state[::2])
        return {name: value for name, value in zip(names, state[1::2], strict=True) if isinstance(name, str)}


def read(path: PathLike, progress: Report | None = None) -> Any:
    """What a pickle holds: numbers, strings, bytes, None, tuples, lists (also for sets), Pairs, Name and Made.

    A value can occur in it any number of times, and values that hold each other exponentially often: never format,
    compare or copy one before its type is known. Text is different: all of its occurrences together have a limit.

    Raises W2VError for a file that cannot be read or is damaged, for opcodes and calls that models of gensim do not
    have, and where the objects would take more than GROWTH times the size of the file.
    """
    with errors_named(path), open_regular(path) as file, MappedFile(file) as data:
        size, meter, machine = len(data), Meter(progress, "load"), _Machine(GROWTH * len(data) + SLACK)
        try:
            for number, (opcode, argument, position) in enumerate(genops(cast(IO[bytes], data))):
                action = ACTIONS.get(opcode.name)
                if action is None:
                    raise _Refused(f"the opcode {opcode.name} at byte {position}")
                action(machine, argument)
                if number % STEP == 0:
                    meter(position or 0, size)
            (found,) = machine.stack
        except _Refused as error:
            raise W2VError(f"{path}: refused: its pickle holds {one_line(error)}; no model of gensim does") from None
        except (ValueError, IndexError, TypeError, OverflowError) as error:
            raise W2VError(f"{path}: damaged: no whole pickle: {one_line(error)}") from error
    meter(size, size)
    return found


class _Refused(Exception):
    pass


class _Machine:
    """The stack of values, the starts of open sequences on it, and the values remembered by number."""

    def __init__(self, limit: int) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: list[Any] = []
        self.left = limit  # bytes

    def push(self, value: Any) -> None:
        self.charge(getsizeof(value) + 8)
        self.stack.append(value)

    def charge(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise _Refused(f"objects of more than {GROWTH} times its size")

    def pop(self, count: int = 1) -> list[Any]:
        """The last values, in their order. Raises IndexError if the sequence that is open has fewer."""
        start = len(self.stack) - count
        if start < (self.marks[-1] if self.marks else 0):
            raise IndexError("a value is missing")
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def integer(self, value: int) -> None:
        if value.bit_length() > INTEGER_BITS:
            raise _Refused(f"a number of {value.bit_length():,} bits")
        self.push(value)

    def mark(self, argument: None) -> None:
        self.charge(36)
        self.marks.append(len(self.stack))

    def recall(self, number: int) -> None:
        value = self.memo[number]
        # Text counts each time, so that whoever takes all texts of a list, for instance, may copy them.
        self.charge(8 + (len(value) if isinstance(value, str | bytes) else 0))
        self.stack.append(value)

    def sequence(self) -> list[Any]:
        return self.pop(len(self.stack) - self.marks.pop())

    def remember(self, number: int) -> None:
        self.charge(8)
        if number > len(self.memo) + 1:  # Python 2 counts from 1
            raise _Refused(f"a value remembered as number {number} after {len(self.memo)}")
        self.memo.extend([None] * (number + 1 - len(self.memo)))
        self.memo[number] = self.stack[-1]

    def add(self, values: list[Any], kind: type[list[Any]]) -> None:
        """Add values to the list, or keys and values to the dictionary, at the end of the stack."""
        self.charge(8 * len(values))
        target = self.stack[-1]
        if isinstance(target, Made):
            return
        if type(target) is not kind or (kind is Pairs and len(values) % 2):
            raise ValueError("values are added to what cannot take them")
        target.extend(values)

    def call(self, argument: None) -> None:
        name, arguments = self.pop(2)
        if type(name) is not Name or not CALLS.fullmatch(name):
            raise _Refused(f"a call of {name}" if isinstance(name, str) else "a call of what is no function")
        if name == "_codecs.encode":  # of bytes, by Python 3 in protocol 2
            text, coding = arguments
            if not isinstance(text, str) or not isinstance(coding, str) or coding not in ("latin1", "latin-1"):
                raise _Refused("bytes that are not coded as latin1")
            self.push(text.encode("latin-1"))
        elif name.endswith("builtin__.bytes") and arguments == ():  # by the same
            self.push(b"")
        else:
            self.push(Made(name, arguments))

    def make(self, values: list[Any]) -> None:
        name, arguments = values
        if type(name) is not Name:
            raise ValueError("an object of no class")
        self.push(Made(name, arguments))

    def build(self, argument: None) -> None:
        made, state = self.pop(2)
        if not isinstance(made, Made):
            raise ValueError("the state of no object")
        made.state = state
        self.stack.append(made)

    def name(self, module: Any, name: Any) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise ValueError("a name that is no text")
        self.push(Name(f"{module}.{name}"))


Action = Callable[[_Machine, Any], object]


def _pushing(make: Callable[[Any], Any]) -> Action:
    return lambda machine, argument: machine.push(make(argument))


ACTIONS: dict[str, Action] = {
    **dict.fromkeys(("PROTO", "FRAME", "STOP"), lambda machine, _: None),
    **dict.fromkeys(
        (
            *("BININT", "BININT1", "BININT2", "BINFLOAT"),
            *("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"),
        ),
        _pushing(lambda argument: argument),
    ),
    **dict.fromkeys(("INT", "LONG1", "LONG4"), _Machine.integer),
    **dict.fromkeys(("SHORT_BINSTRING", "BINSTRING"), _pushing(lambda argument: argument.encode("latin-1"))),
    "NONE": _pushing(lambda _: None),
    "NEWTRUE": _pushing(lambda _: True),
    "NEWFALSE": _pushing(lambda _: False),
    "EMPTY_TUPLE": _pushing(lambda _: ()),
    **dict.fromkeys(("EMPTY_LIST", "EMPTY_SET"), _pushing(lambda _: [])),
    "EMPTY_DICT": _pushing(lambda _: Pairs()),
    "MARK": _Machine.mark,
    "TUPLE": lambda machine, _: machine.push(tuple(machine.sequence())),
    **{
        f"TUPLE{count}": lambda machine, _, count=count: machine.push(tuple(machine.pop(count)))  # type: ignore[misc]
        for count in (1, 2, 3)
    },
    "FROZENSET": lambda machine, _: machine.push(machine.sequence()),
    "APPEND": lambda machine, _: machine.add(machine.pop(), list),
    **dict.fromkeys(("APPENDS", "ADDITEMS"), lambda machine, _: machine.add(machine.sequence(), list)),
    "SETITEM": lambda machine, _: machine.add(machine.pop(2), Pairs),
    "SETITEMS": lambda machine, _: machine.add(machine.sequence(), Pairs),
    "POP": lambda machine, _: machine.pop(),
    "POP_MARK": lambda machine, _: machine.sequence(),
    "MEMOIZE": lambda machine, _: machine.remember(len(machine.memo)),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), _Machine.remember),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), _Machine.recall),
    "GLOBAL": lambda machine, both: machine.name(*both.split(" ", 1)),
    "STACK_GLOBAL": lambda machine, _: machine.name(*machine.pop(2)),
    "REDUCE": _Machine.call,
    "NEWOBJ": lambda machine, _: machine.make(machine.pop(2)),
    "NEWOBJ_EX": lambda machine, _: machine.make(machine.pop(3)[:2]),
    "BUILD": _Machine.build,
}
