"""Going into things on the screens, and back to where one came from; and the end of the way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.containers import VerticalScroll
from textual.events import Paste
from textual.pilot import Pilot
from textual.widgets import Input

from kdissect.tui.app import Kdissect
from kdissect.tui.host import WayBack, WayStep
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.widgets.bars import KeysFooter
from kdissect.tui.widgets.dialogs import Help
from tests.cli.run import CAPTURES
from tests.feed.feeds import decoded
from tests.tui.snapshots import EXCHANGES, app_of, press, running, screen_text, settle, shown_after

ERRORS = CAPTURES / "errors.pcapng"
BASIC = CAPTURES / "basic-kafka43.pcapng"


def with_app(
    step: Callable[[Pilot[None], Kdissect], Awaitable[None]], path: Path = ERRORS, is_live: bool = False
) -> None:
    async def run() -> None:
        app = app_of(path)
        if is_live:
            app.feed.source = app.feed.source._replace(is_live=True)
        async with running(app, 140, 40) as pilot:
            await step(pilot, app)

    asyncio.run(run())


def here(app: Kdissect) -> str:
    return next(name for name, page in app.pages.items() if page is app.screen)


def exchanges(app: Kdissect) -> ExchangesPage:
    page = app.pages["exchanges"]
    assert isinstance(page, ExchangesPage)
    return page


def last_line(app: Kdissect) -> str:
    return screen_text(app).splitlines()[-1]


# -- the way ------------------------------------------------------------------------------------------


def test_turning_to_a_screen_on_the_way_goes_back_to_it() -> None:
    way = WayBack()
    way.turn("a", "b")
    way.turn("b", "c")
    way.turn("c", "b")
    assert way.back() == WayStep("a", is_jump=False)
    assert way.back() is None


def test_the_way_does_not_grow_without_end() -> None:
    way = WayBack()
    for number in range(1000):
        way.jump(WayStep(str(number), is_jump=True))
    assert len(way) == 100
    assert way.last == WayStep("999", is_jump=True)


@pytest.mark.parametrize("key", ["q", "escape"])
def test_numbers_lead_back_to_the_screen_before(key: str) -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        await press(pilot, "5", "3")
        await press(pilot, key)
        assert here(app) == "latency"
        await press(pilot, key)
        assert here(app) == "exchanges"

    with_app(step)


@pytest.mark.parametrize("key", ["q", "escape"])
def test_back_from_the_exchanges_of_a_row_is_its_screen_without_its_filter(key: str) -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        app.shown.push("api")
        await press(pilot, "5", "down", "enter")
        assert here(app) == "exchanges"
        assert app.shown.text.startswith('api == "')
        app.shown.push("error")
        await press(pilot, key)  # the filter that was set here
        assert here(app) == "exchanges"
        await press(pilot, key)
        assert here(app) == "latency"
        assert app.shown.text == "api"
        await press(pilot, key)  # one thing at a time: the filter first
        assert (here(app), app.shown.text) == ("latency", "")
        await press(pilot, key)
        assert here(app) == "exchanges"

    with_app(step)


def test_back_from_the_tree_of_a_record_is_the_record() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        await press(pilot, "7", "down", "enter", "enter")
        assert here(app) == "exchanges"
        assert exchanges(app).is_in
        await press(pilot, "q")
        assert here(app) == "records"
        await press(pilot, "q", "q")
        assert here(app) == "exchanges"
        assert not exchanges(app).is_in
        assert exchanges(app).chosen_place() is not None

    with_app(step, BASIC)


def test_back_from_an_exchange_of_the_ladder_is_the_ladder_and_then_the_exchange_it_was_of() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        await press(pilot, "j", "j", "L", "G", "enter")
        assert here(app) == "exchanges"
        assert exchanges(app).chosen_number != 3
        await press(pilot, "q")
        assert here(app) == "ladder"
        await press(pilot, "q")
        assert here(app) == "exchanges"
        assert exchanges(app).chosen_number == 3

    with_app(step)


def test_the_footer_says_quit_where_q_ends() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        app.screen.query_one(KeysFooter)
        assert "q Quit" in last_line(app)
        for key, before in (("2", "Exchanges"), ("enter", "Connections"), ("i", "Exchanges")):
            await press(pilot, key)
            assert f"q Back to {before} " in last_line(app)
        await pilot.resize_terminal(80, 24)
        await settle(pilot)
        assert "q Back " in last_line(app)
        assert "Back to" not in last_line(app)
        await pilot.resize_terminal(120, 40)
        await press(pilot, "q", "q", "q")
        assert "q Quit" in last_line(app)
        await press(pilot, "enter")
        assert "q Back" in last_line(app)
        await press(pilot, "q")
        app.shown.push("error")
        await settle(pilot)
        assert "q Undo filter" in last_line(app)
        await press(pilot, "q")
        assert "q Quit" in last_line(app)
        await pilot.press("q")
        await pilot.pause()
        assert not app._running

    with_app(step)


# -- the end ------------------------------------------------------------------------------------------


def test_q_asks_before_comments_are_lost(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        for text in ("look", "here"):
            await press(pilot, "j", "semicolon")
            app.screen.query_one(Input).value = text
            await press(pilot, "enter")
        assert "2 comments are not saved: w saves, q quits without saving" in await shown_after(pilot, "q")
        page = exchanges(app)
        page.show_message("something else")
        await settle(pilot)
        assert "2 comments are not saved" in screen_text(app)
        await press(pilot, "j")  # not again
        assert "2 comments are not saved" in await shown_after(pilot, "q")
        assert app.is_running
        await press(pilot, "w")
        assert "packets as captured, passwords and tokens included" in await shown_after(pilot, "enter")
        app.screen.query_one(Input).value = str(tmp_path / "x.pcapng")
        await press(pilot, "enter")
        await settle(pilot)
        assert app.unsaved() == []
        await press(pilot, "semicolon")
        app.screen.query_one(Input).value = "changed"
        await press(pilot, "enter")
        assert app.unsaved() == ["1 comment is not saved"]
        await pilot.press("q", "q")
        await pilot.pause()
        assert not app.is_running

    with_app(step)


@pytest.mark.parametrize("between", ["typed", "pasted", "moved"])
def test_ctrl_c_asks_again_after_anything_was_done_in_a_field(between: str) -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        app.marks.set_comment(1, "look")
        await press(pilot, "/", "a", "ctrl+c")
        assert app.is_asking
        if between == "pasted":
            app.post_message(Paste("topic"))
            await settle(pilot)
        else:
            await press(pilot, "t" if between == "typed" else "left")
        assert not app.is_asking
        await press(pilot, "ctrl+c")
        assert app.is_running
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert not app.is_running
        assert app.return_code == 130

    with_app(step)


def test_ctrl_c_copies_the_text_of_a_dialog_once_and_then_ends() -> None:
    """All of it is selected when the dialog opens."""

    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        await press(pilot, "semicolon", *"look", "enter", "semicolon", "ctrl+c")
        assert app.clipboard == "look"
        assert not app.is_asking
        await press(pilot, "ctrl+c")  # the comment is not saved
        assert app.is_asking
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert not app.is_running
        assert app.return_code == 130

    with_app(step)


def test_ctrl_c_ends_with_a_filter_that_is_to_be_changed() -> None:
    """What is set is selected when its line opens."""

    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        await press(pilot, "/", *"api", "enter", "/", "ctrl+c")
        assert app.clipboard == "api"
        assert app.is_running
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert not app.is_running

    with_app(step)


def test_ctrl_c_copies_what_the_user_selects_as_often_as_it_is_pressed() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        await press(pilot, "/", *"topic", "shift+left", "ctrl+c", "ctrl+c")
        assert app.clipboard == "c"
        await press(pilot, "end", "shift+home", "ctrl+c")
        assert app.clipboard == "topic"
        await press(pilot, "end", "shift+home", "ctrl+c")  # selected anew
        assert app.is_running

    with_app(step)


def test_a_table_does_not_save_comments(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        app.marks.set_comment(1, "look")
        await press(pilot, "w", "enter")
        app.screen.query_one(Input).value = str(tmp_path / "x.csv")
        await press(pilot, "enter")
        await settle(pilot)
        assert (tmp_path / "x.csv").exists()
        assert app.unsaved() == ["1 comment is not saved"]

    with_app(step)


def test_q_asks_before_a_live_capture_is_lost(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        assert "the live capture is not saved: w saves, q quits without saving" in await shown_after(
            pilot, "q"
        )
        await press(pilot, "w", "down", "enter")  # only one of them
        app.screen.query_one(Input).value = str(tmp_path / "one.pcapng")
        await press(pilot, "enter")
        assert app.unsaved()
        await press(pilot, "w", "enter")
        app.screen.query_one(Input).value = str(tmp_path / "all.pcapng")
        await press(pilot, "enter")
        assert not app.unsaved()
        await pilot.press("q")
        await pilot.pause()
        assert not app.is_running

    with_app(step, is_live=True)


# -- keys -----------------------------------------------------------------------------------------------


def test_only_marked_and_all_again() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        await press(pilot, "m", "j", "m", "M")
        assert app.shown.text == "number in {1, 2}"
        await press(pilot, "m", "M")  # whatever is marked by now
        assert app.shown.text == ""
        await press(pilot, "M")
        assert app.shown.text.startswith("number in {")

    with_app(step)


def test_a_key_that_does_nothing_on_a_screen_is_told() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        assert "Mark: not on this screen" in await shown_after(pilot, "3", "m")
        assert "Producer: not on this screen" in await shown_after(pilot, "p")  # of stories only
        assert "Other bytes: not on this screen" in await shown_after(pilot, "b")  # of panes only
        text = await shown_after(pilot, "1", "b")
        assert "Other bytes: only in the tree and the bytes; Enter goes there" in text
        assert "not on this screen" not in await shown_after(pilot, "1", "j")
        assert "not on this screen" not in await shown_after(pilot, "9")
        for key, name in (("Y", "Y"), ("f7", "f7"), ("ctrl+y", "ctrl+y")):
            assert f"{name} does nothing here; ? shows the keys" in await shown_after(pilot, key)
        await press(pilot, "slash")
        assert "not on this screen" not in await shown_after(pilot, "v")  # typed into the filter

    with_app(step)


def test_what_was_said_is_gone_when_one_comes_back() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        await press(pilot, "enter", *["down"] * 5, "escape")
        usual = screen_text(app).splitlines()[-2]
        assert "clientId: " in usual
        assert "there is no jump" in await shown_after(pilot, "alt+left")
        assert (await shown_after(pilot, "3", "1")).splitlines()[-2] == usual
        assert "does nothing here" in await shown_after(pilot, "7", "Y")
        assert "does nothing here" not in await shown_after(pilot, "1", "7")
        assert " values as " in screen_text(app)
        await press(pilot, "1", "L")
        usual = screen_text(app).splitlines()[-2]
        assert "does nothing here" in await shown_after(pilot, "Y")
        assert (await shown_after(pilot, "3", "q")).splitlines()[-2] == usual

    with_app(step)


def test_what_was_said_of_other_exchanges_is_gone_with_another_filter() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        assert "there is no jump" in await shown_after(pilot, "alt+left")
        app.shown.write("api == ApiVersions")
        await settle(pilot)
        assert "there is no jump" not in screen_text(app)
        assert "all that was shown before" in await shown_after(pilot, "m", "M", "M")

    with_app(step)


def test_help_is_scrolled_to_its_ends() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        await press(pilot, "question_mark")
        assert isinstance(app.screen, Help)
        text = app.screen.query_one(VerticalScroll)
        await press(pilot, "G")
        assert text.scroll_y == text.max_scroll_y > 0
        await press(pilot, "k")
        assert text.scroll_y == text.max_scroll_y - 1
        await press(pilot, "g")
        assert text.scroll_y == 0
        await press(pilot, "j")
        assert text.scroll_y == 1

    with_app(step)


def test_a_terminal_that_cannot_suspend_says_so() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        assert "there is no shell to go back to" in await shown_after(pilot, "ctrl+z")

    with_app(step)


def test_while_nothing_is_decoded_yet_that_is_said() -> None:
    class Waiting:
        """A feed that gives nothing yet."""

        def __init__(self) -> None:
            self._whole = decoded(ERRORS)
            self.source, self.descriptor = self._whole.source, self._whole.descriptor
            self.capture = self.silence = None

        def poll(self) -> list[object]:
            return []

        def close(self) -> None:
            self._whole.close()

    async def run() -> None:
        async with running(Kdissect(Waiting(), settings=EXCHANGES)) as pilot:  # type: ignore[arg-type]
            assert isinstance(pilot.app, Kdissect)
            text = screen_text(pilot.app)
            assert "decoding …" in text
            assert "there is no exchange to show" not in text

    asyncio.run(run())


# -- the order of the list ----------------------------------------------------------------------------


def test_what_a_screen_leads_to_is_in_the_order_of_time_and_the_way_back_to_the_order_before() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        page = exchanges(app)
        assert "by Latency, largest first" in await shown_after(pilot, "s", "s")
        for screen in ("4", "3", "5"):
            text = await shown_after(pilot, screen, "enter")
            assert here(app) == "exchanges"
            assert "largest first" not in text
            numbers = app.index.column("number")[page.rows.view].tolist()
            assert numbers == sorted(numbers)
            await press(pilot, "escape", "1")
            assert page.order_of_list == ("latency_ns", True)

    with_app(step)


def test_following_the_end_is_in_the_order_of_time() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        await press(pilot, "s", "s", "F")
        assert exchanges(app).chosen_number == len(app.index)
        assert exchanges(app).order_of_list == ("number", False)

    with_app(step)


def test_escape_takes_back_a_dialog_then_the_filter_then_the_page_as_the_footer_says() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        for page in "34569TC0":
            await press(pilot, page)
            there = here(app)
            assert there != "exchanges"
            app.shown.push("error")
            await settle(pilot)
            await press(pilot, "question_mark")
            await press(pilot, "escape")
            assert (here(app), app.shown.text) == (there, "error")
            assert "q Undo filter" in last_line(app)
            await press(pilot, "escape")
            assert (here(app), app.shown.text) == (there, "")
            assert "q Back" in last_line(app)
            await press(pilot, "escape")
            assert here(app) == "exchanges"

    with_app(step)
