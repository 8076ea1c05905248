"""Rules on the members of a group."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.groups import Members
from kdissect.insight.causes import explains
from kdissect.insight.finding import CERTAIN, INFO, LIKELY, WARNING, Finding, FindingSubject
from kdissect.insight.rule import Facts, rule
from kdissect.insight.rules.groups.words import by_group, disjoint, group_filter, seconds, some
from kdissect.wording import plural

_SUFFIX = re.compile(r"[-_.#]?[0-9a-f]{8}(?:-[0-9a-f]{4}){0,3}(?:-[0-9a-f]{12})?$|[-_.#]?\d+$")
"""The part by which client ids of one application differ: a number, a UUID."""


@rule("member-id-churn", WARNING, LIKELY, needs=(Members,), members=5, within_s=600, life_s=300)
def member_id_churn(facts: Facts) -> Iterator[Finding]:
    """Consumers are restarted or created all the time."""
    for group, rows in by_group(facts.rows(Members)):
        lives: dict[str, list[Row]] = {}
        for row in rows:
            if row["member_id"] and row["client_id"] and not row["instance_id"] and row["first_generation"]:
                lives.setdefault(_SUFFIX.sub("", row["client_id"]) or row["client_id"], []).append(row)
        for stem, found in lives.items():
            found.sort(key=lambda row: row["first_ns"])
            ended = [row for row in found if _has_ended(row, facts) and _lived_s(row) < facts.limit("life_s")]
            ended = _within(ended, facts.limit("within_s"))
            if len(ended) < facts.limit("members"):
                continue
            clients = Counter(row["client_id"] for row in ended)
            first_end_ns = min(row["last_ns"] for row in ended)
            again = sum(row["first_ns"] > first_end_ns for row in ended)
            if again < facts.limit("members") - 1 or max(clients.values()) < 3:
                continue  # a group that was shut down, or restarted once
            left = sum(row["left"] is not None for row in ended)
            lived_s = sorted(_lived_s(row) for row in ended)[len(ended) // 2]
            yield facts.finding(
                FindingSubject(group=group, client_id=next(iter(clients)) if len(clients) == 1 else None),
                f"{len(ended)} members named {stem} joined the group and were gone again, after "
                f"{seconds(lived_s * SECOND)} each (median); {left} of them left explicitly.",
                count=len(ended),
                measure=float(len(ended)),
                unit="members",
                threshold=facts.limit("members"),
                first_ns=ended[0]["first_ns"],
                last_ns=ended[-1]["last_ns"],
                filter=group_filter(group),
            )


def _lived_s(row: Row) -> float:
    return float(row["last_ns"] - row["first_ns"]) / SECOND


def _has_ended(row: Row, facts: Facts) -> bool:
    """Whether a member left, or was silent for longer than its session before the capture ended."""
    if row["left"] is not None:
        return True
    end_ns, session_ms = facts.context.end_ns(row["cluster_id"]), row["session_timeout_ms"]
    return bool(end_ns and session_ms and end_ns - row["last_ns"] > session_ms * 1_000_000)


def _within(rows: list[Row], within_s: float) -> list[Row]:
    """The largest group of rows that began within ``within_s``."""
    best: list[Row] = []
    for at, row in enumerate(rows):
        found = [each for each in rows[at:] if each["first_ns"] - row["first_ns"] <= within_s * SECOND]
        best = max(best, found, key=len)
    return best


@rule("group-mixed-protocols", INFO, CERTAIN, needs=(Members,), within_s=60)
def group_mixed_protocols(facts: Facts) -> Iterator[Finding]:
    """Members of the classic and of the new protocol are in one group."""
    for group, rows in by_group(facts.rows(Members)):
        classic = [row for row in rows if row["types"] == ["classic"] and row["member_id"]]
        newer = [row for row in rows if "consumer" in row["types"] and row["member_id"]]
        near = [
            (one, other)
            for one in classic
            for other in newer
            if max(one["first_ns"], other["first_ns"]) - min(one["last_ns"], other["last_ns"])
            <= facts.limit("within_s") * SECOND
        ]
        if not near:
            continue
        yield facts.finding(
            FindingSubject(group=group),
            f"{plural(len(classic), 'member')} of the group (client "
            f"{some(row['client_id'] for row in classic)}) still {'uses' if len(classic) == 1 else 'use'} "
            f"the classic group protocol, and {len(newer)} (client "
            f"{some(row['client_id'] for row in newer)}) the new one of KIP-848.",
            count=len(classic) + len(newer),
            measure=float(len(classic)),
            unit="members",
            first_ns=min(row["first_ns"] for row in (*classic, *newer)),
            last_ns=max(row["last_ns"] for row in (*classic, *newer)),
            filter=group_filter(group),
        )


@rule("subscriptions-differ", WARNING, LIKELY, needs=(Members,))
def subscriptions_differ(facts: Facts) -> Iterator[Finding]:
    """Members of one group read different topics: two applications have the same group id."""
    for group, rows in by_group(facts.rows(Members)):
        pairs = disjoint(rows)
        if not pairs:
            continue
        one, other = pairs[0]
        yield facts.finding(
            FindingSubject(group=group),
            f"Members of the group read different topics: {one['client_id']} reads "
            f"{some(one['subscribed'])}, "
            f"{other['client_id']} reads {some(other['subscribed'])}. Whenever one "
            "joins or leaves, the other must stop for the rebalance.",
            count=len(pairs),
            measure=float(len({tuple(row["subscribed"]) for pair in pairs for row in pair})),
            unit="subscriptions",
            first_ns=max(one["first_ns"], other["first_ns"]),
            last_ns=min(one["last_ns"], other["last_ns"]),
            filter=group_filter(group),
        )


explains(
    "subscriptions-differ",
    *("rebalance-storm", "member-id-churn", "eager-stop-the-world", "assignment-skew", "idle-members"),
    shares=("group",),
)
explains("member-id-churn", "rebalance-storm", "eager-stop-the-world", shares=("group",))
explains("member-id-churn", "connection-churn", "metadata-storm", same=("client_id",), at_once=True)
