"""The screen of ``kdissect diff``: lists, keys, sizes, and the way to either side's exchanges."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from kdissect.analysis.fold import Row
from kdissect.insight.context import JudgingContext
from kdissect.insight.diff import differences
from kdissect.insight.difference import Difference
from kdissect.insight.judge import CaptureReport, NotJudged
from kdissect.settings.actions import actions_of
from kdissect.settings.places import DIFF_VIEWS
from kdissect.tui.comparison import ComparedCapture, Comparison, ComparisonScreen, ShownOutcome
from tests.cli.run import CAPTURES
from tests.insight.test_diff import MS, finding, measured, report
from tests.tui.snapshots import screen_text, undrawn
from tests.tui.terminals import Terminal

SIZES = ((80, 24), (120, 40), (240, 70))
Step = Callable[[Pilot[None]], Awaitable[None]]


def _reports() -> tuple[CaptureReport, CaptureReport]:
    more = measured(9 * MS, 8 * MS, 10 * MS, subject="Fetch")
    same = measured(5 * MS, 4 * MS, 6 * MS, subject="Metadata")
    before = report(
        (measured(5 * MS, 4 * MS, 6 * MS), measured(4 * MS, 3 * MS, 5 * MS, subject="Fetch"), same)
    )
    after = report(
        (measured(9 * MS, 8 * MS, 10 * MS), more, same),
        (finding(group="orders").changed(filter="group == orders", message="It took very long."),),
    )
    return before, after


class Shown:
    """Takes down which exchanges were asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.outcome = ShownOutcome()

    def of(self, name: str) -> Callable[[str], ShownOutcome]:
        def show(text: str) -> ShownOutcome:
            self.asked.append((name, text))
            return self.outcome

        return show


def with_screen(step: Step, size: tuple[int, int] = (120, 40), shown: Shown | None = None) -> None:
    before, after = _reports()
    found = differences(before, after)
    made = Shown() if shown is None else shown

    async def run() -> None:
        app = Comparison(
            (
                ComparedCapture("old.pcapng", before.context, made.of("old")),
                ComparedCapture("new.pcapng", after.context, made.of("new")),
            ),
            found,
        )
        app.suspend = nullcontext  # type: ignore  # no terminal is attached
        with undrawn():
            async with app.run_test(size=size) as pilot:
                await pilot.pause()
                await step(pilot)

    asyncio.run(run())


async def press(pilot: Pilot[None], *keys: str) -> str:
    for key in keys:
        await pilot.press(key)
    await pilot.pause()
    return screen_text(pilot.app)


@pytest.mark.parametrize("size", SIZES)
def test_it_begins_with_what_changed_the_worst_first(size: tuple[int, int]) -> None:
    async def step(pilot: Pilot[None]) -> None:
        text = await press(pilot)
        lines = text.splitlines()
        assert "old.pcapng" in lines[0]
        assert "new.pcapng" in lines[0]
        titles = [f"{key} {title}" for key, title in enumerate(DIFF_VIEWS.values(), 1)]
        assert lines[1].split() == " ".join(titles).split()
        assert "▲ worse" in lines[3]
        assert "group orders" in lines[3]
        assert "api Fetch" in text
        assert "3 significant differences" in text
        assert "It took very long." in text
        assert "Metadata" not in text

    with_screen(step, size)


@pytest.mark.parametrize("width", [80, 120, 160])
def test_captures_with_names_alike_are_told_apart(width: int) -> None:
    before, after = _reports()
    names = "client-0.10.2-on-3.9/capture.pcapng", "client-0.10.2-on-4.3/capture.pcapng"
    captures = (ComparedCapture(names[0], before.context), ComparedCapture(names[1], after.context))

    async def run() -> None:
        with undrawn():
            async with Comparison(captures, differences(before, after)).run_test(size=(width, 40)) as pilot:
                first = (await press(pilot)).splitlines()[0]
                assert "on-3.9" in first
                assert "on-4.3" in first
                assert all(name in first for name in names) == (width == 160)
                text = await press(pilot, "3")
                assert "on-3.9" in text.partition("measured")[2]
                assert "on-4.3" in text.partition("measured")[2]

    asyncio.run(run())


def test_each_area_has_a_list_with_both_sides() -> None:
    async def step(pilot: Pilot[None]) -> None:
        text = await press(pilot, "3")
        (line,) = [each for each in text.splitlines() if "Fetch" in each and "→" in each]
        assert "4.00 ms → 9.00 ms" in line
        assert "broker time p50: 2.2 times" in line
        assert any("Metadata" in each and "5.00 ms → 5.00 ms" in each for each in text.splitlines())
        assert "3 APIs" in text
        assert "Neither capture has any." in await press(pilot, "7")
        assert "significant" in await press(pilot, "escape")

    with_screen(step)


def test_what_one_side_alone_has_is_shown_whole() -> None:
    def used(what: str, subject: str) -> Row:
        share: dict[str, Any] = {"kind": "share", "unit": None, "total": 50, "count": 50}
        return {**measured(1.0, what=what, subject=subject, **share), "area": "client"}

    before = report((used("Fetch v12", "here"),))
    clients = [{"client_id": "late", "software": "librdkafka", "software_version": "2.6.1"}]
    rate: dict[str, Any] = {"kind": "rate", "unit": "requests/s", "what": "requests", "total": 200}
    late = used("Fetch v12", "late"), used("Metadata v12", "late")
    requests = {**measured(4.0, subject="late", **rate), "area": "client"}
    after = report((used("Fetch v12", "here"), *late, requests), tables={"clients": clients})

    async def run() -> None:
        captures = ComparedCapture("old", before.context), ComparedCapture("new", after.context)
        async with Comparison(captures, differences(before, after)).run_test(size=(120, 40)) as pilot:
            text = await press(pilot, "5")
            assert "– → 4" in text
            lines = [" ".join(line.split()) for line in text.splitlines()]
            assert "requests – 4 requests/s" in lines
            assert "Fetch v12, Metadata v12" in lines
            assert "librdkafka 2.6.1" in lines
            assert lines.count("Fetch v12") == 0
            text = await press(pilot, "down")
            assert "Fetch v12" in [" ".join(line.split()) for line in text.splitlines()]

    asyncio.run(run())


def test_enter_leads_to_the_exchanges_of_either_side() -> None:
    shown = Shown()

    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")  # only the capture after has this finding
        assert shown.asked == [("new", "group == orders")]
        assert "BEFORE has no such exchanges" in await press(pilot, "b")
        text = await press(pilot, "3", "enter")
        assert "BEFORE: old.pcapng" in text
        await press(pilot, "1")
        await press(pilot, "a")
        assert shown.asked[1:] == [("old", 'api == "Fetch"'), ("new", 'api == "Fetch"')]

    with_screen(step, shown=shown)


def test_what_came_of_showing_them_counts() -> None:
    shown = Shown()

    async def step(pilot: Pilot[None]) -> None:
        shown.outcome = ShownOutcome("the file is gone")
        assert "the file is gone" in await press(pilot, "enter")
        shown.outcome = ShownOutcome(ends_with=130)
        await pilot.press("enter")
        await pilot.pause()
        assert (pilot.app._exit, pilot.app.return_code) == (True, 130)

    with_screen(step, shown=shown)


def test_a_report_has_no_exchanges_to_show() -> None:
    before, after = _reports()

    async def run() -> None:
        captures = ComparedCapture("old.html", before.context), ComparedCapture("new.pcapng", after.context)
        async with Comparison(captures, differences(before, after)).run_test(size=(120, 40)) as pilot:
            text = await press(pilot, "3", "b")
            assert "old.html has no packets: it is a report or a state" in text

    asyncio.run(run())


def test_what_was_not_judged_is_not_called_absent() -> None:
    _, after = _reports()
    rule = after.findings[0].id

    def said(*silent: NotJudged) -> str:
        before = report(not_judged=list(silent))

        async def run() -> str:
            captures = (
                ComparedCapture("old", before.context, not_judged=before.not_judged),
                ComparedCapture("new", after.context),
            )
            async with Comparison(captures, differences(before, after)).run_test(size=(120, 40)) as pilot:
                return await press(pilot, "2")

        return asyncio.run(run())

    assert "BEFORE old: not judged (needs 60 s)" in said(NotJudged(rule, "needs 60 s"))
    assert "BEFORE old: not found" in said(NotJudged("another", "needs 60 s"))
    assert "BEFORE old: not found" in said()


def test_nothing_changed_says_what_that_means() -> None:
    before, _ = _reports()

    async def run() -> None:
        captures = ComparedCapture("a", before.context), ComparedCapture("b", before.context)
        async with Comparison(captures, differences(before, before)).run_test(size=(80, 24)) as pilot:
            text = await press(pilot)
            assert "No significant difference." in text
            assert "0 significant differences" in text

    asyncio.run(run())


def test_every_key_does_something() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app = pilot.app
        for action in actions_of("diff"):
            active = [each for each in app.screen.active_bindings.values() if each.binding.id == action.id]
            assert active, action
            for each in active:
                namespace, method, _ = app._parse_action(each.binding.action, each.node)
                assert hasattr(namespace, f"action_{method}"), action

    with_screen(step)


def test_order_all_of_the_text_help_and_commands() -> None:
    async def step(pilot: Pilot[None]) -> None:
        assert "by API, smallest first" in await press(pilot, "3", "s", "s")
        text = await press(pilot, "x")
        assert "Requests" not in text
        assert "measured" in text
        text = await press(pilot, "escape", "question_mark")
        assert "What changed between two captures" in text
        await press(pilot, "G")
        read = [await press(pilot, "g"), *[await press(pilot, "pagedown") for _ in range(3)]]
        assert any("its exchanges in the capture BEFORE" in each for each in read)
        await press(pilot, "escape", "colon")
        pilot.app.screen.query_one(Input).value = "old"
        await pilot.pause(0.3)
        assert "exchanges in the capture BEFORE" in screen_text(pilot.app)

    with_screen(step)


def test_hostile_names_are_drawn_as_text() -> None:
    hostile = "[red]\x1b[2J\u202eevil"
    before = report((measured(5 * MS, 4 * MS, 6 * MS, subject=hostile),))
    after = report((measured(9 * MS, 8 * MS, 10 * MS, subject=hostile),))
    found: list[Difference] = differences(before, after)

    async def run() -> None:
        captures = ComparedCapture(hostile, before.context), ComparedCapture(hostile, after.context)
        async with Comparison(captures, found).run_test(size=(120, 40)) as pilot:
            for key in "1234567":
                text = await press(pilot, key)
                assert "\x1b" not in text
                assert "\u202e" not in text
            screen = pilot.app.screen
            assert isinstance(screen, ComparisonScreen)

    asyncio.run(run())


def test_on_a_terminal_diff_opens_it_and_leads_to_the_screens_and_back() -> None:
    before, after = CAPTURES / "basic-kafka43.pcapng", CAPTURES / "errors.pcapng"
    terminal = Terminal("diff", before, after)
    try:
        terminal.until(b"significant differences")
        terminal.send(b"3")
        terminal.until(b"ApiVersions")
        terminal.send(b"a")
        terminal.until(b"opening the exchanges of AFTER errors.pcapng")
        assert b"1 Exchanges" not in terminal.text
        terminal.until(b"1 Exchanges")
        terminal.until(b"api ==")
        terminal.until(b"Back to Differences")
        terminal.send(b"\x1b")
        terminal.until(b"5 Clients")
        terminal.send(b"a")
        terminal.until(b"Back to Differences")
        terminal.send(b"\x11")
        assert terminal.end() == 0
    finally:
        terminal.close()


def test_mistakes_of_the_configuration_are_told_first() -> None:
    async def run() -> None:
        capture = ComparedCapture("x.pcapng", JudgingContext())
        app = Comparison((capture, capture), (), mistakes=(("config.toml:1: theme nope",),))
        async with app.run_test(size=(80, 24)) as pilot:
            text = await press(pilot)
            assert "1 setting is not used" in text
            assert "config.toml:1: theme nope" in text
            assert "theme nope" not in await press(pilot, "escape")

    asyncio.run(run())
