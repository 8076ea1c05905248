"""Connections that a broker closes because their login has expired."""

from __future__ import annotations

from kdissect.analysis.exposure import Exposure
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.speakers import address
from kdissect.analysis.tcp import Tcp
from kdissect.insight.finding import FindingSubject
from kdissect.insight.rule import Facts

LOGIN_NS = 3600 * SECOND
"""The longest usual lifetime of a login (``connections.max.reauth.ms``). An older login has nothing to do
with the end of a connection."""


def closed_when_login_expired(facts: Facts) -> list[Row]:
    """The rows of :class:`~kdissect.analysis.exposure.Exposure` of connections that ended when their login
    had expired, and that the client is not known to have closed. Connections on which a login was refused end
    because of that. The facts need that statistic and
    :class:`~kdissect.analysis.tcp.Tcp`."""
    closed_by = {row["connection"]: row["closed_by"] for row in facts.rows(Tcp)}
    within_ns = facts.limit_of("reauthentication-missed", "within_s") * SECOND
    return [
        row
        for row in facts.rows(Exposure)
        if row["login_ends_ns"] is not None
        and row["first_ns"] < row["login_ends_ns"]
        and row["outcome"] in (None, "authenticated")
        and row["end"] in ("fin", "rst")
        and closed_by.get(row["connection"]) != "client"
        and not any(
            begin < row["last_ns"] and max(row["first_ns"], row["login_ends_ns"] - LOGIN_NS) < end
            for begin, end in facts.context.pauses
        )
        and 0 <= row["last_ns"] - row["login_ends_ns"] <= within_ns
    ]


def client_and_user(row: Row) -> FindingSubject:
    """The client and the user of a connection."""
    return FindingSubject(
        client=address(row["client"]), client_id=row["client_id"], principal=row["principal"]
    )
