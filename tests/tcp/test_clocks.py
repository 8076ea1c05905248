"""How long a pause was by the clocks of both ends."""

from __future__ import annotations

import pytest

from kdissect.model import Endpoint
from kdissect.tcp.clocks import MOST_HALTS
from kdissect.tcp.duplex import Duplex
from kdissect.tcp.facts import tcp_facts
from tests.tcp.segments import BROKER, CLIENT, Wire

MS = 1_000_000
S = 1_000 * MS


class Ends:
    """A connection whose two ends have clocks.

    :param tick_ms: what these count.
    """

    def __init__(self, tick_ms: float = 1, first: int = 0xFFFF_F000) -> None:
        self._wire, self._tick_ms, self._first = Wire(), tick_ms, first
        self._duplex: Duplex | None = None
        self._said = {CLIENT: 0, BROKER: 0}

    def say(self, who: Endpoint, at_s: float, true_s: float | None, reads: bool = False) -> None:
        """A byte.

        :param at_s: by the clock of the capture.
        :param true_s: by the clock of the end; None if it has no timestamps.
        :param reads: whether the connection is to take it in the quick way, as far as it can.
        """
        other = BROKER if who == CLIENT else CLIENT
        made = self._wire.segment(who, self._said[who], b"x", ack=self._said[other], at_ns=int(at_s * S))
        if true_s is not None:
            clock = (self._first + int(true_s * 1000 / self._tick_ms)) & 0xFFFFFFFF
            made = made._replace(clock=clock)
        made = made._replace(window=100)
        self._duplex = self._duplex or Duplex(made)
        numbers = made.seq, made.ack, made.window, made.identity, made.payload, 0, 1, False, made.clock
        side = 0 if who == self._duplex.endpoints[0] else 1
        if not reads or not self._duplex.take(made.packet, made.timestamp_ns, side, *numbers):  # type: ignore[arg-type]
            self._duplex.feed(made)
        self._said[who] += 1

    def talk(self, at_s: float, true_s: float | None, reads: bool = False) -> None:
        """Both, one after the other."""
        for who in (CLIENT, BROKER):
            self.say(who, at_s, true_s, reads)

    @property
    def halts(self) -> list[int]:
        assert self._duplex is not None
        found: list[int] = tcp_facts(self._duplex, 0)["clock_halts"]
        return found


def paused(true_s: float, tick_ms: float = 1, before_s: int = 8) -> list[int]:
    """After a pause of 4 s by the clock of the capture."""
    ends = Ends(tick_ms)
    for at in range(2 * before_s + 1):
        ends.talk(at / 2, at / 2)
    ends.talk(before_s + 4, before_s + true_s)
    return ends.halts


@pytest.mark.parametrize("reads", [False, True])
def test_a_pause_that_took_the_ends_no_time_is_a_halt(reads: bool) -> None:
    ends = Ends()
    for at in range(9):
        ends.talk(at / 2, at / 2, reads)
    for at in range(9, 20):
        ends.talk(at / 2 + 4, at / 2, reads)
    assert ends.halts == [4 * S, 8 * S + S // 2, S // 2]


def test_at_most_half_of_it_may_have_passed_for_them() -> None:
    assert paused(0) == [8 * S, 12 * S, 0]
    assert paused(1.9) == [8 * S, 12 * S, 1_900 * MS]
    assert not paused(2.001)
    assert not paused(4)


def test_both_ends_must_say_so() -> None:
    """A machine that stands still has a clock that does, too."""
    ends = Ends()
    for at in range(9):
        ends.talk(at / 2, at / 2)
    ends.say(CLIENT, 8, 8)
    ends.say(BROKER, 8, 4)
    assert not ends.halts


@pytest.mark.parametrize("tick_ms", [10 / 3, 4, 10, 500])
def test_a_clock_that_counts_longer_steps_tells_nothing(tick_ms: float) -> None:
    for before_s in (1, 2, 3, 8, 40):
        assert not paused(4, tick_ms, before_s)
        assert not paused(0, tick_ms, before_s)


def test_a_long_pause_after_a_short_time_is_a_halt_unless_the_ticks_may_be_longer() -> None:
    """The clock was read once, when the connection began. Two seconds later, the capture's clock is set."""
    for set_s in (12, 30, 100):
        ends = Ends()
        for at in range(5):
            ends.talk(at / 2, at / 2)
        ends.talk(2.5 + set_s, 2.5)
        assert ends.halts == [2 * S, (2 + set_s) * S + S // 2, S // 2], set_s
    assert not paused(0, before_s=1)  # as many ticks as a clock with ticks of 5 ms counts in 5 s
    assert paused(0, before_s=2)


def test_time_that_may_lack_before_a_pause_does_not_make_it_a_halt() -> None:
    """The capture's clock is set where nothing can be measured, and an end stands still soon after."""
    ends = Ends()
    ends.talk(0, 0)
    ends.talk(0.5, 0.5)
    for at in (4, 4.5, 5):
        ends.talk(at, at - 3)  # 3 s of the 3.5 did not pass
    ends.talk(9, 6)
    assert not ends.halts
    for at in (10, 11, 12, 13, 17.5):
        ends.talk(at, at - 3 if at < 14 else 10.5)
    assert ends.halts == [13 * S, 17 * S + S // 2, S // 2]


@pytest.mark.parametrize("set_s", [1.5, 2.5])
def test_time_that_lacks_in_one_pause_does_not_lack_in_the_next(set_s: float) -> None:
    ends = Ends()
    for at in range(9):
        ends.talk(at, at)
    ends.talk(14, 14 - set_s)
    for at in (15, 16, 17, 18, 21):
        ends.talk(at, at - set_s)
    assert not [each for each in ends.halts if each >= 15 * S]


@pytest.mark.parametrize("fast", [0.9999, 1.0001])
def test_what_drifts_for_long_is_no_halt(fast: float) -> None:
    """Of a broker that stands still the clock goes on."""
    ends = Ends()
    for at in range(0, 80_000):
        ends.talk(at / 2, at / 2 * fast)
    ends.talk(40_003, 40_003 * fast)
    assert not ends.halts


def test_without_timestamps_nothing_is_known() -> None:
    ends = Ends()
    for at in range(9):
        ends.talk(at / 2, None)
    ends.talk(30, None)
    assert not ends.halts


def test_clocks_may_drift_and_are_read_again_where_they_were_set() -> None:
    ends = Ends()
    for at in range(0, 4_000):
        ends.talk(at / 2, at / 2 * 1.0001)
    ends.talk(2_003.5, 1_999.5 * 1.0001)
    assert ends.halts[:2] == [1999 * S + S // 2, 2003 * S + S // 2]
    ends.talk(2_004, 5_000)  # set
    for at in (8, 20, 28, 33, 36):
        ends.talk(2_000 + at, 4_996 + at)
    assert len(ends.halts) == 3
    ends.talk(2_043, 5_032.1)
    assert ends.halts[3:5] == [2_036 * S, 2_043 * S]


def test_only_some_are_kept() -> None:
    ends = Ends()
    for at in range(40):
        ends.talk(10 * at, 5 * at)
    assert len(ends.halts) <= 3 * MOST_HALTS


@pytest.mark.parametrize("absurd_s", [-9_223_372_036, -1, 9_223_372_036])
@pytest.mark.parametrize("reads", [False, True])
def test_times_too_far_apart_for_64_bits_are_no_pause(reads: bool, absurd_s: int) -> None:
    """Damage may give a packet any time."""
    ends, now_s = Ends(), 1_700_000_000
    for at in range(17):
        ends.talk(now_s + at / 2, at / 2, reads)
    ends.say(CLIENT, now_s + 12, 8.5, reads)
    ends.say(BROKER, absurd_s, 8.5, reads)
    ends.talk(now_s + 13, 9.5, reads)
    ends.talk(absurd_s, 10, reads)
    ends.talk(now_s + 14, 10.5, reads)
    assert ends.halts == ([] if absurd_s > 0 else [(now_s + 8) * S, (now_s + 12) * S, S // 2])
