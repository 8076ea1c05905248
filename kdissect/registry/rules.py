"""``--decode-as TOPIC=FORM`` → :class:`~kdissect.payload.decoder.DecodingRule`.

* ``orders*=avro:order.avsc``: a schema from a file.
* ``orders=protobuf:shop.proto#Order``: a message of a file.
* ``clicks:key=int64``: for keys. Without a side, a rule is for values.
* ``*=auto``: recognise the format by the bytes. This also takes back an earlier rule.
* ``raw``, ``json``, ``text``, ``uuid``, ``cbor`` …: a form without a schema.
* ``NAME``: a decoder that is installed (entry point ``kdissect.payloads``).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import entry_points
from math import isfinite
from typing import Any

from kdissect.payload.avro import SchemaError
from kdissect.payload.decoder import SIDES, DecodingRule, Span
from kdissect.payload.proto_types import ProtoFile, ProtoMessage
from kdissect.payload.recognise import FORMS
from kdissect.payload.schemas import AVRO, PROTOBUF, RegistrySchema, Schemas
from kdissect.registry.folders import LARGEST_FILE

GROUP = "kdissect.payloads"
"""The entry points: ``decode(bytes)`` returns a value that JSON can hold. It may instead return the value and
spans, tuples of name, start and end. It raises ValueError if the bytes have another form."""

WITH_SCHEMA = {"avro": AVRO, "protobuf": PROTOBUF}
WITHOUT = ("auto", "raw", *FORMS)


def installed() -> list[str]:
    """The names of decoders from other packages."""
    return sorted({each.name for each in entry_points(group=GROUP)})


def rule_of(text: str, schemas: Schemas) -> DecodingRule:
    """One rule.

    :param schemas: for the schema's references.
    :raises ValueError: the text has another form, or its schema cannot be used; the text says why.
    """
    where, is_there, form = text.partition("=")
    topic, has_side, side = where.rpartition(":") if where.endswith((":key", ":value")) else (where, "", "")
    side = side if has_side else "value"
    if not is_there or not topic or not form or side not in SIDES:
        raise ValueError("the form is TOPIC=avro:FILE, TOPIC=protobuf:FILE#Message, TOPIC:key=int64 …")
    name, has_file, rest = form.partition(":")
    if name in WITH_SCHEMA and has_file:
        return _of_file(topic, side, name, rest, schemas)
    if has_file:
        raise ValueError(f"{name!r} takes no file; avro and protobuf do")
    if name == "avro":
        return DecodingRule(topic, side, name)
    if name in WITHOUT:
        return DecodingRule(topic, side, name, decode=FORMS.get(name) if name != "json" else None)
    for entry in entry_points(group=GROUP):
        if entry.name == name:
            try:
                loaded = entry.load()
            except Exception as error:
                raise ValueError(f"the decoder {name} cannot be loaded: {type(error).__name__}") from None
            return DecodingRule(topic, side, name, decode=Plugin(loaded), has_spans=True)
    known = ", ".join(("avro:FILE", "protobuf:FILE#Message", *WITHOUT, *installed()))
    raise ValueError(f"there is no form {name!r}; there are {known}")


class Plugin:
    """A decoder from another package: bytes → the value and its spans."""

    def __init__(self, decode: Callable[[bytes], Any]) -> None:
        self._decode = decode

    def __call__(self, data: bytes) -> tuple[Any, tuple[Span, ...]]:
        found = self._decode(data)
        if not (isinstance(found, tuple) and len(found) == 2):
            return checked_json(found), ()
        value, spans = found
        told = tuple((str(name), int(start), int(end)) for name, start, end in spans)
        return checked_json(value), told


_DEEPEST, _MOST_VALUES = 100, 1_000_000


def checked_json(value: Any) -> Any:
    """Check and return a value made by another package, if JSON can hold it.

    :raises ValueError: JSON cannot hold it.
    """
    waiting, level, count = [value], 0, 0
    while waiting:
        inner: list[Any] = []
        for each in waiting:
            count += 1
            if isinstance(each, dict):
                if not all(isinstance(key, str) for key in each):
                    raise ValueError("a key is not text")
                inner += each.values()
            elif isinstance(each, list | tuple):
                inner += each
            elif isinstance(each, float):
                if not isfinite(each):
                    raise ValueError("a number that JSON cannot express")
            elif not isinstance(each, str | int | bool | None):
                raise ValueError(f"a value of type {type(each).__name__}")
        waiting, level = inner, level + 1
        if level > _DEEPEST or count > _MOST_VALUES:
            raise ValueError("too many values")
    return value


def _of_file(topic: str, side: str, form: str, rest: str, schemas: Schemas) -> DecodingRule:
    path, _, message = rest.partition("#") if form == "protobuf" else (rest, "", "")
    if not path:
        raise ValueError(f"a file is needed after {form}:")
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read(LARGEST_FILE)
    except UnicodeDecodeError:
        raise ValueError(f"{path}: cannot be read: it is not UTF-8") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror or error}") from None
    around = Schemas(schemas.all(), schemas.files | _beside(path)) if form == "protobuf" else schemas
    try:
        reader = around.parsed(RegistrySchema(WITH_SCHEMA[form], text, origin=path))
    except (SchemaError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise ValueError(f"{path}: {reason}") from None
    chosen = None
    if reader.proto is not None:
        chosen = _message(reader.proto, message, path) if message else reader.proto.messages[0]
    return DecodingRule(topic, side, form, reader, chosen)


def _beside(path: str) -> dict[str, str]:
    """The Protobuf files in a file's folder, which it may import."""
    found = {}
    folder = os.path.dirname(path) or "."
    for name in sorted(os.listdir(folder)):
        if name.endswith(".proto"):
            try:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    found[name] = file.read(LARGEST_FILE)
            except (OSError, UnicodeDecodeError):
                continue
    return found


def _message(file: ProtoFile, name: str, path: str) -> ProtoMessage:
    known = {full: each for full, each in file.named.items() if isinstance(each, ProtoMessage)}
    for full, message in known.items():
        if full == name or full.endswith(f".{name}"):
            return message
    raise ValueError(f"{path}: there is no message {name!r}; there are {', '.join(sorted(known)[:20])}")
