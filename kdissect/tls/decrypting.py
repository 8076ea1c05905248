"""Chunks and gaps of both directions of a TLS connection → chunks and gaps of the decrypted data.

    Chunk | Gap ─► RecordReader ─► what waits ─► Flow ─► handshake | alert | data ─► Chunk | Gap | Fault

Rules

1. Only authentic records give data. A chunk has the packet and the time at which its record was complete. Its
   offset counts the bytes that came out of its direction.
2. A record without a known key waits for its secret, if secrets may still come. If none can come, the
   connection is dark at once. Early data waits until the broker
   accepts or refuses it. Later records wait too. Data of the other direction also waits, because it may be
   the answer. The waiting records are bounded; beyond the bound the connection is dark, with a reason.
   Records that waited are read in their order.
3. Lost records are a Gap. Its length is exact if one record was lost whose header gives the length of its
   content. Else the length is an estimate, and marked as one.
4. A record that is not authentic is a Fault and a Gap. A direction with too many such records in a row is
   given up.
5. When neither direction can be read and the lengths of records tell nothing more, encrypted records are
   passed over.

The output depends only on the pieces, in order, and on the secrets.
"""

from __future__ import annotations

from typing import Any

from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Chunk, DecodeError, Fault, Gap
from kdissect.tls.flow import Flow
from kdissect.tls.handshake import TLS_1_3
from kdissect.tls.keying import Keying, Side
from kdissect.tls.keylog import TlsSecrets
from kdissect.tls.negotiation import EARLY, TRAFFIC
from kdissect.tls.records import (
    ALERT,
    APPLICATION_DATA,
    CHANGE_CIPHER_SPEC,
    HANDSHAKE,
    HEADER_BYTES,
    Item,
    Loss,
    TlsRecord,
    length_at,
)
from kdissect.tls.stage import TlsStage
from kdissect.tls.summary import SeenHandshake
from kdissect.tls.waiting import WaitingRecords

Piece = tuple[Side, Chunk | Gap | Fault]

MOST_RETRIES = 32
"""How often in a row secrets may come while records still wait. If a key log is read after each line, a
connection gets five secrets one by one. More than that is a forger's work."""

_ALERT, _CHANGE_CIPHER_SPEC, _HANDSHAKE = ALERT, CHANGE_CIPHER_SPEC, HANDSHAKE
_APPLICATION_DATA, _HEADER_BYTES = APPLICATION_DATA, HEADER_BYTES


class Tls(TlsStage):
    """The machine of one connection.

    :param secrets: those of all connections; more may be added.
    :param reads_certificates: whether the facts of the handshake, and the faults, have those of certificates.
    """

    __slots__ = (
        *("_flows", "_gave_up", "_keying", "_least_skipped", "_limits", "_retries", "_secrets", "_waiting"),
        *("held_bytes", "read_bytes"),
    )

    def __init__(
        self, secrets: TlsSecrets, limits: Limits = DEFAULTS, reads_certificates: bool = True
    ) -> None:
        self._secrets = secrets
        self._limits = limits
        self._flows = (Flow(), Flow())
        self._keying = Keying(self._flows, secrets, reads_certificates)
        self._waiting = WaitingRecords(self._flows, self._keying)
        self.held_bytes = 0
        """The memory that waiting records take; 0 if none waits."""
        self._gave_up = False
        """Whether more bytes waited than the limit allows."""
        self._least_skipped = 0
        """The type from which on records are passed over; 0 for none."""
        self._retries = 0
        """How many retries in a row did not read all waiting records."""
        self.read_bytes = 0
        """Bytes of records that were read, as captured."""

    # -- what goes in -------------------------------------------------------------------------------

    def feed(self, side: Side, piece: Chunk | Gap) -> list[Piece]:
        """Take in a piece of one direction, and return the resulting pieces."""
        out: list[Piece] = []
        flow = self._flow(side)
        if isinstance(piece, Chunk):
            chunk = piece
            size = len(chunk.data)
            if flow.opener is not None:
                at = self._feed_ready(side, flow, chunk, out)
            else:
                at = self.take(side, chunk.packet, chunk.timestamp_ns, chunk.offset, chunk.data, 0, size, out)
            if at == size:
                return out
            if at:
                packets = chunk.packets
                piece = Chunk(chunk.offset + at, chunk.data[at:], chunk.packet, chunk.timestamp_ns, packets)
        for item in flow.reader.feed(piece):
            if item.type == APPLICATION_DATA and isinstance(item, TlsRecord) and self._is_in_turn(flow):
                opened = flow.open(item)
                if opened is not None:
                    self._content(side, opened[0], opened[1], item, out)
                    if self._keying.moved:
                        self._drain(out)
                    continue
            self._take(side, item, out)
        if self._keying.dark is not None:
            self._note_dark()
            if self._least_skipped:
                flow.reader.skip_held(self._least_skipped)
        return out

    def take(
        self,
        side: Side,
        packet: int,
        timestamp_ns: int,
        offset: int,
        data: bytes,
        start: int,
        length: int,
        out: list[Piece],
    ) -> int:
        """Read the records at the beginning of the next bytes that need no key: whole ones in the clear, and
        those of a dark connection. Return the number of bytes read; the others must be fed. :meth:`feed` does
        the same, but makes a chunk and records first.

        :param data: contains the bytes, which one packet carried.
        :param out: gets the resulting pieces.
        """
        flow = self._flow(side)
        reader = flow.reader
        if self._least_skipped:
            return reader.skip(data, start, length, self._least_skipped)
        if not reader.is_empty() or flow.opener is not None or flow.is_dead or flow.slack:
            return 0
        if self.held_bytes:
            return 0
        at, stop, raw, keying = start, start + length, data, self._keying
        while at < stop:
            size = length_at(data, at) if stop - at >= _HEADER_BYTES else -1
            body = at + _HEADER_BYTES
            end = body + size
            if size < 0 or end > stop:
                break
            kind = raw[at]
            if not self._is_clear(flow, kind):
                if not keying.is_dark_for(side, kind):
                    break
                if keying.is_protected(flow, kind):
                    keying.seen.unopened.take(side == keying.client, size, timestamp_ns, packet)
                    at = end
                    continue
            self.read_bytes += end - at
            if kind == _HANDSHAKE:
                where = offset + at - start
                self._handshake(side, raw[body:end], where, packet, timestamp_ns, out)
            elif kind == _ALERT:
                self._alert(side, raw[body:end], packet)
            elif kind == _CHANGE_CIPHER_SPEC:
                keying.change_cipher(side)
            at = end
        if at > start:
            keying.moved = False  # no record waits that may be read now
            if keying.dark is not None:
                self._note_dark()
        return at - start

    def _note_dark(self) -> None:
        """Note whether encrypted records tell nothing any more: no key opens them in either direction, and
        what their lengths tell is known."""
        self._least_skipped = 0
        if self.held_bytes or not self._keying.seen.unopened.is_final():
            return
        for flow in self._flows:
            if flow.opener is not None or flow.stage != TRAFFIC:
                return
        # In TLS 1.3, only records of application data are encrypted (RFC 8446, 5.1).
        is_13 = self._keying.negotiation.version == TLS_1_3
        self._least_skipped = APPLICATION_DATA if is_13 else CHANGE_CIPHER_SPEC

    def _feed_ready(self, side: Side, flow: Flow, chunk: Chunk, out: list[Piece]) -> int:
        """Read the data records at the beginning of a chunk that are whole and whose key is known, as nearly
        all are. Return the number of bytes read. Other records are left to the caller, from the first one
        on."""
        data, at = chunk.data, 0
        size = len(data)
        while flow.opener is not None and not flow.is_dead and not flow.slack and flow.reader.is_empty():
            length = length_at(data, at)
            if length < 0 or data[at] != _APPLICATION_DATA or self.held_bytes:
                break
            body = at + _HEADER_BYTES
            end = body + length
            if end > size:
                break
            header, fragment = data[at:body], data[body:end]
            opened = flow.open_fragment(header, fragment)
            if opened is None:
                break
            kind, content = opened
            if kind == _APPLICATION_DATA and flow.unsaid is None:
                self.read_bytes += end - at
                if content:
                    # Set attribute by attribute: compiled, that is several times faster than one call.
                    made = Chunk.__new__(Chunk)
                    made.offset, made.data, made.packets = flow.offset, content, ()
                    made.packet, made.timestamp_ns = chunk.packet, chunk.timestamp_ns
                    out.append((side, made))
                    flow.offset += len(content)
            else:
                self._content(side, kind, content, _record_in(chunk, at, header, fragment), out)
                if self._keying.moved:
                    self._drain(out)
            at = end
        return at

    def _flow(self, side: Side) -> Flow:
        return self._flows[1] if side else self._flows[0]

    def retry(self) -> list[Piece]:
        """Read waiting records again, because one of the :attr:`awaited` secrets came."""
        out: list[Piece] = []
        if self.held_bytes:
            self._keying.moved = True
            self._drain(out)
            self._retries = self._retries + 1 if self.held_bytes else 0
            if self._retries > MOST_RETRIES:
                self._keying.darken(f"secrets came {MOST_RETRIES} times, but never all that it needs")
                self._drain(out)
        return out

    def give_up(self) -> list[Piece]:
        """Stop waiting."""
        out: list[Piece] = []
        if self.held_bytes:
            self._keying.darken(self._keying.lacks())
            self._drain(out)
        return out

    def close(self) -> list[Piece]:
        """End the connection."""
        out: list[Piece] = []
        for side, flow in enumerate(self._flows):
            reader = flow.reader
            if not reader.is_empty():
                for item in reader.close():
                    self._take(side, item, out)
        if self.held_bytes:
            out += self.give_up()
        for side, flow in enumerate(self._flows):
            if flow.unsaid is not None and flow.opened:
                self._gap(side, flow.unsaid, flow.unsaid.length, False, out)
        if self._secrets:  # without secrets, no user wants decryption
            dark = self.dark
            if dark is not None:
                out.append((self.client or 0, fault("not-decrypted", dark)))
        return out

    # -- what is known ------------------------------------------------------------------------------

    @property
    def client(self) -> Side | None:
        """The side that opened the handshake."""
        return self._keying.client

    @property
    def seen(self) -> SeenHandshake:
        """The visible facts of the handshake."""
        return self._keying.seen

    @property
    def dark(self) -> str | None:
        """Why the connection is not decrypted, or only partly; None if all of it is."""
        keying = self._keying
        if self._gave_up and keying.negotiation.has_all(self._secrets):
            return (
                f"its secret came too late: more than {self._limits.tls_wait_bytes:,} bytes already waited "
                "for it"
            )
        if keying.dark is not None:
            return keying.dark
        if self.held_bytes:
            return keying.lacks()
        failed = [side for side in (0, 1) if self._flows[side].has_failed]
        if failed:
            whose = "both directions" if len(failed) == 2 else f"{keying.side_name(failed[0])} direction"
            return f"authentication of records failed in {whose}: a wrong secret, or changed bytes"
        if self.seen.version is None:
            none = keying.negotiation.client_hello is None
            return "handshake not captured" if none else "handshake not complete"
        return None

    def passes_over(self) -> bool:
        """Whether :meth:`take` passes over encrypted records."""
        return self._least_skipped > 0

    def is_waiting(self) -> bool:
        """Whether records wait."""
        return self.held_bytes > 0

    @property
    def awaited(self) -> tuple[bytes, ...]:
        """The names of the secrets that may open waiting records; empty if no records wait."""
        return self._keying.negotiation.names() if self.held_bytes else ()

    def kept(self) -> int:
        """The memory that all kept records take: waiting ones, and incomplete ones."""
        one, other = self._flow(0), self._flow(1)
        return self.held_bytes + one.reader._held() + other.reader._held()

    @property
    def is_decrypted(self) -> bool:
        """Whether a record was opened."""
        return self._flow(0).opened > 0 or self._flow(1).opened > 0

    def summary(self, closed_by: Side | None = None, closed_ns: int | None = None) -> dict[str, Any]:
        """The visible facts of the handshake, and why the rest cannot be decrypted.

        :param closed_by: the side that closed the connection first.
        :param closed_ns: when it was closed.
        """
        seen = self._keying.seen
        facts: dict[str, Any] = seen.summary(closed_ns if closed_by == self.client else None)
        facts["decrypted"] = self.is_decrypted
        facts["dark"] = self.dark
        return facts

    # -- waiting ------------------------------------------------------------------------------------

    def _take(self, side: Side, item: Item, out: list[Piece]) -> None:
        flow = self._flow(side)
        if self.held_bytes:
            must_wait = self._waiting.must_wait(side, item)
        elif flow.opener is not None or not isinstance(item, TlsRecord):
            must_wait = False
        elif self._is_clear(flow, item.type):
            self._content(side, item.type, item.fragment, item, out)
            if self._keying.moved:
                self._drain(out)
            return
        else:
            must_wait = self._keying.must_wait(side, item.type)
        if must_wait:
            self._waiting.add(side, item)
            self.held_bytes = self._waiting.bytes
            if self.held_bytes > self._limits.tls_wait_bytes:
                self._gave_up = True
                self._keying.darken(self._keying.lacks())
        else:
            self._read(side, item, out)
        if self._keying.moved:
            self._drain(out)

    def _is_in_turn(self, flow: Flow) -> bool:
        """Whether the next record of a direction has the expected number, and need not wait."""
        return not flow.slack and not self.held_bytes

    def _is_clear(self, flow: Flow, kind: int) -> bool:
        """Whether a record of this type is in the clear for sure. Its direction has no key."""
        return kind != _APPLICATION_DATA and not flow.slack and flow.stage != TRAFFIC

    def _drain(self, out: list[Piece]) -> None:
        """Read the records that need not wait any more."""
        while self._keying.moved:
            self._keying.moved = False
            if not self.held_bytes or not self._waiting.is_any_free():
                continue
            for side, item in self._waiting.take():
                if self._waiting.must_wait(side, item):
                    self._waiting.add(side, item)
                else:
                    self._read(side, item, out)
            self.held_bytes = self._waiting.bytes

    # -- reading ------------------------------------------------------------------------------------

    def _read(self, side: Side, item: Item, out: list[Piece]) -> None:
        flow = self._flows[side]
        if isinstance(item, Loss):
            self._lose(side, flow, item, out)
            return
        if flow.opener is None and not self._keying.is_protected(flow, item.type):
            if not flow.slack or not self._read_unseen(side, flow, item, out):
                self._content(side, item.type, item.fragment, item, out)
            return
        if flow.is_dead or (flow.opener is None and self._keying.dark is not None):
            keying, size = self._keying, len(item.fragment)
            keying.seen.unopened.take(side == keying.client, size, item.timestamp_ns, item.packet)
            return
        if self._keying.is_refused(side):
            return
        if self._keying.negotiation.version == TLS_1_3 and item.type != APPLICATION_DATA:
            if item.type == CHANGE_CIPHER_SPEC:  # it has no meaning in TLS 1.3 (RFC 8446, 5)
                self.read_bytes += HEADER_BYTES + len(item.fragment)
            elif item.type == ALERT:
                self._content(side, item.type, item.fragment, item, out)
            return
        opened = flow.open(item)
        if opened is None:
            opened = flow.search(item, self._keying.later(side, flow))
            self._keying.moved |= opened is not None  # the flow may now be at a later stage
        if opened is None:
            self._fail(side, flow, item, out)
        else:
            self._content(side, opened[0], opened[1], item, out)

    def _read_unseen(self, side: Side, flow: Flow, record: TlsRecord, out: list[Piece]) -> bool:
        """Read a record that looks unencrypted, if a loss may have contained the change of keys."""
        if self._keying.dark is not None:
            return False
        opened = flow.search(record, self._keying.later(side, flow))
        if opened is not None:
            self._keying.moved = True
            self._content(side, opened[0], opened[1], record, out)
        return opened is not None

    def _content(self, side: Side, kind: int, data: bytes, record: TlsRecord, out: list[Piece]) -> None:
        self.read_bytes += HEADER_BYTES + len(record.fragment)
        if kind == APPLICATION_DATA:
            flow = self._flows[side]
            if flow.unsaid is not None:
                self._gap(side, flow.unsaid, flow.unsaid.length, False, out)
            if data:
                _, _, _, _, packet, timestamp_ns, packets = record
                packets = packets if len(packets) > 1 else ()
                out.append((side, Chunk(flow.offset, data, packet, timestamp_ns, packets)))
                flow.offset += len(data)
        elif kind == HANDSHAKE:
            self._handshake(side, data, record.offset, record.packet, record.timestamp_ns, out)
        elif kind == ALERT:
            self._alert(side, data, record.packet)
        elif kind == CHANGE_CIPHER_SPEC:
            self._keying.change_cipher(side)

    def _gap(self, side: Side, loss: Loss, length: int, is_exact: bool, out: list[Piece]) -> None:
        flow = self._flows[side]
        flow.unsaid = None
        if length:
            out.append(
                (side, Gap(flow.offset, length, loss.reason, loss.packet, loss.timestamp_ns, is_exact))
            )
            flow.offset += length

    def _lose(self, side: Side, flow: Flow, loss: Loss, out: list[Piece]) -> None:
        if loss.is_defect:
            message = f"{loss.length:,} bytes: {loss.reason}"
            out.append((side, fault("bad-tls-record", message, loss.packet, loss.offset)))
        is_dark = flow.is_dead or (flow.opener is None and self._keying.dark is not None)
        if is_dark:
            self._keying.seen.unopened.lose()
        if flow.is_dead or (is_dark and flow.stage == TRAFFIC):  # else messages in the clear may follow
            return
        exact = None
        if loss.type == APPLICATION_DATA and flow.opener is not None:
            exact = flow.opener.content_bytes(loss.fragment_bytes)
        is_13 = self._keying.negotiation.version == TLS_1_3
        if loss.type is None or loss.type == APPLICATION_DATA or not is_13:
            flow.lost(loss)
        if loss.type in (None, HANDSHAKE) or is_13:
            flow.messages.lose()
        if exact is not None:
            self._gap(side, loss, exact, True, out)
        elif loss.type in (None, APPLICATION_DATA):
            self._miss(side, flow, loss, out)

    def _miss(self, side: Side, flow: Flow, loss: Loss, out: list[Piece]) -> None:
        """Handle a loss that may have contained data. It is reported at once if this stage has data."""
        if flow.unsaid is not None:
            loss = loss._replace(length=loss.length + flow.unsaid.length)
        if flow.stage == TRAFFIC and flow.opener is not None:
            self._gap(side, loss, loss.length, False, out)
        else:
            flow.unsaid = loss

    def _fail(self, side: Side, flow: Flow, record: TlsRecord, out: list[Piece]) -> None:
        """Handle a record that no key opens."""
        size = len(record.fragment)
        why = "a record that is not authentic"
        loss = Loss(record.offset, size, record.type, size, why, record.packet, record.timestamp_ns)
        if flow.opener is None:
            # It may belong to a stage before the first stage with a known secret. Refused early data is not
            # lost data: the client sends it again.
            if flow.stage == EARLY and self._keying.negotiation.early_accepted is not False:
                self._miss(side, flow, loss._replace(reason="early data without its secret"), out)
            flow.failures += 1
            return
        if not flow.failures:
            message = f"a record of {size:,} bytes is not authentic"
            out.append((side, fault("not-authentic", message, record.packet, record.offset)))
        exact = flow.opener.content_bytes(size) if record.type == APPLICATION_DATA else 0
        flow.fail()
        self._keying.moved |= flow.is_dead
        flow.messages.lose()
        if exact is None:
            self._miss(side, flow, loss, out)
        else:
            self._gap(side, loss, exact, True, out)

    def _alert(self, side: Side, data: bytes, packet: int) -> None:
        if len(data) == 2:
            self._keying.seen.alert("client" if side == self.client else "broker", data, packet)

    def _handshake(
        self, side: Side, data: bytes, offset: int, packet: int, timestamp_ns: int, out: list[Piece]
    ) -> None:
        """Read the handshake messages in a record.

        :param offset: that of the record.
        :param packet: the packet that completed it.
        """
        keying, flow = self._keying, self._flow(side)
        try:
            for message in flow.messages.feed(data):
                found = keying.take_message(side, message, offset, packet, timestamp_ns)
                if found:
                    out += [(side, each) for each in found]
        except DecodeError as error:
            reason = f"a handshake message: {error.reason}"
            out.append((side, fault("bad-handshake", reason, packet, offset)))


def _record_in(chunk: Chunk, at: int, header: bytes, fragment: bytes) -> TlsRecord:
    """The record at a position of a chunk."""
    packet = chunk.packet
    return TlsRecord(header[0], header, fragment, chunk.offset + at, packet, chunk.timestamp_ns, (packet,))
