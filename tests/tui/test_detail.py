from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

from kdissect import read
from kdissect.model import Node
from kdissect.present.options import Options
from kdissect.record.records import Record
from kdissect.record.write import write_batch
from kdissect.tui.detail import PAGE, Detail, Spot
from tests.cli.run import CAPTURES
from tests.kafka import Talk, request, response
from tests.present.captures import SECRET, secret_talks, write_capture

CASES = sorted(CAPTURES.glob("*.pcap*"))
OPTIONS = Options(embedded=True)


def details(path: Path, options: Options = OPTIONS) -> list[Detail]:
    return [Detail(exchange, options) for exchange in read(path)]


def all_spots(detail: Detail) -> list[Spot]:
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


def test_many_elements_come_in_pages(tmp_path: Path) -> None:
    names = [f"topic-{n}" for n in range(2 * PAGE + 1)]
    asked = request("Metadata", 0, 1, topics=[{"name": name} for name in names])
    answered = response("Metadata", 0, 1, brokers=[], topics=[])
    (detail,) = details(write_capture(tmp_path / "c.pcapng", Talk().ask(asked).answer(answered).close()))
    (topics,) = [spot for spot in all_spots(detail) if spot.text == "topics" and len(spot.data) > 5000]
    pages = [spot for spot in detail.open(topics) if spot.branch is None]
    assert [len(detail.open(page)) for page in pages][:2] == [PAGE, PAGE]
    assert pages[0].text.endswith("…" + f" [{PAGE - 2}]") or "…" in pages[0].text
    last = detail.path_to(topics.data, topics.end - 1)[-2]
    assert [page.holds(last) for page in pages] == [False, False, True]


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
