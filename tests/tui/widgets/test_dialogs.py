"""Dialogs over the screens."""

from __future__ import annotations

import pytest

pytest.importorskip("textual")

from kdissect.tui.widgets.dialogs import Pick


def test_a_key_that_comes_before_the_dialog_is_put_up_costs_nothing() -> None:
    """As one does over a slow line, in one piece with that which opened it."""
    dialog = Pick("Columns", [("api", "API", True)])
    dialog.action_tick()
    assert dialog._ticked == {"api"}
