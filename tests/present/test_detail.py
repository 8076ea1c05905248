from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

from kdissect import read
from kdissect.model import Node
from kdissect.names import TopicNames
from kdissect.present.detail import PAGE, Detail, TreeSpot
from kdissect.present.options import Options
from kdissect.present.records import addressed_rows
from kdissect.record.records import Record
from kdissect.record.write import write_batch, write_message_set
from tests.cli.run import CAPTURES
from tests.kafka import Talk, request, response
from tests.present.captures import SECRET, secret_talks, write_capture

CASES = sorted(CAPTURES.glob("*.pcap*"))
OPTIONS = Options(embedded=True)


def details(path: Path, options: Options = OPTIONS) -> list[Detail]:
    return [Detail(exchange, options) for exchange in read(path)]


def all_spots(detail: Detail) -> list[TreeSpot]:
    out, waiting = [], list(detail.spots)
    while waiting:
        spot = waiting.pop()
        out.append(spot)
        if spot.can_open:
            waiting += detail.open(spot)
    return out


def readable(detail: Detail, data: bytes) -> bytes:
    """The bytes as the pane shows them."""
    shown = bytearray(data)
    for start, end in detail.hidden(data):
        shown[start:end] = b"*" * (end - start)
    return bytes(shown)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_every_byte_finds_the_field_it_was_read_for(path: Path) -> None:
    for detail in details(path)[:40]:
        for spot in all_spots(detail):
            leaf = spot.branch.node if spot.branch is not None else None
            if leaf is None or leaf.children or spot.start == spot.end:
                continue
            path_there = detail.path_to(spot.data, spot.start)
            assert path_there[-1] is leaf, (spot, path_there)


def test_a_byte_inside_unpacked_records_finds_its_field(tmp_path: Path) -> None:
    records = [Record(n, 1, b"key-%d" % n, b"value" * 50) for n in range(3)]
    batch = b64encode(write_batch(records, codec=1)).decode()
    partition = {"index": 0, "records": batch}
    asked = request(
        "Produce",
        3,
        1,
        transactionalId=None,
        acks=1,
        timeoutMs=1,
        topicData=[{"name": "t", "partitionData": [partition]}],
    )
    (detail,) = details(write_capture(tmp_path / "c.pcapng", Talk().ask(asked).close()))
    spots = all_spots(detail)
    (unpacked,) = {id(s.data): s.data for s in spots if b"key-1" in s.data}.values()
    found: list[Node] = detail.path_to(unpacked, unpacked.index(b"key-1"))
    assert [node.name for node in found][:3] == ["body", "topicData", "[0]"]
    assert (found[-1].name, found[-1].value) == ("key", b"key-1")


def many_topics(path: Path, count: int) -> tuple[Detail, TreeSpot]:
    """A Metadata request for so many topics, and the line of their array."""
    asked = request("Metadata", 0, 1, topics=[{"name": f"topic-{n}"} for n in range(count)])
    answered = response("Metadata", 0, 1, brokers=[], topics=[])
    (detail,) = details(write_capture(path, Talk().ask(asked).answer(answered).close()))
    (topics,) = [spot for spot in all_spots(detail) if spot.text == "topics" and len(spot.data) > 5000]
    return detail, topics


def test_many_elements_come_in_pages(tmp_path: Path) -> None:
    detail, topics = many_topics(tmp_path / "c.pcapng", 3 * PAGE)
    *lines, more = detail.open(topics)
    assert len(lines) == PAGE
    assert more.text == f"… {2 * PAGE + 1:,} more"  # the count is a line too
    *lines, more = more.unfold()
    assert lines[0].text == f"[{PAGE - 1}]"
    assert len(lines) == PAGE
    lines = more.unfold()  # one line is no reason for a line that stands for it
    assert lines[-1].text == f"[{3 * PAGE - 1}]"
    assert len(lines) == PAGE + 1


def test_a_byte_far_down_a_long_array_unfolds_only_the_lines_around_it(tmp_path: Path) -> None:
    detail, topics = many_topics(tmp_path / "c.pcapng", 4 * PAGE)
    *_, more = detail.open(topics)
    *_, wanted, name = detail.path_to(topics.data, topics.data.index(b"topic-%d" % (3 * PAGE)))
    assert name.value == f"topic-{3 * PAGE}"
    assert more.holds(wanted)
    before, *lines = more.unfold(wanted)
    assert before.text == f"… {2 * PAGE:,} more"
    assert [line.text for line in lines if line.holds(wanted)] == [f"[{3 * PAGE}]"]
    assert not before.holds(wanted)
    assert [line.text for line in before.unfold()[:1]] == [f"[{PAGE - 1}]"]


@pytest.mark.parametrize(
    ("magic", "codec"),
    [(0, 0), (0, 1), (0, 2), (0, 3), *((1, c) for c in range(4)), *((2, c) for c in range(5))],
)
def test_a_record_is_found_by_its_address_with_every_codec(magic: int, codec: int, tmp_path: Path) -> None:
    records = [Record(n, 1, b"key-%d" % n, b"value" * 50) for n in range(3)]
    packed = write_batch(records, codec) if magic == 2 else write_message_set(records, magic, codec)
    partition = {"index": 0, "records": b64encode(packed * 2).decode()}
    topics = [{"name": "t", "partitionData": [partition]}]
    asked = request("Produce", 3, 1, transactionalId=None, acks=1, timeoutMs=1, topicData=topics)
    path = write_capture(tmp_path / "c.pcapng", Talk().ask(asked).close())
    (exchange,) = read(path)
    (detail,) = details(path)
    rows = list(addressed_rows(exchange))
    assert len(rows) == 6
    for address, row in rows:
        found = detail.path_to_record(address)[-1]
        (key,) = [child for child in found.children if child.name == "key"]
        assert key.value == row["key"]
        # Two batches of the same bytes have buffers of the same bytes, so that any will do; packed bytes,
        # which come before what was unpacked of them, may have the key in them too.
        data = [data for data in detail.buffers() if row["key"] in data][-1]
        assert ("unpacked" in detail.name_of(data)) == bool(codec)
        assert data[key.end - len(row["key"]) : key.end] == row["key"]
        assert detail.path_to(data, key.end - 1)[-1].value == row["key"]


def test_secrets_are_in_no_line_and_in_no_bytes(tmp_path: Path) -> None:
    path = write_capture(tmp_path / "c.pcapng", *secret_talks())
    coded = b64encode(SECRET.encode())[:-4].decode()
    for detail in details(path):
        for spot in all_spots(detail):
            assert SECRET not in spot.text
            assert coded not in spot.text
            assert SECRET.encode()[:4].hex(" ") not in spot.text
            assert SECRET.encode() not in readable(detail, spot.data)
    shown = details(path, OPTIONS._replace(show_secrets=True))
    assert any(SECRET in spot.text for detail in shown for spot in all_spots(detail))


def test_bytes_that_are_not_known_are_hidden() -> None:
    detail = details(CASES[0])[0]
    assert list(detail.hidden(b"abc")) == [(0, 3)]


def test_topic_ids_are_named_by_whatever_packet_told_the_name() -> None:
    names = TopicNames()
    names.learn("BeOOKrAPQcq7yf6O-jONWg", "orders", 1_000_000)
    detail = next(
        Detail(each, OPTIONS, names.up_to(1 << 62))
        for each in read(CAPTURES / "basic-kafka43.pcapng")
        if each.api == "Produce"
    )
    lines = [spot.text for spot in all_spots(detail)]
    assert "topicId: BeOOKrAPQcq7yf6O-jONWg (orders)" in lines
    assert all(spot.text.startswith("orders-") for spot in detail.records())


def test_the_line_of_a_fault_and_the_field_that_has_it_say_what_it_is() -> None:
    path = CAPTURES / "incidents" / "leader-killed.pcapng.gz"
    detail = next(Detail(exchange, OPTIONS) for exchange in read(path) if exchange.faults)
    spots = all_spots(detail)
    said = {detail.meaning_of(spot) for spot in spots if spot.is_fault}
    fields = [spot for spot in spots if spot.branch is not None and spot.branch.node.fault is not None]
    assert said
    assert fields
    assert {detail.meaning_of(spot) for spot in fields} <= said


def test_names_lead_to_a_field_and_of_a_short_array_to_its_last_element(tmp_path: Path) -> None:
    topics = [{"errorCode": 0, "name": f"topic-{n}", "isInternal": False, "partitions": []} for n in range(3)]
    answered = response("Metadata", 1, 1, brokers=[], controllerId=1, topics=topics)
    talk = Talk().ask(request("Metadata", 1, 1, topics=None)).answer(answered)
    (detail,) = details(write_capture(tmp_path / "c.pcapng", talk.close()))

    def reached(*names: str) -> list[str]:
        return [node.name for node in detail.path_to_names(("response", "body", *names))]

    assert reached("topics", "[1]", "name") == ["body", "topics", "[1]", "name"]
    assert detail.path_to_names(("response", "body", "topics", "[1]", "name"))[-1].value == "topic-1"
    assert reached("topics", "[7]", "name") == ["body", "topics", "[2]", "name"]
    assert reached("brokers", "[7]", "host") == ["body", "brokers"]
    assert reached("noSuchField", "name") == ["body"]
    assert detail.path_to_names(()) == detail.path_to_names(("request",)) == []
