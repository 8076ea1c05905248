# cython: always_allow_keywords=True
"""Segments of one TCP connection → exchanges: the fold on which everything else is based.

    Segment ─► Duplex ─► Chunk | Gap ─► Preambles ─► Recogniser, once ─► Framers ─► Session ─► events
                              ▲                           │
                              └─────────── Tls ◄──────────┘   what was encrypted is looked at anew

There are Preambles only if a proxy seems to send the first bytes. Each direction has a Framer.

A Conversation is plain picklable state. It has no packets of other connections, and no topic names, which are
shared by connections. Its output depends only on its input, in order. Before an end sends data, it is little
more than its Duplex, because a port scan opens many connections without data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kdissect.capture.segments import SegmentReader
from kdissect.exchange import Exchange, Proxied
from kdissect.faults import fault, of_connection
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import (
    SYN,
    Chunk,
    Direction,
    Endpoint,
    Fault,
    Frame,
    Gap,
    Segment,
    Skipped,
    endpoint_text,
)
from kdissect.protocol.framing import REST, Framer, Witness, chunk_in, read_size_prefix
from kdissect.session.briefs import Brief
from kdissect.session.dialogue import Dialogue
from kdissect.session.evidence import begins_ordinary_request
from kdissect.session.pairing import Completed, Recognised
from kdissect.session.pairing import Event as SessionEvent
from kdissect.session.preamble import Preambles, begins, facts
from kdissect.session.quick import PairLayouts, QuickSession, quick_session_of
from kdissect.session.recognise import (
    UNKNOWN,
    Doubt,
    Recogniser,
    Verdict,
    at_once,
    begins_tls,
    plain_verdict,
)
from kdissect.tcp.duplex import Duplex, Piece, Side, duplex_of
from kdissect.tcp.facts import tcp_facts
from kdissect.tls.keylog import TlsSecrets
from kdissect.wording import plural

if TYPE_CHECKING:
    from kdissect.tls.decrypting import Tls

Event = SessionEvent | Brief
"""A Brief is either an exchange that has begun, without a number yet, or one that is complete."""


_TO_BROKER, _FROM_BROKER = Direction.TO_BROKER, Direction.FROM_BROKER
"""Reading a member of an enumeration takes longer than making a framer."""
_make = tuple.__new__
_new_connection: Callable[..., Connection] = _make


class Connection(NamedTuple):
    """The facts of a finished connection: a row of the table ``connections``."""

    connection: int
    client: str
    broker: str
    start_ns: int
    end_ns: int
    end: str
    """``fin``, ``rst``, ``open``, ``reused`` or ``evicted``."""
    packets: int
    bytes_to_broker: int
    bytes_from_broker: int
    retransmitted: int
    gaps: int
    gap_bytes: int
    skipped_bytes: int
    exchanges: int
    protocol: str
    client_id: str | None
    software: str | None
    sasl: dict[str, Any] | None
    tls: dict[str, Any] | None = None
    """The facts of the TLS handshake, and the reason why the rest is not decrypted; None without TLS."""
    proxies: list[dict[str, Any]] | None = None
    """The facts of the proxies' preambles; None without proxies."""
    opened: bool = False
    """Whether the capture has its beginning (the client's SYN)."""
    tcp: dict[str, Any] | None = None
    """The facts of its segments about the network and both ends (:mod:`kdissect.tcp.facts`). None if the
    connection is not Kafka, or if these facts are not needed."""
    capture_point: str | None = None
    """The capture point; None if the input has only one."""
    clock_ahead_ns: int | None = None
    """How far the clock there is ahead of the clock at the capture point nearest to the broker. The estimate
    uses its exchanges and assumes equal network times both ways. None at the nearest point, or if unknown."""
    is_copy: bool = False
    """Whether a capture point nearer to the broker also has a row of this connection. If each connection must
    count once, that row counts."""


class Listener:
    """Gets the steps before exchanges, of all connections. A subclass overrides the methods that it needs.
    The fast path of packets has no such steps, so it is not used with a listener."""

    def segment(self, conversation: Conversation, segment: Segment) -> None:
        """A connection has taken a segment."""

    def piece(self, conversation: Conversation, side: Side, piece: Chunk | Gap | Fault) -> None:
        """Reassembly has given the next piece of a stream."""

    def decrypted(self, conversation: Conversation, side: Side, chunk: Chunk) -> None:
        """TLS has decrypted bytes."""


class Conversation:
    """Dissects the segments of one connection. ``number`` counts the connections of the capture.

    ``broker_ports`` are ports whose connections always count as Kafka (decode-as).
    """

    __slots__ = (
        "_broker_ports",
        "_duplex",
        "_first_bytes",
        "_flushed",
        "_forms",
        "_framers",
        "_held",
        "_limits",
        "_listener",
        "_origin",
        "_other_bytes",
        "_preambles",
        "_proxied",
        "_proxies",
        "_quick",
        "_recogniser",
        "_replaced",
        "_secrets",
        "_session",
        "_skipped",
        "_skips_records",
        "_tls",
        "_verdict",
        "_witnesses",
        "counted_bytes",
        "ends",
        "held_bytes",
        "number",
        "waits_since",
    )

    def __init__(
        self,
        number: int,
        first: Segment,
        limits: Limits = DEFAULTS,
        broker_ports: frozenset[int] = frozenset(),
        secrets: TlsSecrets | None = None,
        listener: Listener | None = None,
        forms: PairLayouts | None = None,
    ) -> None:
        """:param listener: gets the steps before exchanges. With a listener, :meth:`take` must not be called.
        :param forms: the known layouts, if ordinary exchanges may be brief.
        """
        self.begin(number, first, limits, broker_ports, secrets, listener, forms)

    def begin(
        self,
        number: int,
        first: Segment,
        limits: Limits,
        broker_ports: frozenset[int],
        secrets: TlsSecrets | None,
        listener: Listener | None,
        forms: PairLayouts | None,
    ) -> None:
        """Do the work of ``__init__``; a fast path for compiled callers."""
        self.number = number
        self._listener = listener
        self._limits = limits
        self._broker_ports = broker_ports
        self._secrets = secrets
        self._duplex = Duplex.__new__(Duplex)
        self._duplex.begin(first, limits)
        self._verdict: Verdict | None = None
        """None until it is decided."""
        self._preambles: Preambles | None = None
        """The stage of preambles, if the first bytes may be a proxy's."""
        self._proxies: list[dict[str, Any]] = []
        self._proxied: tuple[int, ...] = ()
        """The packets of the preambles."""
        self._origin: tuple[Side, Endpoint] | None = None
        """The end that a proxy opened, and the client that the proxy named."""
        self._recogniser: Recogniser | None = None
        """The recogniser, from the first byte until the protocol is decided."""
        self._held: list[Piece] | None = None
        """The pieces that the recogniser has seen."""
        self._tls: Tls | None = None
        """The TLS stage, from the TLS greeting on; later stages then get its decrypted bytes."""
        self._skips_records = False
        """Whether the TLS stage passes over encrypted records."""
        self._framers: tuple[Framer, Framer] | None = None
        self._witnesses: tuple[Witness, ...] = ()
        """For each direction, the function that decides where frames may begin."""
        self._session: Dialogue | None = None
        self._forms = forms
        self._quick: QuickSession | None = None
        """Replaces the session while everything is ordinary, and the framers if they are None."""
        self._replaced: Dialogue | None = None
        """The session that it replaced; None if it is the first."""
        self._first_bytes = self._other_bytes = 0
        """The captured bytes of the first side and of the other."""
        self._skipped = 0
        self._flushed = False
        self.ends: list[bytes] | None = None
        """The bytes of its ends in its lanes, for the table of lanes."""
        self.counted_bytes = 0
        """The part of ``held_bytes`` that the dissector has added to its total."""
        self.waits_since = 0
        """The dissector's count when bytes began to wait here."""
        self.held_bytes = 0
        """The cost of everything that waits: bytes behind holes or for a secret, bytes not yet recognised,
        the beginnings of frames, and requests without responses."""

    def __reduce__(self) -> tuple[Callable[[], Conversation], tuple[()], tuple[Any, ...]]:
        """Its inner objects become tuples, if no other inner object refers to them. A part of a capture
        sends hundreds of connections, and pickling took half of the time that its edge cost."""
        duplex, quick, verdict = self._duplex, self._quick, self._verdict
        is_plain = (
            self._session is None
            and self._tls is None
            and self._recogniser is None
            and self._preambles is None
            and self._replaced is None
        )
        state = (
            duplex.parts() if is_plain else duplex,
            quick.parts() if is_plain and quick is not None else quick,
            self._broker_ports, self._first_bytes, self._flushed, self._forms, self._framers, self._held,
            self._limits, self._listener, self._origin, self._other_bytes, self._preambles, self._proxied,
            self._proxies, self._recogniser, self._secrets, self._session, self._skipped, self._tls,
            None if verdict is None else tuple(verdict), self._witnesses, self.counted_bytes, self.ends,
            self.held_bytes, self.number, self.waits_since, self._replaced, self._skips_records,
        )  # fmt: skip
        return _unbegun, (), state

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        (
            duplex, quick,
            self._broker_ports, self._first_bytes, self._flushed, self._forms, self._framers, self._held,
            self._limits, self._listener, self._origin, self._other_bytes, self._preambles, self._proxied,
            self._proxies, self._recogniser, self._secrets, self._session, self._skipped, self._tls,
            verdict, self._witnesses, self.counted_bytes, self.ends, self.held_bytes, self.number,
            self.waits_since, self._replaced, self._skips_records,
        ) = state  # fmt: skip
        self._verdict = None if verdict is None else _make(Verdict, verdict)
        self._duplex = duplex_of(duplex) if type(duplex) is tuple else duplex
        self._quick = quick_session_of(quick, self._duplex.streams) if type(quick) is tuple else quick

    def feed(self, segment: Segment) -> list[Event]:
        """The events that this segment completes."""
        pieces = self._duplex.feed(segment)
        out: list[Event] = []
        if pieces:
            self._flushed = False  # data after both FINs: they were not the end
            self._take(pieces, segment.packet, out)
        if self._duplex.is_finished() and not self._flushed and not self.waits_for_secrets:
            out += self._flush(segment.packet, "connection closed")
        if pieces or segment.length:
            self._count_held()
        return out

    def take(
        self, packet: int, timestamp_ns: int, side: Side, seen: SegmentReader, data: bytes, out: list[Event]
    ) -> bool:
        """Append the events of an ordinary segment (defined by :meth:`~kdissect.tcp.duplex.Duplex.take`).
        Return False for other segments: nothing was taken, and the caller must feed it.

        :param seen: has its numbers.
        :param data: its packet.
        """
        start, length = seen.start, seen.length
        duplex = self._duplex
        if (self._flushed and length) or (self._tls is not None and duplex.is_finished()):
            return False
        stream = duplex.streams[side]
        offset = stream.next
        if not duplex.take(
            packet,
            timestamp_ns,
            side,
            seen.seq,
            seen.ack,
            seen.window,
            seen.identity,
            data,
            start,
            length,
            seen.is_end,
            seen.clock,
        ):
            return False
        if not length:
            if seen.is_end and duplex.is_finished() and not self.waits_for_secrets:
                out += self._flush(packet, "connection closed")
            return True
        if self._tls is None and self._begins_tls(data, start, length):
            self._begin_tls()
        if self._tls is not None:
            self._count(side, length)
            self._take_encrypted(self._tls, side, packet, timestamp_ns, offset, data, start, length, out)
        elif self._quick is not None:
            self._count(side, length)
            self._frame_quickly(side, packet, timestamp_ns, offset, data, start, length, packet, out)
        elif self._framers is not None and self._session is not None:
            self._count(side, length)
            framer = self._framers[side]
            frame = framer.frame_of(packet, timestamp_ns, offset, data, start, length)
            if frame is not None:
                found = self._session.feed(frame, packet)
                out += found if not self._proxied else self._mark(found)
                self._return_to_quick()
                self._count_held()
                return True
            self._frame(side, chunk_in(packet, timestamp_ns, offset, data, start, length), packet, out)
        elif self._verdict is not None:
            self._count(side, length)
            self._skipped += length
        elif self._begins_ordinary_request(side, data, start, length):
            self._count(side, length)
            self._frame_quickly(side, packet, timestamp_ns, offset, data, start, length, packet, out)
        else:
            chunk = chunk_in(packet, timestamp_ns, offset, data, start, length)
            self._take(((side, chunk),), packet, out)
        self._count_held()
        return True

    def renumber(self, number: int, exchange_number: Callable[[int], int]) -> None:
        """Replace the numbers of the connection and of its waiting exchanges by those of the whole capture.

        :param exchange_number: the new number of an exchange, by the old one.
        """
        self.number = number
        if self._session is not None:
            self._session.renumber(number, exchange_number)
        if self._replaced is not None:
            self._replaced.renumber(number, exchange_number)
        if self._quick is not None:
            self._quick.renumber(number, exchange_number)

    def resume_with(self, secrets: TlsSecrets, forms: PairLayouts | None) -> None:
        """Use the shared objects of this process, because the connection came from another process."""
        self._secrets = secrets
        if self._forms is not None:
            self._forms = forms
        if self._quick is not None and forms is not None:
            self._quick.resume_with(forms)

    def place_of(self, segment: Segment) -> tuple[Side, int, int]:
        """The position of the segment that was fed last.

        The first number is its side. The second is the offset of its first byte in its side's stream; 0 while
        unknown. The third is the acknowledged offset in the other side's stream; -1 without an
        acknowledgement.
        """
        side = self._duplex._side(segment)
        ours, theirs = self._duplex.streams[side], self._duplex.streams[1 - side]
        begin = segment.seq + 1 if segment.flags & SYN else segment.seq
        heard = -1 if segment.ack is None or theirs._base < 0 else theirs.offset_of(segment.ack)
        return side, 0 if ours._base < 0 else ours.offset_of(begin & 0xFFFFFFFF), heard

    @property
    def speaks_tls(self) -> bool:
        """Whether it began with a TLS greeting."""
        return self._tls is not None

    @property
    def waits_for_secrets(self) -> bool:
        """Whether encrypted bytes wait, even after both FINs."""
        return self._tls is not None and self._tls.is_waiting()

    @property
    def awaited_secrets(self) -> tuple[bytes, ...]:
        """The names of the secrets that may open the waiting bytes, as in
        :class:`~kdissect.tls.keylog.TlsSecrets`."""
        return () if self._tls is None else self._tls.awaited

    def retry(self, packet: int) -> list[Event]:
        """The events of the bytes that waited for new secrets, as of ``packet``."""
        if self._tls is None:
            return []
        out: list[Event] = []
        self._feed_decrypted(self._tls.retry(), packet, out)
        if self._duplex.finished and not self._flushed and not self.waits_for_secrets:
            out += self._flush(packet, "connection closed")
        self._count_held()
        return out

    @property
    def endpoints(self) -> tuple[Endpoint, Endpoint]:
        """Both ends. The end that opened the connection comes first, if the capture shows it."""
        return self._duplex.endpoints

    @property
    def ends_as_seen(self) -> tuple[Endpoint, Endpoint]:
        """Both ends. The one that sent the first packet comes first."""
        first, other = self._duplex.endpoints
        return (other, first) if self._duplex.first_is_other else (first, other)

    @property
    def is_closed(self) -> bool:
        """Whether both ends sent FIN, and all earlier bytes were delivered."""
        return self._flushed

    @property
    def is_over(self) -> bool:
        """Whether it is closed or was reset. A reset may be forged, so what follows it still counts."""
        return self._is_over()

    def _is_over(self) -> bool:
        return self._flushed or self._duplex.reset or self._duplex.is_finished()

    @property
    def was_reset(self) -> bool:
        """Whether a reset was seen."""
        return self._duplex.reset

    def drop_kept_bytes(self) -> None:
        """Drop the kept bytes of streams, because hardly any more segments come."""
        for stream in self._duplex.streams:
            stream.drop_kept_bytes()

    def has_lingered(self, now_ns: int, linger_ns: int) -> bool:
        """Whether it is over and was silent for ``linger_ns`` since."""
        last_ns = self._duplex.last_ns
        silent_ns = now_ns - last_ns  # compiled, it overflows between absurd times, and is negative then
        return now_ns > last_ns and (silent_ns > linger_ns or silent_ns < 0) and self._is_over()

    def may_rest(self, since_ns: int) -> bool:
        """Whether it goes on, had no packet since that time, and only its own packets affect it."""
        if self._duplex.last_ns >= since_ns or self._tls is not None or self._listener is not None:
            return False
        return self._recogniser is None and self._preambles is None and not self._is_over()

    def is_silent(self) -> bool:
        """Whether neither end sent data, and no data is known to be missing."""
        one, other = self._duplex.streams
        return one.next == 0 and other.next == 0

    def is_ordinary(self, reports_faults: bool) -> bool:
        """Whether it has exchanges of Kafka, without a proxy, and all its bytes were decrypted, captured and
        framed.

        :param reports_faults: whether the last two matter.
        """
        one, other = self._duplex.streams
        is_whole = not (self._skipped or one.gaps or other.gaps)
        if reports_faults and not is_whole:
            return False
        if self._quick is not None:
            return is_whole and (self._tls is None or self._is_all_decrypted())
        if self._session is None or self._tls is not None or self._proxied:
            return False
        return self._session._first.exchanges > 0

    def _is_all_decrypted(self) -> bool:
        """Whether all captured bytes of a TLS connection were decrypted."""
        return self._tls is not None and self._encrypted_bytes() == 0

    def _encrypted_bytes(self) -> int:
        """The captured bytes of a TLS connection that were not decrypted."""
        assert self._tls is not None
        read = self._tls.read_bytes if self._tls.is_decrypted else 0
        return self._first_bytes + self._other_bytes - read

    @property
    def last_packet(self) -> int:
        """Its latest packet."""
        return self._duplex.last_packet

    def give_up(self, packet: int, limit: int) -> list[Event]:
        """Stop waiting, because all connections together hold more than ``limit``. An incomplete frame is
        cut, and the connection goes on after it."""
        out: list[Event] = []
        self.leave_quick()
        self._forms = None
        self._take(self._duplex.give_up(limit), packet, out)
        if self._tls is not None:
            self._feed_decrypted(self._tls.give_up(), packet, out)
        reason = f"more than {limit:,} bytes wait in all connections"
        self._end_preambles(packet, out)
        if self._recogniser is not None:
            verdict = self._recogniser.close()
            if verdict.protocol != "kafka":
                message = f"{reason}; this connection does not show Kafka so far, so kdissect leaves it out"
                out.append(fault("buffer-limit", message, packet, connection=self.number, layer="session"))
            out += self._set_protocol(verdict, packet)
        if self._framers is not None and self._session is not None:
            if self._session.is_waiting or any(framer.held_bytes() for framer in self._framers):
                message = (
                    f"{reason}; kdissect no longer waits for the rest of frames and for responses of this "
                    "connection"
                )
                out.append(fault("buffer-limit", message, packet, connection=self.number, layer="session"))
            self._session.end("evicted")
            for side, framer in enumerate(self._framers):
                self._pair(side, framer.give_up(reason), packet, True, out)
            out += self._mark(self._session.give_up())
            self._session.end("capture ended")
        self._count_held()
        return out

    def _count(self, side: Side, length: int) -> None:
        if side:
            self._other_bytes += length
        else:
            self._first_bytes += length

    def _count_held(self) -> None:
        held = self._duplex.held_bytes
        if self._framers is not None and self._session is not None:
            first, second = self._framers
            held += first.held_bytes() + second.held_bytes() + self._session.held_bytes()
        elif self._quick is not None:
            held += self._quick.held_bytes()
            if self._framers is not None:
                first, second = self._framers
                held += first.held_bytes() + second.held_bytes()
        elif self._recogniser is not None:
            held += self._recogniser.held_bytes()
        elif self._preambles is not None:
            held += self._preambles.held_bytes
        if self._tls is not None:
            held += self._tls.kept()
        self.held_bytes = held

    def close(self, packet: int, cut: bool, evicted: bool = False) -> list[Event]:
        """End the connection; ``packet`` showed it. ``cut``: the capture ended, not the connection.
        ``evicted``: a limit dropped it."""
        if self._flushed:
            return []
        if evicted:
            return self._flush(packet, "evicted")
        ended = self._duplex.reset or self._duplex.has_fin()
        return self._flush(packet, "capture ended" if cut and not ended else "connection closed")

    def is_reopened_by(self, segment: Segment) -> bool:
        """Whether this SYN opens another connection on the same addresses and ports."""
        return self._duplex.is_reopened_by(segment)

    def continues(self, segment: Segment) -> bool:
        """Whether a segment between the same endpoints belongs to this connection, by its numbers."""
        return self._duplex.continues(segment)

    def is_confirmed_by(self, segment: Segment) -> bool:
        """Whether a segment between the same endpoints answers the SYN that opened this connection."""
        return self._duplex.is_confirmed_by(segment)

    @property
    def has_ended(self) -> bool:
        """Whether both ends sent FIN, or a reset was seen."""
        return self._duplex.has_ended

    def summary(self, end: str | None = None, adds_tcp: bool = True) -> Connection:
        """The connection's row.

        :param end: the reason why it ended, if TCP does not show it.
        :param adds_tcp: whether it has the facts of TCP, which take longer than everything else in it.
        """
        duplex = self._duplex
        session = self._session.first if self._session is not None else None
        verdict = self._verdict or UNKNOWN
        client, protocol = verdict.client, verdict.protocol
        skipped = self._skipped
        quick = self._quick
        exchanges = self._session.exchanges if self._session is not None else 0
        client_id = session.client_id if session is not None else None
        software = session.software if session is not None else None
        login = session.login if session is not None else None
        if quick is not None:
            exchanges, client_id, software = quick.exchanges, quick.client_id, quick.software
            login = quick.login
        if self._recogniser is not None:
            skipped += sum(self._recogniser.dropped_bytes)
        if self._tls is not None:
            skipped += self._encrypted_bytes()
            if protocol == "unknown":
                client, protocol = self._tls.client or 0, "tls"
        if end is None:
            end = "rst" if duplex.reset else "fin" if duplex.has_fin() else "open"
        shows_tcp = protocol in ("kafka", "tls") or not (self._first_bytes + self._other_bytes)
        one, other = duplex.streams
        # All fields at once, which is several times faster than NamedTuple's own __new__.
        row = (
            self.number,
            endpoint_text(self._end_of(client)),
            endpoint_text(duplex.endpoints[1 - client]),
            duplex.first_ns,
            duplex.last_ns,
            end,
            duplex.packets,
            self._other_bytes if client else self._first_bytes,
            self._first_bytes if client else self._other_bytes,
            one.retransmitted + other.retransmitted,
            one.gaps + other.gaps,
            one.gap_bytes + other.gap_bytes,
            skipped,
            exchanges,
            protocol,
            client_id,
            software,
            login.summary() if login is not None else None,
            self._tls.summary(duplex.closed_side, duplex.closed_ns) if self._tls is not None else None,
            self._proxies or None,
            (one, other)[client].opened,
            tcp_facts(duplex, client) if adds_tcp and shows_tcp else None,
            None,
            None,
            False,
        )
        return _new_connection(Connection, row)

    # -- the stages ---------------------------------------------------------------------------------

    def _take(self, pieces: Iterable[Piece], packet: int, out: list[Event]) -> None:
        """Append the events of pieces of the streams."""
        listener = self._listener
        for side, piece in pieces:
            if listener is not None:
                listener.piece(self, side, piece)
            if isinstance(piece, Chunk):
                chunk = piece
                self._count(side, len(chunk.data))
                if self._verdict is not None and self._tls is None:
                    self._frame(side, piece, packet, out)
                    continue
            elif isinstance(piece, Fault):
                message = f"from {self._name(side)}: {piece.message}"
                out.append(of_connection(piece, self.number, message))
                continue
            else:
                out.append(self._gap_fault(side, piece))
            if self._tls is None:
                out += self._feed_plain(side, piece, packet)
            else:
                self._feed_decrypted(self._tls.feed(side, piece), packet, out)

    def _take_encrypted(
        self,
        tls: Tls,
        side: Side,
        packet: int,
        timestamp_ns: int,
        offset: int,
        data: bytes,
        start: int,
        length: int,
        out: list[Event],
    ) -> None:
        """Append the events of a packet's bytes of a TLS connection, which are in ``data``."""
        pieces: list[Piece] = []
        taken = tls.take(side, packet, timestamp_ns, offset, data, start, length, pieces)
        if pieces:
            self._feed_decrypted(pieces, packet, out)
        if taken < length:
            chunk = chunk_in(packet, timestamp_ns, offset + taken, data, start + taken, length - taken)
            pieces = tls.feed(side, chunk)
            if pieces:
                self._feed_decrypted(pieces, packet, out)
        self._skips_records = tls.passes_over()

    def _feed_decrypted(self, pieces: list[Piece], packet: int, out: list[Event]) -> None:
        """Append the events of the pieces that TLS decrypted."""
        for side, piece in pieces:
            if isinstance(piece, Fault):
                message = f"from {self._name(side)}: {piece.message}"
                out.append(of_connection(piece, self.number, message))
                continue
            if self._listener is not None and isinstance(piece, Chunk):
                self._listener.decrypted(self, side, piece)
            if self._verdict is not None:
                self._frame(side, piece, packet, out)
            else:
                out += self._feed_plain(side, piece, packet)

    def _feed_plain(self, side: Side, piece: Chunk | Gap, packet: int) -> list[Event]:
        """The events of plain bytes: recognise the protocol, then frame them."""
        out: list[Event] = []
        if self._verdict is not None:
            self._frame(side, piece, packet, out)
            return out
        if self._preambles is None and self._recogniser is None and isinstance(piece, Chunk):
            self._preambles = Preambles() if begins(piece.data) else None
        if self._preambles is None or self._preambles.is_over:
            return self._recognise(side, piece, packet)
        self._feed_after_preambles(self._preambles, self._preambles.feed(side, piece), packet, out)
        return out

    def _feed_after_preambles(
        self, preambles: Preambles, pieces: Sequence[Piece], packet: int, out: list[Event]
    ) -> None:
        """Append the events of finished preambles, and of the pieces after them."""
        for side, found in preambles.found:
            self._proxies.append(facts(found, self._name(side), self._name(1 - side)))
            if found.client is not None:
                self._origin = (side, found.client)  # of several proxies, the innermost
        preambles.found.clear()
        self._proxied = tuple(sorted({*self._proxied, *preambles.packets}))
        for each in preambles.defects:
            message = f"from {self._name(each.side)}: {each.message}"
            out.append(fault("bad-preamble", message, each.packet, each.offset, self.number))
        preambles.defects.clear()
        for side, piece in pieces:
            if not isinstance(piece, Fault):
                out += self._feed_plain(side, piece, packet)

    def _end_preambles(self, packet: int, out: list[Event]) -> None:
        if self._preambles is not None and not self._preambles.is_over:
            self._feed_after_preambles(self._preambles, self._preambles.close(), packet, out)

    def _recognise(self, side: Side, piece: Chunk | Gap, packet: int) -> list[Event]:
        """Take in a piece until the protocol of the connection is decided."""
        if self._recogniser is None and not self._broker_ports and isinstance(piece, Chunk):
            at_its_start = at_once(piece.data, side, self._limits)
            if at_its_start is not None:
                self._held = [(side, piece)]
                return self._set_protocol(at_its_start, packet)
        if self._recogniser is None or self._held is None:
            self._recogniser, self._held = Recogniser(self._limits, (self._port(0), self._port(1))), []
        self._held.append((side, piece))
        verdict = self._recogniser.feed(side, piece, self._is_opened(side))
        if verdict is None or verdict.protocol != "tls":
            verdict = self._decode_as() or verdict
        if verdict is not None:
            return self._set_protocol(verdict, packet)
        if self._recogniser.is_late:
            self._held = []
        return []

    def _is_opened(self, side: Side) -> bool:
        """Whether a direction was seen from its first byte; decrypted data always is."""
        return self._tls is not None or self._duplex.streams[side].opened

    def _begins_tls(self, data: bytes, start: int, length: int) -> bool:
        """Whether the first bytes of a connection are those of a TLS greeting. :meth:`_feed_plain` would find
        the same.

        :param data: contains the bytes.
        """
        if self._verdict is not None or self._recogniser is not None or self._preambles is not None:
            return False
        return begins_tls(data, start, start + length)

    def _begin_tls(self) -> None:
        from kdissect.tls.decrypting import Tls  # most captures have none

        self._recogniser = self._held = self._preambles = None
        secrets = self._secrets if self._secrets is not None else TlsSecrets()
        self._tls = Tls(secrets, self._limits, self._reports_faults())

    def _feed_held_to_tls(self, packet: int) -> list[Event]:
        """Begin the TLS stage with the pieces that the recogniser has seen."""
        held = self._held or ()
        self._begin_tls()
        assert self._tls is not None
        out: list[Event] = []
        for side, piece in held:
            if not isinstance(piece, Fault):
                self._feed_decrypted(self._tls.feed(side, piece), packet, out)
        return out

    def _set_protocol(self, verdict: Verdict, packet: int) -> list[Event]:
        """Set the protocol of the connection, and process the held pieces in their order, which is that of
        cause and effect."""
        if verdict.protocol == "tls":
            if self._tls is None:
                return self._feed_held_to_tls(packet)
            verdict = UNKNOWN
        self._verdict = verdict
        held = self._held or ()
        passed = (0, 0) if self._recogniser is None else self._recogniser.dropped_bytes
        self._recogniser = self._held = None
        self._skipped += sum(passed)
        if verdict.protocol == "kafka":
            starts = (
                self._is_opened(0) or verdict.starts[0],
                self._is_opened(1) or verdict.starts[1],
            )
            if any(passed):
                starts = (False, False)  # earlier bytes were dropped
            if self._may_be_quick(verdict, starts):
                self._begin_quickly(verdict)
            else:
                self._begin_session(verdict, starts)
        out: list[Event] = []
        if verdict.doubt is not None:
            out.append(self._doubt_fault(verdict.doubt))
        if self._session is not None and any(passed):
            self._report_dropped(passed, packet, out)
        for side, piece in held:
            if not isinstance(piece, Fault):
                self._frame(side, piece, packet, out)
        return out

    def _begin_session(self, verdict: Verdict, starts: tuple[bool, bool]) -> None:
        """Begin to pair the frames of a Kafka connection.

        :param starts: for each side, whether the first byte of its data begins a frame.
        """
        client, broker = verdict.client, 1 - verdict.client
        # The requests determine where responses begin, also of responses before them.
        session = Dialogue.__new__(Dialogue)
        session.begin(
            self.number,
            self._end_of(client),
            self._end_of(broker),
            self._limits,
            verdict.inferred,
            verdict.correlation_id,
            verdict.client_id,
            self._is_opened(0) and self._is_opened(1),
            (self._duplex.streams[client], self._duplex.streams[broker]),
        )
        self._session = session
        if self._framers is None:
            self._framers = self._new_framers(client, starts)
        witness = session._first.witness
        asked, answered = witness.begins_request, witness.begins_response
        self._witnesses = (answered, asked) if client else (asked, answered)

    def _new_framers(self, client: Side, starts: tuple[bool, bool]) -> tuple[Framer, Framer]:
        if client == 0:
            first, second = _TO_BROKER, _FROM_BROKER
        else:
            first, second = _FROM_BROKER, _TO_BROKER
        return Framer(first, self._limits, starts[0]), Framer(second, self._limits, starts[1])

    # -- the short way of frames that are as they should be --------------------------------------------

    def _may_be_quick(self, verdict: Verdict, starts: tuple[bool, bool]) -> bool:
        if self._forms is None or self._proxied or self._origin is not None:
            return False
        return verdict.inferred is None and starts == (True, True)

    def _begins_ordinary_request(self, side: Side, data: bytes, start: int, length: int) -> bool:
        """Whether the first bytes of a connection prove Kafka, and it may be brief. Nearly all do;
        :meth:`_feed_plain` would find the same. If not, nothing has changed.

        :param data: contains the bytes.
        """
        if self._forms is None or self._recogniser is not None or self._preambles is not None:
            return False
        if self._broker_ports or self._proxied or not self._is_opened(0) or not self._is_opened(1):
            return False
        if not begins_ordinary_request(data, start, start + length, self._limits):
            return False
        self._verdict = plain_verdict(data, start, side)
        self._begin_quickly(self._verdict)
        return True

    def _begin_quickly(self, verdict: Verdict) -> None:
        assert self._forms is not None
        client = verdict.client
        streams, ends = self._duplex.streams, self._duplex.endpoints
        quick = QuickSession.__new__(QuickSession)
        quick.begin(
            self.number,
            client,
            (ends[client], ends[1 - client]),
            self._limits,
            self._is_opened(0) and self._is_opened(1),
            streams[client],
            streams[1 - client],
            self._forms,
        )
        quick.is_encrypted = self._tls is not None
        self._quick = quick

    def _return_to_quick(self) -> None:
        """Return to the fast path, if what was unusual is over and nothing waits."""
        if self._forms is None or self._tls is not None or self._session is None or self._framers is None:
            return
        session = self._session._first
        if not session.is_settled():
            return
        verdict, client_id = self._verdict, session.client_id
        if verdict is None or client_id is None or not client_id.isascii():
            return
        first, second = self._framers
        if not first.is_at_boundary() or not second.is_at_boundary():
            return
        if self._may_be_quick(verdict, (True, True)):
            self._begin_quickly(verdict)
            assert self._quick is not None
            self._quick.take_over(session, client_id)
            self._session, self._replaced = None, self._session

    def leave_quick(self) -> None:
        """Leave the fast path, because data is not ordinary. From here on the connection has a Session."""
        quick, verdict = self._quick, self._verdict
        if quick is not None and verdict is not None:
            self._quick = None
            if self._replaced is None:
                self._begin_session(verdict, (True, True))
            else:
                self._session, self._replaced = self._replaced, None
            assert self._session is not None
            quick.hand_over(self._session._first)

    def _frame_quickly(
        self,
        side: Side,
        packet: int,
        timestamp_ns: int,
        offset: int,
        data: bytes,
        start: int,
        length: int,
        now: int,
        out: list[Event],
    ) -> None:
        """Take bytes of a stream, which are in ``data``. Other than ordinary bytes take the slow path.

        :param now: the current packet.
        """
        quick = self._quick
        assert quick is not None
        at, end = start, start + length
        found: Event | None
        is_request = side == quick.client
        framer: Framer | None = None
        if self._framers is not None:
            framer = self._framers[side]
        if framer is not None and framer.held_bytes():
            at += framer.span(packet, timestamp_ns, offset, data, start, length)
            frame = framer.spanned()
            if frame is not None:
                self._pair_quickly(quick, is_request, frame, now, out)
            elif at < end:
                self.leave_quick()
        while self._quick is not None and end - at >= 4:
            size = read_size_prefix(data, at)
            begin = at + 4
            if size < 0 or size > end - begin or size > quick.most_bytes:
                break
            place, stop = offset + at - start, begin + size
            if is_request:
                found = quick.take_request(
                    now, data, begin, stop, place, timestamp_ns, packet, timestamp_ns, None
                )
            else:
                found = quick.take_response(
                    data, begin, stop, place, timestamp_ns, packet, timestamp_ns, None
                )
            if found is None:
                self.leave_quick()
                break
            out.append(found)
            at = stop
        if at < end and self._quick is not None:  # a frame begins that other segments continue
            if framer is None:
                self._framers = self._new_framers(quick.client, (True, True))
                framer = self._framers[side]
            at += framer.span(packet, timestamp_ns, offset + at - start, data, at, end - at)
            if at < end:
                self.leave_quick()
        if at < end:
            rest = chunk_in(packet, timestamp_ns, offset + at - start, data, at, end - at)
            self._frame(side, rest, now, out)

    def _span_quickly(self, side: Side, chunk: Chunk, now: int, out: list[Event]) -> None:
        """As :meth:`_frame_quickly`, for bytes that several packets carried, as a large TLS record."""
        quick = self._quick
        assert quick is not None
        if self._framers is None:
            self._framers = self._new_framers(quick.client, (True, True))
        framer: Framer = self._framers[side]
        data, at, end = chunk.data, 0, len(chunk.data)
        while self._quick is not None and at < end:
            taken = framer.span(
                chunk.packet, chunk.timestamp_ns, chunk.offset + at, data, at, end - at, chunk.packets
            )
            if not taken:
                self.leave_quick()
                break
            at += taken
            frame = framer.spanned()
            if frame is not None:
                self._pair_quickly(quick, side == quick.client, frame, now, out)
        if at < end:
            rest = chunk_in(chunk.packet, chunk.timestamp_ns, chunk.offset + at, data, at, end - at)
            rest.packets = chunk.packets
            self._frame(side, rest, now, out)

    def _pair_quickly(
        self, quick: QuickSession, is_request: bool, frame: Frame, now: int, out: list[Event]
    ) -> None:
        """Take a frame that several packets carried."""
        found: Event | None
        payload, end, place = frame.payload, frame.size, frame.offset
        first_ns, packet, last_ns = frame.first_ns, frame.last_packet, frame.last_ns
        if is_request:
            found = quick.take_request(now, payload, 0, end, place, first_ns, packet, last_ns, frame)
        else:
            found = quick.take_response(payload, 0, end, place, first_ns, packet, last_ns, frame)
        if found is not None:
            out.append(found)
            return
        self.leave_quick()
        side = quick.client if is_request else 1 - quick.client
        self._pair(side, (frame,), now, self._reports_faults(), out)

    def _report_dropped(self, passed: tuple[int, int], packet: int, out: list[Event]) -> None:
        """Report the bytes that were dropped before the connection was recognised as Kafka."""
        assert self._session is not None
        assert self._framers is not None
        for side, length in enumerate(passed):
            if length:
                self._session.skip(self._framers[side].direction)
                why = "they came before it was clear that they are Kafka"
                message = f"{plural(length, 'byte')} from {self._name(side)} skipped: {why}"
                out.append(fault("skipped", message, packet, None, self.number))

    def _frame(self, side: Side, piece: Chunk | Gap, packet: int, out: list[Event]) -> None:
        if self._quick is not None:
            if isinstance(piece, Chunk):
                chunk = piece
                if chunk.packets:
                    self._span_quickly(side, chunk, packet, out)
                    return
                size = len(chunk.data)
                self._frame_quickly(
                    side, chunk.packet, chunk.timestamp_ns, chunk.offset, chunk.data, 0, size, packet, out
                )
                return
            self.leave_quick()
        if self._framers is None or self._session is None:
            if isinstance(piece, Chunk):
                self._skipped += len(piece.data)
            return
        framer = self._framers[side]
        if isinstance(piece, Gap):
            self._session.gap(framer.direction, piece.packet)
        events = framer.feed(piece, self._witnesses[side])
        if events:
            self._pair(side, events, packet, self._reports_faults(), out)
            self._return_to_quick()

    def _reports_faults(self) -> bool:
        """Whether anyone needs the faults of the connection."""
        return self._forms is None or self._forms.reports_faults

    def _pair(
        self,
        side: Side,
        events: Iterable[Frame | Gap | Skipped | Fault],
        packet: int,
        reports_faults: bool,
        out: list[Event],
    ) -> None:
        assert self._session is not None
        assert self._framers is not None
        for event in events:
            if isinstance(event, Frame):
                found = self._session.feed(event, packet)
                out += found if self._tls is None and not self._proxied else self._mark(found)
            elif isinstance(event, Fault):
                if reports_faults:
                    message = f"from {self._name(side)}: {event.message}"
                    out.append(of_connection(event, self.number, message))
            elif isinstance(event, Skipped):
                if event.reason != REST:
                    # The skipped bytes may hold any answers, so the broker is not blamed for a wrong order.
                    self._session.skip(self._framers[side].direction)
                self._skipped += event.length
                if not reports_faults:
                    continue
                message = f"{plural(event.length, 'byte')} from {self._name(side)} skipped: {event.reason}"
                out.append(fault("skipped", message, event.packet, event.offset, self.number))

    def _flush(self, packet: int, reason: str) -> list[Event]:
        self._flushed = True
        out: list[Event] = []
        reports_faults = self._reports_faults()
        self._forms = None  # a connection that is recognised late has no briefs
        pieces = self._duplex.close()
        if self._quick is not None:
            if pieces or self._quick._waiting or self._holds_frames():
                self.leave_quick()
            else:
                self._quick.ending = reason
        if pieces:
            self._take(pieces, packet, out)
        if self._tls is not None:
            self._feed_decrypted(self._tls.close(), packet, out)
        if self._preambles is not None:
            self._end_preambles(packet, out)
        if self._recogniser is not None:
            out += self._set_protocol(self._recogniser.close(), packet)
        if self._framers is not None and self._session is not None:
            self._session.end(reason)
            for side, framer in enumerate(self._framers):
                self._pair(side, framer.close(self._witnesses[side]), packet, reports_faults, out)
            out += self._mark(self._session.close())
        self._count_held()
        return out

    def _holds_frames(self) -> bool:
        """Whether an incomplete frame waits."""
        if self._framers is None:
            return False
        first, second = self._framers
        return first.held_bytes() > 0 or second.held_bytes() > 0

    def _mark(self, events: list[SessionEvent]) -> list[SessionEvent]:
        """Mark exchanges that came through TLS or a proxy."""
        if self._tls is None and not self._proxied:
            return events
        proxied = None
        if self._proxied and self._verdict is not None:
            has_login = any("login" in each for each in self._proxies)
            ends = self._duplex.endpoints
            client, peer = ends[self._verdict.client], ends[1 - self._verdict.client]
            proxied = Proxied(client, peer, self._proxied, has_login)
        for event in events:
            if isinstance(event, Recognised | Completed):
                event.exchange.is_encrypted = self._tls is not None
                event.exchange.proxied = proxied
        return events

    def _gap_fault(self, side: Side, gap: Gap) -> Fault:
        message = f"{plural(gap.length, 'byte')} from {self._name(side)}: {gap.reason}"
        return fault("gap", message, gap.packet, gap.offset, self.number)

    def _doubt_fault(self, doubt: Doubt) -> Fault:
        message = (
            f"from {self._name(doubt.side)}: this looks like {doubt.defect}; kdissect does not treat it as "
            f"Kafka (-d tcp.port=={self._port(1 - doubt.side)},kafka does)"
        )
        return fault("broken-request", message, doubt.packet, doubt.offset, self.number)

    def _name(self, side: Side) -> str:
        return endpoint_text(self._duplex.endpoints[side])

    def _port(self, side: Side) -> int:
        return int.from_bytes(self._duplex.endpoints[side][-2:], "big")

    def _end_of(self, side: Side) -> Endpoint:
        """The endpoint of a side, replaced by the client that a proxy named."""
        if self._origin is not None and self._origin[0] == side:
            return self._origin[1]
        return self._duplex.endpoints[side]

    def _decode_as(self) -> Verdict | None:
        for side in (0, 1) if self._broker_ports else ():
            if self._port(side) in self._broker_ports:
                return Verdict("kafka", 1 - side, (True, True))
        return None


def _unbegun() -> Conversation:
    """A conversation without values; they are set afterwards."""
    return Conversation.__new__(Conversation)


def recognised_in_order(events: Iterable[object]) -> list[Exchange | Brief]:
    """The exchanges that began, in the order of their numbers."""
    begun: list[Exchange | Brief] = []
    for event in events:
        if isinstance(event, Recognised):
            begun.append(event.exchange)
        elif isinstance(event, Brief) and not event.number and event not in begun:
            begun.append(event)
    if len(begun) > 1:
        begun.sort(key=_recognised)
    return begun


def _recognised(begun: Exchange | Brief) -> tuple[int, int, int]:
    return begun.recognised
