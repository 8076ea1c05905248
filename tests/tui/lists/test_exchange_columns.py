"""What stands in the columns of exchanges."""

from __future__ import annotations

import numpy as np

from kdissect.feed.rows import HAS_REQUEST, HAS_RESPONSE, HAS_TAKEN
from kdissect.tui.lists.exchange_columns import COLUMNS, SLOW_SIGN
from kdissect.tui.lists.exchanges import Exchanges
from tests.feed.feeds import index_with


def test_a_slow_row_has_a_sign_beside_its_colour() -> None:
    flags = HAS_REQUEST | HAS_RESPONSE | HAS_TAKEN
    index = index_with([{"api": 1, "flags": flags, "taken_ns": taken} for taken in (5, 50)], ["Fetch"])
    rows = Exchanges(index)
    rows.texts.slow = np.array([0, 10], np.int64)
    assert [rows.cells(row, 80)[0] for row in (0, 1)] == [" ", SLOW_SIGN]
    assert [rows.tone(row) for row in (0, 1)] == [None, "table--warning"]


def test_no_two_columns_have_the_same_name() -> None:
    names = [column.name for column in COLUMNS.values()]
    assert len(set(names)) == len(names)
