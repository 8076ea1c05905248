"""SASL tokens → the principal that logs in. Credentials in them are never kept.

PLAIN (RFC 4616): authzid NUL authcid NUL password. SCRAM (RFC 5802): the client's first message
carries ``n=user`` with ``=2C`` and ``=3D`` for comma and equals sign. OAUTHBEARER (RFC 7628) carries a
JWT whose claims name a subject; GSSAPI tokens are opaque.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode

LONGEST_TOKEN = 65_536
"""No honest first token comes near it; a longer one is not looked into."""


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
