"""The screen without a capture."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from kdissect.feed.batches import Feed
from kdissect.live.rates import InterfaceRate
from kdissect.model import CaptureError
from kdissect.settings.recent import remember
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.start import InterfaceList
from tests.amount import some
from tests.cli.golden import check_golden
from tests.cli.run import CAPTURES
from tests.feed.feeds import decoded
from tests.tui.snapshots import screen_text, settle, undrawn

HOSTILE = "/x/[red]a[/red]\x1b[2J\u202eb"


class Looked:
    """Interfaces that are as they are told to be."""

    def __init__(self) -> None:
        self.found = [
            InterfaceRate("any", "up", None, "all of them at once", 4_321.4),
            InterfaceRate("lo", "up", "127.0.0.1", "loopback", 0.0),
            InterfaceRate("eth0", "up", "10.0.0.5", "", 4_321.4),
            InterfaceRate("eth1", "down", None, "", 0.0),
        ]

    def look(self, _: float) -> list[InterfaceRate]:
        return self.found


class Opened:
    """Opens files; of interfaces, what a capture holds."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def file(self, path: str) -> Feed:
        if not Path(path).is_file():
            raise CaptureError(f"{path}: cannot be read: No such file or directory")
        return decoded(Path(path))

    def interfaces(self, words: str) -> Feed:
        self.asked.append(words)
        if "eth1" in words:
            raise CaptureError("eth1 is down: ip link set eth1 up")
        return decoded(CAPTURES / "errors.pcapng")


def started(
    step: Callable[[Pilot[None], Kdissect], Awaitable[None]],
    width: int = 120,
    height: int = 40,
    opener: Opened | None = None,
    rates: Looked | None = None,
) -> None:
    """Run a step on the start screen."""

    async def run() -> None:
        app = Kdissect(None, opener=opener or Opened(), rates=rates or Looked())
        with undrawn():
            async with app.run_test(size=(width, height)) as pilot:
                await pilot.pause()
                await step(pilot, app)
        if app.is_open:
            app.feed.close()

    asyncio.run(run())


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", "/home/you")


@pytest.mark.parametrize(
    "size",
    some([(80, 24), (120, 40), (200, 60)], 1, (120, 40)),
    ids=lambda size: f"{size[0]}x{size[1]}",
)
def test_screen(size: tuple[int, int], update_golden: bool) -> None:
    remember(["/captures/gone.pcapng", "/captures/also-gone.pcap.gz"])

    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        check_golden(f"tui/start-{size[0]}x{size[1]}.txt", screen_text(app), update_golden)

    started(step, *size)


@pytest.mark.parametrize("keys", [("down",) * 3 + ("enter",), ("up",) * 2 + ("enter",)], ids=["down", "up"])
def test_an_interface_is_chosen_by_arrows(keys: tuple[str, ...]) -> None:
    remember(["/no/such"])
    opener = Opened()

    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        await pilot.press(*keys[:-1])
        await pilot.pause()
        assert app.screen.query_one(Input).value == "-i eth0"
        await pilot.press(keys[-1])
        await settle(pilot)
        assert opener.asked == ["-i eth0"]
        assert "52 exchanges" in screen_text(app)

    started(step, opener=opener)


def test_an_interface_is_chosen_by_a_click() -> None:
    opener = Opened()

    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        await pilot.click(InterfaceList, offset=(4, 2))
        await settle(pilot)
        assert "52 exchanges" in screen_text(app)

    started(step, opener=opener)
    assert opener.asked == ["-i lo"]


def test_a_capture_filter_can_be_typed_and_what_cannot_be_captured_is_told() -> None:
    opener = Opened()

    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        field = app.screen.query_one(Input)
        field.value = "-i eth1 -f 'tcp port 9092'"
        await pilot.press("enter")
        await pilot.pause()
        assert not app.is_open
        assert "eth1 is down: ip link set eth1 up" in screen_text(app)
        assert opener.asked == ["-i eth1 -f 'tcp port 9092'"]
        field.value = "-input.pcap"
        await pilot.press("enter")
        await pilot.pause()
        assert "-input.pcap: cannot be read" in screen_text(app)

    started(step, opener=opener)


def test_rates_are_those_of_now_and_interfaces_come_and_go() -> None:
    rates = Looked()

    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        assert "4,321 packets/s" in screen_text(app)
        await pilot.press("up", "up")  # eth0
        found = app.screen.query_one(InterfaceList)
        rates.found[2] = rates.found[2]._replace(rate=77.0)
        found.look()
        await pilot.pause()
        assert "77 packets/s" in screen_text(app)
        rates.found = [*rates.found[:1], *rates.found[2:], InterfaceRate("wg[0]\x1b", "up")]
        found.look()
        await pilot.pause()
        assert "loopback" not in screen_text(app)
        assert "wg[0]\\x1b" in screen_text(app)
        assert found.chosen == "eth0"

    started(step, rates=rates)


def test_one_of_the_last_is_opened() -> None:
    remember([str(CAPTURES / "errors.pcapng")])
    remember(["/no/such"])

    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        assert "is gone" in screen_text(app)
        await pilot.press("enter")
        await pilot.pause()
        assert "/no/such: cannot be read: No such file or directory" in screen_text(app)
        assert not app.is_open
        await pilot.press("down", "enter")
        await settle(pilot)
        assert "52 exchanges" in screen_text(app)

    started(step)


@pytest.mark.parametrize("form", some(["{}", "  {} ", "'{}'", '"{}"'], 2, "  {} ", "'{}'"))
def test_a_pasted_path_is_opened(form: str) -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        app.screen.query_one(Input).value = form.format(CAPTURES / "errors.pcapng")
        await pilot.press("enter")
        await settle(pilot)
        assert "52 exchanges" in screen_text(app)
        await pilot.press("2")
        await settle(pilot)
        assert app.screen is app.pages["connections"]

    started(step)


def test_hostile_names_are_shown_as_they_are() -> None:
    remember([HOSTILE])

    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        await pilot.press("enter")
        await pilot.pause()
        text = screen_text(app)
        assert "[red]a[/red]\\x1b[2J" in text
        assert all(character.isprintable() for character in text if character != "\n")

    started(step)


def test_what_is_typed_goes_to_the_field_and_enter_opens_nothing_else(tmp_path: Path) -> None:
    remember([str(CAPTURES / "errors.pcapng")])

    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        await pilot.press("q", "slash", "x")
        assert app.screen.query_one(Input).value == "q/x"
        await pilot.press("enter")
        await pilot.pause()
        assert not app.is_open
        assert "q/x: cannot be read" in screen_text(app)

    started(step)


def test_tab_completes_and_lists_how_it_may_go_on() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        field = app.screen.query_one(Input)
        field.value = f"{CAPTURES}/erro"
        await pilot.press("tab")
        await pilot.pause()
        assert field.value == str(CAPTURES / "errors.pcapng")
        field.value = f"{CAPTURES}/basic-kafka"
        await pilot.press("tab")
        await pilot.pause()
        assert "basic-kafka43.pcapng" in screen_text(app)
        assert app.screen.focused is field

    started(step, 200)


def test_a_folder_lists_its_captures_and_arrows_choose_one() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        field = app.screen.query_one(Input)
        field.value = str(CAPTURES)
        await pilot.press("enter")
        await pilot.pause()
        assert not app.is_open
        assert "captures in" in screen_text(app)
        while not field.value.endswith("errors.pcapng"):
            await pilot.press("down")
        await pilot.press("enter")
        await settle(pilot)
        assert "52 exchanges" in screen_text(app)

    started(step, 200)


def test_the_footer_has_the_key_that_chooses_and_enter_asks_for_a_path() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        assert "↓ Below" in screen_text(app).splitlines()[-1]
        await pilot.press("enter")
        await pilot.pause()
        assert "write a path, or choose an interface" in screen_text(app)

    started(step)
