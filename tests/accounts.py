"""No byte goes astray: what a connection said is in its exchanges, or in a fault, each byte once."""

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
    """By connection in the clear, how many of its captured bytes nothing tells of; empty where all is told.

    Frames that are part of no exchange are told by faults, captured bytes in no frame by ``skipped_bytes``.
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
                captured = int(cut[1].replace(",", ""))  # of the frame that the next fault is about
                continue
            if event.kind == "malformed" and headless is not None:
                size = int(headless[1].replace(",", ""))
                told[event.connection] += 4 + (size if captured is None else captured)
        captured = None
    return {number: each - told[number] for number, each in said.items() if each != told[number]}
