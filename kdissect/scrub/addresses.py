"""IP addresses → other addresses with the same shared prefixes (Crypto-PAn); texts with addresses.

Crypto-PAn (Xu, Fan, Ammar, Moon: Prefix-preserving IP address anonymization, 2002) flips or keeps each bit.
That depends on the key and on the bits before it. So two addresses with exactly n first bits in common become
two addresses with exactly n first bits in common. Messages contain addresses as text, and no message may
change its length. So a bit is only flipped if no number gets more or fewer digits by it: ``10.0.0.7`` becomes
an address of eight characters.

Loopback addresses (127.0.0.0/8, ::1) and unspecified ones (0.0.0.0/8, ::) say nothing and stay.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from kdissect.scrub.permutation import Permutation

_DECIMAL, _HEXADECIMAL = (0, 10, 100, 256), (0, 1, 0x10, 0x100, 0x1000, 0x10000)
"""The values at which numbers get one more digit. Hexadecimal 0 has a range of its own, because runs of zeros
are left out of a text."""
_STAYING = (0, 127)
"""First numbers of IPv4 addresses that say nothing."""
_MAPPED = bytes(10) + b"\xff\xff"
"""The prefix of an IPv6 address that contains an IPv4 address."""
_NAME = re.compile(r"[^.]+")
_ENDS = re.compile(r"(/?)(\[?)(.*?)(\]?)((?::\d+)?)", re.DOTALL)
"""A host in a message: a slash before it as Java prints it, brackets, a port after it."""


class Addresses:
    """Replaces addresses by a key."""

    def __init__(self, permutation: Permutation) -> None:
        self._permutation = permutation
        self.packed = lru_cache(maxsize=65_536)(self._packed)
        """``packed(address)``: the replacement of an address of 4 or 16 bytes."""

    def _packed(self, address: bytes) -> bytes:
        if len(address) == 4:
            return self._ipv4(address)
        if address.startswith(_MAPPED):
            return _MAPPED + self._ipv4(address[12:])
        return self._numbers(address, 2, _HEXADECIMAL, ())

    def _ipv4(self, address: bytes) -> bytes:
        return address if address[0] in _STAYING else self._numbers(address, 1, _DECIMAL, _STAYING)

    def _numbers(self, address: bytes, width: int, steps: tuple[int, ...], staying: tuple[int, ...]) -> bytes:
        out = bytearray()
        bits = 8 * width
        is_first = True
        for at in range(0, len(address), width):
            number = int.from_bytes(address[at : at + width], "big")
            fixed = staying if at == 0 else ()
            turned = 0
            for place in range(bits - 1, -1, -1):
                first = number >> (place + 1) << (place + 1)
                last = first + (2 << place) - 1
                if not _changes_form(first, last, steps, fixed):
                    head = address[:at] + (number >> (place + 1)).to_bytes(width, "big") + bytes((place,))
                    turn = is_first or self._permutation.bits(b"address%d" % len(address), head) & 1
                    turned |= turn << place
                    is_first = False
            out += (number ^ turned).to_bytes(width, "big")
        return bytes(out)

    def host(self, text: str) -> str:
        """The replacement of a host in a message: of an address, or of a name, which keeps its dots."""
        slash, opening, host, closing, port = _ENDS.fullmatch(text).groups()  # type: ignore[union-attr]  # fits all
        if not opening and text.count(":") > 1:  # an IPv6 address has no port split off
            host, port = text[len(slash) :], ""
        try:
            new = str(ip_address(self.packed(ip_address(host).packed)))
        except ValueError:
            pass
        else:
            if len(new) == len(host) and str(ip_address(host)) == host:
                return slash + opening + new + closing + port
        return slash + opening + self.name(host) + closing + port

    def name(self, text: str) -> str:
        """The replacement of a host name. Hosts of one domain stay hosts of one domain."""
        whole = self._permutation.name(text)
        if whole == text or "." not in text:
            return whole
        return _NAME.sub(lambda found: self._permutation.name(found[0]), text)


def identifies_no_host(text: str) -> bool:
    """Whether a text is an address that stays, with the characters that messages put around it."""
    found = _ENDS.fullmatch(text)
    try:
        return found is not None and not identifies_host(ip_address(found[3]).packed)
    except ValueError:
        return False


def _changes_form(first: int, last: int, steps: tuple[int, ...], staying: tuple[int, ...]) -> bool:
    """Whether the numbers of this range differ in a property that must stay."""
    if any(first <= each <= last for each in staying):
        return True
    return any(first < step <= last for step in steps)


def identifies_host(address: bytes) -> bool:
    """Whether an address identifies a host."""
    if address.startswith(_MAPPED):
        address = address[12:]
    if len(address) == 4:
        return address[0] not in _STAYING
    return address not in (IPv6Address("::").packed, IPv6Address("::1").packed)
