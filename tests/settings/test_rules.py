"""Rules and thresholds that do not exist are refused."""

from __future__ import annotations

import pytest

from kdissect.settings.rules import UnknownRuleError, refuse_unknown

RULE = "rebalance-long"


def test_rules_patterns_and_thresholds_are_known() -> None:
    refuse_unknown({RULE: {"stopped_s": 2}}, ["rebalance-*", "far-away"])


@pytest.mark.parametrize(
    ("thresholds", "ignored", "key", "words"),
    [
        ({}, ["far-awya"], "ignore", "ignore: there is no finding 'far-awya'; did you mean far-away?"),
        ({"rebalance-lon": {}}, (), "rebalance-lon", "did you mean rebalance-long?"),
        ({RULE: 3}, (), RULE, "a table is needed"),
        ({RULE: {"stoped_s": 3}}, (), "stoped_s", "did you mean stopped_s?"),
        ({RULE: {"stopped_s": "3"}}, (), "stopped_s", "a number is needed"),
        ({RULE: {"stopped_s": True}}, (), "stopped_s", "a number is needed"),
        ({RULE: {"stopped_s": float("inf")}}, (), "stopped_s", "a number is needed"),
        ({RULE: {"stopped_s": 0}}, (), "stopped_s", "a number above 0 is needed"),
    ],
)
def test_others_are_refused(thresholds: dict[str, object], ignored: list[str], key: str, words: str) -> None:
    with pytest.raises(UnknownRuleError) as told:
        refuse_unknown(thresholds, ignored)
    assert told.value.key == key
    assert words in str(told.value)
