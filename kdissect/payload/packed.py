"""Values that the application itself compressed → their bytes, within bounds.

A few bytes may unpack to many. So each value has a bound. All values of a run share another bound, which
grows with the compressed bytes.
"""

from __future__ import annotations

import zlib

from kdissect.limits import DEFAULTS, Limits
from kdissect.record.compression import decompress

LARGEST = 16 << 20
"""The most bytes to which one value may unpack."""
FREE = 256 << 20
"""The bytes to which all values together may unpack, even if they have few compressed bytes."""
A_BYTE = 64
"""The extra bytes allowed for each compressed byte."""

_XERIAL = b"\x82SNAPPY\0"
_CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def compression_of(data: bytes) -> str | None:
    """The compression of a value, by its first bytes; None if they show none."""
    if data.startswith(b"\x1f\x8b\x08"):
        return "gzip"
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        return "zstd"
    if data.startswith(b"\x04\x22\x4d\x18"):
        return "lz4"
    return "snappy" if data.startswith(_XERIAL) else None


class Unpacker:
    """Unpacks the values of a run."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self._limits = limits
        self._room = FREE

    @property
    def is_exhausted(self) -> bool:
        """Whether the shared bound is reached, so that no more values are unpacked."""
        return self._room <= 0

    def unpack(self, codec: str, data: bytes) -> bytes | None:
        """The bytes of a compressed value; None if it cannot be unpacked, or exceeds a bound.

        :param codec: a result of :func:`compression_of`, or ``zlib``.
        """
        self._room = min(FREE, self._room + A_BYTE * len(data))
        if self._room <= 0:
            return None
        bound = min(LARGEST, self._room)
        if codec == "zlib":
            out, cost = _inflate(data, bound)
        else:
            unpacked = decompress(_CODECS[codec], data, limits=self._limits, room=bound)
            out, cost = None if unpacked.fault else unpacked.data, len(unpacked.data)
        self._room -= cost
        return out


_DEFLATE = 1_032
"""The most bytes to which one byte of deflate unpacks (zlib, "Maximum Compression Factor")."""


def _inflate(data: bytes, bound: int) -> tuple[bytes | None, int]:
    """The bytes, and the number of bytes that were unpacked."""
    stream = zlib.decompressobj()
    try:
        out = stream.decompress(data, bound)
    except zlib.error:
        return None, min(bound, _DEFLATE * len(data))
    return out if stream.eof else None, len(out)
