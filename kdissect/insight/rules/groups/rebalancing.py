"""Rules on how often groups rebalance, how long it takes, and which members make it long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from kdissect.analysis.connections import Connections
from kdissect.analysis.fold import MILLISECOND, SECOND, Row
from kdissect.analysis.group_rebalance import NOT_JOINED
from kdissect.analysis.groups import Members
from kdissect.analysis.rebalances import Rebalances, RebalanceSteps
from kdissect.insight.causes import explains
from kdissect.insight.context import SLEPT
from kdissect.insight.finding import (
    CERTAIN,
    CRITICAL,
    LIKELY,
    NOTICE,
    WARNING,
    Finding,
    FindingSubject,
    key_of,
)
from kdissect.insight.gaps import CapturedSides
from kdissect.insight.rule import Facts, rule
from kdissect.insight.rules.groups.words import (
    EAGER,
    POLL_TIMEOUT,
    TRIGGERS,
    by_group,
    disjoint,
    evidence,
    generations_of,
    group_filter,
    name_of,
    names_of,
    over,
    seconds,
    some,
    step_of,
    when,
)
from kdissect.wording import plural

ROUTINE = ("followup-revoke", "static-restart", "config-changed")
"""Triggers of rebalances that are part of another one, or of the work of those who run Connect."""
FAILED = ("poll-interval", "session-timeout")


def _lives(members: list[Row]) -> dict[str, list[Row]]:
    """The members that are not static, by client id, in the order in which they came."""
    found: dict[str, list[Row]] = {}
    for row in members:
        if row["client_id"] and row["member_id"] and not row["instance_id"] and row["first_ns"] is not None:
            found.setdefault(row["client_id"], []).append(row)
    for lives in found.values():
        lives.sort(key=lambda row: row["first_ns"])
    return found


def _returns(lives: list[Row]) -> float:
    """How often, on average, the members of one client id came back: the number of their lives less one."""
    together = max(
        (sum(each["first_ns"] <= row["first_ns"] < each["last_ns"] for each in lives) for row in lives),
        default=0,
    )
    return len(lives) / max(1, together) - 1


@rule(
    "rebalance-storm",
    CRITICAL,
    CERTAIN,
    needs=(Rebalances, Members),
    rebalances=3,
    within_s=60,
    any=4,
    any_s=300,
)
def rebalance_storm(facts: Facts) -> Iterator[Finding]:
    """A group rebalances again and again: members leave or are lost and come back, or members keep asking for
    a rebalance."""
    members = dict(by_group(facts.rows(Members)))
    for group, rows in by_group(_rebalances(facts)):
        lives = _lives(members.get(group, []))
        returns = {client_id: _returns(each) for client_id, each in lives.items()}
        first = {client_id: each[0]["member_id"] for client_id, each in lives.items()}
        counted = [row for row in rows if row["trigger"] not in ROUTINE]
        least = 1 if disjoint(members.get(group, [])) else 2  # a single restart stops another application
        again = [row for row in counted if _comes_again(row, returns, first, least)]
        first_ns = min(map(when, rows))
        asked = [row for row in counted if _is_asked(row) and when(row) - first_ns > 10 * SECOND]
        found = _densest(again, facts.limit("within_s"))
        threshold = facts.limit("rebalances")
        if len(found) < threshold:
            found = _densest(sorted([*again, *asked], key=when), facts.limit("any_s"))
            threshold = facts.limit("any")
        if len(found) < threshold:
            continue
        words = Counter(_why(row) for row in found)
        told = ", ".join(f"{plural(count, 'time')} because {word}" for word, count in words.most_common(3))
        if len(words) == 1:
            told = f"each time because {next(iter(words))}"
        span_ns = when(found[-1]) - when(found[0])
        stopped = sum(row["stopped_ns"] or 0 for row in found)
        is_alone = all(_disturbs_nobody(row, rows) for row in found)
        alone = " The group was empty each time: nobody had to wait for that." if is_alone else ""
        yield facts.finding(
            FindingSubject(group=group),
            f"The group rebalanced {len(found)} times in {seconds(span_ns)}{_which(found)}: {told}.{alone}",
            severity=NOTICE if is_alone else CRITICAL,
            count=len(found),
            measure=float(len(found)),
            unit="rebalances",
            threshold=threshold,
            cost_ns=stopped,
            first_ns=when(found[0]),
            last_ns=over(found[-1]),
            exchanges=evidence(found),
            steps=tuple(step_of(row) for row in found),
            filter=group_filter(group),
        )


def _which(rows: list[Row]) -> str:
    """The generations of these rebalances, in brackets. Other findings on the group may be about other
    rebalances."""
    generations = generations_of(rows)
    return f" ({generations})" if generations else ""


def _why(row: Row) -> str:
    if row["missing"] and row["trigger"] not in FAILED:
        return "a member was lost and another took its place"
    return TRIGGERS.get(row["trigger"] or "", TRIGGERS["unknown"])


def _disturbs_nobody(row: Row, rows: list[Row]) -> bool:
    """Whether a member joined a group that was empty, as a job does that runs now and then. If a member that
    failed had emptied the group, the join belongs to that."""
    at = rows.index(row)
    failed = at > 0 and rows[at - 1]["trigger"] in FAILED
    return row["trigger"] == "new-member" and row["members_before"] == 0 and not failed


def _comes_again(row: Row, returns: dict[str, float], first: dict[str, str], least: int) -> bool:
    """Whether the rebalance began with a member that failed, was lost, or comes and goes again and again."""
    if row["trigger"] in FAILED or row["missing"]:
        return True
    client_id = row["trigger_client_id"]
    if row["trigger"] == "new-member" and first.get(client_id) == row["trigger_member"]:
        return False
    return row["trigger"] in ("new-member", "member-left") and returns.get(client_id, 0) > least - 1


def _is_asked(row: Row) -> bool:
    """Whether a member asked for the rebalance, so that it is no join or leave of a growing or shrinking
    group."""
    return row["trigger"] in ("enforced", "leader-rejoined", "metadata-changed", "subscription-changed")


def _densest(rows: list[Row], within_s: float) -> list[Row]:
    """The largest group of rebalances that began within ``within_s``."""
    best: list[Row] = []
    for at, row in enumerate(rows):
        some_rows = [each for each in rows[at:] if when(each) - when(row) <= within_s * SECOND]
        best = max(best, some_rows, key=len)
    return best


def _rebalances(facts: Facts) -> list[Row]:
    """The rebalances. If one was not finished when the traffic of its cluster ended, nobody knows for how
    long its group stood still after that. The table counts on to the end of the whole capture."""
    rows = facts.rows(Rebalances)
    return [_known_part(row, facts) for row in rows] if facts.context.ends else rows


def _known_part(row: Row, facts: Facts) -> Row:
    beyond_ns = facts.context.beyond_ns(row["cluster_id"])
    if row["completed"] is not False or row["stopped_ns"] is None or not beyond_ns:
        return row
    return row | {"stopped_ns": max(0, row["stopped_ns"] - beyond_ns)}


@rule("rebalance-long", CRITICAL, CERTAIN, needs=(Rebalances, Members, Connections), stopped_s=5, newer_s=10)
def rebalance_long(facts: Facts) -> Iterator[Finding]:
    """Consumption stood still for long. The newer groups need two heartbeats of 5 s to move a partition,
    which is no fault."""
    members = names_of(facts.rows(Members))
    whole = _Wholeness(facts)
    limits = {True: facts.limit("stopped_s"), False: facts.limit("newer_s")}
    for group, rows in by_group(_rebalances(facts)):
        stopped = [
            row
            for row in rows
            if (row["stopped_ns"] or 0) >= limits[_is_classic(row)] * SECOND
            if (row["members_before"] or 0) > 0 or _is_held(row, facts.limit("stopped_s"))
            if not _may_be_over(row, facts, whole)
        ]
        found = [row for row in stopped if not facts.context.slept(when(row) - row["stopped_ns"], over(row))]
        if len(found) < len(stopped):
            facts.cannot_judge(SLEPT)
        if not found:
            continue
        worst = max(found, key=lambda row: row["stopped_ns"])
        begun = "" if worst["completed"] is not False else ", and was not finished"
        times = "" if len(found) == 1 else f" It is the longest of {len(found)}."
        generation = f" of generation {worst['generation']}" if worst["generation"] is not None else ""
        is_held = worst["members_before"] is None
        protocol = worst["protocol"] or _protocol_before(worst, rows)
        yield facts.finding(
            FindingSubject(group=group),
            f"{_stood_still(worst, protocol, members)} for "
            f"{seconds(worst['stopped_ns'])}: the rebalance{generation} took long{begun}. "
            f"{_phase(worst, members)}{_UNSEEN if is_held else ''}{times}",
            confidence=LIKELY if is_held else CERTAIN,
            because=_lost(worst) if _was_unnoticed(worst) else None,
            count=len(found),
            measure=worst["stopped_ns"] / SECOND,
            unit="s",
            threshold=limits[_is_classic(worst)],
            cost_ns=sum(row["stopped_ns"] for row in found),
            first_ns=when(found[0]),
            last_ns=max(over(row) for row in found),
            exchanges=evidence([worst, *found]),
            steps=tuple(step_of(row) for row in found),
            filter=group_filter(group),
        )


def _stood_still(row: Row, protocol: str | None, members: dict[tuple[str, str], Row]) -> str:
    """The words about what a rebalance stopped: all partitions, or those of some members."""
    if row["members_before"] is None:
        return "Members waited"
    count, every = row["stopped_partitions"], row["partitions"]
    if count and (every is None or count < every):
        who = some(name_of(members, row["group"], each) for each in row["stopped_members"])
        whose = f"those of {who}" if count > 1 else f"that of {who}"
        read = plural(count, "partition") if every is None else f"{count} of {every} partitions"
        return f"Nobody read {read} ({whose})"
    if count or protocol in EAGER:
        return "Nobody read partitions"
    return "The group waited" if row["completed"] is False else "Nobody read the partitions that moved"


def _protocol_before(row: Row, rows: list[Row]) -> str | None:
    """The assignor of the last generation before a rebalance that did not come to choose one."""
    before = [each["protocol"] for each in rows if when(each) < when(row) and each["protocol"]]
    return before[-1] if before else None


_UNSEEN = (
    " The coordinator may have waited for a member that the capture does not show: one that stopped without "
    "leaving counts until its session ends. Or the group was empty (group.initial.rebalance.delay.ms)."
)


def _is_held(row: Row, least_s: float) -> bool:
    """Whether the coordinator held members back for long after all known members had asked to join, although
    the capture does not show the earlier members. Before the first generation there were none."""
    is_first = row["generation"] is not None and row["generation"] <= 1
    if row["members_before"] is not None or is_first or not _is_classic(row):
        return False
    return (_hold_ns(row) or 0) >= least_s * SECOND


def _is_classic(row: Row) -> bool:
    """Whether the members join and sync. In the newer groups heartbeats do all of it."""
    return "classic" in row["types"]


class _Wholeness:
    """Answers whether both sides of the exchanges of groups were captured."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._sides: CapturedSides | None = None
        self._clients: dict[str, set[str]] = {}

    def is_often_one_sided(self, group: str) -> bool:
        if self._sides is None:
            self._sides = CapturedSides(self._facts)
            for member in self._facts.rows(Members):
                if member["client"]:
                    self._clients.setdefault(member["group"], set()).add(member["client"])
        return self._sides.is_often_one(self._clients.get(group, ()))


def _may_be_over(row: Row, facts: Facts, whole: _Wholeness) -> bool:
    """Whether the capture may lack the end of a rebalance. In the newer groups a single heartbeat is the
    end."""
    if row["completed"] is not False:
        return False
    if whole.is_often_one_sided(row["group"]):
        facts.cannot_judge("of many exchanges only one side was captured, the end of rebalances perhaps too")
        return True
    if not facts.context.gap_bytes:
        return False
    return not _is_classic(row) or facts.context.may_lack(when(row), over(row))


def _was_unnoticed(row: Row) -> bool:
    """Whether a member was gone for most of the time before its group noticed it."""
    return row["trigger"] == "session-timeout" and (row["stopped_ns"] or 0) > 2 * (over(row) - when(row))


def _lost(row: Row) -> str:
    """The key of the finding on the member that was removed and so began a rebalance."""
    client_id = row["trigger_client_id"]
    member_id = None if client_id else row["trigger_member"]
    return key_of(
        "session-timeout", FindingSubject(group=row["group"], client_id=client_id, member_id=member_id)
    )


def _phase(row: Row, members: dict[tuple[str, str], Row]) -> str:
    """The name of the longest phase of a rebalance."""
    hold_ns = _hold_ns(row) or 0
    gather_ns = (row["last_join_ns"] or when(row)) - when(row)
    assign_ns, sync_ns = row["assign_phase_ns"] or 0, row["sync_phase_ns"] or 0
    longest = max(hold_ns, gather_ns, assign_ns, sync_ns)
    missing = row["missing"] or []
    if _was_unnoticed(row):
        who = name_of(members, row["group"], row["trigger_member"])
        return f"Most of that time passed before the group noticed that {who} was gone."
    if longest == hold_ns > 0 and missing:
        who = some(name_of(members, row["group"], member) for member in missing)
        return f"The coordinator waited {seconds(hold_ns)} for {who}, which did not join again."
    if longest == hold_ns and hold_ns > 0:
        return f"The coordinator waited {seconds(hold_ns)} after all known members had asked to join."
    if longest == gather_ns and row["waited_for"]:
        who = name_of(members, row["group"], row["waited_for"][0])
        return f"The last member to ask to join, {who}, did so after {seconds(gather_ns)}."
    if longest == assign_ns and assign_ns > 0:
        return f"The leader took {seconds(assign_ns)} to distribute the partitions."
    if longest == sync_ns and sync_ns > 0 and not _is_classic(row):
        return f"Members took {seconds(sync_ns)} to give partitions back and to take them over."
    if longest == sync_ns and sync_ns > 0:
        return f"Members took {seconds(sync_ns)} to get what the leader had distributed."
    return f"It began because {TRIGGERS.get(row['trigger'] or '', TRIGGERS['unknown'])}."


def _hold_ns(row: Row) -> int | None:
    """How long the coordinator waited after the last member had asked to join."""
    if row["last_join_ns"] is None:
        return None
    until_ns = row["joined_ns"]
    if until_ns is None and row["completed"] is False and row["stopped_ns"] is not None:
        until_ns = when(row) + row["stopped_ns"]
    return None if until_ns is None else until_ns - row["last_join_ns"]


def _are_silent(row: Row, members: dict[tuple[str, str], Row], silent_s: float) -> bool:
    """Whether the members that did not join are gone. If the capture ends before the rebalance does, they may
    still join: a member learns of the rebalance by its next heartbeat, at the latest after a third of its
    session."""
    if row["completed"] is not False:
        return True
    for each in row["missing"]:
        member = members.get((row["group"], each))
        if member is None or member["last_ns"] is None:
            return False
        least_ns = max(silent_s * SECOND, (member["session_timeout_ms"] or 0) * MILLISECOND // 3)
        if over(row) - member["last_ns"] < least_ns:
            return False
    return True


class _Delay(NamedTuple):
    """How long a group waited for a member that had been told to join again."""

    ns: int
    told: Row
    """The step with which the member learned of the rebalance."""
    row: Row
    has_joined: bool


class _ToldToJoin:
    """The members that heartbeats tell to join again."""

    def __init__(self, facts: Facts) -> None:
        self._steps: dict[tuple[str, int | None, str], dict[str, Row]] = {}
        for step in facts.rows(RebalanceSteps):
            key = step["group"], step["generation"], step["member_id"]
            self._steps.setdefault(key, {}).setdefault(step["step"], step)

    def joined(self, row: Row) -> _Delay | None:
        """The delay by the last member that joined."""
        own = self._of(row, row["waited_for"][0]) if row["waited_for"] else {}
        if "notified" not in own or "joined" not in own:
            return None
        return _Delay(own["joined"]["ns"] - own["notified"]["ns"], own["notified"], row, has_joined=True)

    def missing(self, row: Row, member: str) -> _Delay | None:
        """The delay by a member that the group went on without, though it was there. It was told to join
        again, and its connection stayed open."""
        own = self._of(row, member)
        if "notified" not in own or "expired" not in own or own["expired"]["detail"] != NOT_JOINED:
            return None
        return _Delay(own["expired"]["ns"] - own["notified"]["ns"], own["notified"], row, has_joined=False)

    def is_open(self, row: Row, member: str) -> bool:
        """Whether the connection of a member that did not join stayed open."""
        step = self._of(row, member).get("expired")
        return step is not None and step["client"] is not None and step["detail"] == NOT_JOINED

    def _of(self, row: Row, member: str) -> dict[str, Row]:
        return self._steps.get((row["group"], row["generation"], member), {})


@rule(
    "rebalance-missing-member",
    WARNING,
    CERTAIN,
    needs=(Rebalances, RebalanceSteps, Members, Connections),
    hold_s=1,
    silent_s=10,
)
def rebalance_missing_member(facts: Facts) -> Iterator[Finding]:
    """The coordinator waited for a member that was gone."""
    members = names_of(facts.rows(Members))
    whole, told = _Wholeness(facts), _ToldToJoin(facts)
    least_ns = facts.limit("hold_s") * SECOND
    for group, every in by_group(_rebalances(facts)):
        rows = [
            row | {"missing": [each for each in row["missing"] or () if told.missing(row, each) is None]}
            for row in every
        ]
        found = [
            (hold_ns, row)
            for row in rows
            if row["missing"] and row["stopped_ns"] is not None
            if (hold_ns := _hold_ns(row) or 0) >= least_ns
            and not _may_be_over(row, facts, whole)
            and _are_silent(row, members, facts.limit("silent_s"))
        ]
        if not found:
            continue
        hold_ns, worst = max(found, key=lambda each: each[0])
        lost = list(dict.fromkeys(member for _, row in found for member in row["missing"]))
        row = members.get((group, lost[0])) if len(lost) == 1 else None
        who = some(name_of(members, group, member) for member in worst["missing"])
        times = "" if len(found) == 1 else f" This happened {len(found)} times."
        last = [members[group, each]["last_ns"] for each in worst["missing"] if (group, each) in members]
        is_one = len(worst["missing"]) == 1
        it, was, its = ("it", "was", "Its") if is_one else ("one of them", "were", "Their")
        what = f"which {was} gone without having left the group."
        if all(told.is_open(worst, each) for each in worst["missing"]):
            what = (
                f"which did not. {its} {'connection' if is_one else 'connections'} stayed open: the "
                f"{'process was' if is_one else 'processes were'} busy, paused or hung."
            )
        since = seconds(when(worst) - min(last, default=0))
        ago = f" The group had last heard of {it} {since} before the rebalance began." if last else ""
        yield facts.finding(
            FindingSubject(
                group=group, client_id=row["client_id"] if row else None, member_id=lost[0] if row else None
            ),
            f"All other members had asked to join, and the coordinator waited {seconds(hold_ns)} more for "
            f"{who}, {what}{ago if min(last, default=0) < when(worst) else ''}{times}",
            count=len(found),
            measure=hold_ns / SECOND,
            unit="s",
            threshold=facts.limit("hold_s"),
            cost_ns=sum(each for each, _ in found),
            first_ns=when(found[0][1]),
            last_ns=over(found[-1][1]),
            exchanges=evidence([row for _, row in found]),
            steps=tuple(step_of(row) for _, row in found),
            filter=group_filter(group),
        )


@rule(
    "rebalance-slow-member",
    WARNING,
    CERTAIN,
    needs=(Rebalances, RebalanceSteps),
    delay_s=1,
    share=0.7,
    rebalances=2,
    once_s=5,
)
def rebalance_slow_member(facts: Facts) -> Iterator[Finding]:
    """One member holds up rebalances: it joins long after it was asked to, or not at all."""
    told = _ToldToJoin(facts)
    late: dict[tuple[str, str | None, str], list[_Delay]] = {}
    for row in facts.rows(Rebalances):
        if row["types"] != ["classic"]:
            continue
        delays = [told.missing(row, member) for member in row["missing"] or ()]
        if (joined := told.joined(row)) is not None and _is_most(joined, facts.limit("share")):
            delays.append(joined)
        for each in delays:
            if each is not None and each.ns >= facts.limit("delay_s") * SECOND:
                whose = row["group"], each.told["client_id"], each.told["client"].rpartition(":")[0]
                late.setdefault(whose, []).append(each)
    for (group, client_id, client), found in late.items():
        worst = max(found, key=lambda each: each.ns)
        is_once = len(found) < facts.limit("rebalances") and all(each.has_joined for each in found)
        if is_once and worst.ns < facts.limit("once_s") * SECOND:
            continue
        who = client_id or client
        joined_late = [each for each in found if each.has_joined]
        put_out = [each for each in found if not each.has_joined]
        words = []
        if joined_late:
            words.append(
                f"{who} joined up to {seconds(max(each.ns for each in joined_late))} after it was told to, "
                f"and all others of the group waited for it in {plural(len(joined_late), 'rebalance')}."
            )
        if put_out:
            times = "" if len(put_out) == 1 else f" This happened {len(put_out)} times."
            words.append(
                f"{who} was told to join again and did not within "
                f"{seconds(max(each.ns for each in put_out))}, though its connection stayed open. All others "
                f"of the group waited for it, and then went on without it.{times}"
            )
        yield facts.finding(
            FindingSubject(group=group, client_id=client_id, client=client),
            " ".join(words),
            count=len(found),
            measure=worst.ns / SECOND,
            unit="s",
            threshold=facts.limit("delay_s"),
            cost_ns=sum(each.ns for each in found),
            first_ns=when(found[0].row),
            last_ns=over(found[-1].row),
            exchanges=evidence([each.row for each in found]),
            steps=tuple(step_of(each.row) for each in found),
            filter=group_filter(group),
        )


def _is_most(delay: _Delay, share: float) -> bool:
    """Whether a delay was most of the time in which members joined."""
    whole_ns = delay.row["join_phase_ns"]
    return whole_ns is not None and delay.ns >= share * whole_ns


@rule("eager-stop-the-world", NOTICE, CERTAIN, needs=(Rebalances,), members=3, rebalances=3, stopped_s=1)
def eager_stop_the_world(facts: Facts) -> Iterator[Finding]:
    """Every rebalance stops every member."""
    for group, rows in by_group(_rebalances(facts)):
        found = [
            row
            for row in rows
            if row["protocol"] in EAGER
            and (row["members"] or 0) >= facts.limit("members")
            and (row["members_before"] or 0) > 0
            and row["completed"]
        ]
        stopped = sum(row["stopped_ns"] or 0 for row in found)
        if len(found) < facts.limit("rebalances") or stopped < facts.limit("stopped_s") * SECOND:
            continue
        most = max(row["members"] for row in found)
        yield facts.finding(
            FindingSubject(group=group),
            f"In {len(found)} rebalances{_which(found)} all members, up to {most}, gave up all their "
            f"partitions and waited for each other, {seconds(stopped)} in all. The assignor "
            f"{found[-1]['protocol']} works like that.",
            count=len(found),
            measure=stopped / SECOND,
            unit="s",
            threshold=facts.limit("stopped_s"),
            cost_ns=stopped,
            first_ns=when(found[0]),
            last_ns=over(found[-1]),
            exchanges=evidence(found),
            filter=group_filter(group),
        )


@rule("rolling-restart", NOTICE, LIKELY, needs=(Members,), clients=2, back_s=60)
def rolling_restart(facts: Facts) -> Iterator[Finding]:
    """Members are stopped and started one after another, each with a rebalance or two."""
    back_ns = facts.limit("back_s") * SECOND
    for group, rows in by_group(facts.rows(Members)):
        restarts: list[tuple[int, Row, Row]] = []
        for lives in _lives(rows).values():
            pairs = _restarted(lives, back_ns)
            if 2 * len(pairs) <= len(lives):  # otherwise one member was restarted again and again
                restarts += pairs
        restarts.sort(key=lambda each: each[0])
        who = [old["client_id"] for _, old, _ in restarts]
        in_turn = all(one[2]["first_ns"] <= other[0] for one, other in pairwise(restarts))
        if len(who) < facts.limit("clients") or not in_turn:
            continue
        yield facts.finding(
            FindingSubject(group=group),
            f"{len(who)} members ({some(who)}) left and came back one after another. Each time the group "
            "rebalanced.",
            count=len(restarts),
            measure=float(len(restarts)),
            unit="restarts",
            threshold=facts.limit("clients"),
            first_ns=restarts[0][0],
            last_ns=restarts[-1][2]["first_ns"],
            filter=group_filter(group),
        )


def _restarted(lives: list[Row], back_ns: float) -> list[tuple[int, Row, Row]]:
    """Members that left, each with the time, and with the next member of its client id."""
    free = list(lives)
    found: list[tuple[int, Row, Row]] = []
    for old in sorted(lives, key=lambda row: row["left_ns"] or 0):
        left_ns = old["left_ns"]
        if left_ns is None or POLL_TIMEOUT in (old["leave_reason"] or ""):
            continue
        new = next((row for row in free if 0 <= row["first_ns"] - left_ns <= back_ns), None)
        if new is not None:
            free.remove(new)
            found.append((left_ns, old, new))
    return found


explains("rebalance-missing-member", "rebalance-long", shares=("group",))
explains("rebalance-slow-member", "rebalance-long", shares=("group",))
explains("rebalance-slow-member", "commit-after-rebalance", shares=("group", "client_id"))
explains("rolling-restart", "rebalance-storm", "rebalance-long", "eager-stop-the-world", shares=("group",))
explains("rebalance-storm", "eager-stop-the-world", shares=("group",))
