"""The brokers of one cluster: connected to when they are needed, found by Metadata, asked directly.

Before anything else is asked on a connection, versions are negotiated, unless all that will be asked has
a forced version and nobody logs in; and if a login is wanted, it comes next.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kdissect.client.errors import AskingError, OtherSideError
from kdissect.client.io import Address, Connection, Show, pause
from kdissect.client.sasl import SaslError, mechanism
from kdissect.client.security import NO_SECURITY, Security
from kdissect.client.session import CLIENT_ID, sized
from kdissect.client.transcript import Transcript
from kdissect.client.versions import (
    NOTHING,
    Advertised,
    advertised,
    api_versions_body,
    next_try,
    request_struct,
)
from kdissect.exchange import Exchange
from kdissect.protocol import apis
from kdissect.protocol.apis import API_VERSIONS, METADATA, SASL_AUTHENTICATE, SASL_HANDSHAKE
from kdissect.protocol.encode import encode
from kdissect.protocol.errors import error_name
from kdissect.protocol.schema import ZERO_UUID, Struct

_LEADERLESS = 5
"""LEADER_NOT_AVAILABLE: of a topic that is being created."""
_TRIES, _PAUSE = 20, 0.5


class Partition(NamedTuple):
    """A partition and who leads it."""

    number: int
    leader: int
    error: int


class Topic(NamedTuple):
    """What Metadata says of a topic."""

    name: str
    topic_id: str
    """Kafka's zero uuid where the version has none."""
    partitions: tuple[Partition, ...]
    error: int

    @property
    def has_id(self) -> bool:
        return self.topic_id != ZERO_UUID


class Ready(NamedTuple):
    """A connection on which everything can be asked."""

    connection: Connection
    versions: Advertised

    async def ask(self, api_key: int, version: int, values: dict[str, Any]) -> Exchange:
        """Ask, and see that the answer can be read.

        :raises OtherSideError: no answer comes, or one that does not fit its schema.
        :raises AskingError: the version cannot say it.
        """
        struct = request_struct(api_key, version)
        try:
            data = encode(struct, values)
        except ValueError as error:
            raise AskingError(f"{apis.api_name(api_key)} v{version}: {error}") from None
        exchange = await self.connection.ask(api_key, version, data)
        return readable(exchange, self.connection.address)


class Cluster:
    """What a flow asks.

    :param bootstrap: the broker that is asked first.
    :param show: is given every exchange when it is complete.
    """

    def __init__(
        self,
        bootstrap: Address,
        transcript: Transcript,
        show: Show,
        security: Security = NO_SECURITY,
        *,
        timeout: float = 30.0,
        client_id: str | None = CLIENT_ID,
    ) -> None:
        self.bootstrap = bootstrap
        self._transcript = transcript
        self._show = show
        self._security = security
        self._timeout = timeout
        self._client_id = client_id
        self._ready: dict[Address, Ready] = {}
        self._brokers: dict[int, Address] = {}

    async def broker(self, address: Address | None = None, *, negotiate: bool = True) -> Ready:
        """A connection to a broker, the first one by default, kept for the next time.

        :param negotiate: whether versions must be known.
        :raises OtherSideError: it cannot be had.
        """
        address = address or self.bootstrap
        ready = self._ready.get(address)
        if ready is None or not ready.connection.is_open:
            ready = Ready(await self.connect(address), NOTHING)
            self._ready[address] = ready
            if self._security.mechanism is not None:
                ready = await self._negotiated(ready)
                await self._log_in(ready)
        if negotiate and ready.versions is NOTHING:
            ready = await self._negotiated(ready)
        return ready

    async def connect(self, address: Address) -> Connection:
        """A new connection, on which nothing was said."""
        return await Connection.open(
            address,
            self._transcript,
            self._security,
            self._show,
            timeout=self._timeout,
            client_id=self._client_id,
        )

    async def close(self) -> None:
        """End all connections."""
        for ready in self._ready.values():
            await ready.connection.close()

    async def _negotiated(self, ready: Ready) -> Ready:
        version: int | None = apis.versions(API_VERSIONS).stop - 1
        body: dict[str, Any] = {}
        while version is not None:
            asked = version
            data = encode(request_struct(API_VERSIONS, asked), api_versions_body(asked))
            exchange = await ready.connection.ask(API_VERSIONS, asked, data)
            body = _body(exchange)
            version = next_try(asked, body)
            if version is None:  # of a refusal the code is enough: librdkafka's mock brokers garble the rest
                readable(exchange, ready.connection.address)
        if body.get("errorCode"):
            _refuse(ready, "ApiVersions", body["errorCode"], None)
        ready = Ready(ready.connection, advertised(body))
        self._ready[ready.connection.address] = ready
        return ready

    # -- logging in ---------------------------------------------------------------------------------

    async def _log_in(self, ready: Ready) -> None:
        name = self._security.mechanism or ""
        where = ready.connection.address
        try:
            client = mechanism(name, self._security.credentials)
        except SaslError as error:
            raise OtherSideError(f"{where}: {error}") from None
        version = ready.versions.pick(SASL_HANDSHAKE)
        exchange = await ready.ask(SASL_HANDSHAKE, version, {"mechanism": name})
        body = _body(exchange)
        if body["errorCode"]:
            offered = ", ".join(body.get("mechanisms") or ()) or "none"
            raise OtherSideError(f"{where}: it does not take {name}: it offers {offered} (--sasl)")
        token: bytes | None = client.first()
        while token is not None:
            received = await self._authenticate(ready, token, raw=version == 0)
            try:
                token = client.answer(received)
            except SaslError as error:
                raise OtherSideError(f"{where}: login with {name}: {error}") from None

    async def _authenticate(self, ready: Ready, token: bytes, raw: bool) -> bytes:
        """One token there, one back; ``raw`` where the handshake was of version 0, without Kafka headers."""
        connection = ready.connection
        if raw:
            exchange = await connection.answer(await connection.send(sized(token)))
            assert exchange.response is not None
            return exchange.response.frame.payload
        version = ready.versions.pick(SASL_AUTHENTICATE)
        exchange = await ready.ask(SASL_AUTHENTICATE, version, {"authBytes": token})
        body = _body(exchange)
        if body["errorCode"]:
            said = body.get("errorMessage")
            raise OtherSideError(
                f"{connection.address}: the login failed ({error_name(body['errorCode'])}"
                f"{': ' + said if said else ''}): check --user, the password and --sasl"
            )
        return bytes(body.get("authBytes") or b"")

    # -- finding leaders ----------------------------------------------------------------------------

    async def metadata(
        self, topics: list[str] | None, *, version: int | None = None, create: bool = False
    ) -> Exchange:
        """Ask for the brokers and for topics, all of them for None.

        :param version: forced.
        :param create: whether topics that are not there may come to be.
        """
        ready = await self.broker(negotiate=version is None)
        version = ready.versions.pick(METADATA, forced=version)
        struct = request_struct(METADATA, version)
        asked: dict[str, Any] = {"topics": metadata_topics(topics, struct)}
        if "allowAutoTopicCreation" in struct.by_name:
            asked["allowAutoTopicCreation"] = create
        exchange = await ready.ask(METADATA, version, asked)
        for each in _body(exchange)["brokers"]:
            self._brokers[each["nodeId"]] = Address(each["host"], each["port"])
        return exchange

    async def topic(self, name: str, *, create: bool = False) -> Topic:
        """A topic all of whose partitions have leaders; of one that is being created it waits for that.

        :raises OtherSideError: there is none, or it stays without leaders.
        """
        for _ in range(_TRIES):
            found = topics_of(await self.metadata([name], create=create)).get(name)
            if found is None:
                raise OtherSideError(f"{self.bootstrap}: its answer does not mention topic {name}")
            waits = found.error == _LEADERLESS or (create and found.error == 3)
            if found.error and not waits:
                raise OtherSideError(
                    f"topic {name}: {error_name(found.error)}"
                    + (": is the name right? --create lets the broker make it" if found.error == 3 else "")
                )
            if not found.error and all(each.leader >= 0 for each in found.partitions):
                return found
            await pause(_PAUSE)
        raise OtherSideError(f"topic {name}: it has no leader for {_TRIES * _PAUSE:g} s")

    async def leader(self, topic: Topic, partition: int) -> Ready:
        """The connection to a partition's leader.

        :raises OtherSideError: there is no such partition, or its leader is not to be had.
        """
        found = next((each for each in topic.partitions if each.number == partition), None)
        if found is None:
            raise OtherSideError(
                f"topic {topic.name} has no partition {partition}: it has {len(topic.partitions)}"
            )
        if found.leader not in self._brokers:
            raise OtherSideError(
                f"{topic.name}-{partition}: its leader {found.leader} is no broker of which Metadata tells"
            )
        return await self.broker(self._brokers[found.leader])


def topics_of(exchange: Exchange) -> dict[str, Topic]:
    """By name, what a Metadata response says."""
    return {
        each["name"]: Topic(
            each["name"],
            each.get("topicId", ZERO_UUID),
            tuple(
                Partition(part["partitionIndex"], part["leaderId"], part["errorCode"])
                for part in each["partitions"]
            ),
            each["errorCode"],
        )
        for each in _body(exchange)["topics"]
        if each["name"] is not None
    }


def metadata_topics(names: list[str] | None, struct: Struct) -> list[dict[str, str]] | None:
    """The field ``topics`` of a Metadata request. All topics are null, in version 0 an empty list."""
    if names is None:
        return [] if struct.version == 0 else None
    return [{"name": name} for name in names]


def readable(exchange: Exchange, address: Address) -> Exchange:
    """The exchange, if its answer fits its schema. Bytes that are left after the last field spoil nothing
    that was read; they are a fault of the exchange.

    :raises OtherSideError: it does not.
    """
    if exchange.response is None:
        return exchange
    body = exchange.response.decoded()
    if body.struct is not None and all(each.kind == "remainder" for each in body.faults):
        return exchange
    why = body.faults[0].message if body.faults else body.opaque
    raise OtherSideError(
        f"{address}: its answer to {exchange.api} v{exchange.api_version} does not fit the schema: {why}: "
        "-T tree --all shows the bytes"
    )


def _body(exchange: Exchange) -> dict[str, Any]:
    assert exchange.response is not None
    return exchange.response.body()


def _refuse(ready: Ready, what: str, code: int, said: str | None) -> None:
    raise OtherSideError(
        f"{ready.connection.address}: {what}: {error_name(code)}{': ' + said if said else ''}"
    )
