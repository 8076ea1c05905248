"""Bytes and text from users: an argument, a file, stdin; hex, base64 or raw."""

from __future__ import annotations

import binascii
import json
import os
import re
import sys
from base64 import b64decode
from errno import ENOENT
from typing import Any

from kdissect.cli.errors import Unreadable, Wrong

TOO_DEEP = "it is nested too deeply"

FORMS = ("auto", "hex", "base64", "raw")

_HEX = re.compile(rb"(0x)?([0-9a-fA-F]{2}[\s:]*)*")
_BASE64 = re.compile(rb"([A-Za-z0-9+/]\s*)*(=\s*){0,2}")


def bytes_from(given: str | None, form: str = "auto") -> bytes:
    """The bytes in an argument, a file or stdin (``-``, or no argument).

    ``auto``: text that looks like hex is hex, and other text that looks like base64 is base64. The contents
    of any other file are the bytes themselves.

    :raises Wrong: there are no bytes.
    :raises Unreadable: they do not have the form.
    """
    content, is_argument = _content(given)
    if form == "raw" and not is_argument:
        return content
    text = content.strip()
    if not text:
        raise Wrong("there are no bytes: give hex, base64, a file, or - for standard input")
    if form in ("auto", "hex") and _HEX.fullmatch(text):
        return bytes.fromhex(text.removeprefix(b"0x").decode("ascii").replace(":", " "))
    if form in ("auto", "base64") and _BASE64.fullmatch(text):
        try:
            return b64decode(b"".join(text.split()), validate=True)
        except binascii.Error as error:
            if form == "base64":
                raise Unreadable(f"this is not base64: {error}") from None
    if form == "auto" and not is_argument:
        return content
    wanted = "hex nor base64" if form in ("auto", "raw") else form
    raise Unreadable(
        f"this is neither {wanted} nor a file: {given}" if is_argument else f"this is not {wanted}"
    )


def file_content(given: str) -> bytes:
    """The contents of a file or stdin (``-``), unchanged.

    :raises Unreadable: there is no such file.
    """
    content, is_argument = _content(given)
    if is_argument:
        raise Unreadable(f"{given}: cannot be read: {os.strerror(ENOENT)}")
    return content


def content_of(given: str | None) -> bytes:
    """The contents of an argument, a file or stdin, unchanged."""
    return _content(given)[0]


def json_from(content: bytes) -> Any:
    """The value of JSON text.

    :raises ValueError: it is not JSON; the text says why.
    """
    try:
        return json.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"this is not UTF-8, at byte {error.start}") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"this is not JSON: {error.msg.lower().removesuffix(' at')}, at {where}") from None
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except ValueError:
        raise ValueError("a number in it has too many digits") from None


def _content(given: str | None) -> tuple[bytes, bool]:
    """The bytes, and whether they are the argument itself."""
    if given is None and sys.stdin.isatty():
        raise Wrong("nothing is given: hex, base64, a file, or - for standard input")
    if given is None or given == "-":
        return sys.stdin.buffer.read(), False
    if os.path.isdir(given):
        raise Unreadable(f"{given}: is a directory")
    if os.path.exists(given):
        try:
            with open(given, "rb") as file:
                return file.read(), False
        except OSError as error:
            raise Unreadable(f"{given}: cannot be read: {error.strerror}") from None
    return given.encode("utf-8", "surrogateescape"), True
