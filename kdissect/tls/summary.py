"""The visible facts of a connection's handshakes, for people: a value of the column ``tls``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from kdissect.lazy import Later
from kdissect.tls.crypto import Certificate, read_certificate
from kdissect.tls.handshake import (
    ALPN,
    PRE_SHARED_KEY,
    SERVER_NAME,
    SUPPORTED_VERSIONS,
    TLS_1_3,
    Hello,
    alert_name,
    offered_versions,
    protocols,
    read_certificates,
    version_name,
)
from kdissect.tls.handshake import server_name as read_server_name
from kdissect.tls.suites import suite_name

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = Later("hashlib")

NOTHING_SHOWN, SOMETHING_SHOWN = "encrypted after no certificate", "encrypted after a certificate"
"""The names of an alert that cannot be decrypted. They say what the client sent when it was asked for a
certificate."""

SOON = timedelta(days=30)
"""A certificate that expires within this time should be renewed."""

MOST_ALERTS = 16
MOST_CERTIFICATES = 16
"""The most certificates shown of a chain; chains have three or four."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SeenHandshake:
    """The facts grow with the handshake. After a renegotiation, the new facts replace the old ones."""

    __slots__ = (
        *("_asked", "_certificates", "_client_certificates", "alerts", "alpn", "early_data"),
        *("resumed", "server_name", "suite", "unopened", "version"),
    )

    def __init__(self) -> None:
        self.version: str | None = None
        self.suite: str | None = None
        self.server_name: str | None = None
        self._asked: Hello | None = None
        """The latest ClientHello. What it offers is seldom asked for, as are the certificates."""
        self.alpn: str | None = None
        """The chosen protocol."""
        self._certificates: _Shown | None = None
        self._client_certificates: _Shown | None = None
        self.resumed: bool | None = None
        self.early_data: str | None = None
        self.alerts: list[dict[str, Any]] = []
        self.unopened = _Unopened()

    def client_hello(self, hello: Hello) -> None:
        """Note what a client offers."""
        self._asked = hello
        if SERVER_NAME in hello.extensions:
            self.server_name = read_server_name(hello.extensions[SERVER_NAME]) or self.server_name

    @property
    def offered(self) -> dict[str, list[str]]:
        """``versions`` and ``alpn`` of the ClientHello."""
        asked = self._asked
        if asked is None:
            return {}
        extensions = asked.extensions
        versions, alpn = _offered(asked.version, extensions.get(SUPPORTED_VERSIONS), extensions.get(ALPN))
        offered = {"versions": list(versions)}
        if alpn is not None:
            offered["alpn"] = list(alpn)
        return offered

    @property
    def certificates(self) -> list[dict[str, Any]]:
        """The certificates of the broker, in the form that is shown."""
        return _shown(self._certificates)

    @property
    def client_certificates(self) -> list[dict[str, Any]]:
        """The certificates of the client, in the same form."""
        return _shown(self._client_certificates)

    def server_hello(self, hello: Hello, version: int, asked: Hello | None) -> None:
        """Note what a broker chooses."""
        self.version = version_name(version)
        self.suite = suite_name(hello.suites[0])
        self.extensions(hello.extensions)
        if version == TLS_1_3:
            self.resumed = PRE_SHARED_KEY in hello.extensions
        elif asked is not None:
            self.resumed = bool(hello.session_id) and hello.session_id == asked.session_id

    def extensions(self, extensions: dict[int, bytes]) -> None:
        """Note a broker's extensions."""
        if ALPN in extensions:
            self.alpn = next(iter(protocols(extensions[ALPN])), None)

    def chain(self, chain: CertificateChain, timestamp_ns: int, *, of_client: bool) -> list[str]:
        """Note certificates; return what is wrong with their dates."""
        if of_client:
            self._client_certificates = (chain, timestamp_ns)
        else:
            self._certificates = (chain, timestamp_ns)
        if chain.begin_us <= timestamp_ns // 1000 <= chain.end_us:
            return []
        return [
            f"{said['subject']}: {said['warning']}; {said['not_before']} to {said['not_after']}"
            for said in _shown((chain, timestamp_ns))
            if said.get("warning") in (EXPIRED, NOT_YET)
        ]

    def alert(self, sender: str, body: bytes, packet: int) -> None:
        """Note an alert that was sent in the clear, or decrypted."""
        if len(self.alerts) < MOST_ALERTS:
            level = {1: "warning", 2: "fatal"}.get(body[0], str(body[0]))
            said = {"from": sender, "level": level, "name": alert_name(body[1]), "packet": packet}
            self.alerts.append(said)

    def _has_alerts(self) -> bool:
        """Whether there may be an alert, encrypted or not."""
        return bool(self.alerts) or self.unopened.refusal is not None

    def _encrypted_alert(self, left_ns: int | None) -> list[dict[str, Any]]:
        """The encrypted alert with which the broker refuses the client's certificate (TLS 1.3). All its
        alerts are fatal except close_notify."""
        unopened = self.unopened
        if self.version != version_name(TLS_1_3) or unopened.refusal is None or self.early_data is not None:
            return []
        # A client that closes after the handshake gets a close_notify, which has the length of an alert.
        if left_ns is not None and left_ns <= unopened.refusal_ns:
            return []
        name = unopened.shown(self.suite or "")
        if name is None:
            return []
        return [{"from": "broker", "level": "fatal", "name": name, "packet": unopened.refusal}]

    def summary(self, left_ns: int | None = None) -> dict[str, Any]:
        """All facts.

        :param left_ns: when the client closed the connection; None if the broker did so first.
        """
        return {
            "version": self.version,
            "suite": self.suite,
            "server_name": self.server_name,
            "alpn": self.alpn,
            "offered": self.offered,
            "resumed": self.resumed,
            "early_data": self.early_data,
            "certificates": self.certificates,
            "client_certificates": self.client_certificates,
            "alerts": [*self.alerts, *self._encrypted_alert(left_ns)] if self._has_alerts() else [],
        }


_TYPE_AND_TAG = 1 + 16
"""Bytes of a protected record of TLS 1.3 besides its content: the type and the tag (RFC 8446, 5.2)."""
PADDINGS = (0, 16)
"""Bytes of padding: Java's records have 16 (``SSLCipher``), other records none."""
ALERT_BYTES = tuple(2 + _TYPE_AND_TAG + padding for padding in PADDINGS)
"""The possible lengths of a protected alert's fragment."""
_NO_CERTIFICATE = 4 + 1 + 3
"""The length of the message of a client that was asked for a certificate and has none: an empty list (RFC
8446, 4.4.2)."""
_LEAST_CERTIFICATE = 200
"""A record with a certificate is longer than this; a Finished is shorter."""
REFUSED_WITHIN_NS = 2_000_000_000


class _Unopened:
    """Facts from the lengths of protected records that cannot be opened."""

    __slots__ = ("_client_ns", "_first", "_is_over", "refusal", "refusal_ns")

    def __init__(self) -> None:
        self._client_ns: int | None = None
        """When the client sent the first such record: its Finished, and the messages in the same record."""
        self._first = 0
        """The length of that record."""
        self._is_over = False
        self.refusal: int | None = None
        """The packet of an alert, if that is the only record of the broker after it."""
        self.refusal_ns = 0

    def take(self, is_client: bool, size: int, ns: int, packet: int) -> None:
        """Take in the next record."""
        if is_client:
            if self._client_ns is None:
                self._client_ns, self._first = ns, size
            self._is_over = self._is_over or size in ALERT_BYTES  # it closes; the broker may answer
        elif self._client_ns is not None:
            is_first = self.refusal is None and not self._is_over
            is_alert = size in ALERT_BYTES and ns - self._client_ns <= REFUSED_WITHIN_NS
            self.refusal, self.refusal_ns = (packet, ns) if is_first and is_alert else (None, 0)
            self._is_over = True

    def is_final(self) -> bool:
        """Whether no record changes the facts any more."""
        return self._client_ns is not None and self._is_over and self.refusal is None

    def lose(self) -> None:
        """Note that records are missing: the next record may not be the expected one."""
        self._is_over = True

    def shown(self, suite: str) -> str | None:
        """What the client sent to a broker that asked for a certificate. None if the broker did not ask: then
        it has no reason to refuse a client that has finished the handshake.

        :param suite: the name of the cipher suite, which decides the length of a Finished (RFC 8446, 4.4.4).
        """
        finished = 4 + (48 if suite.endswith("SHA384") else 32)
        bare = [_NO_CERTIFICATE, _NO_CERTIFICATE + finished]
        if self._first in [each + _TYPE_AND_TAG + padding for each in bare for padding in PADDINGS]:
            return NOTHING_SHOWN
        return SOMETHING_SHOWN if self._first >= _LEAST_CERTIFICATE else None


EXPIRED, NOT_YET = "expired", "not valid yet"


class CertificateChain(NamedTuple):
    """The certificates that a side shows."""

    certificates: tuple[bytes, ...]
    """In DER, the sender's own first, at most :data:`MOST_CERTIFICATES`."""
    begin_us: int
    """The first microsecond since 1970 at which all of them are valid; those that cannot be read do not
    count."""
    end_us: int
    """The last one."""


_Shown = tuple[CertificateChain, int]
"""Certificates, and the time at which they were shown."""

_CHAINS: dict[bytes, CertificateChain] = {}
"""The chains of some messages of TLS 1.2: every connection to a broker shows the same."""
_MOST_CHAINS = 64
_LONGEST_CHAIN = 16_384
"""The most bytes of a message that is kept."""
_MICROSECOND = timedelta(microseconds=1)
_SOON_US = SOON // _MICROSECOND


def chain_in(message: bytes, version: int) -> CertificateChain:
    """The chain in a message of this version of TLS.

    :raises DecodeError: the message is too short.
    """
    if version == TLS_1_3:  # it is encrypted, and seldom decrypted for more than a few connections
        return _chain_of(tuple(read_certificates(message, version)[:MOST_CERTIFICATES]))
    chain = _CHAINS.get(message)
    if chain is None:
        chain = _chain_of(tuple(read_certificates(message, version)[:MOST_CERTIFICATES]))
        if len(message) <= _LONGEST_CHAIN:
            if len(_CHAINS) >= _MOST_CHAINS:
                _CHAINS.clear()
            _CHAINS[message] = chain
    return chain


@lru_cache(64)
def _chain_of(certificates: tuple[bytes, ...]) -> CertificateChain:
    """The chain of these certificates. Cached: every connection to a broker shows the same chain."""
    found = [each for each in map(read_certificate, certificates) if each is not None]
    begin = max((each.begins for each in found), default=datetime.min.replace(tzinfo=UTC))
    end = min((each.expires for each in found), default=datetime.max.replace(tzinfo=UTC))
    return CertificateChain(certificates, (begin - _EPOCH) // _MICROSECOND, (end - _EPOCH) // _MICROSECOND)


@lru_cache(256)
def _offered(
    version: int, versions: bytes | None, alpn: bytes | None
) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """The names of the versions and of the protocols that a ClientHello offers.

    :param version: its ``legacy_version``.
    :param versions: its extension with versions.
    :param alpn: its extension with protocols.
    """
    names = tuple(version_name(each) for each in offered_versions(version, versions))
    return names, None if alpn is None else tuple(protocols(alpn))


def _time(timestamp_ns: int) -> datetime:
    return _EPOCH + timedelta(microseconds=timestamp_ns // 1000)


def _shown(seen: _Shown | None) -> list[dict[str, Any]]:
    if seen is None:
        return []
    chain, timestamp_ns = seen
    now_us = timestamp_ns // 1000
    if chain.begin_us <= now_us <= chain.end_us - _SOON_US:
        return [_facts(der)[1].copy() for der in chain.certificates]  # without any warning
    now = _time(timestamp_ns)
    return [certificate(der, now) for der in chain.certificates]


@lru_cache(64)
def _facts(der: bytes) -> tuple[Certificate | None, dict[str, Any]]:
    """A certificate, and the facts that are shown of it at any time. Cached: every connection to a broker
    shows the same chain."""
    said: dict[str, Any] = {"sha256": hashlib.sha256(der).hexdigest()}
    found = read_certificate(der)
    if found is not None:
        said |= {
            "subject": found.subject,
            "issuer": found.issuer,
            "names": list(found.names),
            "not_before": found.begins.isoformat(),
            "not_after": found.expires.isoformat(),
        }
    return found, said


def certificate(der: bytes, now: datetime) -> dict[str, Any]:
    """A certificate in the form that is shown. If it cannot be read, only its fingerprint."""
    found, always = _facts(der)
    said = always.copy()
    if found is None:
        return said
    if now > found.expires:
        said["warning"] = EXPIRED
    elif now < found.begins:
        said["warning"] = NOT_YET
    elif found.expires - now < SOON:
        said["warning"] = f"expires in {(found.expires - now).days} days"
    return said
