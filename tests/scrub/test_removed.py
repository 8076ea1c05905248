"""What was taken away is remembered whole, however much it is."""

from __future__ import annotations

import pytest

from kdissect.scrub.removed import MOST_BYTES, Pile, Taken


@pytest.mark.parametrize("most", [1, 2, 7, 100])
def test_a_pile_holds_all_that_was_put_on_it_in_parts_of_its_size(most: int) -> None:
    pile = Pile(most)
    for number in range(50):
        pile.add(b"%d" % (number % 30), number)
    parts = list(pile.parts())
    assert all(len(part) <= most for part in parts)
    assert set().union(*parts) == {b"%d" % number for number in range(30)}
    assert min(part[b"7"] for part in parts if b"7" in part) == 7
    assert b"29" in pile
    assert b"30" not in pile
    assert pile
    assert not Pile()


def test_much_of_little_count_leaves_memory_too() -> None:
    pile = Pile()
    for number in range(5):
        pile.add(bytes((number,)) * (10 << 20))
    assert sum(map(len, next(pile.parts()))) < 32 << 20
    assert sum(len(part) for part in pile.parts()) == 5


def test_of_what_is_long_the_beginning_is_kept() -> None:
    taken = Taken()
    taken.add(b"a" * 100, b"b" * 100)
    assert b"a" * MOST_BYTES in taken.texts
    assert b"b" * 100 in taken.tokens


def test_what_is_short_or_stays_was_not_taken_away() -> None:
    taken = Taken()
    taken.add(b"abc", b"def")
    taken.add(b"orders", b"orders")
    assert not taken.texts
    assert not taken.tokens


def test_of_unknown_bytes_the_texts_are_remembered() -> None:
    taken = Taken()
    taken.add_unknown(b"\0\1secret-of-alice\xff\2ab")
    assert list(next(taken.texts.parts())) == [b"secret-of-alice"]


@pytest.mark.parametrize(
    ("data", "remembered"),
    [
        (b"\0\1!eligible.leader.replicas.version\0", []),
        (b"!eligible.leader.replicas.version(orders-of-alice", [b"(orders-of-alice"]),
        (b"\0*range\0Bsticky)", []),
        (b"\n127.0.0.1s5\0604800000", []),
        (b"\0!eligible.leader.rep\x8ccas.version", []),
        (b"\0strange-topic\0", [b"strange-topic"]),
        (b"\0client.dns.lookup=use_all\0", [b"client.dns.lookup=use_all"]),
    ],
)
def test_words_that_stay_elsewhere_are_not_looked_for(data: bytes, remembered: list[bytes]) -> None:
    taken = Taken()
    taken.add_unknown(data)
    assert sorted(next(taken.texts.parts())) == remembered
