"""The brokers of one cluster. Metadata finds them. The client connects to each of them when it needs it.

A connection begins with the negotiation of versions, and then the login if there is one. Without a login,
requests in forced versions need no negotiation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kdissect.client.diagnosis import beyond, bytes_text
from kdissect.client.errors import AskingError, OtherSideError
from kdissect.client.io import BrokerAddress, BrokerConnection, Show
from kdissect.client.loop import pause
from kdissect.client.ready import Ready, body_of, log_in, negotiated
from kdissect.client.security import NO_SECURITY, Security
from kdissect.client.session import CLIENT_ID
from kdissect.client.transcript import Transcript
from kdissect.client.versions import NOTHING, request_struct
from kdissect.exchange import Exchange
from kdissect.protocol import apis
from kdissect.protocol.apis import METADATA
from kdissect.protocol.errors import error_name
from kdissect.protocol.schema import ZERO_UUID, Struct

_LEADERLESS = 5
"""LEADER_NOT_AVAILABLE, for a topic that is being created."""
_TRIES, _PAUSE = 20, 0.5


class Partition(NamedTuple):
    """A partition and its leader."""

    number: int
    leader: int
    error: int


class TopicMetadata(NamedTuple):
    """A topic, as Metadata describes it."""

    name: str
    topic_id: str
    """The topic id; Kafka's zero uuid if the version has none."""
    partitions: tuple[Partition, ...]
    error: int

    @property
    def has_id(self) -> bool:
        return self.topic_id != ZERO_UUID


class Cluster:
    """The cluster that a flow sends requests to.

    :param bootstrap: the first broker.
    :param show: receives every exchange when it is complete.
    :param tell: receives lines for people: warnings that do not stop the work.
    """

    def __init__(
        self,
        bootstrap: BrokerAddress,
        transcript: Transcript,
        show: Show,
        security: Security = NO_SECURITY,
        *,
        timeout: float = 30.0,
        client_id: str | None = CLIENT_ID,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.bootstrap = bootstrap
        self._transcript = transcript
        self._show = show
        self._security = security
        self._timeout = timeout
        self._client_id = client_id
        self.report = report
        self._reported: set[tuple[BrokerAddress, int, int]] = set()
        """Forced versions that were already reported as not advertised."""
        self._ready: dict[BrokerAddress, Ready] = {}
        self._brokers: dict[int, BrokerAddress] = {}

    async def broker(self, address: BrokerAddress | None = None, *, negotiate: bool = True) -> Ready:
        """A connection to a broker, by default to the first one. It is kept for the next request.

        :param negotiate: whether versions must be known.
        :raises OtherSideError: there is no connection.
        """
        address = address or self.bootstrap
        ready = self._ready.get(address)
        if ready is None or not ready.connection.is_open:
            ready = Ready(await self.connect(address), NOTHING)
            self._ready[address] = ready
            if self._security.mechanism is not None:
                try:
                    ready = self._ready[address] = await negotiated(ready.connection)
                    await log_in(ready, self._security)
                except (OtherSideError, AskingError):
                    await ready.connection.close()  # it must not be used as one that is logged in
                    raise
        if negotiate and not ready.is_negotiated:
            ready = self._ready[address] = await negotiated(ready.connection)
        return ready

    async def connect(self, address: BrokerAddress) -> BrokerConnection:
        """A new connection, on which nothing has been sent."""
        return await BrokerConnection.open(
            address,
            self._transcript,
            self._security,
            self._show,
            timeout=self._timeout,
            client_id=self._client_id,
        )

    async def close(self) -> None:
        """Close all connections."""
        for ready in self._ready.values():
            await ready.connection.close()

    def defects(self) -> Iterator[str]:
        """Bytes from brokers that belong to no answer, a line for each broker. Call it when no answer is
        expected."""
        for ready in self._ready.values():
            stray = ready.connection.session.stray
            if ready.connection.broken is not None:
                yield f"{ready.address}: {ready.connection.broken}"
            elif ready.connection.is_open and stray:
                yield f"{ready.address}: it sent {bytes_text(stray)} that belong to no answer"

    # -- versions -----------------------------------------------------------------------------------

    def pick(
        self, ready: Ready, api_key: int, low: int = 0, high: int | None = None, *, forced: int | None = None
    ) -> int:
        """The version of the request. Warns once about a forced version that the broker does not advertise.

        :raises AskingError: there is no such version.
        """
        version = ready.versions.pick(api_key, low, high, forced=forced)
        asked = (ready.address, api_key, version)
        if ready.is_negotiated and forced is not None and asked not in self._reported:
            self._reported.add(asked)
            outside = beyond(ready.versions.ranges, api_key, version)
            if outside is not None:
                self.report(
                    f"{ready.address}: {outside}; kdissect sends v{version} anyway, because of --api-version"
                )
        return version

    async def explained(self, error: OtherSideError, api_key: int, version: int) -> OtherSideError:
        """The error. A broker may close the connection instead of answering a request in a version that was
        not negotiated. Then the error also says whether the broker has that version. A second connection
        finds that out.
        """
        ready = self._ready.get(self.bootstrap)
        if not error.closed or ready is None or ready.is_negotiated:
            return error
        try:
            asked = await self.broker()
        except OtherSideError:
            return error  # it does not answer ApiVersions either
        what = f"it closed the connection instead of answering {apis.api_name(api_key)} v{version}"
        why = beyond(asked.versions.ranges, api_key, version)
        why = why or "it advertises this version: does it want a login (--sasl)? see the broker's log"
        return OtherSideError(f"{asked.address}: {what}: {why}", closed=True)

    # -- finding leaders ----------------------------------------------------------------------------

    async def metadata(
        self, topics: list[str] | None, *, version: int | None = None, create: bool = False
    ) -> Exchange:
        """Ask for the brokers and for topics; None asks for all topics.

        :param version: a forced version.
        :param create: whether the broker may create missing topics.
        """
        ready = await self.broker(negotiate=version is None)
        forced = version
        version = self.pick(ready, METADATA, forced=forced)
        struct = request_struct(METADATA, version)
        asked: dict[str, Any] = {"topics": metadata_topics(topics, struct)}
        if "allowAutoTopicCreation" in struct.by_name:
            asked["allowAutoTopicCreation"] = create
        try:
            exchange = await ready.request(METADATA, version, asked)
        except OtherSideError as error:
            raise await self.explained(error, METADATA, version) from None
        for each in body_of(exchange)["brokers"]:
            self._brokers[each["nodeId"]] = BrokerAddress(each["host"], each["port"])
        return exchange

    async def topic(self, name: str, *, create: bool | None = None) -> TopicMetadata:
        """A topic, once all of its partitions have leaders. It waits for a topic that is being created.

        :param create: whether the broker may create it; None if the user did not choose.
        :raises OtherSideError: there is no such topic, or its partitions have no leaders.
        """
        for _ in range(_TRIES):
            found = topics_of(await self.metadata([name], create=bool(create))).get(name)
            if found is None:
                raise OtherSideError(f"{self.bootstrap}: its answer does not mention topic {name}")
            waits = found.error == _LEADERLESS or (create and found.error == 3)
            if found.error and not waits:
                advice = ""
                if found.error == 3:
                    advice = ": is the name right?"
                    advice += " --create lets the broker make it" if create is False else ""
                raise OtherSideError(f"topic {name}: {error_name(found.error)}{advice}")
            if not found.error and all(each.leader >= 0 for each in found.partitions):
                return found
            await pause(_PAUSE)
        raise OtherSideError(f"topic {name}: it has had no leader for {_TRIES * _PAUSE:g} s")

    async def leader(self, topic: TopicMetadata, partition: int) -> Ready:
        """The connection to a partition's leader.

        :raises OtherSideError: there is no such partition, or its leader cannot be reached.
        """
        found = next((each for each in topic.partitions if each.number == partition), None)
        if found is None:
            raise OtherSideError(
                f"topic {topic.name} has no partition {partition}: it has {len(topic.partitions)}"
            )
        if found.leader not in self._brokers:
            raise OtherSideError(
                f"{topic.name}-{partition}: Metadata has no address of its leader, broker {found.leader}"
            )
        return await self.broker(self._brokers[found.leader])


def topics_of(exchange: Exchange) -> dict[str, TopicMetadata]:
    """The topics of a Metadata response, by name."""
    return {
        each["name"]: TopicMetadata(
            each["name"],
            each.get("topicId", ZERO_UUID),
            tuple(
                Partition(part["partitionIndex"], part["leaderId"], part["errorCode"])
                for part in each["partitions"]
            ),
            each["errorCode"],
        )
        for each in body_of(exchange)["topics"]
        if each["name"] is not None
    }


def metadata_topics(names: list[str] | None, struct: Struct) -> list[dict[str, str]] | None:
    """The field ``topics`` of a Metadata request. Null stands for all topics; in version 0 an empty list
    does."""
    if names is None:
        return [] if struct.version == 0 else None
    return [{"name": name} for name in names]
