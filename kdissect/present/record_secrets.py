"""Secrets in records of users' topics that the records themselves show.

* Headers with a login from HTTP, ``Authorization`` and cookies, and all headers whose names suggest a secret.
* Kafka Connect's configurations, in a topic of any name. Records with the keys ``connector-NAME`` and
  ``task-NAME-N`` hold the properties of connectors as JSON. The record with the key ``session-key`` holds the
  key with which workers sign requests (``KafkaConfigBackingStore``, KIP-507).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from kdissect.present.secret_names import REDACTED, suggests_secret
from kdissect.record.records import Headers, Record

HIDDEN = REDACTED.encode()

SESSION_KEY = b"session-key"
CONFIG_KEYS = (b"connector-", b"task-")
"""The beginnings of the keys of records with properties."""

Span = tuple[int, int, bytes]
"""Start, end, and the replacement."""

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*\\?(?:"|\Z)|[{}\[\]]|[^\s"{}\[\],:]+', re.DOTALL)
_COLON = re.compile(rb"\s*:")
_INLINE = re.compile(
    rb"://[^/\s:@\"]{0,200}:([^/\s@\"]{1,1000})@"  # a URL with a login
    rb"|(?:password|passwd|pwd|passphrase|secret|token|credential|key)s?[\w.-]{0,100}\s{0,9}=\s{0,9}"
    rb"(\\\"(?:[^\"\\]|\\[^\"]){0,1000}|[^\s;&,\"\\]{1,1000})",
    re.IGNORECASE,
)


def is_secret_header(name: str) -> bool:
    """Whether the value of a header of this name must not be shown."""
    return suggests_secret(name)


def shown_headers(headers: Headers) -> Headers:
    """The headers, with secrets replaced. Without secrets, the given headers are returned."""
    if not any(value and is_secret_header(name) for name, value in headers):
        return headers
    return tuple((name, HIDDEN if value and is_secret_header(name) else value) for name, value in headers)


def is_connect_config(key: bytes | None, value: bytes | None) -> bool:
    """Whether a record looks like one of Connect that may contain secrets."""
    if not key or not value or not (key == SESSION_KEY or key.startswith(CONFIG_KEYS)):
        return False
    return value.lstrip()[:1] == b"{"


def shown_config(key: bytes, value: bytes) -> bytes:
    """The value of such a record with its secrets replaced. Without secrets, the same bytes are returned."""
    out, done = [], 0
    for start, end, instead in _secrets(value, key == SESSION_KEY):
        out += [value[done:start], instead]
        done = end
    return b"".join((*out, value[done:])) if out else value


def shown_record(record: Record) -> Record:
    """A record with its secrets replaced. Without secrets, the same record is returned."""
    headers, key, value = shown_headers(record.headers), record.key, record.value
    if key and value and is_connect_config(key, value):
        value = shown_config(key, value)
    if headers is record.headers and value is record.value:
        return record
    return record._replace(headers=headers, value=value)


def _secrets(value: bytes, is_session_key: bool) -> Iterator[Span]:
    """The secrets in the text of JSON, in order, even if it is damaged or breaks off: members whose names
    suggest a secret, and logins in other texts."""
    is_named = False
    """Whether the name of the next value suggests a secret."""
    depth = start = 0
    """The depth inside an array or object that is hidden, and where that begins."""
    for found in _TOKEN.finditer(value):
        token = found[0]
        if depth:
            depth += (token in b"{[") - (token in b"}]")
            if not depth:
                yield start, found.end(), b'"' + HIDDEN + b'"'
        elif token[:1] == b'"' and _COLON.match(value, found.end()):
            name = _text(token)
            is_named = suggests_secret(name) or (is_session_key and name == "key")
        elif not is_named:
            if token[:1] == b'"':
                yield from _inline(value, found.start() + 1, found.end())
        else:
            is_named = False
            if token in b"{[":
                depth, start = 1, found.start()
            elif token[:1] == b'"':
                end = found.end() - (len(token) > 1 and token.endswith(b'"'))
                if end > found.start() + 1:
                    yield found.start() + 1, end, HIDDEN
            elif token != b"null":
                yield found.start(), found.end(), b'"' + HIDDEN + b'"'
    if depth:
        yield start, len(value), b'"' + HIDDEN + b'"'


def _inline(value: bytes, start: int, end: int) -> Iterator[Span]:
    for found in _INLINE.finditer(value, start, end):
        which = 1 if found[1] is not None else 2
        yield found.start(which), found.end(which), HIDDEN


def _text(token: bytes) -> str:
    try:
        return str(json.loads(token))
    except ValueError:
        return token.decode("utf-8", "replace")
