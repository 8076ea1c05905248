"""Lists of an edge are the same after they were sent as bytes."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from kdissect.model import Segment
from kdissect.parts.packed import EndsList, Segments

_NUMBER = st.integers(-(1 << 63), (1 << 63) - 1)
_COUNT = st.integers(0, (1 << 31) - 1)
_END = st.binary(min_size=6, max_size=6) | st.binary(min_size=18, max_size=18)
_SEGMENT = st.builds(
    Segment,
    packet=_NUMBER,
    timestamp_ns=_NUMBER,
    source=_END,
    destination=_END,
    seq=_COUNT,
    ack=st.none() | st.integers(0, 0xFFFF_FFFF),
    flags=st.integers(0, 0xFF),
    payload=st.binary(max_size=40),
    length=_COUNT,
    identity=_COUNT,
    network=_COUNT,
    window=st.integers(-1, 0xFFFF),
    options=st.binary(max_size=40),
    clock=st.integers(-1, 0xFFFF_FFFF),
)


@given(st.lists(_SEGMENT, max_size=5))
def test_segments(segments: list[Segment]) -> None:
    again = pickle.loads(pickle.dumps(Segments(segments)))
    assert type(again) is Segments
    assert again == segments


@given(st.lists(st.tuples(_END, _END), max_size=5))
def test_ends(pairs: list[tuple[bytes, bytes]]) -> None:
    again = pickle.loads(pickle.dumps(EndsList(pairs)))
    assert type(again) is EndsList
    assert again == pairs


def test_each_end_is_sent_once() -> None:
    one = Segment(1, 2, b"\1\2\3\4\5\6", b"\6\5\4\3\2\1", 0, None, 0, b"", 0)
    other = one._replace(source=one.destination, destination=one.source)
    assert pickle.dumps(Segments([one, other])).count(one.source) == 1
