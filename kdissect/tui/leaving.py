"""Saving the state of the screens when they are left, and restoring it (:class:`LastSession`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from textual.screen import Screen

from kdissect.settings.places import PAGES
from kdissect.settings.session import LastSession
from kdissect.tui.host import Host
from kdissect.tui.pages.arranging import USUAL
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.pages.listed import OrderedScreen
from kdissect.tui.pages.split import USUAL_SHARE
from kdissect.tui.pages.statistics import GroupedScreen
from kdissect.tui.widgets.panes import DetailPanes
from kdissect.tui.widgets.split_panes import PanesScreen


def arrange(pages: Mapping[str, Screen[None]], before: LastSession) -> None:
    """Give panes and lists the room, the order and the grouping that they had."""
    for name, panes in _of_panes(pages):
        panes.heights = {pane: lines for page, pane, lines in before.heights if page == name}
    for name, title, descending in before.orders:
        page = pages.get(name)
        if isinstance(page, OrderedScreen):
            page.rows.sorted_by, page.rows.descending = title, descending
    for name, grouping in before.groupings:
        page = pages.get(name)
        if isinstance(page, GroupedScreen) and grouping in page.GROUPINGS:
            page.grouping = grouping


def as_left(app: Host) -> LastSession:
    """The current state of the screens."""
    pages, before = app.pages, app.settings.before
    exchanges = pages["exchanges"]
    assert isinstance(exchanges, ExchangesPage)
    shown = [name for each in app.screen_stack for name, page in pages.items() if page is each]
    here = shown[-1] if shown else None
    chosen = app.shown.chosen if app.shown.span is None else None
    order = exchanges.order.own if exchanges.is_mounted else USUAL
    return LastSession(
        here if here in PAGES else None,
        chosen.text if chosen is not None and app.remembered.may_keep(chosen) else "",
        app.columns if app.columns != app.settings.columns else (),
        order if order != USUAL else None,
        exchanges.share if exchanges.share != USUAL_SHARE else None,
        tuple((name, *each) for name, panes in _of_panes(pages) for each in panes.heights.items()),
        tuple(
            (name, each.rows.sorted_by, each.rows.descending)
            for name, each in pages.items()
            if isinstance(each, OrderedScreen) and name in PAGES and each.rows.sorted_by is not None
        ),
        next((each.sides.percent for each in exchanges.query(DetailPanes)), before.bytes_percent),
        tuple(
            (name, each.grouping)
            for name, each in pages.items()
            if isinstance(each, GroupedScreen) and each.grouping != each.GROUPINGS[0]
        ),
    )


def _of_panes(pages: Mapping[str, Screen[None]]) -> Iterator[tuple[str, PanesScreen]]:
    """The screens with stacked panes, with their names."""
    return ((name, each) for name, each in pages.items() if isinstance(each, PanesScreen))
