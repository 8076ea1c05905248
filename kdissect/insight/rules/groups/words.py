"""Words for findings on groups, and searches that several rules share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kdissect.analysis.fold import SECOND, Row
from kdissect.insight.finding import EvidenceStep

EAGER = ("range", "roundrobin", "sticky")
"""Assignors that make every member give up all its partitions in every rebalance (KIP-429)."""

POLL_TIMEOUT = "poll timeout has expired"
"""Words in the reason of a LeaveGroup (KIP-800)."""


def seconds(ns: float) -> str:
    """``9.54 s``, ``120 ms``."""
    if ns < SECOND:
        return f"{ns / 1e6:.0f} ms"
    return f"{ns / SECOND:.2f} s" if ns < 100 * SECOND else f"{ns / SECOND:.0f} s"


def some(names: Iterable[Any], most: int = 3) -> str:
    """``a``, ``a and b``, ``a, b, c and 4 more``."""
    found = [str(each) for each in dict.fromkeys(names)]
    if len(found) > most:
        return f"{', '.join(found[:most])} and {len(found) - most} more"
    return " and ".join(found) if len(found) < 3 else f"{', '.join(found[:-1])} and {found[-1]}"


def quoted(text: str) -> str:
    """A text in the quoted form of a display filter."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def group_filter(group: str) -> str:
    """The filter that shows the exchanges of a group."""
    return f"group == {quoted(group)}"


def when(row: Row) -> int:
    """The first known time of a rebalance."""
    names = ("begin_ns", "notified_ns", "last_join_ns", "assigned_ns", "joined_ns", "synced_ns")
    return next((int(row[name]) for name in names if row[name] is not None), 0)


def over(row: Row) -> int:
    """When a rebalance was over, or its last known time."""
    known = [row[name] for name in ("synced_ns", "joined_ns", "last_join_ns") if row[name] is not None]
    begun = when(row)
    until = begun + (row["stopped_ns"] or 0)
    return max((until, *known)) if row["completed"] is not True else max(known, default=until)


def by_group(rows: Iterable[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Rows by their group."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["group"], []).append(row)
    yield from found.items()


def names_of(members: Iterable[Row]) -> dict[tuple[str, str], Row]:
    """Members by group and member id."""
    return {(row["group"], row["member_id"]): row for row in members}


def disjoint(members: Iterable[Row]) -> list[tuple[Row, Row]]:
    """Pairs of members of a classic group that were in it together and read different topics."""
    asking = [
        row
        for row in members
        if row["subscribed"] and row["types"] == ["classic"] and row["first_generation"]
    ]
    return [
        (one, other)
        for at, one in enumerate(asking)
        for other in asking[at + 1 :]
        if not set(one["subscribed"]) & set(other["subscribed"])
        and min(one["last_ns"], other["last_ns"]) > max(one["first_ns"], other["first_ns"])
        and one["client_id"] != other["client_id"]
    ]


def name_of(members: dict[tuple[str, str], Row], group: str, member: str) -> str:
    """The name of a member for people: its client id, else its member id."""
    row = members.get((group, member))
    return (row["client_id"] if row is not None else None) or member


TRIGGERS = {
    "new-member": "a member joined",
    "member-left": "a member left",
    "poll-interval": "a member did not ask for records in time and left",
    "session-timeout": "a member sent nothing any more",
    "static-restart": "a static member came back with another subscription or other assignors",
    "subscription-changed": "a member subscribed to other topics",
    "metadata-changed": "the topics changed",
    "config-changed": "connectors or their tasks changed",
    "leader-rejoined": "the leader joined again",
    "followup-revoke": "partitions were handed over in a second step",
    "probing": "Streams moved tasks that had caught up",
    "enforced": "a member asked for it",
    "coordinator-moved": "the coordinator moved",
    "unknown": "a member joined again",
}
"""Words for the triggers of a rebalance."""


def generations_of(rows: Iterable[Row]) -> str:
    """The generations of these rebalances, such as ``generations 3 to 5 and 8``; empty if one of them has no
    number."""
    numbers = [row["generation"] for row in rows]
    if not numbers or None in numbers:
        return ""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    told = [each for run in runs for each in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
    return f"generation{'' if len(set(numbers)) == 1 else 's'} {some(told)}"


def step_of(row: Row) -> EvidenceStep:
    """The start of a rebalance, as a line of evidence."""
    word = TRIGGERS.get(row["trigger"] or "", "the capture does not show who asked for it")
    who = f": {row['trigger_client_id']}" if row["trigger_client_id"] else ""
    reason = f" ({row['trigger_reason']})" if row["trigger_reason"] else ""
    generation = f"generation {row['generation']}: " if row["generation"] is not None else ""
    return EvidenceStep(when(row), f"{generation}{word}{who}{reason}", row["trigger_exchange"])


def evidence(rows: Iterable[Row]) -> tuple[int, ...]:
    """The exchanges that show rebalances best: the first ones of each."""
    listed = [row["exchanges"] for row in rows]
    most = max((len(each) for each in listed), default=0)
    return tuple(each[at] for at in range(most) for each in listed if at < len(each))
