"""Rules on quotas: clients that a quota slows, and clients that ignore it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

from kdissect.analysis.fold import MILLISECOND, SECOND, Row
from kdissect.analysis.pace import Pace
from kdissect.insight.finding import CERTAIN, WARNING, Finding, FindingSubject
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import quoted, span
from kdissect.wording import plural

_MUTATIONS = {"CreateTopics", "DeleteTopics", "CreatePartitions"}
_BYTES = {"Produce": "writing (producer_byte_rate)", "Fetch": "reading (consumer_byte_rate)"}
MOST_OF_TIME_NS = SECOND
"""The longest wait that a request quota sets: one window (``quota.window.size.seconds``, 1 s). Quotas of
bytes have no such limit, and hardly ever set exactly this wait."""


def _by_client(rows: list[Row], name: str) -> dict[tuple[str | None, str | None], list[Row]]:
    out: dict[tuple[str | None, str | None], list[Row]] = defaultdict(list)
    for row in rows:
        if row[f"{name}_count"]:
            client_id = row["client_id"]
            out[client_id, None if client_id else row["client"]].append(row)
    return out


@rule("throttled", WARNING, CERTAIN, needs=(Pace,), times=5, in_all_s=1)
def throttled(facts: Facts) -> Iterator[Finding]:
    """A quota slows a client."""
    for (client_id, host), rows in _by_client(facts.rows(Pace), "throttled").items():
        count, whole = (
            sum(row["throttled_count"] for row in rows),
            sum(row["throttled_sum_ns"] for row in rows),
        )
        if count < facts.limit("times") and whole < facts.limit("in_all_s") * SECOND:
            continue
        rows = sorted(rows, key=lambda row: -row["throttled_sum_ns"])
        worst = rows[0]
        longest_ns = max(row["throttled_max_ns"] for row in rows)
        exchanges = sorted(number for row in rows for number in row["throttled_exchanges"])
        yield facts.finding(
            FindingSubject(client_id=client_id, client=host),
            f"Brokers told the client {plural(count, 'time')} to wait, {span(whole)} in all and up to "
            f"{span(longest_ns)} at once, because it is over its quota"
            f"{_which(worst, {row['api'] for row in rows}, longest_ns)}.",
            count=count,
            measure=round(whole / SECOND, 3),
            unit="s",
            threshold=facts.limit("in_all_s"),
            cost_ns=whole,
            first_ns=min(row["throttled_first_ns"] for row in rows),
            last_ns=max(row["throttled_last_ns"] for row in rows),
            exchanges=exchanges,
            filter=_filter(client_id, dict.fromkeys(row["api"] for row in rows)),
        )


def _which(worst: Row, apis: set[str], longest_ns: int) -> str:
    """The kind of quota, as far as the requests show."""
    quota, rate = worst["quota_bytes_per_s"], worst["throttled_bytes_per_s"]
    mutations = "creating and deleting topics (controller_mutation_rate)"
    if apis <= _MUTATIONS:
        return f" for {mutations}"
    if longest_ns == MOST_OF_TIME_NS or not apis <= {*_BYTES, *_MUTATIONS}:
        is_only = longest_ns == MOST_OF_TIME_NS or apis.isdisjoint(_BYTES)
        return " for the brokers' time (request_percentage)" + ("" if is_only else ", and perhaps for bytes")
    what = " and ".join(_BYTES[api] for api in sorted(apis & _BYTES.keys(), reverse=True))
    if apis & _MUTATIONS:
        what += f" and for {mutations}"
    is_of_bytes = longest_ns >= MOST_OF_TIME_NS
    if not is_of_bytes:
        what += ", or for the brokers' time (request_percentage)"
    if rate is None:
        return f" for {what}"
    if quota is None:
        return f" for {what}; it moves {rate:,.0f} bytes/s"
    told = "its quota is probably about" if is_of_bytes else "a quota of bytes would be about"
    return f" for {what}; it moves {rate:,.0f} bytes/s, and {told} {quota:,.0f} bytes/s"


def _filter(client_id: str | None, apis: Collection[str]) -> str:
    """The filter for the answers that tell the client to wait."""
    paths = " or ".join(f"{api}.response.throttleTimeMs > 0" for api in apis)
    if client_id is None:
        return paths
    return f"client_id == {quoted(client_id)} and {paths if len(apis) == 1 else f'({paths})'}"


@rule("throttle-ignored", WARNING, CERTAIN, needs=(Pace,), times=5)
def throttle_ignored(facts: Facts) -> Iterator[Finding]:
    """A client sends requests although it was told to wait."""
    for (client_id, host), rows in _by_client(facts.rows(Pace), "broken").items():
        count = sum(row["broken_count"] for row in rows)
        if count < facts.limit("times"):
            continue
        exchanges = [number for row in rows for number in row["broken_exchanges"]]
        yield facts.finding(
            FindingSubject(client_id=client_id, client=host),
            f"The client sent {plural(count, 'request')} before half of its throttle time was over; the "
            "broker does not read them until that time is over.",
            count=count,
            measure=float(count),
            unit="requests",
            threshold=facts.limit("times"),
            first_ns=min(row["first_ns"] for row in rows),
            last_ns=max(row["last_ns"] for row in rows),
            exchanges=exchanges,
            filter=f"client_id == {quoted(client_id)} and throttle > {10 * MILLISECOND}"
            if client_id
            else "throttle > 10ms",
        )
