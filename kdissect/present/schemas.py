"""Schemas → lines and objects for ``kdissect schema``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdissect.present.columns import Column, Table
from kdissect.present.options import Options
from kdissect.protocol import apis
from kdissect.protocol.json_form import base64_text
from kdissect.protocol.schema import Struct


def versions_text(versions: range) -> str:
    """``0-12``; ``3`` if there is only one."""
    return str(versions[0]) if len(versions) == 1 else f"{versions[0]}-{versions[-1]}"


def _summary(name: str) -> Any:
    def read(summary: apis.ApiSummary, _: Options) -> Any:
        value = getattr(summary, name)
        return list(value) if isinstance(value, tuple) else value

    return read


def _low(summary: apis.ApiSummary, _: Options) -> int:
    return summary.versions[0]


def _high(summary: apis.ApiSummary, _: Options) -> int:
    return summary.versions[-1]


APIS = Table(
    "apis",
    (
        Column("key", "int16", "Kafka's number of the API", _summary("key")),
        Column("name", "text", "newest name of the API", _summary("name")),
        Column("oldest", "int16", "the oldest version that is known", _low),
        Column("newest", "int16", "the newest version", _high),
        Column("flexible_from", "int16", "the first version with tagged fields", _summary("flexible_from")),
        Column("unstable", "json", "versions that their release calls unstable", _summary("unstable")),
        Column("releases", "texts", "Kafka releases whose definitions describe it", _summary("releases")),
        Column("also", "texts", "older names", _summary("also")),
    ),
)

CLASSES = Table(
    "classes",
    (
        Column("name", "text", "Kafka's name of the message class", lambda name, _: name),
        Column("group", "text", "the Kafka module it is from", lambda name, _: apis.data_group(name)),
        Column("oldest", "int16", "the oldest version", lambda name, _: apis.data_versions(name)[0]),
        Column("newest", "int16", "the newest version", lambda name, _: apis.data_versions(name)[-1]),
        Column(
            "record_type",
            "int16",
            "its number in Kafka's own topics",
            lambda name, _: apis.data_record_type(name),
        ),
    ),
)


def api_lines() -> Iterator[str]:
    """One line for each API."""
    yield f"{'key':>3}  {'name':<32}  {'versions':<8}  {'flexible':<8}  notes"
    for key in apis.api_keys():
        row = apis.api_summary(key)
        flexible = "" if row.flexible_from is None else f"{row.flexible_from}+"
        notes = [f"unstable {', '.join(map(str, row.unstable))}"] if row.unstable else []
        notes += [f"also {name}" for name in row.also]
        line = (
            f"{key:>3}  {row.name:<32}  {versions_text(row.versions):<8}  {flexible:<8}  {'; '.join(notes)}"
        )
        yield line.rstrip()


def class_lines() -> Iterator[str]:
    """One line for every other message class."""
    yield f"{'class':<48}  {'versions':<8}  group"
    for name in apis.data_names():
        yield f"{name:<48}  {versions_text(apis.data_versions(name)):<8}  {apis.data_group(name)}"


def struct_object(struct: Struct) -> dict[str, Any]:
    """The fields of a message class in one version, for JSON."""
    return {
        "name": struct.name,
        "version": struct.version,
        "flexible": struct.flexible,
        "release": struct.release,
        "fields": _field_objects(struct),
    }


def _field_objects(struct: Struct) -> list[dict[str, Any]]:
    out = []
    for field in struct.fields:
        default = base64_text(field.default) if isinstance(field.default, bytes) else field.default
        row: dict[str, Any] = {
            "name": field.name,
            "type": field.type,
            "nullable": field.nullable,
            "tag": field.tag,
            "entity": field.entity,
        }
        if field.struct is not None:
            row["fields"] = _field_objects(field.struct)
        else:
            row["default"] = default
        out.append(row)
    return out
