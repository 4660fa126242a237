"""Configure the documentation site, which `make docs` builds."""

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))

import w2v

project = "w2v"
release = version = w2v.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click", "snippets"]
html_theme = "furo"
html_title = "w2v"
myst_heading_anchors = 3
napoleon_use_ivar = True
autodoc_typehints = "description"
autodoc_member_order = "bysource"


def examples_as_code(app: Sphinx, context: object, lines: list[str]) -> None:
    """Show the examples in a command's help as code."""
    shown: list[str] = []
    for line in lines:
        if line.startswith("| "):
            shown += ["::", ""] * (not shown[-1].startswith("    ")) + ["    " + line[2:]]
        else:
            shown.append(line.replace("*", r"\*"))
    lines[:] = shown


def links_to_files(app: Sphinx, page: str, text: list[str]) -> None:
    """Link to Markdown files outside this folder as files, because MyST would look for them among the site's pages."""
    text[0] = re.sub(r"\]\((\.\./[^)#]+\.md)\)", r"](path:\1)", text[0])


def setup(app: Sphinx) -> None:
    app.connect("source-read", links_to_files)
    app.connect("sphinx-click-process-description", examples_as_code)
