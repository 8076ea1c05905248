"""Values ↔ Kafka's JSON: the form of its generated JsonConverters, which brokers print in their request log.

Fields, including tagged ones, are in the order of the definition. A tagged field with its default value is
left out. Bytes are base64, and a records field prints as its size. Kafka's converter has no form for two
kinds of values; here they have one that can be read back. Unknown tagged fields are ``_unknownTaggedFields``,
and a string that is not UTF-8 is ``{"base64": …}``.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from json.encoder import encode_basestring_ascii
from math import isfinite, isinf
from typing import TYPE_CHECKING, Any

from kdissect.lazy import Later
from kdissect.protocol.schema import UNKNOWN_TAGS, Field, Struct, is_default

if TYPE_CHECKING:
    import decimal
else:
    decimal = Later("decimal")

Hook = Callable[[list[dict[str, Any]], Struct, Field, Any, dict[str, Any]], bool]
"""``hook(ancestors, struct, field, value, out)``: may write a field into ``out`` in its own way, and returns
whether it did. It is called for strings, bytes, records, and arrays of strings or bytes. ``ancestors`` are
the values of the structs around the field, the message's first."""

SIZE_SUFFIX = "SizeInBytes"


def to_json(struct: Struct, values: dict[str, Any], hook: Hook | None = None) -> dict[str, Any]:
    """Decoded values as Kafka's JSON, also the values of an incomplete message."""
    return _object(struct, values, hook, [])


def _object(
    struct: Struct, values: dict[str, Any], hook: Hook | None, ancestors: list[dict[str, Any]]
) -> dict[str, Any]:
    out: dict[str, Any] = {}
    ancestors.append(values)
    for field in struct.fields:
        if field.name not in values:
            continue
        value = values[field.name]
        if field.tag is not None and is_default(field, value):
            continue
        if field.struct is not None:
            if value is None:
                out[field.name] = None
            elif field.is_array:
                out[field.name] = [_object(field.struct, item, hook, ancestors) for item in value]
            else:
                out[field.name] = _object(field.struct, value, hook, ancestors)
        elif hook and field.type in _HOOKED and hook(ancestors, struct, field, value, out):
            pass
        elif field.is_array:
            out[field.name] = value and [_scalar(item) for item in value]
        elif field.type == "records" and value is not None:
            out[field.name + SIZE_SUFFIX] = len(value)
        else:
            out[field.name] = _scalar(value)
    ancestors.pop()
    if UNKNOWN_TAGS in values:
        out[UNKNOWN_TAGS] = [
            {"tag": tagged["tag"], "data": base64_text(tagged["data"])} for tagged in values[UNKNOWN_TAGS]
        ]
    return out


_HOOKED = ("string", "bytes", "records", "[]string", "[]bytes")


def _scalar(value: Any) -> Any:
    if isinstance(value, str):
        return text_or_base64(value)
    if isinstance(value, bytes):
        return base64_text(value)
    if isinstance(value, float) and not isfinite(value):
        return ("Infinity" if value > 0 else "-Infinity") if isinf(value) else "NaN"
    return value


def base64_text(data: bytes) -> str:
    """Padded standard base64."""
    return b64encode(data).decode("ascii")


def text_or_base64(text: str) -> str | dict[str, str]:
    """The text, or the bytes if they were not UTF-8 (lone surrogates, PEP 383)."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return {"base64": base64_text(text.encode("utf-8", "surrogateescape"))}
    return text


# -- JSON text --------------------------------------------------------------------------------------


class RawText(str):
    """Finished JSON text: :func:`dumps` writes it unchanged inside the value around it."""

    __slots__ = ()


_MAYBE_FLOAT = re.compile(r"(?:^|[\[:, ])-?(?:\d+[.e]|NaN|Infinity)")


_compact = json.JSONEncoder(separators=(",", ":")).encode


_IS_COMPILED = not __file__.endswith(".py")


def dumps(value: Any, has_raw: bool = False) -> str:
    """One line of ASCII JSON text, with doubles as Java prints them.

    :param has_raw: whether the value may contain a :class:`RawText`.
    """
    if _IS_COMPILED or has_raw:
        return _text(value)
    text = _compact(value)
    # Doubles are rare (quotas), and the plain encoder is many times faster. So the text is written by hand
    # only if it may contain a double, in a string or not.
    return _text(value) if _MAYBE_FLOAT.search(text) else text


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value if isinstance(value, RawText) else encode_basestring_ascii(value)
    if value is None:
        return "null"
    if isinstance(value, int):
        return ("true" if value else "false") if isinstance(value, bool) else str(int(value))
    if isinstance(value, dict):
        items = [f"{encode_basestring_ascii(str(key))}:{_text(item)}" for key, item in value.items()]
        return "{" + ",".join(items) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join([_text(item) for item in value]) + "]"
    return java_double(value) if isinstance(value, float) else json.dumps(value)


def java_double(value: float) -> str:
    """The text of Java's ``Double.toString``: ``1.0``, ``-0.0``; from 10**7 up and below 10**-3
    ``1.0E300``."""
    if not isfinite(value):
        return json.dumps(_scalar(value))
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = decimal.Decimal(repr(value)).normalize().as_tuple()
    first, *rest = map(str, digits)
    return f"{'-' * sign}{first}.{''.join(rest) or '0'}E{int(exponent) + len(rest)}"


# -- and back ---------------------------------------------------------------------------------------


def from_json(struct: Struct, obj: Any) -> dict[str, Any]:
    """Kafka's JSON as values for ``encode``. As in Kafka, every field of the version must be there, except
    tagged ones. Records are base64, under the field's own name.

    :raises ValueError: the JSON has another form; the message begins with the path.
    """
    return _values(struct, obj, "")


def _values(struct: Struct, obj: Any, path: str) -> dict[str, Any]:
    if not isinstance(obj, dict):
        raise ValueError(f"{path or struct.name}: an object is needed")
    prefix = f"{path}." if path else ""
    values: dict[str, Any] = {}
    for field in struct.fields:
        at = prefix + field.name
        if field.name in obj:
            values[field.name] = _field_value(field, obj[field.name], at)
        elif field.type == "records" and obj.get(field.name + SIZE_SUFFIX) == 0:
            values[field.name] = b""
        elif field.type == "records" and field.name + SIZE_SUFFIX in obj:
            raise ValueError(f"{at}: the records themselves are needed, as base64")
        elif field.tag is None:
            raise ValueError(f"{at}: missing")
    for name, value in obj.items():
        if name == UNKNOWN_TAGS:
            values[name] = _unknown_tags(value, prefix + name)
        elif name not in values and not (name in struct.by_name or name.removesuffix(SIZE_SUFFIX) in values):
            values[name] = value  # a field of another version, or unknown: encode checks it
    return values


def _field_value(field: Field, value: Any, path: str) -> Any:
    if value is None:
        return None
    if not field.is_array:
        return _values(field.struct, value, path) if field.struct else _scalar_value(field.type, value, path)
    if not isinstance(value, list):
        raise ValueError(f"{path}: an array is needed")
    if field.struct is not None:
        return [_values(field.struct, item, f"{path}[{at}]") for at, item in enumerate(value)]
    element = field.type.removeprefix("[]")
    return [_scalar_value(element, item, f"{path}[{at}]") for at, item in enumerate(value)]


def _scalar_value(kind: str, value: Any, path: str) -> Any:
    if kind in ("bytes", "records"):
        return _bytes(value, path)
    if kind == "string" and isinstance(value, dict) and value.keys() == {"base64"}:
        return _bytes(value["base64"], path).decode("utf-8", "surrogateescape")
    if (
        kind == "string"
        and isinstance(value, str)
        and any("\ud800" <= letter <= "\udfff" for letter in value)
    ):
        raise ValueError(f"{path}: lone surrogates in the text")
    if kind == "float64" and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    if kind == "float64" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def _bytes(value: Any, path: str) -> bytes:
    try:
        return b64decode(value, validate=True)
    except (ValueError, TypeError):
        raise ValueError(f"{path}: base64 is needed") from None


def _unknown_tags(value: Any, path: str) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise ValueError(f"{path}: an array is needed")
    tagged = []
    for at, item in enumerate(value):
        if not isinstance(item, dict) or item.keys() != {"tag", "data"}:
            raise ValueError(f"{path}[{at}]: an object with tag and data is needed")
        tagged.append({"tag": item["tag"], "data": _bytes(item["data"], f"{path}[{at}].data")})
    return tagged
