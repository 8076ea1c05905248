"""Producer snapshots."""

from __future__ import annotations

import struct

import crc32c

from kdissect.logdir.snapshot import read_snapshot
from tests.amount import each_of

PRODUCER = {
    "producerId": 4,
    "epoch": 1,
    "lastSequence": 9,
    "lastOffset": 107,
    "offsetDelta": 3,
    "timestamp": 1_700_000_000_000,
    "coordinatorEpoch": 2,
    "currentTxnFirstOffset": -1,
}


def snapshot_of(count: int = 2, version: int = 1) -> bytes:
    body = struct.pack(">i", count) + struct.pack(">qhiqiqiq", *PRODUCER.values()) * count
    return struct.pack(">hI", version, crc32c.crc32c(body)) + body


def test_the_state_of_each_producer_under_kafkas_names() -> None:
    assert read_snapshot(snapshot_of()) == ([PRODUCER, PRODUCER], [])
    assert read_snapshot(snapshot_of(0)) == ([], [])


@each_of(lambda: range(2, len(snapshot_of())))
def test_every_flipped_byte_is_told(at: int) -> None:
    data = bytearray(snapshot_of())
    data[at] ^= 0x40
    assert "bad-crc" in [fault.kind for fault in read_snapshot(bytes(data))[1]]


@each_of(lambda: range(len(snapshot_of())))
def test_a_cut_snapshot_gives_what_is_there(cut: int) -> None:
    producers, faults = read_snapshot(snapshot_of()[:cut])
    assert faults[-1].kind == "bad-entry"
    assert faults[-1].layer == "file"
    there = max(0, cut - 10)
    assert [each for each in producers if each == PRODUCER] == [PRODUCER] * (there // 46)
    assert len(producers) == -(-there // 46), "one that is cut is there as far as it goes"


def test_bytes_after_the_last_producer_are_told() -> None:
    faults = read_snapshot(snapshot_of() + b"xyz")[1]
    assert [(fault.kind, fault.offset) for fault in faults] == [("bad-crc", 2), ("trailing-bytes", 102)]


def test_an_unknown_version_is_not_guessed_at() -> None:
    producers, faults = read_snapshot(snapshot_of(version=9))
    assert producers == []
    assert [fault.kind for fault in faults] == ["unknown-version"]
