"""Statistics over captures of the lab, and over exchanges made here."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from kdissect.analysis.catalogue import STATISTICS, statistic
from kdissect.analysis.fold import Row, Statistic
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.message import parse_request, parse_response
from kdissect.model import Direction, Frame
from tests.acceptance.request_log import Entry, entry, exchange_key
from tests.dissecting import dissect
from tests.kafka import request, response
from tests.lab import Case
from tests.tcp.segments import BROKER, CLIENT


def told_apart(kind: type[Statistic]) -> str:
    """How a statistic is asked for that it tells most apart."""
    if kind.name in ("io", "timeline"):
        return f"{kind.name},100ms"
    # What has no fault has no row by layer.
    return ",".join((kind.name, *(each for each in kind.groupings if each != "layer")))


SPEC = [*map(told_apart, STATISTICS.values()), "lag,1s", "traffic", "traffic,topic", "traffic,layer"]
"""Every statistic, as it tells most apart."""
CASES = (
    *("java43-groups", "java43-errors", "wrong-requests", "java39-transactions", "java43-share-2"),
    *("zk39-ibp28", "sweep-39-controller", "cluster43-combined"),
)
"""Captures that together have rows of every statistic."""


def fold(text: str, events: Iterable[Event], limits: Limits = DEFAULTS) -> Statistic:
    """A statistic that was fed these events."""
    _, found = statistic(text, limits)
    for event in events:
        found.feed(event)
    return found


def rows_of_parts(text: str, events: Sequence[Event]) -> Iterator[list[Row]]:
    """The rows of two parts, merged after the first went to another process: for each place to cut at."""
    for cut in range(len(events) + 1):
        first, later = fold(text, events[:cut]), fold(text, events[cut:])
        sent: Statistic = pickle.loads(pickle.dumps(first))
        sent.merge(later)
        yield sent.result()


@cache
def events_of(case: str) -> tuple[Event, ...]:
    """What a capture of the lab gives, in the order in which it comes."""
    return tuple(dissect(Case(case).packets()))


def rows_of(text: str, case: str) -> list[Row]:
    """A statistic over a capture of the lab."""
    return fold(text, events_of(case)).result()


@cache
def case_of(text: str) -> str:
    """The first of the cases in which a statistic has more than one row."""
    few = DEFAULTS._replace(rows=1)
    return next(case for case in CASES if fold(text, events_of(case), few).left_out)


@cache
def logged(case: str) -> tuple[tuple[Entry, dict[str, Any], Exchange], ...]:
    """The entries of a case's request log, raw lines beside them, with the exchanges that they are."""
    waiting: dict[object, list[Exchange]] = {}
    for event in events_of(case):
        if isinstance(event, Exchange):
            waiting.setdefault(exchange_key(event), []).append(event)
    found = []
    for line in Case(case).log():
        each = entry(line)
        if not each.forwarded and waiting.get(each.key):
            found.append((each, line, waiting[each.key].pop(0)))
    return tuple(found)


@cache
def ids_of(case: str) -> dict[str, str]:
    """Names of topic ids, wherever the log has the two side by side; one is Kafka's own."""
    names = {"AAAAAAAAAAAAAAAAAAAAAQ": "__cluster_metadata"}

    def learn(value: Any) -> None:
        if isinstance(value, list):
            for each in value:
                learn(each)
        elif isinstance(value, dict):
            name = value.get("name") or value.get("topicName") or value.get("topic")
            if value.get("topicId", "").strip("A") and name:
                names[value["topicId"]] = name
            learn(list(value.values()))

    for line in Case(case).log():
        learn([line.get("request"), line.get("response")])
    return names


def frame(direction: Direction, payload: bytes, ns: int) -> Frame:
    """A frame that came in one packet."""
    return Frame(direction, 0, payload, len(payload), ns, ns, ns, ns, (ns,))


def made(
    api: str,
    version: int,
    asked: dict[str, Any],
    answered: dict[str, Any] | None,
    at: tuple[int, int] = (1, 2),
    connection: int = 0,
    limits: Limits = DEFAULTS,
) -> Exchange:
    """An exchange, in Kafka's JSON form; ``at`` are the times of request and response."""
    out = Exchange(connection, CLIENT, BROKER)
    asking = parse_request(frame(Direction.TO_BROKER, request(api, version, **asked), at[0]), limits)
    out.request = asking
    out.number = at[0]
    if answered is not None:
        payload = response(api, version, **answered)
        out.response = parse_response(
            frame(Direction.FROM_BROKER, payload, at[1]), asking.api_key, asking.api_version, limits
        )
        out.behind_ns = out.throttle_ns = 0
    return out
