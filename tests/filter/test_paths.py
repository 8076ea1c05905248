"""Kafka's fields by their path: all of them, and what short paths mean."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kdissect.filter import paths
from kdissect.filter.field import FieldKind
from kdissect.filter.reach import field_at
from kdissect.filter.row import Row
from kdissect.present.options import Options
from kdissect.present.sanitise import valid_text
from kdissect.protocol import apis
from kdissect.protocol.schema import Field, Struct, era_structs, message_struct
from kdissect.reading import read
from tests.amount import each_of

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
FIELDS = {
    FieldKind.TEXT: ("string", "uuid"),
    FieldKind.BYTES: ("bytes",),
    FieldKind.FLAG: ("bool",),
    FieldKind.FLOAT: ("float64",),
    FieldKind.ERROR: ("int16",),
    FieldKind.MOMENT: ("int64",),
    FieldKind.NUMBER: ("int8", "int16", "int32", "int64", "uint16", "uint32"),
}


def fields_of(struct: Struct, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Field]]:
    for field in struct.fields:
        steps = (*above, field.name)
        yield steps, field
        if field.struct is not None:
            yield from fields_of(field.struct, steps)


def structs(key: int, side: str) -> Iterator[Struct]:
    for version in apis.versions(key):
        yield message_struct(key, version, side)
        yield from era_structs(key, version, side)


@each_of(apis.api_keys, apis.api_name)
def test_every_field_of_every_version_has_its_path_and_kind(key: int) -> None:
    for side in paths.SIDES:
        for struct in structs(key, side):
            for steps, field in fields_of(struct):
                (place,) = paths.places(".".join((apis.api_name(key), side, *steps)))
                assert (place.api_key, place.side, len(place.twigs)) == (key, side, len(steps))
                kind = field.type.removeprefix("[]")
                if field.struct is not None or kind == "records":
                    assert place.kind is FieldKind.PRESENCE
                else:
                    assert kind in FIELDS[place.kind]


def leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """What is in decoded values, with the path to it."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if not name.startswith("_"):
                yield from leaves(inner, (*path, name))
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, path)
    elif value is not None:
        yield path, valid_text(value) if isinstance(value, str) else value


@pytest.mark.parametrize("capture", ["basic-kafka43", "transactions-kafka39", "consumer-group-kip848"])
def test_a_path_reads_what_was_decoded(capture: str) -> None:
    checked = 0
    for exchange in read(CAPTURES / f"{capture}.pcapng"):
        row = Row(exchange, Options(show_secrets=True))
        for message in exchange.messages:
            expected: dict[str, list[Any]] = {}
            if message.api_key is None:
                continue
            for steps, value in leaves(message.body(), ()):
                name = ".".join((apis.api_name(message.api_key), message.kind, *steps))
                expected.setdefault(name, []).append(value)
            for name, values in expected.items():
                field = field_at(name, paths.places(name))
                if field.kind is not FieldKind.PRESENCE:
                    assert field.read(row) == values
                    checked += 1
    assert checked > 500


def names_of(text: str) -> list[str]:
    return sorted(place.name for place in paths.places(text))


def test_short_paths_mean_every_field_that_ends_so() -> None:
    full = "fetch.response.responses.partitions.highWatermark"
    assert names_of(full) == [full]
    assert names_of("FETCH.response.RESPONSES.parti_tions.high_watermark") == [full]
    assert names_of("fetch.response.highWatermark") == [full]
    assert names_of("fetch.highWatermark") == ["fetch.request.topics.partitions.highWatermark", full]
    assert full in names_of("highWatermark")
    assert len(names_of("highWatermark")) == 3
    assert len(names_of("response.throttleTimeMs")) == len(names_of("throttleTimeMs")) > 50
    assert names_of("fetch.response.watermark") == []
    assert names_of("nothing.highWatermark") == []


def test_a_whole_path_is_that_field_alone() -> None:
    assert names_of("fetch.response.errorCode") == ["fetch.response.errorCode"]
    assert len(names_of("fetch.errorCode")) == 2


def test_old_names_of_apis_are_understood() -> None:
    assert names_of("alterIsr.request.brokerId") == ["alterPartition.request.brokerId"]


def test_records_have_a_size() -> None:
    (place,) = paths.places("produce.request.topicData.partitionData.recordsSizeInBytes")
    assert (place.kind, place.unit) == (FieldKind.NUMBER, "bytes")
    assert place.name == "produce.request.topicData.partitionData.recordsSizeInBytes"


@pytest.mark.parametrize("text", ["", ".", "..", "fetch.", ".fetch", "fetch..response", "fetch.response."])
def test_empty_steps_are_no_path(text: str) -> None:
    assert paths.places(text) == []
