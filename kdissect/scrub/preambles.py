"""The first messages of proxies and their clients, before Kafka → the same messages between other hosts.

Lengths, commands, ports and outcomes stay, so that the rest of the connection is found. Addresses and hosts
become others. Names, passwords, HTTP headers and further fields become filler.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import crc32c

from kdissect.model import DecodeError
from kdissect.scrub.allowed import FILLER
from kdissect.scrub.values import Scrubber, encoded
from kdissect.session.proxies import More, Reader, read_connect, read_socks5, read_v1, read_v2, reader_of

_CRC32C = 3
_IPV4, _NAME, _IPV6 = 1, 3, 4
_HEAD = re.compile(rb"(.*?)(\r?\n\r?\n)", re.DOTALL)
_REQUEST = re.compile(rb"CONNECT (\S+) (HTTP/1\.[01])\Z")
_STATUS = re.compile(rb"(HTTP/1\.[01] [0-9]{3})")
_LENGTH = re.compile(rb"\r?\n(content-length:[ \t]*[0-9]{1,9})[ \t]*(?=\r?\n|\Z)", re.IGNORECASE)
_WORDS = re.compile(
    rb"^PROXY (?:TCP4|TCP6|UNKNOWN) |^CONNECT | HTTP/1\.[01](?=\r?$)|^HTTP/1\.[01] [0-9]{3} ?", re.MULTILINE
)
"""The words of the protocols themselves, which stay."""


class FirstBytes(NamedTuple):
    """The first bytes of both ends: of the end that began, and of the other one."""

    initiator: bytes
    responder: bytes


def scrubbed_preambles(begin: FirstBytes, scrubber: Scrubber) -> FirstBytes:
    """The replacement of the first bytes, up to the end of the last preamble."""
    said, heard = b"", b""
    while True:
        left = bytearray(begin.initiator[len(said) :]), bytearray(begin.responder[len(heard) :])
        reader = reader_of(left[0]) if left[0] else None
        try:
            found = None if reader is None else reader(*left)
        except (More, DecodeError):
            found = None
        if found is None or reader is None or not found.initiator_bytes:
            return FirstBytes(said, heard)
        one, other = bytes(left[0][: found.initiator_bytes]), bytes(left[1][: found.responder_bytes])
        made = _WRITERS[reader](FirstBytes(one, other), scrubber)
        for each in (one, other):
            scrubber.taken.add_unknown(
                _WORDS.sub(b"\0", _LENGTH.sub(b"", each))
            )  # the length of a body stays
        said += made.initiator.ljust(len(one), b"\0")[: len(one)]
        heard += made.responder.ljust(len(other), b"\0")[: len(other)]


def _v1(begin: FirstBytes, scrubber: Scrubber) -> FirstBytes:
    words = begin.initiator[:-2].split(b" ")
    if len(words) != 6:
        return FirstBytes(begin.initiator[:6] + _filler(begin.initiator[6:-2]) + b"\r\n", b"")
    words[2:4] = [encoded(scrubber.host(word.decode("latin-1"))) for word in words[2:4]]
    return FirstBytes(b" ".join(words) + b"\r\n", b"")


def _v2(begin: FirstBytes, scrubber: Scrubber) -> FirstBytes:
    data, out = begin.initiator, bytearray(len(begin.initiator))
    out[:16] = data[:16]
    width = {1: 4, 2: 16}.get(data[13] >> 4, 0)
    at = 16 + 2 * width + 4
    if not width or at > len(data) or data[12] & 0xF != 1:
        return FirstBytes(bytes(out), b"")
    for place in (16, 16 + width):
        out[place : place + width] = scrubber.address(data[place : place + width])
    out[16 + 2 * width : at] = data[16 + 2 * width : at]
    checksum = None
    while at + 3 <= len(data):
        end = at + 3 + int.from_bytes(data[at + 1 : at + 3], "big")
        out[at : at + 3] = data[at : at + 3]
        if data[at] == _CRC32C and end - at == 7:
            checksum = at + 3
        at = end
    if checksum is not None:
        out[checksum : checksum + 4] = crc32c.crc32c(bytes(out)).to_bytes(4, "big")
    return FirstBytes(bytes(out), b"")


def _socks5(begin: FirstBytes, scrubber: Scrubber) -> FirstBytes:
    said, heard = begin
    at = 2 + said[1]
    out = bytearray(said[:at])
    if at < len(said) and said[at] == 1:  # a name and a password
        for _ in range(2):
            head = 2 if len(out) == at else 1
            size = said[len(out) + head - 1]
            start = len(out) + head
            out += said[len(out) : start] + _filler(said[start : start + size])
    out += _socks_address(said[len(out) :], scrubber)
    answer = bytearray(heard[:2])
    if len(heard) > 2 and said[at : at + 1] == b"\x01":
        answer += heard[2:4]
    answer += _socks_address(heard[len(answer) :], scrubber)
    return FirstBytes(bytes(out), bytes(answer))


def _socks_address(data: bytes, scrubber: Scrubber) -> bytes:
    """A request or a reply, whose address comes after three bytes."""
    if len(data) < 4:
        return data
    kind, width = data[3], {_IPV4: 4, _IPV6: 16}.get(data[3])
    if width is not None:
        return data[:4] + scrubber.address(data[4 : 4 + width]) + data[4 + width :]
    if kind != _NAME or len(data) < 5:
        return data[:4]
    end = 5 + data[4]
    return data[:5] + _host(data[5:end], scrubber) + data[end:]


def _connect(begin: FirstBytes, scrubber: Scrubber) -> FirstBytes:
    return FirstBytes(_heads(begin.initiator, scrubber), _heads(begin.responder, scrubber))


def _heads(data: bytes, scrubber: Scrubber) -> bytes:
    """Heads of HTTP messages, whose first lines stay; bodies become filler."""
    out = b""
    while found := _HEAD.match(data, len(out)):
        first, _, rest = found[1].partition(b"\n")
        first = first.removesuffix(b"\r")
        rest = found[1][len(first) :]
        asked, answered = _REQUEST.match(first), _STATUS.match(first)
        if asked is not None:
            line = b"CONNECT " + _host(asked[1], scrubber) + b" " + asked[2]
        elif answered is not None:
            line = answered[1] + (
                b" " + _filler(first[len(answered[1]) + 1 :]) if first != answered[1] else b""
            )
        else:  # the body of an answer, up to the next one
            end = max(data.find(b"HTTP/1.", len(out)), len(out))
            if end == len(out):
                break
            out += _filler(data[len(out) : end])
            continue
        out += line + _headers(rest) + found[2]
    return out + _filler(data[len(out) :])


def _headers(data: bytes) -> bytes:
    """Header lines without their values, except for the length of a body."""
    out, at = b"", 0
    for found in _LENGTH.finditer(data):
        out += _lines(data[at : found.start(1)]) + found[1]
        at = found.end(1)
    return out + _lines(data[at:])


def _lines(data: bytes) -> bytes:
    return re.sub(rb"[^\r\n]", FILLER.encode(), data)


def _host(data: bytes, scrubber: Scrubber) -> bytes:
    return encoded(scrubber.host(data.decode("utf-8", "surrogateescape")))


def _filler(data: bytes) -> bytes:
    return FILLER.encode() * len(data)


_WRITERS: dict[Reader, Callable[[FirstBytes, Scrubber], FirstBytes]] = {
    read_v1: _v1,
    read_v2: _v2,
    read_socks5: _socks5,
    read_connect: _connect,
}
"""The functions that write a preamble, by the functions that read it."""
