"""Build the explore page: one HTML file that contains its style and scripts, and requests nothing from other hosts."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources

from w2v._display import Page
from w2v._errors import printable
from w2v._explore.content import RESTRICT_VOCAB, Content, embedded_model, examples, word_maps
from w2v._plotting.projection import Projection
from w2v._progress import Report
from w2v._vectors.align import check_slices
from w2v._vectors.keyed import HasWordVectors, KeyedVectors, vectors_of

# In the order of imports: each module imports only from earlier ones.
MODULES = ("words", "state", "parts", "embedded", "served", "combobox", "map", "views", "main")
MARKER = re.compile(r"\{\{(\w+)\}\}")
IMPORT = re.compile(r"^import .*;\n", re.MULTILINE)
EXPORT = re.compile(r"^export ", re.MULTILINE)
# Unsafe inside a script element: "<" of </script> and <!--, line separators, and surrogates, which UTF-8 cannot encode.
UNSAFE = re.compile("[<\u2028\u2029\ud800-\udfff]")


def explore_page(
    models: KeyedVectors | HasWordVectors | Mapping[str, KeyedVectors | HasWordVectors],
    restrict_vocab: int = RESTRICT_VOCAB,
    method: Projection = "pca",
    slices: bool = False,
    progress: Report | None = None,
) -> Page:
    """Build a page with the neighbours, analogies and a map of one or more models. A notebook displays it.

    The page's save(path) writes one HTML file.

    Args:
        models: A model or vectors, or several by name.
        restrict_vocab: The number of most frequent words to include.
        method: The projection of the map: "pca", "tsne" or "umap".
        slices: Whether the models are slices in one coordinate system, so that their maps have the same axes.
        progress: Called in phase "project".

    Raises:
        SettingsError: `restrict_vocab` is below 1, the method is unknown, or there is only one slice.
        W2VError: A model has no words, a value is not finite, slices have no coordinate system in common, or the
            library of the method is not installed.
    """
    named = models if isinstance(models, Mapping) else {"model": models}
    sources = {name: vectors_of(model) for name, model in named.items()}
    if slices:
        check_slices(sources)
    maps = word_maps([*sources.values()], restrict_vocab, method, slices, progress)
    contents = [
        embedded_model(name, vectors, restrict_vocab, each)
        for (name, vectors), each in zip(sources.items(), maps, strict=True)
    ]
    return Page(build_html(contents, examples([*sources.values()], restrict_vocab), slices))


def build_html(
    models: Sequence[Content], shown_examples: Content, slices: bool = False, connect: str = "'none'"
) -> str:
    """Return the HTML of a page.

    Args:
        models: The data of each model, from embedded_model or model_facts.
        shown_examples: The examples that the page shows at first.
        slices: Whether the models are slices in one coordinate system.
        connect: The `connect-src` of the Content-Security-Policy: "'self'" if a server answers queries.
    """
    assets = resources.files("w2v._explore") / "assets"
    style = (assets / "style.css").read_text("utf-8")
    modules = ((assets / f"{name}.js").read_text("utf-8") for name in MODULES)
    script = "".join(EXPORT.sub("", IMPORT.sub("", module)) for module in modules)
    parts = {
        "title": html.escape(printable(" and ".join(model["name"] for model in models)) + " – w2v explore"),
        "policy": f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'",
        "style": style,
        "script": script,
        "data": script_safe_json({"models": models, "examples": shown_examples, "slices": slices}),
    }
    return MARKER.sub(lambda match: parts[match[1]], (assets / "index.html").read_text("utf-8"))


def script_safe_json(value: object) -> str:
    """Return JSON that is safe inside a script element, whatever strings it contains."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
