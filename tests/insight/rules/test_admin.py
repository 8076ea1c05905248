"""Rules on changes that are asked for and refused."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.errors import Errors
from kdissect.insight.finding import NOTICE, Finding
from tests.insight.made import check_pages, row, said


def refused(**values: Any) -> dict[Any, Any]:
    usual = {"error": "INVALID_REPLICATION_FACTOR", "error_class": "fatal", "api": "CreateTopics", "count": 1}
    usual |= {"client": "10.0.0.3", "client_id": "deployer", "topic": "orders", "first_exchange": 4}
    usual |= {"first_ns": 5, "last_ns": 9, "last_exchange": 6}
    return row(Errors, **{**usual, **values})


def told(*rows: dict[Any, Any]) -> list[Finding]:
    return said("admin-refused", {Errors: list(rows)})


def test_what_is_asked_for_and_why_it_is_refused_is_told() -> None:
    (found,) = told(refused(), refused(topic="bills", count=2))
    assert found.message == (
        "deployer was refused 3 changes: to make topics (bills and orders), as the replication factor is "
        "below 1, or higher than there are brokers (INVALID_REPLICATION_FACTOR)."
    )
    assert (found.severity, found.count, found.exchanges) == (NOTICE, 3, (4, 6))
    assert found.cause == "Fewer brokers are alive than the requested replicas."
    assert found.fix == "Start brokers, or ask for fewer replicas."
    assert (found.subject.client_id, found.subject.topic) == ("deployer", None)


def test_what_a_client_is_refused_is_one_finding() -> None:
    groups = refused(api="DeleteGroups", error="NON_EMPTY_GROUP", topic=None)
    (found,) = told(groups, refused(), refused(error="INVALID_CONFIG"), refused(error="POLICY_VIOLATION"))
    assert "to delete groups, as the group has members (NON_EMPTY_GROUP); to make topics" in found.message
    assert found.message.endswith("; 1 more.")
    assert "Stop its members first. Start brokers" in found.fix
    assert found.filter == 'client_id == "deployer" and api in {CreateTopics, DeleteGroups}'
    assert len(told(groups, refused(client_id="other"))) == 2


def test_a_client_with_a_number_may_be_a_node() -> None:
    (found,) = told(refused(client_id="1"))
    assert found.message.startswith(
        "Client 1 (brokers name themselves by the number of their node) was refused 1 change: to make topics "
        "(orders), as "
    )
    assert found.subject.topic == "orders"


@pytest.mark.parametrize(
    "other",
    [
        {"error": "TOPIC_ALREADY_EXISTS"},  # it is there
        {"error": "TOPIC_AUTHORIZATION_FAILED"},  # of which authorization-denied tells
        {"error": "UNSUPPORTED_VERSION"},  # of which version-refused tells
        {"error": "NOT_CONTROLLER", "error_class": "retriable"},
        {"error_class": "routine"},
        {"api": "Produce"},
    ],
)
def test_what_harms_nobody_or_is_told_elsewhere_is_not_told(other: dict[str, Any]) -> None:
    assert not told(refused(**other))


def test_pages_are_whole() -> None:
    check_pages("admin")
