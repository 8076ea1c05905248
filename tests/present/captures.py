"""Capture files made of conversations, and messages that hold what must never be shown."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable
from pathlib import Path
from struct import pack
from typing import Any

from kdissect.capture.writer import PcapngWriter
from kdissect.embedded.internal import encode_internal
from kdissect.model import Packet, Segment
from kdissect.record.records import Record
from kdissect.record.write import write_batch
from tests.kafka import Talk, request, response

ETHERNET = 1


def frame(segment: Segment) -> bytes:
    """An Ethernet frame with IPv4 and TCP."""
    ports = segment.source[4:] + segment.destination[4:]
    tcp = ports + pack(">IIBBHHH", segment.seq, segment.ack or 0, 5 << 4, segment.flags, 512, 0, 0)
    tcp += segment.payload
    addresses = segment.source[:4] + segment.destination[:4]
    ip = pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 7, 0, 64, 6, 0) + addresses
    return bytes(12) + b"\x08\x00" + ip + tcp


def write_capture(path: Path, *talks: Talk) -> Path:
    """A pcapng file with these conversations, one after the other."""
    segments = [segment for talk in talks for segment in talk.segments]
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        for number, segment in enumerate(segments, 1):
            data = frame(segment)
            writer.write(Packet(number, segment.timestamp_ns, ETHERNET, data, len(data)))
    return path


SECRET = "s3cr3t-hunter2"
"""Stands in every secret of :func:`secret_talk`."""
OPEN = "plain-to-see"
"""Stands beside them in what is no secret."""


def base64(text: str) -> str:
    return b64encode(text.encode()).decode()


_AUTHENTICATED: dict[str, Any] = {"errorCode": 0, "errorMessage": None, "sessionLifetimeMs": 0}


def secret_talks() -> Iterable[Talk]:
    """One conversation for each kind of secret."""
    secret = base64(SECRET)
    yield (
        Talk()
        .ask(request("SaslHandshake", 1, 1, mechanism="PLAIN"))
        .answer(response("SaslHandshake", 1, 1, errorCode=0, mechanisms=["PLAIN"]))
        .ask(request("SaslAuthenticate", 2, 2, authBytes=base64(f"\0{OPEN}\0{SECRET}")))
        .answer(response("SaslAuthenticate", 2, 2, **_AUTHENTICATED, authBytes=secret))
        .close()
    )
    yield (
        Talk(port(50_001))
        .ask(request("SaslHandshake", 0, 1, mechanism="PLAIN"))
        .answer(response("SaslHandshake", 0, 1, errorCode=0, mechanisms=["PLAIN"]))
        .ask(f"\0{OPEN}\0{SECRET}".encode())
        .answer(b"")
        .close()
    )
    talk = Talk(port(50_002))
    for number, (api, version, asked, answered) in enumerate(_exchanges(secret), 1):
        talk.ask(request(api, version, number, **asked))
        talk.answer(response(api, version, number, **answered))
    for number, message in enumerate(_oddities(secret), 100):
        talk.ask(message(number))
    yield talk.close()


def _oddities(secret: str) -> Iterable[Callable[[int], bytes]]:
    """Requests that hold a secret in bytes that no field accounts for."""
    tags = [{"tag": 9, "data": secret}]
    yield lambda number: request("SaslAuthenticate", 2, number, authBytes="") + SECRET.encode()
    yield lambda number: request("SaslAuthenticate", 2, number, authBytes="", _unknownTaggedFields=tags)
    yield lambda number: _of_version(request("SaslAuthenticate", 1, number, authBytes=secret), 99)


def _of_version(message: bytes, version: int) -> bytes:
    return message[:2] + version.to_bytes(2, "big") + message[4:]


def port(number: int) -> bytes:
    """A client's endpoint."""
    return bytes((10, 0, 0, 1)) + number.to_bytes(2, "big")


def _exchanges(secret: str) -> Iterable[tuple[str, int, dict[str, Any], dict[str, Any]]]:
    config = [{"name": "retention.ms", "value": OPEN}, {"name": "made.up", "value": SECRET}]
    passwords = [{"name": "log.retention.ms", "value": OPEN}, {"name": "ssl.key.password", "value": SECRET}]
    incremental = [{**each, "configOperation": 0} for each in passwords]
    topic = {"name": OPEN, "numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": config}
    principal = {"principalType": "User", "principalName": OPEN}
    broker = {"resourceType": 4, "resourceName": "1"}
    stamps = {"issueTimestamp": 1, "expiryTimestamp": 2, "maxTimestamp": 3}
    yield (
        "CreateTopics",
        2,
        {"topics": [topic], "timeoutMs": 1, "validateOnly": False},
        {"throttleTimeMs": 0, "topics": []},
    )
    yield (
        "AlterConfigs",
        1,
        {
            "resources": [{**broker, "configs": passwords}],
            "validateOnly": False,
        },
        {"throttleTimeMs": 0, "responses": []},
    )
    yield (
        "IncrementalAlterConfigs",
        0,
        {
            "resources": [{**broker, "configs": incremental}],
            "validateOnly": False,
        },
        {"throttleTimeMs": 0, "responses": []},
    )
    told = {"readOnly": False, "configSource": 1, "synonyms": [{"name": "x", "value": SECRET, "source": 1}]}
    result = {"errorCode": 0, "errorMessage": None, "resourceType": 4, "resourceName": OPEN}
    configs = [{"name": "ssl.key.password", "value": SECRET, "isSensitive": True, **told}]
    yield (
        "DescribeConfigs",
        1,
        {
            "resources": [{**broker, "configurationKeys": None}],
            "includeSynonyms": True,
        },
        {"throttleTimeMs": 0, "results": [{**result, "configs": configs}]},
    )
    token = {**stamps, "tokenId": OPEN, "hmac": secret, "renewers": []}
    yield (
        "CreateDelegationToken",
        1,
        {"renewers": [], "maxLifetimeMs": 1},
        {
            "errorCode": 0,
            **principal,
            "issueTimestampMs": 1,
            "expiryTimestampMs": 2,
            "maxTimestampMs": 3,
            "tokenId": OPEN,
            "hmac": secret,
            "throttleTimeMs": 0,
        },
    )
    yield (
        "DescribeDelegationToken",
        1,
        {"owners": None},
        {"errorCode": 0, "tokens": [{**principal, **token}], "throttleTimeMs": 0},
    )
    expiry = {"errorCode": 0, "expiryTimestampMs": 2, "throttleTimeMs": 0}
    yield "RenewDelegationToken", 1, {"hmac": secret, "renewPeriodMs": 1}, expiry
    yield "ExpireDelegationToken", 1, {"hmac": secret, "expiryTimePeriodMs": 1}, expiry
    upsertion = {"name": OPEN, "mechanism": 1, "iterations": 4096, "salt": secret, "saltedPassword": secret}
    yield (
        "AlterUserScramCredentials",
        0,
        {"deletions": [], "upsertions": [upsertion]},
        {"throttleTimeMs": 0, "results": []},
    )
    yield (
        "PushTelemetry",
        0,
        {
            "clientInstanceId": "AAAAAAAAAAAAAAAAAAAAAQ",
            "subscriptionId": 1,
            "terminating": False,
            "compressionType": 0,
            "metrics": secret,
        },
        {"throttleTimeMs": 0, "errorCode": 0},
    )
    yield "Envelope", 0, _envelope(secret), {"responseData": None, "errorCode": 0}
    yield "Fetch", 4, _fetch(), _metadata_records()


def _envelope(secret: str) -> dict[str, Any]:
    configs = [{"name": "ssl.key.password", "value": SECRET}]
    resource = {"resourceType": 4, "resourceName": "1", "configs": configs}
    inner = request("AlterConfigs", 1, 7, resources=[resource], validateOnly=False)
    return {
        "requestData": b64encode(inner).decode(),
        "requestPrincipal": secret,
        "clientHostAddress": "fwAAAQ==",
    }


def _fetch() -> dict[str, Any]:
    return {
        "replicaId": -1,
        "maxWaitMs": 1,
        "minBytes": 1,
        "maxBytes": 1,
        "isolationLevel": 0,
        "topics": [],
    }


def _metadata_records() -> dict[str, Any]:
    """Records of ``__cluster_metadata``: a password's config, then another."""
    records = []
    for offset, (name, value) in enumerate((("ssl.key.password", SECRET), ("log.retention.ms", OPEN))):
        body = {"resourceType": 4, "resourceName": "1", "name": name, "value": value}
        _, data = encode_internal("metadata", "ConfigRecord", 0, None, body)
        records.append(Record(offset, 1, None, data))
    partition = {
        "partitionIndex": 0,
        "errorCode": 0,
        "highWatermark": 2,
        "lastStableOffset": 2,
        "abortedTransactions": None,
        "records": b64encode(write_batch(records)).decode(),
    }
    return {"throttleTimeMs": 0, "responses": [{"topic": "__cluster_metadata", "partitions": [partition]}]}
