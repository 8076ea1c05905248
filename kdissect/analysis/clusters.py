"""The cluster of each broker, and names that clients ask brokers for, separated by cluster.

Two clusters in one input may both have a group ``orders``. A cluster is known by its id, which Metadata and
DescribeCluster give. The cluster of a broker's address follows from the first of these that applies:

* The broker itself gave an id. Then only that counts.
* Another broker gave an id, and this address in its list of brokers.
* The lists have names instead of addresses. Then the clients that asked this broker decide. All of them must
  have got one and the same id, with a broker of the same port. This may be wrong if one host runs clients of
  one id on two clusters. If such guesses give a cluster more addresses than its list has names, none of them
  counts.

If an address would be of two clusters, its cluster is unknown, like that of an address without any of these
facts. Names at a broker of an unknown cluster stay separate only if several clusters have the name. If the
input shows one cluster only, all names are of that one.

All of this is computed when rows are asked for. A fold keeps its counts by :class:`NameAt` with the address
of the broker. So parts of a capture merge without seams.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Generic, NamedTuple, TypeVar

from kdissect.analysis.recent import Recent
from kdissect.analysis.room import Room
from kdissect.analysis.shared_parts import answer_bytes
from kdissect.analysis.speakers import Speaker, speaker
from kdissect.exchange import Exchange

T = TypeVar("T")

_FIRST_BYTES = 2_048
"""The bytes of an answer that are compared. The id and the brokers are at its beginning: if these bytes of
two answers are the same, so are the id and the brokers. For a cluster of many brokers, the first of them are
enough."""
_MOST_REMEMBERED, _MOST_PAIRS, _MOST_HEARD = 64, 20, 100
"""The most answers that are remembered, the most pairs of broker and client for each, and the most clients on
connections. Forgotten ones are noted again."""
_PAIR_BYTES = 500
"""The approximate size of an address or a client, with its set."""
_LOCAL = ("127.0.0.1", "[::1]")


class NameAt(NamedTuple):
    """A name that is unique only within a cluster, such as that of a group."""

    name: str
    at: str
    """``address:port`` of the broker that was asked, or the id of the cluster; empty if that is unknown."""

    @property
    def cluster_id(self) -> str | None:
        """The id of the cluster; only valid if ``at`` has it."""
        return self.at or None


class _ClusterAnswer:
    """The cluster id and the brokers in an answer."""

    __slots__ = ("addresses", "cluster", "names", "pairs")

    def __init__(self, cluster: str | None, addresses: list[str], names: set[tuple[str, int]]) -> None:
        self.cluster = cluster
        self.addresses = addresses
        """The addresses of brokers, if the list has addresses."""
        self.names = names
        """Host and port of the brokers that the list has by name."""
        self.pairs: set[tuple[str, Speaker]] = set()
        """Pairs of the broker that sent the answer and the client that got it, whose consequences are already
        noted."""


class Clusters:
    """The known clusters of brokers.

    :param room: the room of the fold that keeps them. Brokers that do not fit are of an unknown cluster.
    """

    def __init__(self, room: Room) -> None:
        self._of = self._room = room
        self._most = room.limits.rows
        self._own: dict[str, set[str]] = {}
        """For each broker, the ids that it gave."""
        self._listed: dict[str, set[str]] = {}
        """For each address, the ids of clusters whose lists have it."""
        self._given: dict[Speaker, set[str]] = {}
        """For each client, the ids that it was given."""
        self._names: dict[str, set[tuple[str, int]]] = {}
        """For each id, host and port of the brokers that lists have by name."""
        self._asked: dict[str, set[Speaker]] = {}
        """For each broker, the clients that asked it for something by name."""
        self._count = 0
        self._heard: set[tuple[int, str | None]] = set()
        """Connections with the client ids that were seen on them. A proxy may speak for several clients."""
        self._read: Recent[tuple[int | None, int | None, bytes], _ClusterAnswer] = Recent(_MOST_REMEMBERED)
        """Recent answers, by their first bytes."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_heard": set()}

    def see(self, exchange: Exchange) -> None:
        """Take in an exchange. Call it with every exchange of
        :data:`~kdissect.analysis.latest.CLUSTER_APIS`."""
        if exchange.response is None:
            return
        told = self._answer(exchange)
        pair = exchange.broker, speaker(exchange)
        if told.cluster is None or pair in told.pairs:
            return
        self._add(self._own, exchange.broker, told.cluster)
        if exchange.request is not None:
            self._add(self._given, pair[1], told.cluster)
            if len(told.pairs) >= _MOST_PAIRS:
                told.pairs.clear()
            told.pairs.add(pair)
        for each in told.addresses:
            self._add(self._listed, each, told.cluster)
        for name in told.names:
            self._add(self._names, told.cluster, name)

    def name_at(self, exchange: Exchange, name: str) -> NameAt:
        """A name that an exchange asks its broker for."""
        return NameAt(name, self.at(exchange))

    def at(self, exchange: Exchange) -> str:
        """The broker of an exchange, for names in its request or answer. One call per exchange is enough."""
        client = exchange.connection, exchange.client_id
        if exchange.request is not None and client not in self._heard:
            if len(self._heard) >= _MOST_HEARD:
                self._heard.clear()
            self._heard.add(client)
            self._add(self._asked, exchange.broker, speaker(exchange))
        return exchange.broker

    def _answer(self, exchange: Exchange) -> _ClusterAnswer:
        response = exchange.response
        assert response is not None
        key = exchange.api_key, exchange.api_version, answer_bytes(exchange, response)[:_FIRST_BYTES]
        found = self._read.get(key)
        if found is None:
            found = self._read.keep(key, _read(response.body()))
        return found

    def _add(self, kept: dict[Any, set[Any]], key: Any, value: Any) -> None:
        found = kept.get(key)
        if found is not None and value in found:
            return
        if not self._room.refuses(self._count >= self._most) and self._room.takes(_PAIR_BYTES):
            self._count += 1
            kept.setdefault(key, set()).add(value)
        elif self._room.refused:
            self._of.refused = True

    def keep_in(self, room: Room) -> None:
        """Take memory from another room than that of the fold, because folds that are fed together share
        these facts. If something does not fit, the fold's own room notes it."""
        self._room = room

    @property
    def room(self) -> Room:
        """The room of these facts."""
        return self._room

    def follow(self, old: Room, new: Room) -> None:
        """If these facts belong to the fold of the room ``old``, they belong to that of ``new`` from now
        on."""
        if self._of is old:
            self._of = new

    def merge(self, later: Clusters) -> None:
        """Add the facts of later exchanges."""
        pairs: tuple[tuple[dict[Any, set[Any]], dict[Any, set[Any]]], ...] = (
            (self._own, later._own),
            (self._listed, later._listed),
            (self._given, later._given),
            (self._names, later._names),
            (self._asked, later._asked),
        )
        for mine, theirs in pairs:
            for key, values in theirs.items():
                for value in sorted(values, key=str):  # if memory is full, each run keeps the same ones
                    self._add(mine, key, value)

    def known(self) -> Callable[[str], str | None]:
        """A function that returns the cluster of a broker; None if it is unknown."""
        every = set().union(*self._own.values())
        if len(every) <= 1:
            only = next(iter(every), None)
            return lambda broker: only
        guessed = self._guessed()

        def of(broker: str) -> str | None:
            for kept in (self._own, self._listed):
                ids = kept.get(broker)
                if ids is not None:
                    return next(iter(ids)) if len(ids) == 1 else None
            return guessed.get(broker)

        return of

    def _guessed(self) -> dict[str, str]:
        """The clusters of brokers that are known only by their clients."""
        names = Counter((cluster, port) for cluster, found in self._names.items() for _, port in found)
        taken = Counter((each, _port(broker)) for broker, ids in self._own.items() for each in ids)
        found: dict[str, str] = {}
        for broker, clients in self._asked.items():
            given: set[str] = set().union(*(self._given.get(each, ()) for each in clients))
            place = min(given, default=""), _port(broker)
            if len(given) == 1 and place in names and broker not in self._own and broker not in self._listed:
                found[broker] = place[0]
                taken[place] += 1
        return {
            broker: cluster
            for broker, cluster in found.items()
            if taken[cluster, _port(broker)] <= names[cluster, _port(broker)]
        }

    def apart(self, names: Iterable[NameAt]) -> dict[NameAt, NameAt]:
        """For each name at a broker, the same name in its cluster."""
        brokers: dict[str, dict[str, str | None]] = {}
        known: dict[str, str | None] = {}
        cluster_of = self.known()
        for name, broker in names:
            if broker not in known:
                known[broker] = cluster_of(broker)
            brokers.setdefault(name, {})[broker] = known[broker]
        found: dict[NameAt, NameAt] = {}
        for name, places in brokers.items():
            clusters = set(places.values())
            are_several = len(clusters - {None}) > 1
            for broker, cluster in places.items():
                at = cluster if are_several or len(clusters) == 1 else None
                found[NameAt(name, broker)] = NameAt(name, at or "")
        return found


class OfClusters(Generic[T]):
    """Things with one name, separated by cluster."""

    def __init__(self) -> None:
        self._things: dict[str, list[T]] = {}

    def add(self, cluster: str, things: Iterable[T]) -> None:
        """Add some things of a cluster; its id is empty if it is unknown."""
        self._things.setdefault(cluster, []).extend(things)

    def __iter__(self) -> Iterator[tuple[str, list[T]]]:
        """Each cluster with its things; the id of an unknown one is empty."""
        return iter(self._things.items())

    def of(self, cluster: str) -> list[T]:
        """The things of a cluster, or else those of an unknown cluster. If the cluster itself is unknown: all
        things, or none if :meth:`is_known` is false."""
        if cluster:
            return self._things.get(cluster) or self._things.get("", [])
        return [each for things in self._things.values() for each in things] if self.is_known(cluster) else []

    def is_known(self, cluster: str) -> bool:
        """Whether the things of a cluster are known. If the cluster is unknown, it may be any of those that
        have such things."""
        return bool(cluster) or len(self._things.keys() - {""}) <= 1


def _read(body: Mapping[str, Any]) -> _ClusterAnswer:
    addresses: list[str] = []
    names: set[tuple[str, int]] = set()
    for each in body.get("brokers") or ():
        host, port = each.get("host"), each.get("port")
        if not host or port is None:
            continue
        if _is_address(host):
            addresses += addresses_of(host, port)
        else:
            names.add((host, port))
    return _ClusterAnswer(body.get("clusterId") or None, addresses, names)


def _port(broker: str) -> int:
    return int(broker.rpartition(":")[2] or 0)


def addresses_of(host: str, port: int) -> list[str]:
    """``address:port`` of a broker that a cluster lists. ``localhost`` gives the loopback addresses."""
    hosts = _LOCAL if host == "localhost" else (host,)
    places = (f"[{each}]" if ":" in each and not each.startswith("[") else each for each in hosts)
    return [f"{place}:{port}" for place in places]


@lru_cache(maxsize=4_096)
def _is_address(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
