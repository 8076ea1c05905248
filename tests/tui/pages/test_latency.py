"""Response times over time."""

from __future__ import annotations

import asyncio
import re
from unittest import mock

import pytest
from textual.screen import Screen

from kdissect.present.lanes import PARTS
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.latency import LatencyPage, places_of
from tests.amount import some
from tests.cli.run import CAPTURES
from tests.feed.feeds import index_of_times
from tests.tui.snapshots import app_of, press, running, shown_after


def test_only_what_is_asked_for_and_has_a_response_time() -> None:
    index = index_of_times()
    assert places_of(index, index.order(), "Fetch", 4, []).tolist() == [0, 1, 2]
    assert places_of(index, index.order(), "Fetch", None, []).tolist() == [0, 1, 2, 3]
    assert places_of(index, index.order(), "Fetch", None, [("client_id", "nobody")]).tolist() == []


@pytest.mark.parametrize(("height", "bands"), [(16, 0), (24, 6), (40, 11), (60, 29)])
def test_the_heat_map_is_there_whole_or_it_is_said_where_it_is(height: int, bands: int) -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng"), 80, height) as pilot:
            text = await shown_after(pilot, "5")
            assert ("over time: from 20 lines" in text) is (bands == 0)
            assert len(re.findall(r"^ *[≥<] \d", text, re.M)) == bands

    asyncio.run(run())


def test_bars_are_whole_on_80_columns_however_rows_are_grouped() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng"), 80, 24) as pilot:
            text = await shown_after(pilot, "5")
            for grouping in ("api", "broker", "client", "topic"):
                head, *lines = text.splitlines()[2:]
                assert "Where it goes" in head, grouping
                at = head.index("Where it goes")
                bars = {len(re.match(r"[█┄▤▒▓·▸◂]*", line[at:])[0]) for line in lines[:4]}  # type: ignore[index]
                assert len(bars) == 1, grouping
                assert bars.pop() >= 13, grouping
                text = await shown_after(pilot, "g")

    asyncio.run(run())


@pytest.mark.parametrize("width", some([80, 120, 240], 2, 80, 240))
def test_the_sign_of_a_part_stands_on_the_line_of_its_words(width: int) -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "incidents" / "leader-killed.pcapng.gz"), width, 40) as pilot:
            seen = 0
            text = await shown_after(pilot, "5")
            for _ in range(8):
                lines = [line.rstrip() for line in text.splitlines() if not re.match(" +[≥<]", line)]
                seen += any("network" in line for line in lines)
                assert not [line for line in lines if line.endswith(tuple(f" {each.sign}" for each in PARTS))]
                text = await shown_after(pilot, "j")
            assert seen

    asyncio.run(run())


@pytest.mark.parametrize("width", some([140, 200], 1, 140))
def test_every_sign_that_is_drawn_is_in_the_legend(width: int) -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "incidents" / "leader-killed.pcapng.gz"), width, 40) as pilot:
            text = await shown_after(pilot, "5")
            line = text.splitlines()[-2]
            list_of = text.partition("   Latency ")[0]
            bars = [each for each in list_of.splitlines() if re.search(r"[█┄▤▒▓▸◂]{24} *$", each)]
            drawn = {part.sign for part in PARTS if any(part.sign in each[-26:] for each in bars)}
            assert len(drawn) > 2
            assert [
                part for part in PARTS if part.sign in drawn and f"{part.sign} {part.brief}" not in line
            ] == []

    asyncio.run(run())


def test_a_note_without_room_does_not_cost_those_after_it() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng"), 100, 40) as pilot:
            line = (await shown_after(pilot, "5")).splitlines()[-2]
            assert "█ broker worked" in line
            assert len(line) < 100

    asyncio.run(run())


def test_the_story_has_a_key_where_rows_are_of_clients_or_topics() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng"), 120, 40) as pilot:
            told = {}
            await press(pilot, "5")
            for grouping in ("api", "broker", "client", "topic"):
                told[grouping] = "i Story" in (await shown_after(pilot, "j")).splitlines()[-1]
                await press(pilot, "g")
            assert told == {"api": False, "broker": False, "client": True, "topic": True}

    asyncio.run(run())


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_the_heat_map_stays_where_it_is_when_a_row_has_fewer_parts(width: int, height: int) -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng"), width, height) as pilot:
            await press(pilot, "5")
            app = pilot.app
            assert isinstance(app, Kdissect)
            page = app.pages["latency"]
            assert isinstance(page, LatencyPage)
            down = [page.heat_pane.region.y]
            for _ in range(len(page.rows)):
                await press(pilot, "down")
                down.append(page.heat_pane.region.y)
            assert down == sorted(down)
            assert len({*down}) <= 3
            with mock.patch.object(Screen, "_refresh_layout") as laid_out:
                await press(pilot, "home", "down", "end")
                assert not laid_out.called

    asyncio.run(run())
