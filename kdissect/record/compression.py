"""The only door to the codecs: compressed records in, bytes out, and back.

Compressed records come from the network. Every call here gives back at most a stated number of bytes,
whatever the data announce. What was unpacked before a defect is given back too. Measurements showed which
library calls are bounded. zlib's and lz4's objects take a maximum. A zstd block unpacks to at most 128 KiB
(RFC 8878, 3.1.1.2.4). A snappy block says its size in front.

The forms are those of Kafka's own streams. They are gzip with any number of members, snappy in the framing of
snappy-java ("xerial") or as one raw block, lz4 frames, and zstd frames.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kdissect.faults import fault
from kdissect.later import Later
from kdissect.limits import DEFAULTS, MIB, Limits
from kdissect.model import Fault
from kdissect.wording import plural

if TYPE_CHECKING:
    import lz4.frame as lz4_frame
    import snappy
    import zstandard
else:
    lz4_frame = Later("lz4.frame")
    snappy = Later("snappy")
    zstandard = Later("zstandard")

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""Names of the codec ids, as Kafka's ``CompressionType`` has them."""

_XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_HEADER = _XERIAL_MAGIC + (1).to_bytes(4, "big") * 2
"""Magic, version, lowest compatible version."""
_XERIAL_BLOCK = 32 * 1024
"""snappy-java's block size, which Kafka's Java client uses."""
_SNAPPY_EXPANSION = 22
"""A snappy copy of three bytes gives at most 64; a block that announces more than this is no block."""
_SLICE = 16 * 1024
"""Compressed bytes handed to zlib and lz4 at a time: what follows a finished stream is copied by both,
so that many tiny streams in one large piece would cost the square of its size."""
_ZSTD_PIECE = 64
"""Tiny zstd blocks are handed over in pieces of at least this size: a call costs more than they do."""
_ZSTD_WINDOW = 1 << 27
"""The largest window that Kafka's decoder accepts (zstd's own default, ``ZSTD_WINDOWLOG_LIMIT_DEFAULT``)."""
_AT_ONCE = 65_536
_USUAL_RATIO = 16
"""What data unpack to at once, at most: so many bytes, and so many for each packed one."""
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"

_int32 = Struct(">i")
_u32le = Struct("<I")


class Unpacked(NamedTuple):
    """What came out, and what was wrong: with a fault, ``data`` holds the bytes before it."""

    data: bytes
    fault: Fault | None


class _Stream(Protocol):
    """What zlib's and lz4's decompressors have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes | None: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _StopError(Exception):
    """Unpacking ends here; the bytes so far are with the caller."""

    def __init__(self, reason: str, over_limit: bool = False) -> None:
        super().__init__(reason)
        self.over_limit = over_limit


def decompress(
    codec: int, data: bytes, magic: int = 2, limits: Limits = DEFAULTS, room: int | None = None
) -> Unpacked:
    """Unpack ``data``.

    :param codec: an index of :data:`CODECS`.
    :param magic: of the batch; before magic 2, lz4 frames may have the wrong header checksum of KIP-57.
    :param room: a bound in bytes below that of ``limits``.
    """
    bound = min(limits.decompressed_bytes, max(MIB, limits.decompressed_ratio * len(data)))
    if room is not None:
        bound = min(bound, room)
    whole = _at_once(codec, data, magic, bound)
    if whole is not None:
        return Unpacked(whole, None)
    out = bytearray()
    try:
        if codec == 0:
            out += data[: bound + 1]
            _check(out, bound)
        elif codec == 1:
            _gzip(data, out, bound)
        elif codec == 2:
            _snappy(data, out, bound)
        elif codec == 3:
            _lz4(data, out, bound, legacy=magic < 2)
        elif codec == 4:
            _zstd(data, out, bound)
        else:
            return Unpacked(b"", fault("unknown-codec", f"codec {codec} of {plural(len(data), 'byte')}"))
    except _StopError as stop:
        name = CODECS[codec]
        if stop.over_limit:
            packed = plural(len(data), "byte unpacks", "bytes unpack")
            problem = fault("decompression-limit", f"{name}: {packed} to more than {bound:,}, the limit")
        else:
            came = plural(len(out), "byte")
            problem = fault("bad-compressed-data", f"{name}: {stop}; {came} came out before that")
        return Unpacked(bytes(out), problem)
    return Unpacked(bytes(out), None)


def _check(out: bytearray, bound: int) -> None:
    if len(out) > bound:
        del out[bound:]
        raise _StopError("", over_limit=True)


# -- one whole frame, as nearly all data are ----------------------------------------------------------


class _Kept(local):
    """Decompressors of a thread that are used again: to make one takes longer than to unpack a small batch.

    What is unpacked must not depend on what came before. So only a whole and sound frame is taken from them.
    One that met anything else is thrown away; :func:`_lz4` and :func:`_zstd` then say what is wrong.
    """

    def __init__(self) -> None:
        self.lz4: Any = None
        self.zstd: zstandard.ZstdDecompressor | None = None


_kept = _Kept()


def _at_once(codec: int, data: bytes, magic: int, bound: int) -> bytes | None:
    """What one whole frame unpacks to; None where the data are anything else, or unpack to much."""
    room = min(bound, _AT_ONCE + _USUAL_RATIO * len(data))
    if codec == 1:
        return _gzip_at_once(data, room)
    if codec == 2:
        return _snappy_at_once(data, room)
    if codec == 3:
        if magic >= 2:
            return _lz4_at_once(data, room)
        mended = bytearray(data)
        _mend_lz4_header(mended, 0)
        return _lz4_at_once(bytes(mended), room)
    return _zstd_at_once(data, room) if codec == 4 else None


def _gzip_at_once(data: bytes, room: int) -> bytes | None:
    if len(data) > _SLICE:
        return None
    stream = _gzip_stream()
    try:
        found = stream.decompress(data, room)
    except zlib.error:
        return None
    return found if stream.eof and not stream.unused_data else None


def _snappy_at_once(data: bytes, room: int) -> bytes | None:
    """What a raw block, or the only chunk in the framing of snappy-java, unpacks to."""
    if data.startswith(_XERIAL_MAGIC):
        start = len(_XERIAL_HEADER) + 4
        if len(data) <= start or _int32.unpack_from(data, start - 4)[0] != len(data) - start:
            return None
        data = data[start:]
    # A block begins with its size, seven bits a byte. Two bytes are enough for what fits in here.
    if len(data) < 2 or data[0] & data[1] & 0x80:
        return None
    size = data[0] if data[0] < 0x80 else data[0] & 0x7F | data[1] << 7
    if size > min(room, _SNAPPY_EXPANSION * len(data)):
        return None
    try:
        return bytes(snappy.decompress(data))
    except snappy.UncompressError:
        return None


def _lz4_at_once(data: bytes, room: int) -> bytes | None:
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


def _zstd_at_once(data: bytes, room: int) -> bytes | None:
    try:
        frame = zstandard.get_frame_parameters(data)
        # Within the window nothing can be referred to that is not there: what is kept changes nothing.
        room = min(room, frame.window_size)
        if frame.window_size > _ZSTD_WINDOW:
            return None
        if frame.content_size == 0 or room < frame.content_size != zstandard.CONTENTSIZE_UNKNOWN:
            return None
        if _zstd_end(data) != len(data):
            return None
        unpacker, _kept.zstd = _kept.zstd or zstandard.ZstdDecompressor(), None
        found = unpacker.decompress(data, max_output_size=room)
    except (zstandard.ZstdError, ValueError):
        return None
    _kept.zstd = unpacker
    return found


def _zstd_end(data: bytes) -> int:
    """Where the first frame ends, by what its blocks announce (RFC 8878, 3.1.1).

    That may be behind the end of the data; -1 where they end before the head of the last block.
    """
    position, last = zstandard.frame_header_size(data[:18]), False
    while not last and position + 3 <= len(data):
        header = int.from_bytes(data[position : position + 3], "little")
        last = bool(header & 1)
        position += 3 + (1 if header >> 1 & 3 == 1 else header >> 3)
    if not last:
        return -1
    return position + 4 if data[4] & 0x04 else position  # the checksum of the content


# -- gzip and lz4: streams one after the other --------------------------------------------------------


def _gzip(data: bytes, out: bytearray, bound: int) -> None:
    position = 0
    while position < len(data) or not data:
        position = _one_stream(_gzip_stream, data, position, out, bound)


def _gzip_stream() -> _Stream:
    return zlib.decompressobj(31)


def _lz4(data: bytes, out: bytearray, bound: int, legacy: bool) -> None:
    position = 0
    source = bytearray(data) if legacy else data
    while position < len(data) or not data:
        if legacy:
            _mend_lz4_header(source, position)  # type: ignore[arg-type]
        position = _one_stream(lz4_frame.LZ4FrameDecompressor, source, position, out, bound)


def _one_stream(
    new_stream: Callable[[], _Stream], data: bytes | bytearray, start: int, out: bytearray, bound: int
) -> int:
    """Unpack the stream that begins at ``start``; give the position behind it.

    Where it breaks, zlib and lz4 keep back what the same call had unpacked before. So the stream is
    unpacked once more, the slice that broke byte by byte.
    """
    position, kept = start, len(out)
    stream = new_stream()
    try:
        while True:
            piece = bytes(data[position : position + _SLICE])
            if not piece:
                raise _StopError("the data break off")
            out += stream.decompress(piece, bound + 1 - len(out))
            _check(out, bound)
            position += len(piece)
            if stream.eof:
                return position - len(stream.unused_data or b"")
    except (zlib.error, RuntimeError, EOFError) as error:
        del out[kept:]
        again = new_stream()
        try:
            for at in range(start, position, _SLICE):
                out += again.decompress(bytes(data[at : at + _SLICE]), bound + 1 - len(out))
            for at in range(position, min(position + _SLICE, len(data))):
                out += again.decompress(bytes(data[at : at + 1]), bound + 1 - len(out))
                _check(out, bound)
        except (zlib.error, RuntimeError, EOFError):
            pass
        raise _StopError(str(error)) from error


def _lz4_descriptor(frame: bytes | bytearray, start: int) -> int:
    """Where the header checksum of the frame at ``start`` stands, or -1 if there is no such frame."""
    if frame[start : start + 4] != b"\x04\x22\x4d\x18" or start + 7 > len(frame):
        return -1
    flags = frame[start + 4]
    at = start + 6 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    return at if at < len(frame) else -1


def _mend_lz4_header(frame: bytearray, start: int) -> None:
    """Where the header checksum is the wrong one of KIP-57 (over the magic too), put the right one."""
    at = _lz4_descriptor(frame, start)
    if at >= 0 and frame[at] == (_xxh32(bytes(frame[start:at])) >> 8) & 0xFF:
        frame[at] = (_xxh32(bytes(frame[start + 4 : at])) >> 8) & 0xFF


@lru_cache(maxsize=64)  # a client's frames have the same header again and again
def _xxh32(data: bytes) -> int:
    """xxHash32 with seed 0, which guards the lz4 frame header; lz4's binding does not give it away."""
    prime1, prime2, prime3, prime4, prime5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
    mask, position, end = 0xFFFFFFFF, 0, len(data)

    def rotate(value: int, bits: int) -> int:
        return ((value << bits) | (value >> (32 - bits))) & mask

    if end >= 16:
        lanes = [(prime1 + prime2) & mask, prime2, 0, -prime1 & mask]
        while position + 16 <= end:
            for lane in range(4):
                word = _u32le.unpack_from(data, position + 4 * lane)[0]
                lanes[lane] = rotate((lanes[lane] + word * prime2) & mask, 13) * prime1 & mask
            position += 16
        value = sum(rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & mask
    else:
        value = prime5
    value = (value + end) & mask
    while position + 4 <= end:
        word = _u32le.unpack_from(data, position)[0]
        value = rotate((value + word * prime3) & mask, 17) * prime4 & mask
        position += 4
    for byte in data[position:]:
        value = rotate((value + byte * prime5) & mask, 11) * prime1 & mask
    value = (value ^ value >> 15) * prime2 & mask
    value = (value ^ value >> 13) * prime3 & mask
    return value ^ value >> 16


# -- snappy -------------------------------------------------------------------------------------------


def _snappy(data: bytes, out: bytearray, bound: int) -> None:
    if not data.startswith(_XERIAL_MAGIC):
        _snappy_block(data, out, bound)
        return
    position = 0
    while position < len(data):
        if data.startswith(_XERIAL_MAGIC, position):  # also between chunks, where streams were joined
            position += len(_XERIAL_HEADER)
            if position > len(data):
                raise _StopError("the framing's header breaks off")
            continue
        if position + 4 > len(data):
            raise _StopError(f"{plural(len(data) - position, 'byte')} where a chunk's length should stand")
        length = _int32.unpack_from(data, position)[0]
        position += 4
        if length <= 0 or length > len(data) - position:
            # No writer makes an empty chunk: even nothing at all packs to one byte.
            left = plural(len(data) - position, "is", "are")
            raise _StopError(f"a chunk of {plural(length, 'byte')} where {left} left")
        _snappy_block(data[position : position + length], out, bound)
        position += length


def _snappy_block(block: bytes, out: bytearray, bound: int) -> None:
    """One raw block. Its decompressor has no bound but the size that the block announces."""
    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    else:
        raise _StopError("a block without a size in front")
    if size > _SNAPPY_EXPANSION * len(block):
        raise _StopError(f"a block of {plural(len(block), 'byte')} announces {size:,}")
    if size > bound - len(out):
        raise _StopError("", over_limit=True)
    try:
        out += snappy.decompress(block)
    except snappy.UncompressError as error:
        raise _StopError(str(error.__cause__ or error)) from error


# -- zstd ---------------------------------------------------------------------------------------------


def _zstd(data: bytes, out: bytearray, bound: int) -> None:
    position = 0
    while position < len(data) or not data:
        if data[position + 1 : position + 4] == _ZSTD_SKIPPABLE and data[position] & 0xF0 == 0x50:
            if position + 8 > len(data):
                raise _StopError("the data break off")
            position += 8 + int.from_bytes(data[position + 4 : position + 8], "little")
            if position > len(data):
                raise _StopError("the data break off")
            continue
        position = _zstd_frame(data, position, out, bound)


def _zstd_frame(data: bytes, start: int, out: bytearray, bound: int) -> int:
    """Unpack one frame block by block: no call gives more than a few blocks of 128 KiB, and what came
    before a broken block is kept.

    A new decompressor for each: one that was used keeps its buffers, whose sizes decide what of a damaged
    frame can be read. What a frame unpacks to must not depend on what came before it.
    """
    if data[start : start + 4] != _ZSTD_MAGIC:
        raise _StopError("no zstd frame begins here" if start + 4 <= len(data) else "the data break off")
    try:
        fed, position = start, start + zstandard.frame_header_size(data[start : start + 18])
        frame = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
        last = False
        while not last:
            if position + 3 > len(data):
                raise _StopError("the data break off")
            header = int.from_bytes(data[position : position + 3], "little")
            last = bool(header & 1)
            position += 3 + (1 if header >> 1 & 3 == 1 else header >> 3)
            if last and data[start + 4] & 0x04:
                position += 4  # the checksum of the content
            if last or position - fed >= _ZSTD_PIECE:
                out += frame.decompress(data[fed:position])
                fed = position
                _check(out, bound)
        if position > len(data) or not frame.eof:
            raise _StopError("the data break off")
        return position
    except zstandard.ZstdError as error:
        raise _StopError(str(error)) from error


# -- and back -----------------------------------------------------------------------------------------


def compress(codec: int, data: bytes, magic: int = 2) -> bytes:
    """Pack as Kafka's Java client does: the same framings, block sizes and checksums.

    :raises ValueError: Kafka has no such codec.
    """
    if codec == 0:
        return data
    if codec == 1:
        packer = zlib.compressobj(wbits=31)
        return packer.compress(data) + packer.flush()
    if codec == 2:
        chunks = [_XERIAL_HEADER]
        for start in range(0, len(data), _XERIAL_BLOCK):
            chunk = snappy.compress(data[start : start + _XERIAL_BLOCK])
            chunks += (_int32.pack(len(chunk)), chunk)
        return b"".join(chunks)
    if codec == 3:
        frame: bytes = lz4_frame.compress(
            data, block_size=lz4_frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False
        )
        if magic > 0:
            return frame
        at = _lz4_descriptor(frame, 0)  # KIP-57: magic 0 keeps the checksum its old readers expect
        return frame[:at] + bytes([(_xxh32(frame[:at]) >> 8) & 0xFF]) + frame[at + 1 :]
    if codec == 4:
        return zstandard.ZstdCompressor(write_content_size=False).compress(data)
    raise ValueError(f"no codec {codec}: Kafka has 0 to 4, {', '.join(CODECS)}")
