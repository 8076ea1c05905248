"""One whole frame, as nearly all compressed records are: unpacked at once, with decompressors that are kept.

:mod:`kdissect.record.compression` unpacks all others step by step, and says what is wrong.
"""

from __future__ import annotations

import zlib
from threading import local
from typing import TYPE_CHECKING, Any

from kdissect.later import Later
from kdissect.record.lz4_header import with_right_checksum

if TYPE_CHECKING:
    import lz4.frame as lz4_frame
    import snappy
    import zstandard
else:
    lz4_frame = Later("lz4.frame", "_frame")
    snappy = Later("snappy")
    zstandard = Later("zstandard", "backend_c")

XERIAL_MAGIC = b"\x82SNAPPY\0"
XERIAL_HEADER = XERIAL_MAGIC + (1).to_bytes(4, "big") * 2
"""Magic, version, lowest compatible version."""
SNAPPY_EXPANSION = 22
"""A snappy copy of three bytes gives at most 64; a block that announces more than this is no block."""
ZSTD_WINDOW = 1 << 27
"""The largest window that Kafka's decoder accepts (zstd's own default, ``ZSTD_WINDOWLOG_LIMIT_DEFAULT``)."""
SLICE = 16 * 1024
"""Compressed bytes handed to zlib and lz4 at a time: what follows a finished stream is copied by both,
so that many tiny streams in one large piece would cost the square of its size."""

_AT_ONCE = 65_536
_USUAL_RATIO = 16
"""What data unpack to at once, at most: so many bytes, and so many for each packed one."""
_EXPANSION, _SLICE, _WINDOW = SNAPPY_EXPANSION, SLICE, ZSTD_WINDOW


class _Decompressors(local):
    """Decompressors of a thread that are used again: to make one takes longer than to unpack a small batch.

    What is unpacked must not depend on what came before. So only a whole and sound frame is taken from them.
    One that met anything else is thrown away; :mod:`kdissect.record.compression` then says what is wrong.
    """

    def __init__(self) -> None:
        self.lz4: Any = None
        self.zstd: zstandard.ZstdDecompressor | None = None


_kept = _Decompressors()


def unpack_frame(codec: int, data: bytes, magic: int, bound: int) -> bytes | None:
    """What one whole frame unpacks to; None where the data are anything else, or unpack to much.

    :param codec: an index of :data:`kdissect.record.compression.CODECS`.
    :param magic: of the batch; before magic 2, lz4 frames may have a wrong header checksum.
    :param bound: the most bytes that may come out.
    """
    room = _AT_ONCE + _USUAL_RATIO * len(data)
    room = min(room, bound)
    if room < 1:  # zlib and lz4 take this for no bound at all
        return None
    if codec == 3:
        return _lz4(data if magic >= 2 else with_right_checksum(data), room)
    if codec == 4:
        return _zstd(data, room)
    if codec == 2:
        return _snappy(data, room)
    return _gzip(data, room) if codec == 1 else None


def _gzip(data: bytes, room: int) -> bytes | None:
    if len(data) > _SLICE:
        return None
    stream = zlib.decompressobj(31)
    try:
        found: bytes = stream.decompress(data, room)
    except zlib.error:
        return None
    return found if stream.eof and not stream.unused_data else None


def _snappy(data: bytes, room: int) -> bytes | None:
    """What a raw block, or the only chunk in the framing of snappy-java, unpacks to."""
    if data.startswith(XERIAL_MAGIC):
        start = len(XERIAL_HEADER) + 4
        if len(data) <= start or int.from_bytes(data[start - 4 : start], "big") != len(data) - start:
            return None
        data = data[start:]
    # A block begins with its size, seven bits a byte. Two bytes are enough for what fits in here.
    raw = data
    if len(data) < 2 or raw[0] & raw[1] & 0x80:
        return None
    size = raw[0] & 0x7F
    if raw[0] >= 0x80:
        size += raw[1] << 7
    if size > room or size > _EXPANSION * len(data):
        return None
    try:
        return bytes(snappy.decompress(data))
    except snappy.UncompressError:
        return None


def _lz4(data: bytes, room: int) -> bytes | None:
    context = _kept.lz4
    _kept.lz4 = None
    try:
        if context is None:
            context = lz4_frame.create_decompression_context()
        else:
            lz4_frame.reset_decompression_context(context)
        found, used, is_whole = lz4_frame.decompress_chunk(context, data, max_length=room)
    except (RuntimeError, ValueError):
        return None
    if not is_whole or used != len(data):
        return None
    _kept.lz4 = context
    return bytes(found)


def _zstd(data: bytes, room: int) -> bytes | None:
    try:
        frame = zstandard.get_frame_parameters(data)
        window, content = frame.window_size, frame.content_size
        # Within the window nothing can be referred to that is not there: what is kept changes nothing.
        room = min(room, window)
        if window > _WINDOW or content == 0 or room < content != zstandard.CONTENTSIZE_UNKNOWN:
            return None
        if _zstd_end(data, zstandard.frame_header_size(data[:18])) != len(data):
            return None
        unpacker, _kept.zstd = _kept.zstd or zstandard.ZstdDecompressor(), None
        found = unpacker.decompress(data, max_output_size=room)
    except (zstandard.ZstdError, ValueError):
        return None
    _kept.zstd = unpacker
    return found


def _zstd_end(data: bytes, position: int) -> int:
    """Where the first frame ends, by what its blocks announce (RFC 8878, 3.1.1).

    That may be behind the end of the data; -1 where they end before the head of the last block.

    :param position: where its first block begins.
    """
    raw, size, last = data, len(data), False
    while not last and position + 3 <= size:
        header = raw[position] | raw[position + 1] << 8 | raw[position + 2] << 16
        last = header & 1 == 1
        position += 3 + (1 if header >> 1 & 3 == 1 else header >> 3)
    if not last:
        return -1
    return position + 4 if raw[4] & 0x04 else position  # the checksum of the content
