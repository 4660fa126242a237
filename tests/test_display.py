"""HTML in notebooks: tables with hostile words, curves, and results."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import w2v
from w2v._display import Page, format_value, html_curve, html_table
from w2v._training.effective_rank import EffectiveRank


def test_values_are_formatted_on_one_line() -> None:
    assert format_value({"a": 1234567, "b": [1.23456, None, True]}) == "a 1,234,567, b 1.235 none yes"


def test_table_escapes_and_shortens_values() -> None:
    shown = html_table([["<script>", "&\x1b\u202e", "x" * 10_000]], ["<b>"])
    assert shown.count("<") == shown.count(">")
    assert "&lt;script&gt;" in shown
    assert r"&amp;\x1b\u202e" in shown
    assert "<th>&lt;b&gt;</th>" in shown
    assert len(shown) < 500
    assert "<td><table>" in html_table([[html_table([["inner"]])]])
    assert "<td>&lt;table&gt;" in html_table([["<table>"]])


def test_table_shows_200_characters_of_a_value() -> None:
    assert f"<td>{'x' * 200}</td>" in html_table([["x" * 200]])
    assert f"<td>{'x' * 199}…</td>" in html_table([["x" * 201]])


def test_result_shows_ten_items_of_a_list() -> None:
    ten = [float(number) for number in range(1, 11)]
    shown = [EffectiveRank(2, 3, 4, 5, 6, values)._repr_html_() for values in (ten, [*ten, 11.0])]
    assert "<td>singular values</td><td>1 2 3 4 5 6 7 8 9 10</td>" in shown[0]
    assert "<td>singular values</td><td>1 2 3 4 5 6 7 8 9 10 … (11 in all)</td>" in shown[1]
    rows = {"rank": 2, "max rank": 3, "contexts": 4, "words": 5, "vector size": 6}
    assert all(f"<td>{name}</td><td>{value}</td>" in shown[0] for name, value in rows.items())


def test_curve_is_scaled_and_labelled() -> None:
    shown = html_curve([(0, 3), (5, 2), (10, 1)], 'falls "fast"')
    assert 'points="0.0,0.0 160.0,45.0 320.0,90.0"' in shown
    assert 'aria-label="falls &quot;fast&quot;"' in shown
    assert 'points="0.0,90.0 80.0,0.0 320.0,30.0"' in html_curve([(2, -1), (3, 2), (6, 1)], "from 2 and -1")
    assert 'points="0.0,90.0 0.0,90.0"' in html_curve([(1, 1), (1, 1)], "one point")


def test_notebook_shows_vectors_as_a_table() -> None:
    words = ["<b>&", *(f"w{row}" for row in range(30))]
    shown = w2v.KeyedVectors(words, np.eye(31), 5000 - np.arange(31))._repr_html_()
    assert "31 words, 31 values each" in shown
    assert "<tr><td>&lt;b&gt;&amp;</td><td>5,000</td><td>1</td></tr>" in shown
    assert shown.count("<tr>") == 11
    assert "count" not in w2v.KeyedVectors(["a"], np.eye(1))._repr_html_()


def test_notebook_shows_results_as_tables(model: Path) -> None:
    shown = w2v.analogies(w2v.load(model))._repr_html_()
    assert "<td>accuracy</td>" in shown
    assert shown.count("<table>") == 2  # the table of sections is inside the other
    assert "man-woman" in shown
    assert "1 0.5 … (20 in all)" in EffectiveRank(2, None, 3, 4, 5, [1.0, 0.5] * 10)._repr_html_()


def test_notebook_shows_a_model_with_its_loss_curve(model: Path) -> None:
    loaded = w2v.Model.load(model)
    shown = loaded._repr_html_()
    view = loaded.views["words"]
    assert view.loss_curve == list(zip(np.arange(1, 6) * view.metrics["tokens"], view.metrics["loss"], strict=True))
    for expected in (
        "<td>vector_size</td><td>50</td>",
        "tokens trained",
        "bundled questions",
        "<svg",
        "loss per prediction, from ",
    ):
        assert expected in shown
    assert "<svg" not in w2v.Model({"words": replace(view, metrics={})})._repr_html_()


CELLS = [
    "import warnings, w2v\nfrom w2v import _progress as progress\nwarnings.simplefilter('ignore', w2v.TextWarning)",
    "progress.SHOWN_AFTER = float('inf')  # as if all work were quick",
    "sentences = 3000 * [['a', 'b', '<i>', 'c']]",
    "model = w2v.train(sentences, epochs=3, negative=2, min_count=1, workers=1, vector_size=8)",
    "model",
    "model.wv",
    "w2v.word_map(model)",
    "w2v.analogies(w2v.load({model!r}), restrict_vocab=100)",
    "progress.SHOWN_AFTER = 0\nw2v.train(sentences, epochs=3, negative=2, min_count=1, vector_size=8)",
]


# Windows' event loop lacks functions that zmq needs, so zmq starts a thread and warns.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Proactor event loop does not implement:RuntimeWarning")
def test_notebook_runs_without_errors(model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nbformat, nbclient = (pytest.importorskip(name) for name in ("nbformat", "nbclient"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    cells = [nbformat.v4.new_code_cell(cell.replace("{model!r}", repr(str(model)))) for cell in CELLS]
    nbclient.NotebookClient(nbformat.v4.new_notebook(cells=cells), timeout=None, startup_timeout=600).execute()
    assert not [part for cell in cells for part in cell.outputs if part.output_type in ("stream", "error")]
    outputs = [cell.outputs for cell in cells[3:]]
    assert not outputs[0]  # quick work shows no progress bar
    assert "<svg" in outputs[1][0].data["text/html"]
    assert "&lt;i&gt;" in outputs[2][0].data["text/html"]
    assert "image/png" in outputs[3][0].data
    assert "country-capital" in outputs[4][-1].data["text/html"]
    *bars, result = (part.data["text/html"] for part in outputs[5])
    assert bars == [""] * len(bars) != []  # the bars have disappeared
    assert "tokens trained" in result


def test_a_page_replaces_a_file_only_if_asked(tmp_path: Path) -> None:
    page = Page("<p>new</p>")
    path = tmp_path / "page.html"
    path.write_text("old")
    with pytest.raises(w2v.W2VError, match="File exists"):
        page.save(path)
    assert path.read_text() == "old"
    page.save(path, force=True)
    assert path.read_text() == "<p>new</p>"


def test_results_of_evaluate_are_one_table() -> None:
    results = w2v.evaluate(w2v.KeyedVectors(["a", "b"], np.eye(2), [30, 3]))
    shown = results._repr_html_()
    assert shown.count("<th>measure</th>") == 1
    assert "bundled questions" in shown
    assert "every item of bundled questions and bundled pairs has a word that model 1 lacks" in shown
    assert str(results).splitlines()[0].split() == ["set", "measure", "model", "1"]
    last = results.to_frame().iloc[-1]
    values = results.to_dict()["results"][-1]
    assert (last["set"], last["measure"], last["model"]) == (values["name"], "rare neighbours", "model 1")
    assert last["value"] == values["scores"][0]["value"] == 0.5
