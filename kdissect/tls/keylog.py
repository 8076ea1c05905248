"""Key logs → secrets by connection: the lines that NSS, OpenSSL, Go, BoringSSL and agents for Java write.

    LABEL  client random  secret          of TLS 1.3; CLIENT_RANDOM has a master secret of TLS 1.2
    PMS_CLIENT_RANDOM  client random  premaster secret
    RSA  first 8 bytes of the encrypted premaster secret  premaster secret
    RSA Session-ID:…  Master-Key:…

all in hex, one a line. Lines of other forms, comments among them, are passed over and counted. A key log
arrives in pieces (a growing file, several Decryption Secrets Blocks): each has whole lines.
"""

from __future__ import annotations

from kdissect.tls.keys import MASTER_BYTES

RANDOM_BYTES = 32
LONGEST_SECRET = 64

SESSIONS = 10_000
"""Sessions that may be resumed; of more, the oldest is forgotten."""

CONNECTIONS = 100_000
"""Connections whose secrets :meth:`Secrets.key_log` gives; of more, the oldest is forgotten."""

MASTER = "CLIENT_RANDOM"
PREMASTER = "PMS_CLIENT_RANDOM"

LABELS = frozenset(
    {
        MASTER,
        PREMASTER,
        "CLIENT_EARLY_TRAFFIC_SECRET",
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "CLIENT_TRAFFIC_SECRET_0",
        "SERVER_TRAFFIC_SECRET_0",
    }
)
"""What is of use here; exporters' secrets are not."""

OTHER_LABELS = frozenset({"EXPORTER_SECRET", "EARLY_EXPORTER_SECRET", "ECH_SECRET", "ECH_CONFIG"})


class Secrets:
    """What is known of all connections: given as key logs and private keys, or learned from handshakes."""

    __slots__ = (
        *("_asked", "_by_random", "_premasters", "_sessions"),
        *("forgotten", "not_understood", "rsa_keys"),
    )

    def __init__(self) -> None:
        self._by_random: dict[bytes, dict[str, bytes]] = {}
        self._premasters: dict[bytes, bytes] = {}
        """By the first bytes of what they were encrypted to."""
        self._sessions: dict[bytes, bytes] = {}
        """Master secrets by session id or ticket (TLS 1.2)."""
        self._asked: dict[bytes, bytes | None] = {}
        """Client randoms of connections that were asked for; with the master secret, where another way than a
        line of their own led to it."""
        self.forgotten = 0
        """How many of those were too many to keep."""
        self.rsa_keys: tuple[bytes, ...] = ()
        """Private keys, PEM or DER."""
        self.not_understood = 0
        """Lines that have none of the forms."""

    def __bool__(self) -> bool:
        """Whether anything was given."""
        return bool(self._by_random or self._premasters or self._sessions or self.rsa_keys)

    def add(self, key_log: bytes) -> int:
        """Take in lines of a key log; gives how many secrets they held."""
        found = 0
        for line in key_log.splitlines():
            words = line.decode("latin-1").split()
            if not words or words[0].startswith("#") or words[0] in OTHER_LABELS:
                continue
            if self._add(words):
                found += 1
            else:
                self.not_understood += 1
        return found

    def key_log(self) -> bytes:
        """The secrets of the connections that were asked for, as lines of a key log.

        Those of others, which a key log may hold too, are nobody's business. Master secrets that a private
        key or a resumed session led to are among them, for neither is in a key log.
        """
        lines = []
        for random, master in self._asked.items():
            derived = {} if master is None else {MASTER: master}
            for label, secret in (derived | self._by_random.get(random, {})).items():
                lines.append(f"{label} {random.hex()} {secret.hex()}\n")
        return "".join(lines).encode("ascii")

    def add_rsa_key(self, key: bytes) -> None:
        """Take in the private key of a broker."""
        self.rsa_keys = (*self.rsa_keys, key)

    def of(self, client_random: bytes) -> dict[str, bytes]:
        """The secrets of a connection, by label."""
        if client_random not in self._asked:
            self._ask(client_random, None)
        return self._by_random.get(client_random, {})

    def premaster(self, encrypted: bytes) -> bytes | None:
        """The premaster secret that was encrypted to these bytes."""
        return self._premasters.get(encrypted[:8])

    def session(self, name: bytes) -> bytes | None:
        """The master secret of a session with this id or ticket."""
        return self._sessions.get(name)

    def learn_session(self, name: bytes, master: bytes) -> None:
        """A session that may be resumed."""
        self._sessions.pop(name, None)
        self._sessions[name] = master
        if len(self._sessions) > SESSIONS:
            del self._sessions[next(iter(self._sessions))]

    def learn_master(self, client_random: bytes, master: bytes) -> None:
        """The master secret of a connection, found by another way than a line of its own."""
        self._ask(client_random, master)

    def _ask(self, client_random: bytes, master: bytes | None) -> None:
        self._asked[client_random] = master
        if len(self._asked) > CONNECTIONS:
            del self._asked[next(iter(self._asked))]
            self.forgotten += 1

    def _add(self, words: list[str]) -> bool:
        try:
            if words[0] == "RSA" and len(words) == 3:
                if words[1].startswith("Session-ID:") and words[2].startswith("Master-Key:"):
                    master = bytes.fromhex(words[2][11:])
                    if len(master) != MASTER_BYTES:
                        return False
                    self.learn_session(bytes.fromhex(words[1][11:]), master)
                    return True
                premaster, encrypted = bytes.fromhex(words[2]), bytes.fromhex(words[1])
                if len(encrypted) != 8 or len(premaster) != MASTER_BYTES:
                    return False
                self._premasters[encrypted] = premaster
                return True
            if len(words) != 3 or words[0] not in LABELS:
                return False
            random, secret = bytes.fromhex(words[1]), bytes.fromhex(words[2])
        except ValueError:
            return False
        is_master = words[0] == MASTER
        if len(random) != RANDOM_BYTES or (is_master and len(secret) != MASTER_BYTES):
            return False
        if not 0 < len(secret) <= LONGEST_SECRET and words[0] != PREMASTER:
            return False
        self._by_random.setdefault(random, {})[words[0]] = secret
        return True
