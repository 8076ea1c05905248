"""Decoded keys and values on the screens: one way for lists, the record's pane and the tree."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from kdissect import read
from kdissect.exchange import Exchange
from kdissect.feed.records import words_of
from kdissect.payload.decoder import PayloadDecoder
from kdissect.payload.schemas import RegistrySchema, Schemas
from kdissect.present.detail import Detail
from kdissect.present.options import Options
from kdissect.present.records import record_rows
from kdissect.present.whole_record import is_shown_decoded, record_lines, value_file
from kdissect.record.records import Record
from tests.payload.made import produced, record

ORDER = (
    '{"type": "record", "name": "shop.Order", "fields": [{"name": "id", "type": "int"}, '
    '{"name": "who", "type": "string"}]}'
)
OPTIONS = Options(embedded=True, payloads=PayloadDecoder(Schemas([RegistrySchema("AVRO", ORDER, "7")])))


def exchange_of(folder: Path, *records: Record) -> Exchange:
    (found,) = [
        each
        for each in read(produced(folder / "c.pcapng", {"orders": records}))
        if isinstance(each, Exchange)
    ]
    return found


def row_of(folder: Path, value: bytes, headers: Any = ()) -> dict[str, Any]:
    (row,) = record_rows(exchange_of(folder, record(b"k", value, headers)), OPTIONS)
    return row


@pytest.mark.parametrize(
    ("value", "heading", "in_list"),
    [
        (
            b"\0\0\0\0\7\6\4ab",
            "value: shop.Order, avro, schema 7, 9 bytes",
            'shop.Order {"id":3,"who":"ab"}',
        ),
        (
            b"\0\0\0\0\7\6",
            "value: hex after 5 bytes, 6 bytes, begins as the framing of Confluent's schema registry does: "
            "schema 7, does not match its schema: the varlong ends too early",
            None,
        ),
        (
            b"\0\0\0\0\x09abc",
            "value: text after 5 bytes, 8 bytes, begins as the framing of Confluent's schema registry does: "
            "schema 9, schema 9 is not known",
            None,
        ),
        (b'{"a": 1}', "value: json, 8 bytes", None),
        (b"hello", "value: text, 5 bytes", None),
        (b"\x81\xa1a\xcd\x01\x00", "value: msgpack, likely, 6 bytes", 'msgpack {"a":256}'),
    ],
)
def test_lists_and_panes_say_the_same(
    value: bytes, heading: str, in_list: str | None, tmp_path: Path
) -> None:
    row = row_of(tmp_path, value)
    assert words_of(row, "value") == in_list
    assert is_shown_decoded(row, "auto") is (in_list is not None)
    texts = [line.text for line in record_lines(row, "auto")]
    assert heading in texts
    if in_list is not None:
        assert value_file(row, "auto")[0] == ".json"
        assert any('"' in text for text in texts[texts.index(heading) + 1 :][:2])


def test_a_field_in_the_tree_shows_its_bytes(tmp_path: Path) -> None:
    exchange = exchange_of(tmp_path, record(b"k", b"\0\0\0\0\7\6\4ab"))
    detail = Detail(exchange, OPTIONS)
    waiting, found = list(detail.spots), {}
    while waiting:
        spot = waiting.pop()
        found[spot.text] = spot
        waiting += detail.open(spot) if spot.can_open else []
    who = found['who: "ab"']
    assert who.data[who.start : who.end] == b"\4ab"
    assert found["id: 3"].end == who.start
    # From a byte to its field.
    assert [node.name for node in detail.path_to(who.data, who.start)][-2:] == ["(shop.Order)", "who"]


def test_what_decodes_can_be_handed_to_the_process_that_lists() -> None:
    assert pickle.loads(pickle.dumps(OPTIONS)).payloads.schemas.reader("7") is not None
