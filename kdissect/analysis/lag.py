"""How far consumer groups are behind: their committed offsets, the ends of logs, and the changes of both.

* Three messages give committed offsets: an accepted OffsetCommit, an answer to OffsetFetch, and a
  TxnOffsetCommit from the end of its transaction on. For share groups it is the start offset that is told or
  written.
* The log ends at the newest offset in any answer. That is the offset after the produced records, the high
  watermark of a fetch, the latest offset of ListOffsets, or a committed one.
* The log begins at the earliest offset of ListOffsets. Some clients (sarama, kafka-go) ask for it before they
  fetch, and then never ask for a record that was deleted.

Both are computed when rows are asked for, in the order of time. ``lag,1s`` gives a row for each interval with
a new value of one of the two, with the values at its end.

A topic that is deleted and made again under the same name has its own offsets. Facts about the former topic
do not count for it. A commit of a smaller offset is then no step back. The row is that of the last topic for
which the group committed something.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from kdissect.analysis.clusters import Clusters, NameAt, OfClusters
from kdissect.analysis.declared import (
    EXCHANGE,
    GROUP_CLUSTER_COLUMN,
    GROUP_COLUMN,
    PARTITION_COLUMN,
    TOPIC_COLUMN,
    column,
    time_column,
)
from kdissect.analysis.fold import Batched, Row, Statistic
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.lag_course import (
    ANSWER,
    COMMIT,
    PENDING,
    CommittedOffset,
    LagCourse,
    LagKey,
    whole_row,
)
from kdissect.analysis.ledgers import Ledgers
from kdissect.analysis.shared_parts import follows_log, produced_ends
from kdissect.analysis.timelines import Mark, Timelines
from kdissect.analysis.topic_lives import TOPIC_ID_APIS, TopicLives
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.protocol.schema import ZERO_UUID

LATEST = -1
"""The timestamp for which ListOffsets gives the end of the log."""
EARLIEST = -2
"""The timestamp for which it gives the beginning."""
NO_OFFSET = -1

_Key = tuple[NameAt, Topic, int]
_Place = tuple[str, Topic, int]
"""The broker that gave the offset, topic, partition."""
_Beginning = tuple[str, Topic, int, str | None]
"""The broker that gave the first offset of the log, topic, partition, and the client id that asked."""
_NONE: OfClusters[Mark] = OfClusters()


class Lag(Batched, Statistic):
    """The statistic ``lag``."""

    name = "lag"
    about = "how far groups are behind: committed offset, end of the log, lag; at the end, or over time"
    columns = (
        GROUP_COLUMN,
        GROUP_CLUSTER_COLUMN,
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        time_column("ns", "end of the interval; null unless asked for (lag,1s)"),
        column("committed", "int64", "the offset that the group committed last, or that a response reported"),
        column("log_end", "int64", "the newest offset of the log in any response"),
        column("lag", "int64", "log_end - committed", kept=True),
        column("lag_max", "int64", "the largest lag; with lag,INTERVAL that of the interval"),
        column("lag_first", "int64", "the lag when both offsets were first known"),
        column(
            "lag_per_s",
            "float64",
            "growth of the lag in records per second: the median slope between its points (Theil-Sen)",
        ),
        column("rising", "float64", "share of the time in which the lag grew, measured in eight equal parts"),
        column("points", "int64", "number of these points: one for each second, or fewer"),
        column("written_per_s", "float64", "growth of the log in records per second"),
        column("committed_per_s", "float64", "growth of the committed offset in records per second"),
        column("commits", "int64", "commits that were accepted"),
        column("committers", "texts", "client ids that committed"),
        column("rewinds", "int64", "commits of an offset before the previously committed one", rare=True),
        column("rewound_from", "int64", "in the last such commit: the offset before it", rare=True),
        column("rewound_to", "int64", "in the last such commit: the offset that it committed", rare=True),
        column("rewound_by", "text", "client id of the last such commit", rare=True),
        time_column("rewound_ns", "time of the last such commit"),
        column(
            "rewind_exchange",
            "int64",
            "number of the exchange of the last such commit",
            unit=EXCHANGE,
            rare=True,
        ),
        column(
            "lost_from",
            "int64",
            "the last committed offset before an answer said that nothing is committed",
            rare=True,
        ),
        column("lost_after_ns", "int64", "time from that commit to that answer", rare=True),
        time_column("lost_ns", "time of that answer"),
        column("lost_exchange", "int64", "the exchange of that answer", unit=EXCHANGE, rare=True),
        column(
            "deleted_from",
            "int64",
            "the committed offset, when a client of the group was told that the log begins after it",
            rare=True,
        ),
        column("deleted_to", "int64", "the first offset of the log in that answer", rare=True),
        column("deleted_for", "text", "client id that was told, and that committed later offsets", rare=True),
        time_column("deleted_ns", "time of that answer"),
        column("deleted_exchange", "int64", "the exchange of that answer", unit=EXCHANGE, rare=True),
        time_column("first_ns", "time of the first commit, or of the first response with a committed offset"),
        time_column("last_ns", "time of the last commit, or of the last response with a committed offset"),
        column("exchanges", "int64s", "exchanges of the first and the last commit", unit=EXCHANGE),
    )
    takes_interval = True

    def __init__(self, limits: Limits = DEFAULTS, every_ns: int | None = None) -> None:
        super().__init__(limits)
        self._every_ns = every_ns
        self.latest.keep_clusters(Clusters(self.room))
        self._labels = Labels(self.latest, limits)
        self._commits: Timelines[_Key] = Timelines(self.room)
        """``(ns, number, kind, offset, client id, counts, producer)``."""
        self._ended: Timelines[NameAt] = Timelines(self.room)
        """For each transactional id, ``(ns, number, whether it was committed)``."""
        self._ends: Ledgers[_Place] = Ledgers(2, limits.rows, limits.timeline_events, self.room)
        self._highest: dict[Topic, dict[_Place, tuple[int, int]]] = {}
        """For each topic and place, the highest offset so far, and when it was told."""
        self._places = 0
        """How many places these are."""
        self._beginnings: Timelines[_Beginning] = Timelines(self.room)
        """``(ns, number, offset)``; only the first of equal ones in a row."""
        self._begins_at: dict[_Beginning, int] = {}
        """The last of these offsets."""
        self._lives = TopicLives(self.room)
        self._cut = 0
        """The number of rows left out at the last call, because there were too many."""

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        take = self._take
        for exchange in exchanges:
            take(exchange, True)

    def _other(self, exchange: Exchange) -> None:
        self._take(exchange, False)

    def _take(self, exchange: Exchange, counts: bool) -> None:
        request, response = exchange.request, exchange.response
        if response is None or request is None:
            return
        api = exchange.api or ""
        if api == "Produce":
            self._produce(exchange)
        elif api in TOPIC_ID_APIS:
            anew = self._lives.take(exchange, self._labels)
            if anew:
                self._forget(anew)
        elif api in _TAKEN and not follows_log(exchange):
            _TAKEN[api](self, exchange, request.body(), response.body(), counts)

    # -- ends of logs -----------------------------------------------------------------------------------

    def _produce(self, exchange: Exchange) -> None:
        ends = produced_ends(exchange, self.limits)
        if not ends:
            return
        ns, broker, label = exchange.ended_ns, exchange.broker, self._labels.topic
        for (_, _, _, name, topic_id, partition), end in ends:
            if partition is not None and end >= 0:
                topic = label(None if topic_id else name, topic_id)
                self._add_end((broker, topic, partition), ns, end)

    def _fetch(self, exchange: Exchange, asked: dict[str, Any], answer: dict[str, Any], counts: bool) -> None:
        ns, broker = exchange.ended_ns, exchange.broker
        for each in answer.get("responses") or ():  # often many: without a generator
            topic = self._label(each, "topic")
            for partition in each.get("partitions") or ():
                number = partition.get("partitionIndex")
                if number is not None:
                    self._end(ns, (broker, topic, number), partition.get("highWatermark", NO_OFFSET))

    def _list(self, exchange: Exchange, asked: dict[str, Any], answer: dict[str, Any], counts: bool) -> None:
        wanted = {
            (topic, partition.get("partitionIndex")): partition.get("timestamp")
            for topic, partition in self._partitions(asked.get("topics"), "name")
        }
        for topic, partition in self._partitions(answer.get("topics"), "name"):
            number = partition.get("partitionIndex")
            timestamp = wanted.get((topic, number))
            if number is None or timestamp not in (LATEST, EARLIEST) or partition.get("errorCode"):
                continue
            offsets = partition.get("oldStyleOffsets") or [NO_OFFSET]
            offset = partition.get("offset", max(offsets))
            if timestamp == LATEST:
                self._end(exchange.ended_ns, (exchange.broker, topic, number), offset)
            else:
                place = exchange.broker, topic, number, exchange.client_id
                self._begin(place, (exchange.ended_ns, exchange.number, offset))

    def _begin(self, place: _Beginning, mark: Mark) -> None:
        """Note the beginning of a log. Before the first deletion there is nothing to note."""
        if mark[2] > 0 and self._begins_at.get(place) != mark[2]:
            is_beyond = place not in self._begins_at and len(self._begins_at) >= self.limits.rows
            if not self.room.refuses(is_beyond):
                self._begins_at[place] = mark[2]
            self._beginnings.add(place, mark)

    def _end(self, ns: int, place: _Place, offset: int) -> None:
        """Note the end of a log, as a response gives it. An end that adds nothing new is not kept."""
        if offset >= 0:
            self._add_end(place, ns, offset)

    def _add_end(self, place: _Place, ns: int, offset: int) -> None:
        topic = place[1]
        highest = self._highest.get(topic)
        told = None if highest is None else highest.get(place)
        if highest is None or told is None:
            if not self.room.refuses(self._places >= self.limits.rows):
                self._places += 1
                self._highest.setdefault(topic, {})[place] = offset, ns
        elif offset > told[0]:
            highest[place] = offset, ns
        elif ns >= told[1]:
            return
        self._ends.add_row(place, (ns, offset))

    def _forget(self, names: list[str]) -> None:
        """Forget the highest offsets of topics whose name another topic has now."""
        for name in names:
            self._places -= len(self._highest.pop(Topic(name, ""), ()))

    # -- committed offsets ------------------------------------------------------------------------------

    def _commit(
        self, exchange: Exchange, asked: dict[str, Any], answer: dict[str, Any], counts: bool
    ) -> None:
        """OffsetCommit and TxnOffsetCommit."""
        kind, producer = COMMIT, None
        if exchange.api == "TxnOffsetCommit":
            kind, producer = PENDING, asked.get("transactionalId") or ""
        accepted = {
            (topic, partition.get("partitionIndex"))
            for topic, partition in self._partitions(answer.get("topics"), "name")
            if partition.get("errorCode") == 0
        }
        for topic, partition in self._partitions(asked.get("topics"), "name"):
            number, offset = partition.get("partitionIndex"), partition.get("committedOffset")
            if (topic, number) in accepted and offset is not None:
                self._mark(exchange, asked.get("groupId"), topic, number, kind, offset, counts, producer)

    def _fetched(
        self, exchange: Exchange, asked: dict[str, Any], answer: dict[str, Any], counts: bool
    ) -> None:
        """OffsetFetch."""
        for group in answer.get("groups") or [{**answer, "groupId": asked.get("groupId")}]:
            if group.get("errorCode"):
                continue
            for topic, partition in self._partitions(group.get("topics"), "name"):
                if partition.get("errorCode") == 0 and "committedOffset" in partition:
                    number, offset = partition.get("partitionIndex"), partition["committedOffset"]
                    self._mark(exchange, group.get("groupId"), topic, number, ANSWER, offset, counts)

    def _share(self, exchange: Exchange, asked: dict[str, Any], answer: dict[str, Any], counts: bool) -> None:
        """DescribeShareGroupOffsets."""
        for group in answer.get("groups") or ():
            for topic, partition in self._partitions(group.get("topics"), "topicName"):
                if partition.get("errorCode") == 0 and "startOffset" in partition:
                    number, offset = partition.get("partitionIndex"), partition["startOffset"]
                    self._mark(exchange, group.get("groupId"), topic, number, ANSWER, offset, counts)

    def _share_written(
        self, exchange: Exchange, asked: dict[str, Any], answer: dict[str, Any], counts: bool
    ) -> None:
        """WriteShareGroupState, which brokers send."""
        for topic, partition in self._partitions(asked.get("topics"), "name"):
            if "startOffset" in partition and partition["startOffset"] >= 0:
                number, offset = partition.get("partition"), partition["startOffset"]
                self._mark(exchange, asked.get("groupId"), topic, number, ANSWER, offset, counts)

    def _mark(
        self,
        exchange: Exchange,
        group: Any,
        topic: Topic,
        partition: int | None,
        kind: str,
        offset: int,
        counts: bool,
        producer: str | None = None,
    ) -> None:
        if not isinstance(group, str) or partition is None:
            return
        mark: Mark = (exchange.ended_ns, exchange.number, kind, offset, exchange.client_id, counts, producer)
        self._commits.add((self.latest.clusters.name_at(exchange, group), topic, partition), mark)

    def _transaction(
        self, exchange: Exchange, asked: dict[str, Any], answer: dict[str, Any], counts: bool
    ) -> None:
        """EndTxn, and InitProducerId, which aborts an open transaction."""
        name = asked.get("transactionalId")
        if isinstance(name, str) and answer.get("errorCode") == 0:
            is_committed = exchange.api == "EndTxn" and bool(asked.get("committed"))
            place = self.latest.clusters.name_at(exchange, name)
            self._ended.add(place, (exchange.ended_ns, exchange.number, is_committed))

    def _partitions(self, topics: Any, name: str) -> Iterator[tuple[Topic, dict[str, Any]]]:
        for each in topics or ():
            topic = self._label(each, name)
            for partition in each.get("partitions") or ():
                yield topic, partition

    def _label(self, topic: dict[str, Any], name: str) -> Topic:
        topic_id = topic.get("topicId", ZERO_UUID)
        return self._labels.topic(topic.get(name), topic_id if topic_id != ZERO_UUID else None)

    # -- rows -------------------------------------------------------------------------------------------

    def merge(self, later: Self) -> None:
        self._labels.merge(later._labels)
        self._commits.merge(later._commits)
        self._ended.merge(later._ended)
        for beginning in later._beginnings:
            for mark in later._beginnings.line(beginning):
                self._begin(beginning, mark)
        self._beginnings.left_out += later._beginnings.left_out
        anew = self._lives.merge(later._lives)
        self._forget(anew)
        is_anew = frozenset(anew)
        for place in later._ends:
            # The later part did not know what earlier ends had told. Another topic's ends are lower again.
            add = self._ends.add if place[1].name in is_anew else self._add_end
            for ns, offset in later._ends.rows(place):
                add(place, ns, offset)
        self._ends.left_out += later._ends.left_out
        for topic, places in later._highest.items():
            highest = self._highest.setdefault(topic, {})
            for place, told in places.items():
                if told[0] > highest.get(place, (-1, 0))[0]:
                    self._places += place not in highest
                    highest[place] = told

    @property
    def left_out(self) -> int:
        kept = self._commits, self._ended, self._ends, self._beginnings, self._lives
        return sum(each.left_out for each in kept) + self._cut

    def result(self) -> list[Row]:
        self._labels.resolve_names()
        clusters = self.latest.clusters
        groups = clusters.apart({group for group, _, _ in self._commits})
        ended = self._ended_in_clusters()
        courses: dict[LagKey, LagCourse] = {}
        unsettled: set[LagKey] = set()
        for asked, topic, partition in self._commits:
            group = groups[asked]
            line = self._commits.line((asked, topic, partition))
            commits = self._settled(line, group.at, ended)
            key = LagKey(group, self._labels.name(topic), partition)
            if any(each[2] == PENDING and not ended.get(each[6], _NONE).is_known(group.at) for each in line):
                unsettled.add(key)
            courses.setdefault(key, LagCourse()).commits.extend(commits)
        ends, beginnings = self._ends_in_clusters(), self._beginnings_in_clusters()
        out: list[Row] = []
        for key in sorted(courses, key=lambda key: (key.group, key.topic or "", key.partition)):
            course = courses[key]
            if any(each.counts for each in course.commits):
                course.commits.sort(key=lambda each: (each.ns, each.order, each.exchange))
                here = ends.get((key.topic, key.partition), OfClusters())
                is_told = here.is_known(key.group.at) and key not in unsettled
                course.ends = here.of(key.group.at) if is_told else None
                course.beginnings = sorted(beginnings.get((key.topic, key.partition), _NONE).of(key.group.at))
                course.begun = self._lives.begun(key.topic) if key.topic is not None else []
                out += self._rows(key, course)
        self._cut = max(0, len(out) - self.limits.rows)
        return out[: self.limits.rows]

    def _ended_in_clusters(self) -> dict[str, OfClusters[Mark]]:
        """When transactions ended, by transactional id."""
        places = self.latest.clusters.apart(self._ended)
        found: dict[str, OfClusters[Mark]] = {}
        for asked in self._ended:
            of_name = found.setdefault(asked.name, OfClusters())
            of_name.add(places[asked].at, self._ended.line(asked))
        return found

    def _ends_in_clusters(self) -> dict[tuple[str | None, int], OfClusters[tuple[int, int]]]:
        """The ends of logs through time, by topic and partition."""
        names = {place: self._labels.name(place[1]) for place in self._ends}
        places = self.latest.clusters.apart(NameAt(name or "", place[0]) for place, name in names.items())
        found: dict[tuple[str | None, int], OfClusters[tuple[int, int]]] = {}
        for place, name in names.items():
            rows = ((row[0], row[1]) for row in self._ends.rows(place))
            of_partition = found.setdefault((name, place[2]), OfClusters())
            of_partition.add(places[NameAt(name or "", place[0])].at, rows)
        return found

    def _beginnings_in_clusters(self) -> dict[tuple[str | None, int], OfClusters[Mark]]:
        """The beginnings of logs through time, by topic and partition, with the client ids that were told."""
        names = {place: self._labels.name(place[1]) for place in self._beginnings}
        places = self.latest.clusters.apart(NameAt(name or "", place[0]) for place, name in names.items())
        found: dict[tuple[str | None, int], OfClusters[Mark]] = {}
        for place, name in names.items():
            marks = ((*mark, place[3]) for mark in self._beginnings.line(place))
            of_partition = found.setdefault((name, place[2]), OfClusters())
            of_partition.add(places[NameAt(name or "", place[0])].at, marks)
        return found

    def _settled(
        self, line: list[Mark], cluster: str, ended: dict[str, OfClusters[Mark]]
    ) -> Iterator[CommittedOffset]:
        """The commits of a timeline. Those in a transaction count from its commit on, if it was committed."""
        for ns, number, kind, offset, client_id, counts, producer in line:
            order = number
            if kind == PENDING:
                ends = sorted(ended[producer].of(cluster)) if producer in ended else ()
                end = next((each for each in ends if each[:2] > (ns, number)), None)
                if end is None or not end[2]:
                    continue
                (ns, order), kind = end[:2], COMMIT
            known = offset if offset >= 0 else None
            yield CommittedOffset(ns, known, kind, client_id, number, order, counts)

    def _rows(self, key: LagKey, course: LagCourse) -> Iterator[Row]:
        lives = course.lives()
        whole = whole_row(key, course, lives)
        if self._every_ns is None:
            yield whole
            return
        rows = (row for life in lives for row in self._series(whole, life))
        yield from {row["ns"]: row for row in rows}.values()

    def _series(self, whole: Row, course: LagCourse) -> Iterator[Row]:
        """A row for each interval with a new value for the topic."""
        interval: int | None = None
        largest: int | None = None
        row: Row | None = None
        assert self._every_ns is not None
        for ns, committed, end in course.steps():
            if committed is None and row is None:
                continue
            number = ns // self._every_ns
            lag = end - committed if end is not None and committed is not None else None
            if number != interval:
                if row is not None:
                    yield row
                interval, largest = number, None
            if lag is not None:
                largest = lag if largest is None else max(largest, lag)
            row = {
                **whole,
                "ns": (number + 1) * self._every_ns,
                "committed": committed,
                "log_end": end,
                "lag": lag,
                "lag_max": largest,
            }
        if row is not None:
            yield row


_TAKEN = {
    "Fetch": Lag._fetch,
    "ListOffsets": Lag._list,
    "OffsetCommit": Lag._commit,
    "TxnOffsetCommit": Lag._commit,
    "OffsetFetch": Lag._fetched,
    "DescribeShareGroupOffsets": Lag._share,
    "WriteShareGroupState": Lag._share_written,
    "EndTxn": Lag._transaction,
    "InitProducerId": Lag._transaction,
}
Lag.apis = frozenset((*_TAKEN, *TOPIC_ID_APIS, "Produce"))
