"""Screens whose figures can be put together in more ways than one."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from kdissect.tui.feed.counting import Asked
from kdissect.tui.keys import bindings_of
from kdissect.tui.pages.statistics import StatisticsPage
from kdissect.tui.widgets.table import VirtualTable


class GroupedTable(VirtualTable, inherit_bindings=False):
    """A table that leaves the key of ``first`` to the screen, where it says how rows are put together; Home
    still goes to the first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        replace(each, key="home") if isinstance(each, Binding) and each.id == "first" else each
        for each in bindings_of("list")
    ]


class GroupedPage(StatisticsPage):
    """A screen with groupings."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_of("grouped")
    GROUPINGS: ClassVar[tuple[str, ...]]
    """In the order in which the key goes through them."""

    def __init__(self) -> None:
        self.grouping = self.GROUPINGS[0]
        super().__init__()

    def asked(self) -> Asked:
        return self.asked_by(self.grouping)

    def asked_by(self, grouping: str) -> Asked:
        """The statistics that a grouping needs."""
        raise NotImplementedError

    @property
    def names(self) -> frozenset[str]:
        asked = (text for grouping in self.GROUPINGS for text in self.asked_by(grouping))
        return frozenset(text.partition(",")[0] for text in asked)

    def body(self) -> ComposeResult:
        yield GroupedTable(self.rows, id="list")

    def action_group(self) -> None:
        at = self.GROUPINGS.index(self.grouping)
        self.grouping = self.GROUPINGS[(at + 1) % len(self.GROUPINGS)]
        self.counted = None
        self.statistics.ask(self.asked())
        self.list_pane.cursor = 0
        self.index_grew()

    def notes(self) -> list[str]:
        others = [each for each in self.GROUPINGS if each != self.grouping]
        return [*super().notes(), f"by {self.grouping} (g: {', '.join(others)})"]
