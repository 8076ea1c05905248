"""The only module that uses the codecs: compressed records in, bytes out, and back.

Compressed records come from the network. Every call here returns at most a given number of bytes, whatever
the data announce. Bytes that were unpacked before a fault are returned too. Measurements showed which library
calls are bounded. zlib's and lz4's objects accept a maximum. A zstd block unpacks to at most 128 KiB (RFC
8878, 3.1.1.2.4). A snappy block begins with its size.

The forms are those of Kafka's own streams. They are gzip with any number of members, snappy in the framing of
snappy-java ("xerial") or as one raw block, lz4 frames, and zstd frames.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kdissect.faults import fault
from kdissect.lazy import Later
from kdissect.limits import DEFAULTS, MIB, Limits
from kdissect.model import Fault
from kdissect.record.frames import (
    SLICE,
    SNAPPY_EXPANSION,
    XERIAL_HEADER,
    XERIAL_MAGIC,
    ZSTD_WINDOW,
    unpack_frame,
)
from kdissect.record.lz4_header import checksum_place, mend_header, xxh32
from kdissect.wording import plural

if TYPE_CHECKING:
    import lz4.frame as lz4_frame
    import snappy
    import zstandard
else:
    lz4_frame = Later("lz4.frame")
    snappy = Later("snappy")
    zstandard = Later("zstandard", "backend_c")

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""The names of the codec ids, as in Kafka's ``CompressionType``."""

_XERIAL_BLOCK = 32 * 1024
"""snappy-java's block size, which Kafka's Java client uses."""
_ZSTD_PIECE = 64
"""Tiny zstd blocks are passed in pieces of at least this size: a call costs more than such a block."""
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"

_int32 = Struct(">i")


class Unpacked(NamedTuple):
    """The unpacked bytes, and the fault. With a fault, ``data`` holds the bytes before it."""

    data: bytes
    fault: Fault | None


class _Stream(Protocol):
    """The common interface of zlib's and lz4's decompressors."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes | None: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _StopError(Exception):
    """Unpacking ends; the caller has the bytes so far."""

    def __init__(self, reason: str, over_limit: bool = False) -> None:
        super().__init__(reason)
        self.over_limit = over_limit


def decompress(
    codec: int, data: bytes, magic: int = 2, limits: Limits = DEFAULTS, room: int | None = None
) -> Unpacked:
    """Unpack ``data``.

    :param codec: an index of :data:`CODECS`.
    :param magic: the batch's; before magic 2, lz4 frames may have the wrong header checksum of KIP-57.
    :param room: a bound in bytes below that of ``limits``.
    """
    bound = min(limits.decompressed_bytes, max(MIB, limits.decompressed_ratio * len(data)))
    if room is not None:
        bound = min(bound, room)
    whole = unpack_frame(codec, data, magic, bound)
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
            problem = fault("decompression-limit", f"{name}: {packed} to more than the limit of {bound:,}")
        else:
            came = plural(len(out), "byte was", "bytes were")
            problem = fault("bad-compressed-data", f"{name}: {stop}; {came} unpacked before that")
        return Unpacked(bytes(out), problem)
    return Unpacked(bytes(out), None)


def _check(out: bytearray, bound: int) -> None:
    if len(out) > bound:
        del out[bound:]
        raise _StopError("", over_limit=True)


# -- gzip and lz4: streams one after the other --------------------------------------------------------


def _gzip(data: bytes, out: bytearray, bound: int) -> None:
    position = 0
    while position < len(data) or not data:
        position = _one_stream(lambda: zlib.decompressobj(31), data, position, out, bound)


def _lz4(data: bytes, out: bytearray, bound: int, legacy: bool) -> None:
    position = 0
    source = bytearray(data) if legacy else data
    while position < len(data) or not data:
        if legacy:
            mend_header(source, position)  # type: ignore[arg-type]
        position = _one_stream(lz4_frame.LZ4FrameDecompressor, source, position, out, bound)


def _one_stream(
    new_stream: Callable[[], _Stream], data: bytes | bytearray, start: int, out: bytearray, bound: int
) -> int:
    """Unpack the stream that begins at ``start``; return the position after it.

    At an error, zlib and lz4 do not return the bytes that the same call had unpacked. So the stream is
    unpacked once more, and the slice with the error byte by byte.
    """
    position, kept = start, len(out)
    stream = new_stream()
    try:
        while True:
            piece = bytes(data[position : position + SLICE])
            if not piece:
                raise _StopError("the data end too early")
            out += stream.decompress(piece, bound + 1 - len(out))
            _check(out, bound)
            position += len(piece)
            if stream.eof:
                return position - len(stream.unused_data or b"")
    except (zlib.error, RuntimeError, EOFError) as error:
        del out[kept:]
        again = new_stream()
        try:
            for at in range(start, position, SLICE):
                out += again.decompress(bytes(data[at : at + SLICE]), bound + 1 - len(out))
            for at in range(position, min(position + SLICE, len(data))):
                out += again.decompress(bytes(data[at : at + 1]), bound + 1 - len(out))
                _check(out, bound)
        except (zlib.error, RuntimeError, EOFError):
            pass
        raise _StopError(str(error)) from error


# -- snappy -------------------------------------------------------------------------------------------


def _snappy(data: bytes, out: bytearray, bound: int) -> None:
    if not data.startswith(XERIAL_MAGIC):
        _snappy_block(data, out, bound)
        return
    position = 0
    while position < len(data):
        if data.startswith(XERIAL_MAGIC, position):  # also between chunks, if streams were joined
            position += len(XERIAL_HEADER)
            if position > len(data):
                raise _StopError("the header of the framing ends too early")
            continue
        if position + 4 > len(data):
            raise _StopError(
                f"{plural(len(data) - position, 'byte is', 'bytes are')} left, too few for a chunk's length"
            )
        length = _int32.unpack_from(data, position)[0]
        position += 4
        if length <= 0 or length > len(data) - position:
            # No writer makes an empty chunk: even zero bytes pack to one byte.
            left = plural(len(data) - position, "is", "are")
            raise _StopError(f"a chunk announces {plural(length, 'byte')}, but {left} left")
        _snappy_block(data[position : position + length], out, bound)
        position += length


def _snappy_block(block: bytes, out: bytearray, bound: int) -> None:
    """Unpack one raw block. The only bound of its decompressor is the size that the block announces."""
    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    else:
        raise _StopError("a block has no size in front of it")
    if size > SNAPPY_EXPANSION * len(block):
        raise _StopError(f"a block has {plural(len(block), 'byte')}, but announces {size:,}")
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
                raise _StopError("the data end too early")
            position += 8 + int.from_bytes(data[position + 4 : position + 8], "little")
            if position > len(data):
                raise _StopError("the data end too early")
            continue
        position = _zstd_frame(data, position, out, bound)


def _zstd_frame(data: bytes, start: int, out: bytearray, bound: int) -> int:
    """Unpack one frame block by block. No call returns more than a few blocks of 128 KiB, and the bytes
    before a broken block are kept.

    Each frame gets a new decompressor. A used one keeps its buffers, and their sizes decide how much of a
    damaged frame can be read. The result of a frame must not depend on earlier frames.
    """
    if data[start : start + 4] != _ZSTD_MAGIC:
        raise _StopError("no zstd frame begins here" if start + 4 <= len(data) else "the data end too early")
    try:
        fed, position = start, start + zstandard.frame_header_size(data[start : start + 18])
        frame = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW).decompressobj()
        last = False
        while not last:
            if position + 3 > len(data):
                raise _StopError("the data end too early")
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
            raise _StopError("the data end too early")
        return position
    except zstandard.ZstdError as error:
        raise _StopError(str(error)) from error


# -- and back -----------------------------------------------------------------------------------------


def compress(codec: int, data: bytes, magic: int = 2) -> bytes:
    """Compress as Kafka's Java client does: the same framings, block sizes and checksums.

    :raises ValueError: Kafka has no such codec.
    """
    if codec == 0:
        return data
    if codec == 1:
        packer = zlib.compressobj(wbits=31)
        return packer.compress(data) + packer.flush()
    if codec == 2:
        chunks = [XERIAL_HEADER]
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
        at = checksum_place(frame, 0)  # KIP-57: magic 0 keeps the wrong checksum, as old readers expect
        return frame[:at] + bytes([(xxh32(frame[:at]) >> 8) & 0xFF]) + frame[at + 1 :]
    if codec == 4:
        return zstandard.ZstdCompressor(write_content_size=False).compress(data)
    raise ValueError(f"no codec {codec}: Kafka has 0 to 4, {', '.join(CODECS)}")
