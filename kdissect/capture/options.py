"""Options of pcapng blocks: (code, length, value) triples, each padded to four bytes."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from kdissect.wording import plural

Option = tuple[int, bytes]
Options = list[Option]

END, COMMENT = 0, 1
APPLICATION = 4
"""The option of a section with the application that wrote it."""
INTERFACE_NAME, INTERFACE_DESCRIPTION, TIME_RESOLUTION, TIME_OFFSET = 2, 3, 9, 14


class InterfaceClock(NamedTuple):
    """The clock of an interface: ``ticks * multiplier // divisor + offset_ns`` are nanoseconds since the
    epoch."""

    multiplier: int = 1_000
    divisor: int = 1
    offset_ns: int = 0

    def ns(self, ticks: int) -> int:
        """A time, in nanoseconds since the epoch."""
        return ticks * self.multiplier // self.divisor + self.offset_ns


def read_options(buffer: bytes, at: int, end: int, order: str) -> tuple[Options, str | None]:
    """The options in ``buffer[at:end]``, and a description of their damage, if there is any. Options before
    the damage are kept."""
    head = Struct(order + "HH").unpack_from
    options: Options = []
    while at < end:
        if at + 4 > end:
            return (
                options,
                f"ends with {plural(end - at, 'byte')} that {'is' if end - at == 1 else 'are'} not an option",
            )
        code, length = head(buffer, at)
        if code == END:
            return options, None
        if at + 4 + length > end:
            return (
                options,
                f"has an option {code} of {plural(length, 'byte')}, but "
                f"{plural(end - at - 4, 'is', 'are')} left",
            )
        options.append((code, buffer[at + 4 : at + 4 + length]))
        at += 4 + (length + 3 & ~3)
    return options, None


PACKET_NUMBERS = {2: 4, 4: 8, 5: 8, 6: 4}
"""The packet options that are one number, with their sizes: flags, drops, packet id, queue."""
INTERFACE_NUMBERS = {8: 8, 10: 4, 16: 8, 17: 8}
"""The interface options that are one number: speeds and time zone."""
STATISTICS_NUMBERS = {4: 8, 5: 8, 6: 8, 7: 8, 8: 8}
"""The statistics options that are one number: packets received, dropped, accepted, dropped by the system,
delivered."""
START_TIME, END_TIME = 2, 3
"""The statistics options for the beginning and the end of the capture."""
_VERDICT = 7
_CUSTOM = (2988, 2989, 19372, 19373)
_FIRST_UNKNOWN = 20
"""Options from this code on are not defined, except custom ones."""


def others(
    options: Options, known: tuple[int, ...], order: str, numbers: dict[int, int] | None = None
) -> tuple[Option, ...]:
    """The options without the known ones, for writing them again; numbers become little-endian. Options of
    unknown form cannot be converted, and are left out.

    :param numbers: the options that are one number, with their sizes.
    """
    kept = [(code, value) for code, value in options if code not in known]
    if order != ">" or not kept:
        return tuple(kept)
    turned = (_turned(code, value, numbers or {}) for code, value in kept)
    return tuple(each for each in turned if each is not None)


def _turned(code: int, value: bytes, numbers: dict[int, int]) -> Option | None:
    """Convert an option of a big-endian section to its little-endian form."""
    if code in _CUSTOM:
        return code, value[3::-1] + value[4:]
    if code >= _FIRST_UNKNOWN:
        return None
    if numbers.get(code) == len(value):
        return code, value[::-1]
    if numbers is PACKET_NUMBERS and code == _VERDICT and value[:1] in (b"\1", b"\2"):
        return code, value[:1] + value[:0:-1]
    return code, value


def packet_options(
    buffer: bytes, at: int, end: int, order: str
) -> tuple[tuple[str, ...], tuple[Option, ...], str | None]:
    """The comments of a packet and its other options, in ``buffer[at:end]``, and a description of their
    damage, if there is any. Comments should be UTF-8; other bytes are shown as U+FFFD."""
    found, wrong = read_options(buffer, at, end, order)
    said = tuple(value.decode("utf-8", "replace") for code, value in found if code == COMMENT)
    return said, others(found, (COMMENT,), order, PACKET_NUMBERS), wrong


def option_text(options: Options, code: int) -> str | None:
    """The first option ``code`` as text (some writers end it with a zero byte)."""
    for found, value in options:
        if found == code:
            return value.decode("utf-8", "replace").rstrip("\0")
    return None


def option_number(options: Options, code: int, order: str) -> int | None:
    """The first option ``code`` as an unsigned 64-bit number; None if it is absent or has another size."""
    for found, value in options:
        if found == code and len(value) == 8:
            return int.from_bytes(value, "big" if order == ">" else "little")
    return None


def option_time(options: Options, code: int, order: str, clock: InterfaceClock) -> int | None:
    """The first option ``code`` as a time, in nanoseconds since the epoch."""
    for found, value in options:
        if found == code and len(value) == 8:
            high, low = Struct(order + "II").unpack(value)
            return clock.ns(high << 32 | low)
    return None


def interface_clock(options: Options, order: str) -> InterfaceClock:
    """From ``if_tsresol`` (default: microseconds) and ``if_tsoffset`` (seconds, signed)."""
    multiplier, divisor, offset_ns = InterfaceClock()
    for code, value in options:
        if code == TIME_RESOLUTION and len(value) == 1:
            exponent = value[0] & 0x7F
            if value[0] & 0x80:
                multiplier, divisor = 1_000_000_000, 1 << exponent
            elif exponent <= 9:
                multiplier, divisor = 10 ** (9 - exponent), 1
            else:
                multiplier, divisor = 1, 10 ** (exponent - 9)
        elif code == TIME_OFFSET and len(value) == 8:
            seconds = int.from_bytes(value, "big" if order == ">" else "little", signed=True)
            offset_ns = seconds * 1_000_000_000
    return InterfaceClock(multiplier, divisor, offset_ns)
