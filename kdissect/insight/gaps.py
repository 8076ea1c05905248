"""Connections whose bytes were not all captured."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from kdissect.analysis.connections import Connections
from kdissect.analysis.fold import Row
from kdissect.analysis.speakers import address
from kdissect.insight.rule import Facts


def with_gaps(facts: Facts, name: str) -> set[Any]:
    """The values of a column for connections that lack bytes. The rule needs
    :class:`~kdissect.analysis.connections.Connections`.

    :param name: the column, such as ``connection`` or ``client``.
    """
    return {row[name] for row in facts.once(_lossy)}


def _lossy(facts: Facts) -> list[Row]:
    """The connections that lack bytes."""
    return [row for row in facts.rows(Connections) if row["gap_bytes"]]


def may_lack_after(facts: Facts, connections: Collection[int], ns: int) -> set[int]:
    """Those of some connections that may lack bytes after this time. The rule needs
    :class:`~kdissect.analysis.connections.Connections`."""
    since = facts.context.complete_since
    return {
        number
        for row in facts.once(_lossy)
        if (number := row["connection"]) in connections and since.get(number, ns + 1) > ns
    }


def not_known(missing: str) -> str:
    """Why a rule does not judge a connection that lacks bytes.

    :param missing: what may be among the missing bytes.
    """
    return f"bytes of a connection are missing, {missing} perhaps among them"


def without_gaps(facts: Facts, rows: list[Row], missing: str) -> list[Row]:
    """The rows of connections that lack no bytes. If some connections lack bytes, the rule says that it
    cannot judge them. The rule needs :class:`~kdissect.analysis.connections.Connections`.

    :param rows: each has the number of its connection.
    :param missing: what may be among the missing bytes.
    """
    lossy = with_gaps(facts, "connection")
    kept = [row for row in rows if row["connection"] not in lossy]
    if len(kept) < len(rows):
        facts.cannot_judge(not_known(missing))
    return kept


class CapturedSides:
    """How many exchanges of each client lack a side, from one pass over its connections. The rule needs
    :class:`~kdissect.analysis.connections.Connections`."""

    def __init__(self, facts: Facts) -> None:
        self._of_host: dict[str, tuple[int, int]] = {}
        """By host, the number of exchanges and the number of those that lack a side. On each connection one
        request may still wait."""
        for row in facts.rows(Connections):
            # If only the broker's side of a connection was captured, the connection may belong to any client.
            host = _ANYBODY if row["responses"] and not row["requests"] else address(row["client"])
            most, lacking = self._of_host.get(host, (0, 0))
            lacks = max(0, abs(row["requests"] - row["responses"]) - 1)
            self._of_host[host] = most + max(row["requests"], row["responses"]), lacking + lacks

    def is_often_one(self, clients: Iterable[str]) -> bool:
        """Whether more than a tenth of the exchanges of these clients lacks a side. Then nobody knows what
        they did not do: it may only not have been captured.

        :param clients: their addresses, with ports or without.
        """
        hosts = {_ANYBODY, *map(address, clients)}
        found = [each for host in hosts if (each := self._of_host.get(host)) is not None]
        return 10 * sum(lacking for _, lacking in found) > sum(most for most, _ in found)


_ANYBODY = ""


def is_often_one_sided(facts: Facts, clients: Iterable[str]) -> bool:
    """:meth:`CapturedSides.is_often_one` for a rule that asks once."""
    return CapturedSides(facts).is_often_one(clients)
