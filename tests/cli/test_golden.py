"""Texts of one small capture, as they print."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.golden import check_golden
from tests.cli.run import run
from tests.kafka import Talk, request, response
from tests.present.captures import write_capture


def small_capture(path: Path) -> Path:
    """A bit of everything: a produce and what was answered, an error, acks=0, a request without answer."""
    from base64 import b64encode

    from kdissect.record.records import Record
    from kdissect.record.write import write_batch

    records = [
        Record(0, 1_700_000_000_000, b"key-1", b"first", (("trace", b"\x01\x02"), ("none", None))),
        Record(1, 1_700_000_000_250, None, "größer \x1b[31m".encode()),
    ]
    batch = b64encode(write_batch(records, 4)).decode()
    partition = {"index": 3, "records": batch}
    topics = [{"name": "orders", "partitionData": [partition]}]
    produce = {"transactionalId": None, "timeoutMs": 1500, "topicData": topics}
    answered = {"index": 3, "errorCode": 6, "baseOffset": 41, "logAppendTimeMs": -1, "logStartOffset": 0}
    talk = (
        Talk()
        .ask(request("ApiVersions", 3, 1, "etl-1", clientSoftwareName="tool", clientSoftwareVersion="1.0"))
        .answer(
            response("ApiVersions", 3, 1, errorCode=0, apiKeys=[], throttleTimeMs=0, finalizedFeaturesEpoch=5)
        )
        .ask(request("Produce", 7, 2, "etl-1", acks=-1, **produce))
        .answer(
            response(
                "Produce",
                7,
                2,
                responses=[{"name": "orders", "partitionResponses": [answered]}],
                throttleTimeMs=0,
            )
        )
        .ask(request("Produce", 7, 3, "etl-1", acks=0, **produce))
        .ask(request("Heartbeat", 0, 4, "etl-1", groupId="g", generationId=1, memberId="m"))
        .close()
    )
    return write_capture(path, talk)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read.txt", ()),
        ("read-colour.txt", ("--color", "always", "-t", "e")),
        ("read-utc-bytes.txt", ("-t", "u", "-x", "-c", "1")),
        ("tree.txt", ("-V",)),
        ("tree-bytes.txt", ("-V", "-x", "-c", "2")),
        ("exchanges.ndjson", ("-T", "ndjson")),
        ("exchanges-records.ndjson", ("-T", "ndjson", "--records")),
        ("exchanges.csv", ("-T", "csv", "--records")),
        ("fields.tsv", ("-e", "number", "-e", "api", "-e", "latency", "-e", "topics")),
        ("records.ndjson", ("-T", "records")),
        ("records-hex.csv", ("-T", "records.csv", "--bytes", "hex")),
        ("connections.ndjson", ("-T", "connections")),
    ],
)
def test_read(
    name: str,
    arguments: tuple[str, ...],
    tmp_path: Path,
    update_golden: bool,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    ran = run(capsysbinary, "read", small_capture(tmp_path / "small.pcapng"), *arguments)
    assert (ran.code, ran.err) == (0, "")
    check_golden(f"read/{name}", ran.out.decode("utf-8"), update_golden)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("schema-fetch-12.txt", ("schema", "show", "Fetch", "12")),
        ("schema-produce-request-9.ndjson", ("schema", "show", "ProduceRequest", "9", "-T", "ndjson")),
        ("fields-exchanges.txt", ("fields", "exchanges")),
    ],
)
def test_what_is_known(
    name: str, arguments: tuple[str, ...], update_golden: bool, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    ran = run(capsysbinary, *arguments)
    assert (ran.code, ran.err) == (0, "")
    check_golden(name, ran.out.decode("utf-8"), update_golden)
