"""``kdissect web``: the screens in a browser."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest

from kdissect.cli.commands import web as web_command
from kdissect.cli.exit_codes import USAGE
from kdissect.tui import web as web_screens
from tests.cli.run import CAPTURES, ROOT, run

CAPTURE = CAPTURES / "errors.pcapng"


class Served(NamedTuple):
    """Where a capture is served."""

    address: str
    token: str

    @property
    def page(self) -> str:
        return f"http://{self.address}/?token={self.token}"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "kdissect", "web", str(CAPTURE), "--port", str(port)],
        cwd=ROOT,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path), "KDISSECT_PAGE": "exchanges"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    line = process.stderr.readline().decode()
    form = rf"kdissect: the screens are at http://127\.0\.0\.1:{port}/\?token=([\w-]{{43}}) \(Ctrl-C ends\)\n"
    printed = re.fullmatch(form, line)
    assert printed is not None
    yield Served(f"127.0.0.1:{port}", printed[1])
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, b"", b"")  # no visit was logged, its token least of all


@asynccontextmanager
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened
    await asyncio.sleep(0.1)  # connections are closed a little later; aiohttp's guide says to wait


def test_the_screens_come_to_a_page_from_here_and_answer_keys(served: Served) -> None:
    async def visit() -> None:
        async with session() as browser:
            async with browser.get(served.page) as page:
                assert page.status == 200
                policy = page.headers["Content-Security-Policy"]
                assert "default-src 'self'" in policy
                assert f"ws://{served.address}" in policy
                assert page.headers["Referrer-Policy"] == "no-referrer"
                assert page.headers["Cache-Control"] == "no-store"
                assert "Set-Cookie" not in page.headers
                found = re.search(r'data-session-websocket-url="([^"]+)"', await page.text())
            assert found is not None
            # As the page's script has it.
            address = f"{found[1]}?width=120&height=40"
            async with browser.ws_connect(address, origin=f"http://{served.address}") as screen:
                drawn = b""
                while b"RequestHeader" not in drawn:
                    message = await screen.receive(timeout=60)
                    drawn += message.data if message.type == aiohttp.WSMsgType.BINARY else b""
                assert b"52 exchanges" in drawn
                await screen.send_str(json.dumps(["stdin", "q"]))
                while not screen.closed:
                    await screen.receive(timeout=60)

    asyncio.run(visit())


def test_screens_that_end_after_the_server_are_no_fault() -> None:
    program = (
        "import logging; from kdissect.tui.web import Screens\n"
        "Screens([], '127.0.0.1', 1, print).initialize_logging()\n"
        "logging.getLogger('asyncio').warning('Loop that handles pid 7 is closed')\n"
        "logging.getLogger('aiohttp').warning('told')\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, cwd=ROOT, check=True)
    assert ran.stderr == b"kdissect: told\n"


def test_pages_from_elsewhere_get_nothing(served: Served) -> None:
    async def visit() -> None:
        async with session() as browser:
            for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
                async with browser.get(served.page, headers=headers) as page:
                    assert page.status == 403
            for headers in ({}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
                for socket_address in (f"/ws/{served.token}", f"/ws?token={served.token}"):
                    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                        await browser.ws_connect(f"ws://{served.address}{socket_address}", headers=headers)
                    assert refused.value.status == 403
            local = served.address.replace("127.0.0.1", "localhost")
            async with browser.get(served.page, headers={"Host": local}, allow_redirects=False) as page:
                assert (page.status, page.headers["Location"]) == (302, served.page)

    asyncio.run(visit())


def test_without_the_token_neither_the_page_nor_the_connection_is_had(served: Served) -> None:
    async def visit() -> None:
        own = f"http://{served.address}"
        local = served.address.replace("127.0.0.1", "localhost")
        wrong = ("", served.token[:-1], served.token + "x", served.token.swapcase(), "%ff%00é")
        async with session() as browser:
            for path in (
                "/",
                "/ws",
                "/ws/",
                "/nothing",
                "/download/x",
                *(f"/?token={each}" for each in wrong),
            ):
                for host in (served.address, local):
                    async with browser.get(own + path, headers={"Host": host}, allow_redirects=False) as page:
                        assert page.status == 403
                        assert served.token not in str(page.headers) + await page.text()
            for path in ("/ws", *(f"/ws/{each}" for each in wrong), *(f"/ws?token={each}" for each in wrong)):
                with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                    await browser.ws_connect(f"ws://{served.address}{path}", origin=own)
                assert refused.value.status == 403

    asyncio.run(visit())


def test_what_is_not_installed_is_told(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_command, "find_spec", lambda name: None)
    ran = run(capsysbinary, "web", CAPTURE)
    assert (ran.code, ran.err) == (
        USAGE,
        "kdissect: the browser needs textual-serve: pip install textual-serve,"
        " or kdissect with its extra web\n",
    )


@pytest.mark.parametrize(
    ("option", "value", "part"),
    [
        ("--theme", "nope", "there is no such theme"),
        ("-Y", "api == ", "-Y: "),
        ("-d", "tcp.port==x,kafka", "-d"),
        ("--port", "0", "--port"),
    ],
)
def test_wrong_options_are_told_before_the_address_is(
    option: str, value: str, part: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    ran = run(capsysbinary, "web", CAPTURE, option, value)
    assert (ran.code, ran.out) == (USAGE, b"")
    assert part in ran.err
    assert "http://" not in ran.err


def test_a_wrong_setting_for_the_screens_is_told_before_the_address_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "config.toml").write_text('theme = "nope"')
    monkeypatch.setenv("KDISSECT_CONFIG", str(tmp_path / "config.toml"))
    ran = run(capsysbinary, "web", CAPTURE)
    assert ran.code == USAGE
    assert "config.toml:1: theme nope: there is no such theme" in ran.err
    assert "http://" not in ran.err


def test_standard_input_cannot_be_served(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    ran = run(capsysbinary, "web", "-")
    assert ran.code == USAGE
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid"])
def test_an_address_that_is_not_ours_is_told_after_the_warning(
    host: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    ran = run(capsysbinary, "web", CAPTURE, "--host", host)
    assert ran.code == USAGE
    first, second = ran.err.splitlines()
    assert first.endswith("is not encrypted: everybody who sees the packets sees the token")
    assert "cannot be served" in second


def test_secrets_are_handed_on_by_path(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[list[str]] = []

    class Recorder:
        def __init__(self, arguments: list[str], *_: object) -> None:
            made.append(arguments)

        def serve(self) -> None:
            """Nobody visits."""

    monkeypatch.setattr(web_screens, "Screens", Recorder)
    monkeypatch.chdir(tmp_path)
    Path("keys.log").write_bytes(b"# nothing yet\n")
    ran = run(capsysbinary, "web", CAPTURE, "--keylog", "keys.log")
    assert (ran.code, "it contains no secrets" in ran.err) == (0, True)
    assert made == [["--keylog", str(tmp_path / "keys.log"), "--", str(CAPTURE)]]
    ran = run(capsysbinary, "web", CAPTURE, "--rsa-key", "keys.log")
    assert (ran.code, len(made)) == (3, 1)
