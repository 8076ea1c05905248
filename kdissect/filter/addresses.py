"""``10.0.0.7``, ``10.0.0.7:9092``, ``10.0.0.0/8``, ``::1``, ``[::1]:9092`` … → ranges of addresses.

An address is a triple that Python can order: version, number, port. An address without a port means all its
ports, and a network means all its addresses.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address, ip_network

from kdissect.filter.syntax import Word

Key = tuple[int, int, int]
"""IP version, address, port (0 if the text has no port)."""

LAST_PORT = 65_535


@lru_cache(maxsize=65_536)
def key_of(text: str) -> Key | None:
    """The key of a captured address, with or without a port; None for other text."""
    try:
        return _parsed(text)[0]
    except ValueError:
        return None


def _parsed(text: str) -> tuple[Key, bool]:
    """An address, and whether it has a port.

    :raises ValueError: the text is no address.
    """
    host, port = text, ""
    if text.startswith("["):
        host, bracket, port = text[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            raise ValueError(text)
        port = port[1:]
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    found = ip_address(host)
    if not port:
        return (found.version, int(found), 0), False
    if not (port.isascii() and port.isdecimal()) or int(port[:6]) > LAST_PORT:
        raise ValueError(text)
    return (found.version, int(found), int(port)), True


def range_of(word: Word, name: str, with_port: bool) -> tuple[Key, Key]:
    """The first and the last address that a word means.

    :param with_port: whether the field ``name`` has ports.
    :raises FilterError: the word is no address, or has a port that the field does not have.
    """
    text = word.text
    try:
        if "/" in text:
            net = ip_network(text, strict=False)
            first, last = int(net.network_address), int(net.broadcast_address)
            return (net.version, first, 0), (net.version, last, LAST_PORT)
        key, has_port = _parsed(text)
    except ValueError:
        forms = "10.0.0.7, 10.0.0.7:9092 or 10.0.0.0/8" if with_port else "10.0.0.7 or 10.0.0.0/8"
        raise word.error(f"{name} is an address such as {forms}, and {text!r} is not") from None
    if has_port and not with_port:
        raise word.error(f"{name} has no port")
    return (key, key) if has_port else (key, (*key[:2], LAST_PORT))
