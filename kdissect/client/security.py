"""The protection of a connection: TLS and SASL, as the user chose."""

from __future__ import annotations

from typing import NamedTuple

from kdissect.client.sasl import SaslCredentials


class TlsOptions(NamedTuple):
    """The TLS options. Certificates are verified unless that is turned off."""

    ca_file: str | None = None
    """The trusted certificates; None for those of the system."""
    certificate: str | None = None
    """The client's own certificate, PEM."""
    key: str | None = None
    """The key of that certificate; None if it is in the same file."""
    key_password: str | None = None
    verify: bool = True
    server_name: str | None = None
    """The name that the broker's certificate must have; None for the host of the connection."""

    def __repr__(self) -> str:
        return f"<TLS, {'' if self.verify else 'not '}verified>"


class Security(NamedTuple):
    """TLS and SASL of one connection."""

    tls: TlsOptions | None = None
    mechanism: str | None = None
    """The SASL mechanism; None for no login."""
    credentials: SaslCredentials = SaslCredentials()


NO_SECURITY = Security()
"""Neither TLS nor SASL."""
