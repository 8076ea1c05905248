"""What a capture covers, beyond what its connections say."""

from __future__ import annotations

import pytest

from kdissect.analysis.fold import SECOND
from kdissect.dissect import Event
from kdissect.faults import fault
from kdissect.insight.context import JudgingContext
from kdissect.insight.coverage import Coverage
from kdissect.limits import Limits
from tests.analysis.connected import over
from tests.analysis.folds import events_of, made
from tests.shared import requires_shared


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
    assert context.awake_ns(0, 3_610 * SECOND) == 36 * SECOND, "it may have begun up to 2 s before"
    assert context.awake_ns(0, 28 * SECOND) == 28 * SECOND
    assert context.awake_ns(60 * SECOND, 120 * SECOND) == 0
    assert _coverage(5, 3_605).context().pauses == ((6 * SECOND, 3_604 * SECOND),)


def _numbered(*times_s: float) -> Coverage:
    """Requests that came one after the other, each with the time that the clock showed."""
    out = Coverage()
    for number, at in enumerate(times_s, 1):
        ns = int(at * SECOND)
        event = made("Metadata", 1, {"topics": []}, None, (ns, ns))
        assert event.request is not None
        event.request.frame.last_packet = number
        out.feed(event)
    return out


HOUR = 3_600


@pytest.mark.parametrize(
    ("times_s", "set_back_s"),
    [
        ((HOUR, HOUR + 3, HOUR + 7), ()),
        ((HOUR, HOUR + 3, 5, 9), ((10, HOUR),)),
        ((0, HOUR, HOUR + 9, HOUR, HOUR + 9), ((HOUR + 2, HOUR + 8),)),
        ((10, 12, 14, 16, 11, 13), ((12, 14), (14, 16))),
        ((10, 13.99, 14.01, 13.98, 14.02), ()),
        ((10, 20, 19.99, 30), ()),
    ],
)
def test_what_came_later_with_an_earlier_time_shows_a_clock_that_was_set_back(
    times_s: tuple[float, ...], set_back_s: tuple[tuple[int, int], ...]
) -> None:
    expected = tuple((begin * SECOND, end * SECOND) for begin, end in set_back_s)
    assert _numbered(*times_s).context().set_back == expected


def test_the_order_in_which_exchanges_are_told_is_no_order_of_time() -> None:
    apart = [_numbered(HOUR, HOUR + 3, 5, 9) for _ in range(2)]
    apart[0].merge(_numbered(HOUR))
    assert apart[0].context().set_back == apart[1].context().set_back
    later, earlier = Coverage(), _numbered(1, 9)
    later.merge(_numbered(1, 9, 20, 40))
    later.merge(earlier)
    assert later.context().set_back == ()


def test_another_capture_counts_its_packets_anew() -> None:
    def both(first: Coverage, second: Coverage) -> JudgingContext:
        first.end_capture()
        second.end_capture()
        first.merge(second)
        return first.context()

    assert both(_numbered(1, 9, 20), _numbered(101, 109)).set_back == ()
    back = (12 * SECOND, 20 * SECOND)
    assert both(_numbered(1, 20, 10, 30), _numbered(101, 109)).set_back == (back,)
    assert both(_numbered(101, 109), _numbered(1, 20, 10, 30)).set_back == (back,)


@pytest.mark.parametrize(
    ("times_s", "is_earlier"),
    [((HOUR, HOUR + 9, 5, 9), True), ((10, 20, 15, 30), False), ((10, 20, 30), False), ((), False)],
)
def test_a_capture_may_end_at_an_earlier_time_than_its_latest(
    times_s: tuple[float, ...], is_earlier: bool
) -> None:
    assert _numbered(*times_s).context().ends_earlier == is_earlier


def test_where_a_file_came_late_packets_have_no_order_of_time() -> None:
    late = _numbered(HOUR, HOUR + 9, 5, 9)
    late.feed(fault("late-file", "a.pcap"))
    assert (late.context().set_back, late.context().ends_earlier) == ((), False)
    whole = _numbered(HOUR, HOUR + 9, 5, 9)
    whole.merge(late)
    assert whole.context().set_back == ()


def test_no_time_is_known_over_a_clock_that_was_set_back() -> None:
    context = JudgingContext(set_back=((20 * SECOND, 60 * SECOND),))
    assert context.awake_ns(0, 20 * SECOND) == context.seen_ns(0, 20 * SECOND) == 20 * SECOND
    assert context.awake_ns(0, 21 * SECOND) == context.seen_ns(59 * SECOND, 70 * SECOND) == 0
    assert not context.slept(0, 20 * SECOND)
    assert not context.slept(60 * SECOND, 70 * SECOND)
    assert context.slept(59 * SECOND, 70 * SECOND)


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


def _lacking(packet: int) -> Coverage:
    """A capture with five packets, 10 s apart, the given one of which shows a gap."""
    out = _numbered(10, 20, 30, 40, 50)
    out.feed(fault("gap", "9 bytes from the client: not captured", packet, 0, 7))
    return out


@pytest.mark.parametrize(("packet", "since_s"), [(1, 12), (3, 32), (5, 52), (9, 50)])
def test_a_connection_is_complete_after_the_packet_that_shows_its_last_gap(packet: int, since_s: int) -> None:
    assert _lacking(packet).context().complete_since == {7: since_s * SECOND}
    last = _lacking(packet)
    last.merge(_lacking(1))
    assert last.context().complete_since == {7: since_s * SECOND}


def test_the_packets_of_each_capture_are_counted_from_one() -> None:
    first, second = _lacking(3), _numbered(110, 120, 130)
    second.feed(fault("gap", "9 bytes from the client: not captured", 2, 0, 8))
    for each in (first, second):
        each.end_capture()
    first.merge(second)
    assert first.context().complete_since == {7: 32 * SECOND, 8: 122 * SECOND}


def test_a_clock_that_was_set_back_does_not_tell_when_bytes_were_missing() -> None:
    out = _numbered(HOUR, HOUR + 10, 10, 20)
    out.feed(fault("gap", "9 bytes from the client: not captured", 2, 0, 7))
    assert out.context().complete_since == {}


def _halted(*times_s: tuple[float, ...], alive_s: tuple[int, ...] = (0, 90)) -> Coverage:
    """Connections, each with the times that passed for neither of its ends."""
    out = _coverage(*alive_s)
    for number, times in enumerate(times_s):
        halts = [round(each * SECOND) for each in times]
        out.feed(over(number)._replace(end_ns=90 * SECOND, tcp={"clock_halts": halts}))
    return out


def test_halts_of_clocks_are_what_those_of_all_connections_have_in_common() -> None:
    whole = _halted((20, 24.5, 0.5), (20.4, 24, 0, 50, 55, 1))
    halts = ((round(20.4 * SECOND), 24 * SECOND), (50 * SECOND, 55 * SECOND))
    assert whole.context().halts == halts
    apart = _halted((20.4, 24, 0, 50, 55, 1))
    apart.merge(_halted((20, 24.5, 0.5)))
    assert apart.context().halts == halts


def test_a_time_is_no_halt_if_anything_happened_in_it() -> None:
    assert _halted((20, 26, 0), alive_s=(0, 90)).context().halts
    assert not _halted((20, 26, 0), alive_s=(0, 23, 90)).context().halts


@requires_shared
@pytest.mark.parametrize("case", ["java43-groups", "wrong-requests", "cluster43-combined"])
@pytest.mark.parametrize("steps", [None, 3])
def test_events_that_are_fed_together_count_as_one_by_one(case: str, steps: int | None) -> None:
    limits = Limits() if steps is None else Limits(timeline_events=steps)
    events = events_of(case)
    one_by_one = Coverage(limits)
    for event in events:
        one_by_one.feed(event)
    for size in (1, 7, 128, len(events)):
        together = Coverage(limits)
        for at in range(0, len(events), size):
            together.feed_all(events[at : at + size])
        assert together.context() == one_by_one.context()


@pytest.mark.parametrize("cut", range(9))
def test_connections_that_lack_bytes_are_the_same_however_a_capture_is_cut(cut: int) -> None:
    """Of more than a limit allows, those with the lowest numbers are known. Connections end in any order."""
    limits = Limits(rows=3)
    events: list[Event] = []
    for number in (9, 7, 8, 1, 6, 2, 5, 3):
        one_sided = over(connection=number, gaps=1)._replace(bytes_from_broker=0)
        events += [fault("gap", "bytes are missing", 10 * number, connection=number), one_sided]
    events += [fault("gap", "9 bytes (snap length)", 5, connection=number) for number in (8, 2)]
    whole, first, second = (Coverage(limits) for _ in range(3))
    whole.feed_all(events)
    for event in events[: 2 * cut]:
        first.feed(event)
    second.feed_all(events[2 * cut :])
    first.merge(second)
    assert first.context() == whole.context()
    assert whole.context().with_one_side.first == (1, 3)
