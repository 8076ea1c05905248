"""What some clients and brokers are known to write otherwise than Kafka's definitions say.

A body that differs in one of these ways is no damage: it is named, and has no fault. One table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kdissect.protocol import apis
from kdissect.protocol.body import Body
from kdissect.protocol.schema import Struct, message_struct

_EMPTY_ARRAY = bytes(4)
UNSUPPORTED_VERSION = 35


class Quirk(NamedTuple):
    """One of them."""

    api_key: int
    versions: range
    kind: str
    """``request`` or ``response``."""
    text: str
    """What is written, and who writes it."""
    fits: Callable[[Body], bool]
    """Whether a body that does not fit its definition to the last byte has it."""
    reads_as: int | None = None
    """The version that it has the layout of, where it is another one."""
    tail: bytes = b""
    """What stands behind the body, where that is all."""


def _lacks_throttle_time(body: Body) -> bool:
    # A broker that does not know the version answers in version 0 by right (KIP-511).
    is_older = body.struct is not None and body.struct.version == 0 and body.is_exact
    return is_older and body.values["errorCode"] != UNSUPPORTED_VERSION


QUIRKS = (
    Quirk(
        apis.API_VERSIONS,
        range(1),
        "request",
        "an empty array after the body, as old versions of librdkafka write it",
        lambda body: body.remainder == _EMPTY_ARRAY and [each.kind for each in body.faults] == ["remainder"],
        tail=_EMPTY_ARRAY,
    ),
    Quirk(
        apis.API_VERSIONS,
        range(1, 3),
        "response",
        "no throttle time, as some brokers and proxies leave it out",
        _lacks_throttle_time,
        reads_as=0,
    ),
)


def layouts(api_key: int, version: int, kind: str) -> tuple[Struct, ...]:
    """The layouts of other versions that a message may have by a quirk."""
    return tuple(
        message_struct(api_key, quirk.reads_as, kind)
        for quirk in QUIRKS
        if quirk.reads_as is not None and _is_about(quirk, api_key, version, kind)
    )


def tail(api_key: int, version: int, kind: str) -> bytes:
    """What may stand behind the body of a message by a quirk; empty if nothing may."""
    for quirk in QUIRKS:
        if quirk.tail and _is_about(quirk, api_key, version, kind):
            return quirk.tail
    return b""


def named(body: Body, api_key: int, version: int, kind: str) -> Body:
    """A body with the quirk that it has, which then is no fault of it."""
    for quirk in QUIRKS:
        if _is_about(quirk, api_key, version, kind) and quirk.fits(body):
            return body._replace(quirk=quirk.text, faults=())
    return body


def _is_about(quirk: Quirk, api_key: int, version: int, kind: str) -> bool:
    return (quirk.api_key, quirk.kind) == (api_key, kind) and version in quirk.versions
