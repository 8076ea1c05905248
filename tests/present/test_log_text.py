"""What a log directory holds, as lines."""

from __future__ import annotations

import pytest

from kdissect.faults import fault
from kdissect.logdir.events import Fact, FileFault, IndexEntry, LogFile, SegmentBatch
from kdissect.present.log_text import log_lines
from kdissect.record.sets import read_record_set
from kdissect.record.write import write_batch
from tests.record.build import RECORDS

FILE = LogFile("orders-0/00000000000000000000.log", "segment", 1_234, "orders", 0)


def batch_line(data: bytes, position: int = 0) -> str:
    (line,) = log_lines(SegmentBatch(FILE, position, read_record_set(data).batches[0]))
    return line


def test_a_file_says_what_it_is_whose_and_how_large() -> None:
    assert list(log_lines(FILE)) == [f"{FILE.path}: segment, 1,234 bytes, topic orders partition 0"]
    assert list(log_lines(FILE._replace(state="stray", size=1))) == [
        f"{FILE.path}: segment, 1 byte, topic orders partition 0, stray"
    ]
    assert list(log_lines(LogFile("x", "unknown", 0))) == ["x: no file of a log directory, left out"]


def test_names_of_files_and_what_small_ones_say_reach_no_terminal_as_they_are() -> None:
    (line,) = log_lines(FILE._replace(path="a\x1b[2J/b", topic="t\n"))
    assert line.isprintable()
    (line,) = log_lines(Fact(FILE, {"cluster.id": "\x1b[2J\u202e"}))
    assert line.isprintable()


def test_a_batch_says_its_offsets_and_what_is_wrong_with_it() -> None:
    whole = write_batch(RECORDS)
    said = "          17  offsets 100 to 300, 4 records, magic 2, none, CreateTime 2023-11-14T22:15:00.000Z"
    assert batch_line(whole, 17) == said
    assert "wrong" not in batch_line(whole)
    assert batch_line(whole[:-1] + bytes((whole[-1] ^ 1,))).endswith("CRC wrong")
    assert batch_line(whole[:-5]).endswith("cut")


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        (0, "1970-01-01T00:00:00.000Z"),
        ((1 << 63) - 1, "292278994-08-17T07:12:55.807Z"),
    ],
)
def test_times_are_told_in_full_to_the_millisecond(timestamp: int, text: str) -> None:
    record = RECORDS[0]._replace(timestamp=timestamp)
    assert f"CreateTime {text}" in batch_line(write_batch([record]))


def test_entries_and_faults_stand_below_their_file() -> None:
    entry = IndexEntry(FILE, "offset", {"offset": 12, "position": 345})
    assert list(log_lines(entry)) == ["  offset: offset 12, position 345"]
    wrong = FileFault(FILE, fault("torn-tail", "7 bytes are left", offset=99))
    assert list(log_lines(wrong)) == ["  fault: torn-tail (file) at 99: 7 bytes are left"]
