"""Clients: who speaks to the brokers, with what software, and in which versions of which APIs.

A client is an address, a client id and the software that an ApiVersions request names (KIP-511, from version
3 on). A software counts for the connection until another is named. The first one also counts for earlier
exchanges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from kdissect.analysis.counters import Span
from kdissect.analysis.declared import (
    MESSAGE_BYTES,
    SPEAKER_COLUMNS,
    column,
    first_and_last,
)
from kdissect.analysis.fold import Batched, Row, Statistic
from kdissect.analysis.packed import packed
from kdissect.analysis.rows import Rows
from kdissect.analysis.speakers import address
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.message import Request, Token
from kdissect.protocol import apis
from kdissect.protocol.apis import API_VERSIONS
from kdissect.session.api_versions import named_software


@packed
class _Software(NamedTuple):
    """The software that a client names."""

    name: str | None = None
    version: str | None = None


UNTOLD = _Software()
_API_VERSIONS = API_VERSIONS


_NAMED_BYTES = 400
"""The approximate size of what is kept for a connection."""


@packed
@dataclass(slots=True)
class _NamedClient:
    """The first and the last software that was named on one connection."""

    first: _Software = UNTOLD
    last: _Software = UNTOLD

    def merge(self, later: _NamedClient) -> None:
        if later.last != UNTOLD:
            self.first = later.first if self.first == UNTOLD else self.first
            self.last = later.last


class _ClientTalk:
    """The exchanges of one client id on one connection, or on several."""

    __slots__ = ("connections", "exchanges", "request_bytes", "response_bytes", "span", "spoken")

    def __init__(self) -> None:
        self.connections = 0
        self.exchanges = 0
        self.request_bytes = 0
        self.response_bytes = 0
        self.spoken: dict[tuple[int, int], int] = {}
        """The requests of each (API key, version)."""
        self.span = Span()

    def add(self, exchange: Exchange, request: Request | Token) -> None:
        """Count an exchange."""
        self.exchanges += 1
        self.request_bytes += request.frame.size
        response = exchange.response
        if response is not None:
            self.response_bytes += response.frame.size
        self.span.cover(exchange)
        if request.api_key is not None and request.api_version is not None:
            spoken = request.api_key, request.api_version
            self.spoken[spoken] = self.spoken.get(spoken, 0) + 1

    def merge(self, later: _ClientTalk) -> None:
        self.connections += later.connections
        self.exchanges += later.exchanges
        self.request_bytes += later.request_bytes
        self.response_bytes += later.response_bytes
        for api, count in later.spoken.items():
            self.spoken[api] = self.spoken.get(api, 0) + count
        self.span.merge(later.span)


_MOST_TALKERS = 256
"""The most client ids that are remembered at a time."""


@packed
class _Client(NamedTuple):
    client: str
    client_id: str | None
    software: _Software


class Clients(Batched, Statistic):
    """The statistic ``clients``."""

    name = "clients"
    about = "software, and the API versions that it uses"
    columns = (
        *SPEAKER_COLUMNS,
        column("software", "text", "the name of its software, from ApiVersions (KIP-511)"),
        column("software_version", "text", "the version of its software"),
        column("connections", "int64", "connections on which it spoke"),
        column("exchanges", "int64", "requests"),
        *MESSAGE_BYTES,
        column("apis", "texts", "the APIs it speaks, each with the version"),
        *first_and_last("message"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self._named: Rows[int, _NamedClient] = Rows(_NamedClient, self.room, _NAMED_BYTES)
        """The named software of each connection."""
        self._talks: Rows[tuple[int, _Client], _ClientTalk] = Rows(_ClientTalk, self.room)
        """By connection and client. The client's software is None until one is named."""
        self._talkers: dict[int, tuple[str | None, _ClientTalk]] = {}
        """For each connection, the client id of its last exchange, if that was recent."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_talkers": {}}

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        _count(exchanges, self._talkers, self._talk)

    def _talk(self, exchange: Exchange) -> _ClientTalk | None:
        """The counts for the client from this exchange on; None if there are too many clients."""
        named = self._software(exchange)
        software = named.last if named is not None else UNTOLD
        client = _Client(address(exchange.client), exchange.client_id, software)
        talk = self._talks.row((exchange.connection, client))
        if talk is not None:
            if len(self._talkers) >= _MOST_TALKERS:
                self._talkers.clear()
            self._talkers[exchange.connection] = exchange.client_id, talk
        return talk

    def _other(self, exchange: Exchange) -> None:
        self._software(exchange)

    def _software(self, exchange: Exchange) -> _NamedClient | None:
        """The software named on the connection so far, with this exchange; None if there are too many
        connections."""
        named, request = self._named.row(exchange.connection), exchange.request
        if named is not None and request is not None and request.api_key == API_VERSIONS:
            name, version = named_software(request)
            if name:
                software = _Software(name, version)
                named.merge(_NamedClient(software, software))
                self._talkers.pop(exchange.connection, None)
        return named

    def merge(self, later: Self) -> None:
        self._talkers.clear()
        for (connection, client), theirs in later._talks.rows.items():
            before = self._named.rows.get(connection)
            if client.software == UNTOLD and before is not None:
                client = client._replace(software=before.last)
            mine = self._talks.row((connection, client))
            if mine is not None:
                mine.merge(theirs)
        self._talks.left_out += later._talks.left_out
        self._named.merge(later._named)

    @property
    def left_out(self) -> int:
        return self._named.left_out + self._talks.left_out

    def result(self) -> list[Row]:
        clients: dict[_Client, _ClientTalk] = {}
        seen: set[tuple[int, _Client]] = set()
        for (connection, client), talk in self._talks.rows.items():
            named = self._named.rows.get(connection)
            if client.software == UNTOLD and named is not None:
                client = client._replace(software=named.first)
            whole = clients.setdefault(client, _ClientTalk())
            whole.merge(talk)
            whole.connections += (connection, client) not in seen
            seen.add((connection, client))
        return [_result(client, talk) for client, talk in sorted(clients.items(), key=lambda e: _order(e[0]))]


def _count(
    exchanges: list[Exchange],
    talkers: dict[int, tuple[str | None, _ClientTalk]],
    talk_of: Callable[[Exchange], _ClientTalk | None],
) -> None:
    """Count exchanges.

    :param talk_of: returns the counts for an exchange. It is called if the client id differs from the last
        one on the connection, or if the exchange names its software.
    """
    for exchange in exchanges:
        request = exchange.request
        if request is None:
            continue
        known = talkers.get(exchange.connection)
        if known is None or known[0] != request.client_id or request.api_key == _API_VERSIONS:
            talk = talk_of(exchange)
        else:
            talk = known[1]
        if talk is not None:
            talk.add(exchange, request)


def _order(client: _Client) -> tuple[str, ...]:
    return tuple(part or "" for part in (client.client, client.client_id, *client.software))


def _result(client: _Client, talk: _ClientTalk) -> Row:
    return {
        "client": client.client,
        "client_id": client.client_id,
        "software": client.software.name,
        "software_version": client.software.version,
        "connections": talk.connections,
        "exchanges": talk.exchanges,
        "request_bytes": talk.request_bytes,
        "response_bytes": talk.response_bytes,
        "apis": [f"{apis.api_name(key)} v{version}" for key, version in sorted(talk.spoken)],
        "first_ns": talk.span.first_ns,
        "last_ns": talk.span.last_ns,
    }
