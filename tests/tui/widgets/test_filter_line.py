"""Writing a filter."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from kdissect.filter.compiled import compile_filter
from kdissect.settings.places import PAGES
from kdissect.settings.remembered import Remembered
from kdissect.tui.app import Kdissect
from kdissect.tui.widgets.filter_line import COUNT_SECONDS, FilterLine
from tests.amount import some
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, screen_text, shown_after

ERRORS = CAPTURES / "errors.pcapng"
Step = Callable[[Pilot[None], Kdissect, FilterLine], Awaitable[None]]
ENOUGH = some(PAGES, 4, "exchanges", "findings")
"""On these it is opened."""
KEYS = {" ": "space", "=": "equals_sign", '"': "quotation_mark", ".": "full_stop", "(": "left_parenthesis"}


def with_line(step: Step, width: int = 120, height: int = 40, **given: object) -> None:
    """Run a step in the filter line, which is open."""

    async def run() -> None:
        app = app_of(ERRORS, **given)
        async with running(app, width, height) as pilot:
            await press(pilot, "slash")
            await step(pilot, app, app.pages["exchanges"].query_one(FilterLine))

    asyncio.run(run())


async def write(pilot: Pilot[None], text: str) -> str:
    """Write a text key by key; gives what then stands on the screen."""
    await pilot.press(*(KEYS.get(each, each) for each in text))
    await pilot.pause(COUNT_SECONDS + 0.1)
    assert isinstance(pilot.app, Kdissect)
    return screen_text(pilot.app)


def test_a_filter_is_counted_while_it_is_written_and_then_applied() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, line: FilterLine) -> None:
        assert "✓ 12" in await write(pilot, "api == Metadata")
        assert len(app.shown.places) == len(app.index)
        text = await shown_after(pilot, "enter")
        assert "/ api == Metadata  ✓ 12" in text
        assert "12 shown" in text
        assert len(app.shown.places) == 12
        assert not line.is_open
        assert app.pages["exchanges"].query_one("#list").has_focus

    with_line(step)


def test_its_lines_fit_and_an_offer_takes_one() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, line: FilterLine) -> None:
        await press(pilot, "e", "r", "r")
        offers = line.query_one(OptionList)
        assert offers.size.height == min(8, offers.option_count)
        text = await shown_after(pilot, "o", "r")
        assert "Enter applies, Tab completes, ↑ earlier filters, Ctrl-s saves, Esc leaves" in text

    with_line(step, 80, 24)


def test_what_is_wrong_is_said_with_its_place_and_the_nearest_name() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, line: FilterLine) -> None:
        text = await write(pilot, "error and latncy == 3")
        assert "position 11: there is no field latncy; did you mean latency?" in text
        value = line.input._value
        assert [
            value.plain[span.start : span.end] for span in value.spans if "underline" in str(span.style)
        ] == ["latncy"]
        await press(pilot, "enter")
        assert line.is_open
        assert app.shown.text == ""
        await press(pilot, "escape")
        assert (line.is_open, app.shown.text) == (False, "")

    with_line(step)


def test_what_is_offered_is_taken() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, line: FilterLine) -> None:
        assert "nanoseconds" in await write(pilot, "request_st") or line.input.value == "request_st"
        await pilot.press("tab")
        assert line.input.value == "request_start_ns"
        line.input.value = ""
        await write(pilot, "api == Prod")
        await pilot.press("right")
        assert line.input.value == "api == Produce"
        line.input.value = "api == Cr"
        await pilot.pause()
        await pilot.press("end", "down", "down", "up", "tab")
        offers = [each for each in ("CreateTopics", "CreateAcls") if each in line.input.value]
        assert len(offers) <= 1
        assert line.input.value.startswith("api == Create")
        await press(pilot, "enter")
        assert app.shown.text == line.input.value

    with_line(step)


def test_the_arrow_inside_the_text_moves() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, line: FilterLine) -> None:
        await write(pilot, "error")
        await pilot.press("left", "left", "right")
        assert line.input.cursor_position == 4
        assert line.input.value == "error"

    with_line(step)


def test_filters_used_before_come_back() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, line: FilterLine) -> None:
        await write(pilot, "err")
        await pilot.press("up")
        assert line.input.value == "topic == b"
        await pilot.press("up", "up")
        assert line.input.value == "topic == a"
        await pilot.press("down", "down")
        assert line.input.value == "err"
        await pilot.press("up")
        await press(pilot, "enter")
        assert app.shown.text == "topic == b"
        assert app.remembered.used == ["topic == a", "topic == b"]

    kept = Remembered()
    for text in ("topic == a", "topic == b"):
        kept.use(compile_filter(text))
    with_line(step, remembered=kept)


def test_a_filter_is_saved_under_a_name_and_offered_by_it(tmp_path: Path) -> None:
    path = tmp_path / "filters.toml"

    async def step(pilot: Pilot[None], app: Kdissect, line: FilterLine) -> None:
        await write(pilot, "error and api == Produce")
        await press(pilot, "ctrl+s")
        app.screen.query_one(Input).value = "bad [produce]"
        await press(pilot, "enter")
        assert Remembered(None, path).named == {"bad [produce]": "error and api == Produce"}
        assert line.is_open
        line.input.value = ""
        text = await write(pilot, "bad")
        assert "saved: bad [produce]" in text
        await pilot.press("tab")
        assert line.input.value == "error and api == Produce"
        line.input.value = "nonsense =="
        await press(pilot, "ctrl+s")
        assert app.screen is app.pages["exchanges"]  # it is no filter, and has no name

    with_line(step, remembered=Remembered(None, path))


def test_an_empty_filter_shows_all() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, line: FilterLine) -> None:
        await write(pilot, "error")
        await press(pilot, "enter", "slash")
        assert line.input.value == "error"
        await press(pilot, "ctrl+u", "enter")
        assert (app.shown.text, len(app.shown.places)) == ("", len(app.index))
        assert "/" not in screen_text(app).splitlines()[2][:3]

    with_line(step)


def test_keys_of_the_screen_are_text_in_the_line() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, line: FilterLine) -> None:
        await write(pilot, "q2mse")
        assert line.input.value == "q2mse"
        assert app.screen is app.pages["exchanges"]
        assert not app.marks.numbers

    with_line(step)


def test_it_is_on_every_screen() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, line: FilterLine) -> None:
        await press(pilot, "escape")
        app.shown.push("error")
        for name in app.pages:
            app.action_page(name)
            assert "/ error  ✓ 22" in await shown_after(pilot), name
            if name in ENOUGH:
                await press(pilot, "slash")
                assert app.screen.query_one(FilterLine).is_open
                await press(pilot, "escape")
                assert not app.screen.query_one(FilterLine).is_open

    with_line(step, width=200)


def test_hostile_text_is_shown_as_it_is() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, line: FilterLine) -> None:
        for text in ("[red]x[/red]", "\x1b[2J", "a\u202eb", "[/", "((((", "\\", '"', "x" * 300):
            if not line.is_open:
                await press(pilot, "slash")
            line.input.value = text
            seen = await shown_after(pilot, "end")
            assert all(character.isprintable() for character in seen if character != "\n")
            await press(pilot, "enter", "escape")
        await press(pilot, "q")

    with_line(step)


def test_it_opens_with_the_filter_that_is_set_chosen_so_that_what_is_typed_replaces_it() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, line: FilterLine) -> None:
        await write(pilot, "api == Metadata")
        await press(pilot, "enter", "slash")
        assert line.input.value == "api == Metadata"
        assert line.input.selected_text == "api == Metadata"
        await write(pilot, "error")
        assert line.input.value == "error"
        await press(pilot, "enter", "slash", "end")
        await write(pilot, " and latency")
        assert line.input.value == "error and latency"
        await press(pilot, "escape")
        assert app.shown.text == "error"

    with_line(step)


def test_on_80_columns_all_is_said_that_is_wrong_with_a_filter() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, line: FilterLine) -> None:
        line.input.value = "latency > 5bananas"
        await pilot.pause(COUNT_SECONDS + 0.1)
        text = " ".join(each.strip() for each in screen_text(app).splitlines())
        assert "there is no unit 'bananas': a time has us ms s m h" in text
        line.input.value = "latency > 5 bananas"
        await pilot.pause(COUNT_SECONDS + 0.1)
        assert line._wrong.error is not None
        text = " ".join(each.strip() for each in screen_text(app).splitlines())
        assert str(line._wrong.error) in text

    with_line(step, 80, 24)
