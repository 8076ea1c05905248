"""The only module that uses the package ``cryptography``: ciphers, RSA, certificates. Key schedules are not
here.

The package is imported inside functions: loading it takes longer than reading a small capture, and most
captures have no TLS.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import datetime
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

TAG_BYTES = 16
SHORT_TAG_BYTES = 8


@cache
def _aead_ciphers() -> tuple[dict[str, Callable[[bytes], Any]], tuple[type[Exception], ...]]:
    """The AEAD ciphers by mode, and what they raise if data is not authentic."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305

    ciphers: dict[str, Callable[[bytes], Any]] = {
        "GCM": AESGCM,
        "CCM": partial(AESCCM, tag_length=TAG_BYTES),
        "CCM_8": partial(AESCCM, tag_length=SHORT_TAG_BYTES),
        "CHACHA20": ChaCha20Poly1305,
    }
    return ciphers, (InvalidTag, ValueError)  # ValueError: shorter than a tag


class Aead:
    """Opens data that an AEAD cipher sealed. ``mode`` is ``GCM``, ``CCM``, ``CCM_8`` or ``CHACHA20``."""

    __slots__ = ("_decrypt", "_refusals", "key", "mode", "tag_bytes")

    def __init__(self, mode: str, key: bytes) -> None:
        self.mode = mode
        self.key = key
        self.tag_bytes = SHORT_TAG_BYTES if mode == "CCM_8" else TAG_BYTES
        ciphers, self._refusals = _aead_ciphers()
        self._decrypt = ciphers[mode](key).decrypt

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Aead) and (self.mode, self.key) == (other.mode, other.key)

    def __hash__(self) -> int:
        return hash((self.mode, self.key))

    def __reduce__(self) -> tuple[type[Aead], tuple[str, bytes]]:
        return Aead, (self.mode, self.key)

    def open(self, nonce: bytes, data: bytes, associated: bytes) -> bytes | None:
        """The plaintext; None if the tag is wrong."""
        try:
            plain: bytes = self._decrypt(nonce, data, associated)
        except self._refusals:
            return None
        return plain


def decrypt_cbc(key: bytes, iv: bytes, data: bytes) -> bytes:
    """Decrypt AES in CBC mode, without removing the padding; ``data`` has whole blocks."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    decryptor = Cipher(algorithms.AES(key), modes.CBC(iv)).decryptor()
    plain: bytes = decryptor.update(data) + decryptor.finalize()
    return plain


@lru_cache(64)
def load_rsa_key(data: bytes) -> Any:
    """An RSA private key in PEM or DER, without a password.

    :raises ValueError: the data is no such key; the text says what it is.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import load_der_private_key, load_pem_private_key

    load = load_pem_private_key if b"-----BEGIN" in data else load_der_private_key
    try:
        key = load(data, None)
    except TypeError as error:
        raise ValueError("it has a password; openssl rsa -in FILE -out OTHER removes it") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError("it is not a private key in PEM or DER") from error
    if not isinstance(key, rsa.RSAPrivateKey):
        raise ValueError("it is not an RSA key")
    return key


def decrypt_premaster(key: bytes, encrypted: bytes) -> bytes | None:
    """The premaster secret of a ClientKeyExchange (RFC 5246, 7.4.7.1); None if it was encrypted to another
    key."""
    from cryptography.hazmat.primitives.asymmetric import padding

    try:
        plain: bytes = load_rsa_key(key).decrypt(encrypted, padding.PKCS1v15())
    except ValueError:
        return None
    return plain if len(plain) == 48 else None


class Certificate(NamedTuple):
    """The fields of an X.509 certificate that are shown."""

    subject: str
    issuer: str
    names: tuple[str, ...]
    """Subject alternative names: DNS names and addresses."""
    begins: datetime
    expires: datetime


@lru_cache(64)
def read_certificate(der: bytes) -> Certificate | None:
    """The fields of a certificate; None if it is damaged. Cached: every connection to a broker shows the same
    chain."""
    from cryptography import x509

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of serial numbers and the like do not matter here
            certificate = x509.load_der_x509_certificate(der)
            return Certificate(
                certificate.subject.rfc4514_string(),
                certificate.issuer.rfc4514_string(),
                _alternative_names(certificate),
                certificate.not_valid_before_utc,
                certificate.not_valid_after_utc,
            )
    except (ValueError, TypeError, OverflowError, x509.InvalidVersion):
        return None


def _alternative_names(certificate: Any) -> tuple[str, ...]:
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (
        ValueError,
        TypeError,
        x509.ExtensionNotFound,
        x509.DuplicateExtension,
        x509.UnsupportedGeneralNameType,
    ):
        return ()
    dns = names.get_values_for_type(x509.DNSName)
    return (*dns, *(str(address) for address in names.get_values_for_type(x509.IPAddress)))
