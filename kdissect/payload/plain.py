"""Small forms that several decoders share: JSON, text, and bytes in JSON."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from kdissect.model import DecodeError

DEEPEST_JSON = 128
"""The deepest nesting of objects and arrays."""
_LEAST_KEY_TEXT, _KEY_TEXT_PER_BYTE = 256, 32
"""The most characters of keys that are not text: a fixed part, and a part for each byte. An empty byte string
has 14 characters."""


def bytes_object(data: bytes) -> dict[str, str]:
    """Bytes in a value of JSON: ``{"base64": …}``."""
    return {"base64": b64encode(data).decode("ascii")}


def text_or_bytes(data: bytes) -> Any:
    """Text if the bytes are UTF-8, else :func:`bytes_object`."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return bytes_object(data)


def as_object(found: Sequence[Any], size: int, start: int) -> Any:
    """A map with text as keys, as JSON needs them. If two keys have one text (``1`` and ``"1"``), the result
    is a list of ``{"key", "value"}`` instead, so that nothing is lost.

    If a key is itself a map, each quote in its text gets a backslash. So each map inside a key may double the
    text. A text that is much longer than its bytes is refused.

    :param found: key, value, key, value …
    :param size: the number of bytes that they were read from.
    :param start: the position of these bytes.
    :raises DecodeError: the text of the keys is too long.
    """
    out: dict[str, Any] = {}
    room = _LEAST_KEY_TEXT + _KEY_TEXT_PER_BYTE * size
    for key, value in zip(found[::2], found[1::2], strict=True):
        text = key
        if not isinstance(key, str):
            text = json.dumps(key)
            room -= len(text)
            if room < 0:
                raise DecodeError("too many maps are keys of each other", start, "too-many-elements")
        out[text] = value
    if len(out) * 2 < len(found):
        return [{"key": key, "value": value} for key, value in zip(found[::2], found[1::2], strict=True)]
    return out


def decode_json(data: bytes, start: int = 0) -> Any:
    """The JSON value in the bytes from ``start`` to the end.

    :raises DecodeError: the bytes are not JSON, or it is nested too deep.
    """
    try:
        text = data[start:].decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError("not UTF-8", start + error.start, "not-utf8") from None
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise _too_deep(start) from None
    except ValueError as error:
        at = getattr(error, "pos", 0)
        raise DecodeError(f"not JSON: {getattr(error, 'msg', error)}", start + at) from None
    if text.count("{") + text.count("[") > DEEPEST_JSON and depth_of(value) > DEEPEST_JSON:
        raise _too_deep(start)
    return value


def _too_deep(start: int) -> DecodeError:
    return DecodeError(f"JSON nested deeper than {DEEPEST_JSON}", start, "too-many-elements")


def depth_of(value: Any) -> int:
    """The depth to which objects and arrays are nested."""
    depth, level = 0, [value]
    while level:
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner += each.values()
            elif isinstance(each, list):
                inner += each
        depth, level = depth + 1, [each for each in inner if isinstance(each, dict | list)]
        if depth > DEEPEST_JSON:
            break
    return depth


def _constant(text: str) -> str:
    raise ValueError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_constant)
