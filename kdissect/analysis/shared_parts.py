"""Parts of an exchange that several statistics need, found once for all of them: first of all, its record
sets.

Many statistics read the same record sets, one after the other. The results are kept until the next exchange
comes. If statistics read many exchanges in turn, the results are kept for that whole time.

Functions about many exchanges at once are here, too (:func:`by_api`, :func:`latest_in`): they also read each
exchange once for all statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kdissect.analysis.batches import Batches
from kdissect.analysis.headers import Header, headers, sets_of
from kdissect.exchange import Exchange, RecordSetPlace
from kdissect.limits import Limits
from kdissect.message import Message, Response, Token
from kdissect.names import METADATA_TOPIC, METADATA_TOPIC_ID
from kdissect.protocol.apis import FETCH
from kdissect.protocol.topics import partition_of

if TYPE_CHECKING:
    from kdissect.analysis.waits import WaitAndWork

_MAGIC_AT = 16
_NO_BATCHES = Batches()
_NO_HEADERS: list[Header] = []
"""The headers of empty sets. Do not change it."""


class SharedSet:
    """A record set. It is read on first use, and shared: do not change the results."""

    __slots__ = ("_batches", "_headers", "_is_assigned", "_merged", "_offset", "limits", "place")

    def __init__(self, place: RecordSetPlace, limits: Limits) -> None:
        self.place = place
        self.limits = limits
        self._batches: Batches | None = None
        self._headers: list[Header] | None = None
        self._merged: list[Header] | None = None
        self._is_assigned = False
        self._offset: int | None = None

    def assigned_offset(self, exchange: Exchange) -> int | None:
        """The result of :meth:`Exchange.assigned_base_offset`.

        :param exchange: its exchange.
        """
        if not self._is_assigned:
            self._offset = exchange.assigned_base_offset(self.place)
            self._is_assigned = True
        return self._offset

    @property
    def batches(self) -> Batches:
        """The counts of its batches, with their checksums checked."""
        if self._batches is None:
            data = self.place.data
            self._batches = Batches() if data else _NO_BATCHES
            if data:
                self._batches.add(data, self.limits)
        return self._batches

    @property
    def headers(self) -> list[Header]:
        """The result of :func:`~kdissect.analysis.headers.headers`."""
        if self._headers is None:
            data = self.place.data
            if not data:
                self._headers = _NO_HEADERS
            elif len(data) > _MAGIC_AT and data[_MAGIC_AT] < 2:
                self._headers = headers(data, self.limits)
            else:  # nothing to be unpacked
                self._headers = [each for each in self.sets if each.is_whole]
        return self._headers

    @property
    def sets(self) -> list[Header]:
        """The result of :func:`~kdissect.analysis.headers.sets_of`."""
        if self._merged is None:
            data = self.place.data
            self._merged = sets_of(data, self.limits) if data else _NO_HEADERS
        return self._merged


class ErrorPlace(NamedTuple):
    """A non-zero error code, and its object."""

    code: int
    ancestors: tuple[dict[str, Any], ...]
    """The structs of the response around the code, outermost first."""
    topic: str | None
    topic_id: str | None
    partition: int | None
    grave: str
    """The class of the error: fatal, retriable or routine."""


class SharedParts:
    """The results for an exchange while statistics read many in turn (``Exchange.shared``)."""

    __slots__ = (
        *("answer", "error_class", "errors", "follows_log", "limits", "replica_id"),
        *("sets", "split", "topics"),
    )

    def __init__(self) -> None:
        self.limits: Limits | None = None
        self.sets: list[SharedSet] | None = None
        """Its record sets, found under ``limits``."""
        self.split: WaitAndWork | None = None
        """The wait and the work in its response time."""
        self.topics: list[str] | None = None
        """Its topics."""
        self.replica_id: int | None = None
        """The follower's id in a Fetch."""
        self.answer: bytes | None = None
        """The bytes of its response's body. It is one object, so that its hash is computed once."""
        self.errors: list[ErrorPlace] | None = None
        """The non-zero error codes in its response."""
        self.error_class: str | None = None
        """The class of its gravest error."""
        self.follows_log = -1
        """The result of :func:`follows_log`; -1 before the first call."""


def share(exchanges: list[Exchange]) -> None:
    """From now on, keep the results for these exchanges."""
    for exchange in exchanges:
        # Compiled, this takes a third of the time that a call of the class takes.
        parts = SharedParts.__new__(SharedParts)
        parts.limits = parts.sets = parts.split = parts.topics = parts.replica_id = parts.answer = None
        parts.errors = parts.error_class = None
        parts.follows_log = -1
        exchange.shared = parts


def unshare(exchanges: list[Exchange]) -> None:
    """Forget the results for these exchanges."""
    for exchange in exchanges:
        exchange.shared = None


def by_api(exchanges: list[Exchange]) -> dict[str | None, list[int]]:
    """The places of the exchanges of each API. With None: those that every statistic is asked for. With an
    empty name: those with an unknown request."""
    places: dict[str | None, list[int]] = {}
    for at, exchange in enumerate(exchanges):
        api: str | None = None
        if exchange.missing is None:
            known = exchange._first().layout()
            api = known.name if known is not None else exchange._api() or ""
        found = places.get(api)
        if found is None:
            places[api] = [at]
        else:
            found.append(at)
    return places


def latest_in(exchanges: Sequence[Exchange], packet: int, ns: int) -> tuple[Exchange | None, int]:
    """The exchange with the last packet, and the latest time at which one of them ended.

    :param packet: earlier packets do not count. Without a later one, no exchange is returned. If several
        exchanges have the last packet, the last of them is returned.
    :param ns: the time to return if all of them ended earlier.
    """
    last: Exchange | None = None
    for exchange in exchanges:
        its = exchange._last()
        if its >= packet:
            packet, last = its, exchange
        message: Message = exchange.response if exchange.response is not None else exchange._first()
        ns = max(ns, message.frame.last_ns)
    return last, ns


def of_api_keys(exchanges: Sequence[Exchange], keys: tuple[int, ...]) -> list[Exchange]:
    """The exchanges of some APIs."""
    found: list[Exchange] = []
    for exchange in exchanges:
        message = exchange._first()
        if message.api_key in keys:
            found.append(exchange)
    return found


class _AskedLast:
    """The exchange of the last call."""

    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known: tuple[Exchange | None, Response | Token | None, Limits | None, list[SharedSet]]
        self.known = (None, None, None, [])
        """The exchange, its response (which may come later), the limits, and its sets. They are one value, so
        that no thread sees a mix of two."""


_latest = _AskedLast()


def record_sets(exchange: Exchange, limits: Limits) -> list[SharedSet]:
    """Every record set in an exchange."""
    shared: SharedParts | None = exchange.shared
    if shared is not None:
        found = shared.sets
        if found is None or shared.limits is not limits:
            shared.limits = limits
            found = shared.sets = _find(exchange, limits)
        return found
    of, response, under, found = _latest.known
    if of is not exchange or response is not exchange.response or under is not limits:
        found = _find(exchange, limits)
        _latest.known = (exchange, exchange.response, limits, found)
    return found


def produced_ends(exchange: Exchange, limits: Limits) -> list[tuple[RecordSetPlace, int]]:
    """Each produced record set to which the broker gave an offset, with the offset after its records."""
    out = []
    for each in record_sets(exchange, limits):
        place = each.place
        end = each.assigned_offset(exchange)
        if end is not None:
            for batch in each.sets:
                end += batch.length
            out.append((place, end))
    return out


def topics_of(exchange: Exchange) -> list[str]:
    """Its topics, like :attr:`Exchange.topics`; shared: do not change the list."""
    shared: SharedParts | None = exchange.shared
    if shared is None:
        return exchange.topics
    found = shared.topics
    if found is None:
        found = shared.topics = exchange.topics
    return found


def answer_bytes(exchange: Exchange, response: Message) -> bytes:
    """The bytes of the response's body."""
    shared: SharedParts | None = exchange.shared
    found = None if shared is None else shared.answer
    if found is None:
        found = response.frame.payload[response.body_start :]
        if shared is not None:
            shared.answer = found
    return found


def errors_of(exchange: Exchange) -> list[ErrorPlace]:
    """Every non-zero error code in the response; shared: do not change the list."""
    shared: SharedParts | None = exchange.shared
    if shared is None:
        return _errors(exchange)
    found = shared.errors
    if found is None:
        found = shared.errors = _errors(exchange)
    return found


def error_class_of(exchange: Exchange) -> str | None:
    """The class of the gravest error, like :attr:`Exchange.error_class`."""
    shared: SharedParts | None = exchange.shared
    if shared is None:
        return exchange.error_class
    found = shared.error_class
    if found is None:
        found = shared.error_class = exchange.error_class
    return found


def follows_log(exchange: Exchange) -> bool:
    """Whether the exchange is a Fetch of ``__cluster_metadata`` and nothing else. Brokers and controllers
    follow that log all the time (KIP-595). It belongs to no producer, consumer or group."""
    shared: SharedParts | None = exchange.shared
    if shared is None:
        return _follows_log(exchange)
    if shared.follows_log < 0:
        shared.follows_log = _follows_log(exchange)
    return shared.follows_log > 0


def _follows_log(exchange: Exchange) -> bool:
    request, response = exchange.request, exchange.response
    if request is None or response is None or request.api_key != FETCH:
        return False
    asked, answered = request.survey(), response.survey()
    if asked is None or answered is None or not asked.mentions:
        return False
    return _are_of_log(asked.mentions) and _are_of_log(answered.mentions)


def _are_of_log(mentions: list[tuple[str | None, str | None]]) -> bool:
    others = [each for each in mentions if each[0] != METADATA_TOPIC and each[1] != METADATA_TOPIC_ID]
    return not others


def _errors(exchange: Exchange) -> list[ErrorPlace]:
    return [
        ErrorPlace(code, ancestors, *partition_of(ancestors), exchange.class_of(code))
        for code, ancestors in exchange.error_codes()
    ]


def _find(exchange: Exchange, limits: Limits) -> list[SharedSet]:
    found: list[SharedSet] = []
    if not _may_have_sets(exchange.request) and not _may_have_sets(exchange.response):
        return found  # without a generator
    for place in exchange.record_sets():
        each = SharedSet.__new__(SharedSet)
        each.place, each.limits = place, limits
        each._batches = each._headers = each._merged = each._offset = None
        each._is_assigned = False
        found.append(each)
    return found


def _may_have_sets(message: Message | None) -> bool:
    return message is not None and message.may_have_records()
