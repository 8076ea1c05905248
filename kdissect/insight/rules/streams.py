"""Rules on Kafka Streams and Kafka Connect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kdissect.analysis.errors import Errors
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.group_marks import ASSIGNOR_ERRORS
from kdissect.analysis.positions import Positions
from kdissect.analysis.rebalances import Rebalances, RebalanceSteps
from kdissect.analysis.speakers import address
from kdissect.insight.causes import explains
from kdissect.insight.finding import CERTAIN, NOTICE, WARNING, EvidenceStep, Finding, FindingSubject
from kdissect.insight.rule import Facts, rule
from kdissect.insight.rules.groups.words import (
    by_group,
    evidence,
    group_filter,
    over,
    quoted,
    seconds,
    some,
    step_of,
    when,
)
from kdissect.insight.words import named
from kdissect.wording import plural

RESTORES = "-restore-consumer"
"""The ending of the names of clients with which Streams reads its changelogs."""


@rule("streams-followup-rebalance", NOTICE, CERTAIN, needs=(Rebalances,), rebalances=3, within_s=3600)
def streams_followup_rebalance(facts: Facts) -> Iterator[Finding]:
    """Streams rebalances to move tasks that have caught up elsewhere."""
    for group, rows in by_group(facts.rows(Rebalances)):
        found = [row for row in rows if row["trigger"] == "probing"]
        span_ns = when(found[-1]) - when(found[0]) if found else 0
        if len(found) < facts.limit("rebalances") or span_ns > facts.limit("within_s") * SECOND:
            continue
        yield facts.finding(
            FindingSubject(group=group),
            f"The application rebalanced {len(found)} times in {seconds(span_ns)} to see whether tasks can "
            "move to "
            "where their state has been rebuilt.",
            count=len(found),
            measure=float(len(found)),
            unit="rebalances",
            threshold=facts.limit("rebalances"),
            cost_ns=sum(row["stopped_ns"] or 0 for row in found),
            first_ns=when(found[0]),
            last_ns=over(found[-1]),
            exchanges=evidence(found),
            steps=tuple(step_of(row) for row in found),
            filter=group_filter(group),
        )


@rule("streams-corrupted", WARNING, CERTAIN, needs=(RebalanceSteps,))
def streams_corrupted(facts: Facts) -> Iterator[Finding]:
    """Tasks of a Streams application were corrupted and start again."""
    for group, rows in by_group(facts.rows(RebalanceSteps)):
        found = [
            row for row in rows if row["step"] == "joined" and "tasks corrupted" in (row["detail"] or "")
        ]
        if not found:
            continue
        yield facts.finding(
            FindingSubject(group=group, client_id=found[0]["client_id"]),
            f"{some(row['client_id'] for row in found)} found the state of tasks corrupted "
            f"{plural(len(found), 'time')}"
            ", throws it away and rebuilds it.",
            count=len(found),
            measure=float(len(found)),
            unit="times",
            first_ns=found[0]["ns"],
            last_ns=found[-1]["ns"],
            exchanges=[row["exchange"] for row in found],
            steps=tuple(EvidenceStep(row["ns"], row["detail"], row["exchange"]) for row in found),
            filter=group_filter(group),
        )


UNKNOWN = ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID")


@rule("streams-status", WARNING, CERTAIN, needs=(RebalanceSteps, Errors), times=2, lasted_s=2)
def streams_status(facts: Facts) -> Iterator[Finding]:
    """The coordinator of a streams group complains about its topics or its topology. In a classic group the
    leader's assignor complains, and the threads that are told stop at once."""
    for group, rows in by_group(facts.rows(RebalanceSteps)):
        yield from _assignor_failed(facts, group, rows)
        complaints: dict[str, list[Row]] = {}
        for row in rows:
            if row["step"] == "status" and row["detail"] not in (*STOPPING, "ASSIGNMENT_DELAYED"):
                complaints.setdefault(row["detail"], []).append(row)
        for detail, found in complaints.items():
            lasted_ns = found[-1]["ns"] - found[0]["ns"]
            if len(found) < facts.limit("times") or lasted_ns < facts.limit("lasted_s") * SECOND:
                continue
            yield facts.finding(
                FindingSubject(group=group),
                f"The coordinator told the application {len(found)} times in {seconds(lasted_ns)} that "
                f"something is wrong with it: {detail}. Until that is fixed it may process nothing.",
                count=len(found),
                measure=lasted_ns / SECOND,
                unit="s",
                threshold=facts.limit("lasted_s"),
                first_ns=found[0]["ns"],
                last_ns=found[-1]["ns"],
                exchanges=[row["exchange"] for row in found],
                steps=tuple(EvidenceStep(row["ns"], row["detail"], row["exchange"]) for row in found[:8]),
                filter=group_filter(group),
            )
            break


STOPPING = tuple(ASSIGNOR_ERRORS.values())


def _assignor_failed(facts: Facts, group: str, rows: list[Row]) -> Iterator[Finding]:
    found = [row for row in rows if row["step"] == "status" and row["detail"] in STOPPING]
    if not found:
        return
    detail, clients = found[0]["detail"], {row["client_id"] for row in found}
    unknown = {
        row["topic"]
        for row in facts.rows(Errors)
        if row["api"] == "Metadata"
        and row["error"] in UNKNOWN
        and row["client_id"] in clients
        and row["topic"]
    }
    lacks = f" The brokers do not know {named(sorted(unknown))}." if unknown else ""
    yield facts.finding(
        FindingSubject(group=group),
        f"The assignor of the application gave {plural(len(clients), 'client')} no tasks: {detail}. "
        f"{'Its' if len(clients) == 1 else 'Their'} threads stop, and process nothing.{lacks}",
        count=len(found),
        measure=float(len(found)),
        unit="times",
        first_ns=found[0]["ns"],
        last_ns=found[-1]["ns"],
        exchanges=[row["exchange"] for row in found],
        steps=tuple(EvidenceStep(row["ns"], row["detail"], row["exchange"]) for row in found[:8]),
        filter=group_filter(group),
    )


@rule("streams-restoring", WARNING, CERTAIN, needs=(Positions,), bytes=10 << 20, lasted_s=30)
def streams_restoring(facts: Facts) -> Iterator[Finding]:
    """A Streams application rebuilds its state from changelog topics."""
    clients: dict[str, list[Row]] = {}
    for row in facts.rows(Positions):
        restores = (row["client_id"] or "").endswith(RESTORES) and (row["topic"] or "").endswith("-changelog")
        if restores and row["records"] and not _follows(row):
            clients.setdefault(row["client_id"], []).append(row)
    for client_id, rows in clients.items():
        read = sum(row["bytes"] for row in rows)
        lasted_ns = _covered_ns((row["first_ns"], row["last_ns"]) for row in rows)
        behind = sum(row["max_lag"] or 0 for row in rows)
        if read < facts.limit("bytes") and (lasted_ns < facts.limit("lasted_s") * SECOND or not behind):
            continue
        if behind < sum(row["records"] for row in rows) // 2:
            continue  # it follows new records: a standby
        yield facts.finding(
            FindingSubject(client_id=client_id),
            f"{client_id} read {read / (1 << 20):.1f} MiB of {plural(len(rows), 'changelog partition')} in "
            f"{seconds(lasted_ns)} to rebuild its state; these tasks process nothing until it is done.",
            count=len(rows),
            measure=read / (1 << 20),
            unit="MiB",
            threshold=facts.limit("bytes") / (1 << 20),
            cost_ns=lasted_ns,
            first_ns=min(row["first_ns"] for row in rows),
            last_ns=max(row["last_ns"] for row in rows),
            connections=[row["connection"] for row in rows],
            filter=f"client_id == {quoted(client_id)} and api == Fetch",
        )


def _follows(row: Row) -> bool:
    """Whether a consumer of a changelog reads records that another one wrote meanwhile, as that of a standby
    does. Nobody writes to the changelog of a task while its state is rebuilt."""
    told = row["position"], row["begun_at"], row["lag_first"]
    return None not in told and told[0] > told[1] + told[2]


def _covered_ns(spans: Iterable[tuple[int, int]]) -> int:
    """The time that lies in at least one of some spans."""
    covered_ns = until_ns = 0
    for first_ns, last_ns in sorted(spans):
        covered_ns += max(0, last_ns - max(first_ns, until_ns))
        until_ns = max(until_ns, last_ns)
    return covered_ns


@rule("connect-delayed-rebalance", NOTICE, CERTAIN, needs=(Rebalances,), delay_s=1)
def connect_delayed_rebalance(facts: Facts) -> Iterator[Finding]:
    """Kafka Connect leaves tasks idle on purpose."""
    for group, rows in by_group(facts.rows(Rebalances)):
        found = [row for row in rows if (row["delay_ns"] or 0) >= facts.limit("delay_s") * SECOND]
        if not found:
            continue
        most_ns = max(row["delay_ns"] for row in found)
        yield facts.finding(
            FindingSubject(group=group),
            f"A worker is gone, and its connectors and tasks do nothing for up to {seconds(most_ns)}. The "
            "group waits for the worker to come back before it gives them to others.",
            count=len(found),
            measure=most_ns / SECOND,
            unit="s",
            threshold=facts.limit("delay_s"),
            cost_ns=most_ns,
            first_ns=when(found[0]),
            last_ns=over(found[-1]),
            exchanges=evidence(found),
            steps=tuple(step_of(row) for row in found),
            filter=group_filter(group),
        )


@rule("connect-zombie", WARNING, CERTAIN, needs=(RebalanceSteps,), tasks=1)
def connect_zombie(facts: Facts) -> Iterator[Finding]:
    """A worker of Kafka Connect came back with tasks that another worker runs."""
    for group, rows in by_group(facts.rows(RebalanceSteps)):
        found = [row for row in rows if (row["overlap"] or 0) >= facts.limit("tasks")]
        if not found:
            continue
        most = max(row["overlap"] for row in found)
        client = found[0]["client"]
        yield facts.finding(
            FindingSubject(
                group=group,
                client_id=found[0]["client_id"],
                client=address(client) if client is not None else None,
            ),
            f"{some(row['client_id'] or row['client'] for row in found)} joined again and still ran "
            f"{plural(most, 'connector or task', 'connectors and tasks')} that another worker had been "
            "given. Where both wrote at once, records were written twice.",
            count=len(found),
            measure=float(most),
            unit="tasks",
            threshold=facts.limit("tasks"),
            first_ns=found[0]["ns"],
            last_ns=found[-1]["ns"],
            exchanges=[row["exchange"] for row in found],
            steps=tuple(
                EvidenceStep(row["ns"], f"joined with {row['overlap']} of another worker", row["exchange"])
                for row in found[:8]
            ),
            filter=group_filter(group),
        )


@rule("connect-config-behind", NOTICE, CERTAIN, needs=(RebalanceSteps,), behind_s=30)
def connect_config_behind(facts: Facts) -> Iterator[Finding]:
    """A worker of Kafka Connect does not read the topic with the configurations."""
    for group, rows in by_group(facts.rows(RebalanceSteps)):
        told = sorted((row for row in rows if row["config_offset"] is not None), key=lambda row: row["ns"])
        behind: dict[tuple[str | None, str], list[tuple[int, Row]]] = {}
        for row in told:
            late = [
                row["ns"] - each["ns"]
                for each in told
                if each["config_offset"] > row["config_offset"] and each["ns"] < row["ns"]
            ]
            if late and max(late) >= facts.limit("behind_s") * SECOND:
                who = row["client_id"], address(row["client"] or "")
                behind.setdefault(who, []).append((max(late), row))
        for (client_id, client), found in behind.items():
            longest, worst = max(found, key=lambda each: each[0])
            newest = max(each["config_offset"] for each in told if each["ns"] <= worst["ns"])
            yield facts.finding(
                FindingSubject(group=group, client_id=client_id, client=client or None),
                f"A worker had read the config topic only up to offset {worst['config_offset']:,} when it "
                f"joined. Another worker had reported a later offset {seconds(longest)} before ({newest:,} "
                "by then). The worker runs an old configuration, or nothing.",
                count=len(found),
                measure=longest / SECOND,
                unit="s",
                threshold=facts.limit("behind_s"),
                first_ns=found[0][1]["ns"],
                last_ns=found[-1][1]["ns"],
                exchanges=[row["exchange"] for _, row in found],
                steps=tuple(
                    EvidenceStep(row["ns"], f"joined with offset {row['config_offset']:,}", row["exchange"])
                    for _, row in found[:8]
                ),
                filter=group_filter(group),
            )


explains("session-timeout", "connect-delayed-rebalance", shares=("group",))
explains("session-timeout", "connect-zombie", shares=("group", "client_id"))
explains("session-timeout", "streams-corrupted", shares=("group",), same=("client_id",), within_s=600)
explains("streams-corrupted", "rebalance-storm", shares=("group",))
explains("streams-status", "rebalance-storm", "member-id-churn", shares=("group",), at_once=True)
