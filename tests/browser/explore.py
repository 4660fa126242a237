"""The page of `w2v explore` in a real browser, as a file and from the server. `make browser` runs these tests.

They save screenshots in build/browser/.
"""

import json
import math
import os
import re
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote_plus, urlencode, urlsplit

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Request, Route, expect, sync_playwright

import w2v
from tests.helpers import run, start
from w2v._explore.content import examples
from w2v._formats.header import ModelHeader
from w2v._vectors.cosines import unit

# Long, because these tests must not depend on speed: the machine may be busy.
TIMEOUT = 60_000  # milliseconds
expect.set_options(timeout=TIMEOUT)

SCREENSHOTS = Path(__file__).parents[2] / "build" / "browser"
SOURCES = ["file", "served"]
PHONE = {"width": 390, "height": 780}
DESKTOP = {"width": 1280, "height": 800}
HOSTILE = [
    "<script>document.title='pwned'</script>", "</script><img src=x onerror=alert(1)>", "\"'`&amp;<!--", "{{script}}",
    "__proto__", "שלום\u202eevil", "👩‍👩‍👧‍👦", "a&b=c#d%20e+f", "\0\x1b[31m", "x" * 10_000,
]  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def noisy_model(model: Path) -> Path:
    """Save a second model with the same words, and vectors with noise."""
    vectors = w2v.load(model)
    noise = np.random.default_rng(1).normal(scale=0.1, size=vectors.vectors.shape)
    path = model.with_name("other.safetensors")
    w2v.KeyedVectors(vectors.index_to_key, vectors.vectors + noise).save(path)
    return path


@contextmanager
def page_url(source: str, *models: Path, options: Sequence[str] = ()) -> Iterator[str]:
    """Write or serve the page of some models, and yield its URL."""
    if source == "file":
        path = models[0].with_suffix(f".{len(models)}.html")
        run("explore", *options, *models, "-o", path, "--force")
        yield path.as_uri()
        return
    with start("explore", *options, *models, "--json") as server:
        try:
            yield json.loads(server.stdout.readline())["url"]
        finally:
            server.send_signal(signal.SIGINT)
            assert server.wait(TIMEOUT / 1000) == 128 + signal.SIGINT, server.stderr.read()


@contextmanager
def open_page(browser: Browser, url: str, **options: Any) -> Iterator[Page]:
    """Open a page. Fail at the end if it logged to the console, had a script error, or requested anything elsewhere."""
    failures: list[str] = []
    context: BrowserContext = browser.new_context(**{"viewport": DESKTOP, "reduced_motion": "reduce"} | options)
    context.set_default_timeout(TIMEOUT)
    page = context.new_page()
    page.on("console", lambda message: failures.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: failures.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (failures.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(url)
    expect(page.locator("main h2")).to_be_visible()
    yield page
    context.close()
    assert requests
    assert [target for target in requests if target.split("#")[0] != url.split("#")[0] and target != "data:,"] == []
    assert failures == []


@pytest.fixture(scope="module", params=SOURCES)
def url(request: pytest.FixtureRequest, model: Path) -> Iterator[str]:
    with page_url(request.param, model) as url:
        yield url


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    with open_page(browser, url) as page:
        yield page


def visit(page: Page, url: str, fragment: dict[str, Any]) -> None:
    """Open another view, and wait until it is complete."""
    target = f"#{urlencode(fragment, doseq=True)}"
    link = page.locator("nav [aria-current=page]")
    expect(link).not_to_have_attribute("href", target)
    page.goto(url + target)
    expect(link).to_have_attribute("href", target)
    expect(page.locator("main")).not_to_have_attribute("aria-busy", "true")


def view_link(page: Page, name: str) -> Locator:
    return page.get_by_role("navigation").get_by_role("link", name=name)


def expect_neighbours(page: Page, word: str) -> None:
    """Wait until the neighbours of a word are shown, and until the address names the word."""
    expect(page.locator("h2")).to_have_text(f"Neighbours of {word}")
    expect(page.locator("table.results caption")).to_have_text(re.compile(f"^Neighbours of {re.escape(word)} in "))
    expect(page).to_have_url(re.compile(f"[#&]view=neighbours&(.*&)?word={re.escape(quote_plus(word))}(&|$)"))


def follow_first(page: Page) -> str:
    """Follow the link of the first result, wait until its view is shown, and return the word."""
    link = page.locator("table.results a").first
    word = link.text_content() or ""
    link.click()
    expect_neighbours(page, word)
    return word


def open_details(page: Page) -> list[Locator]:
    """Open all folded tables, wait until they are filled, and return the elements to click to fold them again."""
    summaries = page.locator("details summary").all()
    for summary in summaries:
        summary.click()
    expect(page.locator("details[open] table")).to_have_count(len(summaries))
    return summaries


def state_in_address(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).fragment)


@contextmanager
def moving(page: Page) -> Iterator[list[float]]:
    """Yield a list that gets x, y and zoom of the map after the block, which must move the map.

    The address changes when the map has not moved for 250 ms.
    """
    position: list[float] = []
    before = page.url
    yield position
    expect(page).not_to_have_url(before)
    expect(page.locator(".map")).not_to_have_attribute("aria-busy", "true")
    position += map(float, state_in_address(page)["at"][0].split(","))


def words(table: Locator) -> list[str]:
    return table.locator("tbody th bdi").all_text_contents()


def scores(table: Locator) -> list[float]:
    return list(map(float, table.locator(".score > span:first-child").all_text_contents()))


def assert_results(table: Locator, exact: list[tuple[str, float]], url: str) -> None:
    """Assert that a table has these results: exactly if the page is served, approximately with 8-bit vectors."""
    expected = dict(exact)
    expect(table.locator("tbody tr")).to_have_count(len(exact))
    found = words(table)
    if url.startswith("http"):
        assert found == list(expected)
    assert len(set(found) & set(expected)) >= 0.9 * len(expected)
    pairs = [(score, expected[word]) for word, score in zip(found, scores(table), strict=True) if word in expected]
    assert max(abs(score - exact_score) for score, exact_score in pairs) < (0.0006 if url.startswith("http") else 0.02)


def test_typed_word_is_completed_and_shows_neighbours(page: Page, url: str, model: Path) -> None:
    field = page.get_by_role("combobox", name="Find a word")
    field.press_sequentially("FRÁN")
    option = page.get_by_role("option", name="france")
    expect(option).to_be_visible()
    expect(field).to_have_attribute("aria-expanded", "true")
    field.press("Escape")
    expect(option).not_to_be_visible()
    field.press("ArrowDown")
    expect(option).to_be_visible()
    for _ in range(page.get_by_role("option").count()):
        field.press("ArrowDown")
        if option.get_attribute("aria-selected") == "true":
            break
    assert field.get_attribute("aria-activedescendant") == option.get_attribute("id")
    field.press("Enter")
    expect_neighbours(page, "france")
    vectors = w2v.load(model)
    table = page.locator("table.results")
    assert_results(table, vectors.most_similar("france"), url)
    counts = [int(text.replace(",", "")) for text in table.locator(".count").all_text_contents()]
    assert counts == [vectors.counts[vectors.key_to_index[word]] for word in words(table)]
    assert page.locator("svg.bars rect").count() == vectors.vector_size
    page.get_by_text("Values as a table").click()
    values, exact = page.locator("details tbody td"), vectors["france"]
    expect(values).to_have_count(len(exact))
    shown = np.array(values.all_text_contents(), float)
    assert np.abs(shown - exact).max() <= np.abs(exact).max() / 200
    page.get_by_label("Results").select_option("20")
    expect(table.locator("tbody tr")).to_have_count(20)
    field.fill("KING")
    field.press("Enter")
    expect_neighbours(page, "king")


def test_back_forward_and_reload_restore_the_view(page: Page) -> None:
    view_link(page, "Neighbours").click()
    expect(page.locator("h2")).to_contain_text("Neighbours of ")
    first = follow_first(page)
    second = follow_first(page)
    found = words(page.locator("table.results"))
    page.reload()
    expect_neighbours(page, second)
    assert words(page.locator("table.results")) == found
    page.go_back()
    expect_neighbours(page, first)
    page.go_forward()
    expect_neighbours(page, second)


def test_analogy_is_solved_by_both_formulas(page: Page, url: str, model: Path) -> None:
    view_link(page, "Analogy").click()
    for name, text in {"Word": "King", "minus word": "man", "plus word": "woman"}.items():
        page.get_by_label(name, exact=True).fill(text)
        page.get_by_label(name, exact=True).press("Escape")
    page.get_by_role("button", name="Solve").click()
    expect(page).to_have_url(re.compile("plus=king"))
    expect(page.locator(".equation")).to_contain_text("king − man + woman")
    tables = page.locator("table.results")
    expect(tables).to_have_count(2)
    assert state_in_address(page)["plus"] == ["king", "woman"]
    vectors = w2v.load(model)
    assert_results(tables.nth(0), vectors.most_similar(["king", "woman"], ["man"]), url)
    assert_results(tables.nth(1), vectors.most_similar_cosmul(["king", "woman"], ["man"]), url)
    expect(page.locator(".equation")).to_have_text(f"king − man + woman ≈ {words(tables.nth(0))[0]}")


def test_map_zooms_pans_and_selects(page: Page) -> None:
    canvas, tip = page.locator("canvas"), page.locator(".tip")
    box = canvas.bounding_box()
    assert box
    centre = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    with moving(page) as first:
        page.get_by_role("button", name="First view").click()
    with moving(page) as zoomed:
        page.mouse.move(*centre)
        for _ in range(6):
            page.mouse.wheel(0, -300)
    assert zoomed[2] == pytest.approx(first[2] * math.exp(0.3 * 6), abs=0.03)
    with moving(page) as panned:
        page.mouse.down()
        page.mouse.move(centre[0] + 60, centre[1] + 20, steps=3)
        page.mouse.up()
    assert panned[0] < zoomed[0]
    assert panned[1] > zoomed[1]
    for step in range(60):
        page.mouse.move(centre[0] + 4 * step, centre[1])
        if tip.is_visible():
            break
    word = tip.locator("bdi").text_content()
    with moving(page) as selected:
        page.mouse.down()
        page.mouse.up()
    expect(page.locator(".chip a")).to_have_text([word or ""])
    assert state_in_address(page)["list"] == [word]
    assert selected == panned, "selecting a word moved the map"
    with moving(page) as clicked:
        page.mouse.wheel(0, 300)
        page.mouse.down()
        page.mouse.up()
    assert clicked[2] < panned[2], "a click soon after zooming undid the zoom"
    expect(page.locator(".chip a")).not_to_have_text([word or ""])
    page.go_back()
    expect(page.locator(".chip a")).to_have_text([word or ""])
    with moving(page) as again:
        page.get_by_role("button", name="First view").click()
    assert again == first
    page.go_back()
    expect(page.locator(".chip")).to_have_count(0)


def test_page_works_by_keyboard(page: Page) -> None:
    page.keyboard.press("Tab")
    page.keyboard.type("king")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("Enter")
    expect_neighbours(page, "king")
    view_link(page, "Map").focus()
    page.keyboard.press("Enter")
    expect(page.locator("canvas")).to_be_visible()
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "CANVAS":
            break
    with moving(page) as first:
        page.keyboard.press("0")
    with moving(page) as moved:
        page.keyboard.press("+")
        page.keyboard.press("ArrowRight")
    assert moved[0] > first[0]
    assert moved[2] == pytest.approx(1.6 * first[2], abs=0.02)
    assert page.evaluate("document.activeElement.tagName") == "CANVAS"
    summary = page.get_by_text("Words in view as a table")
    summary.focus()
    page.keyboard.press("Enter")
    word = page.locator("details tbody bdi").first.text_content()
    select = page.get_by_role("button", name=f"Select {word}", exact=True)
    select.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".chip a")).to_have_text([word or ""])
    expect(select).to_have_attribute("aria-pressed", "true")


def test_selected_words_are_compared(page: Page, model: Path) -> None:
    view_link(page, "Compare").click()
    selected = ("king", "queen", "paris")
    field = page.get_by_role("combobox", name="Add a word")
    cells = page.locator(".matrix td")
    for number, word in enumerate(selected, 1):
        field.fill(word)
        field.press("Escape")
        page.get_by_role("button", name="Add").click()
        expect(page.get_by_role("button", name=f"Unselect {word}")).to_be_visible()
        expect(cells).to_have_count(number * number)
    found = np.array(list(map(float, cells.all_text_contents()))).reshape(3, 3)
    vectors = w2v.load(model)
    exact = [[vectors.similarity(row, column) for column in selected] for row in selected]
    assert np.abs(found - exact).max() < 0.02
    assert page.locator("svg.bars").count() == 3
    page.get_by_role("button", name="Unselect queen").click()
    expect(cells).to_have_count(4)
    page.get_by_role("button", name="Clear").click()
    expect(page.locator(".chip")).to_have_count(0)


def test_theme_can_be_changed_and_is_remembered(page: Page) -> None:
    def background() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    light = background()
    page.get_by_role("button", name="Dark theme").click()
    expect(page.locator("body")).not_to_have_css("background-color", light)
    dark = background()
    page.reload()
    expect(page.locator("body")).to_have_css("background-color", dark)
    page.get_by_role("button", name="Light theme").click()
    expect(page.locator("body")).to_have_css("background-color", light)


def test_unknown_word_is_reported_with_suggestions(page: Page, url: str) -> None:
    visit(page, url, {"view": "neighbours", "word": "frnce"})
    expect(page.locator(".error p").first).to_have_text("frnce: not in the vocabulary")
    assert page.locator(".error a").count() > 0
    visit(page, url, {"view": "analogy", "plus": ["king", "woman"], "minus": "frnce"})
    expect(page.locator(".error p").first).to_have_text("frnce: not in the vocabulary")
    visit(page, url, {"view": "compare", "list": ["king", "frnce"]})
    expect(page.locator(".error")).to_have_text("frnce: not in the vocabulary")
    page.goto(f"{url}#view=none&topn=7&at=x,y&at=&word=frnce")
    expect(page.locator("canvas")).to_be_visible()


def test_page_opens_with_clusters_and_examples_of_its_own_words(page: Page, url: str, model: Path) -> None:
    vectors = w2v.load(model)
    shown = examples([vectors], len(vectors))
    colours = page.locator(".legend i").evaluate_all("all => all.map(i => getComputedStyle(i).backgroundColor)")
    assert len(set(colours)) == 8
    expect(page.get_by_role("heading", name=f"Neighbours of {shown['word']}")).to_be_visible()
    assert_results(page.locator("table.results"), vectors.most_similar(shown["word"]), url)
    view_link(page, "Neighbours").click()
    expect(page.locator("h2")).to_have_text(f"Neighbours of {shown['word']}")
    view_link(page, "Analogy").click()
    a, b, c = shown["analogy"]
    expect(page.locator(".equation")).to_have_text(f"{a} − {b} + {c} ≈ {shown['word']}")
    assert [field.input_value() for field in page.locator(".analogy input").all()] == [a, b, c]
    view_link(page, "Compare").click()
    expect(page.locator(".matrix tbody th")).to_have_text([a, b, c, shown["word"]])
    expect(page.locator(".chip")).to_have_count(0)


@pytest.mark.parametrize("source", SOURCES)
def test_only_the_server_composes_an_unknown_word_from_ngrams(
    browser: Browser, sample: Path, tmp_path: Path, source: str
) -> None:
    model = tmp_path / "subwords.safetensors"
    w2v.train(sample, vector_size=20, subwords="3-4", epochs=2).save(model)
    with page_url(source, model) as url, open_page(browser, f"{url}#view=neighbours&word=kingship") as page:
        if source == "file":
            message = "kingship: not in the vocabulary; w2v explore without -o computes its vector from its n-grams"
            expect(page.locator(".error p").first).to_have_text(message)
        else:
            facts = "Not in the vocabulary: composed of its n-grams; vector length"
            expect(page.locator("p.facts")).to_contain_text(facts)
            assert_results(page.locator("table.results"), w2v.load(model).most_similar("kingship"), url)


VIEWS = {
    "zoomed": {"view": "map", "at": "0,0,3"},
    "map": {"view": "map"},
    "word-on-map": {"view": "map", "word": "france", "list": ["paris", "king"]},
    "neighbours": {"view": "neighbours", "word": "france", "list": ["paris"]},
    "unknown": {"view": "neighbours", "word": "frnce"},
    "first-neighbours": {"view": "neighbours"},
    "first-analogy": {"view": "analogy"},
    "first-compare": {"view": "compare"},
    "analogy": {"view": "analogy", "plus": ["king", "woman"], "minus": "man"},
    "compare": {"view": "compare", "list": ["king", "queen", "paris", "france"]},
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("appearance", ["light", "dark", "phone"])
def test_every_view_is_accessible_and_fits(
    browser: Browser, model: Path, noisy_model: Path, source: str, appearance: str
) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    options: dict[str, Any] = {"color_scheme": "dark" if appearance == "dark" else "light"}
    options |= {"viewport": PHONE, "has_touch": True} if appearance == "phone" else {}
    for models in ([model], [model, noisy_model]):
        with page_url(source, *models) as url, open_page(browser, url, **options) as page:
            for name, fragment in VIEWS.items():
                visit(page, url, fragment)
                if appearance != "phone" and len(models) == 1:
                    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight"), f"{name} is too high"
                summaries = open_details(page)
                result = Axe().run(page)
                assert result.violations_count == 0, f"{name}: {result.generate_report()}"
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is too wide"
                for summary in summaries:
                    summary.click()
                page.screenshot(path=SCREENSHOTS / f"{source}-{len(models)}-{name}-{appearance}.png", full_page=True)


def test_shared_neighbours_of_two_models_are_marked(browser: Browser, model: Path, noisy_model: Path) -> None:
    with (
        page_url("served", model, noisy_model) as url,
        open_page(browser, f"{url}#view=neighbours&word=france") as page,
    ):
        tables = page.locator("table.results")
        expect(tables).to_have_count(2)
        found = [words(tables.nth(i)) for i in range(2)]
        assert found == [[word for word, _ in w2v.load(path).most_similar("france")] for path in (model, noisy_model)]
        shared = set(found[0]) & set(found[1])
        assert 0 < len(shared) < 10
        expect(page.locator(".shared-line")).to_contain_text(f"{len(shared)} of 10 ")
        for i in range(2):
            assert set(tables.nth(i).locator("tr:has(.shared) bdi").all_text_contents()) == shared
        expect(tables.nth(1).locator(".count")).to_have_count(0)
        view_link(page, "Map").click()
        page.locator("canvas").nth(1).press("+")
        expect(page).to_have_url(re.compile("at=&at="))
        page.reload()
        expect(page.locator("canvas")).to_have_count(2)


@pytest.fixture(scope="session")
def slices(model: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Save three models in one coordinate system. King moves to the place of paris; the last slice lacks france."""
    vectors = w2v.load(model)
    folder, paths = tmp_path_factory.mktemp("slices"), []
    random, king, paris = np.random.default_rng(1), vectors["king"].copy(), vectors["paris"].copy()
    for step, name in enumerate(["1990s", "2000s", "2010s"]):
        matrix = vectors.vectors + random.normal(scale=0.03, size=vectors.vectors.shape)
        matrix[vectors.key_to_index["king"]] = king + step / 2 * (paris - king)
        words = [word for word in vectors if name != "2010s" or word != "france"]
        kept = matrix[[vectors.key_to_index[word] for word in words]]
        paths.append(folder / f"{name}.safetensors")
        header = ModelHeader(coordinates="the same")
        w2v.KeyedVectors(words, kept, vectors.counts[: len(words)], header=header).save(paths[-1])
    return paths


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("appearance", ["light", "phone"])
def test_slices_link_a_word(browser: Browser, slices: list[Path], source: str, appearance: str) -> None:
    models = [w2v.load(path) for path in slices]
    options: dict[str, Any] = {"viewport": PHONE, "has_touch": True} if appearance == "phone" else {}
    with page_url(source, *slices, options=["--slices"]) as url, open_page(browser, url, **options) as page:
        field = page.get_by_role("combobox", name="Find a word")
        field.fill("king")
        field.press("Enter")
        tables = page.locator("table.results")
        expect(tables).to_have_count(3)
        expect(page.locator("h2")).to_have_text("Neighbours of king")
        nearest = [each.most_similar("king") for each in models]
        for number, exact in enumerate(nearest):
            assert_results(tables.nth(number), exact, url)
        shared = set.intersection(*({word for word, _ in exact} for exact in nearest))
        if source == "served":
            expect(page.locator(".shared-line")).to_have_text(re.compile(f"^{len(shared)} of 10 words are in every"))
        expect(page.locator(".slices thead th")).to_have_text(["cosine", *(path.stem for path in slices)])
        cosines = np.array(list(map(float, page.locator(".slices td").all_text_contents()))).reshape(3, 3)
        rows = unit(np.array([each["king"] for each in models]))
        np.testing.assert_allclose(cosines, rows @ rows.T, atol=0.02)
        assert cosines[0, 2] < cosines[0, 1]

        page.get_by_role("link", name="Show on the map").click()
        expect(page.get_by_role("heading", name="Neighbours of king")).to_have_count(3)
        maps = page.locator(".map")
        before = page.url
        for _ in range(4):
            maps.nth(1).get_by_role("button", name="Zoom in").click()
        expect(page).not_to_have_url(before)
        expect(maps.nth(1)).not_to_have_attribute("aria-busy", "true")
        (view,) = state_in_address(page)["at"]  # one view for all maps
        x, y, zoom = map(float, view.split(","))
        in_view = []
        for each in maps.all():
            each.get_by_text("Words in view as a table").click()
            rows = each.locator("details tbody tr")
            expect(rows.first).to_be_visible()
            box = each.locator("canvas").bounding_box()
            assert box
            reach = max(box["width"], box["height"]) / min(box["width"], box["height"]) / (0.92 * zoom) + 0.01
            places = [text.split(",") for text in rows.locator("td:nth-child(4)").all_text_contents()]
            assert places
            assert np.abs(np.array(places, float) - [x, y]).max() <= reach
            in_view.append(set(rows.locator("bdi").all_text_contents()))
        word = min(set.intersection(*in_view))
        select = page.get_by_role("button", name=f"Select {word}", exact=True)
        select.first.click()
        expect(page.locator(".chip a")).to_have_text([word])
        expect(select).to_have_count(3)
        for each in select.all():
            expect(each).to_have_attribute("aria-pressed", "true")
        assert Axe().run(page).violations_count == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.screenshot(path=SCREENSHOTS / f"{source}-slices-map-{appearance}.png", full_page=True)

        visit(page, url, {"view": "neighbours", "word": "france"})
        expect(tables).to_have_count(2)
        expect(page.locator(".error p").first).to_have_text("france: not in the vocabulary")
        assert "france" not in page.locator(".error a").all_text_contents(), "the suggestions are words of the slice"
        expect(page.locator(".slices td")).to_have_count(4)
        result = Axe().run(page)
        assert result.violations_count == 0, result.generate_report()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.screenshot(path=SCREENSHOTS / f"{source}-slices-neighbours-{appearance}.png", full_page=True)
        visit(page, url, {"view": "map", "word": "france"})
        expect(page.get_by_role("heading", name="Neighbours of france")).to_have_count(2)


@pytest.mark.parametrize("source", SOURCES)
def test_hostile_words_are_shown_as_text(browser: Browser, tmp_path: Path, source: str) -> None:
    vectors = np.random.default_rng(1).normal(size=(len(HOSTILE), 5))
    path = tmp_path / "<img src=x onerror=alert(2)>.safetensors"
    w2v.KeyedVectors(HOSTILE, vectors, range(len(HOSTILE))).save(path)
    with page_url(source, path) as url, open_page(browser, url) as page:
        for word in HOSTILE:
            visit(page, url, {"view": "neighbours", "word": word, "list": word})
            expect(page.locator("table.results tbody tr")).to_have_count(len(HOSTILE) - 1)
            assert page.evaluate("innerWidth >= document.documentElement.scrollWidth")
        texts = page.locator("table.results bdi").all_text_contents()
        assert HOSTILE[0] in texts
        assert HOSTILE[1] in texts
        assert r"\u0000\u001b[31m" in texts
        assert page.locator("main script, main img").count() == 0
        field = page.get_by_role("combobox", name="Find a word")
        for word in HOSTILE[:3]:
            field.fill(word)
            expect(page.get_by_role("option").first).to_contain_text(word)
            field.press("Escape")
        view_link(page, "Map").click()
        page.get_by_text("Words in view as a table").click()
        expect(page.locator("details tbody tr")).to_have_count(len(HOSTILE))
        page.screenshot(path=SCREENSHOTS / f"{source}-hostile.png", full_page=True)


SMALL_MODELS = {
    "one word": [[1.0, 2.0]],
    "two words": [[1.0, 2.0], [3.0, -1.0]],
    "three words": [[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]],
    "one dimension": [[1.0], [-2.0], [3.0], [0.5]],
    "equal vectors": [[1.0, 2.0, 3.0]] * 5,
    "zeros": [[0.0, 0.0]] * 3,
    "extremes": [[1e-45, 0.0], [1e38, -1e38], [1.0, 1e-30]],
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kind", SMALL_MODELS)
def test_small_models_show_no_nan(browser: Browser, tmp_path: Path, source: str, kind: str) -> None:
    path = tmp_path / "small.safetensors"
    known = [f"w{row}" for row in range(len(SMALL_MODELS[kind]))]
    w2v.KeyedVectors(known, SMALL_MODELS[kind]).save(path)
    states = [
        {"view": "map", "word": "w0"},
        {"view": "neighbours", "word": "w0"},
        {"view": "analogy", "plus": ["w0", known[-1]], "minus": known[len(known) // 2]},
        {"view": "compare", "list": known},
    ]
    with page_url(source, path) as url, open_page(browser, url) as page:
        for fragment in states:
            visit(page, url, fragment)
            expect(page.locator("main .card")).to_be_visible()
            open_details(page)
            text = page.locator("main").inner_html() + page.locator("footer").inner_html()
            assert not any(value in text for value in ("NaN", "Infinity", "undefined", "null"))
            assert page.locator(".error").count() == 0


def test_notebook_shows_the_page_in_a_frame(browser: Browser, model: Path, tmp_path: Path) -> None:
    notebook = tmp_path / "notebook.html"
    output = w2v.explore_page(w2v.load(model), restrict_vocab=1000)._repr_html_()
    notebook.write_text(
        f"<!doctype html><meta charset=utf-8><title>notebook</title><main><h2>In a cell</h2></main>{output}", "utf-8"
    )
    with open_page(browser, notebook.as_uri()) as page:
        frame = page.frame_locator("iframe")
        field = frame.get_by_role("combobox", name="Find a word")
        field.fill("the")
        field.press("Enter")
        expect(frame.locator("h2")).to_have_text("Neighbours of the")
        neighbour = frame.locator("table.results a").first
        word = neighbour.text_content()
        neighbour.click()
        expect(frame.locator("h2")).to_have_text(f"Neighbours of {word}")
        link = frame.get_by_role("link", name="Map", exact=True)
        link.click()
        frame.get_by_role("button", name="Zoom in").click()
        expect(link).to_have_attribute("href", re.compile("&at="))
        frame.get_by_role("button", name="Dark theme").click()
        expect(frame.get_by_role("button", name="Light theme")).to_be_visible()


def test_late_answers_are_ignored(browser: Browser, model: Path) -> None:
    """Answers about france arrive only when the page already shows something else."""
    delayed: list[Route] = []

    def is_late(request: Request) -> bool:
        return "france" in (request.post_data or "")

    def release() -> None:
        for route in delayed:
            with page.expect_response(lambda response, sent=route.request: response.request == sent) as answer:
                route.continue_()
            answer.value.finished()
        assert delayed
        delayed.clear()
        # This request ends after the delayed ones, so the page has received their answers by then.
        page.evaluate("fetch(location.pathname).then((answer) => answer.text())")

    with page_url("served", model) as url, open_page(browser, url) as page:
        page.route("**", lambda route: delayed.append(route) if is_late(route.request) else route.continue_())
        for view, selector in {"map": "main h4", "neighbours": "#status"}.items():
            with page.expect_request(is_late):
                page.goto(f"{url}#view={view}&word=france")
            visit(page, url, {"view": view, "word": "king"})
            release()
            assert page.locator(selector).text_content() == "Neighbours of king"
        field = page.get_by_role("combobox", name="Find a word")
        for word in ("france", "queen"):
            field.fill(word)
            field.press("Enter")
        expect_neighbours(page, "queen")
        release()
        expect_neighbours(page, "queen")
        view_link(page, "Map").click()
        expect(page.locator("canvas")).to_be_visible()
        with page.expect_request(is_late):
            page.goto(f"{url}#view=map&word=france")
        zoom_in = page.get_by_role("button", name="Zoom in")
        with moving(page) as first:
            zoom_in.click()
        release()
        with moving(page) as second:
            zoom_in.click()
        assert second[2] == pytest.approx(1.6 * first[2], abs=0.02)


def test_stopped_server_is_reported(browser: Browser, model: Path) -> None:
    with start("explore", model, "--json") as server, browser.new_page() as page:
        page.goto(f"{json.loads(server.stdout.readline())['url']}#view=neighbours")
        expect(page.locator("table.results a").first).to_be_visible()
        server.send_signal(signal.SIGINT)
        server.wait(TIMEOUT / 1000)
        page.locator("table.results a").first.click()
        expect(page.locator(".error").first).to_contain_text("the server has stopped")
