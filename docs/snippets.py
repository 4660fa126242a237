"""Run the commands and programs of the pages, in order, when the site is built. If one fails, the build fails.

Blocks marked `sh` and `python` are run. Other blocks, such as `console` and `py`, are only shown. All blocks of a page
run in the same folder, which contains a text, corpus.txt, and the Python blocks share their variables. A Python block
that begins with a file name as a comment is written to that file. On pages with the metadata "outputs: shown", the site
shows what each block printed. The metadata "words: N" sets the size of the text.

To run pages without building the site: python docs/snippets.py PAGE.md …
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

LANGUAGES = ("sh", "python")
BLOCK = re.compile(rf"^ *```({'|'.join(LANGUAGES)})\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# (\w+\.py)\n")
WORDS = 150_000  # default size of corpus.txt


def run(blocks: Iterable[tuple[str, str]], page: str, words: int = WORDS) -> list[str]:
    """Return what each block (language, code) prints. Raises ExtensionError if a block fails."""
    printed: list[str] = []
    module = sys.modules["snippet"] = ModuleType("snippet")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        sys.path.insert(0, folder)
        make = [sys.executable, "-m", "w2v.data.make", "corpus", "--tokens", str(words), "-o", "corpus.txt"]
        subprocess.run(make, check=True, capture_output=True)
        for language, code in blocks:
            if language == "sh":
                command = ["bash", "-eo", "pipefail", "-c", code]
                done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PATH": path})
                if done.returncode:
                    raise ExtensionError(f"{page}: this fails:\n{code}\n{done.stderr}")
                printed.append(done.stdout)
            elif name := FILE.match(code):
                Path(name[1]).write_text(code, "utf-8")
                printed.append("")
            else:
                text = io.StringIO()
                try:
                    with contextlib.redirect_stdout(text):
                        exec(compile(code, page, "exec"), vars(module))
                except Exception as error:
                    raise ExtensionError(f"{page}: this fails:\n{code}\n{error!r}") from error
                printed.append(text.getvalue())
    return printed


def run_page(app: Sphinx, document: nodes.document) -> None:
    """Run the blocks of a page, and insert their output if the page's metadata asks for it."""
    blocks = [node for node in document.findall(nodes.literal_block) if node.get("language") in LANGUAGES]
    if not blocks:
        return
    metadata = app.env.metadata[app.env.docname]
    words = int(metadata.get("words", WORDS))
    printed = run([(node["language"], node.astext()) for node in blocks], app.env.docname, words)
    if metadata.get("outputs") != "shown":
        return
    for node, text in zip(blocks, printed, strict=True):
        if text.strip():
            node.parent.insert(node.parent.index(node) + 1, nodes.literal_block(text, text.rstrip(), language="text"))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", run_page)
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    for name in sys.argv[1:]:
        run(BLOCK.findall(Path(name).read_text("utf-8")), name)
