"""SASL tokens → who logs in, and how it went. Credentials in them are never kept.

PLAIN (RFC 4616): authzid NUL authcid NUL password. SCRAM (RFC 5802): the client's first message
carries ``n=user`` with ``=2C`` and ``=3D`` for comma and equals sign. OAUTHBEARER (RFC 7628) carries a
JWT whose claims name a subject; GSSAPI tokens are opaque.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode

LONGEST_TOKEN = 65_536
"""No honest first token comes near it; a longer one is not looked into."""


class Login:
    """What is known of the login of one connection; of several (KIP-368), the latest."""

    __slots__ = ("mechanism", "outcome", "principal")

    def __init__(self) -> None:
        self.mechanism: str | None = None
        self.principal: str | None = None
        self.outcome: str | None = None
        """``authenticated``, or the name of the error."""

    def begin(self, mechanism: str | None) -> None:
        """A new login: what the last one told counts no more."""
        self.mechanism = mechanism
        self.principal = self.outcome = None

    def read_token(self, token: bytes) -> None:
        """A token of the client's; the first that names a principal counts."""
        if self.principal is None and self.mechanism:
            self.principal = principal(self.mechanism, token)

    def summary(self) -> dict[str, str | None] | None:
        """As it stands in the table ``connections``; None where nobody logs in."""
        if self.mechanism is None:
            return None
        return {"mechanism": self.mechanism, "principal": self.principal, "outcome": self.outcome}


def principal(mechanism: str, token: bytes) -> str | None:
    """The user name in a client's first token, where the mechanism says it in the clear."""
    if len(token) > LONGEST_TOKEN:
        return None
    if mechanism == "PLAIN":
        parts = token.split(b"\0")
        return _text(parts[1]) if len(parts) == 3 else None
    if mechanism.startswith("SCRAM-"):
        return _scram_user(token)
    if mechanism == "OAUTHBEARER":
        return _bearer_subject(token)
    return None


def _scram_user(token: bytes) -> str | None:
    for part in token.split(b","):
        if part.startswith(b"n="):
            return _text(part[2:].replace(b"=2C", b",").replace(b"=3D", b"="))
    return None


def _bearer_subject(token: bytes) -> str | None:
    for part in token.split(b"\x01"):
        if part.startswith(b"auth=Bearer "):
            pieces = part[len(b"auth=Bearer ") :].split(b".")
            try:
                claims = json.loads(urlsafe_b64decode(pieces[1] + b"=" * (-len(pieces[1]) % 4)))
                subject = claims.get("sub")
            except (IndexError, ValueError, AttributeError, RecursionError):
                return None
            return subject if isinstance(subject, str) else None
    return None


def _text(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None
