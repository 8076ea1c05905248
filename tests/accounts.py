"""Accounts for all bytes: each byte of a connection is in exactly one exchange or fault."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from kdissect.exchange import Exchange
from kdissect.model import Fault
from kdissect.session.conversation import Connection

_HEADLESS = re.compile(r"a frame of ([\d,]+) bytes? at byte [\d,]+, without ")
_CUT = re.compile(r"but ([\d,]+) were captured: ")


def astray(events: Iterable[object]) -> dict[int, int]:
    """For each connection in the clear, the number of captured bytes that no event accounts for; without
    connections where it is 0.

    Faults account for frames outside of exchanges. ``skipped_bytes`` accounts for bytes outside of frames.
    """
    told: Counter[int] = Counter()
    said: Counter[int] = Counter()
    captured: int | None = None
    for event in events:
        if isinstance(event, Exchange):
            told[event.connection] += sum(4 + len(message.frame.payload) for message in event.messages)
        elif isinstance(event, Connection):
            if event.tls is None:
                said[event.connection] = event.bytes_to_broker + event.bytes_from_broker
                told[event.connection] += event.skipped_bytes
                told[event.connection] += sum(each.get("size", 0) for each in event.proxies or ())
        elif isinstance(event, Fault) and event.connection is not None:
            headless, cut = _HEADLESS.search(event.message), _CUT.search(event.message)
            if event.kind == "cut-frame" and cut is not None:
                captured = int(cut[1].replace(",", ""))  # the size of the frame that the next fault is about
                continue
            if event.kind == "malformed" and headless is not None:
                size = int(headless[1].replace(",", ""))
                told[event.connection] += 4 + (size if captured is None else captured)
        captured = None
    return {number: each - told[number] for number, each in said.items() if each != told[number]}
