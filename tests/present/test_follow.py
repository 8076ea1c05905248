"""Which bytes of a stream are shown, and how."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.model import Chunk, Gap
from kdissect.present.follow import EVERYTHING, MASK, Ranges, is_encrypted, piece_line
from kdissect.session.conversation import Connection

offsets = st.tuples(st.integers(0, 40), st.integers(0, 9)).map(lambda at: (at[0], at[0] + at[1]))


@given(st.lists(offsets, max_size=9), st.integers(0, 40), st.integers(0, 40))
def test_ranges_are_the_set_of_their_offsets(added: list[tuple[int, int]], start: int, end: int) -> None:
    known = {offset for first, last in added for offset in range(first, last)}
    found = list(Ranges(added).within(start, end))
    assert [at for first, last in found for at in range(first, last)] == sorted(known & {*range(start, end)})
    assert all(first < last for first, last in found)


@given(st.binary(max_size=40), st.integers(0, 20), st.lists(offsets, max_size=5))
def test_each_byte_is_shown_or_masked(data: bytes, offset: int, shown: list[tuple[int, int]]) -> None:
    known = {at for first, last in shown for at in range(first, last)}
    line = piece_line(0, Chunk(offset, data, 1, 0), Ranges(shown))
    expected = (f"{byte:02x}" if offset + at in known else MASK for at, byte in enumerate(data))
    assert line == "".join(expected)


def test_the_other_node_is_indented() -> None:
    assert piece_line(1, Chunk(0, b"\x01", 1, 0), EVERYTHING) == "\t01"


def test_missing_bytes_are_told_as_wireshark_does() -> None:
    line = piece_line(0, Gap(7, 200, "not captured", 1, 0), Ranges())
    assert bytes.fromhex(line) == b"[200 bytes missing in capture file]\0"


def connection(**told: Any) -> Connection:
    known: dict[str, Any] = {**dict.fromkeys(Connection._fields), **told}
    return Connection(**known)


@pytest.mark.parametrize(
    ("suite", "expected"),
    [
        ("TLS_AES_256_GCM_SHA384", True),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", True),
        ("TLS_RSA_WITH_NULL_SHA", False),
        ("TLS_SHA256_SHA256", False),  # it signs and does not encrypt (RFC 9150)
        ("0xfefe", False),
        (None, False),
    ],
)
def test_only_a_suite_that_is_known_to_encrypt_hides_what_it_carries(
    suite: str | None, expected: bool
) -> None:
    assert is_encrypted(connection(tls={"suite": suite})) is expected


def test_what_a_client_says_to_a_proxy_is_not_encrypted() -> None:
    assert not is_encrypted(connection(tls={"suite": "TLS_AES_128_GCM_SHA256"}, proxies=[{}]))
    assert not is_encrypted(connection())
