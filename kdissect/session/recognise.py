"""The protocol of a connection, and its broker end, recognised by its bytes and never by its port alone.

The pieces of both directions are examined until the protocol is decided. A request that fits to the last byte
decides it, or the greeting of another protocol. At the latest, after ``Limits.settle_bytes`` or at the
connection's end, the evidence up to then decides. The rules:

1. A request that fits to the last byte, at the beginning of what a side sent. If the capture began in
   mid-stream, it may be at the start of a later segment. That side is the client. The tail that some
   programs add counts as part of the request (:mod:`kdissect.protocol.quirks`).
2. The same behind raw tokens: a client of the 0.9 era opens with bare GSSAPI tokens (0x60 …), size prefixed
   and without Kafka headers.
3. At a gap, at the limit or at the end: a request header that fits, with a client id that is text.
4. At the limit or at the end, with one side alone: a chain of at least ``CHAIN_FRAMES`` frames, end to end,
   whose correlation ids ascend. A telling response must be among its first ``CHAIN_SAMPLE``. That side is the
   broker.
5. A frame decides nothing if its header is a request's and its body is not. Other protocols have frames like
   Kafka's, and Kafka's requests are hardly ever incomplete. A frame of an API or a version that the
   definitions do not have decides nothing either. It is skipped. Only a later request that fits to the last
   byte counts (1), or the next rule.
6. Exchanges in a row whose heads fit, whatever their bodies are (:mod:`kdissect.session.chain`). Here the
   port adds to the evidence. If there are too few, a fault reports them.
7. At the limit the held bytes are dropped. If the capture began in mid-stream, or heads fit so far, 1 and 6
   may still apply. A response may be larger than the limit.
8. 0x16 0x03 is TLS (as a size it would be 369 MB). If the capture began in mid-stream, the header of a record
   of data, of a change of keys or of an alert is TLS too. (0x14 0x03 would be a size of 335 MB.) A method or
   ``HTTP/`` is HTTP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdissect.lazy import Later
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Chunk, Gap
from kdissect.protocol.framing import PART_BYTES
from kdissect.session.chain import Chain
from kdissect.session.evidence import (
    Evidence,
    begins_ordinary_request,
    defect_of,
    examine_request,
    is_distinctive_response,
)
from kdissect.tcp.duplex import Side

if TYPE_CHECKING:
    from kdissect.tls import records as tls_records
else:
    tls_records = Later("kdissect.tls.records")

GSSAPI_TOKEN = 0x60
"""The ASN.1 tag that opens a GSSAPI initial token (RFC 2743, 3.1)."""

LARGEST_TOKEN = 524_288
"""Kafka's sasl.server.max.receive.size."""

PROBE_EFFORT = 8
"""The most bytes decoded at guessed positions, per held byte."""

CHAIN_FRAMES = 3
CHAIN_SAMPLE = 8
CHAIN_STEP = 64
"""The largest distance between the correlation ids of neighbouring responses."""

HTTP_WORDS = (
    b"GET ",
    b"POST ",
    b"PUT ",
    b"HEAD ",
    b"DELETE ",
    b"OPTIONS ",
    b"PATCH ",
    b"CONNECT ",
    b"PRI * HTTP/2",
    b"HTTP/1.",
)


_NONE, _STRANGE, _BROKEN, _MORE = Evidence.NONE, Evidence.STRANGE, Evidence.BROKEN, Evidence.MORE
_HEADER, _LOOSE, _EXACT = Evidence.HEADER, Evidence.LOOSE, Evidence.EXACT


class Doubt(NamedTuple):
    """A frame that would be a request except for its body."""

    side: Side
    """The sender's side."""
    packet: int
    """The packet that completed it."""
    defect: str
    """The request, and its defect."""
    offset: int
    """The offset of the defect in the message."""


class Verdict(NamedTuple):
    """The protocol of a connection."""

    protocol: str
    """``kafka``, ``tls``, ``http`` or ``unknown``."""
    client: Side = 0
    """The side of the client; valid for ``kafka`` only."""
    starts: tuple[bool, bool] = (False, False)
    """For each side: whether its first byte was found to begin a frame (beside a stream seen from its
    SYN)."""
    inferred: str | None = None
    """A conclusion that no request proved."""
    correlation_id: int | None = None
    """The correlation id of the deciding request."""
    client_id: str | None = None
    """The client id of the deciding requests, if none of them fits to the last byte."""
    doubt: Doubt | None = None
    """The doubtful frame, if the protocol is ``unknown`` but looks like Kafka."""


UNKNOWN = Verdict("unknown")
_new_verdict = tuple.__new__


def at_once(data: bytes, side: Side, limits: Limits = DEFAULTS) -> Verdict | None:
    """The verdict of the first piece of a connection, if it begins with a request that fits to the last byte.
    Nearly all do. A Recogniser would give the same verdict. None if more bytes must be examined."""
    is_plain = begins_ordinary_request(data, 0, len(data), limits)
    if not is_plain and examine_request(data, 0, limits)[0] is not _EXACT:
        return None
    return plain_verdict(data, 0, side)


def plain_verdict(data: bytes, start: int, side: Side) -> Verdict:
    """The verdict of a side whose first request begins at ``start`` in ``data``."""
    raw = data
    high = raw[start + 8]  # a separate number: compiled, shifting a byte would lose bits
    correlation_id = high << 24 | raw[start + 9] << 16 | raw[start + 10] << 8 | raw[start + 11]
    if high > 0x7F:
        correlation_id -= 0x1_0000_0000
    opens = (False, True) if side else (True, False)
    # All fields at once, which is several times faster than NamedTuple's own __new__.
    return _new_verdict(Verdict, ("kafka", side, opens, None, correlation_id, None, None))


def begins_tls(data: bytes, start: int, end: int) -> bool:
    """Whether the bytes from ``start`` to ``end`` in ``data`` begin with a handshake record of TLS. A frame
    of Kafka would have at least 369 MB."""
    raw = data
    return end - start >= 3 and raw[start] == 0x16 and raw[start + 1] == 0x03 and raw[start + 2] <= 4


class _Side:
    """The data of one side since it was last without a gap."""

    __slots__ = (
        *("broken", "data", "examined", "is_loose", "is_decided"),
        *("opened", "dropped_bytes", "starts", "strange", "total", "whole"),
    )

    def __init__(self) -> None:
        self.data = bytearray()
        self.starts: list[int] = []
        self.opened = False
        self.whole = True
        """Whether no gap came before ``data``."""
        self.total = 0
        self.dropped_bytes = 0
        """The number of dropped bytes."""
        self.examined = 0
        """The beginning of the first frame that is not known to be a token."""
        self.is_decided = False
        """Whether that frame is complete, or impossible: more bytes cannot change the result."""
        self.is_loose = False
        """Whether it is a request with bytes left over."""
        self.broken: bytes | None = None
        """The first frame that is a request except for its body."""
        self.strange: bytes | None = None
        """The first frame that is a request except for its API or version."""

    def add(self, chunk: Chunk) -> None:
        self.starts.append(len(self.data))
        self.data += chunk.data
        self.total += len(chunk.data)

    def held_bytes(self) -> int:
        return 2 * len(self.data) + PART_BYTES * len(self.starts)

    def cut(self) -> None:
        self._clear()
        self.whole = False

    def drop_data(self) -> None:
        self._clear()
        self.dropped_bytes = self.total

    def _clear(self) -> None:
        self.data.clear()
        self.starts.clear()
        self.examined = 0
        self.is_decided = self.is_loose = False
        self.broken = self.strange = None


class Recogniser:
    """Decides the protocol. ``feed`` and ``close`` return a Verdict, once."""

    __slots__ = ("_chains", "_doubt", "_effort", "_limits", "_ports", "_sides", "_strange_frame", "is_late")

    def __init__(self, limits: Limits = DEFAULTS, ports: tuple[int, int] = (0, 0)) -> None:
        self._limits = limits
        self._ports = ports
        """The ports of both sides."""
        self._sides = (_Side(), _Side())
        self._chains = (Chain(limits), Chain(limits))
        """The chains, by the side that would be the client."""
        self._effort = PROBE_EFFORT * limits.settle_bytes
        self._doubt: Doubt | None = None
        """The first doubt."""
        self._strange_frame: Doubt | None = None
        """The first doubt about a frame that is a request except for its API or version."""
        self.is_late = False
        """Whether the limit was reached and the held bytes were dropped: a verdict only uses later bytes."""

    @property
    def dropped_bytes(self) -> tuple[int, int]:
        """The dropped bytes of each side."""
        one, other = self._sides
        return one.dropped_bytes, other.dropped_bytes

    def held_bytes(self) -> int:
        """The cost of its bytes, and of their pieces, which the conversation keeps."""
        one, other = self._sides
        return one.held_bytes() + other.held_bytes()

    def feed(self, side: Side, piece: Chunk | Gap, opened: bool) -> Verdict | None:
        """Examine one more piece; ``opened``: its direction was seen from the SYN."""
        here = self._sides[side]
        here.opened = opened
        if self.is_late:
            return self._decide_late(side, piece)
        if isinstance(piece, Gap):
            verdict = self._decide(side, _HEADER) if here.data else None
            here.cut()
            return verdict or self._decide_by_exchanges(side, piece)
        here.add(piece)
        verdict = self._greeting(here) or self._decide(side, _EXACT)
        if self._doubt is None and here.broken is not None:
            self._doubt = Doubt(side, piece.packet, *defect_of(here.broken, self._limits))
        if self._strange_frame is None and here.strange is not None:
            self._strange_frame = Doubt(side, piece.packet, *defect_of(here.strange, self._limits))
        verdict = verdict or self._decide_by_exchanges(side, piece)
        other = self._sides[1 - side]
        if verdict is None and here.total + other.total >= self._limits.settle_bytes:
            verdict = self.close()
            if verdict.protocol == "unknown" and self._may_decide_later():
                self._drop_data()
                return None
        return verdict

    def close(self) -> Verdict:
        """Decide now."""
        if self.is_late:
            return self._unknown()
        for side in (0, 1):
            verdict = self._decide(side, _HEADER)
            if verdict is not None:
                return verdict
        for side in (0, 1):
            verdict = self._decide_by_chain(side) or self._decide_by_scan(side)
            if verdict is not None:
                return verdict
        return self._unknown()

    def _unknown(self) -> Verdict:
        doubt = self._doubt
        if (
            doubt is None
            and self._strange_frame is not None
            and self._chains[self._strange_frame.side].is_likely
        ):
            doubt = self._strange_frame
        return UNKNOWN._replace(doubt=doubt)

    def _decide_by_exchanges(self, side: Side, piece: Chunk | Gap) -> Verdict | None:
        """Decide by requests and responses whose heads fit; ``piece`` is the latest."""
        here = self._sides[side]
        for client in (0, 1):
            chain, asking = self._chains[client], self._sides[client]
            chain.feed(client == side, piece, here.opened)
            if chain.is_enough(self._ports[1 - client], asking.broken is not None):
                name = (chain.client_id or b"").decode("utf-8")
                why = (
                    f"role: {chain.pairs} requests of the client {name!r} and responses whose heads fit, end "
                    "to end, with the same correlation ids"
                )
                # A request with some bytes left over is no conclusion.
                inferred = None if asking.is_loose else why
                return Verdict("kafka", client, (False, False), inferred, chain.correlation_id, name)
        return None

    def _may_decide_later(self) -> bool:
        one, other = self._chains
        return not one.is_broken or not other.is_broken

    def _drop_data(self) -> None:
        self.is_late = True
        for side in self._sides:
            side.drop_data()

    def _decide_late(self, side: Side, piece: Chunk | Gap) -> Verdict | None:
        """Decide by the beginning of this piece alone, because earlier bytes were dropped."""
        here = self._sides[side]
        verdict = None
        if isinstance(piece, Gap):
            here.whole = False
        else:
            here.total += len(piece.data)
            is_open = not here.opened or not here.whole
            if is_open and examine_request(piece.data, 0, self._limits)[0] is _EXACT:
                correlation_id = int.from_bytes(piece.data[8:12], "big", signed=True)
                verdict = Verdict("kafka", side, correlation_id=correlation_id)
        verdict = verdict or self._decide_by_exchanges(side, piece)
        if verdict is None:
            here.dropped_bytes = here.total
        return verdict

    def _greeting(self, here: _Side) -> Verdict | None:
        if not here.whole or (here.data and here.data[0] == 0):
            return None  # the size of a frame, as nearly always
        head = bytes(here.data[:12])
        if begins_tls(head, 0, len(head)):
            return Verdict("tls")
        if not here.opened and len(head) >= 5 and _is_record_header(head):
            return Verdict("tls")
        return Verdict("http") if head.startswith(HTTP_WORDS) else None

    def _decide(self, side: Side, enough: Evidence) -> Verdict | None:
        """Decide by a request at the beginning of the data of ``side``, or at the start of its latest
        segment."""
        here = self._sides[side]
        found = self._examine(here)
        if found is enough or (enough is not _EXACT and found >= enough):
            return self._kafka(side, here.whole, here.examined)
        if not here.opened or not here.whole:
            for start in here.starts[1:] if enough < _EXACT else here.starts[-1:]:
                if self._probe(here, start) is _EXACT:
                    return self._kafka(side, False, start)
        return None

    def _examine(self, here: _Side) -> Evidence:
        """Judge the first frame that is neither a token nor broken. Every frame is judged once."""
        while not here.is_decided:
            evidence, end = examine_request(here.data, here.examined, self._limits)
            if evidence is _EXACT or (evidence is _HEADER and here.broken is here.strange is None):
                return evidence
            is_open = evidence in (_MORE, _HEADER)
            if evidence is _BROKEN:
                here.broken = here.broken or bytes(here.data[here.examined + 4 : end])
                here.examined = end
            elif evidence is _STRANGE:
                here.strange = here.strange or bytes(here.data[here.examined + 4 : end])
                here.examined = end
            elif evidence is _LOOSE and here.broken is here.strange is None:
                here.is_decided = here.is_loose = True
            elif is_open or _may_become_token(here.data, here.examined, end):
                return _MORE
            elif _is_token(here.data, here.examined, end):
                here.examined = end
            else:
                here.is_decided = True
        return _LOOSE if here.is_loose else _NONE

    def _probe(self, here: _Side, position: int) -> Evidence:
        """As :func:`examine_request`, with a bounded cost for guessed positions."""
        if self._effort <= 0:
            return _NONE
        evidence, end = examine_request(here.data, position, self._limits)
        if end <= len(here.data):
            self._effort -= max(0, end - position)
        return evidence

    def _decide_by_chain(self, side: Side) -> Verdict | None:
        """Decide by responses alone: sizes that lead from frame to frame, correlation ids that ascend, and a
        certain response."""
        here, other = self._sides[side], self._sides[1 - side]
        if other.total:
            return None
        data = bytes(here.data)
        for start in here.starts[:8]:
            position, frames, last = start, 0, None
            sample: list[bytes] = []
            while position + 8 <= len(data):
                size = int.from_bytes(data[position : position + 4], "big", signed=True)
                correlation = int.from_bytes(data[position + 4 : position + 8], "big", signed=True)
                ascends = last is None or last < correlation <= last + CHAIN_STEP
                if not 4 <= size <= self._limits.frame_bytes or not ascends:
                    frames = 0
                    break
                end = position + 4 + size
                if len(sample) < CHAIN_SAMPLE and end <= len(data):
                    sample.append(data[position + 4 : end])
                position, frames, last = end, frames + 1, correlation
            if frames >= CHAIN_FRAMES and any(is_distinctive_response(each, self._limits) for each in sample):
                why = f"role: {frames} responses end to end with ascending correlation ids, no request"
                starts = (start == 0 and side == 0, start == 0 and side == 1)
                return Verdict("kafka", 1 - side, starts, why)
        return None

    def _decide_by_scan(self, side: Side) -> Verdict | None:
        """Decide by a request that fits exactly, at any byte, because the capture began inside a message."""
        here = self._sides[side]
        if here.opened and here.whole:
            return None
        for position in range(len(here.data) - 12):
            if self._probe(here, position) is _EXACT:
                return self._kafka(side, False, position)
        return None

    def _kafka(self, client: Side, at_start: bool, position: int) -> Verdict:
        """The verdict by a request of ``client`` at ``position``."""
        here = self._sides[client]
        correlation_id = int.from_bytes(here.data[position + 8 : position + 12], "big", signed=True)
        starts = (at_start and client == 0, at_start and client == 1)
        return Verdict("kafka", client, starts, correlation_id=correlation_id)


def _is_record_header(head: bytes) -> bool:
    """Whether a TLS record begins here that may be the first captured one (RFC 8446, 5.1): data, a
    ChangeCipherSpec, or an alert."""
    if head[:3] == b"\x17\x03\x03":
        return int.from_bytes(head[3:5], "big") <= tls_records.LONGEST_FRAGMENT
    return head.startswith((b"\x14\x03\x03\0\x01\x01", b"\x15\x03\x03\0"))


def _is_token(data: bytearray, position: int, end: int) -> bool:
    """Whether a complete frame between the two positions can be a SASL token that other data follows."""
    return end <= len(data) and _begins_token(data, position, end)


def _may_become_token(data: bytearray, position: int, end: int) -> bool:
    """Whether an incomplete frame can be a token."""
    return end > len(data) and _begins_token(data, position, end)


def _begins_token(data: bytearray, position: int, end: int) -> bool:
    if not 0 <= end - position - 4 <= LARGEST_TOKEN:
        return False
    return position > 0 or data[4:5] == bytes((GSSAPI_TOKEN,))  # an empty token may follow (size 0)
