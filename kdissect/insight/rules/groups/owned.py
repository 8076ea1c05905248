"""Rules on records that two members of a group read, at the same time or one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.positions import Positions
from kdissect.analysis.rebalances import Rebalances
from kdissect.analysis.rereads import Rereads
from kdissect.analysis.speakers import address
from kdissect.insight.causes import explains
from kdissect.insight.finding import CERTAIN, CRITICAL, LIKELY, NOTICE, Finding, FindingSubject
from kdissect.insight.grouping import group_rows
from kdissect.insight.rule import Facts, rule
from kdissect.insight.rules.groups.words import group_filter, over, quoted, seconds, some, when
from kdissect.wording import plural

for cause in ("stuck-offset", "offset-reset", "offset-rewound"):
    explains(cause, "records-read-twice", shares=("group", "topic"))
_BEFORE = ("commit-after-rebalance", "session-timeout", "poll-interval-exceeded", "rolling-restart")
for cause in ("double-ownership", *_BEFORE):
    explains(cause, "records-read-twice", shares=("group",))
explains("session-timeout", "double-ownership", shares=("group",))

Spell = tuple[int, int]


@rule("double-ownership", CRITICAL, LIKELY, needs=(Positions, Rebalances), seconds=5)
def double_ownership(facts: Facts) -> Iterator[Finding]:
    """Two members of a group read one partition at the same time."""
    reading = [row for row in facts.rows(Positions) if row["group"] and row["topic"] and row["reading"]]
    rebalances = group_rows(facts.rows(Rebalances), "group")
    for (group, topic), rows in group_rows(reading, "group", "topic").items():
        shifts = [(when(row), over(row)) for row in rebalances.get((group,), ())]
        shared = [
            (*longest, one, other)
            for same in group_rows(rows, "partition").values()
            for (one, spells), (other, others) in _at_once(list(_read(same)))
            if _member(one) != _member(other)
            and (longest := _both(spells, others, shifts)) is not None
            and longest[1] - longest[0] >= facts.limit("seconds") * SECOND
        ]
        if not shared:
            continue
        first_ns, last_ns, one, other = max(shared, key=lambda each: each[1] - each[0])
        partitions = sorted({each[2]["partition"] for each in shared})
        yield facts.finding(
            FindingSubject(group=group, topic=topic),
            f"{some((one['client_id'], other['client_id']))} both got records of "
            f"{topic}-{one['partition']} for {seconds(last_ns - first_ns)}, with no rebalance in between: "
            f"both process the same records ({plural(len(partitions), 'partition')}).",
            count=len(partitions),
            measure=(last_ns - first_ns) / SECOND,
            unit="s",
            threshold=facts.limit("seconds"),
            first_ns=min(each[0] for each in shared),
            last_ns=max(each[1] for each in shared),
            connections=[row["connection"] for each in shared for row in each[2:]],
            filter=f"api == Fetch and topic == {quoted(topic)} and client_id in "
            f"{{{', '.join(sorted({quoted(row['client_id']) for row in (one, other)}))}}}",
        )


def _member(row: Row) -> tuple[str, str]:
    return row["client_id"], address(row["client"])


def _both(one: list[Spell], other: list[Spell], shifts: list[Spell]) -> Spell | None:
    """The longest time in which both members got records and the group did not rebalance."""
    best: Spell | None = None
    for mine_first, mine_last in one:
        for first, last in other:
            start, end = max(mine_first, first), min(mine_last, last)
            for piece in _without(start, end, shifts):
                if piece[1] > piece[0] and (best is None or piece[1] - piece[0] > best[1] - best[0]):
                    best = piece
    return best


_Read = tuple[Row, list[Spell], int, int]
"""A row with the times in which it got records, and the first and the last of these times."""


def _at_once(readers: list[_Read]) -> Iterator[tuple[tuple[Row, list[Spell]], tuple[Row, list[Spell]]]]:
    """The pairs of readers whose times overlap, in the order of the readers. Most readers of a long capture
    follow one another, so that not all pairs are compared."""
    found: list[tuple[int, int]] = []
    now: list[int] = []
    for at in sorted(range(len(readers)), key=lambda each: readers[each][2]):
        _, _, start, end = readers[at]
        now = [each for each in now if readers[each][3] > start]
        found += ((min(at, each), max(at, each)) for each in now if readers[each][2] < end)
        now.append(at)
    for one, other in sorted(found):
        yield readers[one][:2], readers[other][:2]


def _read(rows: list[Row]) -> Iterator[_Read]:
    """The rows with their times."""
    for row in rows:
        times = row["reading"]
        yield row, list(zip(times[::2], times[1::2], strict=True)), min(times), max(times)


def _without(start: int, end: int, shifts: list[Spell]) -> Iterator[Spell]:
    """The parts of a time that lie outside of rebalances."""
    for begun, done in sorted(shifts):
        if done < start or begun > end:
            continue
        yield start, min(begun, end)
        start = max(start, done)
    if start < end:
        yield start, end


@rule("records-read-twice", NOTICE, CERTAIN, needs=(Rereads,), records=100)
def records_read_twice(facts: Facts) -> Iterator[Finding]:
    """A group fetched records that it had fetched before."""
    for (group, topic), rows in group_rows(facts.rows(Rereads), "group", "topic").items():
        again, whole = sum(row["again"] for row in rows), sum(row["records"] for row in rows)
        if again < facts.limit("records") or topic is None:
            continue
        clients = dict.fromkeys(client for row in rows for client in row["clients"] if client)
        yield facts.finding(
            FindingSubject(group=group, topic=topic),
            f"The group fetched {whole:,} different records of {topic}, and {again:,} times a record that "
            f"it had fetched before. The clients are {some(clients) or 'its members'}, the records are in "
            f"{plural(len(rows), 'partition')}. The group may process these records again.",
            count=len(rows),
            measure=again,
            unit="records",
            threshold=facts.limit("records"),
            first_ns=min(row["first_ns"] for row in rows),
            last_ns=max(row["last_ns"] for row in rows),
            filter=f"{group_filter(group)} or (api == Fetch and topic == {quoted(topic)})",
        )
