"""What ``import kdissect`` gives."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import kdissect
from kdissect.record.records import Record
from kdissect.record.write import write_batch

ROOT = Path(__file__).resolve().parents[1]
CAPTURE = ROOT / "captures" / "basic-kafka43.pcapng"


def test_exchanges_of_a_capture() -> None:
    exchanges = list(kdissect.read(CAPTURE))
    assert exchanges
    assert all(isinstance(each, kdissect.Exchange) for each in exchanges)
    first = exchanges[0]
    assert first.request is not None
    assert first.api == "ApiVersions"
    assert first.request.body()["clientSoftwareName"] == "apache-kafka-java"
    assert [each.number for each in kdissect.read([str(CAPTURE)], two_pass=True)] == [
        each.number for each in exchanges
    ]


def test_what_is_no_capture() -> None:
    with pytest.raises(kdissect.CaptureError, match="not a capture"):
        list(kdissect.read(__file__))


def test_a_schema_goes_both_ways() -> None:
    schema = kdissect.schema("heartbeat", 0)
    values = {"groupId": "g", "generationId": 1, "memberId": "m"}
    data = schema.encode(values)
    assert schema.decode(data) == values
    assert schema.size_of(values) == len(data)
    assert schema.from_json(schema.to_json(values)) == values
    assert [field.name for field in schema.fields] == ["groupId", "generationId", "memberId"]
    assert (schema.name, schema.version) == ("HeartbeatRequest", 0)
    schema.validate(values)
    with pytest.raises(ValueError, match=r"^generationId: "):
        schema.validate({**values, "generationId": "x"})
    with pytest.raises(ValueError, match="1 byte is left"):
        schema.decode(data + b"\0")
    with pytest.raises(ValueError, match="byte 7"):
        schema.decode(data[:-2])


@pytest.mark.parametrize(("api", "kind"), [("Nonsense", "request"), (4711, "response"), ("Nonsense", "data")])
def test_an_unknown_schema_is_a_lookup_error(api: str | int, kind: str) -> None:
    with pytest.raises(LookupError):
        kdissect.schema(api, 0, kind)


def test_what_is_wrong_with_a_kind_or_a_version_is_said() -> None:
    with pytest.raises(LookupError, match=r"kind: 'foo' is not one of request, response and data"):
        kdissect.schema("Fetch", 17, "foo")
    with pytest.raises(TypeError, match=r"version: a whole number is needed, not '17'"):
        kdissect.schema("Fetch", "17")  # type: ignore[arg-type]


def test_damage_and_connections_are_told_to_who_asks(tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(CAPTURE.read_bytes()[:-3])
    faults: list[kdissect.Fault] = []
    connections: list[kdissect.Connection] = []
    exchanges = list(kdissect.read(cut, on_fault=faults.append, on_connection=connections.append))
    assert [fault.layer for fault in faults].count("file") == 1
    assert {each.connection for each in exchanges} <= {each.connection for each in connections}


def test_other_classes_have_schemas_too() -> None:
    assert kdissect.schema("RequestHeader", 2, "data").name == "RequestHeader"


def test_records() -> None:
    found = kdissect.records(write_batch([Record(0, 1, b"k", b"v")]))
    assert [record.value for batch in found.batches for record in batch.records()] == [b"v"]


def test_unknown_names_are_told() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        kdissect.nonsense  # type: ignore[attr-defined]  # noqa: B018


def test_the_stub_has_every_public_name() -> None:
    tree = ast.parse((ROOT / "kdissect" / "__init__.pyi").read_text(encoding="utf-8"))
    names = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname for alias in node.names}
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    assert names - {"__all__"} == set(kdissect.__all__)
    assert all(hasattr(kdissect, name) and name in dir(kdissect) for name in kdissect.__all__)
