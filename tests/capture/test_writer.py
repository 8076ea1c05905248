"""What is written reads back the same."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from kdissect.capture.pcapng import PcapngReader
from kdissect.capture.reader import Interface, Item
from kdissect.capture.writer import PcapngWriter
from kdissect.model import Packet, Secrets


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
