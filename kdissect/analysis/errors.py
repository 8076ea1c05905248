"""Errors: every non-zero error code in a response. A row has its gravity, its clients, its object, and its
first and last time. One response may hold many: one for each topic, partition, member …"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from kdissect.analysis.counters import Span
from kdissect.analysis.declared import (
    BROKER_COLUMN,
    EXCHANGE,
    PARTITION_COLUMN,
    SPEAKER_COLUMNS,
    TOPIC_COLUMN,
    column,
    time_column,
)
from kdissect.analysis.fold import Batched, OneTable, Row
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.packed import packed
from kdissect.analysis.recent import Recent
from kdissect.analysis.shared_parts import ErrorPlace, answer_bytes, errors_of
from kdissect.analysis.speakers import address
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.message import Response, Token
from kdissect.protocol.entities import GROUP, TOPIC, TRANSACTIONAL_ID
from kdissect.protocol.errors import CLASSES, error_name


@packed
@dataclass(slots=True)
class _ErrorTimes:
    count: int = 0
    span: Span = field(default_factory=Span)

    def merge(self, later: _ErrorTimes) -> None:
        self.count += later.count
        self.span.merge(later.span)


GROUPINGS = ("broker", "client", "client_id", "principal", "group", "transactional_id", "topic", "partition")
"""The groupings of rows beyond error, class and API. Without an argument, all of them."""


class _Whose(NamedTuple):
    """The client of the error, and its object."""

    broker: str | None
    client: str | None
    """The client's address, without the port."""
    client_id: str | None
    principal: str | None
    group: str | None
    transactional_id: str | None
    partition: int | None


_Key = tuple[Topic, str | None, int, str, _Whose]
"""Topic, API, error code, error class, and the groupings."""
_MOST_BYTES, _MOST_KNOWN = 1_024, 512
"""The most bytes of a request and its answer that are remembered, and the most of them."""


def _words(exchange: Exchange, response: Response | Token) -> tuple[Any, ...] | None:
    """The key of the errors in an answer: equal keys mean the same rows. None if the comparison would take
    long, or if the bodies must be decoded to know what they name."""
    request = exchange.request
    asked = None if request is None else request.survey()
    if request is None or asked is None or response.survey() is None:
        return None
    answer = answer_bytes(exchange, response)
    if len(answer) + len(request.frame.payload) > _MOST_BYTES:
        return None
    groups, ids, keys = asked.groups, asked.transactional_ids, asked.keys
    names: tuple[tuple[str, ...], ...] | None = None
    if groups is not None or ids is not None or keys is not None:
        names = tuple(groups or ()), tuple(ids or ()), tuple(keys or ())
    whose = exchange.client, exchange.broker, request.client_id, exchange.principal, exchange.routine
    return whose, response.api_key, response.api_version, names, asked.coordinator_type, answer


class Errors(Batched, OneTable[_Key, _ErrorTimes]):
    """The statistic ``errors``. ``by`` has some of the :data:`GROUPINGS`; if it is empty, all."""

    name = "errors"
    about = "error codes: how grave they are, who got them and on what, the first and last exchange"
    columns = (
        column("error", "text", "the error's name"),
        column("error_code", "int16", "the error's number"),
        column(
            "error_class",
            "text",
            "fatal (the client gives up the request), retriable (the client tries again), routine (an "
            "ordinary step, within its bound)",
        ),
        column("api", "text", "the API whose responses contain it"),
        BROKER_COLUMN,
        *SPEAKER_COLUMNS,
        column("principal", "text", "user of the connection, from its login"),
        column("group", "text", "the group that the request or response names"),
        column("transactional_id", "text", "the transactional id that the request or response names"),
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        column("count", "int64", "how often it occurred; one response may contain it many times"),
        column("first_exchange", "int64", "number of the first exchange with the error", unit=EXCHANGE),
        time_column("first_ns", "time of that exchange"),
        column("last_exchange", "int64", "number of the last exchange with the error", unit=EXCHANGE),
        time_column("last_ns", "time of that exchange"),
    )
    groupings = GROUPINGS

    def __init__(self, limits: Limits = DEFAULTS, by: tuple[str, ...] = ()) -> None:
        super().__init__(_ErrorTimes, limits)
        self._labels = Labels(self.latest, limits)
        self._by = frozenset(by or GROUPINGS)
        self._known: Recent[tuple[Any, ...], list[tuple[_ErrorTimes, Topic]]] = Recent(_MOST_KNOWN)
        """The rows of recent answers, by :func:`_words`. Clients repeat a refused request again and again."""

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        for exchange in exchanges:
            if exchange.error is not None:
                self._failed(exchange)

    def _failed(self, exchange: Exchange) -> None:
        response = exchange.response
        if response is None:
            return
        words = _words(exchange, response)
        found = None if words is None else self._known.get(words)
        if found is None:
            found = self._read(exchange, words)
        ns, number = response.frame.last_ns, exchange.number
        for row, topic in found:
            if topic.topic_id:
                self._labels.topic(None, topic.topic_id)  # notes that the id needs a name
            row.count += 1
            row.span.add(ns, number)

    def _read(self, exchange: Exchange, words: tuple[Any, ...] | None) -> list[tuple[_ErrorTimes, Topic]]:
        """The rows of the errors in an exchange, with their topics."""
        found: list[tuple[_ErrorTimes, Topic]] = []
        errors = errors_of(exchange)
        for each in errors:
            key = self._key(exchange, each)
            row = self._rows.row(key)
            if row is not None:
                found.append((row, key[0]))
        if words is not None and len(found) == len(errors):
            self._known.keep(words, found)
        return found

    def _key(self, exchange: Exchange, error: ErrorPlace) -> _Key:
        by = self._by
        code, ancestors, name, topic_id, partition, grave = error
        if "topic" not in by:
            topic = self._labels.topic(None, None)
        else:
            name = name or (None if topic_id else exchange.subject_at(TOPIC, ancestors))
            topic = self._labels.topic(name, topic_id)
        whose = _Whose(
            exchange.broker if "broker" in by else None,
            address(exchange.client) if "client" in by else None,
            exchange.client_id if "client_id" in by else None,
            exchange.principal if "principal" in by else None,
            exchange.subject_at(GROUP, ancestors) if "group" in by else None,
            exchange.subject_at(TRANSACTIONAL_ID, ancestors) if "transactional_id" in by else None,
            partition if "partition" in by else None,
        )
        return topic, exchange.api, code, grave, whose

    def merge(self, later: Self) -> None:
        self._labels.merge(later._labels)
        super().merge(later)

    def result(self) -> list[Row]:
        rows = []
        found = self._labels.by_name(self._rows.rows, _ErrorTimes)
        for (topic, api, code, grave, whose), row in found.items():
            rows.append(
                {
                    "error": error_name(code),
                    "error_code": code,
                    "error_class": grave,
                    "api": api,
                    "broker": whose.broker,
                    "client": whose.client,
                    "client_id": whose.client_id,
                    "principal": whose.principal,
                    "group": whose.group,
                    "transactional_id": whose.transactional_id,
                    "topic": topic,
                    "partition": whose.partition,
                    "count": row.count,
                    "first_exchange": row.span.first_exchange,
                    "first_ns": row.span.first_ns,
                    "last_exchange": row.span.last_exchange,
                    "last_ns": row.span.last_ns,
                }
            )
        return sorted(rows, key=_order)


def _order(row: Row) -> tuple[Any, ...]:
    """The sort key: the gravest first, then the most frequent."""
    texts = (
        "error",
        "api",
        "topic",
        "broker",
        "client",
        "client_id",
        "principal",
        "group",
        "transactional_id",
    )
    partition = -1 if row["partition"] is None else row["partition"]
    return (CLASSES.index(row["error_class"]), -row["count"], *(row[name] or "" for name in texts), partition)
