"""The signals that ask a program to end, which differ between systems."""

import _thread
import signal
import sys
from collections.abc import Callable

if sys.platform == "win32":
    from w2v.system.windows import call_when_console_closes

    # Windows sends SIGBREAK for Ctrl-Break, and break_on_console_close for a closed console.
    TERMINATION_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGBREAK)
    REPEATED_SIGNALS: tuple[signal.Signals, ...] = ()

    def end_on_bus_error() -> None:
        """Do nothing: Windows does not let other processes truncate a memory-mapped file."""

    def break_on_console_close() -> Callable[[], None]:
        """Handle the closing of the console as SIGBREAK. Return a function that ends this."""
        return call_when_console_closes(lambda: _thread.interrupt_main(signal.SIGBREAK))

else:
    from w2v.system import _bus_error

    TERMINATION_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    REPEATED_SIGNALS = (signal.SIGXCPU,)  # the system repeats it every second at the limit of processor time

    def end_on_bus_error() -> None:
        """End the process with one line if another process truncates a memory-mapped file."""
        _bus_error.end_on_bus_error()

    def break_on_console_close() -> Callable[[], None]:
        """Do nothing: the system sends SIGHUP when a terminal is closed. Return a function that does nothing."""
        return lambda: None


def signal_name(number: int) -> str:
    """Return the name of a signal for messages, such as Ctrl-C."""
    name = signal.Signals(number).name
    return {"SIGINT": "Ctrl-C", "SIGBREAK": "Ctrl-Break or a closed console"}.get(name, name)
