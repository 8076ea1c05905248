"""Values that the application packed, and how much they may unpack to."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import pytest

from kdissect.payload import packed
from kdissect.payload.decoder import PayloadDecoder
from kdissect.payload.packed import Unpacker, compression_of
from kdissect.payload.recognise import TOO_MUCH, recognise
from kdissect.record.compression import compress

PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": lambda data: compress(4, data),
    "lz4": lambda data: compress(3, data),
    "snappy": lambda data: compress(2, data),
}


@pytest.mark.parametrize("codec", PACKED)
def test_a_value_says_itself_what_it_is_packed_with(codec: str) -> None:
    data = PACKED[codec](b"abc")
    assert compression_of(data) == codec
    assert Unpacker().unpack(codec, data) == b"abc"


@pytest.mark.parametrize("codec", PACKED)
def test_what_unpacks_to_very_much_stays_as_it_is(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "LARGEST", 1_000)
    data = PACKED[codec](bytes(2_000))
    assert Unpacker().unpack(codec, data) is None
    assert recognise(data, "value", "orders", (), Unpacker()).compression is None


def test_zlib_is_bounded_too() -> None:
    assert Unpacker().unpack("zlib", zlib.compress(b"abc")) == b"abc"
    assert Unpacker().unpack("zlib", zlib.compress(b"abc")[:-4]) is None
    assert Unpacker().unpack("zlib", b"zz") is None


@pytest.mark.parametrize("codec", ["gzip", "zstd", "lz4"])  # snappy makes nothing so small
def test_all_values_together_have_a_bound_and_the_rest_says_why(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "FREE", 2_000_000)
    data = PACKED[codec](bytes(1_000_000))
    decoder, problems = PayloadDecoder(), set()
    sizes: list[int] = []
    monkeypatch.setattr(Unpacker, "unpack", _counted(Unpacker.unpack, sizes))
    for _ in range(100):
        problems.add(decoder.decode("t", "value", data).problem)
    assert sum(sizes) <= 2_000_000 + packed.A_BYTE * len(data) * 100
    assert problems == {None, TOO_MUCH}


def test_values_that_are_packed_as_usual_are_never_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "FREE", 10_000)
    data = gzip.compress(b'{"name": "someone", "n": 12345678}' * 10)
    decoder = PayloadDecoder()
    found = {decoder.decode("t", "value", data).problem for _ in range(1_000)}
    assert found == {None}


def test_what_is_broken_costs_only_what_it_may_have_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "FREE", 100_000)
    unpacker = Unpacker()
    for codec in PACKED:
        for _ in range(1_000):
            assert unpacker.unpack(codec, PACKED[codec](b"abc")[:-2]) is None
    assert not unpacker.is_exhausted


Unpack = Callable[[Unpacker, str, bytes], bytes | None]


def _counted(unpack: Unpack, sizes: list[int]) -> Unpack:
    def counting(self: Unpacker, codec: str, data: bytes) -> bytes | None:
        out = unpack(self, codec, data)
        sizes.append(len(out or b""))
        return out

    return counting
