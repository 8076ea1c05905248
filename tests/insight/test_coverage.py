"""What a capture covers, beyond what its connections say."""

from __future__ import annotations

import pytest

from kdissect.analysis.fold import SECOND
from kdissect.insight.context import JudgingContext
from kdissect.insight.coverage import Coverage
from kdissect.limits import Limits
from tests.analysis.folds import made


def _coverage(*times_s: int, limits: Limits | None = None) -> Coverage:
    out = Coverage(limits or Limits())
    for at in times_s:
        out.feed(made("Metadata", 1, {"topics": []}, None, (at * SECOND, at * SECOND)))
    return out


@pytest.mark.parametrize(("second_s", "is_pause"), [(119, False), (121, False), (122, True), (3_600, True)])
def test_a_capture_pauses_where_nothing_happens_for_two_minutes(second_s: int, is_pause: bool) -> None:
    whole = _coverage(0, second_s, second_s + 1).context()
    assert bool(whole.pauses) == is_pause
    apart = _coverage(0)
    apart.merge(_coverage(second_s, second_s + 1))
    assert apart.context().pauses == whole.pauses


def test_a_pause_counts_for_no_duration() -> None:
    context = JudgingContext(silences=((10 * SECOND, 30 * SECOND), (30 * SECOND, 3_600 * SECOND)))
    assert context.awake_ns(0, 20 * SECOND) == 20 * SECOND
    assert context.awake_ns(0, 3_610 * SECOND) == 40 * SECOND
    assert context.awake_ns(60 * SECOND, 120 * SECOND) == 0
    assert _coverage(5, 3_605).context().pauses == ((6 * SECOND, 3_604 * SECOND),)


def test_a_hole_is_a_silence_where_bytes_are_missing() -> None:
    silent = _coverage(0, 18).context()
    assert silent.silences == ((2 * SECOND, 18 * SECOND),)
    assert not silent.pauses
    assert not silent.may_lack(0, 20 * SECOND)
    holed = silent._replace(gap_bytes=9)
    assert holed.may_lack(17 * SECOND, 20 * SECOND)
    assert not holed.may_lack(18 * SECOND, 20 * SECOND)


def test_where_not_all_is_kept_no_pause_is_told() -> None:
    assert _coverage(0, 600, limits=Limits(timeline_events=2)).context().silences == ()
