"""Keys and values of records: format, schema, compression, by topic and direction.

This statistic unpacks every record, so no other statistic depends on it. Rules on it run with ``explain
--deep`` only. No key or value is kept: only its form, and the number and the places of such records.

Each row is one form: a topic has several rows if its records differ. The ``_schemas`` records in the capture
give schema ids their names, wherever in the capture they are.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from kdissect.analysis.counters import Span
from kdissect.analysis.declared import EXCHANGE, TOPIC_COLUMN, column, first_and_last
from kdissect.analysis.fold import OneTable, Row
from kdissect.analysis.frequent import KeyCount, RecordSpot, Top, digest_of, tops
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.packed import packed
from kdissect.analysis.rows import Rows
from kdissect.analysis.speakers import address
from kdissect.embedded.internal import family_of_topic
from kdissect.exchange import Exchange, RecordSetPlace
from kdissect.lazy import Later
from kdissect.limits import DEFAULTS, Limits
from kdissect.names import METADATA_TOPIC, is_metadata_topic
from kdissect.record.batch import Batch
from kdissect.record.sets import read_record_set

if TYPE_CHECKING:
    from kdissect.payload import decoder, recognise, schemas
    from kdissect.payload.decoder import DecodedPayload, PayloadDecoder
else:  # twenty modules, which only this statistic needs
    decoder = Later("kdissect.payload.decoder")
    recognise = Later("kdissect.payload.recognise")
    schemas = Later("kdissect.payload.schemas")

DIRECTIONS = {"Produce": "produce", "Fetch": "fetch", "ShareFetch": "share"}
MOST_PRODUCERS = 8
"""The most clients that a row names."""
MOST_UNKNOWN_IDS = 5
"""The most unknown schema ids of a topic. If more different ones occur, the bytes are numbers and not schema
ids."""
NULL, UNKNOWN = "null", "unknown"
_SCHEMA_FIRST = re.compile(r'\s*\{\s*"schema"\s*:\s*')


class Form(NamedTuple):
    """The key of a row of a topic."""

    topic: Topic
    part: str
    direction: str
    format: str
    registry: str
    schema: str
    envelope: str
    compression: str


@packed
@dataclass(slots=True)
class _SeenForms:
    records: int = 0
    bytes: int = 0
    packed: int = 0
    """Records in batches that are compressed."""
    schema_bytes: int = 0
    undecodable: int = 0
    problems: set[str] = field(default_factory=set)
    first: RecordSpot | None = None
    last: RecordSpot | None = None
    producers: set[str] = field(default_factory=set)
    confidences: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    exchanges: Span = field(default_factory=Span)

    def merge(self, later: _SeenForms) -> None:
        self.records += later.records
        self.bytes += later.bytes
        self.packed += later.packed
        self.schema_bytes += later.schema_bytes
        self.undecodable += later.undecodable
        self.problems = least_texts(self.problems | later.problems)
        self.producers = least_texts(self.producers | later.producers)
        self.names = least_texts(self.names | later.names)
        self.confidences |= later.confidences
        if later.first is not None:
            self.first = later.first if self.first is None else min(self.first, later.first)
        if later.last is not None:
            self.last = later.last if self.last is None else max(self.last, later.last)
        self.exchanges.merge(later.exchanges)


def least_texts(texts: set[str]) -> set[str]:
    """At most :data:`MOST_PRODUCERS` of the texts, independent of their order."""
    return texts if len(texts) <= MOST_PRODUCERS else set(sorted(texts)[:MOST_PRODUCERS])


class Payloads(OneTable[tuple[Any, ...], _SeenForms]):
    """The statistic ``payloads``."""

    apis = frozenset(DIRECTIONS)
    name = "payloads"
    about = "formats and schemas of keys and values (unpacks every record)"
    is_deep = True
    columns = (
        TOPIC_COLUMN,
        column("part", "text", "key or value"),
        column("direction", "text", "produce, fetch or share"),
        column("format", "text", "avro, protobuf, json, text …; null for null; unknown without its schema"),
        column("registry", "text", "framing before the data: confluent, apicurio, glue, azure, avro"),
        column("schema_id", "int64", "the schema's id, if it is a number"),
        column("schema_guid", "text", "the schema's id, if it is a GUID or a fingerprint"),
        column("schema_name", "text", "the record's name in the schema, if the schema is known"),
        column(
            "subject", "text", "the schema's subject and version, from records of _schemas in the capture"
        ),
        column("envelope", "text", "connect, debezium, cloudevents or otlp"),
        column(
            "compression",
            "text",
            "compression of each value by the application, in addition to that of the batch",
        ),
        column("records", "int64", "records"),
        column("bytes", "int64", "bytes of the keys or values"),
        column("packed_records", "int64", "records in compressed batches", rare=True),
        column("schema_bytes", "int64", "bytes of schemas inside the values", rare=True),
        column("undecodable", "int64", "records that do not match their schema", rare=True),
        column("problems", "texts", "what is wrong with these records"),
        column("first_partition", "int32", "partition of the first of these records"),
        column("first_offset", "int64", "offset of the first of these records, if the capture shows it"),
        column("last_partition", "int32", "partition of the last of these records"),
        column("last_offset", "int64", "offset of the last of these records"),
        column("keys", "int64", "number of different keys among the first 100,000", rare=True),
        column("top_records", "int64", "records with the most frequent of these keys", rare=True),
        column(
            "top_partition",
            "int32",
            "partition of the records with that key; null if there are several",
            rare=True,
        ),
        column("top_offset", "int64", "offset of the first record with that key", rare=True),
        column("producers", "texts", "clients that wrote these records: client id and address"),
        column("confidence", "text", "confidence in the format: certain, likely or possible"),
        column(
            "schemas",
            "text",
            "source of the schemas: given, registry, capture (all of _schemas), or null",
        ),
        column("exchanges", "int64s", "the first and the last exchange with such records", unit=EXCHANGE),
        *first_and_last("such record"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(_SeenForms, limits)
        self._labels = Labels(self.latest, limits)
        self._keys: Rows[tuple[Any, ...], KeyCount] = Rows(KeyCount, self.room)
        """The keys' counts by form and digest. Keys beyond the limit are not counted."""
        self._decoder = decoder.PayloadDecoder(limits=limits)
        self._subjects: dict[str, str] = {}
        """The subject of each schema id in ``_schemas`` records; of several, the alphabetically first."""
        self._has_start = False
        """Whether the capture has the ``_schemas`` topic from its beginning."""

    def use(self, own: PayloadDecoder) -> None:
        """Decode with these schemas and rules. Call it before the first event."""
        self._decoder = own

    def _exchange(self, exchange: Exchange) -> None:
        direction = DIRECTIONS.get(exchange.api or "")
        if direction is None:
            return
        at = 0
        for place in exchange.record_sets():
            assigned = exchange.assigned_base_offset(place)
            for batch in read_record_set(place.data, self.limits).batches:
                if not batch.is_control:
                    at = self._batch(exchange, direction, place, batch, assigned, at)
                if assigned is not None:
                    assigned = None if batch.count is None else assigned + batch.count

    def _batch(
        self,
        exchange: Exchange,
        direction: str,
        place: RecordSetPlace,
        batch: Batch,
        assigned: int | None,
        at: int,
    ) -> int:
        name = place.topic or ""
        if name == schemas.TOPIC:
            self._learn(batch, assigned)
        if is_metadata_topic(place.topic, place.topic_id):
            name = METADATA_TOPIC
        if family_of_topic(name) is not None or name == schemas.TOPIC:
            return at
        topic = self._labels.topic(place.topic, place.topic_id)
        ns, number = exchange.begun_ns, exchange.number
        producer = f"{exchange.client_id or '(no client id)'}@{address(exchange.client)}"
        is_packed = batch.codec not in (None, "none")
        shift = None if assigned is None or batch.base_offset is None else assigned - batch.base_offset
        for record in batch.records():
            offset = (
                record.offset if direction != "produce" else -1 if shift is None else record.offset + shift
            )
            where = RecordSpot(ns, number, at, -1 if place.partition is None else place.partition, offset)
            at += 1
            for part, data in (("key", record.key), ("value", record.value)):
                found = None
                if data is not None:
                    found = self._decoder.decode(name, part, data, record.headers)
                form = _form(topic, part, direction, found)
                row = self._rows.row(form)
                if row is None:
                    continue
                if part == "key" and data is not None:
                    count = self._keys.row((*form, digest_of(data)))
                    if count is not None:
                        count.add(where)
                _count(row, data or b"", found, where, is_packed)
                row.exchanges.add(ns, number)
                if direction == "produce":
                    row.producers = least_texts(row.producers | {producer})
        return at

    def _learn(self, batch: Batch, assigned: int | None) -> None:
        """Note the subject of each schema in a batch of ``_schemas``."""
        for record in batch.records():
            if record.offset == 0 and assigned is None:
                self._has_start = True
            if not record.value or len(self._subjects) >= self.limits.rows:
                continue
            try:
                said = json.loads(record.value)
            except (ValueError, RecursionError):
                continue
            found = schemas.schema_of(said, schemas.TOPIC) if isinstance(said, dict) else None
            if found is not None and found.id is not None:
                text = f"{found.subject} version {found.version}"
                self._subjects[found.id] = min(text, self._subjects.get(found.id, text))

    def merge(self, later: Self) -> None:
        self._labels.merge(later._labels)
        for id, text in later._subjects.items():
            self._subjects[id] = min(text, self._subjects.get(id, text))
        self._has_start = self._has_start or later._has_start
        self._keys.merge(later._keys)
        super().merge(later)

    def result(self) -> list[Row]:
        rows = self._without_numbers(self._labels.by_name(self._rows.rows, _SeenForms))
        order = sorted(rows.items(), key=lambda each: tuple(str(word or "") for word in each[0]))
        top = tops(self._labels.by_name(self._keys.rows, KeyCount))
        return [self._row(key, seen, top.get(key)) for key, seen in order]

    def _without_numbers(self, rows: dict[Any, _SeenForms]) -> dict[Any, _SeenForms]:
        """The rows, but with one row for all forms of a topic with too many unknown ids: those are no ids."""
        groups: dict[tuple[Any, ...], list[Any]] = {}
        for key, seen in rows.items():
            topic, part, direction, format, _registry, schema, _envelope, compression = key
            is_possible = format == UNKNOWN and seen.confidences == {recognise.POSSIBLE}
            if is_possible and schema not in self._subjects:
                groups.setdefault((topic, part, direction, compression), []).append(key)
        out = dict(rows)
        for (topic, part, direction, compression), keys in groups.items():
            if len(keys) > MOST_UNKNOWN_IDS:
                whole = Form(topic, part, direction, "binary", "", "", "", compression)
                into = out[whole] = _SeenForms()
                for each in (*([rows[whole]] if whole in rows else ()), *(out.pop(key) for key in keys)):
                    into.merge(each)
        return out

    def _row(self, key: tuple[Any, ...], seen: _SeenForms, top: Top | None) -> Row:
        topic, part, direction, format, registry, schema, envelope, compression = key
        first, last = seen.first, seen.last
        is_number = schema.isdecimal() and len(schema) < 19
        schemas = self._decoder.schemas
        source = "capture" if self._has_start else None
        if schemas.registry is not None and schemas.registry.failure is None:
            source = "registry"
        elif len(schemas):
            source = "given"
        return {
            "topic": topic,
            "part": part,
            "direction": direction,
            "format": format,
            "registry": registry or None,
            "schema_id": int(schema) if is_number else None,
            "schema_guid": None if is_number else schema or None,
            "schema_name": min(seen.names, default=None),
            "subject": self._subjects.get(schema),
            "envelope": envelope or None,
            "compression": compression or None,
            "records": seen.records,
            "bytes": seen.bytes,
            "packed_records": seen.packed,
            "schema_bytes": seen.schema_bytes,
            "undecodable": seen.undecodable,
            "problems": sorted(seen.problems),
            "first_partition": _or_none(-1 if first is None else first.partition),
            "first_offset": _or_none(-1 if first is None else first.offset),
            "last_partition": _or_none(-1 if last is None else last.partition),
            "last_offset": _or_none(-1 if last is None else last.offset),
            "keys": None if top is None else top.keys,
            "top_records": None if top is None else top.records,
            "top_partition": _or_none(-1 if top is None else top.partition),
            "top_offset": _or_none(-1 if top is None else top.offset),
            "producers": sorted(seen.producers),
            "confidence": max(seen.confidences, key=recognise.CONFIDENCES.index, default="certain"),
            "schemas": source,
            "exchanges": seen.exchanges.numbers,
            "first_ns": seen.exchanges.first_ns,
            "last_ns": seen.exchanges.last_ns,
        }


def _or_none(number: int) -> int | None:
    return None if number < 0 else number


def _form(topic: Topic, part: str, direction: str, found: DecodedPayload | None) -> Form:
    if found is None:
        return Form(topic, part, direction, NULL, "", "", "", "")
    framing = found.framing
    return Form(
        topic,
        part,
        direction,
        found.format,
        "" if framing is None else framing.registry,
        "" if framing is None else framing.schema,
        found.envelope or "",
        found.compression or ("" if framing is None else framing.compression or ""),
    )


def _count(
    row: _SeenForms, data: bytes, found: DecodedPayload | None, where: RecordSpot, is_packed: bool
) -> None:
    row.records += 1
    row.bytes += len(data)
    row.packed += is_packed
    row.first = where if row.first is None else min(row.first, where)
    row.last = where if row.last is None else max(row.last, where)
    if found is None:
        return
    row.confidences.add(found.confidence)
    if found.name is not None:
        row.names = least_texts(row.names | {found.name})
    if found.problem is not None and not found.is_unknown:
        row.undecodable += 1
        row.problems = least_texts(row.problems | {found.problem})
    if found.envelope is not None and found.envelope.startswith("connect") and not found.compression:
        row.schema_bytes += _schema_bytes(data)


def _schema_bytes(data: bytes) -> int:
    """The size of the schema that Connect's ``JsonConverter`` writes before the payload."""
    text = data.decode("utf-8", "replace")
    begins = _SCHEMA_FIRST.match(text)
    if begins is None:
        return 0
    try:
        _, end = json.JSONDecoder().raw_decode(text, begins.end())
    except (ValueError, RecursionError):
        return 0
    return len(text[begins.end() : end].encode("utf-8", "replace"))
