"""What is said of a subject that two captures have."""

from __future__ import annotations

import pytest

from kdissect.insight.diff import differences
from kdissect.insight.difference import SAME
from kdissect.present.sanitise import width
from kdissect.tui.lists.differences import subject_lines, subjects, verdict_text
from tests.insight.test_diff import MS, measured, report

NAMES = "a-capture-of-monday-with-a-long-name.pcapng", "after.pcapng"


@pytest.mark.parametrize("room", [60, 78, 118, 238])
def test_names_of_measures_are_whole_and_no_line_is_too_long(room: int) -> None:
    before = report((measured(5 * MS, 4 * MS, 6 * MS, subject="OffsetForLeaderEpoch"),))
    after = report((measured(20 * MS, 19 * MS, 21 * MS, subject="OffsetForLeaderEpoch"),))
    (found,) = subjects(differences(before, after), "api")
    lines = [each.text for each in subject_lines(found, "api", NAMES, room)]
    assert max(map(width, lines)) <= room
    assert any(each.startswith("broker time p50 ") for each in lines)
    assert any(each.endswith("▲ worse: 4.0 times") for each in lines)


def test_what_may_be_chance_is_not_called_the_same() -> None:
    assert verdict_text(SAME).split() == ["not", "significant"]
