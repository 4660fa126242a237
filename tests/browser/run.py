"""Run the tests in a browser. What they need is installed where that is possible; else a line says what is missing."""

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
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "w2v[browser]"]
        return subprocess.call(pip) == 0
    return True


def browser() -> str | None:
    """The path of a browser; Debian's is installed if there is none, and may be."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None and shutil.which("apt-get") and os.geteuid() == 0:
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update"], ["install", "--yes", "--no-install-recommends", "chromium", "fonts-dejavu-core"]):
            subprocess.call(["apt-get", "-qq", *command], env=environment, stdout=subprocess.DEVNULL)
        found = shutil.which("chromium")
    return found


if __name__ == "__main__":
    main()
