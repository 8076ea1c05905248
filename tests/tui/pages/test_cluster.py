"""The screen of the cluster at a time."""

from __future__ import annotations

import asyncio

import pytest

from kdissect.tui.lists.findings import finding_of
from kdissect.tui.pages.cluster import HERE, ClusterPage
from kdissect.tui.pages.findings import FindingsPage
from tests.amount import some
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, screen_text, settle, shown_after

KILLED = CAPTURES / "incidents" / "leader-killed.pcapng.gz"


def leaders(page: ClusterPage) -> list[int]:
    return [page.state.row(at)["leader"] for at in range(len(page.state))]


@pytest.mark.parametrize("size", some([(80, 24), (120, 40)], 1, (120, 40)))
def test_it_shows_the_cluster_at_the_time_under_the_cursor(size: tuple[int, int]) -> None:
    async def run() -> None:
        app = app_of(KILLED)
        async with running(app, *size) as pilot:
            app.go_to_number(1161)
            await settle(pilot)
            await press(pilot, "C")
            page = app.screen
            assert isinstance(page, ClusterPage)
            here = page.chosen_row()
            assert here is not None
            assert (here["what"], here["exchange"]) == (HERE, 1161)
            assert leaders(page) == [1, 2, 1]
            assert len(page.brokers) == 3
            await press(pilot, "j")
            assert leaders(page) == [2, 2, 3]
            assert {page.brokers.row(at)["node_id"] for at in range(len(page.brokers))} == {2, 3}
            await press(pilot, "home")
            assert leaders(page) == []
            text = " ".join(screen_text(app).split())
            assert "No message before 1.012323 mentions partitions. End shows the cluster at" in text
            text = " ".join((await shown_after(pilot, "g")).split())
            assert "no information before that time" in text
            assert "No message before 1.012323 mentions topics." in text
            assert "mentions" not in await shown_after(pilot, "end")

    asyncio.run(run())


def test_why_there_is_nothing_is_looked_for_only_where_there_is_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[int] = []

    def why(_page: ClusterPage, _counted: object, at_ns: int) -> str:
        found.append(at_ns)
        return "Nothing."

    async def run() -> None:
        app = app_of(KILLED)
        async with running(app, 80, 24) as pilot:
            app.go_to_number(1161)
            await settle(pilot)
            await press(pilot, "C")
            page = app.screen
            assert isinstance(page, ClusterPage)
            monkeypatch.setattr(ClusterPage, "_why_nothing", why)
            await press(pilot, "j")
            assert leaders(page)
            assert not found
            await press(pilot, "home")
            assert not leaders(page)
            assert found

    asyncio.run(run())


def test_from_a_finding_without_exchanges_it_shows_the_time_of_the_finding() -> None:
    async def run() -> None:
        app = app_of(KILLED)
        async with running(app, 120, 40) as pilot:
            await press(pilot, "9")
            findings = app.screen
            assert isinstance(findings, FindingsPage)
            at, finding = next(
                (at, each)
                for at in range(len(findings.rows))
                if not (each := finding_of(findings.rows.row(at))).exchanges and each.first_ns is not None
            )
            await press(pilot, *"j" * at)
            assert findings.chosen_place() is None
            await press(pilot, "C")
            assert isinstance(app.screen, ClusterPage)
            here = app.screen.chosen_row()
            assert here is not None
            assert (here["what"], here["ns"]) == (HERE, finding.first_ns)

    asyncio.run(run())
