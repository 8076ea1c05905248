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

Said = tuple[int | None, bytes]
"""The version, and the bytes of the body."""

_software: dict[Said, str | None] = {}
_answers_first: dict[Said, bool] = {}


def software(asked: Request) -> str | None:
    """Name and version of the client, from its ApiVersions request; None if it has none."""
    return software_in(_said(asked), lambda: asked)


def software_in(said: Said, request: Callable[[], Request]) -> str | None:
    """Name and version of the client, by the bytes of its request.

    :param request: returns the message, if the bytes are new.
    """
    if said in _software:
        return _software[said]
    body = request().body()
    name = body.get("clientSoftwareName")
    told = f"{name} {body.get('clientSoftwareVersion')}" if name else None
    if len(said[1]) <= LONGEST:
        _make_room(_software)
        _software[said] = told
    return told


def shows_answers_first(answer: Message) -> bool:
    """Whether a broker's versions show that it answers before it throttles.

    :param answer: its response to ApiVersions, without an error.
    """
    return shows_answers_first_in(_said(answer), lambda: answer)


def shows_answers_first_in(said: Said, answer: Callable[[], Message]) -> bool:
    """Whether a broker's versions show that it answers before it throttles, by the bytes of its response.

    :param answer: returns the message, if the bytes are new.
    """
    if said in _answers_first:
        return _answers_first[said]
    shown = offers_answers_first(answer().body())
    if len(said[1]) <= LONGEST:
        _make_room(_answers_first)
        _answers_first[said] = shown
    return shown


def _said(message: Message) -> Said:
    return message.api_version, message.frame.payload[message.body_start :]


def _make_room(known: dict[Said, str | None] | dict[Said, bool]) -> None:
    if len(known) >= _MOST:
        known.clear()
