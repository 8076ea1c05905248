"""Runs of ordinary packets: what stands in them, and where they end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.capture.pcap import HEADER_BYTES, PcapReader
from kdissect.capture.pcapng import PcapngReader
from kdissect.capture.reader import Item
from kdissect.capture.runs import BlockRun, PacketRun, end_of_run
from kdissect.limits import DEFAULTS
from kdissect.model import Packet
from tests.capture.build import block, enhanced, interface, obsolete, option, pcap, record, section, simple

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


# -- pcapng


class OneByOne(PcapngReader):
    """Reads every block by itself."""

    def _add_run(self, buffer: bytes, at: int, items: list[Item | PacketRun]) -> int:
        return at


def block_runs(data: bytes) -> list[BlockRun]:
    found = PcapngReader(data).feed_in_runs(data)
    return [item for item in found if isinstance(item, BlockRun)]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("code", "value", "first_ns", "second_ns"),
    [
        (9, b"\x06", 7_000_000_000_001_000, 7_000_000_000_002_000),
        (9, b"\x09", 7_000_000_000_001, 7_000_000_000_002),
        (9, b"\x0c", 7_000_000_000, 7_000_000_000),
        (14, b"\1\0\0\0\0\0\0\0", 7_000_001_000_001_000, 7_000_001_000_002_000),
    ],
)
def test_a_run_of_blocks_has_its_packets_with_their_times_and_numbers(
    order: str, code: int, value: bytes, first_ns: int, second_ns: int
) -> None:
    clock = option(code, value if order == "<" else value[::-1], order)
    blocks = [
        enhanced(b"first", 7_000_000_000_001, wire_length=60, order=order),
        enhanced(b"2nd", 7_000_000_000_002, order=order),
    ]
    (run,) = block_runs(section(order) + interface(113, 0, clock, order) + b"".join(blocks))
    assert (run.first_ns, run.size) == (first_ns, sum(map(len, blocks)))
    assert list(run) == [Packet(1, first_ns, 113, b"first", 60), Packet(2, second_ns, 113, b"2nd", 3)]


def test_packets_of_runs_have_their_comments_and_options() -> None:
    said = option(1, b"seen") + option(2, b"\1\0\0\0") + option(0, b"")
    (run,) = block_runs(section() + interface() + enhanced(b"one", options=said) + enhanced(b"two"))
    assert [(each.comments, each.options) for each in run] == [
        (("seen",), ((2, b"\1\0\0\0"),)),
        ((), ()),
    ]


def test_a_run_has_packets_of_one_interface() -> None:
    numbers = [0, 0, 1, 0]
    blocks = [enhanced(b"data", number=number) for number in numbers]
    runs = block_runs(section() + interface(1) + interface(113) + b"".join(blocks))
    assert [[(each.interface, each.link_type) for each in run] for run in runs] == [
        [(0, 1), (0, 1)],
        [(1, 113)],
        [(0, 1)],
    ]


@pytest.mark.parametrize(
    "odd",
    [
        enhanced(b""),
        enhanced(b"data", captured=5),
        enhanced(b"data", captured=8),
        enhanced(b"data", captured=36),
        enhanced(bytes(101)),
        enhanced(b"data", number=1),
        enhanced(b"data", 1 << 63),
        enhanced(b"data", 9_223_372_036_854_776),
        enhanced(b"data", options=bytes.fromhex("01000900")),
        enhanced(b"data", options=bytes.fromhex("0100080001020304")),
        enhanced(b"data")[:-4] + bytes(4),
        enhanced(b"data")[:-8],
        enhanced(bytes(200))[:231] + enhanced(b"data"),
        enhanced(bytes(90), options=option(1, bytes(96))),
        enhanced(b"data").replace(b"\x24\0\0\0", b"\x25\0\0\0")[:-4] + b"\0\x25\0\0\0",
        block(0x0BAD, enhanced(b"data")[8:-4]),
        obsolete(b"data"),
        simple(b"data"),
    ],
)
def test_a_block_that_is_not_ordinary_is_read_as_one_without_runs(odd: bytes) -> None:
    whole = enhanced(b"whole", 9_223_372_036_854_775)
    limits = DEFAULTS._replace(packet_bytes=100, block_bytes=200)
    for order_of_blocks in ([whole, odd, whole], [odd, whole], [whole, odd]):
        data = section() + interface() + b"".join(order_of_blocks)
        found, expected = PcapngReader(data, limits), OneByOne(data, limits)
        assert found.feed(data) == expected.feed(data)
        assert found.close() == expected.close()


def test_a_copy_has_the_packets_that_are_left() -> None:
    clock = option(9, b"\x03") + option(14, b"\1\0\0\0\0\0\0\0")
    blocks = [enhanced(each, 1_000 + len(each)) for each in (b"one", b"second", b"third")]
    (of_blocks,) = block_runs(section() + interface(113, 0, clock) + b"".join(blocks))
    (of_records,) = runs(pcap([record(each) for each in (b"one", b"second", b"third")]))
    for run in (of_blocks, of_records):
        whole = list(run.copy())
        assert run.next()
        assert list(run.copy()) == whole[1:]
        assert list(run) == whole[1:]
        assert [each.data for each in whole] == [b"one", b"second", b"third"]


BLOCKS = st.one_of(
    st.builds(
        enhanced,
        st.binary(max_size=9),
        st.one_of(st.integers(0, 9), st.sampled_from([1 << 63, (1 << 63) - 1, 9_223_372_036_854_775])),
        st.sampled_from([0, 0, 0, 1, 2]),
        st.one_of(st.none(), st.just(60)),
        st.sampled_from(
            [
                *(b"", b"", option(1, b"said"), option(2, b"\0\0\0\0") + option(0, b"")),
                *(b"\1\0\x09\0", option(1, b"said")[:4] + bytes(4), b"\0\0\0\0\0\0\0\0"),
            ]
        ),
        captured=st.one_of(st.none(), st.integers(0, 40)),
    ),
    st.builds(simple, st.binary(max_size=9)),
    st.builds(obsolete, st.binary(max_size=9)),
    st.builds(lambda data: enhanced(data)[:-4] + bytes(4), st.binary(max_size=9)),
    st.builds(lambda data, cut: enhanced(data)[:cut], st.binary(max_size=9), st.integers(4, 40)),
    st.builds(interface, st.sampled_from([1, 113]), options=st.just(option(9, b"\x09"))),
    st.builds(section),
)


@given(st.lists(BLOCKS, max_size=20), st.integers(1, 90), st.sampled_from([0, 8, 1 << 20]))
def test_runs_of_blocks_and_blocks_one_by_one_tell_the_same(
    blocks: list[bytes], piece: int, limit: int
) -> None:
    data = section() + interface() + b"".join(blocks)
    limits = DEFAULTS._replace(packet_bytes=limit) if limit else DEFAULTS
    found, expected = PcapngReader(data, limits), OneByOne(data, limits)
    for at in range(0, len(data), piece):
        assert found.feed(data[at : at + piece]) == expected.feed(data[at : at + piece])
    assert found.close() == expected.close()
    assert found.interfaces == expected.interfaces
