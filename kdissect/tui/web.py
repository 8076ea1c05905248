"""The screens in a browser, through textual-serve (the extra ``web``): each visit runs ``kdissect tui``.

Anybody who reaches the screens sees and can do the same as the user. Every account of a machine reaches its
ports. So the address has a random token, which is required for the page and for the connection that carries
keys. The token is not in a cookie, because browsers send cookies to every port of the machine. Requests are
answered only under the served address: a page elsewhere whose name was made to lead here has another address.
The connection is answered only to a page that came from here. The page's requests to other servers (a font of
Google's) are blocked by its policy, so that nothing leaves the machine, especially not the token.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import shlex
import sys
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address

import aiohttp_jinja2
import jinja2
from aiohttp import web
from textual_serve.server import Server

from kdissect.system import ENDING, call_at_signals

POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data:; font-src 'self' data:; connect-src 'self' {socket}; frame-ancestors 'none'"
)
TOKEN_BYTES = 32
PATIENCE_SECONDS = 1.0
"""How long visits may take to end when serving ends."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Screens(Server):
    """Serves ``kdissect tui`` with some arguments.

    :param told: called with the address and its token after serving has begun.
    """

    def __init__(self, arguments: Sequence[str], host: str, port: int, told: Callable[[str], None]) -> None:
        command = shlex.join([sys.executable, "-m", "kdissect", "tui", *arguments])
        name = f"[{host}]" if ":" in host else host
        super().__init__(command, host, port, "kdissect", f"http://{name}:{port}")
        self._told = told
        self._token = secrets.token_urlsafe(TOKEN_BYTES)

    def initialize_logging(self) -> None:
        """Log only errors, without tracebacks, which would show values."""
        handler = logging.StreamHandler()
        handler.setFormatter(_OneLineFormatter("kdissect: %(message)s"))
        logging.basicConfig(level=logging.WARNING, handlers=[handler])
        # asyncio warns if a visitor's screens end later than the server's loop. That is no fault.
        logging.getLogger("asyncio").setLevel(logging.ERROR)

    def serve(self, debug: bool = False) -> None:
        """Serve until SIGINT or SIGTERM.

        :raises OSError: the address cannot be served.
        """
        self.initialize_logging()
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        stopped, loop = asyncio.Event(), asyncio.get_running_loop()
        call_at_signals(loop, ENDING, lambda _: stopped.set())
        runner = web.AppRunner(await self._make_app(), access_log=None, shutdown_timeout=PATIENCE_SECONDS)
        try:
            await runner.setup()
            await web.TCPSite(runner, self.host, self.port).start()
            self._told(f"{self.public_url}/?token={self._token}")
            await stopped.wait()
        finally:
            await runner.cleanup()

    async def _make_app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        aiohttp_jinja2.setup(app, loader=jinja2.FileSystemLoader(self.templates_path))
        app.add_routes(
            [
                web.get("/", self.handle_index, name="index"),
                # The page's script puts a query behind the address of the connection.
                web.get(f"/ws/{self._token}", self.handle_websocket, name="websocket"),
                web.get("/ws", self.handle_websocket),
                web.static("/static", self.statics_path, name="static"),
            ]
        )
        return app

    @property
    def _address(self) -> str:
        return self.public_url.removeprefix("http://")

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        by_name = request.host == f"localhost:{self.port}" and is_local(self.host)
        if request.host != self._address and not (by_name and request.path == "/"):
            raise web.HTTPForbidden(text="this address is not served")
        if not request.path.startswith("/static/") and not self._has_token(request):
            raise web.HTTPForbidden(text="the whole address is needed, with the token that was printed")
        if request.host != self._address:
            raise web.HTTPFound(f"{self.public_url}{request.path_qs}")
        if request.headers.get("Origin", self.public_url) != self.public_url:
            raise web.HTTPForbidden(text="only pages from this server may send requests")
        if request.path.startswith("/ws") and "Origin" not in request.headers:
            raise web.HTTPForbidden(text="only pages from this server may send requests")
        response = await handler(request)
        if not response.prepared:
            response.headers["Content-Security-Policy"] = POLICY.format(socket=f"ws://{self._address}")
            response.headers["Referrer-Policy"] = "no-referrer"
            response.headers["Cache-Control"] = "no-store"
        return response

    def _has_token(self, request: web.Request) -> bool:
        """Whether a request has the token, in its query or at the end of its path. The comparison takes the
        same time for every token."""
        _, _, last = request.path.rpartition("/")
        given = request.query.get("token", last)
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())


class _OneLineFormatter(logging.Formatter):
    def formatException(self, ei: object) -> str:  # noqa: N802 - logging's name
        return ""


def is_local(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
