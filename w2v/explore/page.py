"""The page itself: one HTML file with its style and modules inside, which fetches nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources

from w2v.display import Page
from w2v.errors import printable
from w2v.explore.content import TOP, Content, embedded, examples
from w2v.plotting.projection import Projection
from w2v.progress import Report
from w2v.vectors.keyed import KeyedVectors

# Each after those that it imports.
MODULES = ("words", "state", "parts", "embedded", "served", "combobox", "map", "views", "main")
MARKER = re.compile(r"\{\{(\w+)\}\}")
IMPORT = re.compile(r"^import .*;\n", re.MULTILINE)
EXPORT = re.compile(r"^export ", re.MULTILINE)
UNSAFE = re.compile("[<\u2028\u2029\ud800-\udfff]")  # within a script element: </script>, <!--, and what UTF-8 lacks


def explore(
    models: Mapping[str, KeyedVectors], top: int = TOP, method: Projection = "pca", progress: Report | None = None
) -> Page:
    """A page with the first `top` words of one or more models, by name. `progress` is called in phase "project".

    Raises SettingsError for a `top` below 1 or an unknown method, W2VError for a model without words or with
    values that are not finite, and where a library of the method is missing.
    """
    contents = [embedded(name, vectors, top, method, progress) for name, vectors in models.items()]
    return Page(page(contents, examples([*models.values()], top)))


def page(models: Sequence[Content], shown: Content, connect: str = "'none'") -> str:
    """The HTML of a page about models, each as content.embedded or content.facts gives it.

    `shown` are the examples with which it opens. `connect` is the source of its policy for requests: 'self' where a
    server answers.
    """
    assets = resources.files("w2v.explore") / "assets"
    style = (assets / "style.css").read_text("utf-8")
    modules = ((assets / f"{name}.js").read_text("utf-8") for name in MODULES)
    script = "".join(EXPORT.sub("", IMPORT.sub("", module)) for module in modules)
    parts = {
        "title": html.escape(printable(" and ".join(model["name"] for model in models)) + " – w2v explore"),
        "policy": f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'",
        "style": style,
        "script": script,
        "data": script_safe({"models": models, "examples": shown}),
    }
    return MARKER.sub(lambda found: parts[found[1]], (assets / "index.html").read_text("utf-8"))


def script_safe(value: object) -> str:
    """JSON that can stand within a script element, whatever its strings hold."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
