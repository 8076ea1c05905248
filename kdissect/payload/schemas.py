"""The known schemas, by id and by subject: plain texts in, readers of values out.

They come from files, from records of Confluent's topic ``_schemas`` (``KafkaStore``), or from a registry.
Other modules read these sources. A schema is parsed when the first value needs it. A broken schema is
reported once; its values stay raw.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from kdissect.payload.avro import SchemaError, avro_type
from kdissect.payload.avro_values import ARRAY, RECORD, UNION, AvroType
from kdissect.payload.json_schema import JsonSchema, json_schema
from kdissect.payload.proto_known import KNOWN
from kdissect.payload.proto_text import parse_proto
from kdissect.payload.proto_types import ProtoFile, ProtoMessage

AVRO, PROTOBUF, JSON = KINDS = ("AVRO", "PROTOBUF", "JSON")
"""The kinds of schemas, by their names in registries."""
TOPIC = "_schemas"
"""The topic in which Confluent's registry keeps its schemas."""
MOST_SCHEMAS = 100_000
MOST_CHARACTERS = 256 << 20
"""The most characters of all schemas together; further schemas are not added."""
_MOST_REFERENCES = 1_000
GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NO_VERSION = 0
"""The version of a schema without one: a file with a subject's name."""


class Reference(NamedTuple):
    """A reference from one schema to another."""

    name: str
    """A full name in Avro, a path in Protobuf."""
    subject: str
    version: int


class RegistrySchema(NamedTuple):
    """A schema with the facts that a registry has about it."""

    kind: str
    text: str
    id: str | None = None
    """A number, or a GUID."""
    subject: str | None = None
    version: int | None = None
    references: tuple[Reference, ...] = ()
    origin: str = ""
    """The source of the schema, for messages."""
    guid: str | None = None
    """A second id, which headers use."""


class ValueReader(NamedTuple):
    """Reads the values of a schema."""

    schema: RegistrySchema
    kind: str
    name: str | None
    """The name of the record, if it is one."""
    avro: AvroType | None = None
    proto: ProtoFile | None = None
    json: JsonSchema | None = None
    """None if the schema cannot be used: JSON can be read without it."""


class AskedRegistry(Protocol):
    """A registry that is asked for unknown schemas. It raises no errors."""

    failure: str | None
    """Why requests have ended, in one line."""

    def of_id(self, id: str) -> RegistrySchema | None:
        """The schema of an id."""

    def of_version(self, subject: str, version: int) -> RegistrySchema | None:
        """A version of a subject."""


class Schemas:
    """All known schemas. Can be copied into other processes."""

    def __init__(
        self, schemas: Iterable[RegistrySchema] = (), files: Mapping[str, str] | None = None
    ) -> None:
        self._by_id: dict[str, RegistrySchema] = {}
        self._by_subject: dict[str, dict[int, RegistrySchema]] = {}
        self.files = dict(files or {})
        """Files of Protobuf and JSON Schemas by path, for imports and references."""
        self._readers: dict[str, ValueReader | None] = {}
        """Readers by id; None if there is no usable schema."""
        self._subject_readers: dict[str, ValueReader | None] = {}
        self._named: dict[str, RegistrySchema] = {}
        """Avro schemas by the full names of their types."""
        self._unnamed: list[RegistrySchema] = []
        """Schemas whose type names were not read yet."""
        self._characters = self._count = 0
        self.problems: list[str] = []
        """Faults of schemas, one line each, for the user. The caller that reports them empties the list."""
        self.registry: AskedRegistry | None = None
        self._reported: set[str] = set()
        """The registry's failures that were added to ``problems`` before."""
        for schema in schemas:
            self.add(schema)

    def __len__(self) -> int:
        return self._count

    def all(self) -> list[RegistrySchema]:
        """Every schema, once."""
        found = {id(each): each for each in self._by_id.values()}
        for versions in self._by_subject.values():
            found |= {id(each): each for each in versions.values()}
        return list(found.values())

    def add(self, schema: RegistrySchema) -> None:
        """Add a schema; a later one with the same id replaces it."""
        self._characters += len(schema.text)
        if self._count >= MOST_SCHEMAS or self._characters > MOST_CHARACTERS:
            return
        self._count += 1
        if schema.kind == AVRO:
            self._unnamed.append(schema)
        if schema.id is not None:
            self._by_id[schema.id] = schema
            self._readers.pop(schema.id, None)
        if schema.guid is not None:
            self._by_id[schema.guid] = schema
            self._readers.pop(schema.guid, None)
        if schema.subject is not None:
            versions = self._by_subject.setdefault(schema.subject, {})
            versions[schema.version or _NO_VERSION] = schema
            self._subject_readers.pop(schema.subject, None)

    def learn(self, key: bytes | None, value: bytes | None) -> None:
        """Add the schema in a record of :data:`TOPIC`; other records are ignored."""
        if not key or not value:
            return
        try:
            what, said = json.loads(key), json.loads(value)
        except (ValueError, RecursionError):
            return
        if isinstance(what, dict) and what.get("keytype") == "SCHEMA" and isinstance(said, dict):
            found = schema_of(said, TOPIC)
            if found is not None:
                self.add(found)

    def reader(self, id: str, may_ask: bool = False) -> ValueReader | None:
        """The reader of the schema with an id; None if it is unknown or cannot be used.

        :param may_ask: whether to ask the registry, if there is one.
        """
        try:
            return self._readers[id]
        except KeyError:
            pass
        schema = self._by_id.get(id)
        if schema is None and may_ask and self.registry is not None and self.registry.failure is None:
            schema = self._added(self.registry.of_id(id))
            if schema is None and len(self._readers) < MOST_SCHEMAS:
                self._readers[id] = None  # ask for each id only once
        if schema is None:
            return None
        found = self._readers[id] = self._reader(schema)
        return found

    def _added(self, schema: RegistrySchema | None) -> RegistrySchema | None:
        """Add the registry's answer, or report its failure, and return the answer."""
        assert self.registry is not None
        if schema is not None:
            self.add(schema)
        elif self.registry.failure is not None and self.registry.failure not in self._reported:
            self._reported.add(self.registry.failure)
            self.problems.append(self.registry.failure)
        return schema

    def knows(self, id: str) -> bool:
        """Whether there is a schema with this id, even if it cannot be used."""
        return id in self._by_id

    def reader_of_subject(self, subject: str) -> ValueReader | None:
        """The reader of a subject's newest version."""
        if subject not in self._by_subject:
            return None
        if subject not in self._subject_readers:
            versions = self._by_subject[subject]
            self._subject_readers[subject] = self._reader(versions[max(versions)])
        return self._subject_readers[subject]

    def paths(self) -> dict[str, str]:
        """The names inside values of all schemas, ``customer.id``, with their types; up to a limit."""
        out: dict[str, str] = {}
        for schema in self.all():
            if len(out) >= _MOST_PATHS:
                break
            out |= paths_of(self._reader(schema))
        return out

    def _reader(self, schema: RegistrySchema) -> ValueReader | None:
        try:
            return self.parsed(schema)
        except (SchemaError, RecursionError) as error:
            reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
            self.problems.append(f"{schema.origin or 'a schema'}: {_named(schema)} cannot be used: {reason}")
            return ValueReader(schema, JSON, None) if schema.kind == JSON else None

    def parsed(self, schema: RegistrySchema) -> ValueReader:
        """The reader of a schema.

        :raises SchemaError: the schema cannot be used.
        """
        if schema.kind == AVRO:
            avro = self._avro(schema)
            return ValueReader(schema, AVRO, avro.name if avro.kind == RECORD else None, avro=avro)
        if schema.kind == PROTOBUF:
            proto = self._proto(schema)
            return ValueReader(schema, PROTOBUF, proto.messages[0].name, proto=proto)
        texts = self._files_named_in(schema.text)
        texts |= {reference.name: other.text for reference, other in self._referenced(schema)}
        return ValueReader(schema, JSON, None, json=json_schema(schema.text, texts))

    def _files_named_in(self, text: str) -> dict[str, str]:
        """The JSON Schemas in the folder that a schema may refer to, by path, and the schemas that those
        refer to."""
        found: dict[str, str] = {}
        others = {path: other for path, other in self.files.items() if path.endswith(".json")}
        waiting = [text]
        while waiting and others:
            here = waiting.pop()
            for path in [each for each in others if each.rpartition("/")[2] in here]:
                if len(found) < _MOST_REFERENCES:
                    waiting.append(others[path])
                found[path] = others.pop(path)
                found.setdefault(path.rpartition("/")[2], found[path])
        return found

    def _proto(self, schema: RegistrySchema) -> ProtoFile:
        texts: dict[str, str] = {}
        for reference, other in self._referenced(schema):
            texts[reference.name] = other.text

        def import_of(name: str) -> str | None:
            return texts.get(name) or self.files.get(name) or KNOWN.get(name)

        found = parse_proto(schema.text, import_of)
        if not found.messages:
            raise SchemaError("there is no message in it")
        return found

    def _avro(self, schema: RegistrySchema) -> AvroType:
        named: dict[str, AvroType] = {}
        for _, other in reversed(self._referenced(schema)):
            avro_type(other.text, named)
        return self._resolved(schema.text, named, set())

    def _resolved(self, text: str, named: dict[str, AvroType], tried: set[str]) -> AvroType:
        """The type of a text. A type that it needs may be in another schema of the folder."""
        while True:
            before = dict(named)
            try:
                return avro_type(text, named)
            except SchemaError as error:
                name = error.missing
                other = None if name is None or name in tried else self._by_name().get(name)
                if other is None or name is None or len(tried) >= _MOST_REFERENCES:
                    raise
                tried.add(name)
                named.clear()
                named |= before
                self._resolved(other.text, named, tried)

    def _by_name(self) -> dict[str, RegistrySchema]:
        """The newest schema of each name."""
        for schema in self._unnamed:
            name = _full_name(schema)
            if name is not None:
                self._named[name] = schema
        self._unnamed.clear()
        return self._named

    def _referenced(self, schema: RegistrySchema) -> list[tuple[Reference, RegistrySchema]]:
        """The schemas that a schema refers to, directly or indirectly."""
        found: list[tuple[Reference, RegistrySchema]] = []
        seen: set[Reference] = set()
        waiting = list(schema.references)
        while waiting and len(found) < _MOST_REFERENCES:
            reference = waiting.pop(0)
            if reference in seen:
                continue
            seen.add(reference)
            versions = self._by_subject.get(reference.subject, {})
            other = versions.get(reference.version) or versions.get(_NO_VERSION)
            if other is None and self.registry is not None:
                other = self._added(self.registry.of_version(reference.subject, reference.version))
            if other is None:
                raise SchemaError(
                    f"refers to {reference.subject} version {reference.version}, which is not known"
                )
            found.append((reference, other))
            waiting += other.references
        return found


def paths_of(reader: ValueReader | None, message: ProtoMessage | None = None) -> dict[str, str]:
    """The names inside the values of a schema, with their types; up to a limit.

    :param message: the message of a Protobuf file to use; None for all.
    """
    out: dict[str, str] = {}
    if reader is not None and reader.avro is not None:
        _avro_paths(reader.avro, "", out, 0)
    elif reader is not None and reader.proto is not None:
        for each in reader.proto.messages if message is None else (message,):
            _proto_paths(each, "", out, 0)
    return out


_MOST_PATHS, _DEEPEST_PATH = 1_000, 6


def _avro_paths(avro: AvroType, prefix: str, out: dict[str, str], depth: int) -> None:
    for inner in (*avro.types, avro.item) if avro.kind in (UNION, ARRAY) else ():
        if inner is not None and depth < _DEEPEST_PATH:
            _avro_paths(inner, prefix, out, depth + 1)
    if avro.kind == RECORD and depth < _DEEPEST_PATH:
        for name, field in zip(avro.names, avro.types, strict=True):
            if len(out) < _MOST_PATHS:
                out.setdefault(prefix + name, field.name)
                _avro_paths(field, f"{prefix}{name}.", out, depth + 1)


def _proto_paths(message: ProtoMessage, prefix: str, out: dict[str, str], depth: int) -> None:
    for field in message.fields if depth < _DEEPEST_PATH else ():
        if len(out) < _MOST_PATHS:
            out.setdefault(prefix + field.name, field.kind)
            if field.message is not None and not field.is_map:
                _proto_paths(field.message, f"{prefix}{field.name}.", out, depth + 1)


def _named(schema: RegistrySchema) -> str:
    if schema.id is not None:
        return f"schema {schema.id}"
    return "the schema" if schema.subject is None else f"the schema of {schema.subject}"


def _full_name(schema: RegistrySchema) -> str | None:
    try:
        said = json.loads(schema.text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or not isinstance(said.get("name"), str):
        return None
    name, space = said["name"], said.get("namespace")
    return f"{space}.{name}" if isinstance(space, str) and space and "." not in name else name


def schema_of(said: Mapping[str, Any], origin: str) -> RegistrySchema | None:
    """A schema in a registry's form: ``{"subject", "version", "id", "schemaType", "schema", "references"}``.
    None for anything else."""
    text, kind, id = said.get("schema"), said.get("schemaType") or AVRO, said.get("id")
    if not isinstance(text, str) or kind not in KINDS:
        return None
    listed = said.get("references") or ()
    if not isinstance(listed, list | tuple):
        return None
    references = []
    for each in listed:
        if not isinstance(each, dict):
            return None
        name, subject, version = each.get("name"), each.get("subject"), each.get("version")
        if isinstance(name, str) and isinstance(subject, str) and isinstance(version, int):
            references.append(Reference(name, subject, version))
    subject, version = said.get("subject"), said.get("version")
    return RegistrySchema(
        str(kind),
        text,
        str(id) if isinstance(id, int) and not isinstance(id, bool) else None,
        subject if isinstance(subject, str) else None,
        version if isinstance(version, int) else None,
        tuple(references),
        origin,
        id_of_name(guid) if isinstance(guid := said.get("guid"), str) else None,
    )


def id_of_name(name: str) -> str | None:
    """The id in a file's name: a number, or a GUID, with or without hyphens; None if the name is a
    subject."""
    if name.isascii() and name.isdecimal():
        return str(int(name[:20]))
    try:
        found = UUID(name)
    except ValueError:
        return None
    return str(found) if "-" in name else name.lower()
