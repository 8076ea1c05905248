"""Rules on share groups (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdissect.analysis.connections import Connections
from kdissect.analysis.fold import MILLISECOND, Row
from kdissect.analysis.share import Share
from kdissect.insight.causes import explains
from kdissect.insight.finding import CERTAIN, CRITICAL, LIKELY, NOTICE, WARNING, Finding, FindingSubject
from kdissect.insight.gaps import not_known, with_gaps
from kdissect.insight.rule import Facts, rule
from kdissect.insight.rules.groups.words import group_filter, seconds, some
from kdissect.wording import plural

DEFAULT_LIMIT = 5
"""The default of ``group.share.delivery.count.limit``."""


def _partitions(facts: Facts) -> Iterator[tuple[FindingSubject, list[Row]]]:
    """The rows of each partition of a group."""
    found: dict[tuple[str, str | None, int], list[Row]] = {}
    for row in facts.rows(Share):
        found.setdefault((row["group"], row["topic"], row["partition"]), []).append(row)
    for (group, topic, partition), rows in found.items():
        yield FindingSubject(group=group, topic=topic, partition=partition), rows


def _spanned(subject: FindingSubject, rows: list[Row]) -> dict[str, Any]:
    return {
        "first_ns": min(row["first_ns"] for row in rows),
        "last_ns": max(row["last_ns"] for row in rows),
        "filter": f"{group_filter(subject.group or '')} and api in {{ShareFetch, ShareAcknowledge}}",
    }


def _total(rows: list[Row], name: str) -> int:
    return sum(int(row[name]) for row in rows)


def _clients(rows: list[Row]) -> str:
    return some(row["client_id"] or row["member_id"] for row in rows)


@rule("share-redelivery", NOTICE, CERTAIN, needs=(Share,), share=0.05, acquired=100)
def share_redelivery(facts: Facts) -> Iterator[Finding]:
    """Records are delivered more than once."""
    for subject, rows in _partitions(facts):
        acquired, again = _total(rows, "acquired"), _total(rows, "redelivered")
        is_many = acquired >= facts.limit("acquired") or _total(rows, "given_up") > 0
        if not is_many or not again or again < facts.limit("share") * acquired:
            continue
        released, expired = _total(rows, "released"), _total(rows, "expired")
        causes = [f"members gave {released:,} back"] if released else []
        causes += [f"{expired:,} were held for too long"] if expired else []
        why = f": {' and '.join(causes)}" if causes else ""
        yield facts.finding(
            subject,
            f"{again:,} of {acquired:,} records that members got had been given to a member before{why}.",
            count=again,
            measure=again / acquired,
            unit="share",
            threshold=facts.limit("share"),
            **_spanned(subject, rows),
        )


@rule("share-lock-expired", WARNING, CERTAIN, needs=(Share,), records=1)
def share_lock_expired(facts: Facts) -> Iterator[Finding]:
    """A member held records for too long."""
    for subject, rows in _partitions(facts):
        late = [row for row in rows if row["expired"]]
        expired = _total(rows, "expired")
        if expired < facts.limit("records"):
            continue
        lock_ms = next((row["lock_ms"] for row in late if row["lock_ms"]), None)
        within = f" within {seconds(lock_ms * MILLISECOND)}" if lock_ms else " in time"
        yield facts.finding(
            subject,
            f"{_clients(late)} did not acknowledge {plural(expired, 'record')}{within}. A member is "
            "given them again, and may process them twice.",
            count=expired,
            measure=float(expired),
            unit="records",
            threshold=facts.limit("records"),
            cost_ns=lock_ms * MILLISECOND if lock_ms else None,
            **_spanned(subject, rows),
        )


@rule("share-poison", CRITICAL, CERTAIN, needs=(Share, Connections), deliveries=3)
def share_poison(facts: Facts) -> Iterator[Finding]:
    """Records reached their delivery limit and are not delivered any more. If bytes of a member are missing,
    only the default limit shows that it is the limit."""
    lossy = with_gaps(facts, "client_id")
    for subject, rows in _partitions(facts):
        failed = [row for row in rows if row["given_up"]]
        deliveries = max((row["max_delivery_count"] or 0 for row in rows), default=0)
        if not failed or deliveries < facts.limit("deliveries"):
            continue
        may_lack = any(row["client_id"] in lossy for row in rows)
        if may_lack and deliveries != DEFAULT_LIMIT:
            facts.cannot_judge(not_known("acknowledgements"))  # a member may have accepted it
            continue
        given_up = _total(rows, "given_up")
        yield facts.finding(
            subject,
            f"{plural(given_up, 'record')} of this share group reached the limit of {deliveries} deliveries, "
            f"and no member accepted {'it' if given_up == 1 else 'them'}. No member gets "
            f"{'it' if given_up == 1 else 'them'} again. {_clients(failed)} had the last delivery.",
            confidence=CERTAIN if deliveries == DEFAULT_LIMIT and not may_lack else LIKELY,
            count=given_up,
            measure=float(deliveries),
            unit="deliveries",
            threshold=facts.limit("deliveries"),
            **_spanned(subject, rows),
        )


@rule("share-rejected", NOTICE, CERTAIN, needs=(Share,), records=10, share=0.01)
def share_rejected(facts: Facts) -> Iterator[Finding]:
    """Members reject records."""
    for subject, rows in _partitions(facts):
        rejected, acquired = _total(rows, "rejected"), _total(rows, "acquired")
        if rejected < facts.limit("records") or rejected < facts.limit("share") * acquired:
            continue
        yield facts.finding(
            subject,
            f"{_clients([row for row in rows if row['rejected']])} refused {plural(rejected, 'record')} of "
            f"{acquired:,} for good: no member gets them again.",
            count=rejected,
            measure=float(rejected),
            unit="records",
            threshold=facts.limit("records"),
            **_spanned(subject, rows),
        )


@rule("share-ack-refused", WARNING, CERTAIN, needs=(Share,), times=3)
def share_ack_refused(facts: Facts) -> Iterator[Finding]:
    """Acknowledgements of members are refused."""
    for subject, rows in _partitions(facts):
        errors = _total(rows, "errors")
        if errors < facts.limit("times"):
            continue
        yield facts.finding(
            subject,
            f"The broker refused {errors} acknowledgements of "
            f"{_clients([row for row in rows if row['errors']])}. It will deliver these records again.",
            count=errors,
            measure=float(errors),
            unit="refusals",
            threshold=facts.limit("times"),
            **_spanned(subject, rows),
        )


explains("share-poison", "share-redelivery", shares=("group", "topic", "partition"))
explains(
    "share-lock-expired", "share-redelivery", "share-ack-refused", shares=("group", "topic", "partition")
)
explains("session-timeout", "share-redelivery", shares=("group",), within_s=60)
