"""A file as pieces of its uncompressed bytes: gzip, zstd and lz4 are recognised by their first bytes.

Nothing is read ahead, so that packets of a pipe are given as they come. Decompressors get so few bytes at a
time that their output is bounded for any file. A piece stays below about 32 MiB for the worst bomb, and is
near 256 KiB for a capture. zstd's window is at most 128 MiB.

If compressed data is damaged or incomplete, everything before it is given, and then ``fault`` is set. (A
decompressor that fails withholds the output of its last input. If the start of the frame is at most 1 MiB
away, that output is computed again from there. Otherwise up to ``input_bytes`` are lost.)
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Iterator
from io import BufferedIOBase
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kdissect.faults import fault
from kdissect.lazy import Later
from kdissect.model import Fault

if TYPE_CHECKING:
    import lz4.frame as lz4_frame
    import zstandard
else:
    lz4_frame = Later("lz4.frame")
    zstandard = Later("zstandard")

SUFFIXES = (".gz", ".zst", ".lz4")
"""The usual endings of compressed files' names; used only if nothing but names is known."""
PIECE_BYTES = 1 << 15
_MAGIC_BYTES = 4
_REPLAY_BYTES = 1 << 20


class _Decompressor(Protocol):
    """The common interface of zlib, zstandard and lz4."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes | None: ...
    def decompress(self, data: bytes, /) -> bytes: ...


class _Codec(NamedTuple):
    new: Callable[[], _Decompressor]
    input_bytes: int
    """The number of bytes fed at once. The greatest ratios are 1,030 (gzip), 32,700 (zstd) and 255 (lz4)."""
    error: Callable[[], type[Exception]]
    """Returns the class of exceptions that it raises."""


def _gzip() -> _Decompressor:
    return zlib.decompressobj(wbits=31)


def _zstd() -> _Decompressor:
    found: _Decompressor = zstandard.ZstdDecompressor().decompressobj()
    return found


def _lz4() -> _Decompressor:
    found: _Decompressor = lz4_frame.LZ4FrameDecompressor()
    return found


_CODECS = {
    "gzip": _Codec(_gzip, 1 << 12, lambda: zlib.error),
    "zstd": _Codec(_zstd, 1 << 10, lambda: zstandard.ZstdError),
    "lz4": _Codec(_lz4, 1 << 14, lambda: RuntimeError),
}


def compression_of(head: bytes) -> str | None:
    """The compression of a file, by its first four bytes; None without compression."""
    if head[:2] == b"\x1f\x8b":
        return "gzip"
    if head[:4] == b"\x28\xb5\x2f\xfd":
        return "zstd"
    if head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5:
        return "zstd"  # a skippable frame, which begins files of pzstd
    if head[:4] == b"\x04\x22\x4d\x18":
        return "lz4"
    return None


class NothingYetError(Exception):
    """Raised by the ``read1`` of a growing file that has had no new bytes for a while."""


class Pieces(Iterator[bytes]):
    """An iterator over the pieces of ``file``. An empty piece means that there are no new bytes yet.

    :raises OSError: the file cannot be read (while it is iterated).
    """

    def __init__(self, file: BufferedIOBase, piece_bytes: int = PIECE_BYTES) -> None:
        """:param piece_bytes: the number of bytes read from the file at once."""
        self.fault: Fault | None = None
        """The damage of the compressed data, known after the last piece. Its offset counts bytes of the
        compressed file."""
        self.is_packed = False
        """Whether the file is compressed; known with the first piece."""
        self._file = file
        self._piece_bytes = piece_bytes
        self._offset = 0
        """The number of bytes read from the file."""
        self._pieces = self._read()

    def __next__(self) -> bytes:
        return next(self._pieces)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _raw(self) -> Generator[bytes, None, bytes]:
        while True:
            try:
                data = self._file.read1(self._piece_bytes)
            except NothingYetError:
                yield b""
                continue
            self._offset += len(data)
            return data

    def _read(self) -> Iterator[bytes]:
        head = yield from self._raw()
        while 0 < len(head) < _MAGIC_BYTES and (more := (yield from self._raw())):
            head += more
        name = compression_of(head)
        if name is not None:
            self.is_packed = True
            yield from self._unpacked(name, head)
            return
        while head:
            yield head
            head = yield from self._raw()

    def _unpacked(self, name: str, data: bytes) -> Iterator[bytes]:
        """Unpack consecutive frames (gzip calls them members). Zero bytes after the last frame of gzip are
        padding."""
        codec = _CODECS[name]
        frame = _CompressedFrame(codec)
        gathered: list[bytes] = []
        gathered_bytes = 0
        while data:
            for at in range(0, len(data), codec.input_bytes):
                part = data[at : at + codec.input_bytes]
                while part and not (name == "gzip" and not frame.input_bytes and not part.strip(b"\0")):
                    try:
                        piece = frame.decompress(part)
                    except codec.error() as error:
                        yield from filter(None, [b"".join(gathered), *frame.salvage(part)])
                        words = f"the {name} data is damaged ({error}); the rest cannot be unpacked"
                        offset = self._offset - len(data) + at
                        self.fault = fault("bad-compression", words, offset=offset)
                        return
                    gathered.append(piece)
                    gathered_bytes += len(piece)
                    part = frame.unused
                    if frame.complete:
                        frame = _CompressedFrame(codec)
                if gathered_bytes >= PIECE_BYTES:
                    yield b"".join(gathered)
                    gathered, gathered_bytes = [], 0
            if gathered_bytes:
                # Give the bytes before reading on, which waits if this is a pipe.
                yield b"".join(gathered)
                gathered, gathered_bytes = [], 0
            data = yield from self._raw()
        if frame.input_bytes:
            words = f"the {name} data ends too early"
            self.fault = fault("bad-compression", words, offset=self._offset)


class _CompressedFrame:
    """A frame that is being unpacked; it remembers its input while that is short."""

    def __init__(self, codec: _Codec) -> None:
        self.input_bytes = 0
        self.complete = False
        self.unused = b""
        """The input after the end of the frame."""
        self._codec = codec
        self._decompressor = codec.new()
        self._inputs: list[bytes] = []
        self._output_bytes = 0

    def decompress(self, data: bytes) -> bytes:
        """The unpacked bytes of ``data``.

        :raises: the codec's own error.
        """
        piece = self._decompressor.decompress(data)
        self.input_bytes += len(data)
        self._output_bytes += len(piece)
        if self.input_bytes <= _REPLAY_BYTES:
            self._inputs.append(data)
        if self._decompressor.eof:
            self.complete = True
            self.unused = self._decompressor.unused_data or b""
        return piece

    def salvage(self, data: bytes) -> Iterator[bytes]:
        """The bytes that can be unpacked of ``data`` after :meth:`decompress` failed there. It reads the
        frame once more, byte by byte at the end, and leaves out the bytes given before."""
        if self.input_bytes > _REPLAY_BYTES:
            return
        skip = self._output_bytes
        decompressor = self._codec.new()
        for part in [*self._inputs, *(data[i : i + 1] for i in range(len(data)))]:
            try:
                piece = decompressor.decompress(part)
            except self._codec.error():
                return
            if len(piece) > skip:
                yield piece[skip:]
            skip = max(0, skip - len(piece))
