"""Batches of a stream without Spark: what files that wait, grow late or come again under a name bring."""

from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from pathlib import Path

import pytest

from kdissect.dissect import Event
from kdissect.model import Fault
from kdissect.spark import spool, storage, tailing
from kdissect.spark.micro_batch import events_at_end, events_of_batch
from kdissect.spark.progress import Note
from kdissect.spark.settings import TableSettings
from kdissect.spark.spool import Position, SpoolFolder, of_offset, spans_between, to_offset
from kdissect.spark.states import States
from kdissect.spark.tailing import END_BYTES
from tests.spark.cuts import packets_of, pcap
from tests.spark.same import CAPTURES, event_rows, read_rows

PACKETS = packets_of(CAPTURES / "basic-kafka43.pcapng")
THIRD = len(PACKETS) // 3
FIRST, SECOND, THIRD_FILE = (pcap(PACKETS[at : at + THIRD]) for at in (0, THIRD, 2 * THIRD))


class Stream:
    """A folder, and what its batches bring."""

    def __init__(self, folder: Path, settle_seconds: float) -> None:
        self.folder = folder / "in"
        self.folder.mkdir()
        self._spool = SpoolFolder(str(self.folder), settle_seconds=settle_seconds)
        self._states = States(str(folder / "state"))
        self._states.prepare()
        self._position: Position = {}
        self._batch = 0
        self.events: list[Event] = []

    def put(self, name: str, data: bytes) -> None:
        (self.folder / name).write_bytes(data)

    def run(self) -> list[Fault]:
        """A batch; the faults of files that it brings."""
        end = of_offset(to_offset(self._spool.next(self._position)))
        spans = spans_between(self._position, end, None)
        new: list[Event] = []
        if spans:
            note = Note(None, "")
            new = list(events_of_batch(self._states, self._batch, "", spans, TableSettings(), note))
            self._batch += 1
        self._position = end
        self.events += new
        return [event for event in new if isinstance(event, Fault)]

    def close(self) -> list[Fault]:
        """Nothing more comes."""
        new = list(events_at_end(self._states, self._batch, "", TableSettings()))
        self.events += new
        return [event for event in new if isinstance(event, Fault)]

    def exchanges(self) -> list[str]:
        return event_rows(self.events, "exchanges")

    @property
    def bytes_read(self) -> int:
        return self._states.bytes_read()

    @property
    def packets(self) -> int:
        """How many were read of all files."""
        carried = self._states.load("", self._batch)
        assert carried is not None
        return carried.packets

    def known(self) -> set[str]:
        """The names of the files of which something is kept."""
        carried = self._states.load("", self._batch)
        assert carried is not None
        kept = (carried.items, carried.sizes, carried.firsts, carried.final, self._position)
        return {os.path.basename(path) for each in kept for path in each}


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """One that takes every file for settled."""
    return Stream(tmp_path, 0)


@pytest.mark.parametrize(
    ("begun", "words"),
    [
        (b"", "is empty"),
        (FIRST[:10], ""),
        (FIRST[:30], "ends"),
        (FIRST[:-7], "ends"),
        (b"something else", "is not a capture"),
    ],
    ids=["empty", "half a header", "half a record", "half a last record", "something else"],
)
def test_what_waits_for_long_is_told_once_and_read_when_it_grows(
    stream: Stream, begun: bytes, words: str
) -> None:
    stream.put("a.pcap", begun)
    (fault,) = stream.run()
    assert (fault.layer, fault.kind) == ("file", "waiting-file")
    assert words in fault.message
    assert "a.pcap" in fault.message
    assert stream.run() == []
    if begun != b"something else":
        stream.put("a.pcap", FIRST)
        assert stream.run() == []
        assert stream.close() == []
        assert stream.exchanges() == read_rows("exchanges", [stream.folder / "a.pcap"])


def test_what_is_whole_is_not_told(stream: Stream) -> None:
    stream.put("a.pcap", FIRST)
    stream.put("b.pcap", FIRST[:24])  # a capture in which nothing was sent yet
    assert stream.run() == []
    assert stream.close() == []


def test_before_the_settle_time_nothing_is_told(tmp_path: Path) -> None:
    stream = Stream(tmp_path, 60)
    stream.put("a.pcap", b"")
    assert stream.run() == []
    os.utime(stream.folder / "a.pcap", (1, 1))
    assert [fault.kind for fault in stream.run()] == ["waiting-file"]


def test_what_waits_holds_up_no_other(stream: Stream) -> None:
    stream.put("a.pcap", b"")
    stream.put("b.pcap", FIRST)
    stream.put("c.pcap", SECOND)
    assert [fault.kind for fault in stream.run()] == ["waiting-file"]
    assert [fault.kind for fault in stream.close()] == ["not-a-capture"]  # as read has it
    files = [stream.folder / name for name in ("b.pcap", "c.pcap")]
    assert stream.exchanges() == read_rows("exchanges", files)


@pytest.mark.parametrize("settle_seconds", [0, 60])
def test_the_names_of_a_ring_come_again(tmp_path: Path, settle_seconds: float) -> None:
    stream = Stream(tmp_path, settle_seconds)
    for at, data in enumerate((FIRST, SECOND, THIRD_FILE)):
        if at == 2:
            stream.put("0.pcap", data[:24])  # opened anew
            assert stream.run() == []
        stream.put(f"{at % 2}.pcap", data)
        assert stream.run() == []
    assert stream.close() == []
    (tmp_path / "whole.pcap").write_bytes(pcap(PACKETS[: 3 * THIRD]))
    assert stream.exchanges() == read_rows("exchanges", [tmp_path / "whole.pcap"])
    assert stream.bytes_read == len(SECOND) + len(THIRD_FILE)


def test_a_file_of_a_ring_that_is_as_long_as_before_is_read(tmp_path: Path) -> None:
    stream = Stream(tmp_path, 60)
    later = pcap([each._replace(timestamp_ns=each.timestamp_ns + 10**12) for each in PACKETS[:THIRD]])
    for name, data in (("0.pcap", FIRST), ("1.pcap", SECOND), ("0.pcap", later)):
        stream.put(name, data)
        stream.run()
    assert len(later) == len(FIRST)
    stream.close()
    assert stream.packets == 3 * THIRD


def test_what_grows_late_is_told(stream: Stream) -> None:
    cut = len(pcap(PACKETS[: THIRD - 5]))
    stream.put("a.pcap", FIRST[:cut])
    stream.put("b.pcap", SECOND)
    assert stream.run() == []
    stream.put("a.pcap", FIRST)
    (fault,) = stream.run()
    assert (fault.kind, fault.offset) == ("late-file", cut)
    assert f"grew by {len(FIRST) - cut} bytes" in fault.message


@pytest.mark.parametrize("packs", [bytes, gzip.compress], ids=["plain", "compressed"])
@pytest.mark.parametrize("anew", [True, False], ids=["another file", "in place"])
def test_what_was_replaced_is_told(tmp_path: Path, packs: Callable[[bytes], bytes], anew: bool) -> None:
    """Its first packet has the same time, and in place of the file, it ends with the same bytes."""
    stream = Stream(tmp_path, 60)
    stream.put("a.pcap", packs(FIRST))
    assert stream.run() == []
    changed = bytearray(pcap(PACKETS[: 2 * THIRD]))
    place = len(FIRST) - (END_BYTES + 100 if anew else 1)
    changed[place] ^= 1
    if anew:
        os.rename(stream.folder / "a.pcap", tmp_path / "old")
    stream.put("a.pcap", packs(bytes(changed)))
    (fault,) = stream.run()
    assert (fault.layer, fault.kind) == ("file", "rewritten-file")
    words = f"was replaced after {len(packs(FIRST)):,} bytes of it were read; kdissect left out as many"
    assert words in fault.message
    assert stream.packets == 2 * THIRD
    assert stream.run() == []


def test_a_copy_that_is_longer_is_the_same_file(tmp_path: Path) -> None:
    """So does rsync: it makes a file beside the old one."""
    stream = Stream(tmp_path, 60)
    stream.put("a.pcap", FIRST)
    assert stream.run() == []
    stream.put(".a.pcap.x", pcap(PACKETS[: 2 * THIRD]))
    os.rename(stream.folder / ".a.pcap.x", stream.folder / "a.pcap")
    assert stream.run() == []
    assert stream.close() == []
    assert stream.exchanges() == read_rows("exchanges", [stream.folder / "a.pcap"])


@pytest.mark.parametrize("is_final", [True, False])
def test_what_became_shorter_is_told(tmp_path: Path, is_final: bool) -> None:
    stream = Stream(tmp_path, 60)
    stream.put("a.pcap", FIRST)
    if is_final:
        stream.put("b.pcap", SECOND)
    assert stream.run() == []
    stream.put("a.pcap", FIRST[:9_000])
    (fault,) = stream.run()
    assert fault.kind == "rewritten-file"
    assert f"was replaced after {len(FIRST):,} bytes of it were read" in fault.message
    assert stream.run() == []


def test_a_file_that_overlaps_is_told(stream: Stream) -> None:
    def late() -> Iterator[str]:
        return (fault.message for fault in stream.run() if fault.kind == "late-file")

    stream.put("a.pcap", pcap(PACKETS[::2]))
    assert list(late()) == []
    stream.put("b.pcap", pcap(PACKETS[1::2]))
    (words,) = late()
    assert "b.pcap: its first packet is from 2" in words


@pytest.mark.parametrize("read_before", ["nothing", "half", "all", "all, and a later file"])
def test_what_is_compressed_when_it_is_full_is_read_once(stream: Stream, read_before: str) -> None:
    """As ``tcpdump -z gzip`` does it."""
    plain, packed = stream.folder / "0.pcap", gzip.compress(FIRST)
    if read_before != "nothing":
        stream.put("0.pcap", FIRST[: len(FIRST) // 2] if read_before == "half" else FIRST)
        stream.run()
    stream.put("0.pcap", FIRST)
    if read_before == "all, and a later file":
        stream.put("1.pcap", SECOND)
        assert stream.run() == []
    stream.put("0.pcap.gz", packed[: len(packed) // 2])
    stream.put("1.pcap", SECOND)
    assert stream.run() == []
    stream.put("0.pcap.gz", packed)
    plain.unlink()
    assert stream.run() == []
    stream.put("2.pcap", THIRD_FILE)
    assert stream.run() == []
    assert stream.close() == []
    assert stream.packets == 3 * THIRD
    assert stream.exchanges() == read_rows("exchanges", sorted(stream.folder.iterdir()))
    assert stream.known() == {"0.pcap.gz", "1.pcap", "2.pcap"}


def test_what_is_unpacked_is_read_once(stream: Stream) -> None:
    stream.put("0.pcap.gz", gzip.compress(FIRST))
    assert stream.run() == []
    stream.put("0.pcap", FIRST)
    assert stream.run() == []
    (stream.folder / "0.pcap.gz").unlink()
    stream.put("1.pcap", SECOND)
    assert stream.run() == []
    assert stream.packets == 2 * THIRD


def test_another_file_under_a_compressed_name_is_read(stream: Stream) -> None:
    stream.put("0.pcap", FIRST)
    stream.put("0.pcap.gz", gzip.compress(SECOND))
    assert stream.run() == []
    assert stream.packets == 2 * THIRD


def test_files_that_are_gone_are_forgotten(stream: Stream) -> None:
    for at, data in enumerate((FIRST, SECOND, THIRD_FILE)):
        stream.put(f"{at}.pcap", data)
        assert stream.run() == []
        (stream.folder / f"{at}.pcap").unlink()
    assert stream.packets == 3 * THIRD
    assert stream.known() == {"2.pcap"}
    assert stream.bytes_read == len(THIRD_FILE)


def test_a_file_that_goes_while_it_is_written_to_is_told(tmp_path: Path) -> None:
    stream = Stream(tmp_path, 60)
    stream.put("0.pcap", FIRST)
    assert stream.run() == []
    (stream.folder / "0.pcap").unlink()
    stream.put("1.pcap", SECOND)
    (fault,) = stream.run()
    assert (fault.kind, fault.offset) == ("unreadable", len(FIRST))
    assert "0.pcap: is gone" in fault.message


def test_a_file_that_cannot_be_read_for_a_while_goes_on_where_it_was(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(path: str, at: int = 0) -> BufferedIOBase:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    whole = pcap(PACKETS)
    stream.put("a.pcap", whole[: len(whole) // 2])
    stream.run()
    stream.put("a.pcap", whole)
    with monkeypatch.context() as meanwhile:
        for module in (storage, spool, tailing):
            meanwhile.setattr(module, "open_file", refusing)
        (fault,) = stream.run()
        assert (fault.kind, fault.message) == (
            "unreadable",
            f"{stream.folder}/a.pcap: cannot be read: Permission denied; the other files are read",
        )
        assert stream.run() == []
    assert stream.run() == []
    assert stream.close() == []
    assert stream.exchanges() == read_rows("exchanges", [stream.folder / "a.pcap"])
