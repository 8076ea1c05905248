"""Known deviations of some clients and brokers from Kafka's definitions.

A body with such a deviation is not damaged: the deviation is named, and has no fault. All are in one table.
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
    """One known deviation."""

    api_key: int
    versions: range
    kind: str
    """``request`` or ``response``."""
    text: str
    """The deviation, and the programs that write it."""
    fits: Callable[[Body], bool]
    """Whether a body that does not fit its definition to the last byte has the deviation."""
    reads_as: int | None = None
    """The version whose layout it has, if it is another one."""
    tail: bytes = b""
    """The bytes after the body, if they are the only deviation."""


def _lacks_throttle_time(body: Body) -> bool:
    # A broker that does not know the version correctly answers in version 0 (KIP-511).
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
    """The layouts of other versions that a message may have because of a quirk."""
    return tuple(
        message_struct(api_key, quirk.reads_as, kind)
        for quirk in QUIRKS
        if quirk.reads_as is not None and _is_about(quirk, api_key, version, kind)
    )


def tail(api_key: int, version: int, kind: str) -> bytes:
    """The bytes that may follow the body of a message because of a quirk; empty without one."""
    quirk = tail_quirk(api_key, version, kind)
    return b"" if quirk is None else quirk.tail


def tail_quirk(api_key: int, version: int, kind: str) -> Quirk | None:
    """The quirk of such bytes; None without one."""
    for quirk in QUIRKS:
        if quirk.tail and _is_about(quirk, api_key, version, kind):
            return quirk
    return None


def named(body: Body, api_key: int, version: int, kind: str) -> Body:
    """The body with the name of its quirk, if it has one; the quirk's fault is removed."""
    for quirk in QUIRKS:
        if _is_about(quirk, api_key, version, kind) and quirk.fits(body):
            return body._replace(quirk=quirk.text, faults=())
    return body


def _is_about(quirk: Quirk, api_key: int, version: int, kind: str) -> bool:
    return (quirk.api_key, quirk.kind) == (api_key, kind) and version in quirk.versions
