"""Several files are one capture: order, merging, numbers, interfaces; and files that are none."""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
import threading
from pathlib import Path
from struct import pack

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from kdissect.capture.files import has_captures, in_folders, read_packets
from kdissect.limits import DEFAULTS
from kdissect.model import CaptureError, Fault, Packet, Secrets
from tests.capture.build import block, enhanced, interface, padded, pcap, record, section


def pcap_of(*times: int, name: str = "") -> bytes:
    return pcap([record(f"{name}{time}".encode(), time) for time in times])


def write(folder: Path, **files: bytes) -> list[str]:
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return [str(folder / name) for name in files]


def contents(paths: list[str]) -> list[bytes]:
    items = list(read_packets(paths))
    packets = [item for item in items if isinstance(item, Packet)]
    assert [packet.number for packet in packets] == list(range(1, len(packets) + 1))
    return [packet.data for packet in packets]


def test_reads_pcap_and_pcapng_by_content_not_name(tmp_path: Path) -> None:
    paths = write(tmp_path, **{"a.pcapng": pcap_of(1), "b.pcap": section() + interface() + enhanced(b"ng")})
    assert contents(paths[:1]) == [b"1"]
    assert contents(paths[1:]) == [b"ng"]


def test_reads_compressed_files(tmp_path: Path) -> None:
    data = pcap_of(1, 2)
    paths = write(tmp_path, a=gzip.compress(data), b=zstandard.compress(data))
    assert contents(paths[:1]) == contents(paths[1:]) == [b"1", b"2"]


def test_damaged_compression_gives_the_packets_before_and_a_fault(tmp_path: Path) -> None:
    data = pcap([record(os.urandom(1_000), time) for time in range(50)])
    packed = gzip.compress(data)
    items = list(read_packets(write(tmp_path, a=packed[: len(packed) // 2])))
    assert sum(isinstance(item, Packet) for item in items) in (23, 24, 25)
    assert [item.kind for item in items if isinstance(item, Fault)] == ["bad-compression", "cut-short"]


def test_files_are_ordered_by_their_first_packet(tmp_path: Path) -> None:
    paths = write(tmp_path, late=pcap_of(30, 40), early=pcap_of(10, 20))
    assert contents(paths) == [b"10", b"20", b"30", b"40"]


def test_files_that_overlap_are_merged_by_time_and_keep_their_own_order(tmp_path: Path) -> None:
    paths = write(tmp_path, a=pcap_of(10, 30, 20, 50, name="a"), b=pcap_of(15, 30, 40, name="b"))
    assert contents(paths) == [b"a10", b"b15", b"a30", b"a20", b"b30", b"b40", b"a50"]


@given(st.lists(st.lists(st.integers(0, 20), max_size=6).map(sorted), min_size=2, max_size=4))
def test_merging_sorted_files_sorts_all_stably(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[int]]
) -> None:
    folder = tmp_path_factory.mktemp("merge")
    paths = write(folder, **{str(i): pcap_of(*times, name=f"{i}:") for i, times in enumerate(files)})
    merged = [tuple(map(int, data.decode().split(":"))) for data in contents(paths)]
    assert [time for _, time in merged] == sorted(time for times in files for time in times)
    for i, times in enumerate(files):
        assert [time for file, time in merged if file == i] == times


def test_interfaces_are_indexed_over_the_whole_input(tmp_path: Path) -> None:
    ng = section() + interface(101) + interface(113) + enhanced(b"x", 1, 1)
    capture = read_packets(write(tmp_path, a=pcap_of(5), b=ng, c=ng))
    used = [item.interface for item in capture if isinstance(item, Packet)]
    assert sorted(used) == sorted(set(used))
    assert sorted(capture.interfaces[index].link_type for index in used) == [1, 113, 113]


def test_secrets_and_faults_stand_behind_the_packet_they_follow(tmp_path: Path) -> None:
    secrets = block(0x0A, pack("<II", 1, 4) + padded(b"keys"))
    ng = section() + interface() + secrets + enhanced(b"a", 2) + enhanced(b"b", 4, 9) + enhanced(b"c", 6)
    paths = write(tmp_path, a=pcap([record(b"p", 0, 1), record(b"q", 0, 5)]), b=ng)
    items = list(read_packets(paths))
    shown = [item.data if isinstance(item, Packet | Secrets) else item.kind for item in items]
    assert shown == [b"p", b"keys", b"a", "bad-interface", b"q", b"c"]
    (fault,) = (item for item in items if isinstance(item, Fault))
    assert fault.message.startswith(paths[1])


def test_a_fault_about_a_packet_has_its_number_in_the_whole_input(tmp_path: Path) -> None:
    paths = write(tmp_path, a=pcap_of(1, 2, 3), b=pcap([record(b"x", 2, 5, wire_length=0)]))
    items = list(read_packets(paths))
    assert [item.packet for item in items if isinstance(item, Fault)] == [3]


def test_one_file_among_several_that_is_no_capture_is_a_fault(tmp_path: Path) -> None:
    paths = write(tmp_path, a=pcap_of(1), empty=b"", text=b"hello, world", b=pcap_of(2))
    items = list(read_packets([*paths, str(tmp_path / "absent"), str(tmp_path)]))
    faults = [item for item in items if isinstance(item, Fault)]
    assert [item.kind for item in faults] == ["not-a-capture", "not-a-capture", "unreadable", "not-a-capture"]
    assert all("the other files are read" in item.message for item in faults)
    assert sum(isinstance(item, Packet) for item in items) == 2


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04 and so on", "is not a capture.*50 4b 03 04"),
        (pcap()[:10], "cut short in its header"),
        (section()[:10], "cut short in its header"),
        (gzip.compress(b"just text", mtime=0), "is not a capture"),
        (gzip.compress(pcap_of(1), mtime=0)[:12], "ends too early"),
    ],
)
def test_a_file_that_is_no_capture_is_one_clear_line(tmp_path: Path, data: bytes, words: str) -> None:
    (path,) = write(tmp_path, file=data)
    with pytest.raises(CaptureError, match=words) as raised:
        read_packets([path])
    assert str(raised.value).startswith(f"{path}: ")
    assert "\n" not in str(raised.value)


def test_a_folder_stands_for_the_files_in_it(tmp_path: Path) -> None:
    for name in ("b.pcap", "a.pcap", ".c.pcap", "_d.pcap"):
        (tmp_path / name).write_text("text")
    (tmp_path / "below").mkdir()
    named = ("-", str(tmp_path / "absent"), str(tmp_path))
    assert in_folders(named) == (*named[:2], str(tmp_path / "a.pcap"), str(tmp_path / "b.pcap"))
    with pytest.raises(CaptureError, match=r"below: no file is in this directory$"):
        in_folders([str(tmp_path / "below")])
    assert not has_captures(str(tmp_path))
    assert not has_captures(str(tmp_path / "below"))
    (tmp_path / "z.pcap").write_bytes(gzip.compress(b"perhaps"))
    assert has_captures(str(tmp_path))


def test_a_folder_of_folders_only_tells_what_to_give(tmp_path: Path) -> None:
    folder = tmp_path / "two brokers"
    (folder / "_states").mkdir(parents=True)
    with pytest.raises(CaptureError, match=r"no file is in this directory$"):
        in_folders([str(folder)])
    (folder / "1").mkdir()
    words = re.escape(f"directory, only folders, and these are not searched; give '{folder}/'*/")
    for name in (str(folder), f"{folder}/"):
        with pytest.raises(CaptureError, match=f"{words}$"):
            in_folders([name])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list everything")
def test_a_folder_that_cannot_be_listed_stands_for_itself(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(0o000)
    assert in_folders([str(tmp_path / "locked")]) == (str(tmp_path / "locked"),)
    with pytest.raises(CaptureError, match="the files in it cannot be listed"):
        read_packets([tmp_path / "locked"])


def test_absent_files_directories_and_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="No such file"):
        read_packets([tmp_path / "absent"])
    with pytest.raises(CaptureError, match="is a directory"):
        read_packets([tmp_path])
    with pytest.raises(CaptureError, match="no capture file"):
        read_packets([])
    with pytest.raises(CaptureError, match=r"absent.*; .*gone"):
        read_packets([tmp_path / "absent", tmp_path / "gone"])
    with pytest.raises(CaptureError, match="only once"):
        read_packets(["-", "-"])


def test_a_header_without_packets_is_an_empty_capture(tmp_path: Path) -> None:
    assert list(read_packets(write(tmp_path, a=pcap()))) == []
    assert contents(write(tmp_path, a=pcap(), b=pcap_of(1), c=section())) == [b"1"]


def test_standard_input_may_be_one_of_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(pcap_of(2, 4)))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert contents([*write(tmp_path, a=pcap_of(1, 3)), "-"]) == [b"1", b"2", b"3", b"4"]
    assert not stdin.buffer.closed


def test_a_pipe_gives_its_packets_as_they_come(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    seen = threading.Event()

    def send() -> None:
        with path.open("wb", buffering=0) as pipe:
            pipe.write(pcap_of(1))
            assert seen.wait(20)
            pipe.write(record(b"2"))

    sender = threading.Thread(target=send)
    sender.start()
    capture = read_packets([path])
    assert isinstance(next(capture), Packet)
    seen.set()
    assert [item.number for item in capture if isinstance(item, Packet)] == [2]
    sender.join()


def test_hundreds_of_files_are_not_open_at_once(tmp_path: Path) -> None:
    paths = write(tmp_path, **{f"{i:03}": pcap_of(i) for i in range(300)})
    capture = read_packets(paths)
    next(capture)
    descriptors = Path("/proc/self/fd")
    if descriptors.is_dir():
        assert len(list(descriptors.iterdir())) < 150
    assert sum(1 for _ in capture) == 299


def test_a_capture_can_be_closed_early(tmp_path: Path) -> None:
    capture = read_packets(write(tmp_path, a=pcap_of(1, 2)))
    next(capture)
    capture.close()
    with pytest.raises(ValueError, match="closed"):
        list(capture)


def test_a_packet_over_the_limit_is_not_taken_in(tmp_path: Path) -> None:
    paths = write(tmp_path, a=pcap([record(bytes(200)), record(b"small"), record(b"end")]))
    items = list(read_packets(paths, DEFAULTS._replace(packet_bytes=100)))
    assert [type(item) for item in items] == [Fault]


def test_of_small_files_only_the_beginning_is_read_twice(tmp_path: Path) -> None:
    """Files are put in order by their first packets, and read after that."""
    names = [f"{at:02}.pcap" for at in range(20)]
    for at, name in enumerate(names):
        (tmp_path / name).write_bytes(pcap([record(bytes(100), at * 1_000 + each) for each in range(500)]))
    read = 0

    class Counted(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            nonlocal read
            data = super().read1(size)
            read += len(data)
            return data

    paths = [str(tmp_path / name) for name in names]
    items = list(read_packets(paths, opener=lambda path: Counted(Path(path).read_bytes())))
    assert len(items) == 20 * 500
    assert read < 1.05 * sum(os.path.getsize(path) for path in paths)
