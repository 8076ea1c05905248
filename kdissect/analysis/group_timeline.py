"""The events of groups, by time: the fold that the statistics of rebalances are views of.

The timeline of a group has its marks (:mod:`kdissect.analysis.group_marks`). Repeated marks are kept as one.
These are heartbeats without an error, commits and refusals of a member in a generation, and consecutive
Fetches of a client. Nearby gaps in the capture of a connection are kept as one too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

from kdissect.analysis.clusters import Clusters, NameAt
from kdissect.analysis.fold import MILLISECOND, SECOND, Fold, most
from kdissect.analysis.group_marks import (
    RepeatedMark,
    beat_of,
    join_of,
    leaves_of,
    sender_of,
    sync_of,
)
from kdissect.analysis.labels import Labels
from kdissect.analysis.membership import COMMITS, HEARTBEATS
from kdissect.analysis.shared_parts import errors_of
from kdissect.analysis.speakers import address
from kdissect.analysis.stays import WAITED
from kdissect.analysis.stretches import Stretches
from kdissect.analysis.timelines import Timelines
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.session.conversation import Connection

FETCH_GAP_NS = 20 * MILLISECOND
"""The longest time between two Fetches of a client that count as one stretch of consumption."""
HOLE_GAP_NS = SECOND // 10


class ConnectionEnd(NamedTuple):
    """The way in which a connection ended."""

    ns: int
    how: str
    has_gaps: bool
    """Whether bytes of it are missing. If they are its last bytes, no exchange shows it."""


class BeatKey(NamedTuple):
    """The member that sends heartbeats or commits."""

    group: NameAt
    member: str
    generation: int


class RefusalKey(NamedTuple):
    """The refused request, and its member."""

    group: NameAt
    member: str
    generation: int
    api: str
    error: int
    is_routine: bool
    instance: str | None


_RUN_BYTES, _NUMBER_BYTES = 700, 200
"""The approximate sizes: of repeated marks or stretches of time, and of the facts about a connection."""


class GroupTimeline(Fold):
    """Marks of groups by time."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self.latest.keep_clusters(Clusters(self.room))
        self.lines: Timelines[NameAt] = Timelines(self.room)
        self.beats: dict[BeatKey, RepeatedMark] = {}
        self.commits: dict[BeatKey, RepeatedMark] = {}
        self.refusals: dict[RefusalKey, RepeatedMark] = {}
        self.fetches: dict[tuple[str, str | None], Stretches] = {}
        self.holes: dict[int, Stretches] = {}
        """The gaps of each connection."""
        self.labels = Labels(self.latest, limits)
        self._closed_ns: int | None = None
        """When the last connection ended."""
        self.ends: dict[int, ConnectionEnd] = {}
        """The end of each connection."""
        self.answered: dict[int, None] = {}
        """Connections with at least one message from a broker."""
        self.changes = 0
        """How often data was added that changes the rows."""
        self._left_out = 0

    @property
    def end_ns(self) -> int | None:
        """The latest time in the capture so far."""
        return most(self._closed_ns, self.latest.ns)

    def _exchange(self, exchange: Exchange) -> None:
        self._take(exchange, True)

    def batch_handler(self) -> Callable[[list[Exchange]], None]:
        return self._exchanges

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        """Take in exchanges, one after the other. Most are a Fetch, which says only that its client goes
        on."""
        for exchange in exchanges:
            if exchange.api == "Fetch" and exchange.request is not None:
                self.changes += 1
                self._fetch(exchange)
            else:
                self._take(exchange, True)

    def _other(self, exchange: Exchange) -> None:
        self._take(exchange, False)

    def _fetch(self, exchange: Exchange) -> None:
        if exchange.response is not None:
            whose = address(exchange.client), exchange.client_id
            self._stretch(self.fetches, whose, FETCH_GAP_NS, exchange.begun_ns, exchange.ended_ns)

    def _take(self, exchange: Exchange, counts: bool) -> None:
        self.changes += 1
        if exchange.request is None or _misses_an_answer(exchange):
            self._stretch(self.holes, exchange.connection, HOLE_GAP_NS, exchange.begun_ns, exchange.ended_ns)
        if exchange.request is None:
            return
        api = exchange.api or ""
        if api == "Fetch":
            self._fetch(exchange)
            return
        take = _TAKEN.get(api)
        if take is not None:
            request = exchange.request.body()
            if exchange.response is not None:
                self._take_connection(exchange.connection)
            if isinstance(request.get("groupId"), str):
                take(self, exchange, request, counts)

    def _group(self, exchange: Exchange, request: dict[str, Any]) -> NameAt:
        return self.latest.clusters.name_at(exchange, request["groupId"])

    def _is_too_much(self, kept: Mapping[Any, Any]) -> bool:
        """Whether a further key must be left out."""
        return self.room.refuses(len(kept) >= self.limits.rows)

    def _take_connection(self, connection: int) -> None:
        if connection in self.answered:
            return
        if not self._is_too_much(self.answered) and self.room.takes(_NUMBER_BYTES):
            self.answered[connection] = None

    def _stretch(
        self, kept: dict[Any, Stretches], key: Any, gap_ns: int, first_ns: int, last_ns: int
    ) -> None:
        found = kept.get(key)
        if found is None:
            if self._is_too_much(kept) or not self.room.takes(_RUN_BYTES):
                self._left_out += 1
                return
            found = kept[key] = Stretches(gap_ns, self.limits.timeline_key_events)
        found.add(first_ns, last_ns)

    def _join(self, exchange: Exchange, request: dict[str, Any], counts: bool) -> None:
        mark = join_of(exchange, request, counts)
        self.lines.add(self._group(exchange, request), mark)
        if mark.error:
            self._refused(
                exchange,
                request,
                mark.member,
                mark.instance,
                request.get("generationId", -1),
                mark.error,
                counts,
            )

    def _sync(self, exchange: Exchange, request: dict[str, Any], counts: bool) -> None:
        mark = sync_of(exchange, request, counts)
        self.lines.add(self._group(exchange, request), mark)
        if mark.error:
            self._refused(exchange, request, mark.member, mark.instance, mark.generation, mark.error, counts)

    def _leave(self, exchange: Exchange, request: dict[str, Any], counts: bool) -> None:
        for mark in leaves_of(exchange, request, counts):
            self.lines.add(self._group(exchange, request), mark)

    def _heartbeat(self, exchange: Exchange, request: dict[str, Any], counts: bool) -> None:
        member, generation = request.get("memberId") or "", request.get("generationId", -1)
        error = exchange.response.body().get("errorCode") if exchange.response is not None else None
        if error:
            instance = request.get("groupInstanceId")
            self._refused(exchange, request, member, instance, generation, error, counts)
        elif error == 0:
            self._run(
                self.beats, BeatKey(self._group(exchange, request), member, generation), exchange, counts
            )

    def _commit(self, exchange: Exchange, request: dict[str, Any], counts: bool) -> None:
        member = request.get("memberId") or ""
        generation = request.get("generationIdOrMemberEpoch", request.get("generationId", -1))
        if exchange.response is None:
            return
        if exchange.error is None:
            if member:
                self._run(
                    self.commits,
                    BeatKey(self._group(exchange, request), member, generation),
                    exchange,
                    counts,
                )
            return
        instance = request.get("groupInstanceId")
        for code in dict.fromkeys(error.code for error in errors_of(exchange)):
            self._refused(exchange, request, member, instance, generation, code, counts)

    def _group_heartbeat(self, exchange: Exchange, request: dict[str, Any], counts: bool) -> None:
        mark = beat_of(exchange, request, HEARTBEATS[exchange.api or ""], counts)
        if mark.error:
            self._refused(
                exchange, request, mark.member, mark.instance, mark.requested_epoch, mark.error, counts
            )
        for held in (mark.owned, mark.assignment):
            for topic_id, _ in held or ():
                self.labels.topic(None, topic_id)
        told = (mark.owned, mark.assignment, mark.tasks or None, mark.topics, mark.status or None)
        if mark.error == 0 and mark.epoch == mark.requested_epoch > 0 and told == (None,) * 5:
            key = BeatKey(self._group(exchange, request), mark.member, mark.requested_epoch)
            self._run(self.beats, key, exchange, counts)
        else:
            self.lines.add(self._group(exchange, request), mark)

    def _refused(
        self,
        exchange: Exchange,
        request: dict[str, Any],
        member: str,
        instance: str | None,
        generation: int,
        error: int,
        counts: bool,
    ) -> None:
        routine = error in exchange.routine
        api = exchange.api or ""
        key = RefusalKey(self._group(exchange, request), member, generation, api, error, routine, instance)
        self._run(self.refusals, key, exchange, counts)

    def _run(self, kept: dict[Any, RepeatedMark], key: Any, exchange: Exchange, counts: bool) -> None:
        ns = exchange.ended_ns
        self._add(
            kept, key, RepeatedMark(ns, ns, exchange.number, exchange.number, 1, counts, sender_of(exchange))
        )

    def _add(self, kept: dict[Any, RepeatedMark], key: Any, run: RepeatedMark) -> None:
        found = kept.get(key)
        if found is not None:
            found.merge(run)
        elif self._is_too_much(kept) or not self.room.takes(_RUN_BYTES):
            self._left_out += 1
        else:
            kept[key] = RepeatedMark(
                run.first_ns, run.last_ns, run.first, run.last, run.count, run.counts, run.who
            )

    def _connection(self, connection: Connection) -> None:
        self.changes += 1
        self._closed_ns = most(self._closed_ns, connection.end_ns)
        end = ConnectionEnd(connection.end_ns, connection.end, connection.gaps > 0)
        self._end(connection.connection, end)

    def _end(self, connection: int, end: ConnectionEnd) -> None:
        if not self._is_too_much(self.ends) and self.room.takes(_NUMBER_BYTES):
            self.ends[connection] = end

    def merge(self, later: Self) -> None:
        self.changes += 1
        self.lines.merge(later.lines)
        pairs: tuple[tuple[dict[Any, RepeatedMark], dict[Any, RepeatedMark]], ...] = (
            (self.beats, later.beats),
            (self.commits, later.commits),
            (self.refusals, later.refusals),
        )
        for mine, theirs in pairs:
            for key, run in theirs.items():
                self._add(mine, key, run)
        for whose, stretches in later.fetches.items():
            for first_ns, last_ns in stretches:
                self._stretch(self.fetches, whose, FETCH_GAP_NS, first_ns, last_ns)
        for connection, stretches in later.holes.items():
            for first_ns, last_ns in stretches:
                self._stretch(self.holes, connection, HOLE_GAP_NS, first_ns, last_ns)
        for connection in later.answered:
            self._take_connection(connection)
        self.labels.merge(later.labels)
        self._closed_ns = most(self._closed_ns, later._closed_ns)
        for connection, end in later.ends.items():
            self._end(connection, end)
        self._left_out += later._left_out

    @property
    def left_out(self) -> int:
        stretches = (*self.fetches.values(), *self.holes.values())
        return self._left_out + self.lines.left_out + sum(each.left_out for each in stretches)


_TAKEN: dict[str, Callable[[GroupTimeline, Exchange, dict[str, Any], bool], None]] = {
    **dict.fromkeys(HEARTBEATS, GroupTimeline._group_heartbeat),
    **dict.fromkeys(COMMITS, GroupTimeline._commit),
    "JoinGroup": GroupTimeline._join,
    "SyncGroup": GroupTimeline._sync,
    "Heartbeat": GroupTimeline._heartbeat,
    "LeaveGroup": GroupTimeline._leave,
}
"""The function that takes in each API's exchanges."""


_NOT_LOST = (*WAITED, "acks=0", "waiting")
"""The reasons for an absent response that do not mean a loss."""


def _misses_an_answer(exchange: Exchange) -> bool:
    """Whether the answer to a request about a group is missing, or cut. Answers to other APIs do not
    matter."""
    if exchange.api is not None and exchange.api not in _TAKEN:
        return False
    if exchange.response is None and exchange.missing not in _NOT_LOST:
        return True
    return any(each.is_cut for each in exchange.messages)


GroupTimeline.apis = frozenset((*_TAKEN, "Fetch"))
