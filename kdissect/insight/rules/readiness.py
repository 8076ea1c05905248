"""Which clients and brokers are too old for one another, today or after the next upgrade."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.analysis.fold import Row
from kdissect.analysis.versions import Versions
from kdissect.insight.causes import explains
from kdissect.insight.finding import CERTAIN, CRITICAL, INFO, LIKELY, Finding, Subject
from kdissect.insight.rule import Facts, rule
from kdissect.insight.rules.offsets import together
from kdissect.insight.words import quoted

explains("client-breaks-on-4", "version-refused", "request-refused-by-close", shares=("client_id",))
explains("client-breaks-on-4", "down-converted", "up-converted", shares=("client_id",))

PRODUCE_SINCE_4 = 12
"""Brokers offer this version of Produce since 4.0 (KIP-890); they go on offering those from 0 on, though they
do not understand them any more (KAFKA-18659)."""


def _is_on_4(rows: list[Row]) -> bool:
    """Whether the broker is of Kafka 4 already."""
    return any(
        (row["api"] == "Produce" and (row["offered_max"] or 0) >= PRODUCE_SINCE_4)
        or (row["offered_min"] is not None and row["api_version"] < row["offered_min"])
        for row in rows
    )


@rule("client-breaks-on-4", CRITICAL, CERTAIN, needs=(Versions,))
def client_breaks_on_4(facts: Facts) -> Iterator[Finding]:
    """A client uses versions of requests that Kafka 4 no longer has."""
    breaking = [row for row in facts.rows(Versions) if row["verdict"] == "breaks"]
    for (client_id, client), rows in together(breaking, "client_id", "client").items():
        software = next((_software(row) for row in rows if row["software"]), None)
        used = sorted({f"{row['api']} {row['api_version']}" for row in rows})
        what = (
            "does not work with this broker"
            if _is_on_4(rows)
            else "will not work with brokers from Kafka 4.0 on"
        )
        named = f" ({software})" if software else ""
        apis = ", ".join(sorted({row["api"] for row in rows}))
        who = f" and client_id == {quoted(client_id)}" if client_id is not None else ""
        yield facts.finding(
            Subject(client=client, client_id=client_id, software=software),
            f"The client{named} {what}: it sends "
            f"{', '.join(used[:5])}{' and others' if len(used) > 5 else ''}, which "
            f"Kafka 4.0 removed{_instead(rows)}.",
            confidence=CERTAIN if all(row["limited_by"] == "client" for row in rows) else LIKELY,
            count=sum(row["count"] for row in rows),
            measure=len(used),
            unit="versions",
            threshold=1,
            filter=f"api in {{{apis}}}{who}",
        )


def _instead(rows: list[Row]) -> str:
    if all(row["limited_by"] == "client" for row in rows):
        return ", though the broker offers newer ones"
    return "; it did not ask which ones the broker offers"


def _software(row: Row) -> str:
    return " ".join(each for each in (row["software"], row["software_version"]) if each)


@rule("broker-limits-clients", INFO, CERTAIN, needs=(Versions,))
def broker_limits_clients(facts: Facts) -> Iterator[Finding]:
    """Clients speak versions that Kafka 4 removed, because the broker knows no newer ones."""
    limited = [row for row in facts.rows(Versions) if row["verdict"] == "upgrade-broker-first"]
    for (broker,), rows in together(limited, "broker").items():
        clients = sorted({row["client_id"] for row in rows if row["client_id"]})
        yield facts.finding(
            Subject(broker=broker),
            f"{len(clients) or 'Some'} clients use versions of requests that Kafka 4.0 removed, only "
            "because this broker "
            "offers no newer ones.",
            count=len(rows),
            measure=len(rows),
            unit="versions",
            threshold=1,
            filter=f"broker == {quoted(broker)}",
        )
