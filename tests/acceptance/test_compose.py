"""Captures in several shapes at once say the same (``python -m tests.acceptance.compose`` in full)."""

from __future__ import annotations

import random

import pytest

from tests.acceptance.compose import FILES, LINKS, SHAPES, captures, composed, failures
from tests.amount import times

PARTS = 4
COUNT = times(24, 80)


@pytest.mark.parametrize("part", range(PARTS))
def test_every_message_is_found_in_every_shape_and_no_other(part: int) -> None:
    assert failures(f"{part}-{number}" for number in range(COUNT // PARTS)) == []


def test_there_are_captures_of_all_kinds() -> None:
    assert len(captures()) > 30
    assert {protocol for whole in captures() for protocol in whole.protocols} >= {"kafka"}


def test_every_shape_changes_a_capture() -> None:
    whole = captures()[0]
    for shape in SHAPES:
        assert shape(list(whole.segments), random.Random(1)) != list(whole.segments)


def test_all_links_and_files_are_chosen() -> None:
    whole = min(captures(), key=lambda each: len(each.segments))
    names = [composed(whole, random.Random(number))[0] for number in range(300)]
    for name in (*LINKS, *FILES):
        assert any(f" + {name}" in each for each in names)
