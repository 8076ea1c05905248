"""SASL tokens → tokens of the same mechanism and length, with names and without secrets, which cannot log in.

They keep the parts that :mod:`kdissect.session.sasl` reads: the user, and the end of the login. Tokens of
other mechanisms become zeros.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64encode

from kdissect.scrub.allowed import FILLER
from kdissect.scrub.values import Scrubber, encoded
from kdissect.session.sasl import claims

_BEARER = b"auth=Bearer "
_ATTRIBUTE = re.compile(rb"([a-z])=(.*)", re.DOTALL)
_PLAIN_NAME = re.compile(rb"[^=,\x00-\x1f]+")
_FLAGS = (b"n", b"y", b"")
"""The first part of a SCRAM message, which has no name: whether the channel is bound."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_ITERATIONS = re.compile(rb"[0-9]{1,9}")


def scrubbed_token(mechanism: str | None, token: bytes, scrubber: Scrubber) -> bytes:
    """The replacement of a token of either side.

    :param mechanism: as the client requested it; None if the request was not captured.
    """
    made = None
    if mechanism == "PLAIN":
        made = _plain(token, scrubber)
    elif mechanism is not None and mechanism.startswith("SCRAM-"):
        made = _scram(token, scrubber)
    elif mechanism == "OAUTHBEARER":
        made = _bearer(token, scrubber)
    if made is None or len(made) != len(token):
        made = bytes(len(token))
    scrubber.taken.add(token)
    return made


def _plain(token: bytes, scrubber: Scrubber) -> bytes | None:
    parts = token.split(b"\0")
    if len(parts) != 3:
        return None
    scrubber.taken.add(parts[2])
    names = [_name(part, scrubber) for part in parts[:2]]
    return b"\0".join((*names, _filler(parts[2])))


def _scram(token: bytes, scrubber: Scrubber) -> bytes | None:
    out = []
    for part in token.split(b","):
        found = _ATTRIBUTE.fullmatch(part)
        if found is None:
            if part not in _FLAGS:
                return None
            out.append(part)
            continue
        letter, value = found.groups()
        if letter in b"na" and _PLAIN_NAME.fullmatch(value):
            made = _name(value, scrubber)
        elif letter == b"i" and _ITERATIONS.fullmatch(value):
            made = value
        else:
            scrubber.taken.add(value)
            made = _filler(value)
        out.append(letter + b"=" + made)
    return b",".join(out)


def _bearer(token: bytes, scrubber: Scrubber) -> bytes | None:
    head, bearer, rest = token.partition(_BEARER)
    jwt, end, behind = rest.partition(b"\x01")
    if not bearer or not end or head not in (b"n,,\x01", b"y,,\x01"):
        return None
    scrubber.taken.add(jwt)
    pieces = jwt.split(b".")
    if len(pieces) > 1:
        size = len(pieces[1]) * 3 // 4
        said = urlsafe_b64encode(_claims(token, size, scrubber)).rstrip(b"=")
        pieces[1] = said if len(said) == len(pieces[1]) else _filler(pieces[1])
        pieces = [pieces[1] if place == 1 else _filler(piece) for place, piece in enumerate(pieces)]
    else:
        pieces = [_filler(jwt)]
    if behind.strip(b"\x01"):
        behind = _filler(behind)
    return head + bearer + b".".join(pieces) + end + behind


def _claims(token: bytes, size: int, scrubber: Scrubber) -> bytes:
    """The user and the end of the login, in ``size`` bytes; empty if that is too little."""
    told = claims(token)
    kept: dict[str, object] = {}
    subject = told.get("sub")
    if isinstance(subject, str) and not _SURROGATE.search(subject):  # half of a surrogate pair is no text
        kept["sub"] = scrubber.name(subject)
    if isinstance(told.get("exp"), int | float):
        kept["exp"] = told["exp"]
    text = encoded(json.dumps(kept, ensure_ascii=False, separators=(",", ":")))
    return text.ljust(size) if len(text) <= size else b"{}".ljust(size)


def _name(data: bytes, scrubber: Scrubber) -> bytes:
    return encoded(scrubber.name(data.decode("utf-8", "surrogateescape")))


def _filler(data: bytes) -> bytes:
    return FILLER.encode() * len(data)
