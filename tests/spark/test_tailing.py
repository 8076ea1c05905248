"""Files that grow: each batch reads on where the last one stopped, and finds what one reading finds."""

from __future__ import annotations

import gzip
import pickle
from io import BufferedIOBase
from pathlib import Path
from random import Random

import pytest

from kdissect.capture.compressed import PIECE_BYTES
from kdissect.capture.files import read_packets
from kdissect.capture.reader import Item
from kdissect.limits import DEFAULTS
from kdissect.model import Fault
from kdissect.spark import tailing
from kdissect.spark.spool import FileSpan
from kdissect.spark.storage import open_file
from kdissect.spark.tailing import END_BYTES, Bookmark, SpanReading
from tests.amount import some
from tests.spark.same import CAPTURES

PCAP, PCAPNG = CAPTURES / "broker-0.9.pcap", CAPTURES / "basic-kafka43.pcapng"


def in_batches(path: Path, sizes: list[int]) -> list[Item]:
    """The items that batches find, each of which reads up to one of these sizes."""
    bookmark: Bookmark | None = None
    items: list[Item] = []
    for size in sizes:
        is_final = size == path.stat().st_size
        reading = SpanReading(FileSpan("", str(path), size, is_final, 1, False), DEFAULTS, bookmark)
        new = list(reading.items())
        items = items + new if reading.goes_on else items + new[len(items) :]
        bookmark = pickle.loads(pickle.dumps(reading.bookmark))
    return items


def whole(path: Path) -> list[Item]:
    """What one reading finds, faults as a stream names them."""
    return [
        item._replace(message=f"{path}: {item.message}") if isinstance(item, Fault) else item
        for item in read_packets([path])
    ]


def told(items: list[Item]) -> list[str]:
    return list(map(repr, items))


@pytest.mark.parametrize(
    "path", some(sorted(CAPTURES.glob("*.pcap*")), 4, PCAP, PCAPNG), ids=lambda path: path.stem
)
def test_batches_find_what_one_reading_finds(path: Path) -> None:
    size = path.stat().st_size
    for seed in range(5):
        chance = Random(seed)
        sizes = sorted({*(chance.randrange(1, size) for _ in range(9)), size})
        assert told(in_batches(path, sizes)) == told(whole(path))


@pytest.mark.parametrize("source", [PCAP, PCAPNG], ids=lambda path: path.suffix)
def test_they_do_so_where_a_file_is_damaged(tmp_path: Path, source: Path) -> None:
    chance = Random(1)
    for number in range(20):
        data = bytearray(source.read_bytes()[:40_000])
        for at in chance.sample(range(200, len(data)), 3):
            data[at : at + 8] = chance.randbytes(8)
        path = tmp_path / f"{number}{source.suffix}"
        path.write_bytes(data)
        sizes = sorted({*chance.sample(range(1, len(data)), 5), len(data)})
        assert told(in_batches(path, sizes)) == told(whole(path))


@pytest.mark.parametrize("minor", [2, 3])
def test_they_do_so_of_pcap_files_of_older_versions(tmp_path: Path, minor: int) -> None:
    path = tmp_path / "older.pcap"
    data = bytearray(PCAP.read_bytes())
    data[6:8] = minor.to_bytes(2, "little")
    path.write_bytes(data)
    assert told(in_batches(path, [30, 5_000, len(data)])) == told(whole(path))


@pytest.mark.parametrize("path", [PCAP, PCAPNG], ids=lambda path: path.suffix)
def test_of_what_was_read_only_the_end_is_looked_at_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = []

    def opened(name: str, at: int = 0) -> BufferedIOBase:
        starts.append(at)
        return open_file(name, at)

    monkeypatch.setattr(tailing, "open_file", opened)
    size = path.stat().st_size
    in_batches(path, [size // 3, size // 2, size])
    ends = [(place - END_BYTES, place) for place in (size // 3, size // 2)]
    assert starts == [start for pair in ends for start in pair]


@pytest.mark.parametrize("length", [300, 40_000])
@pytest.mark.parametrize("has_more", [True, False], ids=["longer", "as long"])
def test_a_file_that_was_written_anew_is_read_from_its_beginning(
    tmp_path: Path, length: int, has_more: bool
) -> None:
    """Its first packet may have the same time. How it was read before, at once or in parts, is no matter."""
    path = tmp_path / "a.pcap"
    data = PCAP.read_bytes()
    path.write_bytes(data)
    bookmark = None
    for size in (length - 100, length):
        span = FileSpan("", str(path), size, False, 1, False)
        first = SpanReading(span, DEFAULTS, bookmark)
        list(first.items())
        bookmark = first.bookmark
        assert bookmark is not None
    same = span._replace(size=len(data), is_final=True)
    assert SpanReading(same, DEFAULTS, bookmark).goes_on
    changed = bytearray(data if has_more else data[:length])
    changed[length - 1] ^= 1
    path.write_bytes(changed)
    again = SpanReading(same._replace(size=len(changed)), DEFAULTS, bookmark)
    assert not again.goes_on
    assert told(list(again.items())) == told(whole(path))


def test_a_reader_that_stopped_goes_on_where_the_file_is_the_same(tmp_path: Path) -> None:
    """It stopped in the first of several pieces; nothing behind that is read, now or later."""
    path = tmp_path / "a.pcap"
    path.write_bytes(PCAP.read_bytes()[:5_000] + b"\xff" * 3 * PIECE_BYTES)
    span = FileSpan("", str(path), path.stat().st_size, False, 1, False)
    reading = SpanReading(span, DEFAULTS, None)
    list(reading.items())
    assert reading.bookmark is not None
    assert reading.bookmark.reader.stopped
    assert reading.bookmark.reader.fed_bytes < span.size
    again = SpanReading(span, DEFAULTS, reading.bookmark)
    assert again.goes_on
    assert list(again.items()) == []


def test_a_compressed_file_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap.gz"
    path.write_bytes(gzip.compress(PCAP.read_bytes()))
    size = path.stat().st_size
    assert told(in_batches(path, [size // 2, size])) == told(whole(path))


def test_what_would_be_wrong_at_the_end_is_told_and_changes_nothing() -> None:
    size = PCAP.stat().st_size
    first = SpanReading(FileSpan("", str(PCAP), size - 7, False, 1, True), DEFAULTS, None)
    items = list(first.items())
    for _ in range(2):
        (fault,) = first.items_at_end(len(items))
        assert isinstance(fault, Fault)
        assert "ends" in fault.message
    rest = SpanReading(FileSpan("", str(PCAP), size, True, 1, False), DEFAULTS, first.bookmark)
    assert told([*items, *rest.items()]) == told(whole(PCAP))
