"""Handshakes and secrets → the key that opens a record, and whether it can be known yet.

It has the state of a connection's handshake, in both directions: messages are fed as they are read, and keys
change after them. It also finds out why decryption is impossible, and says so in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kdissect.faults import fault
from kdissect.model import Fault
from kdissect.tls.ciphers import Opener, Opener13
from kdissect.tls.flow import Flow
from kdissect.tls.handshake import (
    CERTIFICATE,
    CLIENT_HELLO,
    CLIENT_KEY_EXCHANGE,
    EARLY_DATA,
    ENCRYPTED_EXTENSIONS,
    END_OF_EARLY_DATA,
    FINISHED,
    KEY_UPDATE,
    NEW_SESSION_TICKET,
    SERVER_HELLO,
    TLS_1_3,
    read_certificates,
    read_client_hello,
    read_encrypted_extensions,
    read_encrypted_premaster,
    read_server_hello,
    read_ticket,
)
from kdissect.tls.keylog import TlsSecrets
from kdissect.tls.negotiation import CLEAR, EARLY, HANDSHAKE_KEYS, STAGES, TRAFFIC, Negotiation
from kdissect.tls.records import APPLICATION_DATA
from kdissect.tls.summary import SeenHandshake, chain_in

Side = int
"""The direction, 0 or 1, as the caller numbers them."""

_CLIENT_HELLO, _SERVER_HELLO, _NEW_SESSION_TICKET = CLIENT_HELLO, SERVER_HELLO, NEW_SESSION_TICKET
_ENCRYPTED_EXTENSIONS, _CERTIFICATE = ENCRYPTED_EXTENSIONS, CERTIFICATE
_CLIENT_KEY_EXCHANGE, _FINISHED, _APPLICATION_DATA = CLIENT_KEY_EXCHANGE, FINISHED, APPLICATION_DATA
"""The same as C numbers when compiled."""
_NO_FAULTS: tuple[Fault, ...] = ()


class Keying:
    """The state of the handshake of one connection.

    :param reads_certificates: whether what is seen, and the faults, have the facts of certificates.
    """

    __slots__ = (
        *("_flows", "_reads_certificates", "_secrets", "_stays_empty", "client", "dark", "moved"),
        *("negotiation", "seen"),
    )

    def __init__(
        self, flows: tuple[Flow, Flow], secrets: TlsSecrets, reads_certificates: bool = True
    ) -> None:
        self._flows = flows
        self._reads_certificates = reads_certificates
        self._secrets = secrets
        self._stays_empty = secrets.stays_empty
        """Whether no secret will ever open a record. Then only the visible facts are read."""
        self.negotiation = Negotiation()
        """The latest handshake."""
        self.client: Side | None = None
        """The side that opened the handshake."""
        self.dark: str | None = None
        """The reason why records without a key will never get one."""
        self.moved = False
        """Whether a change happened for which records may have waited."""
        self.seen = SeenHandshake()

    def must_wait(self, side: Side, kind: int) -> bool:
        """Whether a record of this type cannot be read yet. If it can be read, the flow has its opener
        afterwards."""
        flow = self._flows[side]
        if flow.opener is not None or flow.is_dead or not self.is_protected(flow, kind):
            return False
        now = self.negotiation
        if self.dark is None and (now.client_hello is None or now.server_hello is None):
            if self.is_refused(side):
                return False
            if side == self.client and now.offers_early_data:
                return True
            self.darken("handshake not captured")
        elif self.dark is None and now.unsupported is not None:
            self.darken(now.unsupported)
        if self.dark is not None:
            flow.stage = TRAFFIC  # from here on, records that look like handshake messages are encrypted
            return False
        is_client = side == self.client
        if flow.stage == CLEAR:
            first = EARLY if is_client and now.offers_early_data else HANDSHAKE_KEYS
            flow.stage = first if now.version == TLS_1_3 else TRAFFIC
        if flow.stage == EARLY:
            if now.early_accepted is None and self._may_answer_early_data():
                return True
            if not now.early_accepted:
                return not self._has_later(side, flow)
        if self._stays_empty and not now.offers_early_data:
            # The caller asks again at once. So the record keeps its place behind those that wait.
            self.darken(self.lacks())
            return True
        flow.opener = now.opener(flow.stage, is_client, self._secrets)
        return flow.opener is None and not self._has_later(side, flow)

    def is_refused(self, side: Side) -> bool:
        """Whether the encrypted records are early data that the broker refuses: it asked for another hello
        first (RFC 8446, 4.2.10). The client sends that data again."""
        now = self.negotiation
        return now.is_retried and now.server_hello is None and side == self.client

    def _may_answer_early_data(self) -> bool:
        """Whether the server's answer about early data is still to come, and can be read."""
        assert self.client is not None
        server = self._flows[1 - self.client]
        if server.stage == TRAFFIC or server.is_dead:
            return False
        hello = self.negotiation.client_hello
        assert hello is not None
        known = self._secrets.of(hello.random)
        return not known or "SERVER_HANDSHAKE_TRAFFIC_SECRET" in known

    def is_dark_for(self, side: Side, kind: int) -> bool:
        """Whether a record of this type, which is not in the clear for sure, is read without a key: no key
        will ever open it. Nothing waits."""
        if self.dark is None:
            if not self._stays_empty:
                return False
            # The first answer may be that it must wait, because it is the one that makes the connection dark.
            self.must_wait(side, kind)
        return self.dark is not None and not self.must_wait(side, kind)

    def is_protected(self, flow: Flow, kind: int) -> bool:
        """Whether a record of this type is encrypted, in a flow without an opener."""
        if kind == _APPLICATION_DATA:
            return True
        is_13 = self.negotiation.version == TLS_1_3
        return flow.stage == TRAFFIC and not is_13

    def _has_later(self, side: Side, flow: Flow) -> bool:
        return any(True for _ in self.later(side, flow))

    def later(self, side: Side, flow: Flow) -> Iterator[tuple[str, Opener]]:
        """The stages that may have begun in a loss and whose secrets are known."""
        now = self.negotiation
        if now.server_hello is None or now.unsupported is not None or self.client is None:
            return
        is_client = side == self.client
        if now.version != TLS_1_3:
            if flow.stage == CLEAR or flow.opener is not None:
                opener = now.opener(TRAFFIC, is_client, self._secrets)
                if opener is not None and opener != flow.opener:
                    yield TRAFFIC, opener
            return
        for stage in STAGES[STAGES.index(flow.stage) + 1 :]:
            opener = now.opener(stage, is_client, self._secrets) if stage != EARLY else None
            if opener is not None:
                yield stage, opener
        if flow.stage == TRAFFIC and isinstance(flow.opener, Opener13):
            yield TRAFFIC, flow.opener.updated()

    def lacks(self) -> str:
        """What the waiting records lack, in words."""
        if self.negotiation.server_hello is None:
            return "handshake not complete"
        return self.negotiation.lacks(self._secrets)

    def darken(self, why: str) -> None:
        """Decide that records without a key will never get one; the first reason is kept."""
        self.dark = self.dark or why
        self.moved = True

    def side_name(self, side: Side) -> str:
        """A side in words."""
        return "the client's" if side == self.client else "the broker's"

    # -- the handshake ------------------------------------------------------------------------------

    def change_cipher(self, side: Side) -> None:
        """Handle a ChangeCipherSpec: from the next record of this side on, the agreed keys are used."""
        now = self.negotiation
        may_be_13 = now.server_hello is None and side == self.client and now.offers_early_data
        if now.version == TLS_1_3 or may_be_13:
            return  # it has no meaning, and is sent for old middleboxes (RFC 8446, D.4)
        if now.server_hello is None or now.client_hello is None:
            self.darken("handshake not captured")
        self._flows[side].enter(TRAFFIC)
        self.moved = True

    def take_message(
        self, side: Side, message: bytes, offset: int, packet: int, timestamp_ns: int
    ) -> Sequence[Fault]:
        """Take in a handshake message; return the faults of its content.

        :param offset: that of its record.
        :param packet: the packet that completed its record.
        :raises DecodeError: the message is too short.
        """
        now, raw = self.negotiation, message
        kind = raw[0]
        if kind == _CLIENT_HELLO:
            self._client_hello(side, message)
            return _NO_FAULTS
        if not self._stays_empty:
            now.take_message(message)
        if kind == _SERVER_HELLO:
            self._server_hello(side, message)
        elif kind == _ENCRYPTED_EXTENSIONS:
            extensions = read_encrypted_extensions(message)
            self.seen.extensions(extensions)
            if now.offers_early_data:
                now.early_accepted = EARLY_DATA in extensions
                self.seen.early_data = "accepted" if now.early_accepted else "rejected"
            self.moved = True
        elif kind == _CERTIFICATE:
            if not self._reads_certificates:
                read_certificates(message, now.version or 0)  # the message may be damaged
                return _NO_FAULTS
            chain = chain_in(message, now.version or 0)
            wrong = self.seen.chain(chain, timestamp_ns, of_client=side == self.client)
            return [fault("expired-certificate", each, packet, offset) for each in wrong]
        elif kind == _CLIENT_KEY_EXCHANGE:
            if now.suite is not None and now.suite.key_exchange == "RSA":
                now.encrypted_premaster = read_encrypted_premaster(message)
                self.moved = True
        elif now.version == TLS_1_3:
            self._change_keys(side, kind)
        elif kind == _NEW_SESSION_TICKET:
            now.ticket = read_ticket(message)
            now.learn_session(self._secrets)
        elif kind == _FINISHED:
            now.learn_session(self._secrets)
        return _NO_FAULTS

    def _client_hello(self, side: Side, message: bytes) -> None:
        hello = read_client_hello(message)
        if self.negotiation.server_hello is not None:
            self.negotiation = Negotiation()  # a renegotiation
        self.client = side
        self.negotiation.client_hello = hello
        if not self._stays_empty:
            self.negotiation.take_message(message)
        self.seen.client_hello(hello)

    def _server_hello(self, side: Side, message: bytes) -> None:
        now = self.negotiation
        hello = read_server_hello(message)
        if hello.is_retry:
            if now.offers_early_data:
                self.seen.early_data = "rejected"
            now.is_retried = True
            now.version = hello.chosen_version()
            self.moved = True
            return
        if self.client is None:
            self.client = 1 - side
        now.choose(hello)
        self.seen.server_hello(hello, now.version or 0, now.client_hello)
        if now.unsupported is not None:
            self.darken(now.unsupported)
        self.moved = True

    def _change_keys(self, side: Side, kind: int) -> None:
        """TLS 1.3: change keys after some messages (RFC 8446, 4.4.4, 4.5, 4.6.3)."""
        flow = self._flows[side]
        if kind == FINISHED and flow.stage != TRAFFIC:
            flow.enter(TRAFFIC)
        elif kind == END_OF_EARLY_DATA and flow.stage == EARLY:
            flow.enter(HANDSHAKE_KEYS)
        elif kind == KEY_UPDATE and flow.stage == TRAFFIC:
            flow.update()
        self.moved = True
