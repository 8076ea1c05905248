"""Does a broker answer as the schemas say? Every version that it advertises, asked with default values.

The checks, each a row:

``advertised``  the list of ApiVersions: no API is in it twice, each range goes up, kdissect knows each.
``answer``      one API in one version: it answers, with the right header, and to the last byte as the
                schema says. An error code in it is a right answer too.
``order``       requests sent at once are answered in their order.
``outside``     a version beyond the range is not answered as if it were known. The connection is closed,
                or ApiVersions says UNSUPPORTED_VERSION in version 0 (KIP-511).

It sends only requests that change nothing (:mod:`kdissect.client.changing`), unless the user wants all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from kdissect.client.changing import changes
from kdissect.client.cluster import Cluster
from kdissect.client.errors import AskingError, OtherSideError
from kdissect.client.ready import Ready
from kdissect.client.versions import UNSUPPORTED_VERSION, api_versions_body
from kdissect.exchange import Exchange
from kdissect.message import Response
from kdissect.model import DecodeError
from kdissect.protocol import apis
from kdissect.protocol.apis import API_VERSIONS, METADATA
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import decode, read_tag_count
from kdissect.protocol.definition import NEWEST
from kdissect.protocol.encode import encode
from kdissect.protocol.schema import message_struct
from kdissect.protocol.traits import api_traits

RIGHT, WRONG, SKIPPED, CLOSED = "right", "wrong", "skipped", "closed"
"""Outcomes. ``closed``: the broker closed the connection instead of answering."""

PIPELINE = 8
"""The number of requests that are sent at once to check the order of the answers."""


_LEAST: dict[str, dict[str, Any]] = {
    "Produce": {"acks": -1},  # with 0, the default, there is no answer
    "Metadata": {"topics": [], "allowAutoTopicCreation": False},
    # Without groups, and without transactions, Kafka 3.9 never answers.
    "OffsetFetch": {"groups": [{"groupId": "kdissect"}]},
    "AddPartitionsToTxn": {"transactions": [{"transactionalId": "kdissect"}]},
    # Filters of type UNKNOWN, the default, are refused by closing the connection; 1 is ANY.
    "DescribeAcls": {"resourceTypeFilter": 1, "patternTypeFilter": 1, "operation": 1, "permissionType": 1},
}
"""Values for APIs whose defaults ask for nothing, or get no answer."""


class BrokerCheck(NamedTuple):
    """One check of a broker."""

    check: str
    api_key: int | None
    api: str | None
    api_version: int | None
    outcome: str
    error: str | None = None
    """The first error code of the answer, by name."""
    latency_ns: int | None = None
    detail: str | None = None
    """What is wrong, or why the check was skipped."""

    @property
    def is_right(self) -> bool:
        return self.outcome in (RIGHT, SKIPPED)


def default_body(api_key: int, version: int) -> dict[str, Any]:
    """Values for a request that asks for as little as possible. Omitted fields have their defaults."""
    if api_key == API_VERSIONS:
        return api_versions_body(version)
    asked = _LEAST.get(apis.api_name(api_key), {})
    struct = message_struct(api_key, version, "request")
    return {name: value for name, value in asked.items() if name in struct.by_name}


def advertised_checks(ready: Ready, said: list[dict[str, Any]]) -> list[BrokerCheck]:
    """Faults in the list of APIs. If it has no faults, a single row says so.

    :param said: the field ``apiKeys`` of the answer.
    """
    found = []
    seen: set[int] = set()
    for each in said:
        key, low, high = each["apiKey"], each["minVersion"], each["maxVersion"]
        name = apis.api_name(key)

        def wrong(detail: str, key: int = key, name: str = name) -> BrokerCheck:
            return BrokerCheck("advertised", key, name, None, WRONG, detail=detail)

        if key in seen:
            found.append(wrong("advertised twice"))
        seen.add(key)
        if not 0 <= low <= high:
            found.append(wrong(f"versions {low} to {high} are not a range"))
        elif not apis.is_api(key):
            found.append(
                BrokerCheck("advertised", key, name, None, SKIPPED, detail="kdissect does not know this API")
            )
        elif high not in apis.versions(key):
            newest = apis.versions(key).stop - 1
            detail = f"up to version {high}: kdissect knows up to {newest}"
            found.append(BrokerCheck("advertised", key, name, None, SKIPPED, detail=detail))
    right = BrokerCheck("advertised", API_VERSIONS, "ApiVersions", None, RIGHT, detail=f"{len(seen)} APIs")
    return [right, *found] if all(each.is_right for each in found) else found


async def conformance(cluster: Cluster, everything: bool = False) -> AsyncIterator[BrokerCheck]:
    """Make the checks, and give each one when it is done.

    :param everything: whether to send requests that may change data too, with default values.
    :raises OtherSideError: there is no broker that could be checked.
    """
    ready = await cluster.broker()
    version = ready.versions.pick(API_VERSIONS)
    exchange = await ready.request(API_VERSIONS, version, api_versions_body(version))
    assert exchange.response is not None
    for check in advertised_checks(ready, exchange.response.body()["apiKeys"]):
        yield check
    ranges = ready.versions.ranges
    for key in sorted(ranges):
        for version in ranges[key]:
            if apis.is_api(key) and version in apis.versions(key):
                yield await _answer(cluster, key, version, everything)
    yield await _order(cluster)
    for key in sorted(ranges):
        for version in (ranges[key].start - 1, ranges[key].stop):
            if 0 <= version <= NEWEST and apis.is_api(key) and not changes(key, _asked(key, version)):
                yield await _outside(cluster, key, version)


def _asked(key: int, version: int) -> dict[str, Any]:
    """All values of the default request, in the nearest known version."""
    known = apis.versions(key)
    near = min(max(version, known.start), known.stop - 1)
    struct = message_struct(key, near, "request")
    return decode(struct, Cursor(encode(struct, default_body(key, near))))


async def _answer(cluster: Cluster, key: int, version: int, everything: bool) -> BrokerCheck:
    name = apis.api_name(key)
    body = _asked(key, version)
    if api_traits(key).logs_in and not everything:
        return BrokerCheck("answer", key, name, version, SKIPPED, detail="part of a login")
    if not everything and changes(key, body):
        return BrokerCheck("answer", key, name, version, SKIPPED, detail="it may change data")
    ready = await cluster.broker()
    struct = message_struct(key, version, "request")
    try:
        exchange = await ready.connection.send_and_receive(
            key, version, encode(struct, default_body(key, version))
        )
    except OtherSideError as error:
        await ready.connection.close()
        outcome = CLOSED if error.closed else WRONG
        return BrokerCheck("answer", key, name, version, outcome, detail=str(error))
    if api_traits(key).logs_in:
        await ready.connection.close()  # the next bytes on it would belong to a login
    detail = defect(exchange)
    outcome = RIGHT if detail is None else WRONG
    return BrokerCheck("answer", key, name, version, outcome, exchange.error, exchange.latency_ns, detail)


def defect(exchange: Exchange) -> str | None:
    """The fault of an answer; None if it has none."""
    response = exchange.response
    if not isinstance(response, Response):
        return "no answer"
    body = response.decoded()
    faults = [*exchange.session_faults, *response.faults]
    if not body.is_exact or faults:
        header = _other_header(exchange)
        if header is not None:
            return header
        return "; ".join(f"{each.kind}: {each.message}" for each in faults) or "it does not fit the schema"
    return None


def _other_header(exchange: Exchange) -> str | None:
    """A note if the answer fits the other version of the response header."""
    response = exchange.response
    assert response is not None
    struct = response.body_struct()
    if struct is None or response.header_version is None:
        return None
    payload = response.frame.payload
    other = 1 - response.header_version
    cursor = Cursor(payload, 4)
    try:
        if other == 1 and read_tag_count(cursor):
            return None
        decode(struct, cursor)
    except DecodeError:
        return None
    if cursor.remaining():
        return None
    return f"the response header has version {other}, not {response.header_version}"


async def _order(cluster: Cluster) -> BrokerCheck:
    """Check the order of answers: send several requests at once, slow and fast ones."""
    ready = await cluster.broker()
    connection = ready.connection
    data = b""
    try:
        for at in range(PIPELINE):
            key = METADATA if at % 2 == 0 else API_VERSIONS
            version = ready.versions.pick(key)
            struct = message_struct(key, version, "request")
            data += connection.session.request(key, version, encode(struct, default_body(key, version)))
        exchanges = await connection.send_all(data)
        for exchange in exchanges:
            await connection.answer(exchange)
    except (OtherSideError, AskingError) as error:
        await connection.close()
        return BrokerCheck("order", None, None, None, WRONG, detail=str(error))
    faults = [each.message for exchange in exchanges for each in exchange.session_faults]
    return BrokerCheck(
        "order",
        None,
        None,
        None,
        WRONG if faults else RIGHT,
        detail="; ".join(faults) or f"{PIPELINE} requests at once",
    )


async def _outside(cluster: Cluster, key: int, version: int) -> BrokerCheck:
    """Check a version that the broker does not advertise."""
    name = apis.api_name(key)
    ready = await cluster.broker()
    known = apis.versions(key)
    near = min(max(version, known.start), known.stop - 1)
    body = encode(message_struct(key, near, "request"), default_body(key, near))
    try:
        exchange = await ready.connection.send_and_receive(key, version, body)
    except OtherSideError as error:
        await ready.connection.close()
        if error.closed:
            return BrokerCheck("outside", key, name, version, RIGHT, detail="it closed the connection")
        return BrokerCheck("outside", key, name, version, WRONG, detail=str(error))
    response = exchange.response
    assert response is not None
    if key == API_VERSIONS and not response.decoded().is_exact:
        detail = f"the refusal is not a body of version 0: {defect(exchange)}"
        return BrokerCheck("outside", key, name, version, WRONG, exchange.error, exchange.latency_ns, detail)
    code = UNSUPPORTED_VERSION.to_bytes(2, "big")
    # The code is the first field of many answers, or the second field, after the throttle time.
    start = response.body_start
    if code in (response.frame.payload[start : start + 2], response.frame.payload[start + 4 : start + 6]):
        return BrokerCheck("outside", key, name, version, RIGHT, "UNSUPPORTED_VERSION", exchange.latency_ns)
    if exchange.error == "UNSUPPORTED_VERSION":
        return BrokerCheck("outside", key, name, version, RIGHT, exchange.error, exchange.latency_ns)
    detail = "it answered a version that it does not advertise"
    return BrokerCheck("outside", key, name, version, WRONG, exchange.error, exchange.latency_ns, detail)
