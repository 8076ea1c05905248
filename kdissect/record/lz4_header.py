"""The header of an lz4 frame, and the wrong checksum that Kafka's old writers gave it (KIP-57)."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct

_u32le = Struct("<I")


def checksum_place(frame: bytes | bytearray, start: int) -> int:
    """The position of the header checksum of the frame at ``start``; -1 if there is no such frame."""
    if frame[start : start + 4] != b"\x04\x22\x4d\x18" or start + 7 > len(frame):
        return -1
    flags = frame[start + 4]
    at = start + 6 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    return at if at < len(frame) else -1


def mend_header(frame: bytearray, start: int) -> None:
    """If the header checksum is the wrong one of KIP-57 (over the magic too), replace it by the right one."""
    at = checksum_place(frame, start)
    if at >= 0:
        frame[at] = _right_checksum(bytes(frame[start : at + 1]))


def with_right_checksum(frame: bytes) -> bytes:
    """A frame with its header checksum corrected as by :func:`mend_header`; the same object if nothing
    changes."""
    at = checksum_place(frame, 0)
    if at < 0:
        return frame
    right = _right_checksum(frame[: at + 1])
    return frame if right == frame[at] else frame[:at] + bytes((right,)) + frame[at + 1 :]


@lru_cache(maxsize=64)  # a client's frames have the same header again and again
def _right_checksum(header: bytes) -> int:
    """The checksum at the end of a header; the wrong one of KIP-57 is replaced by the right one."""
    found = header[-1]
    return (xxh32(header[4:-1]) >> 8) & 0xFF if found == (xxh32(header[:-1]) >> 8) & 0xFF else found


def xxh32(data: bytes) -> int:
    """xxHash32 with seed 0, the hash of the lz4 frame header; lz4's Python binding does not offer it."""
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
