"""Rules on members that do not poll or do not send heartbeats."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.analysis.connections import Connections
from kdissect.analysis.fold import MILLISECOND, SECOND, Row
from kdissect.analysis.group_rebalance import CONNECTION_ENDED, CONNECTION_OPEN
from kdissect.analysis.groups import Members, Stays
from kdissect.analysis.rebalances import RebalanceSteps
from kdissect.analysis.triggers import DID_NOT_FETCH, DID_NOT_POLL
from kdissect.insight.causes import explains
from kdissect.insight.context import SLEPT
from kdissect.insight.finding import CERTAIN, CRITICAL, LIKELY, NOTICE, EvidenceStep, Finding, FindingSubject
from kdissect.insight.gaps import not_known, with_gaps
from kdissect.insight.rule import Facts, rule
from kdissect.insight.rules.groups.words import POLL_TIMEOUT, group_filter, names_of, seconds
from kdissect.wording import plural


@rule("poll-interval-exceeded", CRITICAL, CERTAIN, needs=(RebalanceSteps, Members))
def poll_interval_exceeded(facts: Facts) -> Iterator[Finding]:
    """A consumer left because it did not ask for records in time."""
    members = names_of(facts.rows(Members))
    found: dict[FindingSubject, list[Row]] = {}
    for step in facts.rows(RebalanceSteps):
        if step["step"] == "left" and (
            POLL_TIMEOUT in (step["detail"] or "") or step["detail"] in (DID_NOT_POLL, DID_NOT_FETCH)
        ):
            if POLL_TIMEOUT not in (step["detail"] or "") and _slept(facts, members, step):
                facts.cannot_judge(SLEPT)
                continue
            found.setdefault(_subject(members, step), []).append(step)
    for subject, steps in found.items():
        who = subject.client_id or subject.member_id
        is_known = any(step["detail"] != DID_NOT_FETCH for step in steps)
        limit_ms = _poll_ms(members, steps) if is_known else None
        within = f" within {seconds(limit_ms * MILLISECOND)}" if limit_ms else " in time"
        certain = any(POLL_TIMEOUT in (step["detail"] or "") for step in steps)
        what = f"{who} left the group {plural(len(steps), 'time')} because it did not ask for records{within}"
        yield facts.finding(
            subject,
            f"{what}, though it was alive: its heartbeats came until then. Records that it had read and "
            "not committed are read again.",
            confidence=CERTAIN if certain else LIKELY,
            count=len(steps),
            measure=limit_ms / 1000 if limit_ms else None,
            unit="s",
            first_ns=steps[0]["ns"],
            last_ns=steps[-1]["ns"],
            exchanges=[step["exchange"] for step in steps if step["exchange"] is not None],
            steps=tuple(
                EvidenceStep(
                    step["ns"], f"{who} left: {step['detail'] or 'no reason given'}", step["exchange"]
                )
                for step in steps
            ),
            filter=group_filter(steps[0]["group"]),
        )


def _subject(members: dict[tuple[str, str], Row], step: Row) -> FindingSubject:
    """The member that a step is about: its client id, or its member id if the client id is not known."""
    row = members.get((step["group"], step["member_id"]))
    client_id = step["client_id"] or (row["client_id"] if row is not None else None)
    member_id = None if client_id else step["member_id"]
    return FindingSubject(group=step["group"], client_id=client_id, member_id=member_id)


def _poll_ms(members: dict[tuple[str, str], Row], steps: list[Row]) -> int | None:
    """The longest time that members may take between two polls, if one of them gave it."""
    told = (members.get((step["group"], step["member_id"])) for step in steps)
    return next((row["rebalance_timeout_ms"] for row in told if row and row["rebalance_timeout_ms"]), None)


def _slept(facts: Facts, members: dict[tuple[str, str], Row], step: Row) -> bool:
    """Whether the time for which a departed member had not polled is unknown."""
    member = members.get((step["group"], step["member_id"]))
    limit_ns = (member["rebalance_timeout_ms"] or 0) * MILLISECOND if member is not None else 0
    return facts.context.awake_ns(step["ns"] - limit_ns, step["ns"]) < limit_ns


def _session_ns(members: dict[tuple[str, str], Row], step: Row) -> int:
    """How long a member may be silent; 0 if that is not known."""
    member = members.get((step["group"], step["member_id"]))
    return (member["session_timeout_ms"] or 0) * MILLISECOND if member is not None else 0


def _has_ended(step: Row) -> bool:
    """Whether the connection of a silent member had ended."""
    return (step["detail"] or "").startswith(CONNECTION_ENDED)


def _may_have_left(facts: Facts, step: Row, session_ns: int, lossy: set[str]) -> bool:
    """Whether the missing bytes may contain the request with which a member left.

    :param lossy: clients with missing bytes, as address and port.
    """
    if session_ns:
        return facts.context.gap_bytes > 0 and bool(step["silent_ns"] < session_ns)
    is_missing = step["client"] in lossy or facts.context.may_lack(step["ns"] - step["silent_ns"], step["ns"])
    return _has_ended(step) and is_missing


@rule("session-timeout", CRITICAL, LIKELY, needs=(RebalanceSteps, Members, Connections))
def session_timeout(facts: Facts) -> Iterator[Finding]:
    """A member was removed because it was silent."""
    members = names_of(facts.rows(Members))
    lossy = with_gaps(facts, "client")
    found: dict[FindingSubject, list[Row]] = {}
    for step in facts.rows(RebalanceSteps):
        if step["step"] == "expired" and step["silent_ns"] is not None:
            if _may_have_left(facts, step, _session_ns(members, step), lossy):
                facts.cannot_judge(not_known("a request to leave"))
                continue
            if facts.context.awake_ns(step["ns"] - step["silent_ns"], step["ns"]) < step["silent_ns"]:
                facts.cannot_judge(SLEPT)
                continue
            found.setdefault(_subject(members, step), []).append(step)
    for subject, steps in found.items():
        who = subject.client_id or str(subject.member_id)
        worst = max(steps, key=lambda step: step["silent_ns"])
        row = members.get((worst["group"], worst["member_id"]))
        limit_ms = row["session_timeout_ms"] if row is not None else None
        allowed = ""
        # The coordinator may count from an earlier time, of which the capture shows less.
        if limit_ms and worst["silent_ns"] >= limit_ms * MILLISECOND:
            allowed = f" (it may be silent for {seconds(limit_ms * MILLISECOND)})"
        why = (
            "Its connection had ended: the process died, or was stopped without closing its consumer."
            if _has_ended(worst)
            else "Its connection stayed open: the process was paused, hung, or the network lost its packets."
            if worst["detail"] == CONNECTION_OPEN
            else ""
        )
        times = "" if len(steps) == 1 else f" {len(steps)} times"
        yield facts.finding(
            subject,
            f"{who} was removed from the group{times}: no heartbeat had come from it for "
            f"{seconds(worst['silent_ns'])}{allowed}. {why}".rstrip(),
            count=len(steps),
            measure=worst["silent_ns"] / SECOND,
            unit="s",
            threshold=limit_ms / 1000 if limit_ms else None,
            cost_ns=sum(step["silent_ns"] for step in steps),
            first_ns=steps[0]["ns"],
            last_ns=steps[-1]["ns"],
            exchanges=[step["exchange"] for step in steps if step["exchange"] is not None],
            steps=tuple(each for step in steps for each in _ending(step, who)),
            filter=group_filter(worst["group"]),
        )


def _ending(step: Row, who: str) -> tuple[EvidenceStep, EvidenceStep]:
    """The times of the last sign of a removed member and of its removal."""
    return (
        EvidenceStep(step["ns"] - step["silent_ns"], f"{who} was heard of for the last time"),
        EvidenceStep(step["ns"], f"{who} was removed", step["exchange"]),
    )


@rule("heartbeat-gap", NOTICE, CERTAIN, needs=(Stays, Members), share=0.5, times=3, epoch_session_s=45)
def heartbeat_gap(facts: Facts) -> Iterator[Finding]:
    """Heartbeats come late."""
    for (group, who, client_id), (row, session_ms) in _worst_gaps(facts).items():
        gap_ms = row["heartbeat_max_ns"] / MILLISECOND
        usual_ms = row["heartbeat_p50_ns"] / MILLISECOND
        if gap_ms < facts.limit("share") * session_ms or gap_ms < facts.limit("times") * usual_ms:
            continue
        yield facts.finding(
            FindingSubject(group=group, client_id=client_id),
            f"{who} sent no heartbeat for {seconds(row['heartbeat_max_ns'])}, and the group removes it "
            f"after {seconds(session_ms * MILLISECOND)}. It usually sends one every "
            f"{seconds(row['heartbeat_p50_ns'])}.",
            measure=gap_ms / 1000,
            unit="s",
            threshold=facts.limit("share") * session_ms / 1000,
            first_ns=row["first_ns"],
            last_ns=row["last_ns"],
            filter=group_filter(group),
        )


def _worst_gaps(facts: Facts) -> dict[tuple[str, str, str | None], tuple[Row, float]]:
    """For each member, the stay with the largest gap, and the session timeout."""
    members = names_of(facts.rows(Members))
    found: dict[tuple[str, str, str | None], tuple[Row, float]] = {}
    for row in facts.rows(Stays):
        member = members.get((row["group"], row["member_id"]))
        if row["heartbeat_max_ns"] is None or member is None:
            continue
        classic = "classic" in row["types"]
        session_ms = member["session_timeout_ms"] if classic else facts.limit("epoch_session_s") * 1000
        if not session_ms:
            continue
        if facts.context.slept(row["first_ns"], row["last_ns"]):
            facts.cannot_judge(SLEPT)
            continue
        key = row["group"], member["client_id"] or row["member_id"], member["client_id"]
        if key not in found or row["heartbeat_max_ns"] > found[key][0]["heartbeat_max_ns"]:
            found[key] = row, session_ms
    return found


@rule("heartbeat-interval-too-long", NOTICE, CERTAIN, needs=(Stays, Members), heartbeats=5, share=0.34)
def heartbeat_interval_too_long(facts: Facts) -> Iterator[Finding]:
    """Too few heartbeats fit into a session."""
    members = names_of(facts.rows(Members))
    told: set[tuple[str, str]] = set()
    for row in facts.rows(Stays):
        member = members.get((row["group"], row["member_id"]))
        session_ms = member["session_timeout_ms"] if member is not None else None
        if member is None or not session_ms or row["types"] != ["classic"]:
            continue
        if row["heartbeats"] < facts.limit("heartbeats") or row["heartbeat_p50_ns"] is None:
            continue
        interval_ms = row["heartbeat_p50_ns"] / MILLISECOND
        who = member["client_id"] or row["member_id"]
        if interval_ms <= facts.limit("share") * session_ms or (row["group"], who) in told:
            continue
        told.add((row["group"], who))
        yield facts.finding(
            FindingSubject(group=row["group"], client_id=member["client_id"]),
            f"{who} sends a heartbeat every {seconds(row['heartbeat_p50_ns'])}, and the group removes it "
            f"after {seconds(session_ms * MILLISECOND)}: one or two late heartbeats are enough.",
            measure=interval_ms / 1000,
            unit="s",
            threshold=session_ms / 3000,
            first_ns=row["first_ns"],
            last_ns=row["last_ns"],
            filter=group_filter(row["group"]),
        )


explains("broker-gone", "heartbeat-gap", at_once=True)
explains("broker-stalled", "heartbeat-gap", at_once=True)
explains(
    "poll-interval-exceeded",
    *(
        "rebalance-storm",
        "rebalance-long",
        "rebalance-slow-member",
        "member-id-churn",
        "eager-stop-the-world",
    ),
    "commit-after-rebalance",
    shares=("group",),
)
explains(
    "session-timeout",
    *("rebalance-storm", "rebalance-long", "rebalance-missing-member", "member-id-churn", "heartbeat-gap"),
    *("commit-after-rebalance", "member-epoch-fenced", "eager-stop-the-world"),
    shares=("group",),
)
