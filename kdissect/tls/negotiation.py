"""Hellos, key exchange and secrets → openers: the result of one handshake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdissect.lazy import Later
from kdissect.tls import crypto
from kdissect.tls.ciphers import Opener, Opener13, openers_12
from kdissect.tls.handshake import (
    CLIENT_KEY_EXCHANGE,
    EARLY_DATA,
    ENCRYPT_THEN_MAC,
    EXTENDED_MASTER_SECRET,
    HELLO_REQUEST,
    SESSION_TICKET,
    TLS_1_2,
    TLS_1_3,
    Hello,
    version_name,
)
from kdissect.tls.keylog import TlsSecrets, premaster_name, session_name
from kdissect.tls.keys import extended_master_secret, master_secret
from kdissect.tls.secret_store import MASTER, PREMASTER
from kdissect.tls.suites import Suite, suite, suite_name

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = Later("hashlib")

CLEAR, EARLY, HANDSHAKE_KEYS, TRAFFIC = "clear", "early", "handshake", "traffic"
"""The stages of a direction's protection, in order. TLS 1.2 has only the first and the last."""

STAGES = (CLEAR, EARLY, HANDSHAKE_KEYS, TRAFFIC)

LABELS = {
    (EARLY, True): "CLIENT_EARLY_TRAFFIC_SECRET",
    (HANDSHAKE_KEYS, True): "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    (TRAFFIC, True): "CLIENT_TRAFFIC_SECRET_0",
    (HANDSHAKE_KEYS, False): "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    (TRAFFIC, False): "SERVER_TRAFFIC_SECRET_0",
}
"""The labels of secrets, by stage and whether it is the client's."""

LONGEST_TRANSCRIPT = 262_144


class Negotiation:
    """One handshake. A connection of TLS 1.2 may have several."""

    __slots__ = (
        *("_is_complete", "_master", "_openers", "_resumed", "_transcript", "client_hello", "early_accepted"),
        *("encrypted_premaster", "is_retried", "server_hello", "suite", "ticket", "version"),
    )

    def __init__(self) -> None:
        self.client_hello: Hello | None = None
        self.server_hello: Hello | None = None
        self.version: int | None = None
        self.suite: Suite | None = None
        self.is_retried = False
        """Whether the server asked for another ClientHello."""
        self.early_accepted: bool | None = None
        """Whether the server accepts early data; None until it has answered."""
        self.encrypted_premaster: bytes | None = None
        self.ticket: bytes | None = None
        """The ticket with which the session may be resumed."""
        self._transcript = bytearray()
        """The messages up to the ClientKeyExchange. The extended master secret is derived from them."""
        self._is_complete = False
        self._master: bytes | None = None
        self._openers: tuple[Opener, Opener] | None = None
        """The openers of the client's and the server's records in TLS 1.2: their keys come from one master
        secret."""
        self._resumed: tuple[bytes, ...] = ()
        """The names of the session that may be resumed."""

    def take_message(self, message: bytes) -> None:
        """Take in a handshake message, in order."""
        if message[0] == HELLO_REQUEST:
            return  # it is not part of the transcript (RFC 5246, 7.4.1.1)
        if self._is_complete or len(self._transcript) > LONGEST_TRANSCRIPT:
            return
        self._transcript += message
        self._is_complete = message[0] == CLIENT_KEY_EXCHANGE

    def choose(self, hello: Hello) -> None:
        """Take in the server's hello."""
        self.server_hello = hello
        self._openers = None
        self.version = hello.chosen_version()
        if self.version == TLS_1_3:
            self._is_complete = True
            self._transcript.clear()
        self.suite = suite(hello.suites[0])
        session_id = hello.session_id
        if not session_id:
            self._resumed = ()
            return
        names = [session_name(session_id)]
        if self.client_hello is not None and self._is_resumed():
            ticket = self.client_hello.extensions.get(SESSION_TICKET)
            if ticket:
                names.insert(0, session_name(ticket))
        self._resumed = tuple(names)

    @property
    def offers_early_data(self) -> bool:
        """Whether the client announced early data."""
        hello = self.client_hello
        return hello is not None and EARLY_DATA in hello.extensions and not self.is_retried

    @property
    def unsupported(self) -> str | None:
        """Why no secret can decrypt the connection; None if decryption is supported."""
        hello = self.server_hello
        if hello is None:
            return None
        if self.version not in (TLS_1_2, TLS_1_3):
            return f"{version_name(hello.chosen_version())} is not supported"
        if self.suite is None or (self.suite.key_exchange is None) != (self.version == TLS_1_3):
            return f"suite {suite_name(hello.suites[0])} is not supported"
        if hello.compression:
            return "compressed TLS is not supported"
        return None

    def lacks(self, secrets: TlsSecrets) -> str:
        """The secret that is missing, in words."""
        if self.client_hello is None:
            return "handshake not captured"
        given = secrets.of(self.client_hello.random)
        what = "secret"
        if given and self.version == TLS_1_3:
            labels = [LABELS[TRAFFIC, is_client] for is_client in (True, False)]
            what = " and no ".join(label for label in labels if label not in given) or what
        text = f"no {what} for client random {self.client_hello.random.hex()}"
        if secrets.rsa_keys and self.suite is not None and self.suite.key_exchange != "RSA":
            text += f" (an RSA key cannot decrypt {self.suite.name})"
        elif secrets.rsa_keys and self.encrypted_premaster is not None:
            text += " (the RSA key does not fit)"
        return text

    def names(self) -> tuple[bytes, ...]:
        """All names under which this handshake looks for secrets."""
        if self.client_hello is None:
            return ()
        names = [self.client_hello.random]
        if self.version != TLS_1_3:
            if self.encrypted_premaster is not None:
                names.append(premaster_name(self.encrypted_premaster))
            names += self._resumed
        return tuple(names)

    def has_all(self, secrets: TlsSecrets) -> bool:
        """Whether all needed secrets are known."""
        return all(self.opener(TRAFFIC, is_client, secrets) is not None for is_client in (True, False))

    def opener(self, stage: str, is_client: bool, secrets: TlsSecrets) -> Opener | None:
        """The opener of a direction's records in this stage; None without the secret."""
        if self.client_hello is None or self.suite is None:
            return None
        if self.version == TLS_1_3:
            label = LABELS.get((stage, is_client))
            secret = None if label is None else secrets.find(self.client_hello.random, label)
            return None if secret is None else Opener13.of(self.suite, secret)
        if stage != TRAFFIC or self.server_hello is None:
            return None
        if self._openers is None:
            master = self.master(secrets)
            if master is None:
                return None
            mac_comes_last = ENCRYPT_THEN_MAC in self.server_hello.extensions
            self._openers = openers_12(
                self.suite, master, self.client_hello.random, self.server_hello.random, mac_comes_last
            )
        return self._openers[0 if is_client else 1]

    def master(self, secrets: TlsSecrets) -> bytes | None:
        """The master secret of TLS 1.2, from any source."""
        if self._master is None:
            self._master = self._find_master(secrets)
            hello = self.client_hello
            if self._master is not None and hello is not None and MASTER not in secrets.of(hello.random):
                secrets.learn_master(hello.random, self._master)
        return self._master

    def learn_session(self, secrets: TlsSecrets) -> None:
        """Remember the master secret for sessions that resume this one."""
        if self._master is None or self.server_hello is None:
            return
        for name in (self.server_hello.session_id, self.ticket):
            if name:
                secrets.learn_session(session_name(name), self._master)

    def _find_master(self, secrets: TlsSecrets) -> bytes | None:
        assert self.client_hello is not None
        given = secrets.of(self.client_hello.random)
        if MASTER in given:
            return given[MASTER]
        premaster = given.get(PREMASTER) or self._find_premaster(secrets)
        if premaster is not None:
            return self._derive_master(premaster)
        masters = map(secrets.session, self._resumed)
        return next((master for master in masters if master is not None), None)

    def _is_resumed(self) -> bool:
        """Whether the session is resumed: the server repeats its id (RFC 5246, 7.4.1.3; RFC 5077, 3.4)."""
        asked, said = self.client_hello, self.server_hello
        return asked is not None and said is not None and asked.session_id == said.session_id != b""

    def _find_premaster(self, secrets: TlsSecrets) -> bytes | None:
        encrypted = self.encrypted_premaster
        if encrypted is None or self.suite is None or self.suite.key_exchange != "RSA":
            return None
        known = secrets.premaster(encrypted)
        if known is not None:
            return known
        assert self.client_hello is not None
        for key in secrets.rsa_keys:
            premaster = crypto.decrypt_premaster(key, encrypted)
            # It begins with the version that the client offered (RFC 5246, 7.4.7.1).
            if premaster is not None and premaster[:2] == self.client_hello.version.to_bytes(2, "big"):
                return premaster
        return None

    def _derive_master(self, premaster: bytes) -> bytes | None:
        asked, said, chosen = self.client_hello, self.server_hello, self.suite
        if asked is None or said is None or chosen is None:
            return None
        if EXTENDED_MASTER_SECRET in said.extensions:
            session_hash = hashlib.new(chosen.hash, self._transcript).digest()
            return extended_master_secret(premaster, session_hash, chosen.hash)
        return master_secret(premaster, asked.random, said.random, chosen.hash)
