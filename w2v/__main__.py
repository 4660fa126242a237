"""The `w2v` program. While its modules are imported, Ctrl-C ends it as it ends other programs: without a traceback."""

import os
import signal


def main() -> None:
    # Otherwise Numba takes this from .numba_config.yaml in the working directory, and runs machine code from there.
    os.environ.setdefault("NUMBA_CACHE_DIR", "")
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from w2v.cli.main import main

    main(prog_name="w2v")


if __name__ == "__main__":
    main()
