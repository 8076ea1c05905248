"""What can be wrong with captured bytes: the closed list of fault kinds, each with its layer and meaning.

``kdissect fields faults`` prints this table. A kind that is not here cannot be reported: the tests
compare the kinds that the code names with the keys below.
"""

from __future__ import annotations

from kdissect.model import Fault

KINDS: dict[str, tuple[str, str]] = {
    # file
    "not-a-capture": ("file", "the file does not begin like a capture"),
    "cut-short": ("file", "the file ends inside a record or block"),
    "bad-length": ("file", "a record or block announces a length that it cannot have"),
    "bad-block": ("file", "a block's contents do not fit its form"),
    "bad-interface": ("file", "a packet names an interface that the section does not describe"),
    "bad-compression": ("file", "the compressed file is damaged here"),
    "unreadable": ("file", "the file cannot be opened, or reading it failed"),
    "bad-entry": ("file", "an entry of a log directory's file does not have its form"),
    "index-mismatch": ("file", "an index entry does not agree with the segment it points into"),
    "torn-tail": ("file", "the segment ends inside a batch"),
    "late-file": ("file", "its packets were captured before others that were read before it"),
    "waiting-file": (
        "file",
        "a file of a stream is empty or ends inside a record, and has not grown for long; if it grows, "
        "reading goes on",
    ),
    "packets-lost": (
        "file",
        "packets could not be written while capturing, because the disk or the spool was full; the packet is "
        "the last before them",
    ),
    "interface-gone": (
        "file",
        "an interface has vanished while capturing; the packet is the last before that",
    ),
    "trailing-bytes": ("file", "bytes follow the last complete entry"),
    # link
    "unknown-link-type": ("link", "packets of this link type cannot be read"),
    "bad-header": ("link", "a link, IP or TCP header does not have its form"),
    "fragment-lost": ("link", "an IP packet of which not all fragments were captured"),
    "too-many-layers": ("link", "headers nested deeper than the limit"),
    # tcp
    "gap": ("tcp", "bytes existed and were not captured"),
    "different-retransmission": ("tcp", "bytes were sent again with other contents; the first copy counts"),
    "out-of-window": ("tcp", "a segment far outside what was seen so far, or before it; left out"),
    "buffer-limit": (
        "tcp",
        "more bytes wait than the limit allows: behind a gap, for the rest of a frame or for a response; "
        "kdissect gives them up",
    ),
    "too-many-connections": (
        "tcp",
        "more connections at a time than the limit; those that were silent longest were given up",
    ),
    # tls
    "bad-tls-record": ("tls", "bytes that are no TLS record, where one should begin"),
    "bad-handshake": ("tls", "a TLS handshake message that does not have its form"),
    "not-authentic": (
        "tls",
        "a TLS record that its key does not open: changed on its way, or the key is another's",
    ),
    "not-decrypted": ("tls", "a TLS connection whose secrets were looked for and that stays encrypted"),
    "too-many-secrets": ("tls", "more TLS secrets are known than the limit; the oldest were forgotten"),
    "expired-certificate": ("tls", "a certificate that was not valid when it was shown"),
    # frame
    "bad-size": ("frame", "a size prefix that no frame can have"),
    "skipped": ("frame", "captured bytes that are in no frame"),
    "bad-preamble": (
        "frame",
        "what a proxy says before the connection is its client's (PROXY protocol, SOCKS5, HTTP CONNECT) does "
        "not have its form, or is not whole",
    ),
    "cut-frame": ("frame", "a frame of which not all bytes were captured"),
    # session
    "unknown-api": ("session", "an API key or version that the definitions do not have"),
    "broken-request": (
        "session",
        "a frame has the header of a request, but does not fit or is unknown; nothing else shows that the "
        "connection is Kafka's",
    ),
    "out-of-order": ("session", "a response came before that of an earlier request"),
    "duplicate-correlation": ("session", "a correlation id is used while an earlier request with it waits"),
    "too-many-pending": (
        "session",
        "more requests wait for their response than the limit; the oldest was given up",
    ),
    "seen-elsewhere": (
        "session",
        "of several capture points of one traffic, one lacks exchanges of connections that it has, or parts; "
        "another has them",
    ),
    "too-many-names": ("session", "more topic ids are named than the limit; those told later stay ids"),
    # message
    "malformed": ("message", "bytes that do not have the form of their type"),
    "truncated": ("message", "the message ends inside a field, or before what a count announces"),
    "negative-length": ("message", "a length below zero where none is allowed"),
    "varint-too-long": ("message", "a varint over its type's width"),
    "too-many-elements": ("message", "more elements than the limit; those beyond it are left alone"),
    "unexpected-null": ("message", "null in a field that cannot be null"),
    "remainder": ("message", "bytes are left after the last field"),
    "tag-order": ("message", "tagged fields that are not in ascending order, or twice"),
    "not-utf8": ("message", "a string that is not UTF-8"),
    "embedded": ("message", "bytes inside the message do not have the form of what they should hold"),
    "unknown-version": ("message", "embedded bytes of a type or version that the definitions do not have"),
    # records
    "partial-batch": ("records", "the record set ends inside a batch"),
    "bad-crc": ("records", "the checksum does not fit the bytes"),
    "bad-magic": ("records", "a magic byte other than 0, 1 and 2"),
    "bad-batch": ("records", "a batch or message whose fields contradict each other"),
    "bad-record": ("records", "a record that does not have its form"),
    "record-count": ("records", "the batch announces another number of records than it holds"),
    "unknown-codec": ("records", "a compression codec that Kafka does not have"),
    "bad-compressed-data": ("records", "compressed records that cannot be unpacked"),
    "decompression-limit": ("records", "compressed records larger than the limit; unpacked up to it"),
    "payload": (
        "records",
        "with --decode-as or --schemas: a key or value that does not have the form of its schema or format",
    ),
    "nested-compression": ("records", "a compressed message inside a compressed message; not unpacked"),
}
"""kind: (layer, meaning)."""


new_tuple = tuple.__new__


def fault(
    kind: str,
    message: str,
    packet: int | None = None,
    offset: int | None = None,
    connection: int | None = None,
    exchange: int | None = None,
    layer: str | None = None,
) -> Fault:
    """A Fault with the layer of its kind, or with another ``layer`` in which the same kind is found. (A
    varint too long in a record is a matter of the records.)

    :raises KeyError: the kind is not in the table.
    """
    place = layer or KINDS[kind][0]
    return new_tuple(Fault, (place, kind, message, packet, offset, connection, exchange))


def is_cut(fault: Fault) -> bool:
    """Whether it tells of bytes that the snap length cut off."""
    return fault.kind == "gap" and _CUT in fault.message


_CUT = "snap length"
"""What the fault of a gap says that the snap length made."""
