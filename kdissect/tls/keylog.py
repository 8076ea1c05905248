"""Key logs → secrets by connection: the lines that NSS, OpenSSL, Go, BoringSSL and agents for Java write.

    LABEL  client random  secret          of TLS 1.3; CLIENT_RANDOM has a master secret of TLS 1.2
    PMS_CLIENT_RANDOM  client random  premaster secret
    RSA  first 8 bytes of the encrypted premaster secret  premaster secret
    RSA Session-ID:…  Master-Key:…

All values are hex, and each entry is one line. Lines of other forms, such as comments, are ignored and
counted. A key log arrives in pieces (a growing file, several Decryption Secrets Blocks): each has whole
lines.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING

from kdissect.lazy import Later
from kdissect.limits import DEFAULTS, Limits
from kdissect.tls.keys import MASTER_BYTES
from kdissect.tls.secret_store import LABELS, MASTER, PREMASTER, RememberedSecrets

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = Later("hashlib")

RANDOM_BYTES = 32
ENCRYPTED_BYTES = 8
"""How many bytes of an encrypted premaster secret are its name."""
SESSION_ID_BYTES = 32
"""The most bytes of a session id (RFC 5246, 7.4.1.2)."""
LONGEST_SECRET = 64
LONGEST_PREMASTER = 8_192
"""A Diffie-Hellman secret is as long as the group's prime; the largest in use has 1,024 bytes."""

SESSIONS = 10_000
"""The most sessions that may be resumed; beyond that, the oldest are forgotten."""

CONNECTIONS = 100_000
"""The most connections whose secrets :meth:`TlsSecrets.key_log` returns; beyond that, the oldest are
forgotten."""

OTHER_LABELS = frozenset({"EXPORTER_SECRET", "EARLY_EXPORTER_SECRET", "ECH_SECRET", "ECH_CONFIG"})


def premaster_name(encrypted: bytes) -> bytes:
    """The name of a premaster secret, from its encrypted form."""
    return encrypted[:ENCRYPTED_BYTES]


def session_name(word: bytes) -> bytes:
    """The name of a session, from its id or ticket; a ticket may have 64 KiB."""
    return word if len(word) <= SESSION_ID_BYTES else hashlib.sha256(word).digest()


def _lines(key_log: bytes) -> Iterator[bytes]:
    """The lines, which end with CR, LF or both, one at a time: there may be millions."""
    for several in BytesIO(key_log):
        yield from several.splitlines()


class TlsSecrets:
    """The secrets of all connections: given as key logs and private keys, or learned from handshakes.

    A secret is found by its name: a client random, the first bytes of an encrypted premaster secret, or a
    session's id or ticket. A connection that waits for a secret gets the names of the new ones.
    """

    __slots__ = (
        *("_missing", "_known", "_sessions"),
        *("forgotten", "may_grow", "not_understood", "rsa_keys", "taught", "understood"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self._known = RememberedSecrets(limits.secret_bytes)
        """The secrets by client random, and premaster secrets by their encrypted form. These names differ in
        length."""
        self._sessions: OrderedDict[bytes, bytes] = OrderedDict()  # finds its first key fast, unlike a dict
        """Master secrets by session (TLS 1.2)."""
        self.taught: set[bytes] = set()
        """Sessions learned from handshakes that :meth:`take_taught` has not returned yet."""
        self._missing: OrderedDict[bytes, bytes | None] = OrderedDict()
        """The client randoms of connections that asked for secrets. The value is the master secret if it did
        not come from a line of its own."""
        self.forgotten = 0
        """The number of connections that were too many to keep."""
        self.may_grow = True
        """Whether secrets may still come. The pass that was opened last sets it: pcap files have no place for
        secrets. Do not share the store between passes that are open at the same time."""
        self.rsa_keys: tuple[bytes, ...] = ()
        """Private keys, PEM or DER."""
        self.understood = 0
        """The number of lines with a secret."""
        self.not_understood = 0
        """The number of lines of another form."""

    def __bool__(self) -> bool:
        """Whether any secret was given."""
        return bool(self._known or self._sessions or self.rsa_keys)

    @property
    def stays_empty(self) -> bool:
        """Whether it has no secret and will get none."""
        return not self.may_grow and not self

    @property
    def left_out(self) -> int:
        """How many connections lost their secrets, because there were too many."""
        return self._known.forgotten

    def add(self, key_log: bytes) -> set[bytes]:
        """Add lines of a key log; return the names that have new secrets."""
        told: set[bytes] = set()
        for line in _lines(key_log):
            words = line.decode("latin-1").split()
            if not words or words[0].startswith("#") or words[0] in OTHER_LABELS:
                continue
            if self._add(words, told):
                self.understood += 1
            else:
                self.not_understood += 1
        return told

    def key_log(self) -> bytes:
        """The secrets of the connections that asked for them, as lines of a key log.

        Secrets of other connections, which a key log may hold too, are left out. Master secrets derived from
        a private key or a resumed session are included, because no key log has them.
        """
        lines = []
        for random, master in self._missing.items():
            derived = {} if master is None else {MASTER: master}
            for label, secret in (derived | self._known.of(random)).items():
                lines.append(f"{label} {random.hex()} {secret.hex()}\n")
        return "".join(lines).encode("ascii")

    def add_rsa_key(self, key: bytes) -> None:
        """Take in the private key of a broker."""
        self.rsa_keys = (*self.rsa_keys, key)

    def of(self, client_random: bytes) -> dict[str, bytes]:
        """The secrets of a connection, by label."""
        if client_random not in self._missing:
            self._note_missing(client_random, None)
        return self._known.of(client_random)

    def find(self, client_random: bytes, label: str) -> bytes | None:
        """The secret of a connection with this label; None if it is not known."""
        if client_random not in self._missing:
            self._note_missing(client_random, None)
        return self._known.find(client_random, label)

    def premaster(self, encrypted: bytes) -> bytes | None:
        """The premaster secret that was encrypted to these bytes."""
        return self._known.of(premaster_name(encrypted)).get(PREMASTER)

    def session(self, name: bytes) -> bytes | None:
        """The master secret of a session."""
        return self._sessions.get(name)

    def learn_session(self, name: bytes, master: bytes) -> None:
        """Add a session from a handshake, which may be resumed."""
        if self._remember_session(name, master):
            self.taught.add(name)

    def take_taught(self) -> set[bytes]:
        """The names of the sessions learned from handshakes since the last call."""
        taught = self.taught
        if taught:
            self.taught = set()
        return taught

    def learn_master(self, client_random: bytes, master: bytes) -> None:
        """Add a connection's master secret that did not come from a line of its own."""
        self._note_missing(client_random, master)

    def _note_missing(self, client_random: bytes, master: bytes | None) -> None:
        self._missing[client_random] = master
        if len(self._missing) > CONNECTIONS:
            self._missing.popitem(last=False)
            self.forgotten += 1

    def _remember_session(self, name: bytes, master: bytes) -> bool:
        """Add a session; return whether it is new."""
        is_new = self._sessions.pop(name, None) != master
        self._sessions[name] = master
        if len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)
        return is_new

    def _add(self, words: list[str], told: set[bytes]) -> bool:
        """Add the secret of a line, given as words; return whether the line has a known form."""
        try:
            if words[0] == "RSA" and len(words) == 3:
                if words[1].startswith("Session-ID:") and words[2].startswith("Master-Key:"):
                    return self._add_session(bytes.fromhex(words[1][11:]), bytes.fromhex(words[2][11:]), told)
                name, label, secret = bytes.fromhex(words[1]), PREMASTER, bytes.fromhex(words[2])
                is_well = len(name) == ENCRYPTED_BYTES and len(secret) == MASTER_BYTES
            elif len(words) == 3 and words[0] in LABELS:
                name, label, secret = bytes.fromhex(words[1]), words[0], bytes.fromhex(words[2])
                shortest, longest = _LENGTHS.get(label, (1, LONGEST_SECRET))
                is_well = len(name) == RANDOM_BYTES and shortest <= len(secret) <= longest
            else:
                return False
        except ValueError:
            return False
        if is_well and self._known.add(name, label, secret):
            told.add(name)
        return is_well

    def _add_session(self, word: bytes, master: bytes, told: set[bytes]) -> bool:
        if not 0 < len(word) <= SESSION_ID_BYTES or len(master) != MASTER_BYTES:
            return False
        if self._remember_session(word, master):
            told.add(word)
        return True


_LENGTHS = {MASTER: (MASTER_BYTES, MASTER_BYTES), PREMASTER: (1, LONGEST_PREMASTER)}
"""The shortest and the longest secret for labels other than traffic secrets."""
