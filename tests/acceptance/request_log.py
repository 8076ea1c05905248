"""The broker's own request log (JSON), and how it is compared with what kdissect says."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, NamedTuple

from kdissect.exchange import Exchange
from kdissect.message import Message
from kdissect.protocol.json_form import to_json

PRODUCE, FETCH, API_VERSIONS, ENVELOPE = 0, 1, 18, 58
UNSUPPORTED_VERSION = 35

Address = tuple[IPv4Address | IPv6Address, int]

RENAMED = {
    (1, "partitionResponses"): "partitions",
    (1, "recordSetSizeInBytes"): "recordsSizeInBytes",
    (28, "generationId"): "generationIdOrMemberEpoch",
    (52, "candidateEpoch"): "replicaEpoch",
    (52, "candidateId"): "replicaId",
    (52, "candidateDirectoryId"): "replicaDirectoryId",
    (74, "clientMetricsResources"): "configResources",
}
"""(API key, name in the log of an older broker): Kafka's newest name of the same bytes."""

RENAMED_INSIDE = {
    (1, "partitionResponses", "partition"): "partitionIndex",
    (74, "clientMetricsResources", "name"): "resourceName",
}
"""(API key, name of the struct's field, name): the same, where the name alone does not tell."""

NOT_LOGGED = ("requestApiKeyName", "requestApiVersionDeprecated")
"""What the log adds to the header."""

HIDDEN = "[hidden]"
"""What Kafka prints for a secret."""


class Entry(NamedTuple):
    """One line of the log, under Kafka's newest names."""

    broker: Address
    client: Address
    header: dict[str, Any]
    request: Any
    response: Any
    forwarded: bool
    """It came inside an Envelope."""

    @property
    def key(self) -> tuple[Address, Address, int, int, int]:
        """What tells it from all others, but for those sent again under the same correlation id."""
        header = self.header
        api = header["requestApiKey"], header["requestApiVersion"]
        return (self.client, self.broker, *api, header["correlationId"])

    @property
    def is_refused(self) -> bool:
        """Whether the broker could not read the request's body, and so logs an empty one."""
        refused = (self.response or {}).get("errorCode") == UNSUPPORTED_VERSION
        return refused and bool(self.header["requestApiKey"] == API_VERSIONS)


def entry(line: dict[str, Any]) -> Entry:
    """An entry of the log as it is printed."""
    header = {name: value for name, value in line["header"].items() if name not in NOT_LOGGED}
    broker, client = line["connection"].split("-")[:2]
    api = header["requestApiKey"], header["requestApiVersion"]
    request, response = (_newest(line.get(side), *api) for side in ("request", "response"))
    return Entry(address(broker), address(client), header, request, response, line.get("isForwarded", False))


def exchange_key(exchange: Exchange) -> tuple[Address, Address, Any, Any, Any]:
    """The same as :attr:`Entry.key`."""
    ends = address(exchange.client), address(exchange.broker)
    return (*ends, exchange.api_key, exchange.api_version, exchange.correlation_id)


def address(text: str) -> Address:
    """``10.0.0.1:9092``, ``[::1]:9092`` and Java's ``0:0:0:0:0:0:0:1:9092`` in one form."""
    host, port = text.rsplit(":", 1)
    return ip_address(host.strip("[]")), int(port)


def body_json(message: Message) -> dict[str, Any]:
    """A message's body in Kafka's JSON form."""
    body = message.decoded()
    assert body.struct is not None, body.opaque
    return to_json(body.struct, body.values)


def header_json(message: Message) -> dict[str, Any]:
    """A message's header in Kafka's JSON form."""
    struct = message.header_struct()
    assert struct is not None
    return to_json(struct, message.header())


def difference(want: Any, got: Any, path: str, cut: bool = False) -> str | None:
    """Where two JSON values differ, and how; None if they are equal. Types count: 1 is not true.
    A size of records, which older brokers do not print, may be more than is wanted.

    :param cut: the message was captured in part, and what was not may be missing at the end.
    """
    inside: Iterator[str | None]
    if want == HIDDEN:
        return None
    if isinstance(want, dict) and isinstance(got, dict):
        missing = [name for name in want if name not in got and not cut]
        more = [name for name in got if name not in want and not name.endswith("ecordsSizeInBytes")]
        if missing or more:
            return f"{path}: without {missing}, with {more} beyond the log"
        shared = [name for name in want if name in got]
        inside = (
            difference(want[name], got[name], f"{path}.{name}", cut and name == shared[-1]) for name in shared
        )
    elif isinstance(want, list) and isinstance(got, list):
        if len(got) > len(want) or (len(got) < len(want) and not cut):
            return f"{path}: {len(got)} elements, logged {len(want)}"
        last = len(got) - 1
        pairs = enumerate(zip(want, got, strict=False))
        inside = (difference(w, g, f"{path}[{at}]", cut and at == last) for at, (w, g) in pairs)
    else:
        return None if type(want) is type(got) and want == got else f"{path}: {got!r}, logged {want!r}"
    return next(filter(None, inside), None)


def _newest(value: Any, api: int, version: int, inside: str = "") -> Any:
    if isinstance(value, list):
        return [_newest(item, api, version, inside) for item in value]
    if not isinstance(value, dict):
        return value
    out = {}
    for name, item in value.items():
        if api in (59, 78, 79) and name in ("records", "unalignedRecords") and item == "":
            continue  # here the log leaves the size out
        newest = RENAMED_INSIDE.get((api, inside, name)) or RENAMED.get((api, name), name)
        if (api, version, name) == (88, 0, "acceptableRecoveryLag"):
            newest = "acceptableRecoveryLagLegacy"
        out[newest] = _newest(item, api, version, name)
    return out
