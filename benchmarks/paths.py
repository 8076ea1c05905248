"""One path through a capture without a front end: ``python benchmarks/paths.py packets FILE``, or ``frames``,
``columns``, ``index``, ``messages``.

It is a process of its own, so that its CPU and memory are that path's alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from kdissect.capture.files import read_packets
from kdissect.dissect import Dissector
from kdissect.exchange import Exchange
from kdissect.record.sets import read_record_set


def packets(path: str) -> int:
    """Packets only."""
    return sum(1 for _ in read_packets([path]))


def frames(path: str) -> int:
    """Packets, segments, ordered bytes, frames, headers, pairs: bodies are not decoded but where pairing or
    names of topics need them."""
    return sum(1 for _ in _exchanges(path))


def columns(path: str) -> int:
    """Frames, and all records of magic 2 as columns, checksums compared."""
    count = 0
    for exchange in _exchanges(path):
        for place in exchange.record_sets():
            for batch in read_record_set(place.data).batches:
                has_columns = batch.magic == 2 and hasattr(batch, "columns")  # older checkouts have none
                count += batch.columns().count if has_columns else len(batch.records())
    return count


def index(path: str) -> int:
    """What the screens keep of each exchange: topics, error, whether it has faults."""
    return sum(bool(each.topics) + bool(each.error) + bool(each.faults) for each in _exchanges(path))


def messages(path: str) -> int:
    """Frames, and every field of every message as a value, as ``kdissect bytes message`` has it."""
    return sum(len(message.body()) for exchange in _exchanges(path) for message in exchange.messages)


def _exchanges(path: str) -> Iterator[Exchange]:
    dissector = Dissector()
    if hasattr(dissector, "feed_all"):
        for events in dissector.feed_all(read_packets([path])):
            yield from (event for event in events if isinstance(event, Exchange))
    else:  # an older checkout
        for item in read_packets([path]):
            yield from (event for event in dissector.feed(item) if isinstance(event, Exchange))
    yield from (event for event in dissector.close() if isinstance(event, Exchange))


PATHS: dict[str, Callable[[str], int]] = {
    "packets": packets,
    "frames": frames,
    "columns": columns,
    "index": index,
    "messages": messages,
}


def main(name: str, path: str) -> None:
    """Go one of the :data:`PATHS`."""
    sys.stdout.write(f"{PATHS[name](path):,}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
