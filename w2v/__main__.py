"""The `w2v` program. Ctrl-C ends it without a traceback even while its modules are being imported."""

import os
import signal


def main() -> None:
    # Without this, a .numba_config.yaml in the working directory could make Numba run machine code from any folder.
    os.environ.setdefault("NUMBA_CACHE_DIR", "")
    # Until console._raise_on_signals sets its handlers, Ctrl-C has the default action and ends the program at once.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from w2v._cli.main import main

    main(prog_name="w2v")


if __name__ == "__main__":
    main()
