"""Rules on the partitions that members get and give back."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.analysis.fold import MILLISECOND, SECOND, Row
from kdissect.analysis.groups import Members, Stays
from kdissect.analysis.rebalances import Rebalances, RebalanceSteps
from kdissect.insight.causes import explains
from kdissect.insight.finding import CERTAIN, INFO, NOTICE, WARNING, EvidenceStep, Finding, FindingSubject
from kdissect.insight.rule import Facts, rule
from kdissect.insight.rules.groups.words import group_filter, name_of, names_of, seconds, some, when
from kdissect.wording import plural

NO_CONSUMERS = ("stream", "connect", "compatible", "sessioned", "default", "v0")
"""Protocols whose work is not counted by partitions."""


def _held(facts: Facts, least_s: float) -> Iterator[tuple[str, list[Row], int, int]]:
    """The members of each generation that lasted for at least ``least_s`` and of which all are known, with
    the times from and to which they held their partitions."""
    rebalances = {(row["group"], row["generation"]): row for row in facts.rows(Rebalances)}
    begun: dict[str, list[tuple[int | None, int]]] = {}
    for row in facts.rows(Rebalances):
        begun.setdefault(row["group"], []).append((row["generation"], when(row)))
    last = {(row["group"], row["member_id"]): row["last_ns"] for row in facts.rows(Members)}
    generations: dict[tuple[str, int], list[Row]] = {}
    for row in facts.rows(Stays):
        if row["generation"] is not None and row["assigned"] is not None:
            generations.setdefault((row["group"], row["generation"]), []).append(row)
    for (group, generation), rows in generations.items():
        found = rebalances.get((group, generation))
        if _is_shared(rows) or (found is not None and found["members"] not in (None, len(rows))):
            continue  # the partitions of some members are not known
        from_ns = max(int(row["first_ns"]) for row in rows)
        heard_ns = max(int(last.get((group, row["member_id"])) or row["last_ns"]) for row in rows)
        later = [
            ns
            for number, ns in begun.get(group, ())
            if ns > from_ns or (number is not None and number > generation)
        ]
        to_ns = min(heard_ns, *later) if later else heard_ns
        if to_ns - from_ns >= least_s * SECOND:
            yield group, rows, from_ns, to_ns


def _is_shared(rows: list[Row]) -> bool:
    return any("share" in row["types"] or row["protocol"] in NO_CONSUMERS for row in rows)


@rule("idle-members", INFO, CERTAIN, needs=(Stays, Rebalances, Members), idle_s=10)
def idle_members(facts: Facts) -> Iterator[Finding]:
    """A group has more members than partitions."""
    members = names_of(facts.rows(Members))
    told: dict[str, Finding] = {}
    for group, rows, from_ns, to_ns in _held(facts, facts.limit("idle_s")):
        idle = [row for row in rows if row["assigned"] == 0]
        partitions = sum(row["assigned"] for row in rows)
        if not idle or not 0 < partitions < len(rows):
            continue
        who = some(name_of(members, group, row["member_id"]) for row in idle)
        told[group] = facts.finding(
            FindingSubject(group=group),
            f"{plural(len(idle), 'member')} of {len(rows)} had nothing to do ({who}): the group reads "
            f"{plural(partitions, 'partition')}, and only one member reads each.",
            count=len(idle),
            measure=float(len(idle)),
            unit="members",
            threshold=1.0,
            first_ns=from_ns,
            last_ns=to_ns,
            filter=group_filter(group),
        )
    yield from told.values()


@rule(
    "assignment-skew", NOTICE, CERTAIN, needs=(Stays, Rebalances, Members), difference=2, times=2, held_s=10
)
def assignment_skew(facts: Facts) -> Iterator[Finding]:
    """Partitions are spread unevenly over members that read the same topics."""
    members = names_of(facts.rows(Members))
    told: dict[str, Finding] = {}
    for group, rows, from_ns, to_ns in _held(facts, facts.limit("held_s")):
        wishes = {
            tuple(members[group, row["member_id"]]["subscribed"]) for row in rows if _named(members, row)
        }
        counts = sorted(row["assigned"] for row in rows)
        if len(rows) < 2 or len(wishes) != 1 or not next(iter(wishes)):
            continue
        least, most = counts[0], counts[-1]
        if most - least < facts.limit("difference") or (most > 10 and most < facts.limit("times") * least):
            continue
        given = some(
            (
                f"{name_of(members, group, row['member_id'])} {row['assigned']}"
                for row in sorted(rows, key=lambda row: -row["assigned"])
            ),
            5,
        )
        told[group] = facts.finding(
            FindingSubject(group=group),
            f"The same work is spread unevenly: one member has {most} partitions, another {least} ({given}).",
            count=len(rows),
            measure=float(most - least),
            unit="partitions",
            threshold=facts.limit("difference"),
            first_ns=from_ns,
            last_ns=to_ns,
            filter=group_filter(group),
        )
    yield from told.values()


def _named(members: dict[tuple[str, str], Row], row: Row) -> bool:
    return (row["group"], row["member_id"]) in members


@rule("reconcile-slow", WARNING, CERTAIN, needs=(RebalanceSteps, Members), held_s=10, share=0.5)
def reconcile_slow(facts: Facts) -> Iterator[Finding]:
    """A member was asked to give partitions back, and does not do it."""
    if facts.context.gap_bytes:
        facts.cannot_judge("bytes are missing in the capture, what a member gave back perhaps among them")
        return
    members = names_of(facts.rows(Members))
    asked: dict[tuple[str, str], Row] = {}
    late: dict[tuple[str, str], list[tuple[int, Row, int | None]]] = {}

    def check(key: tuple[str, str], since: Row, until_ns: int, exchange: int | None) -> None:
        row = members.get(key)
        timeout_ms = (row["rebalance_timeout_ms"] if row is not None else None) or 0
        held_ns = until_ns - since["ns"]
        least_ns = facts.limit("held_s") * SECOND
        share_ns = facts.limit("share") * timeout_ms * MILLISECOND
        if held_ns >= least_ns or (share_ns and held_ns >= share_ns):
            late.setdefault(key, []).append((held_ns, since, exchange))

    for step in facts.rows(RebalanceSteps):
        key = step["group"], step["member_id"]
        if step["step"] == "assigned" and step["revoking"]:
            asked.setdefault(key, step)
        elif step["step"] in ("revoked", "left", "expired") and key in asked:
            check(key, asked.pop(key), step["ns"], step["exchange"])
    for key, step in asked.items():
        row = members.get(key)
        if row is not None and row["last_ns"] is not None:
            check(key, step, row["last_ns"], None)
    for (group, member), found in late.items():
        held_ns, worst, _ = max(found, key=lambda each: each[0])
        who = name_of(members, group, member)
        yield facts.finding(
            FindingSubject(group=group, client_id=worst["client_id"], member_id=member),
            f"{who} was asked to give {plural(worst['revoking'], 'partition')} back and kept them for "
            f"{seconds(held_ns)}. Nobody else may read them in that time.",
            count=len(found),
            measure=held_ns / SECOND,
            unit="s",
            threshold=facts.limit("held_s"),
            cost_ns=sum(each for each, _, _ in found),
            first_ns=found[0][1]["ns"],
            last_ns=found[-1][1]["ns"] + found[-1][0],
            exchanges=[step["exchange"] for _, step, _ in found if step["exchange"] is not None],
            steps=tuple(
                EvidenceStep(step["ns"], f"{who} is to give {step['revoking']} back", step["exchange"])
                for _, step, _ in found
            ),
            filter=group_filter(group),
        )


explains("reconcile-slow", "rebalance-long", shares=("group",))
explains("session-timeout", "reconcile-slow", shares=("group", "client_id"))
explains("poll-interval-exceeded", "reconcile-slow", "member-epoch-fenced", shares=("group", "client_id"))
