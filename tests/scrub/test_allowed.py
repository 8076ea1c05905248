"""The allow-list keeps what it names, and nothing that only looks like it."""

from __future__ import annotations

import pytest

from kdissect.scrub.allowed import (
    KEPT_NAMES,
    is_known_setting,
    is_number,
    is_plain_value,
    is_version,
    kept_end,
    kept_phrases,
)


@pytest.mark.parametrize(
    "text", ["3.9.0", "4.3.1", "v1.22.2", "2.16.1-rdkafka-2.16.0", "7.9.0-ccs", "1.0-rc1"]
)
def test_a_version_is_one(text: str) -> None:
    assert is_version(text)


@pytest.mark.parametrize(
    "text",
    ["", "10.0.0.2", "192.168.7.15", "3.9.0-acme", "build-of-bob", "1" * 50, "10.0.0.1/secret", "3.9 0"],
)
def test_what_may_hold_a_name_is_no_version(text: str) -> None:
    assert not is_version(text)


@pytest.mark.parametrize("text", ["1", "-1", "0.5", "true", "compact,delete", "none", "9223372036854775807"])
def test_a_plain_value_is_one(text: str) -> None:
    assert is_plain_value(text)


@pytest.mark.parametrize("text", ["PLAINTEXT://broker:9092", "compact,orders", "/var/lib", "1e", "1.2.3"])
def test_other_values_are_not_plain(text: str) -> None:
    assert not is_plain_value(text)


def test_numbers_of_brokers_are_short_and_unsigned() -> None:
    assert is_number("1001")
    assert not is_number("-1")
    assert not is_number("12345678901")


def test_settings_that_kafka_knows_are_known() -> None:
    assert is_known_setting("retention.ms")
    assert not is_known_setting("ssl.keystore.password")
    assert not is_known_setting("acme.token")
    assert not is_known_setting(None)


def test_an_end_stays_only_behind_a_name() -> None:
    assert kept_end("app-changelog") == "-changelog"
    assert kept_end("-changelog") == ""
    assert kept_end("orders") == ""


def test_phrases_are_found_wherever_they_stand() -> None:
    text = "rebalance failed due to MemberIdRequiredException of bob"
    assert [text[start:end] for start, end in kept_phrases(text)] == ["rebalance failed due to"]


def test_nothing_kept_can_name_anybody() -> None:
    assert not {"orders", "alice", "test", "admin-password"} & KEPT_NAMES
