"""A capture that is cut, dissected in parts and stitched; and what one dissector says of it."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any, NamedTuple

from kdissect.capture.reader import Item
from kdissect.dissect import Dissector, Event
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Endpoint, Packet
from kdissect.names import KnownNames
from kdissect.parts.part import dissect_part
from kdissect.parts.stitch import Stitcher
from kdissect.plain import plain_exchange
from kdissect.session.briefs import Brief, Interest
from tests.test_dissect_short import may_have_no_row


class Stitched(NamedTuple):
    """What came of parts."""

    events: list[Any]
    seams: int
    """Parts whose edge was enough."""
    given_up: list[str]
    """Why others were dissected with the true state."""


def shown(events: Iterable[Event]) -> list[Any]:
    """Events as values that can be compared."""
    out: list[Any] = []
    for event in events:
        if isinstance(event, Brief):
            event = event.exchange()
        if isinstance(event, Exchange):
            names = event.topic_names
            assert isinstance(names, KnownNames)
            known = names._names.order[: names.count]
            out.append((plain_exchange(event), names.packet, len(known), event.topics))
        else:
            out.append(event)
    return out


def alone(items: Sequence[Item], limits: Limits = DEFAULTS) -> list[Any]:
    """What one dissector says."""
    dissector = Dissector(limits)
    found = [event for events in dissector.feed_all(items) for event in events]
    return shown([*found, *dissector.close()])


def without_rows(events: Iterable[Any]) -> list[Any]:
    """Without the rows of connections that speak Kafka or say nothing: where exchanges are told in brief, not
    all have one."""
    return [each for each in events if not may_have_no_row(each)]


def stitched(
    items: Sequence[Item],
    cuts: Sequence[int],
    limits: Limits = DEFAULTS,
    chance: random.Random | None = None,
    *,
    briefs: Interest | None = None,
) -> Stitched:
    """What parts say.

    :param chance: decides whether a part knows which connections may go on, or finds that out at its seam.
    :param briefs: what is asked of exchanges in brief, where they may be told so.
    """
    true = Dissector(limits, briefs=briefs)
    out: list[Any] = []
    why_not: list[str] = []
    tls: set[Endpoint] = set()
    seams = 0
    for some in _parts(items, cuts):
        if not isinstance(some[0], Packet):  # nobody cuts there: it is no part
            for events in true.feed_all(some):
                out += shown(events)
            continue
        stitcher = Stitcher(true, limits)
        knows = chance is None or chance.random() < 0.7
        going_on = frozenset(map(hash, true.pairs())) if knows else frozenset()
        part = dissect_part([some], None, going_on, limits, briefs=briefs, tls=tls)
        edge = pickle.loads(pickle.dumps(part.edge))
        why = stitcher.refusal_reason(edge)
        if why is not None:
            why_not.append(why)
            for events in true.feed_all(some):
                out += shown(events)
            continue
        tls.update(edge.tls)
        names = deepcopy(true.names)
        out += shown(part.events(stitcher.take(edge), names))
        assert names.order == true.names.order
        seams += 1
    assert true.packets == sum(isinstance(item, Packet) for item in items)
    return Stitched([*out, *shown(true.close())], seams, why_not)


def _parts(items: Sequence[Item], cuts: Sequence[int]) -> Iterator[Sequence[Item]]:
    """The packets between two cuts, and each thing that is no packet by itself."""
    others = [at for at, item in enumerate(items) if not isinstance(item, Packet)]
    places = sorted({0, *cuts, *others, *(at + 1 for at in others), len(items)})
    for start, end in pairwise(places):
        yield items[start:end]


def places(count: int, parts: int, chance: random.Random) -> list[int]:
    """Where so many packets are cut."""
    return sorted(chance.randrange(count + 1) for _ in range(parts - 1))
