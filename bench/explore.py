"""How fast is the page of `w2v explore`? A file of 10,000 words in a browser, and a million words served.

    python bench/explore.py [--words 1000000] [--repeats 21] [--json FILE]

The vectors are random. Opening ends when the map is drawn, and a keystroke when its completions are listed. A query
asks the server for the 10 nearest words, on a connection that stays open. First the program checks one answer against
KeyedVectors. The file needs Chromium and w2v[browser]; without them only the server is measured.
"""

import http.client
import importlib.util
import json
import os
import shutil
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from common import benchmark_parser, report_results, scattered_words, summarise, time_call

import w2v
from w2v._explore.content import word_maps
from w2v._explore.explorer import Explorer
from w2v._explore.page import explore_page
from w2v._explore.server import Server

FILE_WORDS, SIZE = 10_000, 100
KEYSTROKE = """async key => {
    const input = document.getElementById("search-word");
    const list = document.getElementById("search-word-list");
    const listed = new Promise(resolve => new MutationObserver(resolve).observe(list, { childList: true }));
    const start = performance.now();
    input.value += key;
    input.dispatchEvent(new Event("input"));
    await listed;
    list.offsetHeight;  // forces layout
    return (performance.now() - start) / 1000;
}"""


def main() -> None:
    parser = benchmark_parser(__doc__, repeats=21)
    parser.add_argument("--words", type=int, default=1_000_000)
    options = parser.parse_args()
    times = {f"query among {options.words:,} words": summarise(query_times(options.words, options.repeats), goal=0.1)}
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if program and importlib.util.find_spec("playwright"):
        opening, keystrokes = browser_times(program, options.repeats)
        times |= {
            "opening the file": summarise(opening, goal=2),
            "keystroke in the file": summarise(keystrokes, goal=0.05),
        }
    report_results(
        options, "The page of w2v explore", f"{SIZE} dimensions; the file has {FILE_WORDS:,} words.", seconds=times
    )


def random_vectors(words: int) -> w2v.KeyedVectors:
    vectors = np.random.default_rng(1).standard_normal((words, SIZE), dtype=np.float32)
    return w2v.KeyedVectors(scattered_words(words), vectors, np.arange(words, 0, -1))


def query_times(words: int, repeats: int) -> list[float]:
    """Measure the seconds of queries to a server, after checking the answer to the first."""
    vectors = random_vectors(words)
    server, (word_map,) = Server("127.0.0.1", 0), word_maps([vectors], FILE_WORDS, "pca")
    threading.Thread(target=server.run, args=("", [Explorer(vectors, word_map)]), daemon=True).start()
    url = urlsplit(server.url)
    connection = http.client.HTTPConnection(url.hostname or "", url.port)

    def ask(word: str) -> list[dict[str, Any]]:
        question = {"question": "nearest", "model": 0, "plus": [word], "minus": [], "method": "add", "n": 10}
        connection.request("POST", url.path, json.dumps(question))
        neighbours: list[dict[str, Any]] = json.loads(connection.getresponse().read())["answer"]
        return neighbours

    first, *others = vectors.first_words(1 + repeats)
    expected = [word for word, _ in vectors.most_similar(first)]
    assert [one["word"] for one in ask(first)] == expected, "the server names other nearest words than KeyedVectors"
    times = [time_call(partial(ask, word)) for word in others]
    connection.close()
    server.shutdown()
    return times


def browser_times(program: str, repeats: int) -> tuple[list[float], list[float]]:
    """Measure the seconds to open the file, and the seconds of each keystroke."""
    from playwright.sync_api import sync_playwright

    opening, keystrokes = [], []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "page.html"
        explore_page(random_vectors(FILE_WORDS), restrict_vocab=FILE_WORDS).save(path)
        browser = playwright.chromium.launch(executable_path=program)
        for _ in range(repeats):
            page = browser.new_page()
            start = time.perf_counter()
            page.goto(path.as_uri())
            page.wait_for_selector("canvas[width]")
            opening.append(time.perf_counter() - start)
            keystrokes += [page.evaluate(KEYSTROKE, key) for key in "1a"]
            page.close()
        browser.close()
    return opening, keystrokes


if __name__ == "__main__":
    main()
