"""Compressed files: told by content, in bounded pieces, with everything before damage."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable

import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from kdissect.capture.compressed import NothingYetError, Pieces

TEXT = b"".join(b"line %d of a text that packs well enough\n" % i for i in range(40_000))

Compress = Callable[[bytes], bytes]


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def lz4_frame(data: bytes) -> bytes:
    packed: bytes = lz4.frame.compress(data, content_checksum=True)
    return packed


CODECS: list[Compress] = [gzip.compress, zstd, lz4_frame]
each_codec = pytest.mark.parametrize("compress", CODECS)


class Dribble(io.BytesIO):
    """A pipe that has few bytes at a time."""

    def read1(self, size: int | None = -1) -> bytes:
        return super().read1(3)


def unpack(data: bytes, kind: type[io.BytesIO] = io.BytesIO) -> tuple[bytes, str | None]:
    pieces = Pieces(kind(data))
    found = list(pieces)
    assert all(found)
    return b"".join(found), None if pieces.fault is None else pieces.fault.kind


def test_plain_bytes_pass() -> None:
    assert unpack(TEXT) == (TEXT, None)
    assert unpack(b"") == (b"", None)
    assert unpack(b"x") == (b"x", None)


class Halting(io.BytesIO):
    """A file that grows: before each piece it has nothing for a while."""

    has_more = True

    def read1(self, size: int | None = -1) -> bytes:
        self.has_more = not self.has_more
        if not self.has_more:
            raise NothingYetError
        return super().read1(700)


@pytest.mark.parametrize("compress", [bytes, *CODECS])
def test_a_file_that_has_no_more_yet_gives_empty_pieces_and_goes_on(compress: Compress) -> None:
    pieces = Pieces(Halting(compress(TEXT)))
    found = list(pieces)
    assert (found[0], b"".join(found), pieces.fault) == (b"", TEXT, None)


@each_codec
def test_compression_is_told_by_content(compress: Compress) -> None:
    assert unpack(compress(TEXT)) == (TEXT, None)
    assert unpack(compress(TEXT[:5_000]), Dribble) == (TEXT[:5_000], None)


@each_codec
def test_frames_in_a_row_are_one_file(compress: Compress) -> None:
    assert unpack(compress(b"a") + compress(b"") + compress(TEXT)) == (b"a" + TEXT, None)


def test_padding_behind_gzip_is_no_damage() -> None:
    assert unpack(gzip.compress(TEXT) + bytes(70_000)) == (TEXT, None)


def test_a_skippable_frame_may_begin_a_zstd_file() -> None:
    assert unpack(b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + zstd(TEXT)) == (TEXT, None)


@each_codec
def test_what_breaks_off_gives_everything_before(compress: Compress) -> None:
    packed = compress(TEXT)
    found, kind = unpack(packed[: len(packed) // 2])
    assert TEXT.startswith(found)
    assert len(found) > len(TEXT) // 4
    assert kind == "bad-compression"


@each_codec
def test_a_wrong_checksum_at_the_end_loses_nothing(compress: Compress) -> None:
    packed = compress(TEXT[:3_000])
    at = len(packed) - (8 if compress is gzip.compress else 4)
    damaged = packed[:at] + bytes((packed[at] ^ 1,)) + packed[at + 1 :]
    assert unpack(damaged) == (TEXT[:3_000], "bad-compression")


@each_codec
def test_damage_in_the_middle_gives_everything_before(compress: Compress) -> None:
    first = compress(TEXT[:1_000])
    found, kind = unpack(first + b"\x00\x01garbage" * 40)
    assert (found, kind) == (TEXT[:1_000], "bad-compression")


@pytest.mark.parametrize(
    ("compress", "size"), [(gzip.compress, 1 << 26), (zstd, 1 << 27), (lz4_frame, 1 << 26)]
)
def test_a_bomb_comes_in_bounded_pieces(compress: Compress, size: int) -> None:
    total = 0
    for piece in Pieces(io.BytesIO(compress(bytes(size)))):
        assert len(piece) <= 40 << 20
        total += len(piece)
    assert total == size


@given(st.sampled_from(CODECS), st.data())
def test_any_damage_gives_bytes_and_a_fault(compress: Compress, data: st.DataObject) -> None:
    packed = bytearray(compress(TEXT[:2_000]))
    at = data.draw(st.integers(4, len(packed) - 1))
    packed[at] = data.draw(st.integers(0, 255))
    found, kind = unpack(bytes(packed))
    assert kind in (None, "bad-compression")
    assert kind is not None or len(found) == 2_000
