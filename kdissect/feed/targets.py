"""A typed destination in a capture → the exchange there.

``43`` is the number of an exchange or of a packet, as Wireshark counts packets; ``#43`` and ``packet 43`` are
unambiguous. ``12.5s`` is a time since the start of the capture, ``08:44:35`` a time of day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

import numpy as np

from kdissect.feed.index import Index

NUMBER, PACKET, TIME, OF_DAY = "No.", "packet", "time", "time of day"
_NUMBER = re.compile(r"(?:(?P<packet>packet|frame|p)|(?P<exchange>no\.?|#))?\s*(?P<number>[0-9][0-9,]{0,18})")
_SECONDS = {"ms": 1e-3, "s": 1, "min": 60, "m": 60, "h": 3600}
_TIME = re.compile(rf"\+?(\d{{1,9}}(?:\.\d{{1,9}})?)\s*({'|'.join(_SECONDS)})")


_OF_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d{1,9}))?", re.ASCII)
_DAY_NS = 86_400 * 10**9


class Destination(NamedTuple):
    """A destination in a capture; it need not exist."""

    kind: str
    """One of the kinds above."""
    value: int
    """The number, or nanoseconds since the start of the capture or since midnight, in local time."""
    words: str
    """Its name on the screens."""


def targets(typed: str) -> Iterator[Destination]:
    """The possible meanings of a typed text, the likeliest first; none if it is neither a number nor a
    time."""
    text = typed.strip().removeprefix(":").strip().lower()
    found = _NUMBER.fullmatch(text)
    if found is not None:
        number = int(found["number"].replace(",", ""))
        if not found["packet"]:
            yield numbered(number)
        if not found["exchange"]:
            yield Destination(PACKET, number, f"packet {number:,}")
    time = _TIME.fullmatch(text)
    if time is not None:
        yield Destination(TIME, round(float(time[1]) * _SECONDS[time[2]] * 1e9), f"{time[1]} {time[2]}")
    of_day = _OF_DAY.fullmatch(text)
    if of_day is not None:
        hours, minutes, seconds = (int(each) for each in of_day.groups()[:3])
        since = ((hours * 60 + minutes) * 60 + seconds) * 10**9 + int((of_day[4] or "").ljust(9, "0"))
        yield Destination(OF_DAY, since, text)


def numbered(number: int) -> Destination:
    """The exchange with a number."""
    return Destination(NUMBER, number, f"No. {number:,}")


def nothing_at(target: Destination) -> str:
    """The message if there is nothing at a destination."""
    if target.kind == NUMBER:
        return f"there is no exchange {target.words}"
    if target.kind == PACKET:
        return f"{target.words} completes no message"
    return f"there is no exchange after {target.words}"


def place_of(target: Destination, index: Index) -> int | None:
    """The index place of the exchange at a destination: the exchange with the number, or the one with a
    message that the packet completed. For a time it is the first exchange from then on; for a time of day, on
    the day of the capture. None if nothing is there."""
    if target.kind == NUMBER:
        found = index.column("number") == target.value
    elif target.kind == PACKET:
        if not target.value:  # the index has this value without a packet
            return None
        found = (index.column("request_packet") == target.value) | (
            index.column("response_packet") == target.value
        )
    elif target.kind == OF_DAY:
        return _first_from(_since_start(target.value, index), index)
    else:
        return _first_from(target.value, index)
    at = np.flatnonzero(found)
    return int(at[0]) if len(at) else None


def _since_start(of_day_ns: int, index: Index) -> int:
    """Nanoseconds from the start of the capture to a time of day, on the first day or the one after it."""
    first_ns, last_ns = index.first_ns or 0, index.last_ns or 0
    midnight = datetime.fromtimestamp(first_ns // 10**9).replace(hour=0, minute=0, second=0)
    since = int(midnight.timestamp()) * 10**9 + of_day_ns - first_ns
    return since + _DAY_NS if since < 0 and first_ns + since + _DAY_NS <= last_ns else since


def _first_from(since_ns: int, index: Index) -> int | None:
    if index.first_ns is None:
        return None
    times = index.column("time_ns")
    later = np.flatnonzero(times >= index.first_ns + since_ns)
    return int(later[np.argmin(times[later])]) if len(later) else None
