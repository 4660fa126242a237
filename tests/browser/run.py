"""Run the browser tests. Install a browser if possible; otherwise print one line and skip them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> None:
    program = find_or_install_browser()
    if program is None:
        print("browser tests skipped: Chromium is missing; on Debian: apt install chromium")
        return
    # explore.py does not match pytest's file pattern, so that `make test` needs no browser.
    tests = [sys.executable, "-m", "pytest", str(Path(__file__).with_name("explore.py"))]
    sys.exit(subprocess.call(tests, env=os.environ | {"CHROMIUM": program}))


def find_or_install_browser() -> str | None:
    """Return the path of a browser that starts. If there is none, install Debian's Chromium."""
    browser = find_browser()
    if browser is None and shutil.which("apt-get") and os.geteuid() == 0:
        os.environ["DEBIAN_FRONTEND"] = "noninteractive"
        run_silently(["apt-get", "update"])
        run_silently(["apt-get", "install", "--yes", "--no-install-recommends", "chromium", "fonts-dejavu-core"])
        browser = find_browser()
    return browser


def find_browser() -> str | None:
    paths = filter(None, map(shutil.which, BROWSERS))
    return next((path for path in paths if run_silently([path, "--version"])), None)


def run_silently(command: list[str]) -> bool:
    """Run a command without output, and return whether it succeeds."""
    return subprocess.run(command, capture_output=True).returncode == 0


if __name__ == "__main__":
    main()
