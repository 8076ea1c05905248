"""The dates of an X.509 certificate (RFC 5280, 4.1), without the package ``cryptography``.

Loading its part for certificates takes longer than decrypting a thousand connections. Nearly all certificates
are valid when they are shown, and then nothing else in them is needed to find no fault.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_SEQUENCE, _VERSION = 0x30, 0xA0
_LENGTHS = {0x17: 13, 0x18: 15}
"""The lengths of a UTCTime and of a GeneralizedTime (RFC 5280, 4.1.2.5)."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(when: datetime) -> int:
    """The time since the epoch."""
    return (when - _EPOCH) // _MICROSECOND


def valid_us(der: bytes) -> tuple[int, int] | None:
    """The first and the last microsecond, since the epoch, at which a certificate is valid; None if its dates
    are not where they should be."""
    try:
        at, end = _inside(der, *_inside(der, 0, len(der)))
        if der[at] == _VERSION:
            at = _element(der, at, end)[1]
        for _ in range(3):  # serial number, algorithm, issuer
            at = _element(der, at, end)[1]
        at, end = _inside(der, at, end)
        middle = _element(der, at, end)[1]
        return _time(der, at, end), _time(der, middle, end)
    except (IndexError, ValueError):
        return None


def _element(der: bytes, at: int, end: int) -> tuple[int, int]:
    """The beginning and the end of the content of an element.

    :raises ValueError: it does not end before ``end``.
    """
    size = der[at + 1]
    begin = at + 2
    if size > 0x80:
        begin += size - 0x80
        size = int.from_bytes(der[at + 2 : begin], "big")
    elif size == 0x80:
        raise ValueError("its length is not given")
    if begin + size > end:
        raise ValueError("it is too long")
    return begin, begin + size


def _inside(der: bytes, at: int, end: int) -> tuple[int, int]:
    """As :func:`_element`, for a sequence."""
    if der[at] != _SEQUENCE:
        raise ValueError("not a sequence")
    return _element(der, at, end)


def _time(der: bytes, at: int, end: int) -> int:
    begin, stop = _element(der, at, end)
    digits, zone = der[begin : stop - 1], der[stop - 1 : stop]
    if stop - begin != _LENGTHS.get(der[at]) or zone != b"Z" or not digits.isdigit():
        raise ValueError("not a time")
    if len(digits) == 12:
        digits = (b"19" if digits >= b"50" else b"20") + digits
    parts = [int(digits[each : each + 2]) for each in range(4, 14, 2)]
    return microseconds(datetime(int(digits[:4]), *parts, tzinfo=UTC))  # type: ignore[misc,arg-type]
