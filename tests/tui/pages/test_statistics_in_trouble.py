"""The screens of figures under hostile names, limits, processes that die, and in every theme."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
from textual.color import Color
from textual.pilot import Pilot

from kdissect import read
from kdissect.feed.batches import Ended
from kdissect.feed.decoder import Decoded, Decoder
from kdissect.feed.side_process import Process
from kdissect.filter.compiled import compile_filter
from kdissect.limits import DEFAULTS
from kdissect.protocol.errors import CLASSES
from kdissect.tui.app import Kdissect
from tests.amount import some
from tests.feed.feeds import source_of
from tests.kafka import Talk, request, response
from tests.present.captures import write_capture
from tests.tui.pages.test_statistics import ERRORS, KIP848, page, rows_of, with_app
from tests.tui.snapshots import EXCHANGES, app_of, press, running, shown_after

HOSTILE = ("[red]x[/red]", "\x1b[2J\x1b]0;t\x07", "a\u202eb\u2066c", "[/", "\u200b\U000e0041", '"$(x)\r\n`\\')


def hostile_talks() -> list[Talk]:
    """Hostile topics, groups, clients and reasons, in what every screen shows."""
    talk = Talk()
    correlation = 0
    for name in HOSTILE:
        exchanges = (
            (
                "Metadata",
                1,
                {"topics": [{"name": name}]},
                {
                    "brokers": [],
                    "controllerId": 1,
                    "topics": [{"errorCode": 3, "name": name, "isInternal": False, "partitions": []}],
                },
            ),
            (
                "Heartbeat",
                3,
                {"groupId": name, "generationId": 1, "memberId": name, "groupInstanceId": name},
                {"throttleTimeMs": 0, "errorCode": 25},
            ),
            (
                "OffsetCommit",
                2,
                {
                    "groupId": name,
                    "generationIdOrMemberEpoch": 1,
                    "memberId": name,
                    "retentionTimeMs": -1,
                    "topics": [
                        {
                            "name": name,
                            "partitions": [
                                {"partitionIndex": 0, "committedOffset": 1, "committedMetadata": None}
                            ],
                        }
                    ],
                },
                {"topics": [{"name": name, "partitions": [{"partitionIndex": 0, "errorCode": 12}]}]},
            ),
            (
                "Produce",
                3,
                {
                    "transactionalId": None,
                    "acks": -1,
                    "timeoutMs": 1,
                    "topicData": [{"name": name, "partitionData": [{"index": 0, "records": None}]}],
                },
                {
                    "responses": [
                        {
                            "name": name,
                            "partitionResponses": [
                                {"index": 0, "errorCode": 87, "baseOffset": -1, "logAppendTimeMs": -1}
                            ],
                        }
                    ],
                    "throttleTimeMs": 0,
                },
            ),
        )
        for api, version, asked, answered in exchanges:
            correlation += 1
            talk.ask(request(api, version, correlation, client_id=name, **asked))
            talk.answer(response(api, version, correlation, **answered))
    return [talk.close()]


@pytest.mark.parametrize("width", some([80, 200], 1))
def test_hostile_names_are_shown_as_they_are(width: int, tmp_path: Path) -> None:
    path = write_capture(tmp_path / "[b]x[", *hostile_talks())

    exchanges = list(read(path))

    async def step(pilot: Pilot[None]) -> None:
        everything = ""
        for key in "2g3g45ggg68":
            text = await shown_after(pilot, key)
            assert all(character.isprintable() for character in text if character != "\n"), text
            everything += text
            for row in rows_of(pilot):
                chosen = page(pilot).filter_of(row)
                if chosen is not None:  # every row leads to exchanges
                    assert any(map(compile_filter(chosen).matches, exchanges)), row
        assert "[red]x[/red]" in everything
        assert "\\x1b[2J" in everything

    with_app(step, path, width=width)


def test_too_many_rows_are_said_on_the_screen() -> None:
    async def run() -> str:
        feed = Decoded(source_of(ERRORS, limits=DEFAULTS._replace(rows=3)))
        async with running(Kdissect(feed, settings=EXCHANGES), 160, 40) as pilot:
            text = await shown_after(pilot, "6")
            assert sum(row["severity"] in CLASSES for row in rows_of(pilot)) == 3
            return text

    assert "the first 3 rows are kept" in asyncio.run(run())


def test_a_process_that_dies_is_said_and_another_counts() -> None:
    async def run() -> None:
        app = Kdissect(Decoder(source_of(KIP848)), settings=EXCHANGES)
        async with running(app, 160, 40) as pilot:
            for _ in range(200):
                if isinstance(app.ended, Ended):
                    break
                await pilot.pause(0.05)
            await press(pilot, "5")
            assert len(rows_of(pilot)) == 23
            counter = app.statistics._counter
            assert isinstance(counter, Process)
            assert counter.pid is not None
            os.kill(counter.pid, signal.SIGKILL)
            counter._process.join()
            text = await shown_after(pilot, "g")
            assert "killed by signal 9" in text
            assert app.is_running
            await press(pilot, "1")
            text = await shown_after(pilot, "5")
            assert len(rows_of(pilot)) == 23
            assert "killed" not in text

    asyncio.run(run())


def test_with_a_decoder_that_was_killed_the_figures_are_those_of_what_came(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    async def run() -> None:
        decoder = Decoder(source_of(pipe))
        app = Kdissect(decoder, settings=EXCHANGES)
        with pipe.open("wb") as writer:
            writer.write(KIP848.read_bytes())
            writer.flush()
            async with running(app, 160, 40) as pilot:
                for _ in range(200):
                    if len(app.index) > 5:
                        break
                    await pilot.pause(0.05)
                text = await shown_after(pilot, "5")
                assert "23 rows" not in text  # the end of the capture is still to come
                assert decoder.pid is not None
                os.kill(decoder.pid, signal.SIGKILL)
                for _ in range(200):
                    if app.ended is not None:
                        break
                    await pilot.pause(0.05)
                text = await shown_after(pilot)
                assert "killed by signal 9" in text
                assert sum(row["count"] + row["unanswered"] for row in rows_of(pilot)) == len(app.index) > 5
                assert "stopped: the decoder was killed" in await shown_after(pilot, "8")

    asyncio.run(run())


def _luminance(color: Color) -> float:
    parts = [each / 255 for each in (color.r, color.g, color.b)]
    red, green, blue = (
        each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light"])
def test_rows_of_every_tone_can_be_read(theme: str) -> None:
    async def run() -> None:
        app = app_of(ERRORS)
        app.theme = theme
        async with running(app, 120, 40) as pilot:
            text = await shown_after(pilot, "6")
            assert "UNKNOWN_TOPIC_OR_PARTITION" in text
            table = page(pilot).list_pane
            for row in (1, 2, 17):
                strip = table.render_line(row + 1)
                style = next(iter(strip)).style
                assert style is not None
                assert style.color is not None
                assert style.bgcolor is not None
                fore, back = (
                    _luminance(Color.from_rich_color(each)) for each in (style.color, style.bgcolor)
                )
                contrast = (max(fore, back) + 0.05) / (min(fore, back) + 0.05)
                assert contrast >= 4.5, (theme, row, style)  # WCAG 2's AA

    asyncio.run(run())
