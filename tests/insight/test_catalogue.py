"""What holds for every rule and its page."""

from __future__ import annotations

import re

import pytest

from kdissect.insight.catalogue import RULES
from kdissect.insight.causes import CAUSES
from kdissect.insight.errors import causes
from kdissect.insight.finding import CONFIDENCES, SEVERITIES
from kdissect.protocol.errors import error_names
from tests.amount import each_of
from tests.shared import requires_shared, shared


@each_of(lambda: sorted(RULES))
def test_a_rule_has_a_page(id: str) -> None:
    rule = RULES[id]
    assert rule.severity in SEVERITIES
    assert rule.confidence in CONFIDENCES
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", id)
    page = rule.page
    assert page.what
    assert page.why
    assert page.do
    assert page.sources
    assert not any(name.strip() != name or " " in name for name in page.configs)


@pytest.mark.parametrize("id", sorted(each.id for each in RULES.values() if each.thresholds))
def test_a_page_says_what_each_threshold_is(id: str) -> None:
    rule = RULES[id]
    assert list(rule.page.thresholds) == list(rule.thresholds)
    assert all(rule.page.thresholds.values())


def test_a_page_without_thresholds_names_none() -> None:
    assert not any(each.page.thresholds for each in RULES.values() if not each.thresholds)


def test_a_page_has_a_rule() -> None:
    from importlib.resources import files

    pages = {each.name.removesuffix(".txt") for each in files("kdissect.insight").joinpath("pages").iterdir()}
    assert pages == set(RULES)


@requires_shared
def test_causes_and_effects_are_of_the_catalogue() -> None:
    named = {id for cause in CAUSES for id in (cause.cause, cause.effect)}
    text = shared("notes/insight.md").read_text("utf-8")
    assert named <= {*RULES, *re.findall(r"\*\*([a-z0-9-]+)\*\*", text)}


@requires_shared
def test_severities_are_those_of_the_catalogue() -> None:
    text = shared("notes/insight.md").read_text("utf-8")
    pattern = r"\*\*([a-z0-9-]+)\*\*(?:, \*\*[a-z0-9-]+\*\*)* · ((?:critical|warning|notice|info)[^·]*)"
    told: dict[str, set[str]] = {}
    for id, severities in re.findall(pattern, text):
        told.setdefault(id, set()).update(each for each in SEVERITIES if each in severities)
    wrong = {id: each.severity for id, each in RULES.items() if id in told and each.severity not in told[id]}
    assert not wrong


def test_every_error_has_its_causes() -> None:
    assert list(causes()) == list(error_names().values())
    for name, known in causes().items():
        assert known.causes or name == "NONE"
