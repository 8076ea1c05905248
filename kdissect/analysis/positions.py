"""Replayed fetch sessions: the partitions of each fetcher, its offset in each, and its lag.

Since KIP-227 a fetch request of a session names only the partitions that changed, and a response only those
with news. The fetched partitions follow from all requests of the session:

* Session epoch 0 begins a session, and -1 is outside sessions. Such a request, and every request before
  version 7, names all fetched partitions. Partitions that it does not name are no longer fetched.
* Any other epoch continues the session. A named partition is fetched from then on, or from another offset.
  Partitions in ``forgottenTopicsData`` are no longer fetched. The others stay as they were.
* A broker leaves out of such a response only partitions in which nothing changed
  (``FetchSession.CachedPartition``): no records, the same high watermark, and so on. They stay as they were.

A session belongs to one connection here, because clients that lose a connection begin a new session. If the
capture begins within a session, partitions become known when they are first named (``from_start`` is false).

The lag is the high watermark minus the requested offset. So it includes the records of the same response.
``max_lag`` is the largest lag at the time of a response with a high watermark.

If a filter chooses the exchanges that count, all fetches are replayed, because a single fetch does not
contain the whole session. The rows are the partitions that a counted fetch names.

Merging two parts of a capture: the requests of a connection are its steps, numbered in each part. The earlier
part's partitions at its end are fetched on until the later part first touches them or begins a new session.
The later part keeps the step at which it did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Self

from kdissect.analysis.aborted import first_beyond, has_unnamed
from kdissect.analysis.affiliations import OF_MEMBERS, Affiliations
from kdissect.analysis.clusters import Clusters, NameAt
from kdissect.analysis.declared import (
    BROKER_COLUMN,
    CLIENT_COLUMN,
    CLIENT_ID_COLUMN,
    EXCHANGE,
    GROUP_COLUMN,
    PARTITION_COLUMN,
    TOPIC_CLUSTER_COLUMN,
    TOPIC_COLUMN,
    column,
    first_and_last,
    graded_errors,
    time_column,
)
from kdissect.analysis.fetcher import NEW_SESSION, NO_SESSION, Fetcher, Place, forgotten, partitions_in
from kdissect.analysis.fold import Row, Statistic, least, most
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.ledgers import NONE, Ledgers
from kdissect.analysis.position import Position
from kdissect.analysis.progress import NEARLY, progress
from kdissect.analysis.rows import Rows
from kdissect.analysis.shared_parts import SharedSet, record_sets
from kdissect.analysis.speakers import Speaker, address
from kdissect.analysis.topics import replica_id
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.protocol.apis import api_key

FETCH = api_key("Fetch")
READ_COMMITTED = 1
"""The isolation level of a reader of committed records (KIP-98)."""

_Key = tuple[int, Topic, int]
"""Connection, topic, partition."""


_POSITION_BYTES, _FETCHER_BYTES = 3_500, 900
"""The approximate sizes: of a fetched partition, with its row, and of a connection that fetches."""


class Positions(Statistic):
    """The statistic ``positions``."""

    apis = frozenset(("Fetch", *OF_MEMBERS))
    name = "positions"
    about = "what each fetcher fetched last: offset, high watermark, lag at that time and its trend, rewinds"
    columns = (
        column("connection", "int64", "number of the connection"),
        CLIENT_COLUMN,
        BROKER_COLUMN,
        CLIENT_ID_COLUMN,
        GROUP_COLUMN,
        column("replica_id", "int32", "id of the broker that follows the partition; -1 for a consumer"),
        TOPIC_COLUMN,
        TOPIC_CLUSTER_COLUMN,
        PARTITION_COLUMN,
        column("position", "int64", "the offset of the last request; null if no request named it"),
        column("high_watermark", "int64", "high watermark in the last response"),
        column("lag", "int64", "high_watermark - position", kept=True),
        column("max_lag", "int64", "the largest lag at a response with a high watermark"),
        column("lag_first", "int64", "the first known lag"),
        column(
            "lag_per_s",
            "float64",
            "growth of the lag in records per second: the median slope between its points (Theil-Sen)",
        ),
        column("lag_points", "int64", "number of these points: one for each second, or fewer"),
        column("last_stable_offset", "int64", "value in the last response"),
        column("log_start_offset", "int64", "value in the last response"),
        column("fetched_to", "int64", "the offset after the last whole batch in a response"),
        column("fetches", "int64", "requests for the partition, by name or by their fetch session"),
        column("named", "int64", "requests that name the partition"),
        column("records", "int64", "records in responses, as the headers of batches announce"),
        column("bytes", "int64", "bytes of their record sets"),
        column("answers", "int64", "responses with records of the partition"),
        column("max_bytes", "int64", "bytes of the partition that a request allows"),
        column(
            "cut",
            "int64",
            "responses that reached 90 % of that limit although the log had more records",
            rare=True,
        ),
        column(
            "full",
            "int64",
            "responses that reached 90 % of the limit for all partitions although the log had more records",
            rare=True,
        ),
        column(
            "beyond_stable",
            "int64",
            "responses with read_committed that contain batches at or after the last stable offset, if the "
            "next response confirms that offset",
            rare=True,
            kept=True,
        ),
        column(
            "beyond_stable_exchanges",
            "int64s",
            "the first and the last exchange with such a response",
            unit=EXCHANGE,
        ),
        column(
            "aborted_unnamed",
            "int64",
            "responses with read_committed that contain an aborted transaction and its marker, but do not "
            "list it as aborted",
            rare=True,
            kept=True,
        ),
        column(
            "aborted_unnamed_exchanges",
            "int64s",
            "the first and the last exchange with such a response",
            unit=EXCHANGE,
        ),
        column(
            "reading",
            "int64s",
            "periods in which records came at most 2 s apart: from, to, from, to …, in ns; the first 64",
        ),
        column(
            "stalled",
            "int64",
            "most responses with records for one offset (two or more) that the consumer asked for again and "
            "again",
            rare=True,
        ),
        column("stalled_at", "int64", "the offset at which this happened", rare=True),
        time_column("stalled_first_ns", "time of the first of these responses"),
        time_column("stalled_last_ns", "time of the last of these responses"),
        column(
            "starved",
            "int64",
            "most responses without a complete record, for one offset below the end of the log",
            rare=True,
        ),
        column("starved_at", "int64", "the offset at which this happened", rare=True),
        column(
            "out_of_range",
            "int64",
            "OFFSET_OUT_OF_RANGE errors: the partition does not have the offset",
            rare=True,
        ),
        column(
            "reset_from",
            "int64",
            "at the last such error: the offset that the partition does not have",
            rare=True,
        ),
        column("reset_to", "int64", "at the last such error: the offset of the next request", rare=True),
        column(
            "reset_exchange",
            "int64",
            "at the last such error: the number of the exchange",
            unit=EXCHANGE,
            rare=True,
        ),
        time_column("reset_ns", "time of the last such error"),
        column("begun_at", "int64", "the offset of the first request", rare=True),
        column(
            "rewinds",
            "int64",
            "how often a request had a smaller offset than the request before it",
            rare=True,
        ),
        column("rewound_from", "int64", "at the last such request: the offset before", rare=True),
        column("rewound_to", "int64", "at the last such request: the smaller offset", rare=True),
        *graded_errors("error codes of the partition"),
        column("asked", "bool", "whether the client still fetches the partition at the end"),
        column("sessions", "int64", "requests of the connection that begin a fetch session"),
        column("session_id", "int32", "the connection's last fetch session (KIP-227)"),
        time_column(
            "fetched_last_ns", "time of the last request for the partition, by name or by its fetch session"
        ),
        column(
            "from_start",
            "bool",
            "whether requests in the capture name all partitions of the connection; if not, partitions "
            "may be missing here",
        ),
        *first_and_last("exchange that names the partition"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self.latest.keep_clusters(Clusters(self.room))
        self._labels = Labels(self.latest, limits)
        self._fetchers: Rows[int, Fetcher] = Rows(Fetcher, self.room, _FETCHER_BYTES)
        self._rows: Rows[_Key, Position] = Rows(Position, self.room, _POSITION_BYTES)
        self._affiliations = Affiliations(self.room)
        self._moves: Ledgers[_Key] = Ledgers(9, limits.rows, limits.timeline_events, self.room)

    def _exchange(self, exchange: Exchange) -> None:
        for row in self._replay(exchange):
            row.counts = True

    def _other(self, exchange: Exchange) -> None:
        self._replay(exchange)

    def _replay(self, exchange: Exchange) -> Iterable[Position]:
        """Replay one exchange; return the rows of the partitions that it names."""
        self._affiliations.see(exchange)
        if exchange.api_key != FETCH:
            return ()
        fetcher = self._fetchers.row(exchange.connection)
        if fetcher is None:
            return ()
        fetcher.client, fetcher.broker = exchange.client, exchange.broker
        touched: dict[Place, Position] = {}
        if exchange.request is not None:
            self._take_request(exchange, exchange.request.body(), fetcher, touched)
        if exchange.response is not None:
            self._take_response(exchange, exchange.response.body(), fetcher, touched)
        for row in touched.values():
            row.span.add(exchange.begun_ns, exchange.number)
        return touched.values()

    def _take_request(
        self, exchange: Exchange, body: dict[str, Any], fetcher: Fetcher, touched: dict[Place, Position]
    ) -> None:
        if "topics" not in body:  # the version is unknown, or the body was cut before
            return
        step = fetcher.steps
        if not step:
            self.latest.clusters.at(exchange)
        fetcher.steps += 1
        fetcher.replica_id = replica_id(exchange)
        fetcher.last_ns = most(fetcher.last_ns, exchange.begun_ns)
        if exchange.client_id is not None:
            fetcher.client_id = exchange.client_id
        if body.get("sessionId"):
            fetcher.session_id = body["sessionId"]
        if body.get("sessionEpoch", NO_SESSION) in (NEW_SESSION, NO_SESSION):
            if fetcher.began_anew is None:
                fetcher.began_anew = step
            for asked in fetcher.asked.values():
                asked.count_fetches(step)
            fetcher.asked.clear()
            fetcher.sessions += body.get("sessionEpoch") == NEW_SESSION
        for topic, number in forgotten(self._labels, body):
            row = self._row(exchange, topic, number, touched)
            if row is not None:
                row.forget(step)
                fetcher.asked.pop((topic, number), None)
        ns, number = exchange.begun_ns, exchange.number
        for topic, partition in partitions_in(self._labels, body.get("topics")):
            at, offset = partition.get("partition"), partition.get("fetchOffset")
            row = self._row(exchange, topic, at, touched)
            if row is not None and at is not None and offset is not None:
                row.take_request(step, offset)
                key, most_bytes = (exchange.connection, topic, at), partition.get("partitionMaxBytes", 0)
                self._moves.add_row(key, (ns, number, offset, NONE, NONE, NONE, 0, 0, most_bytes))
                fetcher.asked[topic, at] = row

    def _take_response(
        self, exchange: Exchange, body: dict[str, Any], fetcher: Fetcher, touched: dict[Place, Position]
    ) -> None:
        if body.get("sessionId"):
            fetcher.session_id = body["sessionId"]
        if not body.get("responses"):
            return
        asked = exchange.request.body() if exchange.request is not None else {}
        reads_committed = asked.get("isolationLevel") == READ_COMMITTED
        sets: dict[tuple[str | None, int | None], SharedSet] = {}
        is_cut = exchange.response is not None and exchange.response.is_cut
        for each in record_sets(exchange, self.limits):
            place = each.place
            if place.data and place.message is exchange.response:
                sets.setdefault((place.topic_id or place.topic, place.partition), each)
        ns, number, connection = exchange.ended_ns, exchange.number, exchange.connection
        brought: list[tuple[Position, int]] = []
        size = 0
        for topic, partition in partitions_in(self._labels, body.get("responses")):
            at = partition.get("partitionIndex")
            row = self._row(exchange, topic, at, touched)
            if row is not None and at is not None:
                code = partition.get("errorCode")
                high, stable = partition.get("highWatermark", -1), partition.get("lastStableOffset", -1)
                start = partition.get("logStartOffset", -1)
                row.set_offsets(high, stable, start)
                if code:
                    row.errors.add(exchange.class_of(code))
                found = sets.pop((topic.topic_id or topic.name, at), None) if sets else None
                records = partition.get("records") or b""
                news = 0
                if found is not None:
                    news = found.batches.records
                    row.batches.merge(found.batches)
                move = (
                    ns,
                    number,
                    NONE,
                    high if high >= 0 else NONE,
                    stable if stable >= 0 else NONE,
                    start if start >= 0 else NONE,
                    NONE if is_cut and not news else news,
                    code or 0,
                    len(records),
                )
                self._moves.add_row((connection, topic, at), move)
                if news:
                    size += len(records)
                    brought.append((row, high))
                    if reads_committed and found is not None:
                        beyond = first_beyond(found, partition)
                        row.beyond = None if beyond is None else (beyond, ns, number)
                    if reads_committed and found is not None and has_unnamed(found, partition):
                        row.aborted_unnamed.add(ns, number)
                        row.aborted_unnamed_count += 1
        if size >= NEARLY * asked.get("maxBytes", size + 1):
            for row, high in brought:
                row.full += row.batches.end is not None and row.batches.end < high

    def _row(
        self, exchange: Exchange, topic: Topic, partition: int | None, touched: dict[Place, Position]
    ) -> Position | None:
        if partition is None:  # the message breaks off before it
            return None
        row = self._rows.row((exchange.connection, topic, partition))
        if row is not None:
            touched[topic, partition] = row
        return row

    def merge(self, later: Self) -> None:
        self._labels.merge(later._labels)
        self._affiliations.merge(later._affiliations)
        self._moves.merge(later._moves)
        for connection, theirs in later._fetchers.rows.items():
            mine = self._fetchers.row(connection)
            if mine is not None:
                self._end(connection, mine, theirs, later)
        for key, row in later._rows.rows.items():
            fetcher = self._fetchers.rows.get(key[0])
            here = self._rows.row(key) if fetcher is not None else None
            if fetcher is not None and here is not None:
                here.merge(row.shifted(fetcher.steps))
                if here.since is not None:
                    fetcher.asked[key[1:]] = here
        for connection, theirs in later._fetchers.rows.items():
            fetcher = self._fetchers.rows.get(connection)
            if fetcher is not None:
                fetcher.merge(theirs)
        self._fetchers.left_out += later._fetchers.left_out
        self._rows.left_out += later._rows.left_out

    def _end(self, connection: int, mine: Fetcher, theirs: Fetcher, later: Self) -> None:
        """End the earlier part's fetches where the later part first touches their partitions, or begins
        again."""
        for (topic, number), row in list(mine.asked.items()):
            there = later._rows.rows.get((connection, topic, number))
            end = least(there.touched if there is not None else None, theirs.began_anew)
            if end is not None:
                row.count_fetches(mine.steps + end)
                del mine.asked[topic, number]

    @property
    def left_out(self) -> int:
        return self._rows.left_out + self._fetchers.left_out + self._moves.left_out

    def result(self) -> list[Row]:
        return list(self.result_rows())

    def result_rows(self) -> Iterator[Row]:
        self._labels.resolve_names()
        fetchers = self._fetchers.rows
        places = {key[:2]: self._name_at(fetchers[key[0]], key[1]) for key in self._rows.rows}
        apart = self.latest.clusters.apart(places.values())
        clusters = {at: apart[place].cluster_id for at, place in places.items()}
        del places, apart  # the rows that follow take long, and need only the clusters
        for key in sorted(self._rows.rows, key=self._in_order):
            row = self._rows.rows[key]
            if row.counts:
                yield self._result(key, fetchers[key[0]], clusters[key[:2]], row)

    def _in_order(self, key: _Key) -> tuple[int, str, int]:
        """What the rows are sorted by."""
        connection, topic, number = key
        return connection, self._labels.name(topic) or "", number

    def _name_at(self, fetcher: Fetcher, topic: Topic) -> NameAt:
        return NameAt(self._labels.name(topic) or "", fetcher.broker)

    def _result(self, key: _Key, fetcher: Fetcher, cluster: str | None, row: Position) -> Row:
        connection, topic, number = key
        moved = progress(self._moves.rows(key))
        stall = moved.stall
        return {
            "connection": connection,
            "client": fetcher.client,
            "broker": fetcher.broker,
            "client_id": fetcher.client_id,
            "group": self._group(fetcher, topic),
            "replica_id": fetcher.replica_id,
            "topic": self._labels.name(topic),
            "cluster_id": cluster,
            "partition": number,
            "position": row.position,
            "high_watermark": row.high_watermark,
            "lag": row.lag,
            "max_lag": row.max_lag,
            "lag_first": moved.lag_first,
            "lag_per_s": moved.lag_per_s,
            "lag_points": moved.points,
            "last_stable_offset": row.last_stable_offset,
            "log_start_offset": row.log_start_offset,
            "fetched_to": row.batches.end,
            "fetches": row.fetches + (fetcher.steps - row.since if row.since is not None else 0),
            "named": row.named,
            "records": row.batches.records,
            "bytes": row.batches.set_bytes,
            "answers": moved.answers,
            "max_bytes": moved.max_bytes,
            "cut": moved.cut,
            "full": row.full,
            "beyond_stable": row.beyond_stable_count,
            "beyond_stable_exchanges": row.beyond_stable.numbers,
            "aborted_unnamed": row.aborted_unnamed_count,
            "aborted_unnamed_exchanges": row.aborted_unnamed.numbers,
            "reading": [ns for spell in moved.reading for ns in spell],
            "stalled": stall.answers if stall is not None else 0,
            "stalled_at": stall.offset if stall is not None else None,
            "stalled_first_ns": stall.first_ns if stall is not None else None,
            "stalled_last_ns": stall.last_ns if stall is not None else None,
            "starved": moved.starved,
            "starved_at": moved.starved_at,
            "out_of_range": moved.out_of_range,
            "reset_from": moved.reset.before if moved.reset is not None else None,
            "reset_to": moved.reset.after if moved.reset is not None else None,
            "reset_exchange": moved.reset.exchange if moved.reset is not None else None,
            "reset_ns": moved.reset.ns if moved.reset is not None else None,
            "begun_at": moved.begun_at,
            "rewinds": moved.rewinds,
            "rewound_from": moved.rewound[0] if moved.rewound is not None else None,
            "rewound_to": moved.rewound[1] if moved.rewound is not None else None,
            **row.errors.columns(),
            "asked": row.since is not None,
            "sessions": fetcher.sessions,
            "session_id": fetcher.session_id,
            "fetched_last_ns": fetcher.last_ns if row.since is not None else row.span.last_ns,
            "from_start": fetcher.began_anew == 0,
            "first_ns": row.span.first_ns,
            "last_ns": row.span.last_ns,
        }

    def _group(self, fetcher: Fetcher, topic: Topic) -> str | None:
        if fetcher.replica_id >= 0:
            return None
        who = Speaker(address(fetcher.client), fetcher.client_id)
        return self._affiliations.group(who, self._labels.name(topic), topic.topic_id or None)
