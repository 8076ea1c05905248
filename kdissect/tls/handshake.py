"""Handshake messages → their fields (RFC 8446, 4; RFC 5246, 7.4; RFC 6066; RFC 7301).

Only the fields that decryption needs or that are shown are read. A message that is too short is a
DecodeError.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from struct import unpack
from typing import NamedTuple

from kdissect.model import DecodeError
from kdissect.protocol.cursor import Cursor

HELLO_REQUEST, CLIENT_HELLO, SERVER_HELLO, NEW_SESSION_TICKET, END_OF_EARLY_DATA = 0, 1, 2, 4, 5
ENCRYPTED_EXTENSIONS, CERTIFICATE, CLIENT_KEY_EXCHANGE, FINISHED, KEY_UPDATE = 8, 11, 16, 20, 24

SERVER_NAME, ALPN, ENCRYPT_THEN_MAC, EXTENDED_MASTER_SECRET, SESSION_TICKET = 0, 16, 22, 23, 35
PRE_SHARED_KEY, EARLY_DATA, SUPPORTED_VERSIONS, KEY_SHARE = 41, 42, 43, 51
_KEY_SHARE = KEY_SHARE
"""The same as a C number when compiled."""

RETRY_RANDOM = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""The random of a ServerHello that is a HelloRetryRequest (RFC 8446, 4.1.3)."""

LARGEST_MESSAGE = 262_144
"""The most bytes of a message; chains of certificates have a few KiB."""

TLS_1_2, TLS_1_3 = 0x0303, 0x0304

VERSIONS = {0x0300: "SSL 3.0", 0x0301: "TLS 1.0", 0x0302: "TLS 1.1", TLS_1_2: "TLS 1.2", TLS_1_3: "TLS 1.3"}

ALERTS = {
    0: "close_notify",
    10: "unexpected_message",
    20: "bad_record_mac",
    21: "decryption_failed",
    22: "record_overflow",
    30: "decompression_failure",
    40: "handshake_failure",
    41: "no_certificate",
    42: "bad_certificate",
    43: "unsupported_certificate",
    44: "certificate_revoked",
    45: "certificate_expired",
    46: "certificate_unknown",
    47: "illegal_parameter",
    48: "unknown_ca",
    49: "access_denied",
    50: "decode_error",
    51: "decrypt_error",
    60: "export_restriction",
    70: "protocol_version",
    71: "insufficient_security",
    80: "internal_error",
    86: "inappropriate_fallback",
    90: "user_canceled",
    100: "no_renegotiation",
    109: "missing_extension",
    110: "unsupported_extension",
    111: "certificate_unobtainable",
    112: "unrecognized_name",
    113: "bad_certificate_status_response",
    114: "bad_certificate_hash_value",
    115: "unknown_psk_identity",
    116: "certificate_required",
    120: "no_application_protocol",
}
"""IANA's registry of alerts, including those of older versions (RFC 8446, 6; RFC 5246, 7.2)."""


def version_name(version: int) -> str:
    """``TLS 1.3``; ``0x7f1c`` for an unknown version."""
    name = VERSIONS.get(version)
    return f"0x{version:04x}" if name is None else name


def alert_name(code: int) -> str:
    """``handshake_failure``; ``unknown(200)`` for an unknown alert."""
    return ALERTS.get(code, f"unknown({code})")


class Hello(NamedTuple):
    """A ClientHello or a ServerHello."""

    random: bytes
    version: int
    """``legacy_version``."""
    session_id: bytes
    suites: tuple[int, ...]
    """The offered suites, or the chosen one."""
    compression: int
    """The chosen method; 0 in a ClientHello."""
    extensions: dict[int, bytes]
    """The extensions without the key share, which nobody reads. Other hellos may have the same object."""

    @property
    def is_retry(self) -> bool:
        """Whether it is a HelloRetryRequest."""
        return self.random == RETRY_RANDOM

    def chosen_version(self) -> int:
        """The version of the connection, according to a ServerHello."""
        data = self.extensions.get(SUPPORTED_VERSIONS)
        return self.version if data is None or len(data) != 2 else int.from_bytes(data, "big")


def offered_versions(version: int, extension: bytes | None) -> tuple[int, ...]:
    """The versions that a ClientHello offers, without GREASE values, which only test servers (RFC 8701).

    :param version: its ``legacy_version``.
    :param extension: its extension with versions; None without one.
    """
    if extension is None:
        return (version,)
    found = (int.from_bytes(extension[at : at + 2], "big") for at in range(1, len(extension) - 1, 2))
    return tuple(each for each in found if each & 0x0F0F != 0x0A0A)


_new_hello: Callable[..., Hello] = tuple.__new__


class Messages:
    """Fragments of one direction → complete handshake messages.

    After a loss, the start of the next message is unknown. It is known again after a record that consists of
    whole messages.
    """

    __slots__ = ("_data", "_is_lost")

    def __init__(self) -> None:
        self._data = bytearray()
        self._is_lost = False

    def feed(self, fragment: bytes) -> list[bytes]:
        """The messages that are now complete, each with its header of 4 bytes.

        :raises DecodeError: a message announces an impossible length; the bytes held are dropped.
        """
        if self._is_lost:
            if not _is_whole(fragment):
                return []
            self._is_lost = False
        if self._data:
            self._data += fragment
            length = int.from_bytes(self._data[1:4], "big")
            if len(self._data) < 4 or len(self._data) - 4 < length <= LARGEST_MESSAGE:
                return []
            fragment = bytes(self._data)
            self._data.clear()
        at, size, raw = 0, len(fragment), fragment
        out: list[bytes] = []
        while size - at >= 4:
            length = raw[at + 1] << 16 | raw[at + 2] << 8 | raw[at + 3]
            if length > LARGEST_MESSAGE:
                self.lose()
                raise DecodeError(f"a handshake message of {length} bytes", 0)
            end = at + 4 + length
            if end > size:
                break
            out.append(fragment if end - at == size else raw[at:end])
            at = end
        if at < size:
            self._data += fragment[at:]
        return out

    def lose(self) -> None:
        """Drop the bytes held, because fragments are missing."""
        self._data.clear()
        self._is_lost = True


def _is_whole(fragment: bytes) -> bool:
    """Whether a fragment consists of whole handshake messages."""
    at = 0
    while at + 4 <= len(fragment):
        at += 4 + int.from_bytes(fragment[at + 1 : at + 4], "big")
    return at == len(fragment)


def read_client_hello(message: bytes) -> Hello:
    """:raises DecodeError: the message is too short."""
    shape = _shape(message, 2)
    known = None if shape is None else _HELLOS.get(shape)
    return _read_client_hello(message, shape) if known is None else _again(known, message)


def read_server_hello(message: bytes) -> Hello:
    """:raises DecodeError: the message is too short."""
    shape = _shape(message, 0)
    known = None if shape is None else _HELLOS.get(shape)
    return _read_server_hello(message, shape) if known is None else _again(known, message)


_Shared = tuple[int, tuple[int, ...], int, dict[int, bytes]]
"""The version, the suites, the compression and the extensions of a hello."""
_HELLOS: dict[bytes, _Shared] = {}
"""What all hellos of a shape have. The hellos of a client differ in the random, the session's id and the key
share only, and so do a broker's answers to them."""
_MOST_HELLOS = 256
_LONGEST_SHAPE = 2_048
_RANDOM_AT, _SESSION_AT = 6, 38
"""The positions in a message of the random, and of the length of the session's id."""


def _shape(message: bytes, width: int) -> bytes | None:
    """The bytes of a hello without those that differ from one connection to another. None if those
    cannot be found.

    :param width: the size of the length of the list of suites; 0 if there is a suite and no list.
    """
    raw, size = message, len(message)
    if size <= _SESSION_AT or size > _LONGEST_SHAPE:
        return None
    suites = at = _SESSION_AT + 1 + raw[_SESSION_AT]
    if width:
        if at + 2 > size:
            return None
        at += 2 + (raw[at] << 8 | raw[at + 1])
        if at >= size:
            return None
        at += 1 + raw[at]
    else:
        at += 3
    if at > size or at == size - 1:
        return None
    at += 2  # the length of the extensions; a hello may have none
    begin = end = size
    while at + 4 <= size:
        stop = at + 4 + (raw[at + 2] << 8 | raw[at + 3])
        if stop > size:
            return None
        if raw[at] == 0 and raw[at + 1] == _KEY_SHARE:
            begin, end = at + 4, stop
            break
        at = stop
    # The type of the message, all lengths and the version are part of it.
    return b"".join((raw[:_RANDOM_AT], raw[_SESSION_AT : _SESSION_AT + 1], raw[suites:begin], raw[end:size]))


def _again(known: _Shared, message: bytes) -> Hello:
    """The hello of a message, from what all of its shape have."""
    raw, start = message, _SESSION_AT + 1
    random, session_id = raw[_RANDOM_AT:_SESSION_AT], raw[start : start + raw[_SESSION_AT]]
    version, suites, compression, extensions = known
    return _new_hello(Hello, (random, version, session_id, suites, compression, extensions))


def _keep(shape: bytes | None, known: _Shared) -> None:
    if shape is not None:
        if len(_HELLOS) >= _MOST_HELLOS:
            _HELLOS.clear()
        _HELLOS[shape] = known


def _read_client_hello(message: bytes, shape: bytes | None) -> Hello:
    cursor = Cursor(message, 4)
    version = cursor.read_uint16()
    random = cursor.read_bytes(32)
    session_id = _vector(cursor, 1)
    suites = _vector(cursor, 2)
    _vector(cursor, 1)
    count = len(suites) // 2
    codes = unpack(f">{count}H", suites[: 2 * count])
    extensions = _hello_extensions(cursor)
    _keep(shape, (version, codes, 0, extensions))
    return Hello(random, version, session_id, codes, 0, extensions)


def _read_server_hello(message: bytes, shape: bytes | None) -> Hello:
    cursor = Cursor(message, 4)
    version = cursor.read_uint16()
    random = cursor.read_bytes(32)
    session_id = _vector(cursor, 1)
    codes = (cursor.read_uint16(),)
    compression = cursor.read_bytes(1)[0]
    extensions = _hello_extensions(cursor)
    _keep(shape, (version, codes, compression, extensions))
    return Hello(random, version, session_id, codes, compression, extensions)


def _hello_extensions(cursor: Cursor) -> dict[int, bytes]:
    found = _extensions(cursor)
    found.pop(KEY_SHARE, None)
    return found


def read_encrypted_extensions(message: bytes) -> dict[int, bytes]:
    """:raises DecodeError: the message is too short."""
    return _extensions(Cursor(message, 4))


def read_certificates(message: bytes, version: int) -> list[bytes]:
    """The certificates of a chain, in DER, the sender's own first.

    :raises DecodeError: the message is too short.
    """
    cursor = Cursor(message, 4)
    if version == TLS_1_3:
        _vector(cursor, 1)
    chain = Cursor(_vector(cursor, 3))
    found: list[bytes] = []
    while chain.remaining():
        found.append(_vector(chain, 3))
        if version == TLS_1_3:
            _vector(chain, 2)
    return found


def read_ticket(message: bytes) -> bytes:
    """The ticket of a NewSessionTicket of TLS 1.2 (RFC 5077, 3.3).

    :raises DecodeError: the message is too short.
    """
    cursor = Cursor(message, 4)
    cursor.take(4)
    return _vector(cursor, 2)


def read_encrypted_premaster(message: bytes) -> bytes:
    """The encrypted premaster secret in a ClientKeyExchange of RSA key exchange.

    :raises DecodeError: the message is too short.
    """
    return _vector(Cursor(message, 4), 2)


@lru_cache(256)
def server_name(extension: bytes) -> str | None:
    """The host name that a client asks for (RFC 6066, 3); None if there is no name, or it is no text."""
    try:
        names = Cursor(_vector(Cursor(extension), 2))
        while names.remaining():
            kind = names.read_bytes(1)[0]
            name = _vector(names, 2)
            if kind == 0:
                return _text(name)
    except DecodeError:
        pass
    return None


def protocols(extension: bytes) -> list[str]:
    """The protocol names in an ALPN extension (RFC 7301, 3.1), up to the first that cannot be read."""
    found: list[str] = []
    try:
        names = Cursor(_vector(Cursor(extension), 2))
        while names.remaining():
            found.append(_text(_vector(names, 1)))
    except DecodeError:
        pass
    return found


def _text(data: bytes) -> str:
    return data.decode("ascii", "backslashreplace")


def _vector(cursor: Cursor, width: int) -> bytes:
    """Bytes after a length of ``width`` bytes."""
    prefix, length, at = cursor.read_bytes(width), 0, 0
    raw = prefix
    while at < width:
        length = length << 8 | raw[at]
        at += 1
    return cursor.read_bytes(length)


def _extensions(cursor: Cursor) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    if not cursor.remaining():
        return found
    data, at = _vector(cursor, 2), 0
    size, raw = len(data), data
    while at + 4 <= size:
        end = at + 4 + (raw[at + 2] << 8 | raw[at + 3])
        if end > size:
            break
        found.setdefault(raw[at] << 8 | raw[at + 1], data[at + 4 : end])
        at = end
    block = Cursor(data, at)
    while block.remaining():  # it is too short: the cursor says how
        code = block.read_uint16()
        found.setdefault(code, _vector(block, 2))
    return found
