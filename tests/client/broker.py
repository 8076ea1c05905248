"""A broker for tests: an asyncio server that answers with the analyser's own encoder.

    with TestBroker() as broker:
        broker.answers["Metadata"] = lambda version, body: {...}
        … connect to broker.address …

It runs in a thread of its own, because the command line has an event loop itself. What it answers is a
body in Kafka's values; ``bytes`` are sent as they are, without a size, and ``CLOSE`` closes.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from kdissect.message import bare_frame, parse_request
from kdissect.model import DecodeError
from kdissect.protocol import apis
from kdissect.protocol.encode import encode
from kdissect.protocol.schema import data_struct, message_struct

CLOSE = object()
SILENCE = object()
TOPIC_ID = "zVcafUmnTIqPhW5ZhPQNqw"

Answer = Callable[[int, dict[str, Any]], Any]


class Asked(NamedTuple):
    """A request that came."""

    api: str
    version: int
    client_id: str | None
    body: dict[str, Any]


class TestBroker:
    """One broker, node 1, of a cluster of one.

    :param versions: what it advertises, by API.
    :param greeting: what it says to whoever connects, before it listens.
    """

    __test__ = False

    def __init__(
        self,
        versions: dict[str, tuple[int, int]] | None = None,
        tls: ssl.SSLContext | None = None,
        greeting: bytes = b"",
    ) -> None:
        self.versions = versions or {
            "Produce": (0, 11),
            "Fetch": (0, 17),
            "ListOffsets": (0, 9),
            "Metadata": (0, 12),
            "ApiVersions": (0, 4),
            "SaslHandshake": (0, 1),
            "SaslAuthenticate": (0, 2),
        }
        self.answers: dict[str, Answer] = {"ApiVersions": self._api_versions, "Metadata": self._metadata}
        self.tokens: Callable[[bytes], bytes] | None = None
        """What answers raw tokens, after SaslHandshake v0."""
        self.asked: list[Asked] = []
        self.partitions = 1
        self.correlation = b""
        """The correlation id of the request at hand, for answers that are bytes."""
        self.swaps = False
        """Whether a Metadata request is answered after the request that comes next. (Who waits for its answer
        before the next waits in vain.)"""
        self._tls = tls
        self._greeting = greeting
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()
        self.port = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> TestBroker:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        self._loop.close()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        self._writers: list[asyncio.StreamWriter] = []
        self._talks: list[asyncio.Task[None]] = []
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._tls)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        # A server of Python 3.11 that closes while it accepts leaves that connection open for ever
        # (python/cpython#109564): first no more are accepted, then it closes.
        self._loop.remove_reader(server.sockets[0].fileno())
        await asyncio.sleep(0.01)
        server.close()
        for writer in self._writers:
            writer.close()
        await asyncio.sleep(0.01)
        tasks = [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Known before its task runs: on a busy machine the broker may end first.
        self._writers.append(writer)
        self._talks.append(asyncio.create_task(self._talk(reader, writer)))

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # What is no request closes the connection, as with Kafka's own broker.
        with suppress(ConnectionError, ssl.SSLError, asyncio.IncompleteReadError, DecodeError):
            if self._greeting:
                writer.write(self._greeting)
            raw = False
            held = b""
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                payload = await reader.readexactly(size)
                if raw and self.tokens is not None:
                    reply = self.tokens(payload)
                    writer.write(len(reply).to_bytes(4, "big") + reply)
                    continue
                request = parse_request(bare_frame(payload))
                api = apis.api_name(request.api_key or 0)
                version = request.api_version or 0
                self.asked.append(Asked(api, version, request.client_id, request.body()))
                self.correlation = payload[4:8]
                raw = api == "SaslHandshake" and version == 0
                answer = self.answers[api](version, request.body()) if api in self.answers else {}
                if answer is CLOSE:
                    break
                if answer is SILENCE or (api == "Produce" and request.body().get("acks") == 0):
                    continue
                data = answer if isinstance(answer, bytes) else self.framed(api, version, answer)
                if self.swaps and api == "Metadata" and not held:
                    held = data
                    continue
                writer.write(data + held)
                held = b""
                await writer.drain()
        writer.close()

    def framed(self, api: str, version: int, answer: dict[str, Any]) -> bytes:
        """An answer to the request at hand."""
        key = apis.api_key(api)
        if answer.get("errorCode") == 35 and key == apis.API_VERSIONS:
            version = 0
        head = data_struct("ResponseHeader", apis.response_header_version(key, version))
        payload = encode(head, {"correlationId": int.from_bytes(self.correlation, "big", signed=True)})
        payload += encode(message_struct(key, version, "response"), answer)
        return len(payload).to_bytes(4, "big") + payload

    def _api_versions(self, version: int, _: dict[str, Any]) -> Any:
        low, high = self.versions["ApiVersions"]
        if not low <= version <= high:
            return {"errorCode": 35, "apiKeys": [{"apiKey": 18, "minVersion": low, "maxVersion": high}]}
        return {
            "errorCode": 0,
            "apiKeys": [
                {"apiKey": apis.api_key(name), "minVersion": low, "maxVersion": high}
                for name, (low, high) in self.versions.items()
            ],
        }

    def _metadata(self, version: int, body: dict[str, Any]) -> dict[str, Any]:
        names = [each["name"] for each in body["topics"] or ()]
        struct = message_struct(3, version, "response").by_name["topics"].struct
        assert struct is not None
        has_id = {"topicId": TOPIC_ID} if "topicId" in struct.by_name else {}
        return {
            "brokers": [{"nodeId": 1, "host": "127.0.0.1", "port": self.port}],
            "topics": [
                {
                    "errorCode": 3 if name == "missing" else 0,
                    "name": name,
                    **has_id,
                    "partitions": [
                        {
                            "errorCode": 0,
                            "partitionIndex": at,
                            "leaderId": 1,
                            "replicaNodes": [1],
                            "isrNodes": [1],
                        }
                        for at in range(0 if name == "missing" else self.partitions)
                    ],
                }
                for name in names
            ],
        }
