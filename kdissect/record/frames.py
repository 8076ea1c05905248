"""Unpacks one whole frame in one call, with decompressors that are kept. Nearly all compressed records are
such frames.

:mod:`kdissect.record.compression` unpacks all others step by step, and finds their faults.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from kdissect.lazy import Later
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
"""The largest ratio of a snappy block: a copy of three bytes gives at most 64. A block that announces more is
invalid."""
ZSTD_WINDOW = 1 << 27
"""The largest window that Kafka's decoder accepts (zstd's own default, ``ZSTD_WINDOWLOG_LIMIT_DEFAULT``)."""
SLICE = 16 * 1024
"""The compressed bytes that zlib and lz4 get at a time. Both copy the bytes after a finished stream, so many
tiny streams in one large piece would take quadratic time."""

_AT_ONCE = 65_536
_USUAL_RATIO = 16
"""The most bytes to unpack in one call: a fixed part, and a part for each compressed byte."""
_EXPANSION, _SLICE, _WINDOW = SNAPPY_EXPANSION, SLICE, ZSTD_WINDOW
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_LEAST_FRAME = 9
"""Bytes of the smallest zstd frame: the magic, a header of two bytes, the header of a block."""
_MOST_EXPONENT = 17
"""The largest exponent of a window: 2 to the power of ten more."""


# Decompressors are used again: making one takes longer than unpacking a small batch. A thread that takes one
# from its list is its only user. Results must not depend on earlier data. So a decompressor is put back only
# after a whole and valid frame. After anything else it is dropped, and kdissect.record.compression finds the
# fault.
_lz4_kept: list[Any] = []
_zstd_kept: list[zstandard.ZstdDecompressor] = []


def unpack_frame(codec: int, data: bytes, magic: int, bound: int) -> bytes | None:
    """The unpacked bytes of one whole frame; None if the data are anything else, or unpack to too much.

    :param codec: an index of :data:`kdissect.record.compression.CODECS`.
    :param magic: the batch's; before magic 2, lz4 frames may have a wrong header checksum.
    :param bound: the most bytes that may come out.
    """
    room = _AT_ONCE + _USUAL_RATIO * len(data)
    room = min(room, bound)
    if room < 1:  # to zlib and lz4, this would mean no bound
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
    """The unpacked bytes of a raw block, or of the only chunk in the framing of snappy-java."""
    if data.startswith(XERIAL_MAGIC):
        start = len(XERIAL_HEADER) + 4
        if len(data) <= start or int.from_bytes(data[start - 4 : start], "big") != len(data) - start:
            return None
        data = data[start:]
    # A block begins with its size, seven bits a byte. Two bytes are enough for the sizes allowed here.
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
    try:
        context = _lz4_kept.pop()
    except IndexError:
        context = None
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
    _lz4_kept.append(context)
    return bytes(found)


def _zstd(data: bytes, room: int) -> bytes | None:
    content = _zstd_content(data, room)
    if content == 0:
        return None
    try:
        unpacker = _zstd_kept.pop()
    except IndexError:
        unpacker = zstandard.ZstdDecompressor()
    try:
        found = unpacker.decompress(data, max_output_size=content)
    except (zstandard.ZstdError, ValueError):
        return None
    _zstd_kept.append(unpacker)
    return found


def _zstd_content(data: bytes, room: int) -> int:
    """The most bytes to which a whole frame unpacks. 0 if the data are no such frame, or unpack to more than
    ``room`` or to nothing.

    The size is in the frame's header (RFC 8878, 3.1.1.1). Otherwise it is the frame's window, if that is less
    than ``room``. Within the window, a frame can only refer to its own bytes, so a kept decompressor changes
    nothing.
    """
    raw, size = data, len(data)
    if size < _LEAST_FRAME or not data.startswith(_ZSTD_MAGIC):
        return 0
    flags, at, window, content = raw[4], 5, 0, -1
    if flags & 0x08:  # reserved
        return 0
    is_single = flags & 0x20 != 0
    if not is_single:
        exponent = raw[at] >> 3
        if exponent > _MOST_EXPONENT:
            return 0
        window = 1_024
        window <<= exponent
        window += (window >> 3) * (raw[at] & 7)
        at += 1
    width = flags & 3  # of the dictionary's id
    at += 4 if width == 3 else width
    width = 1 << (flags >> 6)
    if width > 1 or is_single:
        if size - at < width:
            return 0
        content = 0
        for place in range(width):
            byte = raw[at + place]  # a separate number: compiled, shifting a byte would lose bits
            if place > 3 and byte:
                return 0
            content += byte << 8 * (place & 3)
        if width == 2:
            content += 256
        if is_single:
            window = content
        at += width
    room = min(room, window)
    if window > _WINDOW or room < content or _zstd_end(data, at) != size:
        return 0
    return room if content < 0 else content


def _zstd_end(data: bytes, position: int) -> int:
    """The end of the first frame, from the sizes of its blocks (RFC 8878, 3.1.1).

    It may be after the end of the data; -1 if they end before the header of the last block.

    :param position: the start of its first block.
    """
    raw, size, last = data, len(data), False
    while not last and position + 3 <= size:
        header = raw[position] | raw[position + 1] << 8 | raw[position + 2] << 16
        last = header & 1 == 1
        position += 3 + (1 if header >> 1 & 3 == 1 else header >> 3)
    if not last:
        return -1
    return position + 4 if raw[4] & 0x04 else position  # the checksum of the content
