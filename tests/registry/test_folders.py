"""Folders of schemas."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kdissect.model import CaptureError
from kdissect.payload.schemas import Schemas
from kdissect.record.records import Record
from kdissect.registry.folders import learn_logs, read_schemas, schema_folders
from tests.record.build import batch, bodies

ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "line", "type": "Line"}]}'
LINE = '{"type": "record", "name": "Line", "fields": [{"name": "n", "type": "int"}]}'


def folder(path: Path, **files: str) -> str:
    for name, text in files.items():
        file = path / name.replace("__", "/").replace("_", ".")
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return str(path)


def test_files_are_schemas_by_id_and_by_subject(tmp_path: Path) -> None:
    path = folder(
        tmp_path,
        **{
            "101_avsc": ORDER,
            "Line_avsc": LINE,
            "common__money_proto": 'syntax = "proto3"; message Money {}',
        },
        **{
            "102_proto": 'syntax = "proto3"; import "common/money.proto"; message O { Money m = 1; }',
            "103_json": '{"type": "object"}',
            "104_json": json.dumps({"schema": '"int"'}),
            "all_json": json.dumps([{"id": 105, "schema": '"string"'}, {"id": 106, "schema": LINE}]),
            "README_md": "no schema",
        },
    )
    schemas = read_schemas([path])
    kinds = {id: reader.kind for id in range(101, 107) if (reader := schemas.reader(str(id)))}
    assert kinds == {101: "AVRO", 102: "PROTOBUF", 103: "JSON", 104: "AVRO", 105: "AVRO", 106: "AVRO"}
    assert schemas.reader_of_subject("Line") is not None
    assert schemas.problems == []


def test_what_is_wrong_costs_only_itself(tmp_path: Path) -> None:
    (tmp_path / "1.avsc").write_bytes(b"\xff")
    (tmp_path / "2.avsc").write_text('"int"')
    (tmp_path / "3.avsc").mkdir()
    (tmp_path / "4.avsc").symlink_to(tmp_path / "nowhere")
    schemas = read_schemas([str(tmp_path)])
    assert schemas.reader("2") is not None
    assert [problem.partition(": ")[2] for problem in schemas.problems] == [
        "cannot be read: it is not UTF-8",
        "not a file, or larger than 16,777,216 bytes",
    ]


@pytest.mark.parametrize(("name", "reason"), [("nowhere", "not there"), ("file", "not a folder")])
def test_a_folder_is_needed(name: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CaptureError, match=reason):
        read_schemas([str(tmp_path / name)])


def test_log_directories_of_the_registrys_topic_are_read(tmp_path: Path) -> None:
    key = json.dumps({"keytype": "SCHEMA", "subject": "s", "version": 1}).encode()
    value = json.dumps({"subject": "s", "version": 1, "id": 5, "schema": '"int"'}).encode()
    (tmp_path / "_schemas-0").mkdir()
    data = batch(bodies((Record(0, 0, key, value, (), 0),)), count=1, base_offset=0)
    (tmp_path / "_schemas-0" / f"{0:020}.log").write_bytes(data)
    (tmp_path / "orders-0").mkdir()
    assert schema_folders([str(tmp_path)]) == [str(tmp_path / "_schemas-0")]
    assert read_schemas([str(tmp_path)]).reader("5") is not None
    schemas = Schemas()
    learn_logs(schemas, [str(tmp_path / "_schemas-0")])
    learn_logs(schemas, [str(tmp_path / "nowhere")])
    assert schemas.reader("5") is not None


def test_a_folder_without_schemas_is_told(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    (said,) = read_schemas([str(tmp_path)]).problems
    assert said.startswith(f"{tmp_path}: no schema in this folder")
