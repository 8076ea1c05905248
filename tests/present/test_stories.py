"""Stories as text."""

from __future__ import annotations

from kdissect.analysis.fold import MILLISECOND, SECOND
from kdissect.analysis.story import StoryLine
from kdissect.present.stories import story_lines


def line(last_ns: int, count: int = 1, records: int = 0) -> StoryLine:
    who = 0, "10.0.0.1:5000", "app"
    return StoryLine(2 * SECOND, last_ns, 7, *who, "sent a heartbeat", "beat", count, records)


def told(one: StoryLine) -> str:
    (text,) = story_lines([one], 0)
    return " ".join(text.split())


def test_what_goes_on_for_long_says_until_when() -> None:
    assert told(line(2 * SECOND)) == "2.000 app sent a heartbeat #7"
    assert told(line(5_250 * MILLISECOND, count=3)) == "2.000 app sent a heartbeat (3 times, until 5.250) #7"
    assert told(line(3 * SECOND - 1, count=3)) == "2.000 app sent a heartbeat (3 times) #7"
    assert (
        told(line(3 * SECOND, count=3, records=9))
        == "2.000 app sent a heartbeat (the first of 3, 9 records in all, until 3.000) #7"
    )
