"""Real TLS between two ends in memory, by Python's ssl: what goes over the wire, and the key log."""

from __future__ import annotations

import ssl
from atexit import register
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from kdissect.model import Chunk, Fault, Gap
from kdissect.tls.decrypting import Piece, Tls
from kdissect.tls.keying import Side
from kdissect.tls.keylog import TlsSecrets

CLIENT, BROKER = 0, 1

FOLDER = mkdtemp(prefix="kdissect-tls-")
"""Of certificates, keys and key logs; it goes when the tests are over."""
register(rmtree, FOLDER, ignore_errors=True)

Flight = tuple[Side, bytes]

START = datetime(2024, 1, 1, tzinfo=UTC)
START_NS = int(START.timestamp()) * 1_000_000_000


class Certificate:
    """A certificate of our own and its key, as files."""

    def __init__(self, kind: str, days: int = 365) -> None:
        key: Any = (
            rsa.generate_private_key(65537, 2048)
            if kind == "rsa"
            else ec.generate_private_key(ec.SECP256R1())
        )
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"broker-{kind}")])
        self.certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(4711)
            .not_valid_before(START - timedelta(days=1))
            .not_valid_after(START + timedelta(days=days))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("kafka.test")]), critical=False)
            .sign(key, hashes.SHA256())
        )
        folder = Path(mkdtemp(dir=FOLDER))
        self.key_pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        self.path = folder / "both.pem"
        self.path.write_bytes(self.key_pem + self.certificate.public_bytes(serialization.Encoding.PEM))


@cache
def certificate(kind: str, days: int = 365) -> Certificate:
    """One a kind, for all tests."""
    return Certificate(kind, days)


@dataclass
class Talk:
    """What two ends sent, and what they said."""

    flights: list[Flight] = field(default_factory=list)
    said: tuple[bytearray, bytearray] = field(default_factory=lambda: (bytearray(), bytearray()))
    key_log: bytes = b""
    suite: str = ""
    session: ssl.SSLSession | None = None
    resumed: bool = False

    def secrets(self) -> TlsSecrets:
        found = TlsSecrets()
        found.add(self.key_log)
        return found


class _Wire:
    """What one end has sent: before and after it was seen on the wire."""

    def __init__(self) -> None:
        self.leaving, self.arriving = ssl.MemoryBIO(), ssl.MemoryBIO()


DH_PARAMETERS = """\
-----BEGIN DH PARAMETERS-----
MIGHAoGBALNViTZuajX7Wrrwh7D5EHnWo+sKtoBBrQt6WK8+c3+f5++wu/HyCmZi
jczEDc21QfEAhffDc8DQu1tkQRmtYKfMNTBJ/NxODWGm5aJCVi+xOtE0H46xs8eJ
utFAsjXIrYUsvv8elqPELLBiiVRFIzgdc71xne5q7wRcN+Rd9F93AgEC
-----END DH PARAMETERS-----
"""
"""Small ones: they protect nothing."""


class Ends:
    """Contexts of a client and a broker; talks may resume each other's sessions."""

    def __init__(
        self,
        version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
        ciphers: str = "ALL:@SECLEVEL=0",
        kind: str = "rsa",
        tickets: bool = True,
        mutual: bool = False,
        days: int = 365,
    ) -> None:
        self._folder = Path(mkdtemp(dir=FOLDER))
        self.certificate = own = certificate(kind, days)
        self.broker = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.broker.load_cert_chain(own.path)
        self.client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.client.check_hostname = False
        self.client.verify_mode = ssl.CERT_NONE
        if mutual:
            clients = certificate("ec", 36_500)
            self.client.load_cert_chain(clients.path)
            self.broker.verify_mode = ssl.CERT_OPTIONAL
            self.broker.verify_flags |= 0x80000  # partial chains: it trusts the certificate itself
            self.broker.load_verify_locations(clients.path)
        for context in (self.broker, self.client):
            context.minimum_version = context.maximum_version = version
            context.set_ciphers(ciphers)
            context.set_alpn_protocols(["kafka"])
        dh_file = self._folder / "dh.pem"
        dh_file.write_text(DH_PARAMETERS)
        self.broker.load_dh_params(str(dh_file))
        if not tickets:
            self.broker.options |= ssl.OP_NO_TICKET
            self.broker.num_tickets = 0

    def talk(self, lines: list[Flight], session: ssl.SSLSession | None = None) -> Talk:
        """A handshake, then ``lines`` in turn, then the end."""
        key_log = self._folder / "keys.log"
        key_log.unlink(missing_ok=True)
        self.client.keylog_filename = str(key_log)
        wires = (_Wire(), _Wire())
        client = self.client.wrap_bio(
            wires[BROKER].arriving, wires[CLIENT].leaving, server_hostname="kafka.test", session=session
        )
        broker = self.broker.wrap_bio(wires[CLIENT].arriving, wires[BROKER].leaving, server_side=True)
        ends, talk = (client, broker), Talk()
        done = [False, False]
        while not all(done):
            for side in (CLIENT, BROKER):
                if not done[side]:
                    done[side] = self._step(ends[side].do_handshake)
                    self._record(talk, side, wires)
        for side, data in lines:
            ends[side].write(data)
            talk.said[side].extend(data)
            self._record(talk, side, wires)
            got = b""
            while len(got) < len(data):
                got += ends[1 - side].read(1 << 20)
            assert got == data
        name, _, _ = client.cipher() or ("", "", 0)
        talk.suite, talk.resumed, talk.session = name, bool(client.session_reused), client.session
        for side in (CLIENT, BROKER):
            self._step(ends[side].unwrap)
            self._record(talk, side, wires)
        talk.key_log = key_log.read_bytes()
        return talk

    def attempt(self) -> list[Flight]:
        """What goes over the wire in a handshake that the broker may refuse. It closes in the end."""
        wires, talk = (_Wire(), _Wire()), Talk()
        client = self.client.wrap_bio(
            wires[BROKER].arriving, wires[CLIENT].leaving, server_hostname="kafka.test"
        )
        broker = self.broker.wrap_bio(wires[CLIENT].arriving, wires[BROKER].leaving, server_side=True)
        for side, act in 3 * ((CLIENT, client.do_handshake), (BROKER, broker.do_handshake)):
            with suppress(ssl.SSLError):
                self._step(act)
            self._record(talk, side, wires)
        with suppress(ssl.SSLError):
            self._step(broker.unwrap)
        self._record(talk, BROKER, wires)
        return talk.flights

    @staticmethod
    def _step(act: Any) -> bool:
        try:
            act()
        except (ssl.SSLWantReadError, ssl.SSLSyscallError):
            return False
        return True

    @staticmethod
    def _record(talk: Talk, side: Side, wires: tuple[_Wire, _Wire]) -> None:
        data = wires[side].leaving.read()
        if data:
            talk.flights.append((side, data))
            wires[side].arriving.write(data)


def segments(flights: list[Flight], size: int = 1460) -> list[tuple[Side, Chunk]]:
    """The flights in segments, with packet numbers from 1 and a microsecond between them."""
    offsets, out, packet = [0, 0], [], 0
    for side, data in flights:
        for at in range(0, len(data), size):
            part = data[at : at + size]
            packet += 1
            out.append((side, Chunk(offsets[side], part, packet, START_NS + packet * 1000)))
            offsets[side] += len(part)
    return out


def run(machine: Tls, pieces: Sequence[tuple[Side, Chunk | Gap]], close: bool = True) -> list[Piece]:
    """All that comes out."""
    out: list[Piece] = []
    for side, piece in pieces:
        out += machine.feed(side, piece)
    return out + (machine.close() if close else [])


def streams(pieces: list[Piece]) -> tuple[bytes, bytes]:
    """The bytes of both directions, with a dot for each byte of a gap; checks that they join."""
    found = (bytearray(), bytearray())
    for side, piece in pieces:
        if not isinstance(piece, Fault):
            assert piece.offset == len(found[side])
            found[side].extend(piece.data if isinstance(piece, Chunk) else b"." * piece.length)
    return bytes(found[0]), bytes(found[1])


def faults(pieces: list[Piece]) -> list[Fault]:
    return [piece for _, piece in pieces if isinstance(piece, Fault)]
