"""Facts of the exchanges so far that matter for all others: the names of topic ids and the time. If a fold
needs them, also the clusters of brokers. Folds that are fed together share one object, so that each exchange
is read once for it.

    latest.see(exchange)             every exchange, counted or not
    share([latest, other, …])        from now on they share one
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from kdissect.analysis.shared_parts import latest_in, of_api_keys
from kdissect.exchange import Exchange
from kdissect.names import NO_NAMES, Names
from kdissect.protocol.apis import api_key

if TYPE_CHECKING:
    from kdissect.analysis.clusters import Clusters


CLUSTER_APIS = (api_key("Metadata"), api_key("DescribeCluster"))
"""APIs whose answers give the cluster of a broker."""


class Namer(Protocol):
    """An object that gives ids their known names."""

    def resolve_names(self) -> None:
        """Give ids without a name the names that are known by now."""


class _SharedLatest:
    """The facts of all exchanges, for the folds that share them."""

    __slots__ = ("clusters", "names", "ns", "packet", "sharing")

    def __init__(self, only: Latest) -> None:
        self.sharing = [only]
        self.names: Names = NO_NAMES
        self.packet = 0
        self.ns: int | None = None
        self.clusters: Clusters | None = None
        """None if no fold keeps them."""


class Latest:
    """The facts of the exchanges so far, as one fold knows them."""

    __slots__ = ("_namers", "_seen")

    def __init__(self) -> None:
        self._namers: list[Namer] = []
        self._seen = _SharedLatest(self)

    def see(self, exchange: Exchange) -> None:
        """Take in an exchange. Call this for every exchange, or :meth:`see_all` for all of them."""
        self.see_all((exchange,))

    def see_all(self, exchanges: Sequence[Exchange]) -> None:
        """Take in many exchanges, in their order."""
        if not exchanges:
            return
        seen = self._seen
        ns = exchanges[0].ended_ns if seen.ns is None else seen.ns
        last, seen.ns = latest_in(exchanges, seen.packet, ns)
        if last is not None:
            seen.packet, seen.names = last.last_packet, last.topic_names
        if seen.clusters is not None:
            for exchange in of_api_keys(exchanges, CLUSTER_APIS):
                seen.clusters.see(exchange)

    @property
    def names(self) -> Names:
        """The names of topic ids, as the last packet knows them."""
        return self._seen.names

    @property
    def ns(self) -> int | None:
        """The latest end of an exchange; None before the first."""
        return self._seen.ns

    def keep_clusters(self, clusters: Clusters) -> None:
        """From now on, note the clusters of brokers in ``clusters``."""
        self._seen.clusters = clusters

    @property
    def clusters(self) -> Clusters:
        """The clusters of brokers, if a fold keeps them."""
        assert self._seen.clusters is not None
        return self._seen.clusters

    @property
    def keeps_clusters(self) -> bool:
        """Whether a fold keeps them."""
        return self._seen.clusters is not None

    def register(self, namer: Namer) -> None:
        """Let ``namer`` take the known names before other names count."""
        self._namers.append(namer)

    def replace(self, other: Latest) -> None:
        """Share from now on what another one shared, in its place. What this one saw is dropped."""
        seen = self._seen = other._seen
        seen.sharing = [self if each is other else each for each in seen.sharing]

    def merge(self, later: Latest) -> None:
        """Add the facts of later exchanges. Repeating it changes nothing."""
        mine, theirs = self._seen, later._seen
        for one in (*mine.sharing, *theirs.sharing):
            for each in one._namers:
                each.resolve_names()
        if theirs.packet >= mine.packet:
            mine.packet, mine.names = theirs.packet, theirs.names
        if mine.ns is None or (theirs.ns is not None and theirs.ns > mine.ns):
            mine.ns = theirs.ns
        if mine.clusters is not None and theirs.clusters is not None:
            mine.clusters.merge(theirs.clusters)


def share(every: Sequence[Latest]) -> None:
    """Let folds that are fed the same exchanges read each once."""
    for each in every[1:]:
        if each._seen is every[0]._seen:
            continue
        every[0]._seen.sharing += each._seen.sharing
        every[0]._seen.clusters = every[0]._seen.clusters or each._seen.clusters
        each._seen = every[0]._seen
