"""The profile of a capture: rates, shares, means and percentiles with their margins, of each API, broker,
client, topic and group. ``kdissect diff`` compares the profiles of two captures.

A restarted service is the same service, though its client id may contain a new random part or the next
number. So client ids and group names that differ only in such parts become one, with ``*`` in place of these
parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple, Self

from kdissect.analysis.declared import column, first_and_last
from kdissect.analysis.fold import Batched, Row, Statistic
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.measures import AlikeExchanges, DirectMeasures, Measure
from kdissect.analysis.profile_rows import (
    API,
    BASE,
    BROKER,
    CLIENT,
    GROUP_AREA,
    MEAN,
    PERCENTILE,
    RATE,
    SHARE,
    TOPIC_AREA,
    NamedKey,
    in_order,
    rows_of,
    subject_order,
)
from kdissect.analysis.rows import Rows
from kdissect.analysis.shared_parts import errors_of, record_sets, topics_of
from kdissect.analysis.slices import SlicedSums, SlicedTimes, count_each
from kdissect.analysis.topics import replica_id
from kdissect.analysis.waits import split
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.protocol.apis import API_VERSIONS
from kdissect.protocol.entities import TOPIC
from kdissect.protocol.errors import FATAL, ROUTINE, error_name

_DIRECTIONS = {"Produce": "written", "Fetch": "read", "ShareFetch": "read"}


_MEASURE_BYTES = 3_500
"""The approximate size of a measure in slices of time, with its rows."""


_ProfileKey = tuple[Topic, str, str, str, str]
"""The subject (a topic, or for other areas their name in its place), the area, the quantity, the kind, and
the base of a share."""


_MOST_KINDS = 512
"""The most kinds that are remembered at a time."""
_FEW = 3
"""Exchanges with fewer groups and topics than this are counted together if they name the same ones. Other
exchanges are counted at once for each of theirs: there are too many combinations of names."""
_ID_LENGTH = 22
"""The length of a topic id."""
_MOST_WAITING = 20_000
"""The most exchanges that are counted together. Their times take memory until the measures take them in."""


class _Error(NamedTuple):
    name: str
    is_fatal: bool
    topic: Topic | None
    """The topic; None for other subjects."""


_NO_ERRORS: set[_Error] = set()
"""The errors of most exchanges. Do not change it."""


class Profile(Batched, Statistic):
    """The statistic ``profile``."""

    name = "profile"
    about = (
        "rates, times, errors and sizes per API, broker, client, topic and group, with confidence intervals"
    )
    columns = (
        column("area", "text", "api, broker, client, topic or group"),
        column("subject", "text", "name of the API, broker, …; * stands for a random part of the name"),
        column("what", "text", "what was measured"),
        column(
            "kind",
            "text",
            "rate (per second, between the first and the last), mean, share (from 0 to 1) or percentile",
        ),
        column("unit", "text", "ns, bytes, records, … ; null for a share"),
        column("count", "int64", "number of exchanges or batches that were counted"),
        column("total", "int64", "the total: exchanges, errors, bytes, records; null for times"),
        column("value", "float64", "the value; null for a rate over less than a second"),
        column("low", "float64", "lower bound of the value (confidence 99 %); null if unknown"),
        column("high", "float64", "upper bound of the value (confidence 99 %); null if unknown"),
        *first_and_last("exchange that was counted"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self._rows: Rows[_ProfileKey, Measure] = Rows(Measure, self.room, _MEASURE_BYTES)
        self._labels = Labels(self.latest, limits)
        self._alike: dict[tuple[Any, ...], AlikeExchanges] = {}
        self._waiting = 0
        """The number of exchanges in ``_alike``."""
        self._kinds: dict[tuple[Any, ...], DirectMeasures] = {}
        self._batches: dict[tuple[Topic, str], list[SlicedSums | None]] = {}
        self._codecs: dict[tuple[Topic, str], SlicedSums | None] = {}
        self._named_errors: dict[tuple[str, Topic, str, bool], SlicedSums | None] = {}

    def __getstate__(self) -> dict[str, Any]:
        self._flush()
        caches = ("_alike", "_kinds", "_batches", "_codecs", "_named_errors")
        return {**self.__dict__, **{name: {} for name in caches}}

    @property
    def left_out(self) -> int:
        self._flush()
        return self._rows.left_out

    def merge(self, later: Self) -> None:
        self._flush()
        later._flush()
        self._labels.merge(later._labels)
        self._rows.merge(later._rows)

    # -- counting -----------------------------------------------------------------------------------

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        _count(exchanges, self)

    def _count_by_names(
        self, exchange: Exchange, ns: int, errors: set[_Error], groups: list[str], topics: list[Topic]
    ) -> None:
        """Count an exchange at once by its groups and topics."""
        for group in groups:
            self._count_subject(GROUP_AREA, _named(stem(group)), ns, exchange, errors)
        for topic in topics:
            theirs = (
                {each for each in errors if each.topic is None or each.topic == topic} if errors else errors
            )
            self._count_subject(TOPIC_AREA, topic, ns, exchange, theirs, has_rate=False)

    def _alike_in(
        self,
        which: tuple[Any, ...],
        exchange: Exchange,
        api: str,
        broker_ns: int | None,
        network_ns: int | None,
        groups: tuple[str, ...],
        topics: tuple[str, ...],
    ) -> AlikeExchanges:
        """The counts for exchanges like this one, under a new key or beyond the most that may wait."""
        if which in self._alike or len(self._alike) >= _MOST_KINDS:
            self._flush()
        alike = self._alike_of(exchange, api, broker_ns, network_ns, groups, topics)
        self._alike[which] = alike
        return alike

    def _alike_of(
        self,
        exchange: Exchange,
        api: str,
        broker_ns: int | None,
        network_ns: int | None,
        groups: tuple[str, ...],
        topics: tuple[str, ...],
    ) -> AlikeExchanges:
        """The counts for exchanges like this one."""
        out, version, client = AlikeExchanges(), exchange.api_version, _client(exchange)
        subjects = (API, _named(api)), (CLIENT, client)
        out.asked = [(self._sums(who, area, "requests", RATE), 1, 1) for area, who in subjects]
        if exchange.api_key != API_VERSIONS and version is not None:
            out.asked.append((self._sums(client, CLIENT, f"{api} v{version}", SHARE, api), 1, 0))
            out.asked.append((self._sums(client, CLIENT, api, BASE), 0, 1))
        if exchange.response is not None:
            answered = *subjects, *((TOPIC_AREA, self._labels.topic(topic, None)) for topic in topics)
            out.answers = [self._sums(who, area, "errors", SHARE) for area, who in answered]
        for group in groups:
            who = _named(stem(group))
            out.asked.append((self._sums(who, GROUP_AREA, "requests", RATE), 1, 1))
            if exchange.response is not None:
                out.answers.append(self._sums(who, GROUP_AREA, "errors", SHARE))
        if broker_ns is not None:
            out.times = [
                self._durations(_named(api), API, "broker time"),
                self._durations(client, CLIENT, f"broker time of {api}"),
            ]
        if network_ns is not None:
            out.network = [self._durations(client, CLIENT, "network")]
        return out

    def _flush(self) -> None:
        """Let the measures take in the waiting exchanges."""
        for alike in self._alike.values():
            self._rows.left_out += alike.flush()
        self._alike.clear()
        self._waiting = 0

    def _kind(
        self,
        which: tuple[Any, ...],
        area: str,
        who: Topic,
        has_rate: bool,
        is_answered: bool,
        timed: str | None = None,
    ) -> DirectMeasures:
        """The measures for exchanges of a kind.

        :param timed: the API whose broker time is counted.
        """
        if len(self._kinds) >= _MOST_KINDS:
            self._kinds.clear()
        requests = [self._sums(who, area, "requests", RATE)] if has_rate else []
        errors = [self._sums(who, area, "errors", SHARE)] if is_answered else []
        times = [] if timed is None else [self._durations(who, area, f"broker time of {timed}")]
        kind = self._kinds[which] = DirectMeasures(
            [each for each in requests if each is not None],
            [each for each in errors if each is not None],
            [each for each in times if each is not None],
            [*requests, *errors, *times].count(None),
        )
        return kind

    def _errors(self, exchange: Exchange) -> set[_Error]:
        """The errors of an exchange that are not routine."""
        found = set()
        for each in errors_of(exchange):
            if each.grave != ROUTINE:
                name = each.topic or exchange.subject_at(TOPIC, each.ancestors)
                topic = self._topic(exchange, name, each.topic_id) if name or each.topic_id else None
                found.add(_Error(error_name(each.code), each.grave == FATAL, topic))
        return found

    def _topics(self, exchange: Exchange) -> list[Topic]:
        topics = topics_of(exchange)
        if not topics:
            return []
        ids = exchange.topic_ids() if _may_be_ids(topics) else None
        if not ids:
            return [self._labels.topic(each, None) for each in topics]
        return [
            self._labels.topic(None, each) if each in ids else self._labels.topic(each, None)
            for each in topics
        ]

    def _topic(self, exchange: Exchange, name: str | None, topic_id: str | None) -> Topic:
        name = name or exchange.topic_names.get(topic_id or "")
        return self._labels.topic(name, None) if name else self._labels.topic(None, topic_id)

    def _count_subject(
        self,
        area: str,
        subject: Topic,
        ns: int,
        exchange: Exchange,
        errors: set[_Error],
        has_rate: bool = True,
    ) -> None:
        is_answered = exchange.response is not None
        which = area, subject, is_answered
        kind = self._kinds.get(which) or self._kind(which, area, subject, has_rate, is_answered)
        count_each(kind.requests, kind.errors, kind.times, ns, bool(errors), None)
        self._rows.left_out += kind.left_out
        if errors:
            self._name_errors(area, subject, ns, errors)

    def _name_errors(self, area: str, subject: Topic, ns: int, errors: set[_Error]) -> None:
        names = {(each.name, each.is_fatal) for each in errors}
        for name, is_fatal in sorted(names) if len(names) > 1 else names:
            sums = self._of_error(area, subject, name, is_fatal)
            if sums is not None:
                sums.add(ns, 1, 0)
            else:
                self._rows.left_out += 1

    def _of_error(self, area: str, subject: Topic, name: str, is_fatal: bool) -> SlicedSums | None:
        """The measure of an error of a subject."""
        key = area, subject, name, is_fatal
        if key not in self._named_errors:
            if len(self._named_errors) >= _MOST_KINDS:
                self._named_errors.clear()
            what = f"{'fatal ' if is_fatal else ''}error {name}"
            self._named_errors[key] = self._sums(subject, area, what, SHARE, "errors")
        return self._named_errors[key]

    def _of_batches(self, topic: Topic, done: str) -> list[SlicedSums | None]:
        """The measures of a topic's batches: records and bytes; for written batches also the size of each,
        its records, and their number."""
        found = self._batches.get((topic, done))
        if found is None:
            if len(self._batches) >= _MOST_KINDS:
                self._batches.clear()
            kinds = [(f"records {done}", RATE), (f"bytes {done}", RATE)]
            if done == "written":
                kinds += [("batch size", MEAN), ("records per batch", MEAN), ("codec", BASE)]
            found = [self._sums(topic, TOPIC_AREA, what, kind) for what, kind in kinds]
            self._batches[topic, done] = found
        return found

    def _of_codec(self, topic: Topic, codec: str) -> SlicedSums | None:
        """The measure of a topic's batches with a codec."""
        key = topic, codec
        if key not in self._codecs:
            if len(self._codecs) >= _MOST_KINDS:
                self._codecs.clear()
            self._codecs[key] = self._sums(topic, TOPIC_AREA, f"codec {codec}", SHARE, "codec")
        return self._codecs[key]

    def _sums(self, subject: Topic, area: str, what: str, kind: str, of: str = "") -> SlicedSums | None:
        """The sums of a measure, for a caller that keeps them."""
        row = self._often((subject, area, what, kind, of))
        return None if row is None else row.sums()

    def _durations(self, subject: Topic, area: str, what: str) -> SlicedTimes | None:
        """The times of a measure, for a caller that keeps them."""
        row = self._often((subject, area, what, PERCENTILE, ""))
        return None if row is None else row.durations()

    def _often(self, key: _ProfileKey) -> Measure | None:
        """The row of a measure, for a caller that keeps it. The caller counts exchanges without room, so this
        does not."""
        before = self._rows.left_out
        row = self._rows.row(key)
        self._rows.left_out = before
        return row

    # -- rows ---------------------------------------------------------------------------------------

    def result(self) -> list[Row]:
        return list(self.result_rows())

    def result_rows(self) -> Iterator[Row]:
        self._flush()
        found = self._labels.by_name(self._rows.rows, Measure)
        named = {NamedKey(*key): row for key, row in found.items()}
        for _, keys in groupby(sorted(named, key=subject_order), subject_order):
            rows = [each for key in keys for each in rows_of(key, named[key], named)]
            yield from sorted(rows, key=in_order)


def _count(exchanges: list[Exchange], profile: Profile) -> None:
    """Count exchanges."""
    kinds = profile._kinds
    for exchange in exchanges:
        ns, api, broker = exchange._begun(), exchange._api() or "unknown", exchange._broker_address()
        errors = profile._errors(exchange) if exchange._error() is not None else _NO_ERRORS
        broker_ns = split(exchange).broker_ns
        is_answered, has_errors = exchange.response is not None, bool(errors)
        # The measures of brokers count at once: many brokers have few exchanges each.
        kind = kinds.get((broker, api, is_answered, broker_ns is None))
        if kind is None:
            kind = profile._kind(
                (broker, api, is_answered, broker_ns is None),
                *(BROKER, _named(broker), True, is_answered, None if broker_ns is None else api),
            )
        requests, of_errors, times, left_out = kind
        count_each(requests, of_errors, times, ns, has_errors, broker_ns)
        if left_out:
            profile._rows.left_out += left_out
        groups, topics = exchange.groups, topics_of(exchange)
        is_apart = has_errors or len(groups) >= _FEW or len(topics) >= _FEW
        if is_apart or (topics and _may_be_ids(topics)):
            _count_alike(exchange, ns, api, has_errors, broker_ns, (), (), profile)
            profile._count_by_names(exchange, ns, errors, groups, profile._topics(exchange))
        else:
            _count_alike(exchange, ns, api, False, broker_ns, tuple(groups), tuple(topics), profile)
        if has_errors:
            client = _client(exchange)
            for area, who in ((API, _named(api)), (BROKER, _named(broker)), (CLIENT, client)):
                profile._name_errors(area, who, ns, errors)
        done = _DIRECTIONS.get(api)
        if done is not None:
            _count_batches(exchange, ns, done, profile)


def _count_alike(
    exchange: Exchange,
    ns: int,
    api: str,
    has_errors: bool,
    broker_ns: int | None,
    groups: tuple[str, ...],
    topics: tuple[str, ...],
    profile: Profile,
) -> None:
    """Count an exchange by API and client, and by these groups and topics, which all have names."""
    network_ns = None if exchange._latency() is None else exchange.network_ns
    which = (
        *(exchange._client_id(), api, exchange.api_version, exchange.response is not None),
        *(broker_ns is None, network_ns is None, groups, topics),
    )
    waiting = profile._alike
    alike = waiting.get(which)
    if alike is None or profile._waiting >= _MOST_WAITING:
        alike = profile._alike_in(which, exchange, api, broker_ns, network_ns, groups, topics)
    profile._waiting += 1
    slices = alike.slices
    slices.add(ns, has_errors, broker_ns, network_ns)


def _count_batches(exchange: Exchange, ns: int, done: str, profile: Profile) -> None:
    """Count the batches of an exchange by their topics."""
    is_written = done == "written"
    if not is_written and _is_follower(exchange):
        return
    for each in record_sets(exchange, profile.limits):
        count = size = records = 0
        codecs: dict[str, int] = {}
        for batch in each.headers:
            if batch.is_control:
                continue
            count += 1
            size += batch.size
            records += batch.records or 0
            if is_written:
                codec = batch.codec
                codecs[codec] = codecs.get(codec, 0) + 1
        if not count:  # as mostly in a Fetch: nothing new was written
            continue
        place = each.place
        topic = profile._topic(exchange, place.topic, place.topic_id)
        totals = records, size, size, records, 0
        found = profile._of_batches(topic, done)
        for at in range(len(found)):
            sums = found[at]
            if sums is not None:
                sums.add(ns, totals[at], count)
            else:
                profile._rows.left_out += count
        for codec, times in codecs.items():
            sums = profile._of_codec(topic, codec)
            if sums is not None:
                sums.add(ns, times, 0)
            else:
                profile._rows.left_out += times


def _may_be_ids(topics: list[str]) -> bool:
    """Whether one of these may be the id of a topic with an unknown name."""
    return _ID_LENGTH in map(len, topics)


def _client(exchange: Exchange) -> Topic:
    return _named(stem(exchange.client_id or "(no client id)"))


def _is_follower(exchange: Exchange) -> bool:
    """Whether the exchange is a Fetch of a follower."""
    return replica_id(exchange) >= 0


@lru_cache(maxsize=4096)
def _named(name: str) -> Topic:
    return Topic(name, "")


_BY_LOT = re.compile(
    r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}"  # UUIDs
    r"|-[bcdfghjklmnpqrstvwxz2456789]{8,10}-[bcdfghjklmnpqrstvwxz2456789]{5}$"  # pods of Kubernetes
    r"|(?<![0-9a-fA-F])(?=[a-fA-F]*[0-9])[0-9a-fA-F]{8,}(?![0-9a-zA-Z])"
    r"|[0-9]{4,}"
)


@lru_cache(maxsize=4096)
def stem(name: str) -> str:
    """A name with ``*`` in place of random parts and counters: UUIDs, long numbers, names of pods."""
    return _BY_LOT.sub(lambda found: "-*" if found[0].startswith("-") else "*", name)
