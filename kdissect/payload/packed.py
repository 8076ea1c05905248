"""Values that the application packed itself → their bytes, within bounds.

A few bytes may unpack to many. So each value has a bound. All values of a run have one together: it grows
with the bytes that were given.
"""

from __future__ import annotations

import zlib

from kdissect.limits import DEFAULTS, Limits
from kdissect.record.compression import decompress

LARGEST = 16 << 20
"""Bytes of one value that was packed."""
FREE = 256 << 20
"""Bytes that all values together may unpack to, however few they are packed."""
A_BYTE = 64
"""How many more there may be for each packed byte."""

_XERIAL = b"\x82SNAPPY\0"
_CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def compression_of(data: bytes) -> str | None:
    """What a value that begins so is packed with; None if with nothing that says so."""
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
        """Whether values unpacked to so much that no more are unpacked."""
        return self._room <= 0

    def unpack(self, codec: str, data: bytes) -> bytes | None:
        """The bytes of a packed value; None if they cannot be unpacked, or are more than a bound.

        :param codec: what :func:`compression_of` gives, or ``zlib``.
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
"""A byte of deflate unpacks to at most so many (zlib, "Maximum Compression Factor")."""


def _inflate(data: bytes, bound: int) -> tuple[bytes | None, int]:
    """The bytes, and how many were unpacked."""
    stream = zlib.decompressobj()
    try:
        out = stream.decompress(data, bound)
    except zlib.error:
        return None, min(bound, _DEFLATE * len(data))
    return out if stream.eof else None, len(out)
