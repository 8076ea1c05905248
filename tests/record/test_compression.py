from __future__ import annotations

import gzip
import lzma
import random
import resource
import struct
import time
import zlib
from collections.abc import Callable

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from kdissect.record import compression
from kdissect.record.compression import CODECS, compress, decompress
from kdissect.record.frames import unpack_frame
from tests.amount import times

MIB = 1 << 20
NAMES = {codec: name for codec, name in enumerate(CODECS) if codec}
TEXT = b"".join(b"line %d of something that packs well enough\n" % i for i in range(20_000))


@settings(max_examples=times(30, 100), deadline=None)
@given(st.sampled_from(range(5)), st.binary(max_size=2_000), st.integers(0, 200), st.sampled_from([0, 1, 2]))
def test_what_was_packed_unpacks(codec: int, data: bytes, times: int, magic: int) -> None:
    data *= times
    found = decompress(codec, compress(codec, data, magic), magic)
    assert found.fault is None
    assert found.data == data


@pytest.mark.parametrize("codec", NAMES, ids=NAMES.get)
def test_other_writers_framing_is_read(codec: int) -> None:
    other: dict[int, list[bytes]] = {
        1: [gzip.compress(TEXT), gzip.compress(TEXT[:1_000]) + gzip.compress(TEXT[1_000:])],
        2: [snappy.compress(TEXT), compress(2, TEXT[:1_000]) + compress(2, TEXT[1_000:])],
        3: [
            lz4.frame.compress(TEXT),
            lz4.frame.compress(TEXT, block_linked=True, content_checksum=True, block_checksum=True),
            lz4.frame.compress(TEXT, store_size=False, block_size=lz4.frame.BLOCKSIZE_MAX64KB),
            lz4.frame.compress(TEXT[:1_000]) + lz4.frame.compress(TEXT[1_000:]),
        ],
        4: [
            zstandard.ZstdCompressor(write_content_size=True).compress(TEXT),
            zstandard.ZstdCompressor(write_checksum=True, level=19).compress(TEXT),
            zstandard.ZstdCompressor().compress(TEXT[:1_000])
            + zstandard.ZstdCompressor().compress(TEXT[1_000:]),
            b"\x50\x2a\x4d\x18\x03\0\0\0abc" + zstandard.ZstdCompressor().compress(TEXT),
        ],
    }
    for packed in other[codec]:
        assert decompress(codec, packed) == (TEXT, None)


def test_kafkas_headers_are_written() -> None:
    assert compress(2, b"x").startswith(b"\x82SNAPPY\0\0\0\0\1\0\0\0\1")
    assert compress(3, TEXT).startswith(bytes.fromhex("04224d18604082"))
    assert compress(3, TEXT, magic=1).startswith(bytes.fromhex("04224d18604082"))
    assert not compress(3, TEXT, magic=0).startswith(bytes.fromhex("04224d18604082"))
    with pytest.raises(ValueError, match="no codec 5"):
        compress(5, b"x")


def test_snappy_chunks_have_javas_block_size() -> None:
    packed, position, sizes = compress(2, TEXT), 16, []
    while position < len(packed):
        length = struct.unpack_from(">i", packed, position)[0]
        sizes.append(len(snappy.decompress(packed[position + 4 : position + 4 + length])))
        position += 4 + length
    assert set(sizes[:-1]) == {32 * 1024}


def with_lz4_header(frame: bytes, checksum: int) -> bytes:
    return frame[:6] + bytes([checksum]) + frame[7:]


def test_wrong_header_checksum_of_lz4_is_forgiven_before_magic_2_only() -> None:
    legacy = compress(3, TEXT, magic=0)
    right = compress(3, TEXT, magic=2)
    for magic in (0, 1):
        assert decompress(3, legacy, magic) == (TEXT, None)
        assert decompress(3, right, magic) == (TEXT, None)
        assert decompress(3, legacy + legacy, magic) == (TEXT + TEXT, None)
        assert decompress(3, with_lz4_header(right, 0), magic).fault is not None
    assert decompress(3, legacy, 2).fault is not None


def test_legacy_checksum_covers_the_content_size_too() -> None:
    from kdissect.record.lz4_header import xxh32

    frame = lz4.frame.compress(b"abc" * 100, store_size=True)
    assert (xxh32(frame[4:14]) >> 8) & 0xFF == frame[14]
    legacy = frame[:14] + bytes([(xxh32(frame[:14]) >> 8) & 0xFF]) + frame[15:]
    assert decompress(3, legacy, 0) == (b"abc" * 100, None)


@pytest.mark.parametrize("codec", NAMES, ids=NAMES.get)
def test_data_cut_anywhere_give_the_bytes_so_far_and_a_fault(codec: int) -> None:
    text = TEXT[:3_000]
    packed = compress(codec, text)
    for cut in range(len(packed)):
        found = decompress(codec, packed[:cut])
        assert text.startswith(found.data)
        if found.fault is None:  # snappy's framing has no end of its own
            assert codec == 2
            assert cut == 16
        else:
            assert found.fault.kind == "bad-compressed-data"


@pytest.mark.parametrize("codec", [1, 3, 4], ids=["gzip", "lz4", "zstd"])
def test_blocks_before_the_damage_are_kept(codec: int) -> None:
    data = TEXT * 2
    packed = bytearray(compress(codec, data))
    middle = len(packed) * 3 // 4
    packed[middle : middle + 200] = b"\xff" * 200
    found = decompress(codec, bytes(packed))
    assert found.fault is not None
    assert len(found.data) > 300_000
    assert data.startswith(found.data[:300_000])


def test_bytes_after_the_last_stream_are_a_fault() -> None:
    for codec in (1, 3, 4):
        found = decompress(codec, compress(codec, TEXT) + b"more")
        assert found.data == TEXT
        assert found.fault is not None


@settings(max_examples=times(100, 300), deadline=None)
@given(st.sampled_from(sorted(NAMES)), st.binary(max_size=200), st.sampled_from([0, 2]), st.data())
def test_mutated_data_give_a_fault_and_never_an_exception(
    codec: int, data: bytes, magic: int, draw: st.DataObject
) -> None:
    packed = bytearray(compress(codec, data * 3, magic))
    for _ in range(3):
        packed[draw.draw(st.integers(0, len(packed) - 1))] = draw.draw(st.integers(0, 255))
    assert len(decompress(codec, bytes(packed), magic).data) <= 64 * MIB
    assert len(decompress(codec, bytes(data), magic).data) <= 64 * MIB


def test_codec_none_is_bounded_too_and_unknown_codecs_are_named() -> None:
    assert decompress(0, TEXT) == (TEXT, None)
    assert decompress(0, TEXT, room=10).data == TEXT[:10]
    found = decompress(6, TEXT)
    assert found.fault is not None
    assert found.fault.kind == "unknown-codec"


@pytest.mark.parametrize("codec", NAMES, ids=NAMES.get)
def test_exactly_the_limit_is_allowed_and_one_byte_more_is_not(codec: int) -> None:
    packed = compress(codec, TEXT)
    assert decompress(codec, packed, room=len(TEXT)) == (TEXT, None)
    found = decompress(codec, packed, room=len(TEXT) - 1)
    assert found.fault is not None
    assert found.fault.kind == "decompression-limit"
    assert TEXT.startswith(found.data)
    assert codec == 2 or len(found.data) == len(TEXT) - 1


def test_ratio_counts_beyond_the_first_mib() -> None:
    nothing = bytes(8 * MIB)
    packed = zstandard.ZstdCompressor().compress(nothing)
    assert decompress(4, packed).data == nothing[: max(MIB, 1_000 * len(packed))]
    assert len(decompress(4, compress(4, bytes(MIB))).data) == MIB


def gigabyte(codec: int) -> bytes:
    """What unpacks to a GiB, made without having it."""
    piece = bytes(MIB)
    if codec == 1:
        # Four members of a quarter each.
        packer = zlib.compressobj(9, wbits=31)
        return b"".join([*(packer.compress(piece) for _ in range(256)), packer.flush()]) * 4
    if codec == 2:
        chunk: bytes = snappy.compress(piece)
        return compress(2, b"") + (struct.pack(">i", len(chunk)) + chunk) * 1_024
    if codec == 3:
        frame: bytes = lz4.frame.compress(bytes(64 * MIB))
        return frame * 16
    return zstandard.ZstdCompressor().compress(bytes(64 * MIB)) * 16


@pytest.mark.parametrize("codec", NAMES, ids=NAMES.get)
def test_a_gigabyte_in_a_nutshell_is_unpacked_up_to_the_limit(codec: int) -> None:
    bomb = gigabyte(codec)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    found = decompress(codec, bomb)
    spent = time.process_time() - started
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert found.fault is not None
    assert found.fault.kind == "decompression-limit"
    assert len(found.data) <= 64 * MIB
    assert spent < 20  # less than one on a machine that does nothing else
    assert grown < 200


def tiny_streams(codec: int) -> bytes:
    many: dict[int, Callable[[], bytes]] = {
        1: lambda: gzip.compress(b"") * 20_000,
        2: lambda: compress(2, b"") + b"\0\0\0\1\0" * 100_000,
        3: lambda: lz4.frame.compress(b"") * 20_000,
        4: lambda: zstandard.ZstdCompressor().compress(b"") * 20_000,
    }
    return many[codec]()


@pytest.mark.parametrize("codec", NAMES, ids=NAMES.get)
def test_many_streams_of_nothing_take_time_in_line_with_their_bytes(codec: int) -> None:
    data = tiny_streams(codec)
    started = time.process_time()
    assert decompress(codec, data) == (b"", None)
    assert time.process_time() - started < 30  # less than one on a machine that does nothing else


@pytest.mark.parametrize(
    "chunk", [b"\0\0\0\0" * 10_000, b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0", b"\x82SNAPPY\0"]
)
def test_impossible_xerial_chunks_end_it_at_once(chunk: bytes) -> None:
    good = compress(2, TEXT[:100])
    found = decompress(2, good + chunk)
    assert found.data == TEXT[:100]
    assert found.fault is not None


def test_snappy_block_that_announces_more_than_it_can_hold_is_refused_unseen() -> None:
    for size in (b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\x1f", b"\xff\xff\xff\xff\xff"):
        found = decompress(2, size + b"\0" * 20)
        assert found.data == b""
        assert found.fault is not None
        assert found.fault.kind == "bad-compressed-data"


def test_zstd_window_beyond_kafkas_is_refused() -> None:
    frame = b"\x28\xb5\x2f\xfd\x00" + bytes([(21 << 3)]) + b"\x01\x00\x00"
    found = decompress(4, frame)
    assert found.fault is not None
    assert "indow" in found.fault.message or "memory" in found.fault.message


def test_other_formats_are_named_as_damage() -> None:
    for codec in (1, 3, 4):
        assert decompress(codec, lzma.compress(TEXT)).fault is not None
        assert decompress(codec, b"").fault is not None


def test_what_a_zstd_frame_unpacks_to_does_not_depend_on_what_came_before() -> None:
    """A decompressor that was used has larger buffers, in which copies from beyond the window are found."""
    parameters = zstandard.ZstdCompressionParameters(window_log=21, write_content_size=False)
    data = random.Random(1).randbytes(700_000)
    whole = zstandard.ZstdCompressor(compression_params=parameters).compress(data * 2)
    narrow = whole[:5] + b"\x38" + whole[6:]  # a window of 128 KiB, where copies are 700 kB away
    alone = decompress(4, narrow)
    assert alone.fault is not None
    assert decompress(4, whole).data == data * 2
    assert decompress(4, narrow) == alone


def some_frame(dice: random.Random, codec: int) -> bytes:
    """A frame of some writer, often damaged, cut or with something behind it."""
    size = dice.choice((0, 20, 3_000, 100_000))
    data = TEXT[:size] if dice.random() < 0.7 else dice.randbytes(size)
    if codec == 3:
        packed = lz4.frame.compress(
            data,
            block_linked=dice.random() < 0.5,
            store_size=dice.random() < 0.5,
            content_checksum=dice.random() < 0.5,
        )
    elif codec < 3:
        packed = compress(codec, data) if dice.random() < 0.5 or codec == 1 else snappy.compress(data)
    else:
        has_size, has_checksum = dice.random() < 0.5, dice.random() < 0.5
        packed = zstandard.ZstdCompressor(write_content_size=has_size, write_checksum=has_checksum).compress(
            data
        )
    out = bytearray(packed)
    match dice.randrange(6):
        case 0:
            out[dice.randrange(min(len(out), 12))] ^= 1 << dice.randrange(8)
        case 1:
            out[dice.randrange(len(out))] = dice.randrange(256)
        case 2:
            del out[dice.randrange(len(out)) :]
        case 3:
            out += packed if dice.random() < 0.5 else b"abc"
    return bytes(out)


@pytest.mark.parametrize(("codec", "magic"), [(1, 2), (2, 2), (3, 1), (3, 2), (4, 2)])
def test_what_is_unpacked_at_once_is_what_the_long_way_unpacks(
    codec: int, magic: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the decompressor was used before."""
    dice = random.Random(codec)
    frames = [some_frame(dice, codec) for _ in range(times(200, 1_500))]
    found = [decompress(codec, each, magic) for each in frames]
    again = [decompress(codec, each, magic) for each in reversed(frames)]
    monkeypatch.setattr(compression, "unpack_frame", lambda *_: None)
    assert found == again[::-1] == [decompress(codec, each, magic) for each in frames]
    assert sum(each.fault is None for each in found) > len(frames) / 5


def test_most_batches_are_unpacked_at_once() -> None:
    for codec, magic in ((1, 2), (2, 2), (3, 1), (3, 2), (4, 2)):
        for data in (TEXT[:200], TEXT[:12_000]):
            packed = compress(codec, data, magic)
            assert unpack_frame(codec, packed, magic, MIB) == data
            assert unpack_frame(codec, packed + b"x", magic, MIB) is None
            assert unpack_frame(codec, packed[:-1], magic, MIB) is None
            assert unpack_frame(codec, packed, magic, len(data) - 1) is None


@pytest.mark.parametrize("size", [1, 255, 256, 65_791, 65_792, 70_000])
@pytest.mark.parametrize("is_told", [True, False])
def test_a_zstd_frame_of_any_size_is_unpacked_at_once(size: int, is_told: bool) -> None:
    data = TEXT[:size]
    packed = zstandard.ZstdCompressor(write_content_size=is_told).compress(data)
    assert unpack_frame(4, packed, 2, MIB) == data
    assert unpack_frame(4, packed, 2, size - 1) is None


@pytest.mark.parametrize("at", range(5))
def test_a_zstd_header_that_is_none_or_is_out_of_the_ordinary_is_left_to_others(at: int) -> None:
    packed = zstandard.ZstdCompressor(write_content_size=True).compress(TEXT[:300])
    changed = bytearray(packed)
    changed[at] ^= 0x08  # in the fifth byte, a bit that is reserved
    assert unpack_frame(4, bytes(changed), 2, MIB) is None
    assert [unpack_frame(4, packed[:cut], 2, MIB) for cut in range(20)] == [None] * 20
