"""Runs of ordinary packets: what stands in them, and where they end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.capture.pcap import HEADER_BYTES, PcapReader
from kdissect.capture.runs import PacketRun, end_of_run
from kdissect.model import Packet
from tests.capture.build import pcap, record

SECOND = 1_000_000_000
START = 1_700_000_000


def runs(data: bytes) -> list[PacketRun]:
    found = PcapReader(data).feed_in_runs(data[HEADER_BYTES:])
    return [item for item in found if isinstance(item, PacketRun)]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "unit"), [(0xA1B2C3D4, 1_000), (0xA1B23C4D, 1)])
def test_a_run_has_its_packets_with_their_times_and_numbers(order: str, magic: int, unit: int) -> None:
    records = [record(b"one", START, 5, 60, order=order), record(b"two", START + 1, 7, order=order)]
    (run,) = runs(pcap(records, order, magic, 113))
    assert (run.first_ns, run.size) == (START * SECOND + 5 * unit, sum(map(len, records)))
    assert list(run) == [
        Packet(1, START * SECOND + 5 * unit, 113, b"one", 60),
        Packet(2, (START + 1) * SECOND + 7 * unit, 113, b"two", 3),
    ]
    assert list(run) == []


def test_where_each_packet_stands_is_told_without_an_object() -> None:
    (run,) = runs(pcap([record(b"first"), record(b"second")]))
    found = []
    while run.next():
        found.append((run.number, run.buffer[run.data_start : run.data_end], run.at == run.stop))
    assert found == [(1, b"first", False), (2, b"second", True)]


def test_a_record_that_is_not_whole_or_has_no_bytes_ends_a_run() -> None:
    whole, cut, empty = record(b"whole"), record(b"cut")[:-1], record(b"")
    form = (True, 16, 1_000)
    assert end_of_run(whole + cut, 0, form, 100) == (len(whole), 1)
    assert end_of_run(whole + empty + whole, 0, form, 100) == (len(whole), 1)
    assert end_of_run(whole + record(bytes(101)), 0, form, 100) == (len(whole), 1)
    assert end_of_run(whole + record(b"longer than on the wire", wire_length=3), 0, form, 100)[1] == 1


@given(st.lists(st.binary(max_size=20), max_size=20), st.integers(1, 60))
def test_runs_and_packets_tell_the_same(contents: list[bytes], piece: int) -> None:
    data = pcap([record(each, START + at, at) for at, each in enumerate(contents)])
    one, other = PcapReader(data), PcapReader(data)
    by_runs: list[object] = []
    by_packets: list[object] = []
    for at in range(HEADER_BYTES, len(data), piece):
        for item in one.feed_in_runs(data[at : at + piece]):
            if isinstance(item, PacketRun):
                by_runs += item
            else:
                by_runs.append(item)
        by_packets += other.feed(data[at : at + piece])
    assert [*by_runs, *one.close()] == [*by_packets, *other.close()]
