"""Links that carried nothing for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from kdissect.analysis.cluster import ClusterBrokers
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.speakers import address
from kdissect.analysis.tcp import Tcp
from kdissect.insight.cut_links import CutLink, cut_links
from kdissect.insight.finding import CRITICAL, LIKELY, Finding, FindingSubject
from kdissect.insight.rule import Facts, rule
from kdissect.insight.rules.network.connections import common_fields
from kdissect.insight.words import named, span
from kdissect.wording import plural


@rule("network-outage", CRITICAL, LIKELY, needs=(Tcp, ClusterBrokers), outage_s=3)
def network_outage(facts: Facts) -> Iterator[Finding]:
    """Connections over a link carried only retransmissions, while other connections went on."""
    used = [row for row in facts.rows(Tcp) if row["exchanges"]]
    found: dict[FindingSubject, list[CutLink]] = defaultdict(list)
    for link in cut_links(facts):
        others = (row for row in used if row["first_ns"] < link.to_ns and row["last_ns"] > link.from_ns)
        if not all(map(link.may_be_cut, others)):  # otherwise the capture may have paused, or everything
            found[link.subject].append(link)
    for subject, links in found.items():
        worst = max(links, key=lambda each: each.longest_ns)
        rows = [row for link in links for row in link.rows]
        up_to = "up to " if len(rows) > 1 else ""
        again = f" That happened {len(links)} times." if len(links) > 1 else ""
        is_by_size = any(_lets_small_ones_through(link.rows) for link in links)
        clients = sorted({name for link in links for name in link.client_ids})
        yield facts.finding(
            subject,
            f"On {plural(len(rows), 'connection')} between {_ends_of(rows)} nothing was acknowledged for "
            f"{up_to}{span(worst.longest_ns)}. The same bytes were sent again and again, while other "
            f"connections went on.{again}{_ONLY_SMALL if is_by_size else ''}{_all_of(clients)}",
            cause=_TOO_LARGE if is_by_size else facts.written.why,
            fix=_LESS if is_by_size else facts.written.do,
            count=len(rows),
            measure=round(worst.longest_ns / SECOND, 3),
            unit="s",
            threshold=facts.limit("outage_s"),
            cost_ns=worst.longest_ns,
            client_ids=tuple(clients),
            **{**common_fields(rows), "first_ns": worst.from_ns, "last_ns": worst.to_ns},
        )


_ONLY_SMALL = " New connections began meanwhile and stood still too: only small packets seem to get through."
_TOO_LARGE = (
    "Large packets do not seem to arrive, while small ones do, such as those that begin a connection. Then a "
    "router, tunnel or VPN on the path takes smaller packets than the hosts send (MTU), and the message that "
    "says so (ICMP) is filtered. A link that comes and goes can look the same."
)
_LESS = (
    "Find the largest packet that passes, for example by ping -M do -s 1372 HOST. Let ICMP messages "
    '"fragmentation needed" pass, lower the MTU of the hosts, or limit the MSS on the router. No setting of '
    "Kafka can fix it."
)
_MANY = 2
"""The number of connections that must begin during the outage and then stand still. A single one could be
chance."""


def _lets_small_ones_through(rows: list[Row]) -> bool:
    """Whether connections began and were answered, and then stood still, while others between the same hosts
    got nothing through."""

    def began_in_it(row: Row) -> bool:
        return any(
            each["outage_from_ns"] < row["first_ns"] < each["outage_from_ns"] + each["outage_ns"]
            for each in rows
            if address(each["client"]) == address(row["client"])
            and address(each["broker"]) == address(row["broker"])
        )

    answered = (row for row in rows if row["opening"] == "answered" and row["answered_apis"])
    return sum(map(began_in_it, answered)) >= _MANY


def _ends_of(rows: list[Row]) -> str:
    """The hosts that could not reach each other; a host that is cut off from several comes first."""
    here = {address(row["client"]) for row in rows}
    there = {address(row["broker"]) for row in rows}
    if here == there:
        return "this client and the broker"
    for host in sorted(here | there):
        if all(host in (address(row["client"]), address(row["broker"])) for row in rows):
            if len(here | there) > 2:
                return f"{host} and others ({named(sorted((here | there) - {host}))})"
            return f"{next(iter(here))} and {next(iter(there))}"
    return f"{named(sorted(here))} and {named(sorted(there))}"


def _all_of(clients: list[str]) -> str:
    """The clients, if there are several."""
    return f" The clients are {named(clients)}." if len(clients) > 1 else ""
