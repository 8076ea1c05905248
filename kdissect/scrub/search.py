"""The result is read again, by the ways of every reader, and searched for what was taken away.

    raw        the bytes of the file, for texts and for bytes that no number is by chance
    messages   every text and every bytes in messages, and every record, also for short names
    packets    the addresses of every layer

A hit in a word that the allow-list keeps does not count: a topic may be called ``consumer``, too. Names below
:data:`SURE_BYTES` also stand in tokens by chance. So a hit of theirs in a token does not count either.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from typing import BinaryIO

from kdissect.capture.reader import Item
from kdissect.dissect import Dissector
from kdissect.embedded.internal import decode_internal
from kdissect.exchange import Exchange
from kdissect.limits import Limits
from kdissect.message import Message
from kdissect.model import Node, Packet
from kdissect.record.records import Record
from kdissect.record.sets import read_record_set
from kdissect.scrub.allowed import FILLER, KEPT_NAMES, MARK, PHRASES, UNKNOWN, is_plain_value, is_version
from kdissect.scrub.messages import is_metadata_topic_around, whole_tree
from kdissect.scrub.packets import Headers
from kdissect.scrub.permutation import KEY_BYTES
from kdissect.scrub.values import LEAST_BYTES, MOST_BYTES, Scrubber, Taken, encoded

SURE_BYTES = 8
"""Nothing of so many bytes stands in a token by chance."""
_RAW_TEXT_BYTES = 6
_RAW_DISTINCT = 8
"""So many different bytes has what no number in a capture is by chance."""
_TELLING = 3
"""So many different bytes beside zeros tell something."""
_PIECE = 1 << 20
_GRAM = 4
_FILLERS = frozenset(FILLER.encode() + UNKNOWN + b"\0")
_KEPT = (MARK, *(word.encode() for word in {*KEPT_NAMES, *PHRASES} if len(word) >= LEAST_BYTES))


class _Needles:
    """What is looked for, by four of its bytes."""

    def __init__(self, needles: Iterable[bytes], tokens: frozenset[bytes]) -> None:
        self._by_gram: defaultdict[bytes, list[tuple[int, bytes]]] = defaultdict(list)
        self._tokens = tokens
        for needle in needles:
            if len(needle) >= LEAST_BYTES and _is_telling(needle):
                at = _telling_part(needle)
                self._by_gram[needle[at : at + _GRAM]].append((at, needle))

    def find(self, data: bytes) -> int | None:
        """Where the first of them is in the data; None where none is."""
        grams = self._by_gram
        for at in range(len(data) - _GRAM + 1) if grams else ():
            found = grams.get(data[at : at + _GRAM])
            for before, needle in () if found is None else found:
                start = at - before
                if start < 0 or not data.startswith(needle, start):
                    continue
                if not self._is_excused(data, start, needle):
                    return start
        return None

    def _is_excused(self, data: bytes, at: int, needle: bytes) -> bool:
        """Whether a hit lies in a word that is kept, or by chance in a token."""
        if any(_covers(word, data, at, needle) for word in _KEPT):
            return True
        return len(needle) < SURE_BYTES and any(_covers(word, data, at, needle) for word in self._tokens)


def _covers(word: bytes, data: bytes, at: int, needle: bytes) -> bool:
    place = word.find(needle)
    while place >= 0:
        if at >= place and data.startswith(word, at - place):
            return True
        place = word.find(needle, place + 1)
    return False


def _telling_part(needle: bytes) -> int:
    """Where the four bytes of it begin that differ most."""
    places = range(min(len(needle) - _GRAM + 1, MOST_BYTES))
    return max(places, key=lambda at: len(set(needle[at : at + _GRAM]) - _FILLERS))


class Search:
    """Looks for what was taken away."""

    def __init__(self, taken: Taken, limits: Limits) -> None:
        self._limits = limits
        self._addresses = taken.addresses
        texts = taken.texts | {str(ip_address(each)).encode() for each in taken.addresses}
        tokens = frozenset(taken.tokens)
        self._all = _Needles(texts, tokens)
        self._raw = _Needles(filter(_is_sure, texts), tokens)

    def file(self, file: BinaryIO) -> str | None:
        """Search the bytes of the file; gives where something was found, in words."""
        offset, before = 0, b""
        while piece := file.read(_PIECE):
            data = before + piece
            for start, part in _parts(data):
                found = self._raw.find(part)
                if found is not None:
                    return f"at byte {offset - len(before) + start + found:,} of the file"
            offset += len(piece)
            before = data[-MOST_BYTES:]
        return None

    def capture(self, items: Iterable[Item], ports: frozenset[int]) -> str | None:
        """Search packets and messages of the result."""
        dissector = Dissector(self._limits, ports)
        headers = Headers(Scrubber(bytes(KEY_BYTES)), self._limits)
        for item in items:
            if isinstance(item, Packet) and (found := self._packet(item, headers)) is not None:
                return found
            for event in dissector.feed(item):
                if isinstance(event, Exchange) and (found := self._exchange(event)) is not None:
                    return found
        for event in dissector.close():
            if isinstance(event, Exchange) and (found := self._exchange(event)) is not None:
                return found
        return None

    def _packet(self, packet: Packet, headers: Headers) -> str | None:
        layers = headers.layers(packet)
        if layers is None:
            return f"in packet {packet.number}, which cannot be read"
        for _, at, end in layers.networks:
            size = 4 if end - at < 40 or packet.data[at] >> 4 == 4 else 16
            begin = at + (12 if size == 4 else 8)
            for place in (begin, begin + size):
                if packet.data[place : place + size] in self._addresses:
                    return f"in the headers of packet {packet.number}: an address"
        return None

    def _exchange(self, exchange: Exchange) -> str | None:
        for message in exchange.messages:
            for data in self._values(exchange, message):
                if self._all.find(data) is not None:
                    return f"in the {message.kind} of exchange {exchange.number}"
        for message in exchange.messages:
            message.forget_body()
        return None

    def _values(self, exchange: Exchange, message: Message) -> Iterator[bytes]:
        """Every text and every bytes of a message."""
        yield from _leaves(whole_tree(exchange, message, self._limits))
        for _, data, ancestors in message.record_fields():
            is_metadata = is_metadata_topic_around(ancestors)
            for batch in read_record_set(data, self._limits).batches:
                family = "control" if batch.is_control else "metadata" if is_metadata else None
                for record in batch.records():
                    yield from _of_record(record, family)


def _of_record(record: Record, family: str | None) -> Iterator[bytes]:
    """Every text and every bytes of a record.

    :param family: of records whose form is Kafka's own.
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


def _leaves(node: Node) -> Iterator[bytes]:
    if node.children:
        for child in node.children:
            yield from _leaves(child)
    elif isinstance(node.value, str) and node.type != "uuid":
        if not (is_plain_value(node.value) or is_version(node.value)):
            yield encoded(node.value)
    elif isinstance(node.value, bytes) and "records" not in node.type:
        yield node.value


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The data without long runs of zeros, which most of the result is; each part with its place."""
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


def _is_telling(needle: bytes) -> bool:
    """Whether it is neither filler nor what a small number looks like."""
    distinct = len(set(needle) - _FILLERS)
    return distinct >= _TELLING or (distinct > 0 and needle.isascii() and needle.decode().isprintable())


def _is_sure(needle: bytes) -> bool:
    """Whether it is no number by chance."""
    if len(set(needle)) >= _RAW_DISTINCT:
        return True
    return len(needle) >= _RAW_TEXT_BYTES and needle.isascii() and needle.decode().isprintable()
