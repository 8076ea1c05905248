"""The preambles of proxies and their clients, which precede the client's own data, and their readers.

``PROXY v1``, ``PROXY v2``  a load balancer names its client to the broker (HAProxy's PROXY protocol).
``SOCKS5``                  a client asks a proxy for a connection (RFC 1928; with a password, RFC 1929).
``HTTP CONNECT``            a client asks an HTTP proxy for a connection (RFC 9110, 9.3.6).

Each function gets the bytes so far of the end that began, and of the other end. It returns a
:class:`Preamble`, or None for other data. Names, passwords and headers are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any, NamedTuple

from kdissect.lazy import Later
from kdissect.model import DecodeError, Endpoint, endpoint_text

if TYPE_CHECKING:
    import crc32c
else:
    crc32c = Later("crc32c", "_crc32c")

V2_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
V1_BYTES = 107
"""The longest line of version 1, including its end."""

HEAD_BYTES = 16_384
"""The longest head of an HTTP message; proxies allow 8 KiB or a little more."""
ANSWER_BYTES = 65_536
"""The most bytes that a proxy may send before it grants or finally refuses a tunnel."""
TARGET_CHARACTERS = 300
"""The longest target; a host name has at most 255 characters."""

SUCCEEDED = "succeeded"


class More(Exception):  # noqa: N818 - it is no error
    """The bytes end inside a preamble."""


class Preamble(NamedTuple):
    """A complete preamble."""

    initiator_bytes: int
    """The number of its bytes from the end that began."""
    responder_bytes: int
    """The number of its bytes from the other end."""
    facts: dict[str, Any]
    """Its facts, for people and JSON."""
    client: Endpoint | None = None
    """The client of the connection, if a proxy names it."""
    defect: str | None = None
    """A defect of it, though its end is known."""
    is_refused: bool = False
    """Whether the proxy refused."""
    is_half: bool = False
    """Whether the other end has sent nothing so far; it may not have been captured."""


class _Bytes:
    """Bytes that are read from the front."""

    def __init__(self, data: bytes | bytearray) -> None:
        self.data, self.position = bytes(data), 0

    def take(self, count: int) -> bytes:
        """Take the next ``count`` bytes.

        :raises More: fewer bytes are there.
        """
        end = self.position + count
        if end > len(self.data):
            raise More
        taken = self.data[self.position : end]
        self.position = end
        return taken

    def byte(self) -> int:
        """Take the next byte, as a number."""
        return self.take(1)[0]

    @property
    def next(self) -> int | None:
        """The next byte, without taking it; None if no more have come so far."""
        return self.data[self.position] if self.position < len(self.data) else None


Reader = Callable[[bytearray, bytearray], Preamble | None]
"""Bytes from the end that began, and from the other end → the preamble, or None for other data.

:raises More: the preamble is incomplete.
:raises DecodeError: it is a preamble, but its end cannot be found.
"""


# -- the PROXY protocol -----------------------------------------------------------------------------

_FAMILIES: dict[str, type[IPv4Address | IPv6Address]] = {"TCP4": IPv4Address, "TCP6": IPv6Address}


def read_v1(sent: bytearray, _: bytearray) -> Preamble | None:
    """``PROXY TCP4 192.0.2.1 198.51.100.1 51000 9092\\r\\n``"""
    end = sent.find(b"\r\n", 0, V1_BYTES)
    if end < 0:
        if len(sent) < V1_BYTES:
            raise More
        raise DecodeError(f"a PROXY line does not end within {V1_BYTES} bytes", 0)
    words = sent[:end].decode("latin-1").split(" ")
    facts: dict[str, Any] = {"protocol": "PROXY v1"}
    if words[1] == "UNKNOWN":
        return Preamble(end + 2, 0, facts)
    try:
        (family, source, destination, *ports) = words[1:]
        kind = _FAMILIES[family]
        client, target = (
            kind(address).packed + _port(port)
            for address, port in zip((source, destination), ports, strict=True)
        )
    except (ValueError, KeyError):
        return Preamble(end + 2, 0, facts, defect="a PROXY line whose addresses cannot be read")
    facts |= {"client": endpoint_text(client), "destination": endpoint_text(target)}
    return Preamble(end + 2, 0, facts, client)


def _port(text: str) -> bytes:
    if not re.fullmatch("[0-9]{1,5}", text) or int(text) > 65_535:
        raise ValueError(text)
    return int(text).to_bytes(2, "big")


_ADDRESS_BYTES = {1: 4, 2: 16}
_CRC32C, _AUTHORITY, _AWS = 0x03, 0x02, 0xEA
_AWS_ENDPOINT = 0x01
"""The type of AWS's own field with a VPC endpoint."""


def read_v2(sent: bytearray, _: bytearray) -> Preamble | None:
    """Read a signature, command and family, and a length of addresses and further fields."""
    if len(sent) < 16:
        raise More
    size = 16 + int.from_bytes(sent[14:16], "big")
    version, command = sent[12] >> 4, sent[12] & 0xF
    if version != 2:
        raise DecodeError(f"a PROXY header of version {version}", 12)
    if len(sent) < size:
        raise More
    facts: dict[str, Any] = {"protocol": "PROXY v2"}
    if command == 0:  # the proxy's own connection, to check whether the broker is there
        return Preamble(size, 0, facts | {"command": "LOCAL"})
    if command != 1:
        return Preamble(size, 0, facts, defect=f"a PROXY header with the unknown command {command}")
    family = sent[13] >> 4
    width = _ADDRESS_BYTES.get(family)
    if width is None:  # unspecified, or a Unix socket
        return Preamble(size, 0, facts)
    body = bytes(sent[16:size])
    fields = 2 * width + 4
    if len(body) < fields:
        defect = f"a PROXY header of {len(body)} bytes, too short for the {fields} bytes of its addresses"
        return Preamble(size, 0, facts, defect=defect)
    client = body[:width] + body[2 * width : 2 * width + 2]
    target = body[width : 2 * width] + body[2 * width + 2 : fields]
    facts |= {"client": endpoint_text(client), "destination": endpoint_text(target)}
    return Preamble(size, 0, facts, client, _read_fields(sent, 16 + fields, size, facts))


def _read_fields(header: bytearray, position: int, end: int, facts: dict[str, Any]) -> str | None:
    """Add the facts of the fields after the addresses. Return a description of their defect, if there is
    one."""
    while position < end:
        start = position + 3
        position = start + int.from_bytes(header[start - 2 : start], "big")
        if position > end:
            return "a PROXY header whose last field is cut"
        kind, value = header[start - 3], bytes(header[start:position])
        if kind == _AUTHORITY:
            facts["authority"] = _text(value)
        elif kind == _AWS and value[:1] == bytes((_AWS_ENDPOINT,)):
            facts["vpc_endpoint"] = _text(value[1:])
        elif kind == _CRC32C:
            covered = bytes(header[:start]) + bytes(len(value)) + bytes(header[position:end])
            if crc32c.crc32c(covered).to_bytes(4, "big") != value:
                return "a PROXY header whose checksum does not fit"
    return None


# -- SOCKS5 -----------------------------------------------------------------------------------------

_NO_LOGIN, _PASSWORD, _NO_METHOD = 0, 2, 0xFF
_REPLIES = (
    *(SUCCEEDED, "general failure", "not allowed", "network unreachable", "host unreachable"),
    *("connection refused", "time to live expired", "command not supported", "address type not supported"),
)
_IPV4, _NAME, _IPV6 = 1, 3, 4


def read_socks5(sent: bytearray, received: bytearray) -> Preamble | None:
    """Read the methods and the choice among them, a login, a request and its reply. If nothing of the proxy
    was captured, the client's next bytes show its choice."""
    ours, theirs = _Bytes(sent), _Bytes(received)
    is_half = not received
    ours.byte()
    methods = ours.take(ours.byte())
    if not methods or len(set(methods)) < len(methods) or _NO_METHOD in methods:
        return None
    facts: dict[str, Any] = {"protocol": "SOCKS5"}
    if is_half:
        if ours.next is None:
            raise More
        guessed = {5: _NO_LOGIN, 1: _PASSWORD}.get(ours.next)
        if guessed is None or guessed not in methods:
            return None
        method = guessed
    elif received[0] != 5:
        return None
    else:
        method = theirs.take(2)[1]
        if method == _NO_METHOD:
            return _refused(ours, theirs, facts, "no acceptable method")
        if method not in methods:
            return None
    if method == _PASSWORD:
        if ours.byte() != 1:
            raise DecodeError("a SOCKS5 login of an unknown version", ours.position - 1)
        facts["login"] = "password"
        ours.take(ours.byte())  # a name: some proxies have tokens here
        ours.take(ours.byte())
        if not is_half and theirs.take(2)[1] != 0:
            return _refused(ours, theirs, facts, "login failed")
    elif method != _NO_LOGIN:
        raise DecodeError(f"SOCKS5 with the method {method}, which is not read", 0)
    at = ours.position
    version, command, _ = ours.take(3)
    facts["target"] = _socks_address(ours)
    if version != 5 or command != 1:
        raise DecodeError("a SOCKS5 request that is not for a connection", at)
    if not is_half:
        reply = theirs.take(3)[1]
        _socks_address(theirs)
        if reply:
            outcome = _REPLIES[reply] if reply < len(_REPLIES) else f"reply {reply}"
            return _refused(ours, theirs, facts, outcome)
        facts["outcome"] = SUCCEEDED
    return Preamble(ours.position, theirs.position, facts, is_half=is_half)


def _refused(ours: _Bytes, theirs: _Bytes, facts: dict[str, Any], outcome: str) -> Preamble:
    return Preamble(ours.position, theirs.position, facts | {"outcome": outcome}, is_refused=True)


def _socks_address(data: _Bytes) -> str:
    kind = data.byte()
    if kind in (_IPV4, _IPV6):
        return endpoint_text(data.take((4 if kind == _IPV4 else 16) + 2))
    if kind != _NAME:
        raise DecodeError(f"a SOCKS5 address of the unknown type {kind}", data.position - 1)
    name = data.take(data.byte())
    return f"{_text(name)}:{int.from_bytes(data.take(2), 'big')}"


# -- HTTP -------------------------------------------------------------------------------------------

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_ASKS = re.compile(rb"CONNECT ([!-~]+) HTTP/1\.[01]\r?\n")
_ANSWERS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})[ \r\n]")
_LENGTH = re.compile(rb"\ncontent-length:[ \t]*([0-9]{1,9})[ \t]*\r?\n", re.IGNORECASE)
_SCHEME = re.compile(rb"\nproxy-authorization:[ \t]*(basic|bearer|digest|negotiate|ntlm)?\b", re.IGNORECASE)


def read_connect(sent: bytearray, received: bytearray) -> Preamble | None:
    """Read a request for a tunnel and its answer. They are repeated if the proxy refused the first for lack
    of a login."""
    asked = answered = 0
    while True:
        head = _head(sent, asked)
        found = _ASKS.match(head)
        if found is None:
            return None
        asked += len(head)
        facts: dict[str, Any] = {"protocol": "HTTP CONNECT", "target": _text(found[1].rpartition(b"@")[2])}
        if scheme := _SCHEME.search(head):
            facts["login"] = (scheme[1] or b"other").decode().lower()
        if not received:
            if len(sent) == asked:
                raise More
            return Preamble(asked, 0, facts, is_half=True)
        status = 100
        while status < 200:
            answer = _head(received, answered)
            word = _ANSWERS.match(answer)
            if word is None:
                return None
            status = int(word[1])
            answered += len(answer)
        facts["outcome"] = SUCCEEDED if status < 300 else f"status {status}"
        if status < 300:
            return Preamble(asked, answered, facts)
        if len(received) > ANSWER_BYTES or len(sent) == asked:
            return Preamble(asked, answered, facts, is_refused=True)
        length = _LENGTH.search(answer)
        answered = answered + int(length[1]) if length else max(answered, received.find(b"HTTP/1.", answered))
        if answered >= len(received):
            raise More


def _head(data: bytearray, start: int) -> bytes:
    """The head of an HTTP message, with its end."""
    end = _HEAD_END.search(data, start, start + HEAD_BYTES)
    if end is None:
        if len(data) - start < HEAD_BYTES:
            raise More
        raise DecodeError(f"an HTTP head that is longer than {HEAD_BYTES:,} bytes", start)
    return bytes(data[start : end.end()])


def _text(data: bytes) -> str:
    return data[:TARGET_CHARACTERS].decode("utf-8", "backslashreplace")[:TARGET_CHARACTERS]


READERS: dict[bytes, Reader] = {
    b"PROXY ": read_v1,
    V2_SIGNATURE: read_v2,
    b"\x05": read_socks5,
    b"CONNECT ": read_connect,
}
"""The readers by the first bytes. None of these can be the size of a frame (SOCKS5's could, of 84 MB)."""


def reader_of(data: bytes | bytearray) -> Reader | None:
    """The reader of a preamble that may begin with these bytes, even if they are only the first few; None if
    no preamble does."""
    for begin, reader in READERS.items():
        if data[: len(begin)] == begin[: len(data)]:
            return reader
    return None
