"""Every body, header, key and value that Kafka's own classes wrote, through every walk."""

from __future__ import annotations

import json

from kdissect.protocol.annotate import annotate
from kdissect.protocol.apis import request_header_version, response_header_version
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import decode
from kdissect.protocol.encode import encode, size_of
from kdissect.protocol.json_form import dumps, from_json, to_json
from tests.protocol.official import leaves, rows, values_of, vectors, with_records


def test_the_set_is_whole() -> None:
    assert len(vectors()) == 5718
    assert len({(row["api_key"], row["version"], row["kind"]) for row in rows("messages.ndjson.gz")}) == 736


def test_the_json_is_kafkas_to_the_order_of_the_keys_and_every_byte_is_read() -> None:
    wrong = []
    for vector in vectors():
        cursor = Cursor(vector.data)
        text = dumps(to_json(vector.struct, decode(vector.struct, cursor)))
        if text != dumps(vector.json) or cursor.remaining() or cursor.notes:
            wrong.append(vector.id)
    assert not wrong


def test_encoding_what_was_decoded_gives_the_same_bytes_and_their_number() -> None:
    wrong = []
    for vector in vectors():
        values = decode(vector.struct, Cursor(vector.data))
        if encode(vector.struct, values) != vector.data or size_of(vector.struct, values) != len(vector.data):
            wrong.append(vector.id)
    assert not wrong


def test_the_json_text_encodes_to_the_same_bytes() -> None:
    wrong = []
    for vector in vectors():
        text = dumps(to_json(vector.struct, decode(vector.struct, Cursor(vector.data)), with_records))
        if encode(vector.struct, from_json(vector.struct, json.loads(text))) != vector.data:
            wrong.append(vector.id)
    assert not wrong


def test_the_tree_covers_every_byte_once_and_holds_the_decoded_values() -> None:
    wrong = []
    for vector in vectors():
        tree = annotate(vector.struct, Cursor(vector.data))
        ends = [0, *(leaf.end for leaf in leaves(tree))]
        starts = [*(leaf.start for leaf in leaves(tree)), len(vector.data)]
        if ends != starts or (values_of(tree) or {}) != decode(vector.struct, Cursor(vector.data)):
            wrong.append(vector.id)
    assert not wrong


def test_header_versions_are_those_that_kafka_chose() -> None:
    for row in rows("messages.ndjson.gz"):
        choose = request_header_version if row["kind"] == "request" else response_header_version
        assert choose(row["api_key"], row["version"]) == row["header_version"], row["id"]
