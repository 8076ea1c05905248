"""A schema registry for tests: HTTP or HTTPS on this machine, with answers that a test chooses."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler], None]


class Server:
    """What was asked, and what is answered."""

    def __init__(self, scheme: str, port: int) -> None:
        self.url = f"{scheme}://127.0.0.1:{port}"
        self.asked: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        self.answers: dict[str, Any] = {}
        """By path: an object for 200, or what answers itself."""
        self.otherwise: Answer | None = None
        """Answers what is not in ``answers``; by default 404 as a registry says it."""


def say(status: int, data: bytes, **headers: str) -> Answer:
    """Answer so."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return answer


MISSING = say(404, json.dumps({"error_code": 40403, "message": "Schema not found"}).encode())


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A server that runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            server.asked.append(self.path)
            server.headers.append(dict(self.headers))
            found = server.answers.get(self.path)
            if found is None:
                found = server.otherwise or MISSING
            answer = found if callable(found) else say(200, json.dumps(found).encode())
            try:
                answer(self)
            except OSError:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Nothing."""

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: object) -> None:
            """A handshake that fails is part of a test."""

    httpd = Quiet(("127.0.0.1", 0), Handler)
    if context is not None:
        httpd.socket = context.wrap_socket(httpd.socket, server_side=True, do_handshake_on_connect=False)
    server = Server("http" if context is None else "https", httpd.server_address[1])
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()
