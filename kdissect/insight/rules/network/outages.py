"""Links that carried nothing for a while."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.analysis.cluster import ClusterBrokers
from kdissect.analysis.fold import SECOND, address
from kdissect.analysis.tcp import Tcp
from kdissect.insight.cut_links import CutLink, cut_links
from kdissect.insight.finding import CRITICAL, LIKELY, Finding
from kdissect.insight.rule import Facts, rule
from kdissect.insight.rules.network.connections import about
from kdissect.insight.words import named, span
from kdissect.wording import plural


@rule("network-outage", CRITICAL, LIKELY, needs=(Tcp, ClusterBrokers), outage_s=3)
def network_outage(facts: Facts) -> Iterator[Finding]:
    """Connections over a link carried only what was sent again, while others went on."""
    used = [row for row in facts.rows(Tcp) if row["exchanges"]]
    for link in cut_links(facts):
        begin, end = link.from_ns, link.to_ns
        others = (row for row in used if row["first_ns"] < end and row["last_ns"] > begin)
        if all(map(link.may_be_cut, others)):
            continue  # nothing shows that it was not the capture, or everything
        longest = max(row["outage_ns"] for row in link.rows)
        up_to = "up to " if len(link.rows) > 1 else ""
        yield facts.finding(
            link.subject,
            f"On {plural(len(link.rows), 'connection')} between {_ends_of(link)} nothing was acknowledged "
            f"for {up_to}{span(longest)}. The same bytes were sent again and again, while other "
            f"connections went on.{_all_of(link)}",
            count=len(link.rows),
            measure=round(longest / SECOND, 3),
            unit="s",
            threshold=facts.limit("outage_s"),
            cost_ns=longest,
            client_ids=link.client_ids,
            **{**about(link.rows), "first_ns": begin, "last_ns": end},
        )


def _ends_of(link: CutLink) -> str:
    """The hosts that could not reach each other, the one that is cut off from several first."""
    here = {address(row["client"]) for row in link.rows}
    there = {address(row["broker"]) for row in link.rows}
    if here == there:
        return "this client and the broker"
    for host in sorted(here | there):
        if all(host in (address(row["client"]), address(row["broker"])) for row in link.rows):
            if len(here | there) > 2:
                return f"{host} and others ({named(sorted((here | there) - {host}))})"
            return f"{next(iter(here))} and {next(iter(there))}"
    return f"{named(sorted(here))} and {named(sorted(there))}"


def _all_of(link: CutLink) -> str:
    """The clients, where they are several."""
    return f" The clients are {named(link.client_ids)}." if len(link.client_ids) > 1 else ""
