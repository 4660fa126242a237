"""The ranks of an MPI job that train one model: their messages, checks that they agree, and what ends the job.

mpi4py is imported only under an MPI launcher. No call here blocks inside MPI: the program polls, and meanwhile a thread
sends and expects signs of life, so that no rank waits for ever for one that hangs or whose machine is lost.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from w2v.errors import SettingsError, W2VError, described, install, one_line
from w2v.system.launcher import rank_and_size
from w2v.system.threads import processors

BEAT = 1.0  # seconds between signs of life
PATIENCE = 20  # seconds without a sign of life; W2V_RANK_TIMEOUT changes it
SIGN_OF_LIFE = 7  # the tag of these messages
LOOK = 2e-4  # seconds between checks of a message under way: MPI makes progress only when it is called
BUSY = 2e-3  # seconds that a rank which only waits checks without sleeping
LAST_LOOK = 5e-3  # seconds between checks for the last sign of life
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def join_ranks() -> Communicator | None:
    """The ranks that this process trains with; None unless an MPI launcher started several.

    Raises W2VError if mpi4py is missing or belongs to another MPI than the launcher; but rank 0 of an unknown number of
    ranks trains alone without mpi4py.
    """
    found = rank_and_size()
    if found is None or found[1] == 1:
        return None
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: no MPI library
        if found == (0, 0):  # probably the only rank; others would end with the error below
            return None
        raise W2VError(f"training on several ranks needs mpi4py: {install('mpi')} ({one_line(error)})") from error
    if MPI.COMM_WORLD.size > 1:
        return Communicator(MPI)
    if found[1]:
        library = one_line(MPI.Get_library_version().splitlines()[0])
        raise W2VError(
            f"the launcher started {found[1]} ranks, but mpi4py uses {library}, which sees only one: start them with "
            "the mpiexec of that MPI"
        )
    return None


class Communicator:
    """All ranks of a job. Each method but `abort` must be called by all ranks in the same order.

    Attributes:
        rank, size: the number of this rank, from 0, and of all. Rank 0 leads: it writes all files and messages.
    """

    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi
        self._comm = mpi.COMM_WORLD.Dup()
        self.rank, self.size = self._comm.rank, self._comm.size
        if mpi.Query_thread() < mpi.THREAD_MULTIPLE:
            raise W2VError("this MPI was built without support for threads (MPI_THREAD_MULTIPLE): use another")
        patience = os.environ.get("W2V_RANK_TIMEOUT", str(PATIENCE))
        if not patience.isdecimal() or int(patience) < 1:
            raise SettingsError(f"W2V_RANK_TIMEOUT {patience}: it must be a whole number of seconds, 1 or more")
        self._patience = int(patience)
        self._shared_error: BaseException | None = None  # an error that all ranks raise
        self._ended = threading.Event()
        self._hosts = [""] * self.size
        self._hosts = self.gather(socket.gethostname())
        self._watch = threading.Thread(target=self._exchange_signs_of_life, daemon=True)
        self._watch.start()
        atexit.register(self._end_watch)  # before MPI ends

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        """End all ranks after an error that the others do not know of: they would wait for this rank."""
        if isinstance(error, Exception) and error is not self._shared_error:
            self.abort(f"{self.name(self.rank)}: {one_line(described(error))}")
        if error is None or error is self._shared_error:
            self.barrier()
        self._end_watch()

    def _end_watch(self) -> None:
        self._ended.set()
        self._watch.join()

    @property
    def is_root(self) -> bool:
        return bool(self.rank == 0)

    def name(self, rank: int) -> str:
        return f"rank {rank} ({self._hosts[rank]})"

    # -- messages -------------------------------------------------------------------------------

    def wait(self, request: Any) -> None:
        """Wait for a message of MPI without blocking inside it."""
        end = time.monotonic() + BUSY
        while not request.Test():
            time.sleep(LOOK if time.monotonic() > end else 0)

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        self.wait(self._comm.Ibarrier())

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """The sum over all ranks of arrays of one shape and type."""
        total = np.empty_like(values)
        self.wait(self.start_sum(np.ascontiguousarray(values), total))
        return total

    def start_sum(self, values: NDArray[Any], total: NDArray[Any]) -> Any:
        """Begin to sum arrays over all ranks; the result is in `total` once the returned request is done."""
        return self._comm.Iallreduce(values, total, self._mpi.SUM)

    def total(self, number: int) -> int:
        return int(self.sum(np.array([number], np.int64))[0])

    def maximum(self, number: int) -> int:
        return max(map(int, self.gather(str(number))))

    def broadcast(self, array: NDArray[Any], root: int = 0) -> None:
        """Overwrite a contiguous array with that of rank `root`."""
        self.wait(self._comm.Ibcast([array.view(np.uint8), self._mpi.BYTE], root))

    def gather(self, text: str) -> list[str]:
        """A text of each rank, by rank."""
        own = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
        sizes = np.empty(self.size, np.int64)
        self.wait(self._comm.Iallgather(np.array([len(own)], np.int64), sizes))
        found = np.empty(int(sizes.sum()), np.uint8)
        starts = np.cumsum(sizes) - sizes
        self.wait(self._comm.Iallgatherv(own, [found, sizes.tolist(), starts.tolist(), self._mpi.BYTE]))
        parts = np.split(found, starts[1:])
        return [part.tobytes().decode("utf-8", "surrogatepass") for part in parts]

    # -- agreement ------------------------------------------------------------------------------

    @contextmanager
    def collective_errors(self) -> Iterator[None]:
        """A step that all ranks take: an error on one of them is raised on all, with the name of its rank."""
        own = None
        try:
            yield
        except Exception as error:
            own = error
        messages = self.gather("" if own is None else one_line(described(own)))
        failed = [rank for rank, message in enumerate(messages) if message]
        if failed:
            everywhere = len(set(messages)) == 1  # then the message names no rank
            text = f"{self.name(failed[0])}: {messages[failed[0]]}"
            self._shared_error = own if own is not None and everywhere else W2VError(text)
            raise self._shared_error from own

    def assert_same(self, about: Mapping[str, Any]) -> None:
        """Raise W2VError, on all ranks, unless all have the same JSON values."""
        own = {name: json.dumps(value) for name, value in about.items()}
        found: list[dict[str, str]] = [json.loads(text) for text in self.gather(json.dumps(own))]
        for rank, other in enumerate(found):
            for name in [*found[0], *other]:
                if other.get(name) != found[0].get(name):
                    self._shared_error = W2VError(
                        f"{self.name(rank)} has {name} {one_line(other.get(name, 'none'))}, and {self.name(0)} "
                        f"{one_line(found[0].get(name, 'none'))}: start all ranks with the same"
                    )
                    raise self._shared_error

    def threads(self) -> int:
        """The threads for this rank: the processors that it may use, divided among the ranks that may use the same."""
        mask = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        processor_sets = self.gather(json.dumps([self._hosts[self.rank], mask]))
        return max(1, processors() // processor_sets.count(processor_sets[self.rank]))

    # -- signals and faults ---------------------------------------------------------------------

    @contextmanager
    def signals_noted(self) -> Iterator[Callable[[], bool]]:
        """Delay signals that end the process until the `with` block ends; the yielded function says if one arrived."""
        noted: list[int] = []
        before = {number: signal.getsignal(number) for number in SIGNALS}
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, lambda number, _: noted.append(number))
        try:
            yield lambda: bool(noted)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            if noted:
                signal.raise_signal(noted[0])

    def abort(self, message: str) -> NoReturn:
        """End the processes of all ranks, after one line."""
        print(f"w2v: {message}", file=sys.stderr, flush=True)
        self._comm.Abort(1)
        raise AssertionError

    def _exchange_signs_of_life(self) -> None:
        """Send signs of life to the next rank, and expect them from the rank before.

        Silence is counted in turns of this loop, not by the clock, so that a suspended job can continue.
        """
        comm = self._mpi.COMM_WORLD
        after, before = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        signs, received = np.array([[False], [True]]), np.array([False])
        ended, silent = False, 0.0
        while not (ended and received[0]):
            if ended:
                time.sleep(LAST_LOOK)
            else:
                ended = self._ended.wait(BEAT)
                comm.Isend(signs[int(ended)], after, SIGN_OF_LIFE).Free()
            silent += LAST_LOOK if ended else BEAT
            while not received[0] and comm.Iprobe(before, SIGN_OF_LIFE):
                comm.Recv(received, before, SIGN_OF_LIFE)
                silent = 0.0
            if silent > self._patience and not received[0]:
                self.abort(f"{self.name(before)} has not answered for {self._patience} seconds: the run ends")


def is_root(communicator: Communicator | None) -> bool:
    """Return whether this process writes files and messages."""
    return communicator is None or communicator.is_root


def collective_errors(communicator: Communicator | None) -> AbstractContextManager[None]:
    """Raise an error of one rank on all of them, if there are several; see Communicator.collective_errors."""
    return communicator.collective_errors() if communicator else nullcontext()
