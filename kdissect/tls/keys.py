"""Secrets → keys: the key schedules of TLS 1.3 (RFC 8446, 7) and TLS 1.2 (RFC 5246, 5, 6.3 and 8.1)."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

from kdissect.lazy import Later

if TYPE_CHECKING:
    import hashlib
    import hmac
else:
    hashlib = Later("hashlib")
    hmac = Later("hmac")

MASTER_BYTES = 48


@cache
def hash_bytes(name: str) -> int:
    """The length of a hash's values."""
    return hashlib.new(name).digest_size


def expand_label(secret: bytes, label: str, length: int, hash_name: str, context: bytes = b"") -> bytes:
    """HKDF-Expand-Label (RFC 8446, 7.1; HKDF-Expand is RFC 5869, 2.3)."""
    if not context:
        block = hmac.digest(secret, _only_block(label, length), hash_name)
        if len(block) >= length:
            return block[:length]
    info = _label_info(label, length) + bytes((len(context),)) + context
    out = block = b""
    counter = 1
    while len(out) < length:
        block = hmac.digest(secret, block + info + bytes((counter,)), hash_name)
        out += block
        counter += 1
    return out[:length]


@lru_cache(64)
def _only_block(label: str, length: int) -> bytes:
    """What the first block is made of, without a context. It is the only one of keys and IVs."""
    return _label_info(label, length) + b"\0\1"


@lru_cache(64)
def _label_info(label: str, length: int) -> bytes:
    """What names the wanted bytes, without the context."""
    full = b"tls13 " + label.encode("ascii")
    return length.to_bytes(2, "big") + bytes((len(full),)) + full


def traffic_keys(secret: bytes, key_bytes: int, hash_name: str) -> tuple[bytes, bytes]:
    """Key and IV of one direction's records (RFC 8446, 7.3)."""
    return expand_label(secret, "key", key_bytes, hash_name), expand_label(secret, "iv", 12, hash_name)


def next_traffic_secret(secret: bytes, hash_name: str) -> bytes:
    """The secret after a KeyUpdate (RFC 8446, 7.2)."""
    return expand_label(secret, "traffic upd", hash_bytes(hash_name), hash_name)


def prf(secret: bytes, label: bytes, seed: bytes, length: int, hash_name: str) -> bytes:
    """The pseudorandom function of TLS 1.2 (RFC 5246, 5)."""
    seed = label + seed
    out, a = b"", seed
    while len(out) < length:
        a = hmac.digest(secret, a, hash_name)
        out += hmac.digest(secret, a + seed, hash_name)
    return out[:length]


def master_secret(premaster: bytes, client_random: bytes, server_random: bytes, hash_name: str) -> bytes:
    """RFC 5246, 8.1."""
    return prf(premaster, b"master secret", client_random + server_random, MASTER_BYTES, hash_name)


def extended_master_secret(premaster: bytes, session_hash: bytes, hash_name: str) -> bytes:
    """RFC 7627, 4: over the hash of the handshake up to and including the ClientKeyExchange."""
    return prf(premaster, b"extended master secret", session_hash, MASTER_BYTES, hash_name)


class KeyBlock:
    """The keys of TLS 1.2 (RFC 5246, 6.3); each field is (client's, server's)."""

    __slots__ = ("ivs", "keys", "macs")

    def __init__(
        self,
        master: bytes,
        client_random: bytes,
        server_random: bytes,
        hash_name: str,
        lengths: tuple[int, int, int],
    ) -> None:
        """``lengths`` are the lengths of a MAC key, a key and an IV."""
        seed = server_random + client_random
        block = prf(master, b"key expansion", seed, 2 * sum(lengths), hash_name)
        parts: list[tuple[bytes, bytes]] = []
        at = 0
        for length in lengths:
            parts.append((block[at : at + length], block[at + length : at + 2 * length]))
            at += 2 * length
        self.macs, self.keys, self.ivs = parts
