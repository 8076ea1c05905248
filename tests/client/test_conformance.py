from __future__ import annotations

import json
from typing import Any

from tests.cli.run import Ran
from tests.client.broker import CLOSE, TestBroker
from tests.client.running import Capsys, client
from tests.kafka import framed, response


def checks(ran: Ran, check: str) -> dict[tuple[str, int], dict[str, Any]]:
    found = map(json.loads, ran.lines)
    return {(each["api"], each["api_version"]): each for each in found if each["check"] == check}


DESCRIBED: dict[str, Any] = {
    "throttleTimeMs": 0,
    "errorCode": 0,
    "errorMessage": None,
    "clusterId": "c",
    "controllerId": 1,
    "brokers": [],
    "clusterAuthorizedOperations": 0,
}


def conforming(broker: TestBroker) -> None:
    """Let it be a broker that does as the schemas say."""
    broker.versions = {"Metadata": (1, 3), "ListGroups": (0, 4), "ApiVersions": (0, 3), "Heartbeat": (0, 1)}
    of_metadata = broker.answers["Metadata"]
    broker.answers["Metadata"] = lambda v, body: of_metadata(v, body) if v in range(1, 4) else CLOSE
    broker.answers["ListGroups"] = lambda v, _: {"groups": []} if v <= 4 else CLOSE


def test_a_broker_that_conforms_gets_a_table_without_complaint(
    capsysbinary: Capsys, broker: TestBroker
) -> None:
    conforming(broker)
    ran = client(capsysbinary, "conformance", broker, "-T", "ndjson")
    assert (ran.code, ran.err) == (0, "")
    answers = checks(ran, "answer")
    assert len(answers) == 3 + 5 + 4 + 2
    assert {each["outcome"] for (api, _), each in answers.items() if api != "Heartbeat"} == {"right"}
    assert answers["Heartbeat", 0]["outcome"] == "skipped"
    assert not [each for each in broker.asked if each.api == "Heartbeat"]
    outside = checks(ran, "outside")
    assert outside["ApiVersions", 4]["error"] == "UNSUPPORTED_VERSION"
    assert outside["Metadata", 0]["detail"] == "it closed the connection"
    assert {each["outcome"] for each in outside.values()} == {"right"}
    assert [each["outcome"] for each in checks(ran, "order").values()] == ["right"]
    table = client(capsysbinary, "conformance", broker)
    assert table.lines[0].split() == [
        "check",
        "api_key",
        "api",
        "api_version",
        "outcome",
        "error",
        "latency",
        "detail",
    ]


def test_what_does_not_conform_is_found(capsysbinary: Capsys, broker: TestBroker) -> None:
    conforming(broker)
    # A version that is not advertised is answered as if it were.
    broker.answers["ListGroups"] = lambda v, _: {"groups": []}
    broker.versions |= {"DescribeCluster": (0, 0), "ListOffsets": (1, 1)}
    # The response header has a version 1 where flexible ones have it; this one has not.
    broker.answers["DescribeCluster"] = lambda *_: framed(
        broker.correlation + response("DescribeCluster", 0, 0, **DESCRIBED)[5:]
    )
    # A byte is left; a null stands where none may be.
    broker.answers["ListOffsets"] = lambda *_: framed(broker.correlation + b"\0\0\0\0\xff")
    of_metadata = broker.answers["Metadata"]
    broker.answers["Metadata"] = lambda v, body: (
        framed(broker.correlation + b"\xff\xff\xff\xff" + b"\0" * 8) if v == 1 else of_metadata(v, body)
    )
    ran = client(capsysbinary, "conformance", broker, "-T", "ndjson", "--wrong")
    assert ran.code == 6
    every = client(capsysbinary, "conformance", broker, "-T", "ndjson")
    assert ran.err == every.err == f"kdissect: {len(ran.lines)} checks of {len(every.lines)} failed\n"
    found = checks(ran, "answer")
    assert found["DescribeCluster", 0]["detail"] == "the response header has version 0, not 1"
    assert "remainder" in found["ListOffsets", 1]["detail"]
    assert "null" in found["Metadata", 1]["detail"]
    assert {each["outcome"] for each in found.values()} == {"wrong"}
    assert len(found) == 3
    found = checks(ran, "outside")
    assert found["ListGroups", 5]["detail"] == "it answered a version that it does not advertise"


def test_versions_that_no_request_can_name_are_not_asked(capsysbinary: Capsys, broker: TestBroker) -> None:
    conforming(broker)
    broker.versions["ListGroups"] = (0, 32_767)
    ran = client(capsysbinary, "conformance", broker, "-T", "ndjson")
    assert not [key for key in checks(ran, "outside") if key[0] == "ListGroups"]
    (said,) = [
        each
        for each in map(json.loads, ran.lines)
        if each["outcome"] == "skipped" and "32767" in each["detail"]
    ]
    assert said["api"] == "ListGroups"


def test_answers_out_of_order_are_found(capsysbinary: Capsys, broker: TestBroker) -> None:
    conforming(broker)
    broker.swaps = True
    ran = client(capsysbinary, "conformance", broker, "-T", "ndjson", "--wrong", "--timeout", 0.2)
    (found,) = checks(ran, "order").values()
    assert "its response came before that to the older request" in found["detail"]


def test_a_broker_that_is_asked_to_change_data_needs_a_yes(capsysbinary: Capsys, broker: TestBroker) -> None:
    ran = client(capsysbinary, "conformance", broker, "--changing")
    assert ran.code == 2
    assert "--yes" in ran.err
    assert broker.asked == []
