"""SASL tokens → the principal of a login, and its outcome. Credentials in them are never kept.

PLAIN (RFC 4616): authzid NUL authcid NUL password. SCRAM (RFC 5802): the client's first message
carries ``n=user`` with ``=2C`` and ``=3D`` for comma and equals sign. OAUTHBEARER (RFC 7628) carries a
JWT whose claims name a subject; GSSAPI tokens are opaque.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from typing import Any

from kdissect.protocol.apis import SASL_AUTHENTICATE, SASL_HANDSHAKE

LONGEST_TOKEN = 65_536
"""The longest token that is read; no honest first token comes near it."""

_AUTHENTICATES = 3
PLAIN_LOGINS = frozenset(
    {(SASL_HANDSHAKE, 1), *((SASL_AUTHENTICATE, version) for version in range(_AUTHENTICATES))}
)
"""The steps of a login, API and version, whose fields :func:`first_field_in` and :func:`answer_in` find.
Behind a handshake of version 0 come tokens without headers."""
_FIRST_COMPACT, _FIRST_LIFETIME = 2, 1
"""Versions of SaslAuthenticate."""
_MOST_BEARERS = 256
_bearers: dict[bytes, tuple[str | None, int | None]] = {}
"""The results of :func:`_read_bearer` for recent tokens, by their digests. A client logs in to each of its
connections with the same token."""


class Login:
    """The login of one connection; of several logins (KIP-368), the latest."""

    __slots__ = ("expires_ms", "mechanism", "outcome", "principal")

    def __init__(self) -> None:
        self.mechanism: str | None = None
        self.principal: str | None = None
        self.outcome: str | None = None
        """``authenticated``, or the name of the error."""
        self.expires_ms: int | None = None
        """The end of the login, ms since the epoch: from the broker (KIP-368), else from the token."""

    def begin(self, mechanism: str | None) -> None:
        """Begin a new login; the facts of the previous one are dropped."""
        self.mechanism = mechanism
        self.principal = self.outcome = self.expires_ms = None

    def read_token(self, token: bytes) -> None:
        """Read a token of the client; the first that names a principal counts."""
        if self.principal is None and self.mechanism:
            if self.mechanism == "OAUTHBEARER":
                self.principal, self.expires_ms = _bearer(token)
            else:
                self.principal = principal(self.mechanism, token)

    def is_over(self, token: bytes) -> bool:
        """Whether the broker lets the client in with this answer, which has no error. The last answer of
        SCRAM proves who the broker is (RFC 5802, 5.1). One of OAUTHBEARER may be an object of JSON: the
        reason of a refusal. The error comes after the client's next message (RFC 7628, 3.2.2)."""
        mechanism = self.mechanism or ""
        if mechanism.startswith("SCRAM-"):
            return token.startswith(b"v=")
        return mechanism != "OAUTHBEARER" or not token.startswith(b"{")

    def lasts(self, from_ns: int, lifetime_ms: int) -> None:
        """Set the lifetime that the broker gave; 0 for an unlimited login."""
        if lifetime_ms > 0:
            self.expires_ms = from_ns // 1_000_000 + lifetime_ms

    def summary(self) -> dict[str, str | int | None] | None:
        """The login's form in the table ``connections``; None without a login."""
        if self.mechanism is None:
            return None
        return {
            "mechanism": self.mechanism,
            "principal": self.principal,
            "outcome": self.outcome,
            "expires_ms": self.expires_ms,
        }


def first_field_in(api: tuple[int, int], data: bytes, at: int) -> bytes | None:
    """The mechanism or token that stands first in the body of a request of :data:`PLAIN_LOGINS`. None for
    null.

    :param at: where the body begins, which is sound.
    """
    key, version = api
    if key == SASL_HANDSHAKE:
        start, length = at + 2, int.from_bytes(data[at : at + 2], "big", signed=True)
    else:
        start, length = _length(data, at, version, 4)
    return None if length < 0 else data[start : start + length]


def answer_in(version: int, data: bytes, at: int) -> tuple[bytes, int]:
    """The token, and how long the login holds, ms, as the sound body of a response of SaslAuthenticate tells
    them."""
    at, length = _length(data, at + 2, version, 2)  # the text of an error, behind its code
    start, length = _length(data, at + max(0, length), version, 4)
    end = start + max(0, length)
    lifetime = data[end : end + 8] if version >= _FIRST_LIFETIME else b""
    return data[start:end], int.from_bytes(lifetime, "big", signed=True)


def _length(data: bytes, at: int, version: int, size: int) -> tuple[int, int]:
    """Where a text or bytes begin, and their length; below 0 for null.

    :param size: of the length, in versions that are not compact.
    """
    if version < _FIRST_COMPACT:
        return at + size, int.from_bytes(data[at : at + size], "big", signed=True)
    value = shift = 0
    while at < len(data):
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            break
    return at, value - 1


def principal(mechanism: str, token: bytes) -> str | None:
    """The user name in a client's first token, if the mechanism sends it in the clear."""
    if len(token) > LONGEST_TOKEN:
        return None
    if mechanism == "PLAIN":
        parts = token.split(b"\0")
        return _text(parts[1]) if len(parts) == 3 else None
    if mechanism.startswith("SCRAM-"):
        return _scram_user(token)
    if mechanism == "OAUTHBEARER":
        return _bearer(token)[0]
    return None


def _scram_user(token: bytes) -> str | None:
    for part in token.split(b","):
        if part.startswith(b"n="):
            return _text(part[2:].replace(b"=2C", b",").replace(b"=3D", b"="))
    return None


def _bearer(token: bytes) -> tuple[str | None, int | None]:
    """The subject of a JWT, and when it expires."""
    if len(token) > LONGEST_TOKEN:
        return None, None
    from hashlib import blake2b  # takes some milliseconds; most captures have no such token

    digest = blake2b(token, digest_size=16).digest()
    known = _bearers.get(digest)
    if known is None:
        if len(_bearers) >= _MOST_BEARERS:
            _bearers.clear()
        known = _bearers[digest] = _read_bearer(claims(token))
    return known


def _read_bearer(told: dict[str, Any]) -> tuple[str | None, int | None]:
    """The claims ``sub`` and ``exp`` (RFC 7519, 4.1), the time in ms. None for an absent one, and for a time
    beyond 64 bits."""
    subject, seconds = told.get("sub"), told.get("exp")
    if isinstance(subject, str):
        # JSON can contain half of a surrogate pair, which is no text.
        subject = subject.encode("utf-8", "backslashreplace").decode("utf-8")
    else:
        subject = None
    if isinstance(seconds, int | float) and 0 < seconds < 1 << 53:
        return subject, int(seconds * 1000)
    return subject, None


def claims(token: bytes) -> dict[str, Any]:
    """The claims of the JWT in a client's first token; empty if it cannot be read."""
    for part in token.split(b"\x01"):
        if part.startswith(b"auth=Bearer "):
            pieces = part[len(b"auth=Bearer ") :].split(b".")
            try:
                claims = json.loads(urlsafe_b64decode(pieces[1] + b"=" * (-len(pieces[1]) % 4)))
            except (IndexError, ValueError, RecursionError):
                return {}
            return claims if isinstance(claims, dict) else {}
    return {}


def _text(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None
