"""The screens in a browser, through textual-serve (the extra ``web``): each visit runs ``kdissect tui``.

There is no password: whoever reaches the port sees what the user sees and can do what the user can. So
requests are answered only under the address that is served (a page elsewhere whose name was made to lead here
has another), and the connection that carries keys only to a page that came from here. What the page asks of
others (a font of Google's) is refused by its policy: nothing leaves the machine.
"""

from __future__ import annotations

import asyncio
import logging
import shlex
import sys
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address

from aiohttp import web
from textual_serve.server import Server

from kdissect.system import ENDING, call_at_signals

POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data:; font-src 'self' data:; connect-src 'self' {socket}; frame-ancestors 'none'"
)
PATIENCE_SECONDS = 1.0
"""How long visits may take to end when serving ends."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Screens(Server):
    """Serves ``kdissect tui`` with some arguments.

    :param told: called with the address when it is served.
    """

    def __init__(self, arguments: Sequence[str], host: str, port: int, told: Callable[[str], None]) -> None:
        command = shlex.join([sys.executable, "-m", "kdissect", "tui", *arguments])
        name = f"[{host}]" if ":" in host else host
        super().__init__(command, host, port, "kdissect", f"http://{name}:{port}")
        self._told = told

    def initialize_logging(self) -> None:
        """Only what goes wrong is told, without tracebacks: they would show values."""
        handler = logging.StreamHandler()
        handler.setFormatter(_OneLine("kdissect: %(message)s"))
        logging.basicConfig(level=logging.WARNING, handlers=[handler])

    async def on_startup(self, app: web.Application) -> None:
        """Nothing is told yet: nobody listens before all are started."""

    def serve(self, debug: bool = False) -> None:
        """Serve until SIGINT or SIGTERM.

        :raises OSError: the address cannot be served.
        """
        self.initialize_logging()
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        stopped, loop = asyncio.Event(), asyncio.get_running_loop()
        call_at_signals(loop, ENDING, lambda _: stopped.set())
        runner = web.AppRunner(await self._make_app(), shutdown_timeout=PATIENCE_SECONDS)
        try:
            await runner.setup()
            await web.TCPSite(runner, self.host, self.port).start()
            self._told(self.public_url)
            await stopped.wait()
        finally:
            await runner.cleanup()

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._guard)
        return app

    @property
    def _address(self) -> str:
        return self.public_url.removeprefix("http://")

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.host != self._address:
            if request.path == "/" and request.host == f"localhost:{self.port}" and is_local(self.host):
                raise web.HTTPFound(self.public_url)
            raise web.HTTPForbidden(text="this address is not served")
        if request.headers.get("Origin", self.public_url) != self.public_url:
            raise web.HTTPForbidden(text="only pages from here may ask")
        if request.path == "/ws" and "Origin" not in request.headers:
            raise web.HTTPForbidden(text="only pages from here may ask")
        response = await handler(request)
        if not response.prepared:
            response.headers["Content-Security-Policy"] = POLICY.format(socket=f"ws://{self._address}")
        return response


class _OneLine(logging.Formatter):
    def formatException(self, ei: object) -> str:  # noqa: N802 - logging's name
        return ""


def is_local(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
