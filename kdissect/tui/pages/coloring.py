"""A coloring rule for the rows that are like the one under the cursor."""

from __future__ import annotations

from kdissect.present.sanitise import sanitise
from kdissect.settings.coloring import COLORS, ColoringRule
from kdissect.tui.pages.split import SplitPage
from kdissect.tui.widgets.dialogs import Choose

NO_COLOR = "no colour"


def choose_color(page: SplitPage, filter: str) -> None:
    """Choose a colour for all rows that a filter matches."""
    coloring = page.kdissect.coloring

    def chosen(color: str | None) -> None:
        if color == NO_COLOR:
            had_one = coloring.remove(filter)
            page.say(f"no colour for {filter}" if had_one else "these rows have no colour from this key")
        elif color is not None:
            coloring.add(ColoringRule(filter, filter, color))
            page.say(f"{color}: {filter}   [coloring] in config.toml keeps a rule")
        page.list_pane.rows_changed()

    page.app.push_screen(Choose(f"Colour rows with {sanitise(filter, 40)}", (*COLORS, NO_COLOR)), chosen)
