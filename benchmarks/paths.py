"""One path through a capture without a front end: ``python benchmarks/paths.py packets FILE``, or ``frames``,
``whole``, ``columns``, ``index``, ``messages``.

It is a separate process, so that its CPU and memory are those of the path only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

from kdissect.capture.files import read_packets
from kdissect.dissect import Dissector, Event
from kdissect.exchange import Exchange
from kdissect.record.sets import read_record_set
from kdissect.session.briefs import Brief, Interest

_NUMBERS = Interest(errors=False, records=False, names=False, bodies=False)


def packets(path: str) -> int:
    """Packets only."""
    return sum(1 for _ in read_packets([path]))


def frames(path: str) -> int:
    """Packets, segments, ordered bytes, frames, headers, pairs, as the outputs read them: packets in runs,
    exchanges in brief. Bodies are decoded only if pairing needs them."""
    return sum(
        isinstance(event, Exchange | Brief)
        for events in _events(path, Dissector(briefs=_NUMBERS))
        for event in events
    )


def whole(path: str) -> int:
    """The same with a whole exchange for each pair, as the screens and the library read them."""
    return sum(1 for _ in _exchanges(path))


def columns(path: str) -> int:
    """Frames, and all records of magic 2 as columns, checksums compared."""
    count = 0
    for exchange in _exchanges(path):
        for place in exchange.record_sets():
            for batch in read_record_set(place.data).batches:
                has_columns = batch.magic == 2 and hasattr(batch, "columns")  # older checkouts do not have it
                count += batch.columns().count if has_columns else len(batch.records())
    return count


def index(path: str) -> int:
    """The values that the screens keep of each exchange: topics, error, whether it has faults."""
    return sum(bool(each.topics) + bool(each.error) + bool(each.faults) for each in _exchanges(path))


def messages(path: str) -> int:
    """Frames, and every field of every message as a value, as in ``kdissect bytes message``."""
    return sum(len(message.body()) for exchange in _exchanges(path) for message in exchange.messages)


def _exchanges(path: str) -> Iterator[Exchange]:
    for events in _events(path, Dissector()):
        yield from (event for event in events if isinstance(event, Exchange))


def _events(path: str, dissector: Dissector) -> Iterator[Sequence[Event]]:
    packets = read_packets([path])
    for items in packets.in_runs():
        yield from dissector.feed_all(items)
    yield from ((event,) for event in dissector.close())


PATHS: dict[str, Callable[[str], int]] = {
    "packets": packets,
    "frames": frames,
    "whole": whole,
    "columns": columns,
    "index": index,
    "messages": messages,
}


def main(name: str, path: str) -> None:
    """Run one of the :data:`PATHS`."""
    sys.stdout.write(f"{PATHS[name](path):,}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
