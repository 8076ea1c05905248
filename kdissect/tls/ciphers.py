"""Protected records → their content: one opener for each direction and key.

``open(header, fragment, seq)`` returns the content's type and the content. It returns None if the record is
not authentic under this key and sequence number. So a wrong guess of either never passes for data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kdissect.lazy import Later
from kdissect.tls.crypto import Aead, decrypt_cbc
from kdissect.tls.keys import KeyBlock, hash_bytes, next_traffic_secret, traffic_keys
from kdissect.tls.suites import Suite

if TYPE_CHECKING:
    import hmac
else:
    hmac = Later("hmac")

Opened = tuple[int, bytes]
"""The content's type and the content."""

BLOCK = 16
EXPLICIT_NONCE = 8


class Opener13(NamedTuple):
    """TLS 1.3 (RFC 8446, 5.2 and 5.3)."""

    aead: Aead
    iv: int
    secret: bytes
    suite: Suite

    @classmethod
    def of(cls, suite: Suite, secret: bytes) -> Opener13:
        """The opener for a traffic secret."""
        key, iv = traffic_keys(secret, suite.key_bytes, suite.hash)
        return cls(Aead(suite.mode, key), int.from_bytes(iv, "big"), secret, suite)

    def updated(self) -> Opener13:
        """The opener after a KeyUpdate."""
        return self.of(self.suite, next_traffic_secret(self.secret, self.suite.hash))

    def open(self, header: bytes, fragment: bytes, seq: int) -> Opened | None:
        plain = self.aead.open((self.iv ^ seq).to_bytes(12, "big"), fragment, header)
        if plain is None:
            return None
        inner = plain.rstrip(b"\0")  # padding
        return (inner[-1], inner[:-1]) if inner else (0, b"")

    def content_bytes(self, fragment_bytes: int) -> int | None:
        """The length of a fragment's content; None if unknown, because there may be padding."""
        return None


class Opener12(NamedTuple):
    """AEAD ciphers in TLS 1.2: GCM (RFC 5288), CCM (RFC 6655), ChaCha20-Poly1305 (RFC 7905)."""

    aead: Aead
    iv: bytes

    def open(self, header: bytes, fragment: bytes, seq: int) -> Opened | None:
        if self.aead.mode == "CHACHA20":
            nonce = (int.from_bytes(self.iv, "big") ^ seq).to_bytes(12, "big")
        else:
            nonce = self.iv + fragment[:EXPLICIT_NONCE]
            if len(nonce) < len(self.iv) + EXPLICIT_NONCE:
                return None
            fragment = fragment[EXPLICIT_NONCE:]
        length = len(fragment) - self.aead.tag_bytes
        if length < 0:
            return None
        associated = seq.to_bytes(8, "big") + header[:3] + length.to_bytes(2, "big")
        plain = self.aead.open(nonce, fragment, associated)
        return None if plain is None else (header[0], plain)

    def content_bytes(self, fragment_bytes: int) -> int | None:
        nonce = 0 if self.aead.mode == "CHACHA20" else EXPLICIT_NONCE
        return max(0, fragment_bytes - nonce - self.aead.tag_bytes)


class OpenerCbc(NamedTuple):
    """AES-CBC in TLS 1.2 (RFC 5246, 6.2.3.2), or encrypt-then-MAC (RFC 7366)."""

    key: bytes
    mac_key: bytes
    mac: str
    """The hash of the HMAC."""
    mac_comes_last: bool
    """Whether it is encrypt-then-MAC."""

    def open(self, header: bytes, fragment: bytes, seq: int) -> Opened | None:
        return (
            self._open_mac_last(header, fragment, seq)
            if self.mac_comes_last
            else self._open(header, fragment, seq)
        )

    def _open(self, header: bytes, fragment: bytes, seq: int) -> Opened | None:
        plain = self._decrypt(fragment)
        if plain is None:
            return None
        end = len(plain) - hash_bytes(self.mac)
        if end < 0:
            return None
        content, tag = plain[:end], plain[end:]
        return (header[0], content) if self._is_authentic(header, content, tag, seq) else None

    def _open_mac_last(self, header: bytes, fragment: bytes, seq: int) -> Opened | None:
        end = len(fragment) - hash_bytes(self.mac)
        if end < 0 or not self._is_authentic(header, fragment[:end], fragment[end:], seq):
            return None
        plain = self._decrypt(fragment[:end])
        return None if plain is None else (header[0], plain)

    def _decrypt(self, data: bytes) -> bytes | None:
        """The plaintext without IV and padding."""
        if len(data) < 2 * BLOCK or len(data) % BLOCK:
            return None
        plain = decrypt_cbc(self.key, data[:BLOCK], data[BLOCK:])
        padding = plain[-1] + 1
        if padding > len(plain) or plain[-padding:] != plain[-1:] * padding:
            return None
        return plain[:-padding]

    def _is_authentic(self, header: bytes, data: bytes, tag: bytes, seq: int) -> bool:
        covered = seq.to_bytes(8, "big") + header[:3] + len(data).to_bytes(2, "big") + data
        return hmac.compare_digest(hmac.digest(self.mac_key, covered, self.mac), tag)

    def content_bytes(self, fragment_bytes: int) -> int | None:
        """None: padding may have any length."""
        return None


Opener = Opener13 | Opener12 | OpenerCbc


def openers_12(
    suite: Suite, master: bytes, client_random: bytes, server_random: bytes, mac_comes_last: bool
) -> tuple[Opener, Opener]:
    """The openers of the client's and the server's records in TLS 1.2."""
    mac_bytes = hash_bytes(suite.mac) if suite.mac is not None else 0
    iv_bytes = {"CBC": 0, "CHACHA20": 12}.get(suite.mode, 4)
    block = KeyBlock(master, client_random, server_random, suite.hash, (mac_bytes, suite.key_bytes, iv_bytes))
    if suite.mac is not None:
        mac = suite.mac
        client, server = (OpenerCbc(block.keys[i], block.macs[i], mac, mac_comes_last) for i in (0, 1))
        return client, server
    return (
        Opener12(Aead(suite.mode, block.keys[0]), block.ivs[0]),
        Opener12(Aead(suite.mode, block.keys[1]), block.ivs[1]),
    )
