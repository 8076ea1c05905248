from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kdissect.present.hexdump import BYTES_A_LINE, hexdump


@given(st.binary(max_size=100), st.integers(0, 1 << 20))
def test_every_byte_stands_at_its_offset(data: bytes, start: int) -> None:
    found = b""
    for line in hexdump(data, start):
        offset, rest = line[:8], line[10 : 10 + BYTES_A_LINE * 3]
        assert int(offset, 16) == start + len(found)
        found += bytes.fromhex(rest)
    assert found == data


@given(st.binary(min_size=1, max_size=100))
def test_lines_are_plain_and_equally_long_up_to_the_text(data: bytes) -> None:
    lines = list(hexdump(data))
    assert all(line.isascii() and line.isprintable() for line in lines)
    assert {line.index("|") for line in lines} == {10 + BYTES_A_LINE * 3 + 1}


@given(st.binary(max_size=100))
def test_of_masked_bytes_only_the_number_is_told(data: bytes) -> None:
    assert list(hexdump(data, masked=True)) == list(hexdump(bytes(len(data)), masked=True))
    assert sum(line.partition("|")[0].count("**") for line in hexdump(data, masked=True)) == len(data)
