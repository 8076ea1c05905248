"""Rules on transactions: fenced, timed out or open ones, their cost, and the readers that they hold back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kdissect.analysis.connections import Connections
from kdissect.analysis.errors import Errors
from kdissect.analysis.fold import MILLISECOND, SECOND, Row
from kdissect.analysis.medians import median
from kdissect.analysis.rebalances import RebalanceSteps
from kdissect.analysis.speakers import address
from kdissect.analysis.transactions import Transactions
from kdissect.analysis.versions import Versions
from kdissect.insight.causes import explains
from kdissect.insight.context import SLEPT
from kdissect.insight.finding import (
    CERTAIN,
    CRITICAL,
    INFO,
    LIKELY,
    NOTICE,
    WARNING,
    EvidenceStep,
    Finding,
    FindingSubject,
)
from kdissect.insight.gaps import not_known
from kdissect.insight.grouping import group_rows
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import having, named, of_numbers, share, showing, span
from kdissect.wording import plural

_WAITED = ("CONCURRENT_TRANSACTIONS", "COORDINATOR_LOAD_IN_PROGRESS")
"""Errors after which a client waits and asks again. They end no transaction."""
_FENCING = ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")

explains(
    "transaction-hanging",
    *("lso-lag", "consumer-stalled", "consumer-stopped", "consumer-falling-behind", "partition-lags"),
    shares=("topic", "partition"),
)
explains(
    "lso-lag",
    *("consumer-stalled", "consumer-stopped", "consumer-falling-behind", "partition-lags"),
    shares=("topic", "partition"),
)
explains("producer-fenced", "transactions-aborted", shares=("transactional_id",))
explains("transaction-timed-out", "transactions-aborted", shares=("transactional_id",))
explains("session-timeout", "producer-fenced", same=("group",), within_s=60)


def _subject(row: Row, client_id: bool = True) -> FindingSubject:
    who = row["client"] if client_id else None
    return FindingSubject(
        transactional_id=row["transactional_id"],
        client_id=row["client_id"] if client_id else None,
        client=address(who) if who is not None else None,
        topic=row["held_topic"],
        partition=row["held_partition"],
    )


def _transaction_text(row: Row) -> str:
    """The transaction, in words."""
    if row["transactional_id"] is not None:
        return f"the transaction {row['transactional_id']}"
    if row["producer_id"] is not None:
        return f"a transaction of the producer with id {row['producer_id']}"
    return "a transaction whose producer is not in the capture"


def _held(row: Row) -> str:
    if not row["held_ns"] or row["held_topic"] is None:
        return ""
    return (
        f" Readers of {row['held_topic']}-{row['held_partition']} were held back for at least "
        f"{span(row['held_ns'])}, with up to {plural(row['held_offsets'], 'record')} behind it."
    )


UNSEEN_NS = 5 * SECOND
"""If the end of a transaction may be missing, readers must have been held back for all of the time except
this much."""


def _may_lack_end(facts: Facts, own: list[Row], from_ns: int, end_ns: int) -> bool:
    """Whether the end of a transaction may be among missing bytes.

    If the last packets of a connection are missing, nothing shows that it lacks any. So a connection counts
    as whole only if its own end was captured, or packets of it up to the end of the capture.

    :param own: the connections of the producer.
    """
    return facts.context.gap_bytes > 0 and (
        not own
        or facts.context.may_lack(from_ns, end_ns)
        or any(
            row["gap_bytes"]
            or (row["end"] not in ("fin", "rst") and end_ns - (row["last_ns"] or 0) >= UNSEEN_NS)
            for row in own
        )
    )


@rule("transaction-hanging", CRITICAL, CERTAIN, needs=(Transactions, Connections), held_s=10, late_s=10)
def transaction_hanging(facts: Facts) -> Iterator[Finding]:
    """A transaction is open that should be over."""
    by_client = group_rows(facts.rows(Connections), "client_id")
    for row in facts.rows(Transactions):
        end_ns = facts.context.end_ns(row["cluster_id"])
        if row["outcome"] != "open" or end_ns is None:
            continue
        held_ns, begin_ns = row["held_ns"] or 0, row["begin_ns"]
        from_ns = begin_ns if begin_ns is not None else row["last_ns"] - held_ns
        slept_ns = end_ns - from_ns - facts.context.awake_ns(from_ns, end_ns)
        age_ns = end_ns - begin_ns - slept_ns if begin_ns is not None else None
        held = held_ns - slept_ns >= facts.limit("held_s") * SECOND
        late_ns = None if row["timeout_ms"] is None else row["timeout_ms"] * MILLISECOND
        late = (
            age_ns is not None and late_ns is not None and age_ns >= late_ns + facts.limit("late_s") * SECOND
        )
        if not held and not late:
            if slept_ns:
                facts.cannot_judge(SLEPT)
            continue
        own = by_client.get((row["client_id"],), [])
        if end_ns - from_ns - held_ns >= UNSEEN_NS and _may_lack_end(facts, own, from_ns, end_ns):
            facts.cannot_judge(not_known("the end of a transaction"))
            continue
        measure_ns = age_ns if age_ns is not None else held_ns
        known = "" if late_ns is None else f"; its timeout is {span(late_ns)}"
        opened = f"has been open for {span(measure_ns)}" if age_ns is not None else "is open"
        yield facts.finding(
            _subject(row),
            f"{_upper(_transaction_text(row))} {opened}{known}, and nobody has ended it.{_held(row)}",
            confidence=LIKELY if facts.context.gap_bytes else CERTAIN,  # the missing bytes may have the end
            measure=measure_ns / SECOND,
            unit="s",
            threshold=facts.limit("held_s"),
            cost_ns=row["held_ns"],
            first_ns=row["begin_ns"] if row["begin_ns"] is not None else row["last_ns"],
            last_ns=end_ns,
            exchanges=row["exchanges"],
            filter=having(transactional_id=row["transactional_id"]) or of_numbers(row["exchanges"]),
        )


@rule("lso-lag", WARNING, CERTAIN, needs=(Transactions,), held_s=5)
def lso_lag(facts: Facts) -> Iterator[Finding]:
    """A transaction holds readers back, whatever becomes of it. Other findings report transactions that timed
    out, and producers that learn that they were fenced. A dead producer learns nothing."""
    limit_ns = facts.limit("held_s") * SECOND
    learnt = _learnt(facts)
    held = [
        row
        for row in facts.rows(Transactions)
        if (row["held_ns"] or 0) >= limit_ns
        and row["outcome"] != "timed-out"
        and not (row["outcome"] == "fenced" and _incarnation(row) in learnt)
    ]
    found: dict[FindingSubject, list[Row]] = {}
    for row in held:
        found.setdefault(_subject(row), []).append(row)
    ended = {
        "committed": "It was committed in the end.",
        "aborted": "It was aborted in the end.",
        "fenced": "It was aborted when a producer began anew with the same transactional id.",
    }
    for subject, rows in found.items():
        worst = max(rows, key=lambda row: row["held_ns"])
        last_ns = max(row["end_ns"] if row["end_ns"] is not None else row["last_ns"] for row in rows)
        may_last = any(row["end_ns"] is None and row["outcome"] in ("open", "unknown") for row in rows)
        often = f" {len(rows)} transactions did so, the worst of them for that long." if len(rows) > 1 else ""
        yield facts.finding(
            subject,
            "Readers of committed records got nothing new from "
            f"{worst['held_topic']}-{worst['held_partition']} for {span(worst['held_ns'])}, while up to "
            f"{plural(worst['held_offsets'], 'record')} waited there: {_transaction_text(worst)} was open. "
            f"{ended.get(worst['outcome'], '')}{often}".rstrip(),
            count=len(rows),
            measure=worst["held_ns"] / SECOND,
            unit="s",
            threshold=facts.limit("held_s"),
            cost_ns=sum(row["held_ns"] for row in rows),
            first_ns=min(row["begin_ns"] if row["begin_ns"] is not None else row["last_ns"] for row in rows),
            last_ns=last_ns,
            resolved_ns=None if may_last else last_ns,
            exchanges=[number for row in rows for number in row["exchanges"]],
            filter=having(transactional_id=worst["transactional_id"]) or having(topic=worst["held_topic"]),
        )


@rule("transaction-timed-out", WARNING, CERTAIN, needs=(Transactions,))
def transaction_timed_out(facts: Facts) -> Iterator[Finding]:
    """The coordinator ended a transaction because it took too long."""

    def is_known(row: Row) -> bool:  # if nothing was captured for a while, another producer may have ended it
        begin, last = row["begin_ns"], row["last_ns"]
        return begin is None or facts.context.awake_ns(begin, last) == last - begin

    for subject, rows in _by_id(facts, lambda row: row["outcome"] == "timed-out" and is_known(row)).items():
        row = rows[0]
        limit = "its timeout" if row["timeout_ms"] is None else f"{span(row['timeout_ms'] * MILLISECOND)}"
        learnt = [each for row in rows for each in row["errors"] if each in _REFUSED]
        until = row["last_ns"] - row["begin_ns"] if row["begin_ns"] is not None else None
        went_on = f" Its next request came {span(until)} after the beginning" if until and learnt else ""
        refused = f" and was refused ({named(learnt)})." if went_on else ""
        # Of a producer that died, nothing shows the end.
        known = (until if went_on else None), row["timeout_ms"] and row["timeout_ms"] * MILLISECOND
        open_ns = max((each for each in known if each), default=None)
        yield facts.finding(
            subject,
            f"{plural(len(rows), 'transaction was', 'transactions were')} open for longer than {limit}, so "
            f"the broker aborted {'it' if len(rows) == 1 else 'them'}: readers never see what was written "
            f"there.{went_on}{refused}{_taken(rows)}",
            count=len(rows),
            measure=None if open_ns is None else open_ns / SECOND,
            unit="s",
            threshold=None if row["timeout_ms"] is None else row["timeout_ms"] / 1000,
            first_ns=row["begin_ns"],
            last_ns=rows[-1]["last_ns"],
            exchanges=_numbers(rows),
            filter=having(transactional_id=subject.transactional_id),
        )


def _taken(rows: list[Row]) -> str:
    """Who took the transactional id, if another client did."""
    takers = {_taker(row) for row in rows if row["taken_by_client"] is not None}
    return f" Then {named(sorted(takers))} took the transactional id." if takers else ""


def _taker(row: Row) -> str:
    """The client that took a transactional id."""
    return f"{row['taken_by_client_id'] or 'another client'} at {address(row['taken_by_client'])}"


_REFUSED = ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE", "TRANSACTION_TIMED_OUT")


@rule("producer-fenced", CRITICAL, CERTAIN, needs=(Transactions, RebalanceSteps))
def producer_fenced(facts: Facts) -> Iterator[Finding]:
    """Another producer took the transactional id, and the earlier producer learnt it, perhaps only when it
    went on."""
    learnt = _learnt(facts)

    def is_fenced(row: Row) -> bool:
        taken = row["taken_by_client"] is not None and row["outcome"] != "timed-out"
        return taken and _incarnation(row) in learnt

    for subject, rows in _by_id(facts, is_fenced).items():
        row = rows[-1]
        taker = _taker(row)
        lost = sum(each["outcome"] == "fenced" and each["partitions"] != 0 for each in rows)
        loss = (
            f" {plural(lost, 'open transaction was', 'open transactions were')} aborted then." if lost else ""
        )
        steps = (
            [EvidenceStep(row["end_ns"], f"{taker} took the transactional id")]
            if row["end_ns"] is not None
            else []
        )
        refused = learnt[_incarnation(row)]
        number = refused["exchanges"][-1]
        steps.append(EvidenceStep(refused["last_ns"], f"{row['client_id']} was refused", number))
        first_ns = row["end_ns"] if row["end_ns"] is not None else row["last_ns"]
        group = _group_of_task(row)
        was_silent = group is not None and _lost_a_worker(facts, group, first_ns)
        yield facts.finding(
            subject._replace(group=group) if was_silent else subject,
            f"{taker} began to use the transactional id {subject.transactional_id}, which "
            f"{row['client_id']} was using. From then on the broker refuses transactional requests of "
            f"{row['client_id']}.{loss}",
            count=len(rows),
            measure=len(rows),
            first_ns=first_ns,
            last_ns=max(row["last_ns"], refused["last_ns"]),
            steps=tuple(steps),
            exchanges=[*_numbers(rows), number],
            filter=having(transactional_id=subject.transactional_id),
            **(_OLD_TASK if was_silent else {} if group is None else _NEXT_TASK),
        )


_CONNECTOR = "connector-producer-"
_OLD_TASK: dict[str, Any] = {
    "severity": NOTICE,
    "cause": "A worker of Kafka Connect was silent for longer than its session, so another worker got its "
    "task. The task still ran on the old worker. The new one fenced it, so that no record is written twice "
    "(exactly.once.source.support).",
    "fix": "Nothing here: this is what exactly.once.source.support is for. Find out why the old worker was "
    "silent.",
}


_NEXT_TASK: dict[str, Any] = {
    "severity": NOTICE,
    "cause": "A new run of a task of Kafka Connect fenced the run before it, which was still writing. That "
    "is what exactly.once.source.support is for. The capture does not show why the task began anew: a worker "
    "may have been silent for longer than its session, or two clusters of Connect have the same group.id.",
    "fix": "Nothing if it happens once. If it happens again and again, look whether the workers are silent "
    "for long, and give each cluster of Connect a group.id of its own.",
}


def _group_of_task(row: Row) -> str | None:
    """The group of Connect whose task was fenced by its next run; None if it was no task of Connect. Connect
    names client ids by connector and task, and transactional ids by group, connector and task (KIP-618)."""
    client_id = row["client_id"] or ""
    if not client_id.startswith(_CONNECTOR) or row["taken_by_client_id"] != client_id:
        return None
    task = client_id.removeprefix(_CONNECTOR)
    group, dash, rest = row["transactional_id"].rpartition(f"-{task}")
    return group if dash and not rest and group else None


def _lost_a_worker(facts: Facts, group: str, fenced_ns: int) -> bool:
    """Whether a member of the group lost its session before."""
    steps = facts.rows(RebalanceSteps)
    return any(
        step["group"] == group and step["step"] == "expired" and step["ns"] <= fenced_ns for step in steps
    )


def _learnt(facts: Facts) -> dict[tuple[Any, ...], Row]:
    """Where producers were told that another producer took their transactional id, by producer."""
    return {
        _incarnation(row): row
        for row in facts.rows(Transactions)
        if any(each in _FENCING for each in row["errors"])
    }


def _incarnation(row: Row) -> tuple[Any, ...]:
    """A producer with its id and epoch. Another producer that takes the transactional id gets another
    epoch."""
    names = ("transactional_id", "client_id", "producer_id", "producer_epoch")
    return tuple(row[name] for name in names)


@rule("concurrent-transactions", NOTICE, CERTAIN, needs=(Transactions,), retry_ms=100, retries=20)
def concurrent_transactions(facts: Facts) -> Iterator[Finding]:
    """Producers wait until their previous transaction is complete everywhere."""
    for subject, rows in _by_id(facts, lambda row: "CONCURRENT_TRANSACTIONS" in row["errors"]).items():
        cost_ns, retries = sum(row["retry_ns"] for row in rows), sum(row["retries"] for row in rows)
        if cost_ns < facts.limit("retry_ms") * MILLISECOND and retries < facts.limit("retries"):
            continue
        yield facts.finding(
            subject,
            f"{plural(len(rows), 'transaction')} had to wait until the previous one of the same producer was "
            f"finished: requests were refused {plural(retries, 'time')} and tried again. That cost "
            f"{span(cost_ns)} in all.",
            count=retries,
            measure=cost_ns / MILLISECOND,
            unit="ms",
            threshold=facts.limit("retry_ms"),
            cost_ns=cost_ns,
            first_ns=rows[0]["begin_ns"],
            last_ns=rows[-1]["last_ns"],
            exchanges=_numbers(rows),
            filter=showing(
                _numbers(rows),
                having(transactional_id=subject.transactional_id, error="CONCURRENT_TRANSACTIONS"),
            ),
        )


@rule("transactions-tiny", NOTICE, CERTAIN, needs=(Transactions,), transactions=100, records=10)
def transactions_tiny(facts: Facts) -> Iterator[Finding]:
    """Many transactions of few records."""
    for subject, rows in _by_id(facts, lambda row: row["records"] is not None).items():
        middle = median(row["records"] for row in rows)
        if len(rows) < facts.limit("transactions") or middle > facts.limit("records"):
            continue
        yield facts.finding(
            subject,
            f"{plural(len(rows), 'transaction')} held {plural(int(middle), 'record')} each (median): each "
            "transaction costs requests to begin and end it and a marker in every partition, often more "
            "than its records.",
            count=len(rows),
            measure=middle,
            unit="records",
            threshold=facts.limit("records"),
            first_ns=rows[0]["begin_ns"],
            last_ns=rows[-1]["last_ns"],
            exchanges=_numbers(rows),
            filter=having(transactional_id=subject.transactional_id),
        )


@rule(
    "transactions-aborted",
    WARNING,
    CERTAIN,
    needs=(Transactions,),
    transactions=20,
    share_pct=10,
    without_any=3,
)
def transactions_aborted(facts: Facts) -> Iterator[Finding]:
    """Many transactions are aborted."""
    ended = ("committed", "aborted", "fenced", "timed-out")
    for subject, rows in _by_id(facts, lambda row: row["outcome"] in ended).items():
        lost = [row for row in rows if row["outcome"] != "committed"]
        often = len(rows) >= facts.limit("transactions") and (
            100 * len(lost) >= facts.limit("share_pct") * len(rows)
        )
        if not often and not (len(lost) == len(rows) >= facts.limit("without_any")):
            continue
        ways = {"aborted": "aborted by the producer", "fenced": "taken over", "timed-out": "timed out"}
        told = [f"{sum(row['outcome'] == way for row in lost)} {text}" for way, text in ways.items()]
        told = [each for each in told if not each.startswith("0 ")]
        codes = sorted({code for row in lost for code in row["errors"]} - set(_WAITED))
        after = f", after {named(codes)}" if codes else ""
        yield facts.finding(
            subject,
            f"{len(lost)} of {plural(len(rows), 'transaction')} ({share(len(lost), len(rows))}) were not "
            f"committed ({named(told)}{after}): readers of committed records never see what they held.",
            count=len(lost),
            measure=100 * len(lost) / len(rows),
            unit="%",
            threshold=facts.limit("share_pct"),
            first_ns=lost[0]["begin_ns"],
            last_ns=lost[-1]["last_ns"],
            exchanges=_numbers(lost),
            filter=having(transactional_id=subject.transactional_id),
        )


@rule("transaction-refused", WARNING, CERTAIN, needs=(Errors,))
def transaction_refused(facts: Facts) -> Iterator[Finding]:
    """A transactional producer cannot begin."""
    for row in facts.rows(Errors):
        if row["api"] != "InitProducerId" or row["transactional_id"] is None or row["error_class"] != "fatal":
            continue
        if row["error"] in _FENCING or row["error"].endswith("_AUTHORIZATION_FAILED"):
            continue
        yield facts.finding(
            FindingSubject(
                transactional_id=row["transactional_id"], client_id=row["client_id"], client=row["client"]
            ),
            f"The broker refuses to let {row['client_id'] or 'the client'} begin transactions as "
            f"{row['transactional_id']}: {_REASONS.get(row['error'], row['error'])} "
            f"({plural(row['count'], 'time')}).",
            count=row["count"],
            measure=row["count"],
            first_ns=row["first_ns"],
            last_ns=row["last_ns"],
            exchanges=(row["first_exchange"], row["last_exchange"]),
            filter=having(transactional_id=row["transactional_id"], error=row["error"]),
        )


_REASONS = {
    "INVALID_TRANSACTION_TIMEOUT": "the timeout it asks for is longer than the broker allows, or 0 "
    "(INVALID_TRANSACTION_TIMEOUT)",
    "INVALID_REQUEST": "the transactional id is empty (INVALID_REQUEST)",
}


@rule(
    "offsets-outside-transaction", CRITICAL, LIKELY, needs=(Transactions, Versions), commits=5, transactions=5
)
def offsets_outside_transaction(facts: Facts) -> Iterator[Finding]:
    """Records are written in transactions, and the offsets of their input are committed outside of them."""
    rows_by_id = _by_id(facts, lambda row: row["client"] is not None and bool(row["client_id"]))
    if not rows_by_id:
        return
    spoken: dict[tuple[str, str], dict[str, int]] = {}
    for row in facts.rows(Versions):
        if row["client_id"] and row["api"] is not None:
            counts = spoken.setdefault((row["client"], row["client_id"]), {})
            counts[row["api"]] = counts.get(row["api"], 0) + row["count"]
    for subject, rows in rows_by_id.items():
        done = [row for row in rows if row["outcome"] == "committed" and (row["records"] or 0) > 0]
        if len(done) < facts.limit("transactions") or any(row["groups"] for row in rows):
            continue
        readers = {
            client_id: counts["OffsetCommit"]
            for (client, client_id), counts in spoken.items()
            if client == subject.client
            and _are_one(client_id, str(subject.client_id))
            and counts.get("Fetch", 0)
            and counts.get("OffsetCommit", 0) >= facts.limit("commits")
        }
        if not readers:
            continue
        yield facts.finding(
            subject,
            f"{subject.client_id} writes in transactions ({len(done)} committed), and {named(readers)} on "
            "the same host commits its offsets outside of these transactions "
            f"({plural(sum(readers.values()), 'time')}). After a crash between the two, records are "
            "written twice or never.",
            count=sum(readers.values()),
            measure=sum(readers.values()),
            first_ns=done[0]["begin_ns"],
            last_ns=done[-1]["last_ns"],
            exchanges=_numbers(done),
            filter=showing(_numbers(done), having(client_id=next(iter(readers)), api="OffsetCommit")),
        )


def _are_one(one: str, other: str) -> bool:
    """Whether two client ids belong to one program: they are equal, or one of them is the other followed by
    ``-``, ``_`` or ``.`` and more."""
    short, long = sorted((one, other), key=len)
    return one == other or (len(short) >= 3 and long.startswith(short) and long[len(short)] in "-_.")


@rule("transaction-by-v1", INFO, CERTAIN, needs=(Transactions, Versions))
def transaction_by_v1(facts: Facts) -> Iterator[Finding]:
    """The brokers support version 2 of transactions; the client does not use it."""
    able = {
        row["client_id"]
        for row in facts.rows(Versions)
        if row["api"] == "EndTxn" and (row["offered_max"] or 0) >= 5 > row["api_version"]
    }
    for subject, rows in _by_id(
        facts, lambda row: row["version"] == "TV1" and row["client_id"] in able
    ).items():
        yield facts.finding(
            subject,
            f"{subject.client_id} uses the first version of the transaction protocol "
            f"({plural(len(rows), 'transaction')}), though the brokers offer the second.",
            count=len(rows),
            measure=len(rows),
            first_ns=rows[0]["begin_ns"],
            last_ns=rows[-1]["last_ns"],
            exchanges=_numbers(rows),
            filter=having(transactional_id=subject.transactional_id),
        )


def _by_id(facts: Facts, fits: Callable[[Row], bool]) -> dict[FindingSubject, list[Row]]:
    """The transactions that fit, by transactional id and client, in the order of time."""
    found: dict[FindingSubject, list[Row]] = {}
    for row in facts.rows(Transactions):
        if row["transactional_id"] is not None and fits(row):
            found.setdefault(_subject(row)._replace(topic=None, partition=None), []).append(row)
    return found


def _numbers(rows: list[Row]) -> list[int]:
    """Numbers of the exchanges that show these transactions: of the first ones and of the last."""
    chosen = [*rows[:2], *rows[-2:]] if len(rows) > 4 else rows
    return sorted({number for row in chosen for number in (row["exchanges"][:1] + row["exchanges"][-1:])})


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
