"""What a capture is like: rates, shares, means and percentiles with their margins, of each API, broker,
client, topic and group. ``kdissect diff`` compares the profiles of two captures.

A service that starts again is the same service, though its client id may hold a new random part or the next
number. So client ids and group names that differ in such parts only are one; ``*`` stands for these parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Self

from kdissect.analysis.declared import column, first_and_last
from kdissect.analysis.fold import Row, Rows, Statistic
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.sets import record_sets
from kdissect.analysis.slices import Estimate, SlicedSums, SlicedTimes
from kdissect.analysis.versions import replica_id_of
from kdissect.analysis.waits import split
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.protocol.apis import API_VERSIONS
from kdissect.protocol.entities import TOPIC
from kdissect.protocol.errors import FATAL, ROUTINE, error_name
from kdissect.protocol.topics import partition_of

AREAS = API, BROKER, CLIENT, TOPIC_AREA, GROUP_AREA = ("api", "broker", "client", "topic", "group")
RATE, MEAN, SHARE, PERCENTILE = ("rate", "mean", "share", "percentile")
_BASE = ""
"""Of what only counts what others are a share of; it has no row."""
PERCENTS = (50, 90, 99)
_DIRECTIONS = {"Produce": "written", "Fetch": "read", "ShareFetch": "read"}


_MEASURE_BYTES = 3_500
"""About what a measure takes, in slices of time, with its rows."""


_ProfileKey = tuple[Topic, str, str, str, str]
"""The subject (of areas that are no topics, their name stands for the topic's), the area, what, the kind, and
what it is a share of."""


class _Measure:
    """One of the two, by the kind of the key; made as it is first counted into."""

    __slots__ = ("counted", "times")

    def __init__(self) -> None:
        self.counted: SlicedSums | None = None
        self.times: SlicedTimes | None = None

    def sums(self) -> SlicedSums:
        """Where it is counted into."""
        if self.counted is None:
            self.counted = SlicedSums()
        return self.counted

    def durations(self) -> SlicedTimes:
        """Where times are counted into."""
        if self.times is None:
            self.times = SlicedTimes()
        return self.times

    def merge(self, later: _Measure) -> None:
        if later.counted is not None:
            self.counted = self.counted or SlicedSums()
            self.counted.merge(later.counted)
        if later.times is not None:
            self.times = self.times or SlicedTimes()
            self.times.merge(later.times)


class _Kind:
    """Where exchanges are counted that one client, by its client id, has with one broker, in one version of
    one API. They are looked up once: to name and find each anew would take longer than to count."""

    __slots__ = ("answers", "asked", "network", "times")

    def __init__(self) -> None:
        self.asked: list[tuple[SlicedSums | None, int, int]] | None = None
        """What each of them adds to: total and count."""
        self.answers: list[SlicedSums | None] | None = None
        self.times: list[SlicedTimes | None] | None = None
        self.network: list[SlicedTimes | None] | None = None


_MOST_KINDS = 512
"""So many are remembered at a time."""


class _Error(NamedTuple):
    name: str
    is_fatal: bool
    topic: Topic | None
    """What it is about; None where that is no topic."""


class _Named(NamedTuple):
    """A key whose topic has its name."""

    subject: str | None
    area: str
    what: str
    kind: str
    of: str


class Profile(Statistic):
    """The statistic ``profile``."""

    name = "profile"
    about = "rates, times, errors and sizes of APIs, brokers, clients, topics, groups, with margins"
    columns = (
        column("area", "text", "api, broker, client, topic or group"),
        column("subject", "text", "which of them; * stands for a part of a name that was drawn by lot"),
        column("what", "text", "what was measured"),
        column(
            "kind",
            "text",
            "rate (a second, between the first and the last), mean, share (from 0 to 1) or percentile",
        ),
        column("unit", "text", "ns, bytes, records, … ; null for a share"),
        column("count", "int64", "how many were counted: exchanges, batches"),
        column("total", "int64", "what they come to: exchanges, errors, bytes, records; null for times"),
        column("value", "float64", "the value"),
        column("low", "float64", "it lies above this, with a confidence of 99 %; null where unknown"),
        column("high", "float64", "and below this"),
        *first_and_last("that was counted"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self._rows: Rows[_ProfileKey, _Measure] = Rows(_Measure, self.room, _MEASURE_BYTES)
        self._labels = Labels(self.latest, limits)
        self._kinds: dict[tuple[Any, ...], _Kind] = {}
        self._batches: dict[tuple[Topic, str], list[SlicedSums | None]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kinds": {}, "_batches": {}}

    @property
    def left_out(self) -> int:
        return self._rows.left_out

    def merge(self, later: Self) -> None:
        self._labels.merge(later._labels)
        self._rows.merge(later._rows)

    # -- counting -----------------------------------------------------------------------------------

    def _exchange(self, exchange: Exchange) -> None:
        ns, api = exchange.begun_ns, exchange.api or "unknown"
        errors = self._errors(exchange)
        self._of_kind(exchange, ns, api, errors)
        for group in exchange.groups:
            self._talk(GROUP_AREA, _named(stem(group)), ns, exchange, errors)
        for topic in self._topics(exchange):
            theirs = (
                {each for each in errors if each.topic is None or each.topic == topic} if errors else errors
            )
            self._talk(TOPIC_AREA, topic, ns, exchange, theirs, rate=False)
        if api in _DIRECTIONS:
            self._records(exchange, ns, _DIRECTIONS[api])

    def _of_kind(self, exchange: Exchange, ns: int, api: str, errors: set[_Error]) -> None:
        """Count by API, broker and client."""
        version = exchange.api_version
        which = (exchange.broker_endpoint, exchange.client_id, api, version)
        kind = self._kinds.get(which)
        if kind is None:
            if len(self._kinds) >= _MOST_KINDS:
                self._kinds.clear()
            kind = self._kinds[which] = _Kind()
        if kind.asked is None:
            client, broker = self._ends(exchange)
            subjects = ((API, _named(api)), (BROKER, broker), (CLIENT, client))
            kind.asked = [(self._sums(who, area, "requests", RATE), 1, 1) for area, who in subjects]
            if exchange.api_key != API_VERSIONS and version is not None:
                kind.asked.append((self._sums(client, CLIENT, f"{api} v{version}", SHARE, api), 1, 0))
                kind.asked.append((self._sums(client, CLIENT, api, _BASE), 0, 1))
        for sums, total, count in kind.asked:
            if sums is not None:
                sums.add(ns, total, count)
            else:
                self._rows.left_out += 1
        if exchange.response is not None:
            if kind.answers is None:
                client, broker = self._ends(exchange)
                subjects = ((API, _named(api)), (BROKER, broker), (CLIENT, client))
                kind.answers = [self._sums(who, area, "errors", SHARE) for area, who in subjects]
            has_errors = bool(errors)
            for answers in kind.answers:
                if answers is not None:
                    answers.add(ns, has_errors)
                else:
                    self._rows.left_out += 1
            if errors:
                client, broker = self._ends(exchange)
                for area, who in ((API, _named(api)), (BROKER, broker), (CLIENT, client)):
                    self._name_errors(area, who, ns, errors)
        broker_ns = split(exchange).broker_ns
        if broker_ns is not None:
            if kind.times is None:
                client, broker = self._ends(exchange)
                kind.times = [
                    self._durations(_named(api), API, "broker time"),
                    self._durations(broker, BROKER, f"broker time of {api}"),
                    self._durations(client, CLIENT, f"broker time of {api}"),
                ]
            self._take_times(kind.times, ns, broker_ns)
        if exchange.network_ns is not None and exchange.latency_ns is not None:
            if kind.network is None:
                kind.network = [self._durations(self._ends(exchange)[0], CLIENT, "network")]
            self._take_times(kind.network, ns, exchange.network_ns)

    @staticmethod
    def _ends(exchange: Exchange) -> tuple[Topic, Topic]:
        """What the client and the broker are called."""
        return _named(stem(exchange.client_id or "(no client id)")), _named(exchange.broker)

    def _take_times(self, rows: list[SlicedTimes | None], ns: int, duration_ns: int) -> None:
        for row in rows:
            if row is not None:
                row.add(ns, duration_ns)
            else:
                self._rows.left_out += 1

    def _errors(self, exchange: Exchange) -> set[_Error]:
        """Its errors that are not routine."""
        if exchange.response is None or exchange.error is None:
            return set()
        found = set()
        for code, ancestors in exchange.error_codes():
            grave = exchange.class_of(code)
            if grave != ROUTINE:
                name, topic_id, _ = partition_of(ancestors)
                named = name or exchange.about(TOPIC, ancestors)
                topic = self._topic(exchange, named, topic_id) if named or topic_id else None
                found.add(_Error(error_name(code), grave == FATAL, topic))
        return found

    def _topics(self, exchange: Exchange) -> list[Topic]:
        topics = exchange.topics
        ids = exchange.topic_ids() if topics else ()
        return [
            self._labels.topic(None, each) if each in ids else self._labels.topic(each, None)
            for each in topics
        ]

    def _topic(self, exchange: Exchange, name: str | None, topic_id: str | None) -> Topic:
        name = name or exchange.topic_names.get(topic_id or "")
        return self._labels.topic(name, None) if name else self._labels.topic(None, topic_id)

    def _talk(
        self,
        area: str,
        subject: Topic,
        ns: int,
        exchange: Exchange,
        errors: set[_Error],
        rate: bool = True,
    ) -> None:
        if rate:
            self._count(subject, area, "requests", RATE, ns, 1)
        if exchange.response is None:
            return
        self._count(subject, area, "errors", SHARE, ns, bool(errors))
        if errors:
            self._name_errors(area, subject, ns, errors)

    def _name_errors(self, area: str, subject: Topic, ns: int, errors: set[_Error]) -> None:
        for name, is_fatal in sorted({(each.name, each.is_fatal) for each in errors}):
            self._part(subject, area, f"{'fatal ' if is_fatal else ''}error {name}", ns, "errors")

    def _records(self, exchange: Exchange, ns: int, done: str) -> None:
        if done == "read" and _is_follower(exchange):
            return  # a broker that follows
        for each in record_sets(exchange, self.limits):
            topic = self._topic(exchange, each.place.topic, each.place.topic_id)
            for batch in each.headers:
                if batch.is_control:
                    continue
                records = batch.records or 0
                totals = records, batch.size, batch.size, records, 0
                for sums, total in zip(self._of_batches(topic, done), totals, strict=False):
                    if sums is not None:
                        sums.add(ns, total)
                    else:
                        self._rows.left_out += 1
                if done == "written":
                    self._part(topic, TOPIC_AREA, f"codec {batch.codec}", ns, "codec")

    def _of_batches(self, topic: Topic, done: str) -> list[SlicedSums | None]:
        """Where batches of a topic are counted: records, bytes, and of those that are written the size of
        each, its records, and their number."""
        found = self._batches.get((topic, done))
        if found is None:
            if len(self._batches) >= _MOST_KINDS:
                self._batches.clear()
            kinds = [(f"records {done}", RATE), (f"bytes {done}", RATE)]
            if done == "written":
                kinds += [("batch size", MEAN), ("records per batch", MEAN), ("codec", _BASE)]
            found = [self._sums(topic, TOPIC_AREA, what, kind) for what, kind in kinds]
            self._batches[topic, done] = found
        return found

    def _count(self, subject: Topic, area: str, what: str, kind: str, ns: int, total: int) -> None:
        """Count one, which comes to a total."""
        row = self._rows.row((subject, area, what, kind, ""))
        if row is not None:
            row.sums().add(ns, total)

    def _sums(self, subject: Topic, area: str, what: str, kind: str, of: str = "") -> SlicedSums | None:
        """Where a measure is counted, often."""
        row = self._often((subject, area, what, kind, of))
        return None if row is None else row.sums()

    def _durations(self, subject: Topic, area: str, what: str) -> SlicedTimes | None:
        """Where times are counted, often."""
        row = self._often((subject, area, what, PERCENTILE, ""))
        return None if row is None else row.durations()

    def _often(self, key: _ProfileKey) -> _Measure | None:
        """The row of a measure, to be counted into often; what it does not take in is counted then."""
        before = self._rows.left_out
        row = self._rows.row(key)
        self._rows.left_out = before
        return row

    def _part(self, subject: Topic, area: str, what: str, ns: int, of: str) -> None:
        """Count one of those that something else counts."""
        row = self._rows.row((subject, area, what, SHARE, of))
        if row is not None:
            row.sums().add(ns, 1, 0)

    # -- rows ---------------------------------------------------------------------------------------

    def result(self) -> list[Row]:
        found = self._labels.by_name(self._rows.rows, _Measure)
        named = {_Named(*key): row for key, row in found.items()}
        rows = [each for key, row in named.items() for each in _rows(key, row, named)]
        return sorted(rows, key=_order)


def _is_follower(exchange: Exchange) -> bool:
    """Whether a broker fetches, to keep a copy."""
    return exchange.request is not None and replica_id_of(exchange.request.body()) >= 0


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
    """A name with ``*`` for what was drawn by lot or counted up in it: UUIDs, long numbers, names of pods."""
    return _BY_LOT.sub(lambda found: "-*" if found[0].startswith("-") else "*", name)


def _rows(key: _Named, measure: _Measure, named: Mapping[_Named, _Measure]) -> Iterator[Row]:
    """The rows of a measure."""
    if measure.times is not None:
        whole = measure.times.all()
        for percent in PERCENTS:
            estimate = measure.times.percentile(whole, percent)
            yield _row(key, f"{key.what} p{percent}", "ns", (whole.count, None), estimate, measure.times)
    counted = measure.counted
    if counted is None or key.kind == _BASE:
        return
    if key.of:
        kind = SHARE if key.of == "errors" else _BASE
        base = named.get(_Named(key.subject, key.area, key.of, kind, ""))
        if base is None or base.counted is None:
            return  # there was no room for it
        counted = _part_of(counted, base.counted)
    estimate = {RATE: counted.rate, MEAN: counted.mean, SHARE: counted.share}[key.kind]()
    yield _row(key, key.what, _unit(key), (counted.count, counted.total), estimate, counted)


def _part_of(part: SlicedSums, base: SlicedSums) -> SlicedSums:
    """What a part comes to among all that were counted."""
    out = SlicedSums()
    out.merge(base)
    for each in out.slices.values():
        each.total = 0
    out.merge(part)
    return out


def _unit(key: _Named) -> str | None:
    if key.kind == SHARE:
        return None
    unit = "records" if "records" in key.what else "bytes" if key.area == TOPIC_AREA else key.what
    return f"{unit}/s" if key.kind == RATE else unit


def _row(
    key: _Named,
    what: str,
    unit: str | None,
    counts: tuple[int, int | None],
    estimate: Estimate,
    span: SlicedSums | SlicedTimes,
) -> Row:
    count, total = counts
    return {
        "area": key.area,
        "subject": key.subject,
        "what": what,
        "kind": key.kind,
        "unit": unit,
        "count": count,
        "total": total,
        "value": _number(estimate.value),
        "low": _number(estimate.low),
        "high": _number(estimate.high),
        "first_ns": span.first_ns,
        "last_ns": span.last_ns,
    }


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)


def _order(row: Row) -> tuple[int, str, str, str]:
    return AREAS.index(row["area"]), row["subject"] or "", row["what"], row["kind"]
