"""Serve the explore page to one user of this machine, at an address with a secret token, for the whole vocabulary."""

from __future__ import annotations

import errno
import ipaddress
import logging
import secrets
import socket
import socketserver
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec

from w2v._errors import W2VError, error_message, one_line
from w2v._explore.explorer import Explorer
from w2v._system.sockets import REUSE_ADDRESS
from w2v._vectors.query import Method
from w2v._vectors.unknown_words import UnknownWordError

LOOPBACK = {"127.0.0.1", "::1", "localhost"}
EVERY_ADDRESS = {"", "0.0.0.0", "::"}
MAX_BYTES = 1 << 20  # size of a query
MAX_RESULTS = 1000
MAX_WORDS = 100  # words on each side of a query: 3CosMul searches the whole vocabulary for each of them
TIMEOUT = 60  # seconds to wait for the next request of a connection
REDIRECT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>w2v explore</title>
<meta http-equiv="refresh" content="0; url={url}"><p><a href="{url}">w2v explore</a></p></html>
"""
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # other sites must not see the token in the address
    "X-Content-Type-Options": "nosniff",
}

ResultCount = Annotated[int, msgspec.Meta(ge=1, le=MAX_RESULTS)]
ModelIndex = Annotated[int, msgspec.Meta(ge=0)]
QueryWords = Annotated[list[str], msgspec.Meta(max_length=MAX_WORDS)]


class Query(msgspec.Struct, tag_field="question", tag=str.lower, forbid_unknown_fields=True):
    """A query of the page. Each subclass is named after the method of Explorer that answers it, and has its arguments.

    Attributes:
        model: The index of the model.
    """

    model: ModelIndex

    def answer(self, explorer: Explorer) -> Any:
        arguments = msgspec.structs.asdict(self)
        del arguments["model"]
        return getattr(explorer, type(self).__name__.lower())(**arguments)


class Complete(Query):
    text: str
    topn: ResultCount


class Nearest(Query):
    plus: QueryWords
    minus: QueryWords
    method: Method
    topn: ResultCount


class Vector(Query):
    word: str


class Map(Query):
    pass


class Server(ThreadingHTTPServer):
    """A server of one page and its queries at `url`. A thread serves each connection.

    Other pages in the user's browser must not reach the server. They cannot guess its address, because it has a
    random token. They cannot use DNS rebinding, because the Host header must name this server.
    """

    allow_reuse_address = REUSE_ADDRESS
    daemon_threads = True
    request_queue_size = 128  # connections that the system queues until the server accepts them
    block_on_close = False  # Ctrl-C stops the server without waiting for answers

    def __init__(self, host: str, port: int) -> None:
        """Bind to a port; 0 takes any free one.

        Raises:
            W2VError: The port is in use, or the system refuses for another reason.
        """
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._host = host
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise W2VError(
                    f"port {port} is in use: choose another --port, or leave it out to use any free port"
                ) from error
            raise W2VError(f"cannot serve at {host}, port {port}: {error.strerror or error}") from error
        self.path = f"/{secrets.token_urlsafe(16)}/"
        self.page = b""
        self.explorers: Sequence[Explorer] = ()
        self.redirect: Path | None = None

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # HTTPServer's method looks up the host name, which can take seconds
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    @property
    def url(self) -> str:
        host = socket.gethostname() if self._host in EVERY_ADDRESS else self._host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server_port}{self.path}"

    def run(self, page: str, explorers: Sequence[Explorer]) -> None:
        """Serve until an exception such as KeyboardInterrupt."""
        self.page, self.explorers = page.encode(), explorers
        with self:
            self.serve_forever()

    @contextmanager
    def redirecting(self) -> Iterator[Path]:
        """Create a file, readable only by this user, that redirects a browser to the page. Yield its path.

        The browser is started with this path instead of the address: other users can see its command line, and must not
        learn the token. The file is in the home folder, and its name has no leading dot, because browsers in containers
        may be unable to read other files. It is removed when the page is first sent, or at the end.

        Raises:
            W2VError: Neither the home folder nor the temporary folder is writable.
        """
        self.redirect = _private_file(REDIRECT.format(url=escape(self.url)))
        try:
            yield self.redirect
        finally:
            self.redirect.unlink(missing_ok=True)

    def is_own_host(self, header: str) -> bool:
        """Return whether a Host header names this server. The port does not matter: a tunnel may use another."""
        try:
            name = urlsplit(f"//{header}").hostname or ""
        except ValueError:
            return False
        if self._host in LOOPBACK:
            return name in LOOPBACK
        if self._host in EVERY_ADDRESS:
            with suppress(ValueError):
                return bool(ipaddress.ip_address(name))
            return name in {"localhost", socket.gethostname().lower()}
        return name == self._host.lower()

    def handle_error(self, request: object, client_address: object) -> None:
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):  # these mean that the browser left
            logging.getLogger("w2v").warning("a request failed: %s: %s", type(error).__name__, error)


def _private_file(content: str) -> Path:
    """Write a file that only this user can read to the home folder, or else to the temporary folder."""
    for find_folder in (Path.home, tempfile.gettempdir):
        with (
            suppress(OSError, RuntimeError),
            tempfile.NamedTemporaryFile(
                "w", encoding="utf-8", suffix=".html", prefix="w2v-explore-", dir=find_folder(), delete=False
            ) as file,
        ):
            file.write(content)
            return Path(file.name)
    raise W2VError("neither the home folder nor the temporary folder is writable: leave out --open")


class _Handler(BaseHTTPRequestHandler):
    """The handler of a connection. It sends the page for GET, and the answer to a query for POST."""

    server: Server
    protocol_version = "HTTP/1.1"  # keeps connections open, so that an answer takes one round trip
    # Sends header and body together: a separate body would wait 40 ms for the acknowledgement of the header.
    wbufsize = -1
    server_version, sys_version = "w2v", ""
    timeout = TIMEOUT

    def do_GET(self) -> None:
        if self._authenticate():
            if self.server.redirect:
                self.server.redirect.unlink(missing_ok=True)
            self._send(200, "text/html; charset=utf-8", self.server.page)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not self._authenticate():
            return
        if not length.isdecimal() or len(length) > len(str(MAX_BYTES)) or int(length) > MAX_BYTES:
            self._refuse(413, f"a query has at most {MAX_BYTES:,} bytes")
            return
        try:
            query = msgspec.json.decode(self.rfile.read(int(length)), type=Complete | Nearest | Vector | Map)
            explorer = self.server.explorers[query.model]
        except (ValueError, RecursionError, IndexError) as error:
            self._refuse(400, f"not a query: {one_line(error)}")
            return
        try:
            response = {"answer": query.answer(explorer)}
        except UnknownWordError:
            response = {"error": "not in the vocabulary"}  # the page adds the word and suggests others
        except (W2VError, MemoryError) as error:
            response = {"error": error_message(error)}
        self._send(200, "application/json", msgspec.json.encode(response))

    def _authenticate(self) -> bool:
        """Check the Host header and the token. If they are wrong, refuse the request and return False."""
        allowed = self.server.is_own_host(self.headers.get("Host", ""))
        allowed &= secrets.compare_digest(self.path.encode(), self.server.path.encode())
        if not allowed:
            self._refuse(403, "wrong address: use the address that w2v explore printed")
        return allowed

    def _refuse(self, status: int, reason: str) -> None:
        self.close_connection = True  # the rest of the request is not read
        self._send(status, "text/plain; charset=utf-8", reason.encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **HEADERS}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: http.server would print each request."""
