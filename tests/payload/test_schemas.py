"""The schemas that are known."""

from __future__ import annotations

import json
import pickle
import time

import pytest

from kdissect.payload.schemas import Reference, RegistrySchema, Schemas, id_of_name, schema_of

LINE = '{"type": "record", "name": "shop.Line", "fields": [{"name": "n", "type": "int"}]}'
ORDER = '{"type": "record", "name": "shop.Order", "fields": [{"name": "line", "type": "shop.Line"}]}'


def value(**said: object) -> bytes:
    return json.dumps(said).encode()


KEY = value(keytype="SCHEMA", subject="orders-value", version=1, magic=1)


def test_records_of_the_registrys_topic_are_learnt() -> None:
    schemas = Schemas()
    assert schemas.reader("7") is None
    schemas.learn(KEY, value(subject="orders-value", version=1, id=7, schema='"string"'))
    reader = schemas.reader("7")
    assert reader is not None
    assert (reader.kind, reader.avro and reader.avro.name) == ("AVRO", "string")
    assert schemas.reader_of_subject("orders-value") is not None


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (KEY, None),
        (None, b"{}"),
        (KEY, b"["),
        (b"[" * 100_000, b"{}"),
        (KEY, value(schema=5, id=7)),
        (KEY, value(schema="x", id=7, schemaType="XSD")),
        (KEY, value(schema='"int"', id=7, references=5)),
        (KEY, value(schema='"int"', id=7, references=True)),
        (KEY, value(schema='"int"', id=7, references="ab")),
        (value(keytype="CONFIG"), value(schema='"int"', id=7)),
    ],
)
def test_what_is_no_schema_is_passed_over(key: bytes | None, said: bytes | None) -> None:
    schemas = Schemas()
    schemas.learn(key, said)
    assert len(schemas) == 0


def test_a_schema_may_refer_to_others() -> None:
    line = RegistrySchema("AVRO", LINE, "1", "line", 1)
    order = RegistrySchema("AVRO", ORDER, "2", "order", 1, (Reference("shop.Line", "line", 1),))
    assert Schemas([line, order]).reader("2") is not None
    # Files have no references: the name is looked for in all of them.
    assert Schemas([line, order._replace(references=())]).reader("2") is not None
    missing = Schemas([order])
    assert missing.reader("2") is None
    assert missing.problems == [
        "a schema: schema 2 cannot be used: refers to line version 1, which is not known"
    ]


def test_protobuf_imports_by_reference_and_by_path() -> None:
    text = 'syntax = "proto3"; import "line.proto"; message Order { Line line = 1; }'
    line = 'syntax = "proto3"; message Line { int32 n = 1; }'
    order = RegistrySchema("PROTOBUF", text, "2", "order", 1, (Reference("line.proto", "line", 1),))
    assert Schemas([RegistrySchema("PROTOBUF", line, "1", "line", 1), order]).reader("2") is not None
    assert Schemas([order._replace(references=())], {"line.proto": line}).reader("2") is not None
    missing = Schemas([order._replace(references=())])
    assert missing.reader("2") is None
    assert missing.problems == ["a schema: schema 2 cannot be used: imports 'line.proto', which is not there"]


def test_a_broken_schema_is_told_once() -> None:
    schemas = Schemas([RegistrySchema("AVRO", "{", "5", origin="5.avsc")])
    assert schemas.reader("5") is schemas.reader("5") is None
    assert schemas.problems == ["5.avsc: schema 5 cannot be used: an Avro schema is JSON, and this is not"]
    assert schemas.knows("5")


def test_schemas_that_refer_to_each_other_end() -> None:
    one = RegistrySchema(
        "AVRO", '{"type": "record", "name": "A", "fields": [{"name": "b", "type": "B"}]}', "1"
    )
    two = RegistrySchema(
        "AVRO", '{"type": "record", "name": "B", "fields": [{"name": "a", "type": "A"}]}', "2"
    )
    schemas = Schemas([one, two])
    assert schemas.reader("1") is None
    circle = RegistrySchema("AVRO", LINE, "1", "line", 1, (Reference("x", "line", 1),))
    assert Schemas([circle]).reader("1") is not None


def test_the_newest_of_a_subject_counts_and_a_copy_is_the_same() -> None:
    versions = [
        RegistrySchema("AVRO", f'"{kind}"', None, "s", at) for at, kind in ((2, "int"), (1, "string"))
    ]
    schemas = pickle.loads(pickle.dumps(Schemas(versions)))
    reader = schemas.reader_of_subject("s")
    assert reader.avro.name == "int"
    assert schemas.all() == versions


class _Registry:
    failure: str | None = None

    def __init__(self) -> None:
        self.asked: list[str] = []

    def of_id(self, id: str) -> RegistrySchema | None:
        self.asked.append(id)
        return RegistrySchema("AVRO", '"int"', id) if id == "1" else None

    def of_version(self, subject: str, version: int) -> RegistrySchema | None:
        return None


def test_a_registry_is_asked_once_for_each_id_and_only_where_it_may_be() -> None:
    schemas, registry = Schemas(), _Registry()
    schemas.registry = registry
    assert schemas.reader("1") is None
    found = [schemas.reader(id, may_ask=True) is None for id in ("1", "2", "1", "2")]
    assert found == [False, True, False, True]
    assert registry.asked == ["1", "2"]


def test_names_of_files_are_ids_or_subjects() -> None:
    guid = "12345678-1234-4234-9234-123456789abc"
    assert [id_of_name(name) for name in ("101", "007", guid, guid.replace("-", ""), "orders-value")] == [
        *("101", "7", guid, guid.replace("-", "")),
        None,
    ]


def test_answers_of_registries_are_schemas() -> None:
    found = schema_of({"schema": "x", "schemaType": "PROTOBUF", "references": [{"name": 5}]}, "here")
    assert found == RegistrySchema("PROTOBUF", "x", origin="here")
    assert schema_of({"schema": "x", "references": [5]}, "") is None


def test_names_are_looked_up_in_many_schemas_that_come_one_after_the_other() -> None:
    schemas, begin = Schemas(), time.process_time()
    for at in range(2_000):
        fields = [{"name": "before", "type": f"T{at - 1}"}] if at % 2 else []
        text = json.dumps({"type": "record", "name": f"T{at}", "fields": fields})
        schemas.add(RegistrySchema("AVRO", text, str(at)))
        assert schemas.reader(str(at)) is not None
    assert time.process_time() - begin < 5, "takes as long as the square of their number"


def test_another_version_is_not_taken_for_the_one_that_is_referred_to() -> None:
    line = RegistrySchema("AVRO", LINE, "1", "line", 1)
    order = RegistrySchema("AVRO", ORDER, "2", "order", 1, (Reference("shop.Line", "line", 2),))
    assert Schemas([line, order]).reader("2") is None
    # A file has no version.
    assert Schemas([line._replace(version=None), order]).reader("2") is not None


def test_a_schema_may_have_a_guid_too() -> None:
    guid = "12345678-1234-4234-9234-123456789abc"
    found = schema_of({"schema": '"int"', "id": 5, "guid": guid}, "")
    assert found is not None
    schemas = Schemas([found])
    assert schemas.reader(guid) is not None
    assert len(schemas.all()) == 1
