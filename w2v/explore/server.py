"""A server of the page for one user: on this machine, at a random address, for the whole vocabulary."""

from __future__ import annotations

import errno
import ipaddress
import logging
import secrets
import socket
import socketserver
import sys
import tempfile
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec

from w2v.errors import W2VError
from w2v.explore.explorer import Explorer
from w2v.vectors.query import Method
from w2v.vectors.unknown_words import UnknownWordError

LOOPBACK = {"127.0.0.1", "::1", "localhost"}
EVERY_ADDRESS = {"", "0.0.0.0", "::"}
MAX_BYTES = 1 << 20  # of a question
MAX_RESULTS = 1000
MAX_STRANGERS = 32  # connections that have not named the right address yet
FIRST_TIMEOUT, TIMEOUT = 5, 60  # seconds until the first request of a connection, and until another
PAUSE = 0.1  # seconds before the next connection when one could not be accepted
REDIRECT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>w2v explore</title>
<meta http-equiv="refresh" content="0; url={url}"><p><a href="{url}">w2v explore</a></p></html>
"""
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the address is a secret
    "X-Content-Type-Options": "nosniff",
}

Number = Annotated[int, msgspec.Meta(ge=1, le=MAX_RESULTS)]
Index = Annotated[int, msgspec.Meta(ge=0)]


class Question(msgspec.Struct, tag_field="question", tag=str.lower, forbid_unknown_fields=True):
    """A question of a page: the method of Explorer named by the class, its arguments, and the index of the model."""

    model: Index

    def answer(self, explorer: Explorer) -> Any:
        arguments = msgspec.structs.asdict(self)
        del arguments["model"]
        return getattr(explorer, type(self).__name__.lower())(**arguments)


class Complete(Question):
    text: str
    n: Number


class Nearest(Question):
    plus: list[str]
    minus: list[str]
    method: Method
    n: Number


class Vector(Question):
    word: str


class Map(Question):
    pass


class Server(ThreadingHTTPServer):
    """Serves a page and its answers under `url`, once `run`; each request is a thread of its own.

    The address has a random token, and the Host header must name this server, so that no other page in the browser
    can query it: neither by guessing the address nor by DNS rebinding.
    """

    daemon_threads = True
    request_queue_size = 128  # connections that wait to be accepted
    block_on_close = False  # Ctrl-C ends it at once, whatever is being answered

    def __init__(self, host: str, port: int) -> None:
        """Take a port, any free one for 0. Raises W2VError if that is not possible."""
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._host = host
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise W2VError(f"port {port} is in use: choose another --port, or none for any free one") from error
            raise W2VError(f"cannot serve at {host}, port {port}: {error.strerror or error}") from error
        self.path = f"/{secrets.token_urlsafe(16)}/"
        self.page = b""
        self.explorers: Sequence[Explorer] = ()
        # Connections that wait for a request, the oldest first: of strangers, and of those who named the address.
        self.strangers: OrderedDict[socket.socket, None] = OrderedDict()
        self.users: OrderedDict[socket.socket, None] = OrderedDict()
        self.redirect: Path | None = None

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # HTTPServer's own looks up its name, which can take seconds
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    @property
    def url(self) -> str:
        host = socket.gethostname() if self._host in EVERY_ADDRESS else self._host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server_port}{self.path}"

    def run(self, page: str, explorers: Sequence[Explorer]) -> None:
        """Serve until an exception, such as KeyboardInterrupt."""
        self.page, self.explorers = page.encode(), explorers
        with self:
            self.serve_forever()

    @contextmanager
    def redirecting(self) -> Iterator[Path]:
        """A file that only this user can read, which leads a browser to the page; it goes when the page is first sent.

        Other users can see the arguments of a browser, so the address itself must not be one. The file is in the home
        folder, under a name that is not hidden: browsers in containers may read no other. Raises W2VError if neither
        this folder nor that of temporary files can be written to.
        """
        self.redirect = _private_file(REDIRECT.format(url=escape(self.url)))
        try:
            yield self.redirect
        finally:
            self.redirect.unlink(missing_ok=True)

    def get_request(self) -> Any:
        try:
            return super().get_request()
        except OSError:
            self._end_oldest()  # perhaps this is the limit of open files
            time.sleep(PAUSE)  # otherwise it would be tried again at once, without end
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection. Beyond MAX_STRANGERS, the oldest stranger has to go, so that none keeps out the user."""
        self.strangers[request] = None
        if len(self.strangers) > MAX_STRANGERS:
            self._end_oldest()
        super().process_request(request, client_address)

    def _end_oldest(self) -> None:
        """End a connection that waits for a request; browsers open another when they need one."""
        with suppress(OSError, KeyError):  # it has just gone itself
            (self.strangers or self.users).popitem(last=False)[0].shutdown(socket.SHUT_RDWR)

    def forget(self, request: Any) -> None:
        """A connection waits no longer."""
        self.strangers.pop(request, None)
        self.users.pop(request, None)

    def shutdown_request(self, request: Any) -> None:
        self.forget(request)
        super().shutdown_request(request)

    def is_named(self, header: str) -> bool:
        """Whether a Host header names this server, at any port: a tunnel may have another."""
        try:
            name = urlsplit(f"//{header}").hostname
        except ValueError:
            return False
        if self._host in LOOPBACK:
            return name in LOOPBACK
        if self._host in EVERY_ADDRESS:
            return name in {*LOOPBACK, socket.gethostname().lower()} or _is_address(name or "")
        return name == self._host.lower()

    def handle_error(self, request: object, client_address: object) -> None:
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):  # the browser has gone
            logging.getLogger("w2v").warning("a request failed: %s: %s", type(error).__name__, error)


def _private_file(content: str) -> Path:
    for find in (Path.home, tempfile.gettempdir):
        with (
            suppress(OSError, RuntimeError),
            tempfile.NamedTemporaryFile(
                "w", encoding="utf-8", suffix=".html", prefix="w2v-explore-", dir=find(), delete=False
            ) as file,
        ):
            file.write(content)
            return Path(file.name)
    raise W2VError("neither the home folder nor one for temporary files can be written to: leave out --open")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"  # connections stay open, so that an answer takes one round trip
    wbufsize = -1  # header and body leave together: apart, the body waits 40 ms for an acknowledgement of the header
    server_version, sys_version = "w2v", ""
    timeout = FIRST_TIMEOUT

    def handle_one_request(self) -> None:
        super().handle_one_request()
        if not self.close_connection:
            self.server.users[self.request] = None

    def do_GET(self) -> None:
        if self._may_ask():
            if self.server.redirect:
                self.server.redirect.unlink(missing_ok=True)
            self._send(200, "text/html; charset=utf-8", self.server.page)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not self._may_ask():
            return
        if not length.isdecimal() or len(length) > len(str(MAX_BYTES)) or int(length) > MAX_BYTES:
            self._refuse(413, f"a question has at most {MAX_BYTES:,} bytes")
            return
        try:
            question = msgspec.json.decode(self.rfile.read(int(length)), type=Complete | Nearest | Vector | Map)
            explorer = self.server.explorers[question.model]
        except (msgspec.DecodeError, IndexError) as error:
            self._refuse(400, f"not a question: {error}")
            return
        found: dict[str, Any]
        try:
            found = {"answer": question.answer(explorer)}
        except UnknownWordError:
            found = {"error": "not in the vocabulary"}  # the page knows the word, and names others
        except W2VError as error:
            found = {"error": str(error)}
        self._send(200, "application/json", msgspec.json.encode(found))

    def _may_ask(self) -> bool:
        """Whether Host and token are right; if not, the request is refused."""
        allowed = self.server.is_named(self.headers.get("Host", ""))
        allowed &= secrets.compare_digest(self.path.encode(), self.server.path.encode())
        if not allowed:
            self._refuse(403, "wrong address: use the one that w2v explore printed")
            return False
        self.server.forget(self.request)
        self.connection.settimeout(TIMEOUT)
        return True

    def _refuse(self, status: int, reason: str) -> None:
        self.close_connection = True  # what else was sent is not read
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
        """Requests are not logged."""
