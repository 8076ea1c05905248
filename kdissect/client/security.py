"""How a connection is protected: TLS and SASL, as the user chose."""

from __future__ import annotations

from typing import NamedTuple

from kdissect.client.sasl import SaslCredentials


class TlsOptions(NamedTuple):
    """How TLS is spoken. Certificates are verified unless that is turned off."""

    ca_file: str | None = None
    """Certificates that are trusted; None: those of the system."""
    certificate: str | None = None
    """The client's own, PEM."""
    key: str | None = None
    """Its key; None: in the same file."""
    key_password: str | None = None
    verify: bool = True
    server_name: str | None = None
    """What the broker's certificate must name; None: the host that is connected to."""

    def __repr__(self) -> str:
        return f"<TLS, {'' if self.verify else 'not '}verified>"


class Security(NamedTuple):
    """TLS and SASL of one connection."""

    tls: TlsOptions | None = None
    mechanism: str | None = None
    """Of SASL; None: no login."""
    credentials: SaslCredentials = SaslCredentials()


NO_SECURITY = Security()
"""Neither."""
