"""Entries of index files."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.logdir.indexes import Entry, preallocated, read_entries
from kdissect.logdir.search import PART
from kdissect.model import Fault
from tests.logdir.build import reader_of

KINDS = ("offset", "time", "transaction")


def entries_of(kind: str, data: bytes, base_offset: int = 0) -> list[Entry | Fault]:
    return list(read_entries(kind, reader_of(data), len(data), base_offset))


def test_offsets_are_absolute() -> None:
    data = struct.pack(">iiii", 5, 4_096, 9, 8_192)
    assert entries_of("offset", data, 1_000) == [
        Entry(0, {"offset": 1_005, "position": 4_096}),
        Entry(8, {"offset": 1_009, "position": 8_192}),
    ]
    assert entries_of("time", struct.pack(">qi", 77, 5), 1_000) == [
        Entry(0, {"timestamp": 77, "offset": 1_005})
    ]


def test_an_aborted_transaction() -> None:
    wanted = {"version": 0, "producerId": 4, "firstOffset": 10, "lastOffset": 12, "lastStableOffset": 13}
    assert entries_of("transaction", struct.pack(">hqqqq", 0, 4, 10, 12, 13)) == [Entry(0, wanted)]


@pytest.mark.parametrize(
    ("kind", "form", "numbers"), [("offset", ">ii", (256, 256)), ("time", ">qi", (256, 256))]
)
def test_zeros_after_the_last_entry_are_preallocated(kind: str, form: str, numbers: tuple[int, int]) -> None:
    """The numbers end with bytes of zero, which are not taken for that."""
    entry = struct.pack(form, *numbers)
    data = entry + bytes(len(entry) * 200_000)
    assert len(entries_of(kind, data)) == 1
    assert preallocated(kind, reader_of(data), len(data)) == len(entry) * 200_000
    assert entries_of(kind, bytes(len(data))) == []
    assert entries_of(kind, b"") == []


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_after_the_last_whole_entry_are_told(kind: str) -> None:
    size = {"offset": 8, "time": 12, "transaction": 34}[kind]
    for more in range(1, size):
        found = entries_of(kind, b"\x01" * (size + more))
        assert len(found) == 2
        assert isinstance(found[1], Fault)
        assert (found[1].kind, found[1].offset) == ("trailing-bytes", size)


def test_an_index_of_many_parts() -> None:
    count = PART // 10  # an entry has 12 bytes
    data = b"".join(struct.pack(">qi", at + 1, at) for at in range(count))
    found = entries_of("time", data)
    assert len(found) == count
    assert found[-1] == Entry(12 * (count - 1), {"timestamp": count, "offset": count - 1})


@given(st.sampled_from(KINDS), st.binary(max_size=200))
def test_any_bytes_are_entries_zeros_or_told(kind: str, data: bytes) -> None:
    size = {"offset": 8, "time": 12, "transaction": 34}[kind]
    found = entries_of(kind, data)
    entries = [each for each in found if isinstance(each, Entry)]
    covered = len(entries) * size + preallocated(kind, reader_of(data), len(data))
    assert covered == len(data) or isinstance(found[-1], Fault)
