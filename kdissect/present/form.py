"""Numbers → words for people: durations, sizes, times. Only lines and trees use them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from kdissect.protocol.json_text import JsonText
from kdissect.wording import plural

__all__ = ["SECOND", "TIMES", "Clock", "duration", "plural", "seconds", "size", "write_size"]

SECOND = 1_000_000_000

TIMES = {
    "a": "local time",
    "r": "since the first packet",
    "d": "since the line before",
    "e": "since the epoch",
    "u": "date and UTC",
}
"""The letters of ``-t``, as in tshark, and the times that they give; spans are in seconds."""


_LONG = 1_000 * SECOND
_SECOND = SECOND
"""The same as a C number when compiled. Other modules cannot import it."""


def duration(ns: int) -> str:
    """Three digits and a unit: ``850 ns``, ``61.2 ms``, ``1.50 s``, ``-2.00 µs``."""
    if 0 <= ns < _LONG:
        return _short(ns)
    sign, left = ("-", -ns) if ns < 0 else ("", ns)
    if left < 1_000:
        return f"{sign}{left} ns"
    for scale, unit in ((1_000, "µs"), (1_000_000, "ms"), (SECOND, "s")):
        value = left / scale
        if value < 999.5 or unit == "s":
            digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
            return f"{sign}{value:.{digits}f} {unit}"
    raise AssertionError


def _short(ns: int) -> str:
    """A duration below :data:`_LONG`, computed in whole numbers. A value halfway between two texts is left to
    floats, which decide on one of them."""
    if ns < 1_000:
        return f"{ns} ns"
    if ns < 999_500:
        scale, unit = 1_000, "µs"
    elif ns < 999_500_000:
        scale, unit = 1_000_000, "ms"
    else:
        scale, unit = _SECOND, "s"
    digits, parts = 0, 1
    if ns * 200 < 1_999 * scale:
        digits, parts = 2, 100
    elif ns * 20 < 1_999 * scale:
        digits, parts = 1, 10
    found, left = ns * parts // scale, ns * parts % scale
    if 2 * left == scale:
        return f"{ns / scale:.{digits}f} {unit}"
    if 2 * left > scale:
        found += 1
    if digits == 2:
        return f"{found // 100}.{found % 100:02d} {unit}"
    return f"{found // 10}.{found % 10} {unit}" if digits else f"{found} {unit}"


def write_duration(out: JsonText, ns: int) -> int:
    """Add the text of :func:`duration`; return its number of cells."""
    start = out.size()
    if not 0 <= ns < _LONG:
        took = duration(ns)
        out.text(took)
        return len(took)
    if ns < 1_000:
        out.number(ns)
        out.put(b" ns")
        return out.size() - start
    cells, unit, scale = 0, b" s", _SECOND
    if ns < 999_500:
        cells, unit, scale = -1, _MICROSECONDS, 1_000  # its first letter has two bytes
    elif ns < 999_500_000:
        unit, scale = b" ms", 1_000_000
    digits, parts = 0, 1
    if ns * 200 < 1_999 * scale:
        digits, parts = 2, 100
    elif ns * 20 < 1_999 * scale:
        digits, parts = 1, 10
    found = ns * parts // scale
    left = ns * parts - found * scale
    if 2 * left == scale:
        took = _short(ns)
        out.text(took)
        return len(took)
    if 2 * left > scale:
        found += 1
    if digits:
        out.fixed(found, digits)
    else:
        out.number(found)
    out.put(unit)
    return out.size() - start + cells


_MICROSECONDS = " µs".encode()


def size(count: int) -> str:
    """``312 B``, ``4.2 KiB``, ``1.0 MiB``."""
    if count < 1_024:
        return f"{count} B"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1_024
        if value < 1_023.95 or unit == "GiB":
            return f"{value:.1f} {unit}"
    raise AssertionError


_BARS = "▁▂▃▄▅▆▇█"


def bars(counts: Sequence[int]) -> str:
    """A bar for each count, scaled to the largest; ``·`` for 0."""
    most = max(counts, default=0)
    return "".join(_BARS[(len(_BARS) - 1) * count // most] if count else "·" for count in counts)


def write_size(out: JsonText, count: int) -> None:
    """Add the text of :func:`size`."""
    if count < 1_024:
        out.number(count)
        out.put(b" B")
    elif count < _MEBI:
        found, left = count * 10 >> 10, count * 10 & 0x3FF
        if left > 512 or (left == 512 and found & 1):  # as floats are rounded
            found += 1
        out.fixed(found, 1)
        out.put(b" KiB")
    else:
        out.text(size(count))


_MEBI = 1_048_525
"""The number of bytes from which on a size is given in MiB."""


def seconds(ns: int) -> str:
    """Seconds with nine digits after the point, exact."""
    sign, left = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{left // SECOND}.{left % SECOND:09d}"


def _micros(ns: int) -> str:
    """Seconds with six digits after the point; further digits are cut off."""
    if not 0 <= ns < _FAR:
        return seconds(ns)[:-3]
    left = ns // 1_000
    return f"{left // 1_000_000}.{left % 1_000_000:06d}"


_FAR = 1 << 62


class Clock:
    """Prints times in one of the forms of :data:`TIMES`. It remembers the first and the last one."""

    def __init__(self, letter: str = "r", first_ns: int | None = None) -> None:
        self.letter = letter
        self.first_ns = first_ns
        """The start of the form ``r``: the first packet, else the first time that is printed."""
        self._last_ns: int | None = None

    def write(self, out: JsonText, ns: int) -> None:
        """Add the time ``ns``."""
        if self.letter == "r" and self.first_ns is not None:
            first = self.first_ns
            left = ns - first
            if first <= ns and 0 <= left < _FAR:  # compiled, it may have overflowed
                out.fixed(left // 1_000, 6)
                return
        out.text(self.text(ns))

    def text(self, ns: int) -> str:
        """The time ``ns``, nanoseconds since the epoch."""
        if self.first_ns is None:
            self.first_ns = ns
        last, self._last_ns = self._last_ns, ns
        if self.letter == "e":
            return seconds(ns)
        if self.letter == "r":
            return _micros(ns - self.first_ns)
        if self.letter == "d":
            return _micros(ns - (ns if last is None else last))
        whole, part = divmod(ns, SECOND)
        try:
            parts = time.gmtime(whole) if self.letter == "u" else time.localtime(whole)
        except (OverflowError, ValueError, OSError):
            return seconds(ns)
        form = "%Y-%m-%dT%H:%M:%S" if self.letter == "u" else "%H:%M:%S"
        return f"{time.strftime(form, parts)}.{part:09d}"[:-3] + ("Z" if self.letter == "u" else "")
