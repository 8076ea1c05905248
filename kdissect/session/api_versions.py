"""The facts that a client and a broker send about themselves in ApiVersions when a connection begins.

A client sends the same on all its connections. So the results are kept by the bytes of the message. If
connections are short, decoding these bytes each time would cost more than everything else.
"""

from __future__ import annotations

from collections.abc import Callable

from kdissect.message import Message, Request
from kdissect.session.throttling import offers_answers_first

_MOST = 256
LONGEST = 4_096
"""The largest number of messages kept, and the largest size of each."""

NOT_NAMED = (None, None)
"""The software of a client that does not name it."""

VersionedBody = tuple[int | None, bytes]
"""The version, and the bytes of the body."""

_software: dict[VersionedBody, str | None] = {}
_named: dict[VersionedBody, tuple[str | None, str | None]] = {}
_answers_first: dict[VersionedBody, bool] = {}


def software(asked: Request) -> str | None:
    """Name and version of the client, from its ApiVersions request; None if it has none."""
    return software_in(_versioned_body(asked), lambda: asked)


def software_in(versioned: VersionedBody, request: Callable[[], Request]) -> str | None:
    """Name and version of the client, by the bytes of its request.

    :param request: returns the message, if the bytes are new.
    """
    if versioned in _software:
        return _software[versioned]
    body = request().body()
    name = body.get("clientSoftwareName")
    told = f"{name} {body.get('clientSoftwareVersion')}" if name else None
    if len(versioned[1]) <= LONGEST:
        _make_room(_software)
        _software[versioned] = told
    return told


def named_software(asked: Message) -> tuple[str | None, str | None]:
    """Name and version of the client's software, from its ApiVersions request; None if the request does not
    have them."""
    versioned = _versioned_body(asked)
    named = _named.get(versioned)
    if named is None:
        body = asked.body()
        named = body.get("clientSoftwareName"), body.get("clientSoftwareVersion")
        if len(versioned[1]) <= LONGEST:
            if len(_named) >= _MOST:
                _named.clear()
            _named[versioned] = named
    return named


def shows_answers_first(answer: Message) -> bool:
    """Whether a broker's versions show that it answers before it throttles.

    :param answer: its response to ApiVersions, without an error.
    """
    return shows_answers_first_in(_versioned_body(answer), lambda: answer)


def shows_answers_first_in(versioned: VersionedBody, answer: Callable[[], Message]) -> bool:
    """Whether a broker's versions show that it answers before it throttles, by the bytes of its response.

    :param answer: returns the message, if the bytes are new.
    """
    if versioned in _answers_first:
        return _answers_first[versioned]
    shown = offers_answers_first(answer().body())
    if len(versioned[1]) <= LONGEST:
        _make_room(_answers_first)
        _answers_first[versioned] = shown
    return shown


def _versioned_body(message: Message) -> VersionedBody:
    return message.api_version, message.frame.payload[message.body_start :]


def _make_room(known: dict[VersionedBody, str | None] | dict[VersionedBody, bool]) -> None:
    if len(known) >= _MOST:
        known.clear()
