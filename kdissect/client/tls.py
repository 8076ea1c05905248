"""TLS of the client's sockets: :class:`~kdissect.client.security.TlsOptions` → a context, and messages for
its failures. The context is made once for a run, because the client may connect again, and files may change.
"""

from __future__ import annotations

import ssl
from functools import lru_cache

from kdissect.client.security import TlsOptions

_NOT_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_EOF_WHILE_READING")
"""Reasons of OpenSSL when the other side does not answer in TLS."""
_OF_CERTIFICATES = ("certificate", "unknown ca")
"""Words in alerts about the client's certificate: it is missing, not trusted, or expired."""


@lru_cache(maxsize=4)
def context_of(tls: TlsOptions) -> ssl.SSLContext:
    """The context for sockets.

    :raises ValueError: a file of certificates or keys cannot be used; the text names it.
    """
    for path in (tls.ca_file, tls.certificate, tls.key):
        if path is not None:
            _check_readable(path)
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
    except ssl.SSLError as error:
        raise ValueError(f"{tls.ca_file}: it has no certificates in PEM ({_reason(error)})") from None
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.certificate is not None:
        try:
            # If a password is needed, an empty one fails; None would ask for it on the terminal.
            context.load_cert_chain(tls.certificate, tls.key, tls.key_password or "")
        except ssl.SSLError as error:
            raise ValueError(_key_failure(tls, error)) from None
    return context


def can_be_named(name: str) -> bool:
    """Whether a certificate can have this host name."""
    try:
        ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname=name)
    except ValueError:
        return False
    return True


def _check_readable(path: str) -> None:
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None


def _key_failure(tls: TlsOptions, error: ssl.SSLError) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"{tls.key or tls.certificate}: the key does not belong to the certificate {tls.certificate}"
    key = tls.key or tls.certificate
    where = "" if tls.key else ", or --tls-key FILE if it is not in there"
    return (
        f"{key}: no usable certificate and key in PEM, or the key has another password ({_reason(error)}): "
        f"--tls-key-password-file FILE{where}"
    )


def failure(error: ssl.SSLError, shows_certificate: bool) -> str:
    """What went wrong with a connection, and what to do.

    :param shows_certificate: whether the client has a certificate.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message.rstrip(".")
        return (
            f"its certificate is not trusted: {why}: --tls-ca FILE says whom to trust, --tls-name NAME "
            "which name to expect"
        )
    reason = _reason(error)
    if error.reason in _NOT_TLS:
        return f"it does not speak TLS here ({reason}): leave --tls out, or name the TLS listener's port"
    if any(each in reason for each in _OF_CERTIFICATES):
        if shows_certificate:
            return f"it does not accept the client's certificate ({reason}): does it trust the signer?"
        return f"it wants a certificate of the client ({reason}): --tls-cert FILE"
    if "handshake failure" in reason and not shows_certificate:
        return f"TLS failed: {reason}: it may want a certificate of the client (--tls-cert FILE)"
    return f"TLS failed: {reason}"


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).lower().replace("_", " ")
