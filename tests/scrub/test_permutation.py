"""Names and bytes become others of the same length, each into its own."""

from __future__ import annotations

from itertools import product
from string import ascii_lowercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.scrub.allowed import KEPT_NAMES
from kdissect.scrub.permutation import LONGEST, Permutation
from kdissect.scrub.values import encoded
from tests.scrub.runs import KEY, OTHER_KEY

PERMUTATION = Permutation(KEY)
NAMES = st.text(max_size=40) | st.binary(max_size=40).map(
    lambda data: data.decode("utf-8", "surrogateescape")
)


@given(NAMES)
def test_a_token_is_as_long_as_its_name(name: str) -> None:
    assert len(encoded(PERMUTATION.name(name))) == len(encoded(name))


@given(NAMES)
def test_a_name_has_one_token_for_a_key(name: str) -> None:
    assert PERMUTATION.name(name) == Permutation(KEY).name(name)


def test_another_key_makes_other_tokens() -> None:
    assert PERMUTATION.name("orders-eu") != Permutation(OTHER_KEY).name("orders-eu")


@given(st.sets(NAMES, max_size=30))
def test_two_names_never_have_one_token(names: set[str]) -> None:
    assert len({PERMUTATION.name(name) for name in names}) == len(names)


@pytest.mark.parametrize("length", [1, 2])
def test_short_names_do_not_collide(length: int) -> None:
    names = {"".join(letters) for letters in product(ascii_lowercase + "-_.", repeat=length)}
    tokens = {PERMUTATION.name(name) for name in names | {"ip", "+", "*"}}
    assert len(tokens) == len(names | {"ip", "+", "*"})


def test_a_long_name_is_cut_into_pieces() -> None:
    made = Permutation(KEY)
    one, other = "a" * LONGEST, "b" * LONGEST
    assert made.name(one + other + "c") == made.name(one) + made.name(other) + made.name("c")


def test_what_is_kept_stays_and_nothing_else_becomes_it() -> None:
    assert all(PERMUTATION.name(name) == name for name in KEPT_NAMES)
    letters = ascii_lowercase + "IP*+."
    names = {"".join(each) for each in product(letters, repeat=2)} - KEPT_NAMES
    assert not KEPT_NAMES & {PERMUTATION.name(name) for name in names}


def test_a_name_that_streams_makes_keeps_its_end() -> None:
    token = PERMUTATION.name("billing-counts-changelog")
    assert token.endswith("-changelog")
    assert not token.startswith("billing")


def test_a_token_consists_of_what_names_consist_of() -> None:
    assert set(PERMUTATION.name("orders.eu-west_1")) <= set("._-") | {
        letter for letter in map(chr, range(128)) if letter.isalnum()
    }


def test_letters_beyond_ascii_keep_their_bytes() -> None:
    token = PERMUTATION.name("aé€😀")
    assert [len(letter.encode()) for letter in token] == [1, 2, 3, 4]


@given(st.binary(max_size=60))
def test_bytes_keep_their_length(data: bytes) -> None:
    assert len(PERMUTATION.data(data)) == len(data)


def test_bytes_do_not_collide() -> None:
    for length in (1, 2):
        count = 256**length
        found = {PERMUTATION.data(number.to_bytes(length, "big")) for number in range(count)}
        assert len(found) == count
