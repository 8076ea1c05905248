"""Paths: what is read of them, in which order, and what cannot be."""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path

import pytest

from kdissect.logdir.events import Event, Fact, FileFault, IndexEntry, LogFile, SegmentBatch, SnapshotEntry
from kdissect.logdir.files import read_logs
from kdissect.model import CaptureError
from tests.logdir.build import batch_of
from tests.logdir.dump import internal_record

FOLDER = "broker-4.3.1/kafka-python-3-2"
SEGMENT = "00000000000000000000.log"


def read(*paths: Path | str) -> list[Event]:
    """All events, records read, faults of the records among them."""
    found = []
    for event in read_logs(map(str, paths)):
        if isinstance(event, SegmentBatch):
            event.records()
        found.append(event)
    return found


def faults(events: list[Event]) -> list[tuple[str, str, int | None]]:
    """File, kind and position of what is wrong."""
    return [
        (Path(event.file.path).name, event.fault.kind, event.fault.offset)
        for event in events
        if isinstance(event, FileFault)
    ]


@pytest.fixture
def folder(logdirs: Path, tmp_path: Path) -> Path:
    """A partition's folder to write into."""
    copy = tmp_path / "kafka-python-3-2"
    shutil.copytree(logdirs / FOLDER, copy)
    return copy


def test_everything_in_real_directories_is_sound_and_read(logdirs: Path) -> None:
    events = read(logdirs)
    assert faults(events) == []
    counts = {
        kind: sum(isinstance(event, kind) for event in events)
        for kind in (SegmentBatch, IndexEntry, SnapshotEntry, Fact)
    }
    assert counts == {SegmentBatch: 7_112, IndexEntry: 406, SnapshotEntry: 67, Fact: 644}
    kinds = {event.kind for event in events if isinstance(event, LogFile)}
    assert kinds == {
        "segment",
        "metadata-snapshot",
        "offset-index",
        "time-index",
        "transaction-index",
        "producer-snapshot",
        "offset-checkpoint",
        "leader-epoch-checkpoint",
        "properties",
        "unknown",
    }


def test_files_come_by_name_and_folders_by_topic_and_number(tmp_path: Path) -> None:
    for name in ("t-10", "t-9", "s-1"):
        (tmp_path / name).mkdir()
        for file in (
            "00000000000000000010.log",
            "00000000000000000000.log",
            "00000000000000000000.timeindex",
        ):
            (tmp_path / name / file).touch()
    (tmp_path / "meta.properties").touch()
    files = [event for event in read(tmp_path) if isinstance(event, LogFile)]
    assert [os.path.relpath(file.path, tmp_path) for file in files] == [
        "meta.properties",
        *(
            f"{name}/{file}"
            for name in ("s-1", "t-9", "t-10")
            for file in (
                "00000000000000000000.log",
                "00000000000000000000.timeindex",
                "00000000000000000010.log",
            )
        ),
    ]
    assert [(file.topic, file.partition) for file in files[1::3]] == [("s", 1), ("t", 9), ("t", 10)]


def test_a_single_file_has_its_topic_from_its_folder(logdirs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(logdirs / FOLDER)
    file = read(SEGMENT)[0]
    assert isinstance(file, LogFile)
    assert (file.path, file.topic, file.partition, file.base_offset) == (SEGMENT, "kafka-python-3", 2, 0)


def test_a_folder_that_is_being_deleted_says_so(logdirs: Path) -> None:
    states = {event.state for event in read(logdirs / "cluster43-node2") if isinstance(event, LogFile)}
    assert states == {None, "delete"}


def test_faults_of_records_follow_their_batch(folder: Path) -> None:
    path = folder / SEGMENT
    data = bytearray(path.read_bytes())
    data[900 + 70] ^= 0xFF
    path.write_bytes(data)
    events = read(path)
    at = next(
        i for i, event in enumerate(events) if isinstance(event, SegmentBatch) and event.position == 900
    )
    fault = events[at + 1]
    assert isinstance(fault, FileFault)
    assert (fault.fault.kind, fault.fault.offset) == ("bad-crc", 900)


def test_a_torn_segment_makes_the_indexes_entries_for_what_is_gone_wrong(folder: Path) -> None:
    path = folder / SEGMENT
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    found = faults(read(folder))
    torn = len(data) - 78
    assert (SEGMENT, "torn-tail", torn) in found
    path.write_bytes(data[:4_150])
    found = faults(read(folder))
    assert ("00000000000000000000.index", "index-mismatch", 0) in found
    assert ("00000000000000000000.timeindex", "index-mismatch", 0) in found
    assert ("00000000000000000000.timeindex", "index-mismatch", 12) in found
    assert ("00000000000000000000.txnindex", "index-mismatch", 0) in found


@pytest.mark.parametrize("suffix", ["index", "timeindex", "txnindex"])
def test_every_flipped_byte_of_an_index_is_told(folder: Path, suffix: str) -> None:
    path = folder / f"00000000000000000000.{suffix}"
    whole = path.read_bytes()
    # Another offset of the same batch does as well in a lookup; a transaction's first offset and last
    # stable offset may have any lower value.
    free = {
        "index": {(3, 0x01)},
        "timeindex": {(11, 0x01)},
        "txnindex": {(at, flip) for at in (*range(10, 18), *range(26, 34)) for flip in (0x01, 0x80)},
    }[suffix]
    for at in range(len(whole)):
        for flip in (0x01, 0x80):
            data = bytearray(whole)
            data[at] ^= flip
            path.write_bytes(data)
            if (at, flip) not in free:
                assert faults(read(path)), (at, flip)


def test_a_changed_snapshot_is_told(folder: Path) -> None:
    path = folder / "00000000000000000109.snapshot"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert faults(read(folder)) == [(path.name, "bad-crc", 2)]


def test_preallocated_space_is_a_fact_and_no_fault(folder: Path) -> None:
    path = folder / "00000000000000000000.index"
    path.write_bytes(path.read_bytes() + bytes(800))
    events = read(path)
    assert faults(events) == []
    assert [event.values for event in events if isinstance(event, Fact)] == [{"preallocated": 800}]


def test_an_index_without_its_segment_is_read(folder: Path) -> None:
    (folder / SEGMENT).unlink()
    events = read(folder / "00000000000000000000.index")
    assert faults(events) == []
    assert [event.values for event in events if isinstance(event, IndexEntry)] == [
        {"offset": 79, "position": 4_150}
    ]


def test_an_index_whose_name_lacks_the_offset_says_so(tmp_path: Path) -> None:
    path = tmp_path / "copy.index"
    path.write_bytes(struct.pack(">ii", 5, 100))
    assert faults(read(path)) == [("copy.index", "bad-entry", 0)]


def test_records_of_kafkas_own_are_decoded_and_others_are_not(logdirs: Path) -> None:
    names: dict[str | None, set[str | None]] = {}
    for event in read(logdirs / "broker-3.9.2"):
        if isinstance(event, SegmentBatch):
            for record in event.records():
                found = internal_record(event, record)
                if found is not None:
                    assert found.faults == ()
                    names.setdefault(found.family, set()).add(found.name)
    assert set(names) == {"group", "transaction", "metadata", "control"}
    assert names["transaction"] == {"TransactionLog"}
    assert names["control"] == {"EndTxnMarker", "LeaderChangeMessage"}


def test_what_is_nothing_of_a_log_directory_is_refused_after_the_rest(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    segment = tmp_path / "t-0" / SEGMENT
    segment.write_bytes(batch_of(0))
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").touch()
    os.mkfifo(tmp_path / "pipe.log")
    paths = [tmp_path / name for name in ("gone", "empty", "notes.txt", "pipe.log")]
    seen: list[Event] = []
    with pytest.raises(CaptureError) as raised:
        seen.extend(read_logs([*map(str, paths), str(segment)]))
    assert [type(event) for event in seen] == [LogFile, SegmentBatch]
    text = str(raised.value)
    assert "\n" not in text
    for path in paths:
        assert f"{path}: " in text


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(CaptureError):
        read("")


def test_files_of_others_are_named_beside_log_files_only(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    for path in ("server.log", "t-0/server.log", f"t-0/{SEGMENT}"):
        (tmp_path / path).touch()
    files = [event for event in read(tmp_path) if isinstance(event, LogFile)]
    assert [(os.path.relpath(file.path, tmp_path), file.kind) for file in files] == [
        (f"t-0/{SEGMENT}", "segment"),
        ("t-0/server.log", "unknown"),
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="everything is readable for root")
def test_a_file_that_cannot_be_read_costs_only_itself(folder: Path) -> None:
    (folder / SEGMENT).chmod(0)
    assert (SEGMENT, "unreadable", 0) in faults(read(folder))


def test_a_link_to_nowhere_costs_only_itself(folder: Path) -> None:
    (folder / "00000000000000000500.log").symlink_to("gone")
    assert faults(read(folder)) == [("00000000000000000500.log", "unreadable", 0)]
