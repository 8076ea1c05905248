"""Folds that are fed together have one budget of memory, and none is without room for the others' sake."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import pytest

from kdissect.analysis.catalogue import STATISTICS, statistic
from kdissect.analysis.fold_set import Together
from kdissect.analysis.ledgers import Ledgers
from kdissect.analysis.room import Room, begin_chapter, close_all, crowded, open_all, share
from kdissect.analysis.rows import Rows
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS
from kdissect.protocol.library import Library
from tests.analysis.folds import events_of

BUDGET = 1 << 20


def rooms(count: int, budget: int) -> list[Room]:
    found = [Room(DEFAULTS._replace(fact_bytes=budget)) for _ in range(count)]
    share(found)
    return found


def test_a_fold_alone_may_take_everything() -> None:
    room = Room(DEFAULTS._replace(fact_bytes=100))
    assert room.takes(60)
    assert not room.takes(41)
    assert room.refused
    assert room.takes(40)
    assert room.held == 100


def test_one_that_has_much_to_keep_leaves_room_for_the_others() -> None:
    greedy, *others = rooms(10, 1_000)
    while greedy.takes(10):
        pass
    assert greedy.held < 1_000 // 3
    assert all(each.takes(50) for each in others)
    assert not any(each.refused for each in others)


def test_all_together_keep_to_the_budget() -> None:
    every = rooms(5, 1_000)
    for each in every:
        while each.takes(7):
            pass
    assert 900 < sum(each.held for each in every) <= 1_000


def test_an_open_room_is_crowded_once_it_holds_more_than_a_strict_one_would() -> None:
    for greedy in (0, 1):
        strict, opened = rooms(3, 1_000), rooms(3, 1_000)
        open_all(opened)
        while strict[greedy].takes(10):
            assert opened[greedy].takes(10)
            assert not crowded(opened)
        assert opened[greedy].takes(10)
        assert crowded(opened) == {greedy: opened[greedy].held}


def test_open_rooms_are_crowded_once_they_share_more_than_there_is() -> None:
    opened = rooms(4, 1_000)
    open_all(opened)
    for each in opened:
        assert not crowded(opened)
        assert each.takes(260)
    assert set(crowded(opened)) == {0, 1, 2, 3}
    assert not any(each.refused for each in opened)


def test_only_those_that_took_of_the_common_half_in_this_chapter_are_crowded() -> None:
    opened = rooms(5, 1_000)
    open_all(opened)
    for each in opened[:3]:
        assert each.takes(260)
    begin_chapter(opened)
    assert not crowded(opened)
    assert opened[1].takes(5)
    assert opened[3].takes(250)
    assert opened[4].takes(100)
    assert crowded(opened) == {1: 265, 3: 250}


def test_what_is_far_beyond_the_budget_is_given_back_by_those_that_grew() -> None:
    opened = rooms(4, 1_000)
    open_all(opened)
    for each, size in zip(opened, (250, 200, 125, 0), strict=True):
        assert each.takes(size)
    begin_chapter(opened)
    for each, size in zip(opened[:3], (0, 150, 300), strict=True):
        assert each.takes(size)
    assert sum(each.held for each in opened) == 1_025
    assert crowded(opened) == {1: 350, 2: 425}
    assert opened[1].takes(150)
    kept = crowded(opened)
    assert kept[1] >= 200
    assert kept[2] >= 125
    assert 250 + sum(kept.values()) <= 1_000 + 1_000 // 4 - 125
    assert opened[3].takes(125)
    assert set(crowded(opened)) == {1, 2}


def test_a_crowded_room_keeps_little_more_than_any_may() -> None:
    opened = rooms(2, 1_000)
    open_all(opened)
    assert opened[0].takes(900)
    assert crowded(opened) == {0: 750}


def test_a_room_takes_the_place_of_another_one_with_what_it_may_keep() -> None:
    one, other, fresh = *rooms(2, 1_000), Room(DEFAULTS)
    open_all([one, other])
    assert one.takes(900)
    (most,) = crowded([one, other]).values()
    fresh.replace(one, most)
    assert fresh.takes(most)
    assert not fresh.takes(1)
    fresh.settle(one)
    assert (fresh.held, fresh.is_open) == (most, False)
    assert other.takes(250)
    assert not crowded([fresh, other])
    assert other.takes(10)
    assert crowded([fresh, other]) == {1: 260}


def test_a_sealed_room_takes_nothing_more() -> None:
    one, other = rooms(2, 1_000)
    open_all([one, other])
    one.seal()
    assert not one.takes(1)
    assert one.refused


def test_a_room_beside_others_takes_of_the_common_half_only() -> None:
    one, beside = (Room(DEFAULTS._replace(fact_bytes=1_000)) for _ in range(2))
    share([one], beside=beside)
    assert beside.takes(250)
    assert not beside.takes(1)
    assert one.takes(750)
    assert not one.takes(1)


def test_open_rooms_take_twice_the_budget_and_no_more() -> None:
    opened = rooms(2, 1 << 30)
    open_all(opened)
    assert opened[0].takes(3 << 29)
    assert not opened[1].takes((1 << 29) + 1)
    assert opened[1].refused
    assert opened[1].takes(1 << 29)


def test_open_rooms_note_what_is_beyond_other_limits() -> None:
    opened = rooms(2, 1_000)
    assert opened[0].refuses(True)
    assert not opened[0].refuses(False)
    open_all(opened)
    assert not opened[0].refuses(False)
    assert not crowded(opened)
    assert not opened[0].refuses(True)
    assert set(crowded(opened)) == {0}


def test_closed_rooms_count_what_they_held_while_they_were_open() -> None:
    every = rooms(2, 1_000)
    open_all(every)
    assert every[0].takes(400)
    assert not crowded(every)
    close_all(every)
    assert every[0].takes(100)
    assert not every[0].takes(10)
    assert every[1].takes(500)
    assert not every[1].takes(10)


def test_they_may_be_given_a_part_of_it() -> None:
    every = [Room(DEFAULTS._replace(fact_bytes=1_000)) for _ in range(5)]
    share(every, 80)
    for each in every:
        while each.takes(7):
            pass
    assert 720 < sum(each.held for each in every) <= 800


def test_what_was_taken_before_counts() -> None:
    one, other = (Room(DEFAULTS._replace(fact_bytes=100)) for _ in range(2))
    assert one.takes(90)
    share([one, other])
    assert not other.takes(40)
    assert other.takes(25)


def test_folds_keep_no_more_than_the_budget_however_long_a_capture_is() -> None:
    """The same traffic again and again, each time with other clients: rows of clients, connections and
    brokers would grow without end."""
    limits = DEFAULTS._replace(fact_bytes=BUDGET)
    names = [each for each, found in STATISTICS.items() if not found.is_deep]
    together = Together([statistic(each, limits)[1] for each in names])
    sizes = []
    for copies in (range(6), range(6, 12), range(12, 18)):
        for exchange in moved("java43-groups", copies):
            together.feed(exchange)
        sizes.append(size_of(together))
    assert sizes[2] < 2 * BUDGET
    # What folds read lately grows until it is full and is then forgotten, so sizes go up and down a little.
    assert sizes[2] - sizes[1] < sizes[0] / 10
    assert sum(each.left_out for each in together.statistics) > 0


def moved(case: str, copies: range) -> Iterator[Exchange]:
    """The exchanges of a capture, each copy later and with other addresses and connections."""
    found = [each for each in events_of(case) if isinstance(each, Exchange)]
    last = found[-1].last_packet
    for copy in copies:
        for each in found:
            endpoints = (each.client_endpoint, each.broker_endpoint)
            client, broker = (end[:1] + bytes([copy]) + end[2:] for end in endpoints)
            other = Exchange(
                each.connection + 1_000 * copy,
                client,
                broker,
                each.request,
                each.response,
                each.missing,
                number=each.number + len(found) * copy,
                topic_names=each.topic_names,
                behind_ns=each.behind_ns,
                network_ns=each.network_ns,
                throttle_ns=each.throttle_ns,
            )
            assert other.last_packet <= last
            yield other


_OF_THE_PROCESS = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, Library)
"""Code, and the definitions in use: they are there without any fold."""


def size_of(root: Any) -> int:
    """Bytes of everything that is reached from it."""
    seen: set[int] = set()
    waiting, size = [root], 0
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, _OF_THE_PROCESS):
            continue
        seen.add(id(each))
        size += sys.getsizeof(each)
        waiting.extend(gc.get_referents(each))
    return size


@pytest.mark.parametrize(
    "use",
    [
        lambda: made(Rows).row(1),
        lambda: made(Rows, int, None, 1_500, 10).row(1),
        lambda: made(Ledgers, 1, 10, 10, None).add_row(1, (2,)),
        lambda: made(Room).replace(made(Room), 1),
        lambda: made(Room).settle(made(Room)),
    ],
)
def test_objects_that_somebody_made_of_nothing_end_in_an_error(use: Callable[[], object]) -> None:
    """A pickle can make such objects. Compiled, they must not be read or written beyond their memory."""
    with pytest.raises((AttributeError, TypeError)):
        use()


def made(kind: Any, *given: object) -> Any:
    """An object of nothing, or of what is given, whatever its type."""
    return kind(*given) if given else kind.__new__(kind)
