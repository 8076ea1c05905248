"""The result is read again, as every reader does it, and searched for everything that was removed.

    raw        the bytes of the file, for texts and for bytes that no number is by chance
    messages   every text and every bytes in messages, and every record, also for short names
    packets    the addresses of every layer

A hit in a word that the allow-list keeps does not count: a topic may be called ``consumer``, too. Loopback
addresses do not count either. Names shorter than :data:`~kdissect.scrub.needles.SURE_BYTES` may be in tokens
by chance. So their hits in tokens do not count. Names that are numbers are searched in messages only, and
there in all fields except those in which numbers stay.

The removed texts, and the data to search, may not fit in memory. Then they are searched part by part.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from typing import BinaryIO

from kdissect.capture.blocks import WRITER
from kdissect.capture.reader import Item
from kdissect.dissect import Dissector
from kdissect.embedded.internal import decode_internal
from kdissect.exchange import Exchange
from kdissect.limits import Limits
from kdissect.message import Message
from kdissect.model import Node, Packet
from kdissect.record.records import Record
from kdissect.record.sets import read_record_set
from kdissect.scrub.addresses import identifies_no_host
from kdissect.scrub.allowed import (
    KEPT_ENDS,
    KEPT_NAMES,
    KEPT_WORDS,
    MARK,
    PHRASES,
    is_plain_field,
    is_plain_value,
    is_version,
)
from kdissect.scrub.messages import is_metadata_topic_around, whole_tree
from kdissect.scrub.needles import FILLERS, SURE_BYTES, Hit, Needles
from kdissect.scrub.packets import Headers
from kdissect.scrub.permutation import KEY_BYTES
from kdissect.scrub.removed import LEAST_BYTES, MOST_BYTES, Pile, Taken
from kdissect.scrub.values import Scrubber, encoded

_NUMBERS = re.compile(rb"[0-9]{4,}")
"""Numbers that stay in logins: how often a password is hashed, and until when a token is valid."""
_DOTS = 3
"""The dots in an address."""
_RAW_TEXT_BYTES = 6
_RAW_DISTINCT = 8
"""The number of different bytes that no number in a capture has by chance."""
_LEAST_DISTINCT = 3
"""The number of different bytes, beside zeros, that make a text specific."""
_PIECE = 1 << 20
_AROUND = 1_024
"""The bytes around a hit in a file that are searched for a token."""
MOST_DOUBTS = 100_000
"""The most hits that may be chance; if there are more, they are not."""
_WORDS = {*KEPT_NAMES, *KEPT_WORDS, *KEPT_ENDS, *PHRASES}
_KEPT = (MARK, WRITER, *(word.encode() for word in _WORDS if len(word) >= LEAST_BYTES))


class Search:
    """Searches for removed texts.

    :param most_doubts: the most hits of short names that may be in tokens by chance.
    """

    def __init__(self, taken: Taken, limits: Limits, most_doubts: int = MOST_DOUBTS) -> None:
        self._limits = limits
        self._taken = taken
        self._most_doubts = most_doubts

    def file(self, file: BinaryIO) -> str | None:
        """Search the bytes of the file; return where something was found, in words."""
        doubts = _Doubts(self._most_doubts)
        for texts in self._texts():
            needles = Needles(filter(_is_sure, texts))
            file.seek(0)
            for at, data in _pieces(file):
                for hit in needles.find(data):
                    if _is_excused(data, hit):
                        continue
                    place = at + hit.at
                    first = max(0, hit.at - _AROUND)
                    around = data[first : hit.at + len(hit.needle) + _AROUND]
                    if not doubts.may_be_chance(around, Hit(hit.at - first, hit.needle), place):
                        return _place_in_file(place)
        found = doubts.remaining(self._taken.tokens)
        return None if found is None else _place_in_file(found)

    def capture(self, items: Iterable[Item], ports: frozenset[int]) -> str | None:
        """Search packets and messages of the result; return where something was found, in words."""
        said, addresses = Pile(), Pile()
        dissector = Dissector(self._limits, ports)
        headers = Headers(Scrubber(bytes(KEY_BYTES)), self._limits)
        for item in items:
            if isinstance(item, Packet) and not _note_addresses(item, headers, addresses):
                return f"in packet {item.number}, which cannot be read"
            for event in dissector.feed(item):
                if isinstance(event, Exchange):
                    self._note(event, said)
        for event in dissector.close():
            if isinstance(event, Exchange):
                self._note(event, said)
        return self._in_headers(addresses) or self._in_messages(said)

    def _texts(self) -> Iterator[set[bytes]]:
        """The texts to search for: those of at least :data:`LEAST_BYTES` that are specific."""
        for part in self._taken.texts.parts():
            yield {each for each in part if len(each) >= LEAST_BYTES and _is_specific(each)}
        for part in self._taken.addresses.parts():
            yield {str(ip_address(each)).encode() for each in part}

    def _in_headers(self, addresses: Pile) -> str | None:
        for part in self._taken.addresses.parts():
            for there in addresses.parts():
                for address in part.keys() & there.keys():
                    return f"in the headers of packet {there[address]}: an address"
        return None

    def _in_messages(self, said: Pile) -> str | None:
        doubts = _Doubts(self._most_doubts)
        for texts in self._texts():
            needles = Needles(texts)
            for part in said.parts():
                for data, exchange in part.items():
                    for hit in needles.find(data):
                        if _is_excused(data, hit) or doubts.may_be_chance(data, hit, exchange):
                            continue
                        return _place_in_messages(exchange)
        found = doubts.remaining(self._taken.tokens)
        return None if found is None else _place_in_messages(found)

    def _note(self, exchange: Exchange, said: Pile) -> None:
        """Note all texts in the messages of an exchange."""
        for message in exchange.messages:
            for data in self._values(exchange, message):
                if len(data) >= LEAST_BYTES and data.strip(b"\0"):
                    said.add(data, exchange.number)
        for message in exchange.messages:
            message.forget_body()

    def _values(self, exchange: Exchange, message: Message) -> Iterator[bytes]:
        """Every text and every bytes value of a message."""
        yield from _leaves(whole_tree(exchange, message, self._limits))
        for _, data, ancestors in message.record_fields():
            is_metadata = is_metadata_topic_around(ancestors)
            for batch in read_record_set(data, self._limits).batches:
                family = "control" if batch.is_control else "metadata" if is_metadata else None
                for record in batch.records():
                    yield from _of_record(record, family)


class _Doubts:
    """Hits of short names that may be in tokens by chance.

    :param most: how many are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._hits: dict[tuple[bytes, Hit], int] = {}
        """The positions of hits, by the bytes and the place in them."""

    def may_be_chance(self, data: bytes, hit: Hit, number: int) -> bool:
        """Whether a hit may be chance, because it is short and there is room for it. It is noted, and the
        tokens decide later."""
        if len(hit.needle) >= SURE_BYTES or len(self._hits) >= self._most:
            return False
        self._hits.setdefault((data, hit), number)
        return True

    def remaining(self, tokens: Pile) -> int | None:
        """The position of a hit that is in no token; None if there is no such hit."""
        for part in tokens.parts():
            if not self._hits:
                return None
            self._hits = {place: number for place, number in self._hits.items() if place[0] not in part}
            by_needle: defaultdict[bytes, list[tuple[bytes, Hit]]] = defaultdict(list)
            for data, hit in self._hits:
                by_needle[hit.needle].append((data, hit))
            needles = Needles(by_needle)
            for token in part:
                for place, needle in needles.find(token) if by_needle else ():
                    for data, hit in by_needle[needle]:
                        if hit.at >= place and data.startswith(token, hit.at - place):
                            self._hits.pop((data, hit), None)
        return next(iter(self._hits.values()), None)


def _is_excused(data: bytes, hit: Hit) -> bool:
    """Whether a hit is in a word that is kept."""
    return any(_covers(word, data, hit) for word in _KEPT)


def _covers(word: bytes, data: bytes, hit: Hit) -> bool:
    place = word.find(hit.needle)
    while place >= 0:
        if hit.at >= place and data.startswith(word, hit.at - place):
            return True
        place = word.find(hit.needle, place + 1)
    return False


def _place_in_file(at: int) -> str:
    return f"at byte {at:,} of the file"


def _place_in_messages(exchange: int) -> str:
    return f"in a message of exchange {exchange}"


def _note_addresses(packet: Packet, headers: Headers, addresses: Pile) -> bool:
    """Note the addresses of every layer; return whether there is any layer."""
    layers = headers.layers(packet)
    if layers is None:
        return False
    for _, at, end in layers.networks:
        size = 4 if end - at < 40 or packet.data[at] >> 4 == 4 else 16
        begin = at + (12 if size == 4 else 8)
        for place in (begin, begin + size):
            addresses.add(packet.data[place : place + size], packet.number)
    return True


def _of_record(record: Record, family: str | None) -> Iterator[bytes]:
    """Every text and every bytes value of a record.

    :param family: the family of records whose form is Kafka's own.
    """
    if family is None:
        yield record.key or b""
        yield record.value or b""
    else:
        found = decode_internal(family, record.key, record.value)
        for part in (found.key_part, found.value_part):
            for node in () if part is None else part.draw():
                yield from _leaves(node)
    for name, value in record.headers:
        yield encoded(name)
        yield value or b""


def _leaves(node: Node, name: str = "") -> Iterator[bytes]:
    """Every text and every bytes value in a tree.

    :param name: the name of the field; elements of arrays have their array's name.
    """
    if node.children:
        for child in node.children:
            is_own = child.name.startswith("[") or child.name == "(value)"
            yield from _leaves(child, name if is_own else child.name)
    elif isinstance(node.value, str) and node.type != "uuid":
        # Numbers and versions stay in some fields only.
        value = encoded(node.value)
        if not (is_plain_field(name) and _is_number(value)):
            yield value
    elif isinstance(node.value, bytes) and "records" not in node.type:
        yield _NUMBERS.sub(b"", node.value) if name == "authBytes" else node.value


def _pieces(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The bytes of a file in overlapping pieces, each with its place; long runs of zeros are left out."""
    offset, before = 0, b""
    while piece := file.read(_PIECE):
        data = before + piece
        for start, part in _parts(data):
            yield offset - len(before) + start, part
        offset += len(piece)
        before = data[-MOST_BYTES:]


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The data without long runs of zeros, which most of the result consists of; each part with its place."""
    at = 0
    while at < len(data):
        zeros = data.find(bytes(2 * MOST_BYTES), at)
        end = len(data) if zeros < 0 else zeros + MOST_BYTES
        yield at, data[at:end]
        if zeros < 0:
            return
        at = end
        while data.startswith(bytes(MOST_BYTES), at):
            at += MOST_BYTES
        at -= MOST_BYTES if at > end else 0


def _is_number(needle: bytes) -> bool:
    """Whether a text is a number or version, which stays in some fields."""
    text = needle.decode("latin-1")
    return is_plain_value(text) or is_version(text)


def _is_specific(needle: bytes) -> bool:
    """Whether a text is specific: neither filler, nor like a small number, nor a loopback address."""
    if identifies_no_host(needle.decode("latin-1")):
        return False
    distinct = len(set(needle) - FILLERS)
    return distinct >= _LEAST_DISTINCT or (
        distinct > 0 and needle.isascii() and needle.decode().isprintable()
    )


def _is_sure(needle: bytes) -> bool:
    """Whether a text is no number, neither in letters nor by chance. An address does not count."""
    if _is_number(needle) and needle.count(b".") != _DOTS:
        return False
    if len(set(needle)) >= _RAW_DISTINCT:
        return True
    return len(needle) >= _RAW_TEXT_BYTES and needle.isascii() and needle.decode().isprintable()
