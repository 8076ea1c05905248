"""The application while it is fed, and when something goes wrong."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from time import monotonic
from unittest import mock

import pytest
from textual.app import App, ScreenStackError
from textual.css.query import NoMatches
from textual.events import Key

from kdissect.exchange import Exchange
from kdissect.feed.batches import Ended, FeedBatch
from kdissect.feed.decoder import Decoded, Decoder
from kdissect.feed.rows import ROW
from kdissect.insight.context import JudgingContext
from kdissect.live.journal import Status
from kdissect.tui.app import Kdissect
from kdissect.tui.comparison import ComparedCapture, Comparison
from kdissect.tui.pages.findings import FindingsPage
from kdissect.tui.pages.latency import LatencyPage
from kdissect.tui.pages.records import RecordsPage
from tests.cli.run import CAPTURES
from tests.feed.feeds import decoded, source_of
from tests.tui.snapshots import EXCHANGES, press, running, screen_text, settle, shown_after, undrawn

ERRORS = CAPTURES / "errors.pcapng"


class Slow:
    """A feed that gives what the test puts into it."""

    def __init__(self) -> None:
        self._whole = decoded(ERRORS)
        self.source = self._whole.source
        self.descriptor = self._whole.descriptor
        self.capture: Status | None = None
        self.silence: str | None = None
        batches = [each for each in self._whole.poll() if isinstance(each, FeedBatch)]
        self._rows = b"".join(each.rows for each in batches)
        self._texts = [text for each in batches for text in each.texts]
        self.waiting: list[FeedBatch | Ended] = []

    def part(self, start: int, end: int, texts: bool = False) -> FeedBatch:
        """Some of the rows; the texts come with the first."""
        rows = self._rows[start * ROW.size : end * ROW.size]
        return FeedBatch(rows, self._texts if texts else (), packets=end)

    def poll(self) -> list[FeedBatch | Ended]:
        waiting, self.waiting = self.waiting, []
        return waiting

    def exchange(self, place: int, length: int) -> Exchange:
        return self._whole.exchange(place, length)

    def close(self) -> None:
        self._whole.close()


def test_the_list_grows_under_the_cursor_and_the_end_is_told() -> None:
    async def run() -> None:
        feed = Slow()
        app = Kdissect(feed, settings=EXCHANGES)
        async with running(app) as pilot:
            assert "0 exchanges" in screen_text(app)
            assert "reading" in screen_text(app)
            feed.waiting.append(feed.part(0, 10, texts=True))
            await pilot.pause(0.25)
            await settle(pilot)
            assert "10 exchanges" in await shown_after(pilot, "j", "j")
            feed.waiting.append(feed.part(10, 20))
            await pilot.pause(0.25)
            await settle(pilot)
            page = app.pages["exchanges"]
            assert "20 exchanges" in screen_text(app)
            assert page.query_one("#list").cursor == 2  # type: ignore[attr-defined]
            await press(pilot, "F")
            feed.waiting += [feed.part(20, 30), Ended("the decoder was killed by signal 9")]
            await pilot.pause(0.25)
            text = await shown_after(pilot)
            assert "stopped: the decoder was killed by signal 9" in text
            assert "30 exchanges" in text
            assert page.query_one("#list").cursor == 29  # type: ignore[attr-defined]

    asyncio.run(run())


@pytest.mark.parametrize("has_news", [True, False])
def test_judging_begins_after_the_first_picture_or_a_moment(has_news: bool) -> None:
    """The process that judges would take the processor from the first page while it is drawn."""

    async def run() -> None:
        feed = Slow()
        app = Kdissect(feed)
        asked_at: list[float] = []
        moment = 1_000 if has_news else 1
        with (
            undrawn(),
            mock.patch("kdissect.tui.pages.findings.FIRST_SECONDS", moment),
            mock.patch.object(
                app.judging, "request", side_effect=lambda _: asked_at.append(monotonic())
            ) as request,
        ):
            begin = monotonic()
            async with app.run_test(size=(120, 40)) as pilot:
                page = app.screen
                assert isinstance(page, FindingsPage)
                if has_news:
                    request.assert_not_called()
                    feed.waiting.append(feed.part(0, 10, texts=True))
                for _ in range(3_000):
                    if request.called:
                        break
                    await pilot.pause(0.02)
                request.assert_called_with(page.needed_statistics())
                assert (page.time_line.over_time is not None) is has_news
                assert has_news or asked_at[0] - begin >= moment
        feed.close()

    asyncio.run(run())


def test_the_real_decoder_fills_the_screen() -> None:
    async def run() -> None:
        app = Kdissect(Decoder(source_of(ERRORS)), settings=EXCHANGES)
        async with running(app) as pilot:
            for _ in range(100):
                if app.ended is not None:
                    break
                await pilot.pause(0.1)
            await settle(pilot)
            assert "52 exchanges" in screen_text(app)
            assert "RequestHeader" in screen_text(app)

    asyncio.run(run())


@pytest.mark.parametrize("theme", ["textual-light", "textual-dark", "ansi-dark", "ansi-light"])
def test_every_theme_shows_the_same_texts(theme: str) -> None:
    async def run() -> str:
        app = Kdissect(decoded(ERRORS), settings=EXCHANGES)
        app.theme = theme
        async with running(app):
            return screen_text(app)

    async def plain() -> str:
        app = Kdissect(decoded(ERRORS), settings=EXCHANGES)
        async with running(app):
            return screen_text(app)

    assert asyncio.run(run()) == asyncio.run(plain())


def test_a_defect_tells_no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(App, "panic", lambda self, *parts: said.extend(map(str, parts)))
    monkeypatch.delenv("KDISSECT_DEBUG", raising=False)
    feed: Decoded = decoded(ERRORS)
    capture = ComparedCapture("a", JudgingContext())
    for app in (Kdissect(feed, settings=EXCHANGES), Comparison((capture, capture), ())):
        app._exception = ValueError("hunter2")
        app._fatal_error()
    assert (
        said
        == ["kdissect: a defect in kdissect, please report it: ValueError (KDISSECT_DEBUG=1 shows more)"] * 2
    )
    feed.close()


def test_what_a_worker_made_is_shown_by_nobody_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []

    async def run() -> None:
        async with running(Kdissect(decoded(ERRORS), settings=EXCHANGES)) as pilot:
            await asyncio.to_thread(pilot.app.call_from_thread, called.append, "while it runs")
            with monkeypatch.context() as at_end:
                at_end.setattr(pilot.app, "_running", False)
                await asyncio.to_thread(pilot.app.call_from_thread, called.append, "at the end")

    asyncio.run(run())
    assert called == ["while it runs"]


def test_a_second_signal_finds_no_panes_and_does_no_harm() -> None:
    app = Kdissect(decoded(ERRORS), settings=EXCHANGES)

    async def run() -> None:
        async with running(app):
            app.exit()
        app.exit()

    asyncio.run(run())
    assert app.session.page == "exchanges"


NOT_AT_FIRST = (
    "rich.markdown",
    "kdissect.insight.catalogue",
    "kdissect.analysis.groups",
    "kdissect.analysis.cluster",
)
"""What judges, counts or shows the pages of the help: the first screen would wait for it."""


def test_what_other_processes_and_later_screens_need_is_not_imported_for_the_first() -> None:
    code = (
        "import sys\n"
        "from kdissect.tui.app import Kdissect\n"
        "from kdissect.tui.pages.facts import FactsPage\n"
        "FactsPage(frozenset())\n"
        f"print(sorted(set({NOT_AT_FIRST!r}) & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert ran.stdout == "[]\n", ran.stderr


def test_a_timer_that_goes_off_when_panes_are_gone_harms_nothing() -> None:
    """Panes go one by one at the end."""
    records, latency = RecordsPage(), LatencyPage()
    for page in (records, latency):
        assert not page.has_panes
    records.rows = mock.Mock()
    records._step()
    latency._poll()
    assert not records.rows.method_calls


def test_a_key_when_all_screens_are_gone_harms_nothing() -> None:
    app = Kdissect(decoded(ERRORS), settings=EXCHANGES)
    assert not app.screen_stack
    with mock.patch.object(app, "set_timer") as timer, mock.patch.object(app, "_running", True):
        try:
            asyncio.run(app.on_event(Key("n", "n")))
        except ScreenStackError:
            pytest.fail("a key asks for a screen when there is none: that ends kdissect with an error")
    app.feed.close()
    timer.assert_not_called()


def test_at_the_end_it_is_no_defect_that_a_pane_is_gone() -> None:
    app = Kdissect(decoded(ERRORS), settings=EXCHANGES)

    async def run() -> None:
        async with running(app) as pilot:
            page = app.pages["groups"]
            await press(pilot, "4")
            app.exit()
            page.call_later(page.query_one, "#gone")
            await pilot.pause()

    asyncio.run(run())
    assert app.return_code == 0


def test_before_the_end_it_is_one() -> None:
    app = Kdissect(decoded(ERRORS), settings=EXCHANGES)

    async def run() -> None:
        async with running(app) as pilot:
            app.screen.call_later(app.screen.query_one, "#gone")
            await pilot.pause()

    with pytest.raises(NoMatches):
        asyncio.run(run())


def test_only_a_reason_stands_as_the_reason_of_an_empty_list() -> None:
    async def run() -> None:
        feed = Slow()
        feed.source = feed.source._replace(is_live=True)
        feed.capture = Status(notes=("the clock was set back by 3.0 s",))
        async with running(Kdissect(feed), 120, 40) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            for key in "19":
                lines = (await shown_after(pilot, key)).splitlines()
                assert not [line for line in lines[1:] if "the clock was set back" in line]
                assert app.why_nothing() == []
            feed.silence = "no packet has come so far"
            app.screen.index_grew()  # type: ignore[attr-defined]
            await settle(pilot)
            assert app.why_nothing() == ["no packet has come so far"]
            assert "no packet has come so far" in screen_text(app)

    asyncio.run(run())
