"""Requests whose connection ended while they waited."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from kdissect.analysis.connections import Connections
from kdissect.analysis.exposure import Exposure
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.medians import median
from kdissect.analysis.speakers import address
from kdissect.analysis.tcp import Tcp
from kdissect.insight.causes import may_explain
from kdissect.insight.expired_logins import LOGIN_NS, client_and_user, closed_when_login_expired
from kdissect.insight.finding import LIKELY, WARNING, Finding, FindingSubject, key_of
from kdissect.insight.gaps import without_gaps
from kdissect.insight.rule import Facts, rule
from kdissect.insight.rules.network.connections import by_client, client_name, common_fields
from kdissect.insight.words import of_numbers, span
from kdissect.wording import plural


@rule(
    "request-abandoned",
    WARNING,
    LIKELY,
    needs=(Tcp, Connections, Exposure),
    age_s=1,
    leave_s=1,
    spread=5,
    cut=3,
    again_s=5,
    lasted_s=1,
    apart=10,
)
def request_abandoned(facts: Facts) -> Iterator[Finding]:
    """The client gave up waiting, or was cut off while it waited and asked again. If bytes of a connection
    are missing, they may contain the answer."""
    if 2 * facts.context.one_sided > facts.context.exchanges:
        facts.cannot_judge("only one direction was captured")
        return
    for (client_id, host), rows in by_client(without_gaps(facts, _given_up(facts), "an answer")).items():
        ages = sorted(row["waiting_ns"] for row in rows)
        middle = median(ages)
        alike = len(ages) > 1 and all(
            100 * abs(age - middle) <= facts.limit("spread") * middle for age in ages
        )
        guess = f" That looks like a timeout of {span(middle)}." if alike else ""
        yield _abandoned(
            facts,
            FindingSubject(client_id=client_id, client=host, broker=rows[0]["broker"]),
            f"The client closed {plural(len(rows), 'connection')} on which a request ({_apis(rows)}) had "
            f"waited up to {span(ages[-1])} for its answer.{guess}",
            rows,
        )
    for (client_id, host), cut in by_client(_cut_off(facts)).items():
        rows = without_gaps(facts, cut, "an answer") if len(cut) >= facts.limit("cut") else []
        if len(rows) >= facts.limit("cut"):
            lasted = _alike_ns(facts, rows)
            each = f" Each of them had lasted {span(lasted)}." if lasted is not None else ""
            expired = lasted is not None and all(row["login_ns"] for row in rows)
            yield _abandoned(
                facts,
                FindingSubject(client_id=client_id, client=host, broker=rows[0]["broker"]),
                f"{plural(len(rows), 'connection')} ended from the broker's side while a request "
                f"({_apis(rows)}) waited for its answer; the client connected again and asked again.{each}",
                rows,
                cause=_EXPIRED_WHY if expired else _CUT_OFF_WHY,
                fix=_EXPIRED_DO if expired else _CUT_OFF_DO,
                because=_expired_login(facts, rows),
            )


def _alike_ns(facts: Facts, rows: list[Row]) -> int | None:
    """How long the connections lasted whose beginning was captured, if all lasted about as long and did not
    end together. A single event may cut off connections of the same age."""
    if any(row["handshake_ns"] is None for row in rows):
        return None
    lives = [row["closed_ns"] - row["first_ns"] for row in rows]
    middle = median(lives)
    is_alike = all(100 * abs(life - middle) <= facts.limit("spread") * middle for life in lives)
    ends: list[int] = []
    for ns in sorted(row["closed_ns"] for row in rows):
        if not ends or 100 * (ns - ends[-1]) > facts.limit("apart") * middle:
            ends.append(ns)
    is_long = middle >= facts.limit("lasted_s") * SECOND
    return int(middle) if is_alike and is_long and len(ends) >= facts.limit("cut") else None


_EXPIRED_WHY = (
    "A broker closes a connection whose login is older than connections.max.reauth.ms as soon as a request "
    "comes, and this client did not log in again. Or something between the two ends every connection after "
    "that time: a load balancer, a firewall."
)
_EXPIRED_DO = (
    "Compare that time with connections.max.reauth.ms of the broker and with the life of the tokens. If it "
    "is one of these, update the client library: it must log in again in time (KIP-368). Otherwise look at "
    "the limits of what is between the client and the broker."
)


_CUT_OFF_WHY = (
    "The client did not give up, and the broker went on: it answered such requests before and after. So "
    "something between the two closed these connections: a proxy, a load balancer, a firewall, a tunnel."
)
_CUT_OFF_DO = (
    "Find out what is between the client and the broker, and read its log at these times: restarts, "
    "limits for connections or for their duration. A longer timeout of the client does not help. Set "
    "enable.idempotence=true in producers, so that what they send again is written once."
)


def _abandoned(
    facts: Facts, subject: FindingSubject, message: str, rows: list[Row], **written: str | None
) -> Finding:
    exchanges = [number for row in rows for number in row["waiting_exchanges"]]
    return facts.finding(
        subject,
        message,
        count=len(exchanges),
        measure=round(max(row["waiting_ns"] for row in rows) / SECOND, 3),
        unit="s",
        threshold=facts.limit("age_s"),
        exchanges=exchanges,
        **{
            **common_fields(rows),
            "first_ns": min(row["closed_ns"] for row in rows),
            "last_ns": max(row["closed_ns"] for row in rows),
            "filter": of_numbers(exchanges[:8]),
            **written,
        },
    )


def _apis(rows: list[Row]) -> str:
    return ", ".join(sorted({api for row in rows for api in row["waiting_apis"]}))


def _given_up(facts: Facts) -> list[Row]:
    """Connections that the client closed after a long wait, without just leaving its group."""
    left: dict[tuple[str | None, str], list[int]] = defaultdict(list)
    for row in facts.rows(Tcp):
        if row["left_ns"] is not None:
            left[row["client_id"], address(row["client"])].append(row["left_ns"])
    found = []
    for row in facts.rows(Tcp):
        if row["closed_by"] != "client":
            continue
        if (row["waiting_ns"] or 0) < facts.limit("age_s") * SECOND:
            continue
        leaves = left[row["client_id"], address(row["client"])]
        if not any(0 <= row["closed_ns"] - ns <= facts.limit("leave_s") * SECOND for ns in leaves):
            found.append(row)
    return found


def _cut_off(facts: Facts) -> list[Row]:
    """Connections that the broker's side closed while requests waited that the broker answers before and
    after. So neither the broker nor the client ended them."""
    rows = [row for row in facts.rows(Tcp) if row["exchanges"]]
    closed = [row for row in rows if row["closed_by"] == "broker" and row["waiting_apis"]]
    if not closed:
        return []
    same: dict[tuple[str | None, str | None, str], list[Row]] = defaultdict(list)
    for row in rows:
        same[(*client_name(row), row["broker"])].append(row)
    found = []
    for row in closed:
        asked = set(row["waiting_apis"]) & set(row["answered_apis"])
        if asked and any(
            0 <= other["first_ns"] - row["closed_ns"] <= facts.limit("again_s") * SECOND
            and asked & set(other["answered_apis"])
            for other in same[(*client_name(row), row["broker"])]
        ):
            found.append(row)
    return found


def _expired_login(facts: Facts, rows: list[Row]) -> str | None:
    """The key of the finding that the broker closed these connections when their login expired. That must be
    known of half of them: the capture may lack the logins of the others. All must be of the same clients and
    brokers."""
    expired = {row["connection"]: row for row in closed_when_login_expired(facts)}
    known = [row for row in rows if row["connection"] in expired]
    if 2 * len(known) < len(rows) or not {*map(_ends, rows)} <= {*map(_ends, known)}:
        return None
    return key_of("reauthentication-missed", client_and_user(expired[known[0]["connection"]]))


def _ends(row: Row) -> tuple[str, str | None, str]:
    """The client and the broker of a connection."""
    return address(row["client"]), row["client_id"], row["broker"]


may_explain("reauthentication-missed", "request-abandoned", within_s=LOGIN_NS / SECOND)
