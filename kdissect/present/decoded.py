"""Keys and values of records, decoded: into rows, and into lines of NDJSON many at a time.

Without decoding nothing here runs, and the decoders are not even imported.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from kdissect.lazy import Later
from kdissect.model import DecodeError
from kdissect.names import Names
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.json_form import dumps
from kdissect.protocol.json_text import JsonText
from kdissect.protocol.topics import partition_of

if TYPE_CHECKING:
    from kdissect.payload import avro_text, avro_values, decoder, framing, recognise, schemas
else:
    avro_text, avro_values = Later("kdissect.payload.avro_text"), Later("kdissect.payload.avro_values")
    decoder, framing = Later("kdissect.payload.decoder"), Later("kdissect.payload.framing")
    recognise, schemas = Later("kdissect.payload.recognise"), Later("kdissect.payload.schemas")

COLUMNS = ("keyDecoded", "valueDecoded", "keyFormat", "valueFormat")
"""The columns that are filled here: the last of the table, in their order."""


def topic_of(ancestors: tuple[dict[str, Any], ...], names: Names) -> str:
    """The name of the topic of these structs, outermost first; empty if it is unknown.

    :param names: the names of topic ids.
    """
    topic, topic_id, _ = partition_of(ancestors)
    return topic or (names.get(topic_id) if topic_id is not None else None) or ""


def add_decoded(row: dict[str, Any], topic: str, payloads: decoder.PayloadDecoder) -> None:
    """Add :data:`COLUMNS` to a row of records, by its shown values: a secret that is hidden there is not
    decoded either."""
    key, value, headers = row["key"], row["value"], row["headers"]
    if topic == schemas.TOPIC and payloads.learns:
        payloads.schemas.learn(key, value)
    for side, data in (("key", key), ("value", value)):
        if data is not None:
            found = payloads.decode(topic, side, data, headers)
            row[f"{side}Decoded"] = found.value
            row[f"{side}Format"] = found.columns()


class MeantValue(NamedTuple):
    """A key or value that is shown by its meaning instead of its bytes."""

    name: str
    """``OffsetCommit v3``, ``shop.Order``, ``cbor``."""
    about: str
    """Further information on it; empty if there is none."""
    value: Any
    """The value for JSON."""


_AS_THEY_ARE = ("text", "json", "xml", "uuid")
"""Formats whose bytes are readable as they are, unless there are other bytes around them."""


def part_of(row: dict[str, Any], side: str) -> MeantValue | None:
    """The meaning of a key or value of a row, if it is decoded and differs from what its bytes show.

    It may come from a topic of Kafka's own, or be decoded by a schema, a rule or its form.
    """
    value, told = row.get(f"{side}Decoded"), row.get(f"{side}Format")
    if value is None:
        return None
    if told is None:
        version = "" if value["version"] is None else f" v{value['version']}"
        return MeantValue(f"{value['name'] or 'Unknown'}{version}", "", value["data"])
    around = [str(told[name]) for name in ("envelope", "compression") if name in told]
    if told["format"] in _AS_THEY_ARE and not around and "schema" not in told:
        return None
    name = told.get("name", told["format"])
    if name != told["format"]:
        around.insert(0, told["format"])
    if "schema" in told:
        around.append(f"schema {told['schema']}")
    if told["confidence"] != recognise.CERTAIN:
        around.append(told["confidence"])
    if "problem" in told:
        around.append(told["problem"])
    return MeantValue(name, ", ".join(around), value)


class Texts:
    """
    :data:`COLUMNS` of records, as the end of a line of JSON.

    The text for the format is the same for nearly all records of a topic, so it is kept.
    """

    def __init__(self, payloads: decoder.PayloadDecoder) -> None:
        self._decoder = payloads
        self._texts: dict[tuple[Any, ...], bytes] = {}
        self._ready: dict[tuple[str, str, bytes], tuple[avro_values.AvroType, bytes]] = {}
        """By topic, side and framing: the type that writes values directly, and the text for their format."""
        self._unsaid: dict[tuple[str, str, int], bool] = {}
        """By topic, side and number of known schemas: the result of :meth:`_may_be_text`."""

    def write(
        self, out: JsonText, topic: str, key: bytes | None, value: bytes | None, headers: framing.Headers
    ) -> None:
        """Write the columns after the others: a comma before each, and the brace at the end."""
        if topic == schemas.TOPIC and self._decoder.learns:
            self._decoder.schemas.learn(key, value)
            self._ready.clear()
        told = b""
        is_told = bool(headers) and framing.may_describe(headers)
        if key is not None:
            told = b',"keyFormat":' + self._write(out, topic, "key", key, headers, is_told)
        if value is not None:
            told += b',"valueFormat":' + self._write(out, topic, "value", value, headers, is_told)
        out.put(told)
        out.put(b"}\n")

    def _write(
        self, out: JsonText, topic: str, side: str, data: bytes, headers: framing.Headers, is_told: bool
    ) -> bytes:
        """Write a decoded key or value; return the text for its format.

        :param is_told: whether headers may name the format.
        """
        before = _BEFORE[side]
        ready = None if is_told else self._ready.get((topic, side, data[:_FRAMING]))
        if (
            ready is not None
            and len(data) > _FRAMING
            and not (data[3] == 0 == data[2] and framing.of_zeros(data))
        ):
            start = out.size()
            out.put(before)
            cursor = Cursor(data, _FRAMING)
            cursor.elements_left = avro_values.values_left(len(data) - _FRAMING)
            try:
                avro_text.write_value(out, ready[0], cursor)
                if cursor.position == cursor.end:
                    return ready[1]
            except DecodeError:
                pass  # the decoder reports what is wrong
            out.cut(start)
        elif not is_told and _is_word(data) and self._may_be_text(topic, side):
            out.put(before)
            out.string(data, 0, len(data))
            return _text()
        found = self._decoder.decode(topic, side, data, headers)
        if found.value is not None:
            out.put(before)
            out.put(dumps(found.value).encode("ascii"))
        told = self._format(found)
        if ready is None and not is_told:
            self._get_ready(topic, side, data, found, told)
        return told

    def _may_be_text(self, topic: str, side: str) -> bool:
        """Whether the format was not given: there is no rule, and no schema of the subject."""
        schemas = self._decoder.schemas
        key = topic, side, len(schemas)
        found = self._unsaid.get(key)
        if found is None:
            found = self._decoder.rule(topic, side) is None
            found = found and schemas.reader_of_subject(f"{topic}-{side}") is None
            if len(self._unsaid) < _MOST_KEPT:
                self._unsaid[key] = found
        return found

    def _get_ready(
        self, topic: str, side: str, data: bytes, found: decoder.DecodedPayload, told: bytes
    ) -> None:
        """Remember the type that writes values with the same beginning."""
        framing = found.framing
        if framing is None or found.problem is not None or found.envelope is not None:
            return
        if framing.registry != "confluent" or framing.size != _FRAMING or self._decoder.rule(topic, side):
            return
        reader = self._decoder.schemas.reader(framing.schema)
        if reader is None or reader.avro is None or not avro_text.can_be_written(reader.avro):
            return
        if not (reader.name or "").endswith(decoder.ENVELOPE) and len(self._ready) < _MOST_KEPT:
            self._ready[topic, side, data[:_FRAMING]] = reader.avro, told

    def _format(self, found: decoder.DecodedPayload) -> bytes:
        if found.problem is not None:
            return dumps(found.columns()).encode("ascii")
        told = (*found[:1], *found[2:7], found.is_unvalidated)
        text = self._texts.get(told)
        if text is None:
            text = dumps(found.columns()).encode("ascii")
            if len(self._texts) < _MOST_KEPT:
                self._texts[told] = text
        return text


def _is_word(data: bytes) -> bool:
    """Whether bytes are text and nothing else, as most keys are. :mod:`kdissect.payload.recognise` gives the
    same result, but takes longer."""
    return (
        data[:1].isalnum()
        and data.isascii()
        and len(data) != _UUID_TEXT
        and data.decode("ascii").isprintable()
    )


@cache
def _text() -> bytes:
    """The text for the format of plain text."""
    return dumps(decoder.DecodedPayload("text").columns()).encode("ascii")


_UUID_TEXT = 36
_MOST_KEPT = 4_096
_FRAMING = 5
"""The bytes of Confluent's framing."""
_BEFORE = {"key": b',"keyDecoded":', "value": b',"valueDecoded":'}
