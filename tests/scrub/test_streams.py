"""Bytes are read again at their place, however they are asked for."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from kdissect.scrub.allowed import UNKNOWN
from kdissect.scrub.streams import Streams, stream_of


def test_a_stream_is_a_direction_of_a_connection() -> None:
    assert len({stream_of(connection, side) for connection in range(9) for side in (0, 1)}) == 18


def test_what_was_not_written_is_filler() -> None:
    streams = Streams(io.BytesIO())
    streams.add(4, 10, b"abcd")
    part = streams.read(4, 8, 8)
    assert part.data == UNKNOWN * 2 + b"abcd" + UNKNOWN * 2
    assert part.known == 4
    assert streams.read(5, 10, 4) == (UNKNOWN * 4, 0)


def test_the_other_direction_belongs_to_it() -> None:
    streams = Streams(io.BytesIO())
    streams.add(4, 0, b"a")
    assert 4 in streams
    assert 5 in streams
    assert 6 not in streams


@given(st.lists(st.binary(min_size=1, max_size=9), max_size=9), st.randoms(), st.data())
def test_parts_in_any_order_are_one_stream(parts: list[bytes], random: object, data: st.DataObject) -> None:
    streams = Streams(io.BytesIO())
    at, placed = 0, []
    for part in parts:
        placed.append((at, part))
        at += len(part)
    random.shuffle(placed)  # type: ignore[attr-defined]
    for offset, part in placed:
        streams.add(0, offset, part)
    whole = b"".join(parts)
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole)))
    assert streams.read(0, start, end - start) == (whole[start:end], end - start)
