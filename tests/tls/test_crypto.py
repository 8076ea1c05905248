"""Ciphers and certificates, as the package ``cryptography`` has them."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_pem_x509_certificate

from kdissect.tls.crypto import Aead, read_certificate
from tests.tls.endpoints import certificate

KEY, NONCE = bytes(16), bytes(12)


@pytest.mark.parametrize(
    ("mode", "cipher", "key"),
    [
        ("GCM", AESGCM(KEY), KEY),
        ("CCM", AESCCM(KEY, 16), KEY),
        ("CCM_8", AESCCM(KEY, 8), KEY),
        ("CHACHA20", ChaCha20Poly1305(KEY * 2), KEY * 2),
    ],
)
def test_each_mode_opens_only_what_its_cipher_sealed(mode: str, cipher: Any, key: bytes) -> None:
    sealed = cipher.encrypt(NONCE, b"orders", b"header")
    aead = Aead(mode, key)
    assert len(sealed) - len(b"orders") == aead.tag_bytes
    assert aead.open(NONCE, sealed, b"header") == b"orders"
    assert aead.open(NONCE, sealed, b"other") is None
    assert aead.open(NONCE, sealed[:4], b"header") is None


def test_a_certificate_that_many_connections_show_is_read_once() -> None:
    der = load_pem_x509_certificate(certificate("rsa").path.read_bytes()).public_bytes(Encoding.DER)
    found = read_certificate(der)
    assert found is not None
    assert read_certificate(bytes(bytearray(der))) is found


def test_a_damaged_certificate_has_no_fields() -> None:
    assert read_certificate(b"\x30\x03\x02\x01") is None
