from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kdissect.tui.shortening import shortened


@pytest.mark.parametrize(
    ("room", "text"),
    [
        (30, "ConsumerGroupHeartbeat v1"),
        (25, "ConsumerGroupHeartbeat v1"),
        (20, "ConsumerGroupHea… v1"),
        (5, "C… v1"),
        (4, "Con…"),
        (1, "…"),
    ],
)
def test_the_end_stays_as_long_as_there_is_room_for_it(room: int, text: str) -> None:
    assert shortened("ConsumerGroupHeartbeat", " v1", room) == text


@given(st.text(), st.text(max_size=5), st.integers(1, 30))
def test_no_more_than_the_room_is_taken(text: str, end: str, room: int) -> None:
    assert cell_len(shortened(text, end, room)) <= room
