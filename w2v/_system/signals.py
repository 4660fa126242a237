"""The signals that ask a program to end, which differ between systems."""

import _thread
import signal
import sys
import time

if sys.platform == "win32":
    from w2v._system.windows import handle_console_events

    # `signal_console_events` sends SIGBREAK for Ctrl-Break, and if the console is closed.
    TERMINATION_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGBREAK)
    REPEATED_SIGNALS: tuple[signal.Signals, ...] = ()

    def end_on_bus_error() -> None:
        """Do nothing: Windows does not let other processes truncate a memory-mapped file."""

    def signal_console_events() -> None:
        """Turn Ctrl-Break, the end of the console and the end of the session into SIGBREAK, if it has a handler."""
        handle_console_events(_send_break)

    def _send_break(event: int) -> bool:
        if event == signal.CTRL_C_EVENT or signal.getsignal(signal.SIGBREAK) == signal.SIG_DFL:
            return False
        _thread.interrupt_main(signal.SIGBREAK)
        while event != signal.CTRL_BREAK_EVENT:  # the system ends the process when this function returns
            time.sleep(1)
        return True

else:
    from w2v._system import _bus_error

    TERMINATION_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    REPEATED_SIGNALS = (signal.SIGXCPU,)  # the system repeats it every second at the limit of processor time

    def end_on_bus_error() -> None:
        """End the process with one line if another process truncates a memory-mapped file."""
        _bus_error.end_on_bus_error()

    def signal_console_events() -> None:
        """Do nothing: the system sends SIGHUP when a terminal is closed."""


def signal_name(number: int) -> str:
    """Return the name of a signal for messages, such as Ctrl-C."""
    name = signal.Signals(number).name
    return {"SIGINT": "Ctrl-C", "SIGBREAK": "Ctrl-Break or a closed console"}.get(name, name)
