"""What is written reads back the same."""

from __future__ import annotations

import io
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.capture.pcapng import PcapngReader
from kdissect.capture.reader import Interface, Item
from kdissect.capture.writer import PcapngWriter
from kdissect.model import Packet, Secrets
from tests.capture.build import block, enhanced, interface, option, padded, section


def written(items: list[Packet | Secrets], interfaces: list[Interface] | None = None) -> bytes:
    file = io.BytesIO()
    writer = PcapngWriter(file, interfaces or [])
    for item in items:
        writer.write(item)
    return file.getvalue()


def read(data: bytes) -> tuple[list[Item], list[Interface]]:
    reader = PcapngReader(data)
    return reader.feed(data) + reader.close(), reader.interfaces


packets = st.builds(
    lambda time, link_type, data, wire, comments: Packet(1, time, link_type, data, wire, 0, comments),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.sampled_from([0, 1, 101, 113, 276]),
    st.binary(max_size=50),
    st.integers(0, 0xFFFFFFFF),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), max_size=3).map(tuple),
)


@given(st.lists(packets, max_size=9))
def test_packets_come_back_equal_with_all_they_have(given_packets: list[Packet]) -> None:
    numbered = [item._replace(number=number) for number, item in enumerate(given_packets, 1)]
    items, _ = read(written(list(numbered)))
    assert [item._replace(interface=0) for item in items if isinstance(item, Packet)] == numbered
    assert len(items) == len(numbered)


def test_interfaces_come_back_with_name_and_description() -> None:
    interfaces = [Interface(1, 96, "unused"), Interface(113, 262_144, "any", "all of them"), Interface(1)]
    given_packets = [
        Packet(1, 5, 113, b"x", 1, 1),
        Packet(2, 5, 1, b"y", 1, 2),
        Packet(3, 6, 113, b"z", 1, 1),
    ]
    items, found = read(written(list(given_packets), interfaces))
    assert [each._replace(section=()) for each in found] == [interfaces[1], interfaces[2]]
    assert [item.interface for item in items if isinstance(item, Packet)] == [0, 1, 0]


def test_the_section_names_the_program() -> None:
    assert b"kdissect" in written([])
    assert read(written([])) == ([], [])


def test_secrets_come_back_in_their_place() -> None:
    given_items: list[Packet | Secrets] = [Secrets(1, b"keys"), Packet(1, 0, 1, b"x", 1), Secrets(2, b"")]
    assert read(written(given_items))[0] == given_items


def test_a_comment_too_long_for_its_option_is_cut_between_characters() -> None:
    items, _ = read(written([Packet(1, 0, 1, b"x", 1, 0, ("€" * 30_000,))]))
    assert [item.comments for item in items if isinstance(item, Packet)] == [("€" * 21_844,)]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("year", [1969, 2026])
def test_names_and_counts_come_back(order: str, year: int) -> None:
    offset = (year - 1970) * 31_536_000
    clock = option(9, b"\x06", order) + option(14, pack(order + "q", offset), order)
    record = pack(order + "HH", 1, 9) + padded(b"\x0a\0\0\1host\0") + pack(order + "HH", 0, 0)
    names = block(4, record + option(2, b"a.resolver", order), order)
    told = option(2, pack(order + "II", 0, 5_000_000), order) + option(4, pack(order + "Q", 100), order)
    counts = block(5, pack(order + "III", 0, 0, 9_000_000) + told + option(1, b"lossy", order), order)
    begin = section(order) + interface(options=clock, order=order)
    items, before = read(begin + names + enhanced(b"x", 7_000_000, order=order) + counts)
    file = io.BytesIO()
    writer = PcapngWriter(file, before)
    writer.write_names(before)
    for item in items:
        assert isinstance(item, Packet)
        writer.write(item)
    writer.write_counts(before)
    again, after = read(file.getvalue())
    assert again == items
    assert after[0].names == before[0].names
    assert b"host" in after[0].names[0]
    assert after[0].counts == before[0].counts
    assert after[0].counts is not None
    at_ns = offset * 1_000_000_000 + 9_000_000_000
    assert after[0].counts[:3] == (at_ns, at_ns - 4_000_000_000, None)
    assert after[0].received == 100


def test_what_is_no_whole_name_is_passed_over() -> None:
    record = pack("<HH", 1, 6) + padded(b"\x0a\0\0\1a\0") + pack("<HH", 1, 999) + b"more"
    items, found = read(section() + block(4, record) + interface() + enhanced(b"x"))
    assert len(items) == 1
    assert [body[4:10] for each in found for body in each.names] == [b"\x0a\0\0\1a\0"]
