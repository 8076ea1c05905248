"""What the exchanges so far tell of all others: the names of topic ids, the time, and for who needs it the
clusters of brokers. Folds that are fed together share one, so that each exchange is looked at once for it.

    latest.see(exchange)             every exchange, counted or not
    share([latest, other, …])        from now on these are one
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from kdissect.exchange import Exchange
from kdissect.names import NO_NAMES, Names
from kdissect.protocol.apis import api_key

if TYPE_CHECKING:
    from kdissect.analysis.clusters import Clusters


TELLING_CLUSTERS = (api_key("Metadata"), api_key("DescribeCluster"))
"""APIs whose answers say of which cluster a broker is."""


class Namer(Protocol):
    """What gives ids their names by what is known."""

    def settle(self) -> None:
        """Give the names that are known by now to the ids that had none."""


class _SharedLatest:
    """What was seen by all that share it."""

    __slots__ = ("clusters", "namers", "names", "ns", "packet")

    def __init__(self) -> None:
        self.namers: list[Namer] = []
        self.names: Names = NO_NAMES
        self.packet = 0
        self.ns: int | None = None
        self.clusters: Clusters | None = None
        """None where no fold keeps them."""


class Latest:
    """What one fold knows of the exchanges so far."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen = _SharedLatest()

    def see(self, exchange: Exchange) -> None:
        """To be called with every exchange, or all of them by :meth:`see_all`."""
        self.see_all((exchange,))

    def see_all(self, exchanges: Sequence[Exchange]) -> None:
        """The same with many, one after the other."""
        seen = self._seen
        latest, ns, clusters = seen.packet, seen.ns, seen.clusters
        of: Exchange | None = None
        for exchange in exchanges:
            packet, told_ns = exchange.last_packet, exchange.told_ns
            if packet >= latest:
                latest, of = packet, exchange
            if ns is None or told_ns > ns:
                ns = told_ns
            if clusters is not None and exchange.api_key in TELLING_CLUSTERS:
                clusters.see(exchange)
        if of is not None:
            seen.packet, seen.names = latest, of.topic_names
        seen.ns = ns

    @property
    def names(self) -> Names:
        """The names of topic ids that the last packet knows."""
        return self._seen.names

    @property
    def ns(self) -> int | None:
        """The latest time at which an exchange was over; None before the first."""
        return self._seen.ns

    def keep_clusters(self, clusters: Clusters) -> None:
        """From now on note there what is told of the clusters of brokers."""
        self._seen.clusters = clusters

    @property
    def clusters(self) -> Clusters:
        """What is known of them, where a fold keeps them."""
        assert self._seen.clusters is not None
        return self._seen.clusters

    def tell(self, namer: Namer) -> None:
        """Before other names count, have this one take those that are known."""
        self._seen.namers.append(namer)

    def merge(self, later: Latest) -> None:
        """Add what was seen later. It does no harm to do so again."""
        mine, theirs = self._seen, later._seen
        for each in (*mine.namers, *theirs.namers):
            each.settle()
        if theirs.packet >= mine.packet:
            mine.packet, mine.names = theirs.packet, theirs.names
        if mine.ns is None or (theirs.ns is not None and theirs.ns > mine.ns):
            mine.ns = theirs.ns
        if mine.clusters is not None and theirs.clusters is not None:
            mine.clusters.merge(theirs.clusters)


def share(every: Sequence[Latest]) -> None:
    """Let folds that are fed the same exchanges see each once."""
    for each in every[1:]:
        every[0]._seen.namers += each._seen.namers
        every[0]._seen.clusters = every[0]._seen.clusters or each._seen.clusters
        each._seen = every[0]._seen
