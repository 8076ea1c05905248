"""Fixes name settings as the client library does."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.insight import options
from kdissect.insight.catalogue import RULES
from kdissect.insight.finding import CERTAIN, WARNING, Finding, FindingSubject
from kdissect.insight.options import OwnNames
from tests.insight.judged import CAPTURES, judged_file

FIX = "Raise session.timeout.ms, or lower max.poll.records."
SARAMA = " In sarama, session.timeout.ms is Consumer.Group.Session.Timeout. sarama has no max.poll.records."
FRANZ = " In franz-go, session.timeout.ms is SessionTimeout and max.poll.records is PollRecords."


def fixed(fix: str = FIX, *software: str | None, **subject: Any) -> str:
    """A fix for the clients ``c0``, ``c1`` … of group ``g``, each with its software."""
    names = [(f"c{number}", each) for number, each in enumerate(software)]
    clients = [{"client_id": name, "software": each} for name, each in names]
    members = [{"group": "g", "client_id": name, "member_id": f"{name}-1"} for name, _ in names]
    about = FindingSubject(**subject)
    finding = Finding("any", WARNING, CERTAIN, "groups", about, "It is so.", fix=fix)
    return OwnNames.of(clients, members).said(finding).fix


@pytest.mark.parametrize(
    ("software", "words"),
    [
        ("sarama", SARAMA),
        ("kgo", FRANZ),
        ("apache-kafka-java", ""),
        ("librdkafka", ""),
        (None, ""),
    ],
)
def test_a_fix_ends_with_the_names_of_the_library(software: str | None, words: str) -> None:
    assert fixed(FIX, software, client_id="c0") == FIX + words
    assert fixed(FIX, software, group="g") == FIX + words


def test_a_group_of_several_libraries_has_no_own_names() -> None:
    assert fixed(FIX, "sarama", "sarama", group="g") == FIX + SARAMA
    assert fixed(FIX, "sarama", "kgo", group="g") == FIX
    assert fixed(FIX, "sarama", "kgo", group="g", client_id="c1") == FIX + FRANZ
    assert fixed(FIX, "sarama", None, group="g") == FIX
    assert fixed(FIX, "sarama", group="other") == fixed(FIX, "sarama", broker="1") == FIX


@pytest.mark.parametrize(
    ("fix", "words"),
    [
        ("Nothing.", ""),
        ("Set group.max.session.timeout.ms of the broker.", ""),
        ("Set acks=all.", " In sarama, acks is Producer.RequiredAcks."),
        ("Nobody acks it.", ""),
        ("Set session.timeout.ms (sarama: Consumer.Group.Session.Timeout).", ""),
        ("Raise linger.ms.", " In sarama, linger.ms is Producer.Flush.Frequency."),
    ],
)
def test_only_settings_that_a_fix_names_are_told(fix: str, words: str) -> None:
    assert fixed(fix, "sarama", client_id="c0") == fix + words


def test_every_setting_in_the_table_is_named_by_a_page() -> None:
    texts = [f"{rule.page.do} {' '.join(rule.page.configs)}" for rule in RULES.values()]
    for library in options._LIBRARIES.values():
        assert [name for name in library.settings if not any(name in text for text in texts)] == []


def test_what_is_told_of_real_clients() -> None:
    found = judged_file(CAPTURES / "incidents" / "members-put-out.pcap.gz").findings
    fixes = {each.subject.client_id: each.fix for each in found if each.id == "rebalance-slow-member"}
    assert fixes["sarama-1"].endswith(" sarama has no max.poll.records or group.protocol.")
    assert fixes["franz-1"].endswith(" In franz-go, group.protocol is ServerSideBalancer.")
