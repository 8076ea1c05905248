"""Versions: the versions of each API that each client uses, the side that limits them, and those that Kafka 4
would refuse.

A client uses the highest version that both sides know (KIP-35). So a version below the broker's highest is
the client's limit. If it is the highest, the limit is the broker's, and the client's own is unknown. A
broker's offer is taken from the ApiVersions responses of the connection, else from those of the broker on
other connections. Without any, each version that it answers to anyone counts as offered. Otherwise the offer
is unknown; but a client that never asks is not limited by the answer.

Requests between brokers are no client's: connections with one such request are left out as a whole.

:class:`VersionFacts` is the rule. :class:`Versions` feeds it the exchanges of a capture, Spark the rows of
    its tables.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from kdissect.analysis.declared import BROKER_COLUMN, CLIENT_ADDRESS_COLUMN, CLIENT_ID_COLUMN, column
from kdissect.analysis.fold import Batched, Row, Statistic
from kdissect.analysis.offers_seen import MOST_VERSIONS, OffersSeen, Ranges, ranges_in
from kdissect.analysis.packed import packed
from kdissect.analysis.room import Room
from kdissect.analysis.rows import Rows
from kdissect.analysis.speakers import address
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.protocol import apis
from kdissect.protocol.traits import traits_of_api
from kdissect.session.api_versions import NOT_NAMED, named_software
from kdissect.session.conversation import Connection

CLIENT, BROKER, UNKNOWN = "client", "broker", "unknown"
"""The sides that may limit a version."""
BREAKS, UPGRADE_BROKER_FIRST, TRIED, OK = "breaks", "upgrade-broker-first", "tried", "ok"
VERDICTS = (BREAKS, UPGRADE_BROKER_FIRST, UNKNOWN, TRIED, OK)
"""The verdicts, worst first. If the broker limits the version, only a newer broker shows the client's own
limit. A client that tries many versions of an API may need none of them."""

REFUSED = "UNSUPPORTED_VERSION"

REPLICAS = frozenset(("Fetch", "ListOffsets", "OffsetForLeaderEpoch"))
"""Requests whose replica id shows whether a broker or a client sent them (-1; -2 for debugging)."""
_ADD_PARTITIONS_BY_BROKERS = 4
"""From this version on only brokers send AddPartitionsToTxn (KIP-890)."""


@packed
class Talker(NamedTuple):
    """A client on a connection."""

    connection: Hashable
    client: str
    """The client's address, without the port."""
    client_id: str | None
    broker: str


class _SpokenVersions:
    """The number of requests for each (API key, version)."""

    __slots__ = ("left_out", "spoken")

    def __init__(self) -> None:
        self.spoken: dict[tuple[int, int], int] = {}
        self.left_out = 0

    def add(self, spoken: tuple[int, int], count: int) -> None:
        if spoken in self.spoken or len(self.spoken) < MOST_VERSIONS:
            self.spoken[spoken] = self.spoken.get(spoken, 0) + count
        else:
            self.left_out += count

    def merge(self, later: _SpokenVersions) -> None:
        for spoken, count in later.spoken.items():
            self.add(spoken, count)
        self.left_out += later.left_out


@packed
@dataclass(slots=True)
class _ConnectionVersions:
    """The known facts of a connection. Its parts may come in any order."""

    offers: OffersSeen = field(default_factory=OffersSeen)
    software: tuple[int, str, str] | None = None
    """The last exchange that names the software, with its name and version (KIP-511)."""
    has_asked: bool = False
    """Whether it has an ApiVersions request."""
    is_brokers: bool = False
    """Whether it is between brokers."""
    is_whole: bool = False
    """Whether all of it was captured."""

    def merge(self, other: _ConnectionVersions) -> None:
        self.offers.merge(other.offers)
        named = [each for each in (self.software, other.software) if each is not None]
        self.software = max(named, default=None)
        self.has_asked |= other.has_asked
        self.is_brokers |= other.is_brokers
        self.is_whole |= other.is_whole


_TALK_BYTES, _LINE_BYTES = 2_200, 700
"""The approximate sizes: of a client's versions on a connection, with its rows; and of the facts about a
connection."""


_MOST_KNOWN = 1_024
"""The most requests that are remembered at a time."""


class VersionFacts:
    """The facts of exchanges and connections, in any order. Connections may be named by any hashable value.

    ``a.merge(b)`` gives ``a`` the same facts as if it had been fed both parts, as long as no limit was hit.
    """

    def __init__(self, room: Room) -> None:
        """Make it empty.

        :param room: the room for the facts about clients on connections.
        """
        self._most = room.limits.rows
        self._talks: Rows[Talker, _SpokenVersions] = Rows(_SpokenVersions, room, _TALK_BYTES)
        self._lines: Rows[Hashable, _ConnectionVersions] = Rows(_ConnectionVersions, room, _LINE_BYTES)
        self._brokers: Rows[str, OffersSeen] = Rows(OffersSeen, room, _LINE_BYTES)

    def add_requests(
        self, talker: Talker, api_key: int, api_version: int, count: int = 1
    ) -> _SpokenVersions | None:
        """Add requests; return the counts for them, if there is room."""
        talk = self._talks.row(talker)
        if talk is not None:
            talk.add((api_key, api_version), count)
        return talk

    def note_answered(self, broker: str, api_key: int, api_version: int) -> bool:
        """Note that a broker answered a request of this version, and did not refuse the version. False if
        there is no room for that."""
        seen = self._brokers.row(broker)
        if seen is None:
            return False
        seen.take_answer(api_key, api_version)
        return api_key in seen.answered

    def of_broker(self, broker: str) -> OffersSeen | None:
        """What is known of a broker; None without any fact."""
        return self._brokers.get(broker)

    def is_answered(self, broker: str, api_key: int, api_version: int) -> bool:
        """Whether the broker is known to answer this version."""
        seen = self._brokers.get(broker)
        return seen is not None and seen.answered.get(api_key, -1) >= api_version

    def talk(self, talker: Talker) -> _SpokenVersions | None:
        """The versions that the client is known to use; None if none is known."""
        return self._talks.get(talker)

    def take_api_versions(
        self, talker: Talker, number: int, software: tuple[str | None, str | None], ranges: Ranges
    ) -> None:
        """Add an ApiVersions exchange: the name and the version of the client's software in the request, and
        the ranges in the response."""
        line, broker = self._lines.row(talker.connection), self._brokers.row(talker.broker)
        if broker is not None:
            broker.take_offers(number, ranges)
        if line is not None:
            line.has_asked = True
            line.offers.take_offers(number, ranges)
            name, version = software
            if name:
                told = number, name, version or ""
                line.software = max(told, line.software or told)

    def note_between_brokers(self, connection: Hashable) -> None:
        """Note that the connection has a request that only brokers send."""
        line = self._lines.row(connection)
        if line is not None:
            line.is_brokers = True

    def note_whole(self, connection: Hashable) -> None:
        """Note that the connection was captured from its SYN on, without missing bytes."""
        line = self._lines.row(connection)
        if line is not None:
            line.is_whole = True

    def merge(self, later: VersionFacts) -> None:
        """Add other facts."""
        self._talks.merge(later._talks)
        self._lines.merge(later._lines)
        self._brokers.merge(later._brokers)

    def tables(self) -> tuple[Rows[Any, Any], ...]:
        """The rows kept by key."""
        return self._talks, self._lines, self._brokers

    @property
    def left_out(self) -> int:
        """The number of facts that were not kept because there was no room."""
        tables = self.tables()
        inside = sum(talk.left_out for talk in self._talks.rows.values())
        out = sum(table.left_out for table in tables) + inside
        if sum(len(talk.spoken) for talk in self._talks.rows.values()) <= self._most:
            return out  # each has its row
        return out + self._counted()[1]

    def result(self) -> list[Row]:
        """The rows: each is a client, a broker, an API and a version."""
        counts, _ = self._counted()
        said: dict[tuple[Any, ...], _VersionVerdict] = {}
        rows = []
        for key, count in counts.items():
            which = key[_CLIENT_COLUMNS:]
            told = said.get(which)
            if told is None:
                told = said[which] = _judge(*which)
            rows.append(_result(count, told, *key[:_CLIENT_COLUMNS]))
        return sorted(rows, key=_order)

    def _counted(self) -> tuple[dict[tuple[Any, ...], int], int]:
        """The requests by the key of their row, for the first keys; and the number of other requests."""
        nothing = _ConnectionVersions()
        lines = {each: self._lines.rows.get(each.connection, nothing) for each in self._talks.rows}
        asking: dict[tuple[str, str | None], bool] = {}
        for (
            talker,
            line,
        ) in lines.items():  # a client that may have asked before the capture may know the answer
            who = talker.client, talker.client_id
            asking[who] = asking.get(who, False) or line.has_asked or not line.is_whole
        counts: dict[tuple[Any, ...], int] = {}
        left_out = 0
        for talker, talk in self._talks.rows.items():
            line = lines[talker]
            if line.is_brokers:
                continue
            asks = asking[talker.client, talker.client_id]
            _, software, software_version = line.software or (0, None, None)
            tried = _tried(talk.spoken)
            for (api_key, api_version), count in talk.spoken.items():
                offer = self._offer(talker, line, api_key)
                has_higher = offer is None and self.is_answered(talker.broker, api_key, api_version + 1)
                key = (
                    *(talker.client_id, talker.client, software, software_version, talker.broker),
                    *(api_key, api_version, offer, asks, has_higher, api_key in tried),
                )
                if key in counts or len(counts) < self._most:
                    counts[key] = counts.get(key, 0) + count
                else:
                    left_out += count
        return counts, left_out

    def _offer(self, talker: Talker, line: _ConnectionVersions, api_key: int) -> tuple[int, int] | None:
        """The broker's offer of an API: lowest and highest version."""
        offer = line.offers.offers(api_key)
        if offer is None and talker.broker in self._brokers.rows:
            offer = self._brokers.rows[talker.broker].offers(api_key)
        return offer


_CLIENT_COLUMNS = 5
"""The first parts of a row's key, which name the client and the broker. The other parts are the same for
many."""


class _VersionVerdict(NamedTuple):
    """The verdict on a version, independent of the client."""

    api: str
    api_version: int
    offered_min: int | None
    offered_max: int | None
    limited_by: str
    removed_in: str | None
    is_known: bool
    verdict: str


def _judge(
    api_key: int,
    api_version: int,
    offer: tuple[int, int] | None,
    asks: bool,
    has_higher: bool,
    is_tried: bool,
) -> _VersionVerdict:
    limited_by = CLIENT if has_higher else limit(api_version, offer, asks)
    removed_in = apis.removed_in(api_key, api_version)
    is_known = _is_known(api_key, api_version)
    offered_min, offered_max = (None, None) if offer is None else offer
    return _VersionVerdict(
        apis.api_name(api_key),
        api_version,
        offered_min,
        offered_max,
        limited_by,
        removed_in,
        is_known,
        verdict(is_known, removed_in, limited_by, asks, is_tried),
    )


def _result(
    count: int,
    told: _VersionVerdict,
    client_id: str | None,
    client: str,
    software: str | None,
    software_version: str | None,
    broker: str,
) -> Row:
    api, api_version, offered_min, offered_max, limited_by, removed_in, is_known, found = told
    return {
        "client_id": client_id,
        "client": client,
        "software": software,
        "software_version": software_version,
        "broker": broker,
        "api": api,
        "api_version": api_version,
        "offered_min": offered_min,
        "offered_max": offered_max,
        "limited_by": limited_by,
        "removed_in": removed_in,
        "reads": is_known,
        "count": count,
        "verdict": found,
    }


def limit(api_version: int, offer: tuple[int, int] | None, asks: bool) -> str:
    """The side that limits a version: the client or the broker; unknown without an offer.

    :param offer: lowest and highest version that the broker offers; None if unknown.
    :param asks: whether the client asked the broker for them, or may have.
    """
    if offer is None:
        return UNKNOWN
    return BROKER if api_version >= offer[1] and asks else CLIENT


def _is_known(api_key: int, api_version: int) -> bool:
    return apis.is_api(api_key) and api_version in apis.versions(api_key)


_MANY_VERSIONS = 3
"""The number of versions of an API on a connection that counts as many. A client keeps to one, or to two (old
librdkafka in ListOffsets)."""


def _tried(spoken: Iterable[tuple[int, int]]) -> set[int]:
    """The API keys of which a client tries many versions, including one that Kafka 4 has. This does not apply
    to the client's other APIs: kafka-python 1.4 tries Metadata and keeps to one version of the rest.

    :param spoken: API keys and versions on its connection.
    """
    versions: dict[int, list[int]] = {}
    for api_key, api_version in spoken:
        versions.setdefault(api_key, []).append(api_version)
    return {
        api_key
        for api_key, tried in versions.items()
        if len(tried) >= _MANY_VERSIONS
        and any(_is_known(api_key, each) and apis.removed_in(api_key, each) is None for each in tried)
    }


def verdict(
    is_known: bool, removed_in: str | None, limited_by: str, asks: bool, is_tried: bool = False
) -> str:
    """Whether the release that removed the version, and later ones, still understand the client.

    :param is_tried: whether the client tries many versions of the API, so that it may need none of them.
    """
    if removed_in is None:
        return OK if is_known else UNKNOWN
    if is_tried:
        return TRIED
    if limited_by == BROKER:
        return UPGRADE_BROKER_FIRST
    return BREAKS if limited_by == CLIENT or not asks else UNKNOWN


def is_of_broker(api: str, api_version: int, replica_id: int) -> bool:
    """Whether only a broker, or a controller, sends such a request.

    :param replica_id: the replica id in it, if its API is in :data:`REPLICAS`; else -1.
    """
    if api == "AddPartitionsToTxn" and api_version >= _ADD_PARTITIONS_BY_BROKERS:
        return True
    return traits_of_api(api).between_brokers or (api in REPLICAS and replica_id >= 0)


def replica_id_of(body: Mapping[str, Any]) -> int:
    """The id of the requesting broker or controller, or -1. In version 15 of Fetch it moved into a tagged
    struct (KIP-903)."""
    found = (body.get("replicaState") or body).get("replicaId", -1)
    return found if isinstance(found, int) else -1


def _order(row: Row) -> tuple[Any, ...]:
    offered = -1 if row["offered_max"] is None else row["offered_max"]
    return (
        VERDICTS.index(row["verdict"]),
        row["client"] or "",
        row["client_id"] or "",
        row["software"] or "",
        row["software_version"] or "",
        row["broker"] or "",
        row["api"] or "",
        row["api_version"],
        offered,
        row["limited_by"],
    )


class Versions(Batched, Statistic):
    """The statistic ``versions``."""

    name = "versions"
    about = "which side limits each API version, and whether Kafka 4 still understands it"
    columns = (
        CLIENT_ID_COLUMN,
        CLIENT_ADDRESS_COLUMN,
        column("software", "text", "the name of its software, from ApiVersions (KIP-511)"),
        column("software_version", "text", "the version of its software"),
        BROKER_COLUMN,
        column("api", "text", "the API that it uses; requests between brokers are left out"),
        column("api_version", "int16", "version of the API"),
        column(
            "offered_min",
            "int16",
            "lowest version that the broker offers, from ApiVersions on the connection or on another one "
            "to that broker; null if unknown",
        ),
        column("offered_max", "int16", "highest version that the broker offers"),
        column(
            "limited_by",
            "text",
            "side that limits the version: client (the broker offers or answers higher ones), broker (it "
            "offers no higher one), unknown (no ApiVersions response)",
        ),
        column("removed_in", "text", "the Kafka release that removed this version; null if none did"),
        column("reads", "bool", "whether kdissect reads this version"),
        column("count", "int64", "requests"),
        column(
            "verdict",
            "text",
            "whether brokers from removed_in on understand the client: ok, breaks (change the client), "
            "upgrade-broker-first (a newer broker will show it), tried (with many others), "
            "unknown",
        ),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self._facts = VersionFacts(self.room)
        self._known: dict[tuple[int, int, int], tuple[str | None, _SpokenVersions]] = {}
        """By connection, API key and version: the client id of a recent, answered request. The next such
        request gives no new fact."""
        self._talkers: dict[int, tuple[Talker, _SpokenVersions]] = {}
        """The client of the last request of recent connections, with the versions that it uses there."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": {}, "_talkers": {}}

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        _count(exchanges, self._facts, self._known, self._talkers)

    def _other(self, exchange: Exchange) -> None:
        _take(exchange, False, self._facts, self._known, self._talkers)

    def _connection(self, connection: Connection) -> None:
        if is_whole(connection.opened, connection.gaps, connection.skipped_bytes):
            self._facts.note_whole(connection.connection)

    def merge(self, later: Self) -> None:
        self._facts.merge(later._facts)

    @property
    def left_out(self) -> int:
        return self._facts.left_out

    def result(self) -> list[Row]:
        return self._facts.result()


_Known = dict[tuple[int, int, int], tuple[str | None, _SpokenVersions]]
_Talkers = dict[int, tuple[Talker, _SpokenVersions]]
_API_VERSIONS = apis.API_VERSIONS


def _count(exchanges: list[Exchange], facts: VersionFacts, all_known: _Known, talkers: _Talkers) -> None:
    """Count exchanges. The last two arguments are what :class:`Versions` remembers."""
    for exchange in exchanges:
        request = exchange.request
        if request is None or request.api_key is None or request.api_version is None:
            _take(exchange, True, facts, all_known, talkers)
            continue
        known = all_known.get((exchange.connection, request.api_key, request.api_version))
        if known is None or known[0] != request.client_id:
            _take(exchange, True, facts, all_known, talkers)
        else:
            talk = known[1]
            talk.add((request.api_key, request.api_version), 1)


def _take(
    exchange: Exchange, counts: bool, facts: VersionFacts, all_known: _Known, talkers: _Talkers
) -> None:
    """Take in an exchange that may give new facts.

    :param counts: whether its request is counted.
    """
    request, response = exchange.request, exchange.response
    if request is None or request.api_key is None or request.api_version is None:
        if exchange.api_key == _API_VERSIONS and response is not None:
            facts.take_api_versions(
                _talker(exchange), exchange.number, NOT_NAMED, ranges_in(exchange, response)
            )
        return
    api_key, api_version, client_id = request.api_key, request.api_version, request.client_id
    spoken = api_key, api_version
    known = talkers.get(exchange.connection)
    talk: _SpokenVersions | None = None
    talker: Talker | None = None
    if known is not None:
        talker, talk = known
        if talker.client_id != client_id:
            talker = None
    is_same = talker is not None
    if talker is None:
        talker = _talker(exchange)
        talk = facts.talk(talker)
    seen = facts.of_broker(talker.broker)
    is_answered = seen is not None and seen.answered.get(api_key, -1) >= api_version
    if not is_answered and response is not None and exchange._error() != REFUSED:
        is_answered = facts.note_answered(talker.broker, api_key, api_version)
    if api_key == _API_VERSIONS:
        ranges = ranges_in(exchange, response) if response is not None else {}
        facts.take_api_versions(talker, exchange.number, named_software(request), ranges)
    elif not (counts and talk is not None and spoken in talk.spoken):  # else it was looked at
        api = exchange._api() or ""
        replica_id = replica_id_of(request.body()) if api in REPLICAS else -1
        if is_of_broker(api, api_version, replica_id):
            facts.note_between_brokers(exchange.connection)
    if not counts:
        return
    if talk is not None:
        talk.add(spoken, 1)
    else:
        talk = facts.add_requests(talker, api_key, api_version)
        if talk is None:
            return
    if not is_same:
        if len(talkers) >= _MOST_KNOWN:
            talkers.clear()
        talkers[exchange.connection] = talker, talk
    if is_answered and api_key != _API_VERSIONS and spoken in talk.spoken:
        if len(all_known) >= _MOST_KNOWN:
            all_known.clear()
        all_known[exchange.connection, api_key, api_version] = client_id, talk


def is_whole(opened: bool, gaps: int, skipped_bytes: int) -> bool:
    """Whether a connection was captured from its beginning, and all of it was understood."""
    return opened and not gaps and not skipped_bytes


def _talker(exchange: Exchange) -> Talker:
    client = address(exchange._client_address())
    return Talker(exchange.connection, client, exchange._client_id(), exchange._broker_address())
