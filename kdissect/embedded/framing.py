"""The framings by which Kafka marks the class of a struct: read and written.

| framing | before the struct | used by |
|---|---|---|
| coordinator | key: int16 record type; value: int16 version | topics of the coordinators. |
| metadata | varints: frame version (1), record type, version | ``__cluster_metadata``, remote log metadata. |
| version | int16 version | consumer and Connect protocol, principals, transaction markers. |
| own | none: the struct's first field is its version | Streams, KRaft's control records. |

Only the definitions map a record type to a class. A type or version that they do not have is reported, and
its bytes stay undecoded.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from kdissect.embedded import streams
from kdissect.embedded.decoded import Embedded, LeadingWord, opaque, read_struct
from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import DecodeError
from kdissect.protocol import apis
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.encode import encode, write_unsigned_varint
from kdissect.protocol.json_form import from_json
from kdissect.protocol.schema import Struct, data_struct, era_data_structs
from kdissect.wording import plural

FRAME_VERSION = 1
"""The only frame version (``MetadataRecordSerde``, KIP-631)."""


class InternalRecord(NamedTuple):
    """A record of an internal topic, or a pair of blobs in its form."""

    key: Embedded | None
    value: Embedded | None


@cache
def record_types(group: str) -> dict[int, str]:
    """The class of each record type in a group of the definitions. Coordinators' classes come in pairs; the
    result has the stem of their names, without ``Key`` and ``Value``."""
    found: dict[int, str] = {}
    for name in apis.data_names():
        if apis.data_group(name) != group:
            continue
        number = apis.data_record_type(name)
        if name.endswith("Key"):
            # In definitions before 4.0, the type is the only version of the key.
            found[apis.data_versions(name).start if number is None else number] = name.removesuffix("Key")
        elif number is not None and not name.endswith("Value"):
            found[number] = name
    return found


def unknown(number: int) -> str:
    """The name of a record type that the definitions do not have."""
    return f"Unknown({number})"


# -- reading ----------------------------------------------------------------------------------------


def read_coordinator(
    group: str, key: bytes | None, value: bytes | None, stem: str | None, limits: Limits = DEFAULTS
) -> InternalRecord:
    """A record of a coordinator's topic; a null value is a tombstone.

    :param stem: the name of the record, needed only if there is no key.
    """
    found = None if key is None else _coordinator_key(group, key, limits)
    if found is not None:
        stem = found.name
    if value is None:
        return InternalRecord(found, None)
    cursor = Cursor(value, limits=limits)
    try:
        version = _word(cursor, "int16", "(version)")
    except DecodeError as error:
        return InternalRecord(found, opaque(stem or "", None, value, (), error.kind, error.reason))
    if stem is None:
        reason = "a record without a key, so its type is unknown"
        return InternalRecord(found, opaque("", version.value, value, [version], "embedded", reason))
    if stem not in record_types(group).values():
        reason = "not decoded, because its type is unknown"
        return InternalRecord(found, opaque(stem, version.value, value, [version], "unknown-version", reason))
    body = _body(stem + "Value", version.value, cursor, [version], lenient=False)
    return InternalRecord(found, body._replace(name=stem))


def _coordinator_key(group: str, key: bytes, limits: Limits) -> Embedded:
    cursor = Cursor(key, limits=limits)
    try:
        kind = _word(cursor, "int16", "(record type)")
    except DecodeError as error:
        return opaque("", None, key, (), error.kind, error.reason)
    stem = record_types(group).get(kind.value)
    if stem is None:
        reason = f"no record of the {group} topic has type {kind.value}"
        return opaque(unknown(kind.value), None, key, [kind], "unknown-version", reason)
    version = apis.data_versions(stem + "Key").start
    return _body(stem + "Key", version, cursor, [kind], lenient=False)._replace(name=stem)


def read_metadata(group: str, value: bytes, limits: Limits = DEFAULTS) -> Embedded:
    """The value of a record of ``__cluster_metadata`` or of the remote log metadata topic."""
    cursor = Cursor(value, limits=limits)
    words: list[LeadingWord] = []
    try:
        words.append(_word(cursor, "unsigned varint", "(frame version)"))
        if words[0].value != FRAME_VERSION:
            reason = f"frame version {words[0].value}, only {FRAME_VERSION} is known"
            return opaque("", None, value, words, "unknown-version", reason)
        words.append(_word(cursor, "unsigned varint", "(record type)"))
        words.append(_word(cursor, "unsigned varint", "(version)"))
    except DecodeError as error:
        return opaque("", None, value, words, error.kind, error.reason)
    name = record_types(group).get(words[1].value)
    if name is None:
        reason = f"no record of the {group} definitions has type {words[1].value}"
        return opaque(unknown(words[1].value), words[2].value, value, words, "unknown-version", reason)
    return _body(name, words[2].value, cursor, words, lenient=False)


def read_versioned(name: str, data: bytes, lenient: bool = False, limits: Limits = DEFAULTS) -> Embedded:
    """A struct with its int16 version before it.

    :param lenient: read an unknown newer version as the newest known one, as Kafka does with these bytes.
        More bytes may follow then; a fault says so.
    """
    cursor = Cursor(data, limits=limits)
    try:
        version = _word(cursor, "int16", "(version)")
    except DecodeError as error:
        return opaque(name, None, data, (), error.kind, error.reason)
    return _body(name, version.value, cursor, [version], lenient)


def read_own(name: str, data: bytes, limits: Limits = DEFAULTS) -> Embedded:
    """A struct whose first field is its version."""
    cursor = Cursor(data, limits=limits)
    try:
        version = _word(cursor, data_struct(name, apis.data_versions(name).start).fields[0].type, "version")
    except DecodeError as error:
        return opaque(name, None, data, (), error.kind, error.reason)
    if not _structs(name, version.value):
        return _no_struct(name, version.value, data, [version])
    cursor.position = 0
    return _body(name, version.value, cursor, (), lenient=False)


def _word(cursor: Cursor, kind: str, name: str) -> LeadingWord:
    start = cursor.position
    if kind == "int16":
        value = cursor.read_int16()
    else:
        value = cursor.read_int32() if kind == "int32" else cursor.read_unsigned_varint()
    return LeadingWord(name, kind, value, start, cursor.position)


def _structs(name: str, version: int) -> tuple[Struct, ...]:
    """The possible layouts of a version of a class: the newest release's, then those of older ones."""
    try:
        return (data_struct(name, version), *era_data_structs(name, version))
    except LookupError:
        return ()


def _body(
    name: str, version: int, cursor: Cursor, words: list[LeadingWord] | tuple[LeadingWord, ...], lenient: bool
) -> Embedded:
    newest = apis.data_versions(name).stop - 1
    if lenient and version > newest:
        found = read_struct(name, version, cursor, words, _structs(name, newest))
        return _as_newer(found, newest)
    structs = _structs(name, version)
    if not structs:
        return _no_struct(name, version, cursor.data, words)
    return read_struct(name, version, cursor, words, structs)


def _as_newer(found: Embedded, newest: int) -> Embedded:
    """Report a newer version. Bytes after the last known field are no remainder: they belong to new
    fields."""
    rest = f", {plural(len(found.remainder), 'byte follows', 'bytes follow')}" if found.remainder else ""
    message = f"version {found.version} is newer than any known: read as version {newest}{rest}"
    note = fault("unknown-version", f"{found.name}: {message}", offset=0)
    return found._replace(faults=(note, *(each for each in found.faults if each.kind != "remainder")))


def _no_struct(
    name: str, version: int, data: bytes, words: list[LeadingWord] | tuple[LeadingWord, ...]
) -> Embedded:
    known = apis.data_versions(name)
    reason = f"version {version} is not known ({known.start} to {known.stop - 1} are)"
    return opaque(name, version, data, words, "unknown-version", reason)


# -- writing ----------------------------------------------------------------------------------------


def write_struct(name: str, version: int, obj: object) -> bytes:
    """A struct from its JSON, without framing.

    :raises ValueError: the JSON does not fit the definition; the message begins with the path.
    """
    try:
        struct = data_struct(name, version)
    except LookupError as error:
        raise ValueError(str(error)) from None
    if name == streams.ASSIGNMENT and isinstance(obj, dict):
        obj = streams.from_kafka(obj, version)
    return encode(struct, from_json(struct, obj))


def write_coordinator(
    group: str, stem: str, version: int | None, key: object, body: object
) -> tuple[bytes, bytes | None]:
    """Key and value of a coordinator's record; without a version, a tombstone."""
    types = {name: number for number, name in record_types(group).items()}
    if stem not in types:
        raise ValueError(f"name: the {group} definitions have no record {stem}")
    key_version = apis.data_versions(stem + "Key").start
    first = types[stem].to_bytes(2, "big") + write_struct(stem + "Key", key_version, key)
    return first, None if version is None else write_versioned(stem + "Value", version, body)


def write_metadata(group: str, name: str, version: int, body: object) -> bytes:
    """The value of a metadata record, with its frame."""
    types = {known: number for number, known in record_types(group).items()}
    if name not in types:
        raise ValueError(f"name: the {group} definitions have no record {name}")
    struct = write_struct(name, version, body)
    out = bytearray()
    for word in (FRAME_VERSION, types[name], version):
        write_unsigned_varint(out, word)
    return bytes(out) + struct


def write_versioned(name: str, version: int, body: object) -> bytes:
    """A struct with its int16 version before it."""
    struct = write_struct(name, version, body)
    return version.to_bytes(2, "big", signed=True) + struct
