from __future__ import annotations

import gc

from kdissect.collector import OBJECTS_BEFORE_A_LOOK, rarely_collected


def test_the_last_to_leave_puts_things_back_in_whatever_order_they_leave() -> None:
    before = gc.get_threshold()
    first, second = rarely_collected(), rarely_collected()
    first.__enter__()
    second.__enter__()
    assert gc.get_threshold()[0] == OBJECTS_BEFORE_A_LOOK
    first.__exit__(None, None, None)
    assert (gc.get_threshold()[0], gc.get_freeze_count() > 0) == (OBJECTS_BEFORE_A_LOOK, True)
    second.__exit__(None, None, None)
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)
