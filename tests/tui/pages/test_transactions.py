"""The screen of transactions."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kdissect.analysis.catalogue import STATISTICS
from kdissect.analysis.fold import Row
from kdissect.present.form import SECOND, Clock
from kdissect.present.lanes import CellSpan
from kdissect.tui.app import Kdissect
from kdissect.tui.pages import transactions
from kdissect.tui.pages.statistics import OF_ALL_CLUSTERS
from kdissect.tui.pages.transactions import IdLines, TransactionsPage
from tests.analysis.test_clusters import at
from tests.analysis.test_transactions import write
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, settle, shown_after
from tests.two_clusters import EAST, WEST, two_clusters

TRANSACTIONS = CAPTURES / "transactions-kafka39.pcapng"
HOSTILE = "a\x1b[2J\u202eb[red]\r\n"


def row(outcome: str, begin_s: int, end_s: int | None, name: str | None = "tx", **more: object) -> Row:
    empty = dict.fromkeys(each.name for each in STATISTICS["transactions"].columns)
    end_ns = None if end_s is None else end_s * SECOND
    known = {
        "transactional_id": name,
        "outcome": outcome,
        "begin_ns": begin_s * SECOND,
        "end_ns": end_ns,
        "last_ns": end_ns or begin_s * SECOND,
        "errors": [],
        "groups": [],
        "exchanges": [begin_s],
    }
    return {**empty, **known, **more}


def line(rows: list[Row], chosen: int | None = None) -> str:
    lines = IdLines()
    lines.show(rows, CellSpan(0, 20 * SECOND))
    lines.choose(None if chosen is None else rows[chosen])
    return lines.cells(0, 16 + 1 + 21)[-1]


def test_ends_are_told_apart_by_shape() -> None:
    rows = [row("committed", 0, 4), row("aborted", 5, 8), row("fenced", 10, 14), row("open", 15, None)]
    text = line(rows, 1)
    assert [text[at] for at in (4, 8, 14)] == ["✓", "✗", "⊘"]
    assert "█" in text[5:8]
    assert text[:4] == "────"
    assert text.endswith("┄┄")


def test_the_line_is_the_same_whichever_transaction_was_under_the_cursor_before() -> None:
    rows = [row("committed", 0, 4), row("aborted", 5, 8), row("open", 15, None), row("fenced", 9, 10, "b")]
    lines = IdLines()
    lines.show(rows, CellSpan(0, 20 * SECOND))
    for chosen in (0, 1, 2, 3, 1):
        assert lines.choose(rows[chosen]) == (1 if chosen == 3 else 0)
        assert lines.cells(0, 16 + 1 + 21)[-1] == line(rows, chosen)
        others = {lines.key(0), lines.key(1)}
        lines.choose(rows[(chosen + 1) % 3])
        assert {lines.key(0), lines.key(1)} != others
    assert lines.choose(None) is None
    assert lines.cells(0, 16 + 1 + 21)[-1] == line(rows)


def test_what_went_wrong_is_seen_where_much_falls_into_one_cell() -> None:
    assert "⊘" in line([row("committed", 3, 3), row("fenced", 3, 3), row("committed", 3, 3)])


def test_nothing_of_the_wire_reaches_the_terminal_as_it_is() -> None:
    hostile = row("fenced", 1, 2, HOSTILE, ended_by=HOSTILE, client_id=HOSTILE, taken_by_client_id=HOSTILE)
    said = transactions.text_of(hostile, Clock(), 80)
    figures = transactions.figures(Clock())
    figures.show([hostile])
    lines = IdLines()
    lines.show([hostile], CellSpan(0, SECOND))
    assert all(each.text.isprintable() for each in said)
    assert all(cell.isprintable() for cell in (*figures.cells(0, 200), *lines.cells(0, 120)))


def test_nothing_is_said_of_readers_that_did_not_stand_still() -> None:
    rows = [row("timed-out", 1, 4, held_ns=0), row("committed", 5, 6), row("aborted", 7, 9, held_ns=SECOND)]
    figures = transactions.figures(Clock())
    figures.show(rows[:2])
    assert "Held" not in [each.title for each in figures.headings(240)]
    figures.show(rows)
    at = [each.title for each in figures.headings(240)].index("Held")
    assert [figures.cells(each, 240)[at] for each in range(3)] == ["", "", "1.00 s"]
    assert not any("stood still" in each.text for each in transactions.text_of(rows[0], Clock(), 80))


def test_the_key_leads_from_an_exchange_to_its_transaction_and_enter_back_to_its_exchanges() -> None:
    async def run() -> None:
        app = app_of(TRANSACTIONS)
        async with running(app) as pilot:
            texts = [app.index.text("api", at) for at in range(len(app.index))]
            last = max(at for at, text in enumerate(texts) if text == "EndTxn")
            app.show_exchange(last)
            await settle(pilot)
            text = await shown_after(pilot, "T")
            page = app.screen
            assert isinstance(page, TransactionsPage)
            chosen = page.chosen_row()
            assert chosen is not None
            time_ns = app.index.value("time_ns", last)
            assert chosen["begin_ns"] <= time_ns <= max(chosen["end_ns"], chosen["last_ns"])
            assert f"{chosen['transactional_id']}: " in text
            await press(pilot, "enter")
            assert isinstance(app, Kdissect)
            assert app.screen is app.pages["exchanges"]
            assert last in app.shown.places.tolist()
            assert "EndTxn" in {app.index.text("api", at) for at in app.shown.places.tolist()}

    asyncio.run(run())


def test_the_key_leads_to_the_transaction_of_the_own_cluster(tmp_path: Path) -> None:
    async def run() -> None:
        app = app_of(*two_clusters(tmp_path, TRANSACTIONS))
        async with running(app) as pilot:
            of_cluster = {"127.0.0.1": EAST, "127.0.0.2": WEST}
            tried = set()
            for at in range(len(app.index)):
                kind = app.index.text("broker", at).partition(":")[0], app.index.text("api", at)
                exchange = app.exchange_at(at)
                if kind in tried or exchange is None or not exchange.transactional_ids:
                    continue
                tried.add(kind)
                app.show_exchange(at)
                await settle(pilot)
                await press(pilot, "T")
                page = app.screen
                assert isinstance(page, TransactionsPage)
                chosen = page.chosen_row()
                assert chosen is not None
                assert chosen["cluster_id"] == of_cluster[kind[0]], kind
                assert chosen["transactional_id"] in exchange.transactional_ids
                await press(pilot, "1")
            assert {api for _, api in tried} >= {"Produce", "EndTxn"}
            assert len(tried) == 2 * len({api for _, api in tried})

    asyncio.run(run())


CLIENT = {"client_id": "test", "client": "10.0.0.9:1"}
"""Another connection of the client."""


@pytest.mark.parametrize(
    ("east", "west", "cluster"),
    [
        ({}, {"exchanges": [8]}, WEST),  # it lists the exchange
        ({}, {"coordinator": "10.0.0.2:9092"}, WEST),
        ({}, CLIENT, WEST),
        ({"coordinator": "10.0.0.2:9092"}, CLIENT, EAST),
        (CLIENT, CLIENT, None),
        ({}, {}, None),
    ],
)
def test_the_cluster_of_an_exchange_is_what_transactions_tell(
    east: Row, west: Row, cluster: str | None
) -> None:
    rows = [row("committed", 0, 4, "pay", cluster_id=EAST, **east)]
    rows.append(row("committed", 1, 4, "pay", cluster_id=WEST, **west))
    (found,) = at("10.0.0.2", write(0, "a"), client="10.0.0.9")
    found.number = 8
    places = {EAST: [0], WEST: [1], None: [0, 1]}[cluster]
    assert transactions.place_at(rows, found, 2 * SECOND) == places[0]
    assert transactions.place_at(rows, found, 5 * SECOND) == places[-1]  # all were over
    assert transactions.place_at([], found, 0) is None


def test_without_any_it_says_so() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "sasl-scram.pcapng"), 80, 24) as pilot:
            text = " ".join((await shown_after(pilot, "T")).split())
            assert "no transactions" in text
            assert (
                "No transaction was captured. A transaction shows in requests with a transactional id" in text
            )
            assert "EndTxn" in text

    asyncio.run(run())


@pytest.mark.parametrize("filter", ["api == EndTxn", "api == AddPartitionsToTxn"])
def test_a_filter_hides_neither_the_beginning_nor_the_end_of_a_transaction(filter: str) -> None:
    async def run() -> None:
        app = app_of(TRANSACTIONS)
        async with running(app) as pilot:
            await press(pilot, "T")
            page = pilot.app.screen
            assert isinstance(page, TransactionsPage)
            names = "outcome", "begin_ns", "end_ns", "ended_by"

            def told() -> list[tuple[object, ...]]:
                rows = (page.rows.row(at) for at in range(len(page.rows)))
                return [tuple(row[name] for name in names) for row in rows]

            whole = told()
            app.shown.write(filter)
            await settle(pilot)
            assert told()
            assert set(told()) <= set(whole)

    asyncio.run(run())


@pytest.mark.parametrize("width", [80, 120])
def test_transactions_of_one_id_in_two_clusters_are_told_apart(width: int, tmp_path: Path) -> None:
    async def run() -> None:
        async with running(app_of(*two_clusters(tmp_path, TRANSACTIONS)), width, 40) as pilot:
            text = await shown_after(pilot, "T")
            assert "Cluster" in text.splitlines()[2]
            page = pilot.app.screen
            assert isinstance(page, TransactionsPage)
            lanes = [page.lines.cells(at, width)[:2] for at in range(len(page.lines))]
            assert {cluster for _, cluster in lanes} == {EAST, WEST}
            ids = [page.lines.name(at) for at in range(len(page.lines))]
            assert all(ids.count(each) == 2 for each in ids)
            table = page.rows
            shown = [tuple(table.cells(at, width)) for at in range(len(table))]
            assert len(shown) == len(set(shown))
            assert OF_ALL_CLUSTERS in " ".join((await shown_after(pilot, "enter")).split())
            await press(pilot, "escape")
            page.ids_pane.focus()
            assert OF_ALL_CLUSTERS in " ".join((await shown_after(pilot, "enter")).split())

    asyncio.run(run())
    alone = IdLines()
    alone.show([row("committed", 0, 4)], CellSpan(0, 20 * SECOND))
    assert "Cluster" not in [each.title for each in alone.headings(120)]


@pytest.mark.parametrize("asked", ["commit", "abort", None])
def test_what_endtxn_asked_for_is_said_where_the_outcome_is_unknown(asked: str | None) -> None:
    told = f"EndTxn asked to {asked} it; the capture does not show what became of that"
    unknown, fenced = row("unknown", 1, None, asked=asked), row("fenced", 1, 2, asked=asked)
    assert (told in [each.text for each in transactions.text_of(unknown, Clock(), 120)]) == (
        asked is not None
    )
    assert not any("EndTxn asked" in each.text for each in transactions.text_of(fenced, Clock(), 120))
