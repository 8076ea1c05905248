"""Names of secrets, in names and in bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.present.secret_names import _WORDS, contains_secret_name, suggests_secret


@pytest.mark.parametrize(
    "name", ["ssl.key.password", "X-Api-Key", "saltedPassword", "SASL_JAAS", "client secret"]
)
def test_a_name_of_a_secret_is_one_in_bytes_too(name: str) -> None:
    assert suggests_secret(name)
    assert contains_secret_name(b"\xff\x00" + name.encode() + b"\xe9=hunter2")


@pytest.mark.parametrize("name", ["key.serializer", "group.id", "passing words", "to  ken"])
def test_another_name_is_none(name: str) -> None:
    assert not contains_secret_name(name.encode())


@given(
    st.lists(
        st.one_of(
            st.sampled_from(_WORDS).map(str.encode),
            st.sampled_from(
                [b"pass", b"word", b"WD", b"-", b"_", b"--", b" ", b"\xff", b"\x00", b"k", "\u212a".encode()]
            ),
            st.binary(max_size=3),
        )
    )
)
def test_bytes_are_searched_as_the_words_say(parts: list[bytes]) -> None:
    data = b"".join(parts)
    words = "|".join(r"[\W_]?".join(word) for word in _WORDS)
    assert contains_secret_name(data) == (re.search(words.encode(), data, re.IGNORECASE) is not None)


def test_looking_through_bytes_takes_as_long_as_copying_them_some_times() -> None:
    def seconds(look: Callable[[bytes], object]) -> float:
        begun = process_time()
        look(data)
        return process_time() - begun

    data = bytes(range(256)) * 0x8000
    copied, searched = (min(seconds(each) for _ in range(3)) for each in (bytes.upper, contains_secret_name))
    assert searched < 40 * copied, "a name tried at each byte takes 140 times as long"
