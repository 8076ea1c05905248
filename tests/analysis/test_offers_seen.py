"""What brokers offer: the last exchange counts, and connections share what is the same."""

from __future__ import annotations

from itertools import permutations

from kdissect.analysis.offers_seen import OffersSeen, Ranges, ranges_of

ALL: Ranges = {0: (3, 13), 1: (4, 18), 18: (0, 4)}
ONE: Ranges = {18: (0, 3)}
OTHER: Ranges = {2: (1, 11)}


def body(ranges: Ranges) -> dict[str, object]:
    keys = [{"apiKey": key, "minVersion": low, "maxVersion": high} for key, (low, high) in ranges.items()]
    return {"apiKeys": keys}


def test_of_each_api_the_last_exchange_that_told_it_counts_in_any_order() -> None:
    for order in permutations([(1, ONE), (2, ALL), (3, OTHER), (4, ONE)]):
        whole, merged = OffersSeen(), OffersSeen()
        for number, ranges in order:
            whole.take_offers(number, ranges)
            part = OffersSeen()
            part.take_offers(number, ranges)
            merged.merge(part)
        for seen in (whole, merged):
            assert [seen.offers(key) for key in (0, 1, 2, 18)] == [(3, 13), (4, 18), (1, 11), (0, 3)]
            assert seen.offers(3) is None


def test_the_same_exchange_twice_is_one() -> None:
    seen = OffersSeen()
    for ranges in (ONE, ALL, ONE):
        seen.take_offers(1, ranges)
    assert [seen.offers(key) for key in (0, 18)] == [(3, 13), (0, 4)]


def test_an_answer_without_offers_tells_nothing() -> None:
    seen = OffersSeen()
    seen.take_offers(1, ALL)
    seen.take_offers(2, ranges_of({}))
    assert seen.offers(0) == (3, 13)


def test_the_same_offers_of_many_connections_are_kept_once() -> None:
    assert ranges_of(body(ALL)) == ALL
    assert ranges_of(body(ALL)) is ranges_of(body(ALL))


def test_a_part_that_was_merged_is_not_changed() -> None:
    part, whole = OffersSeen(), OffersSeen()
    part.take_offers(1, ALL)
    whole.merge(part)
    whole.take_offers(2, OTHER)
    assert part.ranges == ALL
    assert not part.others
    assert ranges_of(body(ALL)) == ALL
