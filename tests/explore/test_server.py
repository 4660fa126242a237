"""The server of the page: access, answers, connection limits, and shutdown."""

import http.client
import json
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import w2v
from tests.helpers import explorer_of, run, start
from w2v._explore import server as server_module
from w2v._explore.server import MAX_BYTES, Server


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[Server]:
    server = Server("127.0.0.1", 0)
    explorer = explorer_of(w2v.load(model), 100)
    thread = threading.Thread(target=server.run, args=("the page", [explorer]), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()


def connect(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.server_port))


def send(connection: socket.socket, server: Server, method: str = "GET", header: str = "") -> None:
    connection.sendall(f"{method} {server.path} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n".encode())


def test_each_answer_on_an_open_connection_arrives_in_one_piece(server: Server) -> None:
    """A second piece would wait for the acknowledgement of the first, which systems delay by 40 ms."""
    with connect(server) as connection:
        for _ in range(2):
            send(connection, server)
            assert connection.recv(1 << 16).endswith(b"\r\n\r\nthe page")


def test_idle_connections_are_closed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module._Handler, "timeout", 0.001)
    with connect(server) as idle:
        assert idle.recv(1) == b""


def request(server: Server, method: str, path: str = "", body: Any = None, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    try:
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        body = json.dumps(body) if isinstance(body, dict | list) else body
        connection.request(method, path or server.path, body, headers)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def query(server: Server, question: str, **arguments: Any) -> Any:
    status, text = request(server, "POST", body={"question": question, "model": 0, **arguments})
    assert status == 200, text
    return json.loads(text)


def test_page_requires_the_token(server: Server) -> None:
    assert request(server, "GET") == (200, "the page")
    for path in ("/", server.path[:-1], server.path + "x", server.path.upper(), "/.." + server.path, "/%C3%A9%00"):
        assert request(server, "GET", path)[0] == 403
        assert request(server, "POST", path, {})[0] == 403
    assert len(server.path) > 20
    with Server("127.0.0.1", 0) as other:
        assert other.path != server.path


def test_host_header_must_name_this_machine(server: Server) -> None:
    for host in ("127.0.0.1", f"localhost:{server.server_port}", "LOCALHOST:80", "[::1]:80"):
        assert request(server, "GET", Host=host)[0] == 200, host
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "", "[", "10.0.0.1", "::1"):
        assert request(server, "GET", Host=host)[0] == 403, host
        assert request(server, "POST", body={}, Host=host)[0] == 403, host


def test_host_option_serves_other_addresses() -> None:
    with Server("0.0.0.0", 0) as everywhere:
        assert everywhere.url == f"http://{socket.gethostname()}:{everywhere.server_port}{everywhere.path}"
        for host in ("192.168.1.2:8000", "[fe80::1]:8000", socket.gethostname(), "localhost:80"):
            assert everywhere.is_own_host(host)
        assert not everywhere.is_own_host("evil.example")
    with Server("127.0.0.2", 0) as one:
        assert one.is_own_host("127.0.0.2:80")
        one._host = "My-Machine"
        assert one.is_own_host("my-machine:8000")
        assert one.is_own_host("MY-MACHINE")
        one._host = "127.0.0.2"
        assert not one.is_own_host("127.0.0.1")
        assert one.url == f"http://127.0.0.2:{one.server_port}{one.path}"
    with Server("::1", 0) as six:
        assert six.url == f"http://[::1]:{six.server_port}{six.path}"
        assert six.is_own_host("[::1]:99")
        assert six.is_own_host("localhost")


def test_answers_match_the_vectors(server: Server, model: Path) -> None:
    vectors = w2v.load(model)
    found = query(server, "nearest", plus=["france"], minus=[], method="add", topn=5)["answer"]
    assert [(row["word"], pytest.approx(row["score"])) for row in found] == vectors.most_similar("france", topn=5)
    found = query(server, "nearest", plus=["king", "woman"], minus=["man"], method="mul", topn=3)["answer"]
    assert [row["word"] for row in found] == [w for w, _ in vectors.most_similar_cosmul(["king", "woman"], ["man"], 3)]
    assert found[0]["count"] == vectors.counts[vectors.key_to_index[found[0]["word"]]]
    found = query(server, "vector", word="king")["answer"]
    assert found["values"] == pytest.approx(vectors["king"].tolist())
    assert found["row"] == vectors.key_to_index["king"]
    assert query(server, "complete", text="KING", topn=2)["answer"][0]["word"] == "king"
    two, three = (query(server, "complete", text="", topn=topn)["answer"] for topn in (2, 3))
    assert two == three[:2]
    assert query(server, "map")["answer"]["words"] == vectors.first_words(100)


def test_invalid_queries_are_errors(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(server_module.Map, "answer", lambda *_: bytearray(1 << 62), raising=False)
        assert query(server, "map") == {"error": "out of memory"}
    assert query(server, "vector", word="frnce") == {"error": "not in the vocabulary"}
    unknown = query(server, "nearest", plus=["frnce"], minus=[], method="add", topn=5)
    assert unknown == {"error": "not in the vocabulary"}
    assert "error" in query(server, "nearest", plus=[], minus=[], method="add", topn=5)
    for body in (
        {}, [], {"question": "quit", "model": 0}, {"question": "map", "model": 1}, {"question": "map", "model": -1},
        {"question": "complete", "model": 0, "text": "a", "topn": 10**9}, {"question": "vector", "model": 0, "word": 5},
        {"question": "nearest", "model": 0, "plus": [], "minus": [], "method": "x", "topn": 1},
        {"question": "map", "model": 0, "more": 1},
        {"question": "nearest", "model": 0, "plus": ["a"] * 101, "minus": [], "method": "mul", "topn": 1},
    ):  # fmt: skip
        assert request(server, "POST", body=body)[0] == 400, body
    for text in (b'{"question": "map", "model": ' + b"[" * 200_000, b"[" * 200_000, b"\xff", b'"\\ud800"'):
        assert request(server, "POST", body=text)[0] == 400, text[:40]
    assert request(server, "PUT", body={})[0] == 501


@pytest.mark.parametrize("length", ["", "-1", "x", "1e3", f"{MAX_BYTES + 1}", 5000 * "9"])
def test_query_needs_a_valid_content_length(server: Server, length: str) -> None:
    with connect(server) as connection:
        send(connection, server, "POST", f"Content-Length: {length}\r\n" if length else "")
        assert connection.makefile("rb").readline().split()[1] == b"413"


@pytest.mark.parametrize("shown", [True, False])
def test_browser_gets_a_private_file_instead_of_the_address(
    shown: bool, model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The server removes the file when the page is shown, or at the end."""
    opened: list[str] = []

    def open_in_browser(url: str) -> bool:
        file = Path(urlsplit(url).path)
        assert file.parent == tmp_path
        assert not file.name.startswith(".")
        assert file.stat().st_mode & 0o777 == 0o600
        opened.append(file.read_text())
        return True

    def serve(server: Server, *_: object) -> None:
        assert f'content="0; url={server.url}"' in opened[0]
        assert len(list(tmp_path.iterdir())) == 1
        with server:
            if shown:
                threading.Thread(target=server.handle_request).start()
                assert request(server, "GET")[0] == 200
                assert list(tmp_path.iterdir()) == []

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("webbrowser.open", open_in_browser)
    monkeypatch.setattr(Server, "run", serve)
    run("explore", model, "--open")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("opened", "message"), [(True, ""), (False, "w2v: no browser was found: open the page yourself\n")]
)
def test_missing_browser_is_reported(
    opened: bool, message: str, model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    urls: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: urls.append(url) or opened)
    monkeypatch.chdir(tmp_path)
    result = run("explore", model, "--restrict-vocab", 9, "-o", "page.html", "--open")
    assert urls == [(tmp_path / "page.html").as_uri()]
    assert result.stderr == message
    run("explore", model, "--restrict-vocab", 9, "-o", "page.html", "--force")
    assert len(urls) == 1


def test_server_is_closed_if_a_model_cannot_be_loaded(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    servers: list[Server] = []
    bind = Server.server_bind

    def recorded(server: Server) -> None:
        servers.append(server)
        bind(server)

    monkeypatch.setattr(Server, "server_bind", recorded)
    assert "cannot read missing" in run("explore", model, "missing", code=1).stderr
    assert [server.socket.fileno() for server in servers] == [-1]


def test_quiet_prints_nothing(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "run", lambda server, *_: server.server_close())
    result = run("explore", model, "--quiet")
    assert (result.stdout, result.stderr) == ("", "")


def test_closed_connections_are_not_logged(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(5):
        with connect(server) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # reset, not closed
            send(connection, server)
    assert request(server, "GET")[0] == 200
    assert capfd.readouterr() == ("", "")


def test_error_for_a_port_in_use_is_one_line(server: Server, model: Path) -> None:
    found = run("explore", model, "--port", server.server_port, code=1).stderr
    assert f"port {server.server_port} is in use" in found
    assert "cannot serve at 203.0.113.1" in run("explore", model, "--host", "203.0.113.1", code=1).stderr


def test_ctrl_c_stops_the_server_immediately(model: Path) -> None:
    with start("explore", model, "--json", text=True) as process:
        url = urlsplit(json.loads(process.stdout.readline())["url"])
        assert url.hostname == "127.0.0.1"
        with socket.create_connection((url.hostname, url.port or 0)) as connection:
            connection.sendall(f"GET {url.path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert connection.recv(1)  # the thread of this connection waits a minute for another request
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 128 + signal.SIGINT
        assert json.loads(process.stderr.read()) == {"error": "stopped by Ctrl-C", "exit_code": 130}


def test_a_refused_connection_is_closed(server: Server) -> None:
    with connect(server) as connection:
        connection.settimeout(60)
        connection.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        answer = connection.makefile("rb").read()  # to its end
    assert answer.startswith(b"HTTP/1.1 403")
    assert b"\r\nConnection: close\r\n" in answer


def test_queries_are_answered_up_to_their_limits(server: Server) -> None:
    word = "x" * (MAX_BYTES - len(json.dumps({"question": "vector", "model": 0, "word": ""})))
    assert query(server, "vector", word=word) == {"error": "not in the vocabulary"}  # exactly MAX_BYTES
    for topn, status in ((0, 400), (1, 200), (1000, 200), (1001, 400)):
        body = {"question": "complete", "model": 0, "text": "a", "topn": topn}
        assert request(server, "POST", body=body)[0] == status


def test_responses_forbid_caching_framing_and_referrers(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    for method, path in (("GET", server.path), ("GET", "/"), ("POST", server.path)):
        connection.request(method, path, headers={"Content-Length": "0"})
        response = connection.getresponse()
        response.read()
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert response.headers["Server"].strip() == "w2v"
    connection.close()


@pytest.mark.parametrize("folders", ["home", "temporary", "none"])
def test_the_redirecting_file_is_in_a_writable_folder(
    folders: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    for folder in (home, temporary)[{"home": 0, "temporary": 1, "none": 2}[folders] :]:
        folder.mkdir()
    monkeypatch.setattr(Path, "home", lambda: home)
    monkeypatch.setattr(server_module.tempfile, "gettempdir", lambda: str(temporary))
    with Server("127.0.0.1", 0) as one:
        if folders == "none":
            with pytest.raises(w2v.W2VError, match="neither the home folder nor the temporary folder is writable"):
                one.redirecting().__enter__()
            return
        with one.redirecting() as file:
            assert file.parent.name == folders
            assert f'<a href="{one.url}">' in file.read_text()
            assert file.stat().st_mode & 0o777 == 0o600
        assert not file.exists()


def test_failures_of_requests_are_logged_except_lost_connections(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    for error in (RuntimeError("broken"), ConnectionResetError(), BrokenPipeError(), TimeoutError()):
        try:
            raise error
        except Exception:
            server.handle_error(None, None)
    assert caplog.messages == ["a request failed: RuntimeError: broken"]
