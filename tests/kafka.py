"""Kafka messages for tests, made with the project's own encoder, which the official vectors prove."""

from __future__ import annotations

from typing import Any

from kdissect.model import ACK, FIN, SYN, Endpoint, Segment
from kdissect.protocol import apis
from kdissect.protocol.encode import encode
from kdissect.protocol.json_form import from_json
from kdissect.protocol.schema import data_struct, message_struct
from tests.tcp.segments import BROKER, CLIENT


def request(
    api: str,
    version: int,
    correlation: int = 1,
    client_id: str | None = "test",
    **body: Any,
) -> bytes:
    """A request's bytes without its size; ``body`` in Kafka's JSON form."""
    key = apis.api_key(api)
    header_version = apis.request_header_version(key, version)
    header = {"requestApiKey": key, "requestApiVersion": version, "correlationId": correlation}
    if header_version >= 1:
        header["clientId"] = client_id  # type: ignore[assignment]
    return _message("RequestHeader", header_version, header, message_struct(key, version, "request"), body)


def response(api: str, version: int, correlation: int = 1, **body: Any) -> bytes:
    """A response's bytes without its size."""
    key = apis.api_key(api)
    header_version = apis.response_header_version(key, version)
    struct = message_struct(key, version, "response")
    return _message("ResponseHeader", header_version, {"correlationId": correlation}, struct, body)


def _message(header_name: str, header_version: int, header: Any, struct: Any, body: Any) -> bytes:
    head = data_struct(header_name, header_version)
    return encode(head, from_json(head, header)) + encode(struct, from_json(struct, body))


def framed(*messages: bytes) -> bytes:
    """Messages with their sizes, one after the other."""
    return b"".join(len(m).to_bytes(4, "big") + m for m in messages)


API_VERSIONS_0: dict[str, Any] = {}
METADATA_RESPONSE_1: dict[str, Any] = {
    "brokers": [{"nodeId": 1, "host": "broker", "port": 19092, "rack": None}],
    "controllerId": 1,
    "topics": [{"errorCode": 0, "name": "orders", "isInternal": False, "partitions": []}],
}


class Talk:
    """A TCP conversation as segments, written turn by turn."""

    def __init__(
        self, client: Endpoint = CLIENT, broker: Endpoint = BROKER, syn: bool = True, mss: int = 1460
    ) -> None:
        self.client, self.broker, self.mss = client, broker, mss
        self.next = {client: 1001, broker: 90001}
        self.segments: list[Segment] = []
        if syn:
            self._add(client, flags=SYN, seq=1000, ack=False)
            self._add(broker, flags=SYN, seq=90000)
            self._add(client)

    def ask(self, *messages: bytes) -> Talk:
        """Let the client send framed messages."""
        return self.say(self.client, framed(*messages))

    def answer(self, *messages: bytes) -> Talk:
        """Let the broker send framed messages."""
        return self.say(self.broker, framed(*messages))

    def say(self, who: Endpoint, data: bytes) -> Talk:
        """Send bytes unchanged, cut into segments."""
        for start in range(0, len(data), self.mss):
            self._add(who, data[start : start + self.mss])
        return self

    def close(self) -> Talk:
        """Let both send FIN."""
        for who in (self.client, self.broker):
            self._add(who, flags=FIN)
            self.next[who] += 1
        return self

    def _add(
        self, who: Endpoint, data: bytes = b"", flags: int = 0, seq: int | None = None, ack: bool = True
    ) -> None:
        other = self.broker if who == self.client else self.client
        number = len(self.segments) + 1
        segment = Segment(
            number,
            number * 1_000_000,
            who,
            other,
            self.next[who] if seq is None else seq,
            self.next[other] if ack else None,
            flags | (ACK if ack else 0),
            data,
            len(data),
        )
        self.next[who] += len(data)
        self.segments.append(segment)
