"""The client that began a rebalance of a classic group, and why.

A rebalance begins with the first request, after the answers with the generation before, that makes the
coordinator prepare it. That is a LeaveGroup, or a JoinGroup of a member that is new, or that rejoins without
a notification. If members are notified before any such request, a session ended, or the request was not
captured. Then no client is named.

Reasons are those of Kafka's Java client (KIP-800). Other clients give none, and the sequence of their
requests decides.
"""

from __future__ import annotations

from typing import NamedTuple

from kdissect.analysis.classic_rounds import REBALANCE_IN_PROGRESS, Round
from kdissect.analysis.fold import MILLISECOND, SECOND, most
from kdissect.analysis.group_marks import Join, Leave, RepeatedMark, Sync, Who
from kdissect.analysis.group_rebalance import CERTAIN, LIKELY, GroupLine

REASONS = (
    ("poll timeout", "poll-interval"),
    ("need to revoke partitions", "followup-revoke"),
    ("enforced by user", "enforced"),
    ("triggered followup rebalance scheduled for", "probing"),
    ("metadata has changed", "metadata-changed"),
    ("subscription has changed", "subscription-changed"),
    ("connect worker requested rejoin", "enforced"),
    ("tasks corrupted", "enforced"),
    ("Shutdown requested", "enforced"),
)
"""Parts of reasons, with our word for each (ConsumerCoordinator, StreamThread, WorkerCoordinator)."""
FOLLOWS = ("already rebalancing", "rebalance failed due to", "RebalanceInProgress")
"""Reasons of members that only follow."""
GIVEN_ID = "need to re-join with the given member-id"
NOT_COORDINATOR = (14, 15, 16)
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR."""
MEMBER_ID_REQUIRED_VERSION = 4
"""From this version of JoinGroup on a new member first gets its id (KIP-394): a request without an id begins
nothing."""
UNKNOWN_MEMBER_ID = 25
LONG_POLL_NS = SECOND // 2
"""The longest time between the last Fetch and its answer (``fetch.max.wait.ms``)."""
AUTO_COMMIT_NS = 6 * SECOND
"""How long after its last poll a client may commit by itself (``auto.commit.interval.ms``, plus a margin)."""
DID_NOT_POLL = "gives no reason; it fetched or committed nothing for its poll interval"
"""The detail of a LeaveGroup without a reason if the client seems not to have been polled."""
DID_NOT_FETCH = "gives no reason; it had fetched nothing for seconds, and went on to commit"
"""The same detail if the client's poll interval is unknown."""
QUIET_NS = 2 * SECOND
"""A client that fetched nothing for this long may not have been polled."""
EARLY = 0.9
"""A timeout counts as over from this share of it on."""


class Trigger(NamedTuple):
    """The trigger of a rebalance."""

    word: str
    confidence: str
    member: str | None
    who: Who | None
    reason: str | None
    exchange: int | None
    begin_ns: int


class Window(NamedTuple):
    """The known facts for finding the trigger of a rebalance."""

    before: Round | None
    """The generation before."""
    members: dict[str, str | None]
    """The members of the generation before, with their instance ids."""
    is_full: bool
    """Whether ``members`` has all of them."""
    generation: int | None
    """The next generation."""
    joins: list[Join]
    """The JoinGroups that were answered with it, or that wait."""
    leaves: list[Leave]
    roster: dict[str, str | None] | None
    """All members of the next generation."""
    until_ns: int


def trigger_of(line: GroupLine, window: Window) -> Trigger | None:
    """The trigger of a rebalance; None if the capture does not show it."""
    marks: list[Join | Leave] = [*window.joins, *window.leaves]
    asked = [each for each in marks if _begins(each, window)]
    asked.sort(key=lambda each: (each.ns, each.number))
    told = notified(line, window)
    if told is not None and (not asked or told.first_ns < asked[0].ns):
        return _expired(line, window, told)
    if not asked or not _is_known(line, window, asked[0]):
        return None
    first = asked[0]
    if isinstance(first, Leave):
        return _left(line, window, first)
    return _joined(line, window, first)


def notified(line: GroupLine, window: Window) -> RepeatedMark | None:
    """The first answer that notified a member of the generation before to join again."""
    before = window.before
    generation = before.generation if before is not None else (window.generation or 0) - 1
    since = before.told_ns if before is not None else 0
    found = [
        run
        for key, run in line.refusals_of(generation)
        if key.error == REBALANCE_IN_PROGRESS and key.api != "JoinGroup"
        if since <= run.first_ns <= window.until_ns
    ]
    return min(found, key=lambda run: run.first_ns, default=None)


def _begins(mark: Join | Leave, window: Window) -> bool:
    """Whether a request makes the coordinator prepare a rebalance, if none is prepared."""
    if isinstance(mark, Leave):
        return not window.is_full or identity(mark.member, mark.instance, window.members) is not None
    if mark.error not in (0, None) or mark.is_lost:
        return False
    return bool(
        mark.requested_member or mark.instance or mark.version < MEMBER_ID_REQUIRED_VERSION or mark.error == 0
    )


def identity(member: str, instance: str | None, members: dict[str, str | None]) -> str | None:
    """The id of a member within a generation; None if it is not in it."""
    if member in members and member:
        return member
    if instance is None:
        return None
    return next((each for each, name in members.items() if name == instance), None)


def _is_known(line: GroupLine, window: Window, first: Join | Leave) -> bool:
    """Whether nothing else can have begun the rebalance before: the group was seen to be stable, and since
    then nothing on its members' connections was lost."""
    unseen = set(window.roster or ()) - {join.member for join in window.joins}
    for member in unseen:
        if not any(
            key.error == REBALANCE_IN_PROGRESS and first.ns <= run.first_ns <= window.until_ns
            for key, run in line.refusals_to(member)
        ):
            return False
    since = _stable_until(line, window, first.ns)
    if since is None:
        emptied = window.before is None and window.generation is not None
        return emptied and _is_new_group(line, window) and line.is_whole(first.ns - SECOND, first.ns)
    return line.is_whole(since, first.ns)


def _is_new_group(line: GroupLine, window: Window) -> bool:
    """Whether all members of a generation are new, because there was no generation before."""
    return all(_is_surely_new(line, join, window) for join in window.joins) and window.roster is not None


def _stable_until(line: GroupLine, window: Window, ns: int) -> int | None:
    """When the generation before was last seen in force, or empty."""
    before = window.before
    generation = before.generation if before is not None else (window.generation or 0) - 1
    found: int | None = None
    for key, run in line.heartbeats_in(generation):
        if key.member and run.first_ns <= ns:
            found = most(found, run.last_ns if run.last_ns <= ns else run.first_ns)
    if before is not None:
        told: list[Join | Sync] = [*before.joins, *before.again, *before.syncs]
        for each in told:
            if each.answered_ns is not None and each.answered_ns <= ns and not each.error:
                found = most(found, each.answered_ns)
    return found


def _expired(line: GroupLine, window: Window, told: RepeatedMark) -> Trigger | None:
    """A member whose session was over when the others were notified to join again."""
    came = {join.member for join in window.joins} | {leave.member for leave in window.leaves}
    silent: list[tuple[int, str]] = []
    for member in window.members:
        if member in came:
            continue
        last_ns = line.last_sign(member, told.first_ns)
        session_ms = line.session_ms(member, window.members[member])
        if last_ns is None or session_ms is None:
            continue
        if told.first_ns - last_ns >= EARLY * session_ms * MILLISECOND:
            silent.append((last_ns, member))
    if not silent:
        return None
    last_ns, member = min(silent)
    return Trigger(
        "session-timeout", LIKELY, member, line.clients.get(member), None, told.first, told.first_ns
    )


def _left(line: GroupLine, window: Window, leave: Leave) -> Trigger:
    member = identity(leave.member, leave.instance, window.members) or leave.member or leave.instance
    word, confidence = "member-left", CERTAIN
    if leave.reason is not None:
        word = _word(leave.reason) or word
    elif was_not_polled(line, leave, member or "") is not None:
        word, confidence = "poll-interval", LIKELY
    return Trigger(word, confidence, member, leave.who, leave.reason, leave.number, leave.ns)


def was_not_polled(line: GroupLine, leave: Leave, member: str) -> str | None:
    """The evidence that a client without a reason left because it was not polled; None without evidence.

    KIP-62: the rebalance timeout of its JoinGroup is its ``max.poll.interval.ms``. Such a client heartbeats
    to the end, and fetched nothing for that time. With librdkafka, fetches go on by themselves. There it
    committed nothing for that time, left without closing its connection, and joined again on it as a new
    member. With aiokafka, the rebalance timeout is another one. There its application does not know that it
    left: it goes on to commit, and is refused.
    """
    joined = line.joined_last(member, leave.ns)
    if joined is None or not joined.rebalance_ms or leave.who.connection != joined.who.connection:
        return None
    since = joined.answered_ns or 0
    session_ns = (joined.session_ms or 0) * MILLISECOND
    beats = (run.last_ns for run in line.beats_of(member) if run.last_ns <= leave.ns)
    last_beat = max(beats, default=None)
    if last_beat is None or leave.ns - last_beat > session_ns:
        return None
    fetched = line.fetched_until(member, {member}, leave.ns)
    quiet_ns = leave.ns - fetched if fetched is not None else 0
    interval_ns = int(EARLY * joined.rebalance_ms * MILLISECOND)
    if leave.ns - since >= interval_ns and (
        quiet_ns >= interval_ns - LONG_POLL_NS or _began_again(line, leave, member, since, interval_ns)
    ):
        return DID_NOT_POLL
    return DID_NOT_FETCH if quiet_ns >= QUIET_NS and _goes_on(line, leave, member) else None


def _began_again(line: GroupLine, leave: Leave, member: str, since: int, interval_ns: int) -> bool:
    """Whether a client had committed nothing for long when it left, and joined again as a new member."""
    again = any(
        mark.who.connection == leave.who.connection and not mark.requested_member
        for mark in line.joins
        if mark.ns > leave.ns
    )
    return again and leave.ns - committed_until(line, member, since, leave.ns) >= without_commits(interval_ns)


def committed_until(line: GroupLine, member: str, since: int, until: int) -> int:
    """When a member last committed between two times; the first of these if it did not."""
    return max((run.last_ns for run in line.commits_of(member) if run.last_ns <= until), default=since)


def without_commits(interval_ns: int) -> int:
    """The time without commits that shows that a client was not polled for this interval."""
    return max(SECOND, interval_ns - AUTO_COMMIT_NS)


def _goes_on(line: GroupLine, leave: Leave, member: str) -> bool:
    """Whether a client goes on to commit after it left, and gets the error that it is no member. It may not
    name itself any more."""
    return any(
        (key.error, key.api) == (UNKNOWN_MEMBER_ID, "OffsetCommit")
        and run.who.connection == leave.who.connection
        and run.first_ns <= leave.ns + SECOND
        and run.last_ns >= leave.ns
        for named in {member, ""}
        for key, run in line.refusals_to(named)
    )


def _word(reason: str) -> str | None:
    return next((word for text, word in REASONS if text in reason), None)


def _is_surely_new(line: GroupLine, join: Join, window: Window) -> bool:
    """Whether a client was certainly no member before: it had no id, it has just got its id, or all others
    are known."""
    if identity(join.member, join.instance, window.members) is not None:
        return False
    if not join.requested_member or GIVEN_ID in (join.reason or "") or window.is_full:
        return True
    return any(mark.error and mark.ns < join.ns for mark in line.joins_of(join.member))


def _joined(line: GroupLine, window: Window, join: Join) -> Trigger | None:
    """The trigger for a JoinGroup that begins a rebalance."""

    def found(word: str, confidence: str = CERTAIN) -> Trigger:
        member = join.member or None
        return Trigger(word, confidence, member, join.who, join.reason, join.number, join.ns)

    known = identity(join.member, join.instance, window.members)
    if known is None:
        new = _is_surely_new(line, join, window) or window.generation == 1
        return found("new-member") if new else None
    if known != join.member or not join.requested_member:
        return found("static-restart")
    if join.reason is not None:
        if any(text in join.reason for text in FOLLOWS):
            return None
        word = _word(join.reason)
        if word is not None:
            return found(word)
    return found(*_rejoined(line, window, join, known))


def _rejoined(line: GroupLine, window: Window, join: Join, member: str) -> tuple[str, str]:
    """Why a member without a reason joins again, judged by its earlier requests."""
    before = window.before
    assert before is not None
    last = next((each for each in reversed((*before.joins, *before.again)) if each.member == member), None)
    was = last.topics if last is not None else None
    if was is not None and join.topics is not None and set(was) != set(join.topics):
        return "subscription-changed", LIKELY
    read = [each.config_offset for each in (*before.joins, *before.again) if each.config_offset is not None]
    if join.config_offset is not None and read and join.config_offset > max(read):
        return "config-changed", LIKELY  # all workers of Connect read the configurations of connectors
    if any(
        key.error in NOT_COORDINATOR and before.told_ns <= run.first_ns <= join.ns
        for key, run in line.refusals_to(member)
    ):
        return "coordinator-moved", LIKELY
    given = (before.assigned or {}).get(member)
    if last is not None and last.owned is not None and given is not None:
        held = {(topic, each) for topic, partitions in last.owned for each in partitions}
        if held - {(topic, each) for topic, partitions in given for each in partitions}:
            return "followup-revoke", LIKELY
    leader = next((each.leader for each in (*before.joins, *before.again) if each.leader), None)
    return ("leader-rejoined" if leader == member else "unknown"), LIKELY
