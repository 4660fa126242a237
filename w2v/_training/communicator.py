"""Communication between the ranks of an MPI job that train one model: messages, shared errors, signals, heartbeats.

Code that may run on several ranks gets a OneProcess or a Communicator. The methods of OneProcess have no effect.

mpi4py is imported only under an MPI launcher. After the communicator is created, no call in this module blocks inside
MPI: it polls instead. A background thread exchanges heartbeats with the neighbouring ranks, so that the job ends when a
rank hangs or loses its machine.
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

from w2v._errors import SettingsError, W2VError, error_message, install_command, one_line
from w2v._system.launcher import mpi_rank_and_size
from w2v._system.signals import TERMINATION_SIGNALS
from w2v._system.threads import allowed_processors

HEARTBEAT_SECONDS = 1.0  # between heartbeats
HEARTBEAT_TIMEOUT = 20  # seconds without a heartbeat after which the job ends; W2V_RANK_TIMEOUT changes it
HEARTBEAT_TAG = 7  # the MPI tag of these messages
MESSAGE_POLL_SECONDS = 2e-4  # between checks of a pending message: MPI makes progress only when it is called
SPIN_SECONDS = 2e-3  # at the start of a wait, poll this long without sleeping
LAST_HEARTBEAT_POLL_SECONDS = 5e-3  # between checks for the other rank's last heartbeat


def join_ranks() -> OneProcess:
    """Return a communicator for the ranks of this MPI job; a OneProcess unless an MPI launcher started several ranks.

    If the launcher does not tell the number of ranks, rank 0 may train without mpi4py: it is probably the only rank.

    Raises:
        W2VError: mpi4py is missing, or it belongs to another MPI than the launcher.
    """
    started = mpi_rank_and_size()
    if started is None or started[1] == 1:
        return OneProcess()
    rank, size = started  # size 0 if the launcher does not tell it
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: no MPI library
        if (rank, size) == (0, 0):  # probably the only rank; any other rank raises the error below
            return OneProcess()
        raise W2VError(
            f"training on several ranks needs mpi4py: {install_command('mpi')} ({one_line(error)})"
        ) from error
    if MPI.COMM_WORLD.size > 1:
        return Communicator(MPI)
    if size:
        library = one_line(MPI.Get_library_version().splitlines()[0])
        raise W2VError(
            f"the launcher started {size} ranks, but mpi4py uses {library}, which sees only one: start them "
            "with the mpiexec of that MPI"
        )
    return OneProcess()


class OneProcess:
    """The only process of a run: what Communicator does for several ranks, without other ranks.

    Attributes:
        rank: The number of this rank, from 0. Rank 0, the root, writes all files and messages.
        size: The number of ranks.
    """

    rank: int = 0
    size: int = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None: ...

    @property
    def is_root(self) -> bool:
        """Whether this is rank 0."""
        return self.rank == 0

    def collective_errors(self) -> AbstractContextManager[None]:
        """Return a context manager that raises an error of any rank on all ranks, with the name of the rank."""
        return nullcontext()

    def assert_same(self, values: Mapping[str, Any]) -> None:
        """Raise W2VError on all ranks unless they all have the same JSON values."""

    def allreduce(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of all ranks' arrays on every rank. The arrays must have the same shape and dtype."""
        return values

    def sum_of(self, number: int) -> int:
        """Return the sum of the ranks' numbers."""
        return number

    def default_workers(self) -> int | None:
        """Return the number of threads for this rank; None for the default of Settings."""
        return None


class Communicator(OneProcess):
    """All ranks of an MPI job.

    All ranks must call the methods in the same order, except `abort`, which one rank may call.
    """

    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi
        self._comm = mpi.COMM_WORLD.Dup()
        self.rank, self.size = self._comm.rank, self._comm.size
        if mpi.Query_thread() < mpi.THREAD_MULTIPLE:
            raise W2VError("this MPI was built without support for threads (MPI_THREAD_MULTIPLE): use another")
        timeout = os.environ.get("W2V_RANK_TIMEOUT", str(HEARTBEAT_TIMEOUT))
        if not timeout.isdecimal() or int(timeout) < 1:
            raise SettingsError(f"W2V_RANK_TIMEOUT {timeout}: it must be a whole number of seconds, 1 or more")
        self._timeout = int(timeout)
        self._shared_error: BaseException | None = None  # the error that all ranks raise
        self._ended = threading.Event()
        self._hosts = [""] * self.size
        self._hosts = self.allgather(socket.gethostname())
        self._heartbeat = threading.Thread(target=self._exchange_heartbeats, daemon=True)
        self._heartbeat.start()
        atexit.register(self._end_heartbeat)  # runs before mpi4py finalizes MPI

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        """Wait for the other ranks.

        If this rank has an error that the others do not know of, abort all ranks instead, because the others would wait
        for it forever.
        """
        if isinstance(error, Exception) and error is not self._shared_error:
            self.abort(f"{self.name(self.rank)}: {one_line(error_message(error))}")
        if error is None or error is self._shared_error:
            self.barrier()
        self._end_heartbeat()

    def _end_heartbeat(self) -> None:
        self._ended.set()
        self._heartbeat.join()

    def name(self, rank: int) -> str:
        """Return the number and the host of a rank, for messages."""
        return f"rank {rank} ({self._hosts[rank]})"

    # -- messages ------------------------------------------------------------------------------

    def wait(self, request: Any) -> None:
        """Wait until an MPI request completes, without blocking inside MPI."""
        end = time.monotonic() + SPIN_SECONDS
        while not request.Test():
            time.sleep(MESSAGE_POLL_SECONDS if time.monotonic() > end else 0)

    def barrier(self) -> None:
        """Wait until all ranks have called this method."""
        self.wait(self._comm.Ibarrier())

    def allreduce(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of all ranks' arrays on every rank. The arrays must have the same shape and dtype."""
        total = np.empty_like(values)
        self.wait(self.start_allreduce(np.ascontiguousarray(values), total))
        return total

    def start_allreduce(self, values: NDArray[Any], total: NDArray[Any]) -> Any:
        """Start an allreduce of the ranks' arrays into `total`, and return the MPI request; see `wait`."""
        return self._comm.Iallreduce(values, total, self._mpi.SUM)

    def sum_of(self, number: int) -> int:
        """Return the sum of the ranks' numbers."""
        return int(self.allreduce(np.array([number], np.int64))[0])

    def max_of(self, number: int) -> int:
        """Return the largest of the ranks' numbers."""
        return max(map(int, self.allgather(str(number))))

    def broadcast(self, array: NDArray[Any], root: int = 0) -> None:
        """Overwrite a contiguous array with the array of rank `root`."""
        self.wait(self._comm.Ibcast([array.view(np.uint8), self._mpi.BYTE], root))

    def allgather(self, text: str) -> list[str]:
        """Return the texts of all ranks, by rank, on every rank."""
        own = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
        sizes = np.empty(self.size, np.int64)
        self.wait(self._comm.Iallgather(np.array([len(own)], np.int64), sizes))
        gathered = np.empty(int(sizes.sum()), np.uint8)
        starts = np.cumsum(sizes) - sizes
        self.wait(self._comm.Iallgatherv(own, [gathered, sizes.tolist(), starts.tolist(), self._mpi.BYTE]))
        parts = np.split(gathered, starts[1:])
        return [part.tobytes().decode("utf-8", "surrogatepass") for part in parts]

    # -- shared errors -------------------------------------------------------------------------

    @contextmanager
    def collective_errors(self) -> Iterator[None]:
        """Return a context manager that raises an error of any rank on all ranks, with the name of the rank."""
        own = None
        try:
            yield
        except Exception as error:
            own = error
        messages = self.allgather("" if own is None else one_line(error_message(own)))
        failed = [rank for rank, message in enumerate(messages) if message]
        if failed:
            is_same = len(set(messages)) == 1  # all ranks have the same error: the message need not name a rank
            text = f"{self.name(failed[0])}: {messages[failed[0]]}"
            self._shared_error = own if own is not None and is_same else W2VError(text)
            raise self._shared_error from own

    def assert_same(self, values: Mapping[str, Any]) -> None:
        """Raise W2VError on all ranks unless they all have the same JSON values."""
        own = {name: json.dumps(value) for name, value in values.items()}
        by_rank: list[dict[str, str]] = [json.loads(text) for text in self.allgather(json.dumps(own))]
        root = by_rank[0]
        for rank, other in enumerate(by_rank):
            for name in [*root, *other]:
                if other.get(name) != root.get(name):
                    self._shared_error = W2VError(
                        f"{self.name(rank)} has {name} {one_line(other.get(name, 'none'))}, and {self.name(0)} "
                        f"{one_line(root.get(name, 'none'))}: start all ranks with the same version, settings and text"
                    )
                    raise self._shared_error

    def default_workers(self) -> int:
        """Return the number of threads for this rank: its share of the processors that it may run on.

        Ranks on the same host with the same CPU affinity divide their processors among them.
        """
        allowed = allowed_processors()
        processor_sets = self.allgather(json.dumps([self._hosts[self.rank], allowed]))
        return max(1, len(allowed) // processor_sets.count(processor_sets[self.rank]))

    # -- signals and failed ranks --------------------------------------------------------------

    @contextmanager
    def deferred_signals(self) -> Iterator[Callable[[], bool]]:
        """Return a context manager that defers termination signals to the end of the `with` block.

        It yields a function that returns True once a signal has arrived.
        """
        received: list[int] = []
        handlers = {number: signal.getsignal(number) for number in TERMINATION_SIGNALS}
        for number, handler in handlers.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, lambda number, _: received.append(number))
        try:
            yield lambda: bool(received)
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            if received:
                signal.raise_signal(received[0])

    def abort(self, message: str) -> NoReturn:
        """Print a message and end the processes of all ranks."""
        print(f"w2v: {message}", file=sys.stderr, flush=True)
        self._comm.Abort(1)
        raise AssertionError

    def _exchange_heartbeats(self) -> None:
        """Send heartbeats to the next rank, and abort the job if the previous rank sends none for too long.

        Silence is measured in iterations of this loop, not by the clock, so that a suspended job can continue.
        """
        comm = self._mpi.COMM_WORLD
        successor, predecessor = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        messages = np.array([[False], [True]])  # True is a rank's last heartbeat
        is_last = np.array([False])  # the last message of the predecessor
        ended, silent_seconds = False, 0.0
        while not (ended and is_last[0]):
            if ended:
                time.sleep(LAST_HEARTBEAT_POLL_SECONDS)
            else:
                ended = self._ended.wait(HEARTBEAT_SECONDS)
                comm.Isend(messages[int(ended)], successor, HEARTBEAT_TAG).Free()
            silent_seconds += LAST_HEARTBEAT_POLL_SECONDS if ended else HEARTBEAT_SECONDS
            while not is_last[0] and comm.Iprobe(predecessor, HEARTBEAT_TAG):
                comm.Recv(is_last, predecessor, HEARTBEAT_TAG)
                silent_seconds = 0.0
            if silent_seconds > self._timeout and not is_last[0]:
                self.abort(f"{self.name(predecessor)} has not answered for {self._timeout} seconds: the run ends")
