"""The screen of topics: what stands below the row under the cursor."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kdissect.analysis.catalogue import STATISTICS
from kdissect.analysis.fold import SECOND, Row
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.pages.statistics import OF_ALL_CLUSTERS
from kdissect.tui.pages.topics import (
    CLIENT_COLUMNS,
    PARTITION_COLUMNS,
    TOPIC_COLUMNS,
    TopicsPage,
    alike,
    client_rows,
    partition_rows,
    topic_rows,
)
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, shown_after
from tests.two_clusters import EAST, WEST, two_clusters

LAG = CAPTURES / "incidents" / "lag-grows.pcapng.gz"
BAR = "▔" * 80


def below(text: str) -> list[str]:
    """The lines below the list."""
    return text.partition(BAR)[2].splitlines()[1:]


def test_below_a_topic_stand_its_partitions_and_below_a_partition_who_fetches_it() -> None:
    async def run() -> None:
        async with running(app_of(LAG), 80, 24) as pilot:
            lines = below(await shown_after(pilot, "3"))
            assert lines[0].split()[:3] == ["Topic", "Part", "Direction"]
            assert {tuple(each.split()[:3]) for each in lines[1:5]} == {
                ("events", "0", "fetch"),
                ("events", "0", "produce"),
                ("events", "1", "fetch"),
                ("events", "1", "produce"),
            }
            lines = below(await shown_after(pilot, "g", "end"))
            assert lines[1].split()[:3] == ["reader", "events", "1"]
            assert lines[2].split() == []
            assert below(await shown_after(pilot, "g")) == []  # groups: the list has all the room
            await press(pilot, "end", "g", "end", "g")  # clients, and topics again
            assert below(await shown_after(pilot, "end"))[0].split()[:3] == ["Topic", "Part", "Direction"]

    asyncio.run(run())


def test_enter_below_shows_the_exchanges_of_that_row() -> None:
    async def run() -> None:
        async with running(app_of(LAG)) as pilot:
            await press(pilot, "3", "g", "tab", "enter")
            assert isinstance(pilot.app.screen, ExchangesPage)
            assert 'topic == "events" and partition == 0 and client_id == "reader"' in await shown_after(
                pilot
            )

    asyncio.run(run())


def test_rows_of_the_grouping_before_have_nothing_below() -> None:
    async def run() -> None:
        async with running(app_of(LAG)) as pilot:
            await press(pilot, "3")
            page = pilot.app.screen
            assert isinstance(page, TopicsPage)
            page.grouping, page.counted = "partition", None  # as long as it is counted
            page.cursor_moved()
            assert page.has_class("-alone")

    asyncio.run(run())


def test_the_lag_of_a_client_says_how_old_it_is_and_where_that_of_its_group_is() -> None:
    async def run() -> None:
        async with running(app_of(LAG), 160, 40) as pilot:
            assert "Lag: at the last Fetch; :lag has that of commits" in await shown_after(pilot, "3")
            text = await shown_after(pilot, "g", "g", "g")
            assert "As of" in text
            ages = [line.partition(" ago")[0].split()[-2:] for line in text.splitlines() if " ago" in line]
            assert ages
            assert all(float(number) > 1 and unit == "s" for number, unit in ages)
            assert "Lag: at the last Fetch" not in await shown_after(pilot, "g", "g", "g")  # groups

    asyncio.run(run())


def test_a_lag_of_now_has_no_age() -> None:
    row = {"replica_id": -1, "lag": 5, "fetched_last_ns": 10 * SECOND}
    ages = [(until, client_rows([row], until)[0]) for until in (None, 10 * SECOND, 13 * SECOND)]
    column = next(each for each in CLIENT_COLUMNS if each.title == "As of")
    assert [column.text(each) for _, each in ages] == ["", "", "3.00 s ago"]


def test_topics_of_one_name_in_two_clusters_are_told_apart(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(app_of(*two_clusters(tmp_path)), 160, 40) as pilot:
            text = await shown_after(pilot, "3")
            assert "Cluster" in text.splitlines()[2]
            page = pilot.app.screen
            assert isinstance(page, TopicsPage)
            for columns in (TOPIC_COLUMNS, PARTITION_COLUMNS):
                assert page.rows.columns is columns
                rows = [page.rows.row(at) for at in range(len(page.rows))]
                shown = [tuple(page.rows.cells(at, 160)) for at in range(len(rows))]
                assert len(shown) == len(set(shown))
                assert {row["cluster_id"] for row in rows} >= {EAST, WEST}
                lags = {each: of_cluster(rows, each) for each in (EAST, WEST)}
                assert lags[EAST] == lags[WEST]
                assert any(most for _, _, most in lags[EAST])
                for at, row in enumerate(rows):
                    page.list_pane.cursor = at
                    page.cursor_moved()
                    within = [page.within.row(at) for at in range(len(page.within))]
                    assert {each["cluster_id"] for each in within} == {row["cluster_id"]}
                    brokers = {each["broker"].partition(":")[0] for each in within if "broker" in each}
                    assert columns is TOPIC_COLUMNS or brokers == {HOSTS[row["cluster_id"]]}
                await press(pilot, "g")
            await press(pilot, "g")
            assert page.rows.columns is CLIENT_COLUMNS
            assert page.rows.headings(160)[2].title == "Cluster"
            readers = [page.rows.row(at) for at in range(len(page.rows))]
            assert {each["cluster_id"] for each in readers} == {EAST, WEST}
            assert OF_ALL_CLUSTERS in await shown_after(pilot, "enter")

    asyncio.run(run())


HOSTS = {EAST: "127.0.0.1", WEST: "127.0.0.2"}


def of_cluster(rows: list[Row], cluster: str) -> list[tuple[object, ...]]:
    """Topic, direction and lag of the rows of a cluster."""
    found = [row for row in rows if row["cluster_id"] == cluster]
    return [(row["topic"], row.get("direction"), row["lag_max"]) for row in found]


def test_readers_of_which_nothing_is_known_have_a_row_of_their_own() -> None:
    traffic = [row_of("topics", topic="t", partition=0, cluster_id=each, codecs=[]) for each in (EAST, WEST)]
    reading = {"topic": "t", "partition": 0, "replica_id": -1, "asked": True}
    readers = [
        row_of("positions", **reading, cluster_id=each, lag=lag) for each, lag in ((WEST, 7), (None, 9))
    ]
    both = alike(traffic, readers)
    expected = {EAST: None, WEST: 7, None: 9}
    assert {row["cluster_id"]: row["lag_max"] for row in topic_rows(*both)} == expected
    assert {row["cluster_id"]: row["lag_max"] for row in partition_rows(*both)} == {EAST: None, WEST: 7}
    alone = alike(traffic[:1], [row_of("positions", **reading, cluster_id=EAST, lag=5)])
    assert [(row["cluster_id"], row["lag_max"]) for row in topic_rows(*alone)] == [(None, 5)]


def row_of(table: str, **known: object) -> Row:
    empty = {each.name: 0 if each.type == "int64" else None for each in STATISTICS[table].columns}
    return {**empty, "direction": "fetch", **known}
