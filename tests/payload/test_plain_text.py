from __future__ import annotations

import pytest

from kdissect.payload.plain_text import plain_text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"abc", "abc"),
        ("größer\tals\r\n".encode(), "größer\tals\r\n"),
        (b"", None),
        (b"a\x1b[2J", None),
        (b"abc\xe2\x82", None),
    ],
)
def test_what_is_plainly_text(data: bytes, text: str | None) -> None:
    assert plain_text(data) == text


def test_of_bytes_that_are_cut_the_last_character_may_lack() -> None:
    assert plain_text(b"abc\xe2\x82", is_cut=True) == "abc"
    assert plain_text(b"abc\xffde", is_cut=True) is None
