"""Run the tests in a browser. What they need is installed if possible; if not, one line says what is missing."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> None:
    if not has_packages():
        print("browser tests left out: playwright and axe-playwright-python cannot be installed")
        return
    program = browser()
    if program is None:
        print("browser tests left out: there is no Chromium; on Debian: apt install chromium")
        return
    # The file has another name than pytest looks for, so that `make test` needs no browser.
    tests = [sys.executable, "-m", "pytest", str(Path(__file__).with_name("explore.py"))]
    sys.exit(subprocess.call(tests, env=os.environ | {"CHROMIUM": program}))


def has_packages() -> bool:
    if not importlib.util.find_spec("playwright") or not importlib.util.find_spec("axe_playwright_python"):
        return succeeds([sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "w2v[browser]"])
    return True


def browser() -> str | None:
    """The path of a browser that starts; if there is none, Debian's is installed."""
    found = installed_browser()
    if found is None and shutil.which("apt-get") and os.geteuid() == 0:
        os.environ["DEBIAN_FRONTEND"] = "noninteractive"
        succeeds(["apt-get", "update"])
        succeeds(["apt-get", "install", "--yes", "--no-install-recommends", "chromium", "fonts-dejavu-core"])
        found = installed_browser()
    return found


def installed_browser() -> str | None:
    found = filter(None, map(shutil.which, BROWSERS))
    return next((path for path in found if succeeds([path, "--version"])), None)


def succeeds(command: list[str]) -> bool:
    """Run a command silently: main says in one line what is missing."""
    return subprocess.run(command, capture_output=True).returncode == 0


if __name__ == "__main__":
    main()
