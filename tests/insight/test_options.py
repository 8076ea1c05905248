"""Fixes name settings as the client library does."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.insight.catalogue import RULES
from kdissect.insight.finding import CERTAIN, WARNING, Finding, FindingSubject
from kdissect.insight.libraries import LIBRARIES
from kdissect.insight.options import OwnNames
from tests.insight.judged import CAPTURES, judged_file

FIX = "Raise session.timeout.ms, or lower max.poll.records."
SARAMA = " In sarama, session.timeout.ms is Consumer.Group.Session.Timeout. sarama has no max.poll.records."
KAFKAJS = " In KafkaJS, session.timeout.ms is sessionTimeout. KafkaJS has no max.poll.records."
KAFKA_GO = " In kafka-go, session.timeout.ms is SessionTimeout. kafka-go has no max.poll.records."
AIOKAFKA = " In aiokafka, session.timeout.ms is session_timeout_ms and max.poll.records is max_poll_records."
PYTHON = AIOKAFKA.replace("aiokafka", "kafka-python")
LIBRDKAFKA = " librdkafka has no max.poll.records."
FRANZ = " In franz-go, session.timeout.ms is SessionTimeout and max.poll.records is PollRecords."


def fixed(fix: str = FIX, *software: str | None, **subject: Any) -> str:
    """A fix for the clients ``c0``, ``c1`` … of group ``g``, each with its software."""
    names = [(f"c{number}", each) for number, each in enumerate(software)]
    clients = [{"client_id": name, "software": each} for name, each in names]
    members = [{"group": "g", "client_id": name, "member_id": name, "offers": ["range"]} for name, _ in names]
    about = FindingSubject(**subject)
    finding = Finding("any", WARNING, CERTAIN, "groups", about, "It is so.", fix=fix)
    return OwnNames.of(clients, members).said(finding).fix


@pytest.mark.parametrize(
    ("software", "words"),
    [
        ("sarama", SARAMA),
        ("kgo", FRANZ),
        ("kafka-python", PYTHON),
        ("apache-kafka-java", ""),
        ("librdkafka", LIBRDKAFKA),
        ("confluent-kafka-python", LIBRDKAFKA),
        ("unheard-of", ""),
        (None, ""),
    ],
)
def test_a_fix_ends_with_the_names_of_the_library(software: str | None, words: str) -> None:
    assert fixed(FIX, software, client_id="c0") == FIX + words
    assert fixed(FIX, software, group="g") == FIX + words


@pytest.mark.parametrize(
    ("client_id", "words"),
    [
        ("kafkajs", KAFKAJS),
        ("aiokafka-0.14.0", AIOKAFKA),
        ("kafka-python-1.4.7", PYTHON),
        ("biller@host-1 (github.com/segmentio/kafka-go)", KAFKA_GO),
        ("kafkajs-1", ""),
        ("my-aiokafka-0.14.0", ""),
        ("aiokafka-producer", ""),
        ("kafka-go", ""),
        (None, ""),
    ],
)
def test_a_library_that_does_not_name_itself_is_known_by_its_default_client_id(
    client_id: str | None, words: str
) -> None:
    for software, expected in ((None, words), ("apache-kafka-java", "")):
        names = OwnNames.of([{"client_id": client_id, "software": software}], [])
        about = FindingSubject(client_id=client_id)
        finding = Finding("any", WARNING, CERTAIN, "groups", about, "It is so.", fix=FIX)
        assert names.said(finding).fix == FIX + expected


@pytest.mark.parametrize(
    ("offers", "software", "words"),
    [
        (["RoundRobinAssigner"], None, KAFKAJS),
        (["mine", "RoundRobinAssigner"], None, KAFKAJS),
        (["roundrobin", "range"], None, ""),
        (["RoundRobinAssigner"], "kgo", FRANZ),
        (None, None, ""),
    ],
)
def test_a_member_is_known_by_an_assignor_that_only_its_library_has(
    offers: list[str] | None, software: str | None, words: str
) -> None:
    clients = [{"client_id": "c", "software": software}]
    members = [{"group": "g", "client_id": "c", "member_id": "c-1", "offers": offers}]
    finding = Finding("any", WARNING, CERTAIN, "groups", FindingSubject(group="g"), "It is so.", fix=FIX)
    assert OwnNames.of(clients, members).said(finding).fix == FIX + words


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
    for library in LIBRARIES.values():
        assert [name for name in library.settings if not any(name in text for text in texts)] == []


def test_what_is_told_of_real_clients() -> None:
    found = judged_file(CAPTURES / "incidents" / "members-put-out.pcap.gz").findings
    fixes = {each.subject.client_id: each.fix for each in found if each.id == "rebalance-slow-member"}
    assert fixes["sarama-1"].endswith(" sarama has no max.poll.records or group.protocol.")
    assert fixes["franz-1"].endswith(" In franz-go, group.protocol is ServerSideBalancer.")
    found = judged_file(CAPTURES / "incidents" / "members-busy.pcap.gz").findings
    (fix,) = (each.fix for each in found if each.subject.client_id == "kafkajs-1" and "KafkaJS" in each.fix)
    assert fix.endswith(" In KafkaJS, session.timeout.ms is sessionTimeout.")
