"""The page as a file: its size, its security policy, and words that look like HTML."""

import base64
import hashlib
import html
import json
import re
from pathlib import Path

import numpy as np
import pytest

import w2v
from tests.helpers import run, run_json
from w2v._explore.page import EXPORT, IMPORT, MODULES, explore_page

ASSETS = Path(w2v.__file__).parent / "_explore" / "assets"
HOSTILE = [
    "<script>", "</script>", "<!--", "]]>", "{{script}}", "\"'&", "\u2028", "\0", "\ud800", "💥", "אב", "x" * 10_000,
]  # fmt: skip


def scripts(page: str) -> dict[str, str]:
    """Return the content of each script and style element, by the element's type or name."""
    found = re.findall(r'<(style|script)(?: type="(.*?)")?.*?>(.*?)</\1', page, re.DOTALL | re.IGNORECASE)
    assert [kind or name for name, kind, _ in found] == ["style", "application/json", "module"]
    return {kind or name: content for name, kind, content in found}


def test_hostile_words_stay_data() -> None:
    vectors = w2v.KeyedVectors(HOSTILE, np.eye(len(HOSTILE)), range(len(HOSTILE)))
    page = explore_page({"</title><script>": vectors}).html
    text = scripts(page)["application/json"]
    assert not re.search("[<\u2028\ud800]", text)
    model = json.loads(text)["models"][0]
    assert model["words"] == HOSTILE
    assert model["counts"] == list(range(len(HOSTILE)))
    page.encode()  # fails if the page contains a lone surrogate


def test_policy_allows_only_the_pages_own_script_and_style() -> None:
    page = explore_page({"m": w2v.KeyedVectors(["a"], [[1.0]])}).html
    script, style = (
        base64.b64encode(hashlib.sha256(scripts(page)[name].encode()).digest()).decode() for name in ("module", "style")
    )
    assert (
        f"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-{script}'; "
        f"style-src 'sha256-{style}'; img-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'\">"
    ) in page


def test_page_of_10_000_words_is_below_3_megabytes() -> None:
    random = np.random.default_rng(1)
    words = [f"{row}-{'x' * 20}" for row in range(10_000)]
    vectors = w2v.KeyedVectors(words, random.normal(size=(10_000, 100)), random.integers(1, 10**9, 10_000))
    assert len(explore_page({"m": vectors}).html.encode()) < 3_000_000


def test_scripts_can_be_concatenated() -> None:
    """Each module imports only from earlier ones, and no two define the same name."""
    assert {path.stem for path in ASSETS.glob("*.js")} == set(MODULES)
    names: list[str] = []
    for index, module in enumerate(MODULES):
        text = (ASSETS / f"{module}.js").read_text("utf-8")
        imported = re.findall(r'^import \{[^}\n]*\} from "\./(\w+)\.js";$', text, re.MULTILINE)
        assert len(imported) == len(re.findall(r"\bimport\b", text)), module
        assert set(imported) <= set(MODULES[:index]), module
        text = EXPORT.sub("", IMPORT.sub("", text))
        assert "export" not in re.findall(r"^\w+", text, re.MULTILINE)
        assert "</" not in text
        names += re.findall(r"^(?:async )?(?:const|let|function|class)\*? (\w+)", text, re.MULTILINE)
    assert len(names) == len(set(names))


def test_page_names_no_other_host() -> None:
    page = explore_page({"m": w2v.KeyedVectors(["a"], [[1.0]])}).html
    assert set(re.findall(r"\w+://[^\"'` ]+", page)) == {"http://www.w3.org/2000/svg"}  # a name, not an address


def test_notebook_shows_the_page_in_a_frame() -> None:
    page = explore_page(w2v.KeyedVectors(['"><b>'], [[1.0]]))
    frame = r'<iframe srcdoc="([^"<>]*)" sandbox="allow-scripts allow-forms" [^<>]*></iframe>'
    found = re.fullmatch(frame, page._repr_html_())
    assert found
    assert html.unescape(found[1]) == page.html
    assert repr(page).startswith("<Page: ")


def test_command_writes_a_file(model: Path, tmp_path: Path) -> None:
    output = tmp_path / "page.html"
    found = run_json("explore", model, "-o", output, "--restrict-vocab", 50)
    assert found == {"output": str(output), "bytes": output.stat().st_size}
    assert "is named twice" in run("explore", model, "-o", model, "--force", code=2).stderr
    assert "is named twice" in run("explore", model, model, code=2).stderr
    assert "--port has no effect" in run("explore", model, "-o", output, "--force", "--port", 1, code=2).stderr


def test_command_writes_a_page_of_slices(tmp_path: Path) -> None:
    random, files = np.random.default_rng(1), []
    for name in ("1990s", "2000s", "2010s"):
        files.append(tmp_path / f"{name}.safetensors")
        w2v.KeyedVectors([f"w{row}" for row in range(20)], random.normal(size=(20, 4))).save(files[-1])
    page = tmp_path / "page.html"
    found = run("explore", "--slices", *files, "-o", page, code=1).stderr
    assert "1990s and 2000s have no coordinate system in common: align" in found
    assert "have no coordinate system in common" in run("explore", "--slices", *files, code=1).stderr
    run("align", *files, "-o", tmp_path / "aligned")
    aligned = sorted((tmp_path / "aligned").iterdir())
    found = run("explore", "--slices", *aligned[:2], files[2], "-o", page, code=1).stderr
    assert "1990s and 2010s have" in found
    run("explore", "--slices", *aligned, "-o", page)
    data = json.loads(scripts(page.read_text("utf-8"))["application/json"])
    assert data["slices"] is True
    assert [model["name"] for model in data["models"]] == ["1990s", "2000s", "2010s"]
    assert "--slices needs at least two models" in run("explore", "--slices", files[0], code=2).stderr
    assert "3 models: name one or two, or add --slices" in run("explore", *files, code=2).stderr
    assert "is named twice" in run("explore", "--slices", files[0], files[0], code=2).stderr


def test_a_model_and_its_vectors_have_the_same_page(model: Path) -> None:
    trained = w2v.Model.load(model)
    page = explore_page(trained, restrict_vocab=3)
    assert page.html == explore_page({"model": trained.wv}, 3, "pca").html
    with pytest.raises(w2v.SettingsError):
        explore_page(trained, method="lda")  # type: ignore[arg-type]
    with pytest.raises(w2v.SettingsError, match="1 model as slices: give at least two"):
        explore_page(trained, slices=True)
