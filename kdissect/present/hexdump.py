"""Bytes → lines of a hex dump."""

from __future__ import annotations

from collections.abc import Iterator

BYTES_A_LINE = 16


def hexdump(data: bytes, start: int = 0, indent: str = "", masked: bool = False) -> Iterator[str]:
    """``00000010  6f 72 64 65 72 73                                |orders|``.

    :param start: the offset printed for the first byte.
    :param masked: whether to show only the number of bytes, and not their values.
    """
    for at in range(0, len(data), BYTES_A_LINE):
        piece = data[at : at + BYTES_A_LINE]
        if masked:
            digits, text = " ".join(["**"] * len(piece)), "*" * len(piece)
        else:
            digits = piece.hex(" ")
            text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in piece)
        yield f"{indent}{start + at:08x}  {digits:<{BYTES_A_LINE * 3}} |{text}|"
