"""A record's key or value → text for people: as JSON, text or hex, chosen by what the bytes are.

Bytes that begin as a schema registry's framing does are shown as that, with the schema's id. What follows is
not decoded, because the schema is not in the capture. Nothing else tells such bytes from others. So the text
says that they look like it, never that they are it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, NoReturn

from kdissect.payload.plain_text import plain_text
from kdissect.present.hexdump import hexdump
from kdissect.present.sanitise import CUT, LONGEST, sanitise

FORMS = ("auto", "json", "text", "hex")
"""How a value can be shown; ``auto`` is the first of the others that the bytes are."""

SHOWN_BYTES = 0x40000
"""More bytes of one value are not laid out for the screen."""

_HEX_BYTES = 32
"""Bytes of a value that is no text, in one line."""
_DEEPEST_INDENT = 40
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


class Framing(NamedTuple):
    """What a schema registry's serializer writes beside a value."""

    schema: str
    """The schema's id, a number or a GUID."""
    size: int
    """Bytes of the value that the framing takes."""

    def __str__(self) -> str:
        return f"schema {self.schema}"


def framing_of(
    data: bytes, headers: Sequence[tuple[str, bytes | None]] = (), side: str = "value"
) -> Framing | None:
    """The framing of a key or value. It stands in a header ``__key_schema_id`` or ``__value_schema_id``
    (magic 1 and a GUID of 16 bytes, or magic 0 and an id). Or it stands before the value (magic 0, id as
    int32). Ids begin with 1; a value must be longer than its framing.

    The rules are those of the serializers of Confluent's schema registry: ``PrefixSchemaIdSerializer``, and
    ``HeaderSchemaIdSerializer``, which leaves the value as it is.
    """
    for name, said in reversed(headers):
        if name == f"__{side}_schema_id" and said is not None:
            if len(said) == 17 and said[0] == 1:
                return Framing(_guid_text(said[1:].hex()), 0)
            if len(said) == 5 and said[0] == 0:
                return Framing(str(int.from_bytes(said[1:], "big")), 0)
    number = int.from_bytes(data[1:5], "big", signed=True)
    if len(data) > 5 and data[0] == 0 and number > 0:
        return Framing(str(number), 5)
    return None


def one_line(data: bytes, size: int | None = None, form: str = "auto") -> str:
    """Bytes in one line: text in quotes where they are plainly that, else hex.

    :param size: how many there are, where ``data`` are the first of them only.
    """
    size = len(data) if size is None else size
    if not size:
        return "(empty)"
    head = data[:LONGEST]
    is_cut = len(head) < size
    text = None if form == "hex" else plain_text(head, is_cut)
    if text is not None:
        return f'"{sanitise(text, None)}"' + (CUT if is_cut else "")
    if form in ("json", "text"):
        return f'"{sanitise(head.decode("utf-8", "surrogateescape"), None)}"' + (CUT if is_cut else "")
    return head[:_HEX_BYTES].hex(" ") + (f" {CUT} ({size:,} bytes)" if size > _HEX_BYTES else "")


def form_of(data: bytes) -> str:
    """What the bytes are: ``json`` (an object or array), ``text`` or ``hex``."""
    text = plain_text(data)
    if text is None:
        return "hex"
    return "json" if is_json(text) else "text"


def is_json(text: str) -> bool:
    """Whether a text is an object or array in JSON."""
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        # Numbers are not needed, and making them of a million digits takes long.
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_no_json)
    except (ValueError, RecursionError):
        return False
    return True


def _no_json(word: str) -> NoReturn:
    raise ValueError(word)


def lines_of(data: bytes, form: str = "auto") -> tuple[str, list[str]]:
    """The form they are shown in, and the lines, sanitised. If there are too many bytes, only the first
    :data:`SHOWN_BYTES` are shown, and a line says so.

    In JSON only blank space is changed: numbers, doubled names and the order stay as they were written. If
    the bytes do not have the form, the next form that fits is taken: text, with ``\\xff`` for what is not
    text.
    """
    head = data[:SHOWN_BYTES]
    is_cut = len(head) < len(data)
    if form == "auto":
        form = form_of(head) if not is_cut else "text" if plain_text(head, is_cut) is not None else "hex"
    text = plain_text(head, is_cut) if form == "json" else None
    if form == "json" and (text is None or not is_json(text)):
        form = "text"
    if not data:
        lines = ["(empty)"]
    elif form == "hex":
        lines = list(hexdump(head))
    elif form == "json" and text is not None:
        lines = list(_indented(text))
    else:
        whole = head.decode("utf-8", "surrogateescape")
        lines = [sanitise(line.rstrip("\r"), None) for line in whole.split("\n")]
    if is_cut:
        lines.append(f"{CUT} {len(data) - len(head):,} more bytes")
    return form, lines


def _indented(text: str) -> Iterator[str]:
    """JSON text with a line for each value."""
    line: list[str] = []
    depth = 0
    tokens = [match[0] for match in _TOKEN.finditer(text)]
    for at, token in enumerate(tokens):
        after = tokens[at + 1] if at + 1 < len(tokens) else ""
        if token in ("}", "]") and not (at and tokens[at - 1] in ("{", "[")):
            if line:
                yield _at(depth, line)
            depth -= 1
            line = []
        elif token in ("}", "]"):
            depth -= 1
        line.append(sanitise(token, None))
        if token in ("{", "["):
            depth += 1
            if after not in ("}", "]"):
                yield _at(depth - 1, line)
                line = []
        elif token == ",":
            yield _at(depth, line)
            line = []
        elif token == ":":
            line.append(" ")
    if line:
        yield _at(depth, line)


def _at(depth: int, line: list[str]) -> str:
    return "  " * min(depth, _DEEPEST_INDENT) + "".join(line)


def _guid_text(digits: str) -> str:
    """A GUID in its usual form (RFC 9562)."""
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
