"""Jumps to errors, and the way back from jumps."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from kdissect import read
from kdissect.present.detail import Detail, error_of
from kdissect.present.options import Options
from kdissect.protocol.errors import error_name
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.pages.jumps import MOST, Trail
from tests.cli.run import CAPTURES
from tests.tui.pages.test_exchanges import with_page
from tests.tui.snapshots import press, settle, shown_after


def test_back_and_forward_go_the_same_way() -> None:
    trail = Trail()
    assert trail.back(1) is None
    trail.leave(1)
    trail.leave(5)
    assert trail.back(9) == 5
    assert trail.back(5) == 1
    assert trail.back(1) is None
    assert trail.forward(1) == 5
    assert trail.forward(5) == 9
    assert trail.forward(9) is None


def test_a_jump_forgets_what_was_ahead() -> None:
    trail = Trail()
    trail.leave(1)
    assert trail.back(5) == 1
    trail.leave(1)
    assert trail.forward(7) is None
    assert trail.back(7) == 1


def test_a_place_where_one_is_already_is_passed_over() -> None:
    trail = Trail()
    trail.leave(1)
    trail.leave(5)
    assert trail.back(5) == 1


def test_the_oldest_are_forgotten() -> None:
    trail = Trail()
    for place in range(MOST + 10):
        trail.leave(place)
    found: list[int] = []
    while (left := trail.back(found[-1] if found else -1)) is not None:
        found.append(left)
    assert found == list(range(MOST + 9, 9, -1))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_next_error_leads_to_the_field_of_the_error_and_says_what_it_means(size: tuple[int, int]) -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        for _ in range(3):
            text = await shown_after(pilot, "e")
            detail = page.panes.detail
            assert detail is not None
            spot = page.panes.chosen()[-1]
            assert spot.branch is not None
            name = detail.exchange.error
            assert name is not None
            assert error_name(error_of(spot.branch.node) or 0) == name
            said = " ".join(text.split())  # in two lines on a narrow screen: all of it
            assert f"{name}, {detail.exchange.error_class}: " in said
            meaning = detail.meaning_of(spot)
            assert meaning is not None
            assert meaning in said
            assert page.list_pane.has_focus
        before = page.panes.chosen()[-1].branch
        await press(pilot, "k")  # another way to an exchange leaves the cursor of its tree at the top
        assert page.panes.chosen()[-1].branch is not before
        assert len(page.panes.chosen()) == 1

    with_page(step, width=size[0], height=size[1])


def test_where_there_is_no_error_but_a_fault_it_leads_there() -> None:
    found = [each for each in read(CAPTURES / "broker-0.9.pcap") if each.faults and not each.error]
    assert found
    for each in found:
        path = Detail(each, Options()).path_to_error()
        assert path
        assert path[-1].fault is not None


def test_keys_lead_back_to_where_jumps_led_away_from_and_forward_again() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        await press(pilot, "j")
        start = page.list_pane.cursor
        await press(pilot, "e")
        first = page.list_pane.cursor
        await press(pilot, "e")
        second = page.list_pane.cursor
        assert start < first < second
        await press(pilot, "alt+left")
        assert page.list_pane.cursor == first
        await press(pilot, "ctrl+o")
        assert page.list_pane.cursor == start
        assert "no jump to go back to" in await shown_after(pilot, "alt+left")
        await press(pilot, "alt+right", "alt+right")
        assert page.list_pane.cursor == second
        await press(pilot, "alt+left", "j", "e", "alt+left")  # from another row, somewhere else
        assert page.list_pane.cursor == first + 1
        assert "no jump to go forward to" not in await shown_after(pilot, "alt+right")

    with_page(step)


def test_the_way_back_leads_to_a_row_that_the_filter_hides() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        await press(pilot, "e")
        app.shown.write("api == ApiVersions")
        await settle(pilot)
        await press(pilot, "alt+left")
        assert page.list_pane.cursor == 0

    with_page(step)
