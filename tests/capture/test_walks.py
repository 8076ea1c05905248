from __future__ import annotations

from struct import pack

import pytest

from kdissect.capture.walks import walk_pcap, walk_pcapng

_MOST = 1 << 40
_LIMIT = 1_000


def record(size: int, wire: int | None = None, order: str = "<") -> bytes:
    return pack(order + "IIII", 1, 2, size, size if wire is None else wire) + bytes(size)


def block(kind: int, size: int, order: str = "<", behind: int | None = None) -> bytes:
    return pack(order + "II", kind, size) + bytes(size - 12) + pack(order + "I", behind or size)


@pytest.mark.parametrize("order", "<>")
def test_records_are_passed_up_to_the_goal(order: str) -> None:
    data = record(4, order=order) + record(10, 60, order) + record(1, order=order)
    is_little = order == "<"
    assert walk_pcap(data, 0, len(data), len(data), is_little, _LIMIT, _MOST) == (len(data), 3, False)
    assert walk_pcap(data, 0, 21, len(data), is_little, _LIMIT, _MOST) == (46, 2, False)
    assert walk_pcap(data, 0, len(data), len(data), is_little, _LIMIT, 1) == (20, 1, False)
    assert walk_pcap(data, 20, len(data), len(data), is_little, _LIMIT, 1) == (46, 1, False)


def test_a_record_may_end_behind_the_window_but_not_behind_the_file() -> None:
    data = record(4) + record(100)
    assert walk_pcap(data[:40], 0, 500, len(data), True, _LIMIT, _MOST) == (136, 2, False)
    assert walk_pcap(data[:40], 0, 500, len(data) - 1, True, _LIMIT, _MOST) == (20, 1, True)
    assert walk_pcap(data[:30], 0, 500, len(data), True, _LIMIT, _MOST) == (20, 1, False)


@pytest.mark.parametrize("other", [record(0, 5), record(5, 4), record(_LIMIT + 1), b"\xff" * 20])
def test_a_walk_over_records_ends_before_anything_else(other: bytes) -> None:
    data = record(4) + other
    assert walk_pcap(data, 0, len(data), len(data), True, _LIMIT, _MOST) == (20, 1, True)


@pytest.mark.parametrize("order", "<>")
def test_blocks_with_packets_are_passed(order: str) -> None:
    data = block(6, 40, order) + block(3, 16, order) + block(6, 32, order)
    is_little = order == "<"
    assert walk_pcapng(data, 0, len(data), len(data), is_little, _LIMIT, _MOST) == (88, 3, False)
    assert walk_pcapng(data, 0, 41, len(data), is_little, _LIMIT, _MOST) == (56, 2, False)
    assert walk_pcapng(data[:87], 0, 88, 88, is_little, _LIMIT, _MOST) == (56, 2, False)


@pytest.mark.parametrize(
    "other",
    [block(5, 40), block(6, 28), block(3, 12), block(6, 42), block(6, _LIMIT + 4), block(6, 40, behind=44)],
)
def test_a_walk_over_blocks_ends_before_anything_else(other: bytes) -> None:
    data = block(6, 40) + other
    assert walk_pcapng(data, 0, len(data), len(data), True, _LIMIT, _MOST) == (40, 1, True)
