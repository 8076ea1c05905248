"""dumpcap's rules, and its names."""

from __future__ import annotations

import re

import pytest

from kdissect.live.rotation import Bounds, bounds_of, file_name

ALL = ("duration", "interval", "filesize", "packets", "files")


def test_rules_are_dumpcaps() -> None:
    rules = ("filesize:10", "files:3", "duration:60", "packets:5", "interval:30")
    assert bounds_of(rules, ALL) == Bounds(60, 10_000, 5, 3, 30)
    assert bounds_of(("duration:1m", "interval:2m"), ALL) == Bounds(seconds=60, interval=120)
    assert bounds_of(("duration:500ms",), ALL) == Bounds(seconds=0.5)
    assert not Bounds(files=3).rotates
    assert Bounds(packets=1).rotates


@pytest.mark.parametrize(
    "rule", ["filesize", "size:1", "files:0", "files:-1", "duration:1y", "interval:500ms", "interval:9:9"]
)
def test_a_wrong_rule_names_the_form(rule: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{rule}: the form is duration:60s")):
        bounds_of((rule,), ALL)


def test_the_first_bound_that_is_reached_counts() -> None:
    bounds = Bounds(seconds=10, bytes=100)
    assert not bounds.are_reached(9.9, 99, 1_000_000)
    assert bounds.are_reached(10, 0, 0)
    assert bounds.are_reached(0, 100, 0)


def test_names_have_number_and_time() -> None:
    assert re.fullmatch(
        r"a/out_00007_\d{14}\.pcapng", file_name("a/out.pcapng", 7, 1_700_000_000_000_000_000)
    )
