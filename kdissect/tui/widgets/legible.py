"""Textual's own widgets, of which every text can be read: what they draw is measured line by line."""

from __future__ import annotations

from textual.strip import Strip
from textual.widgets import Input, OptionList, Static

from kdissect.tui.colors import legible_strip

_TITLES = "{ border-title-color: $foreground; border-subtitle-color: $foreground; }"


class LegibleInput(Input):
    """A line to write into."""

    DEFAULT_CSS = f"LegibleInput {_TITLES}"

    def render_line(self, y: int) -> Strip:
        return legible_strip(super().render_line(y), self.app)


class LegibleOptions(OptionList):
    """A list to choose from."""

    DEFAULT_CSS = f"LegibleOptions {_TITLES}"

    def render_line(self, y: int) -> Strip:
        return legible_strip(super().render_line(y), self.app)


class LegibleText(Static):
    """A text."""

    def render_line(self, y: int) -> Strip:
        return legible_strip(super().render_line(y), self.app)
