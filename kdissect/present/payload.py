"""A record's key or value → text for people: JSON, text or hex, by the kind of the bytes.

:mod:`kdissect.present.decoded` shows values that a schema or another format decodes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NoReturn

from kdissect.payload.plain_text import plain_text
from kdissect.present.hexdump import hexdump
from kdissect.present.sanitise import CUT, LONGEST, sanitise

FORMS = ("auto", "json", "text", "hex")
"""The forms of a value; ``auto`` is the first of the others that fits the bytes."""

SHOWN_BYTES = 0x40000
"""The most bytes of one value that are shown on the screen."""

_HEX_BYTES = 32
"""The most bytes in one line, for a value that is no text."""
_DEEPEST_INDENT = 40
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def one_line(data: bytes, size: int | None = None, form: str = "auto") -> str:
    """Bytes in one line: text in quotes if they are plain text, else hex.

    :param size: the number of bytes, if ``data`` has only the first of them.
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
    """The form that fits the bytes: ``json`` (an object or array), ``text`` or ``hex``."""
    text = plain_text(data)
    if text is None:
        return "hex"
    return "json" if is_json(text) else "text"


def is_json(text: str) -> bool:
    """Whether a text is an object or array in JSON."""
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        # The values of numbers are not needed, and converting a million digits takes long.
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
    """JSON text with one line for each value."""
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
