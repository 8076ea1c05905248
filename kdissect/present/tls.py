"""The handshakes of a TLS connection → lines for people. The column ``tls`` has the same as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kdissect.lazy import Later
from kdissect.present.sanitise import sanitise
from kdissect.session.conversation import Connection

if TYPE_CHECKING:
    from kdissect.tls import handshake
else:
    handshake = Later("kdissect.tls.handshake")

LONGEST_LINE = 2_000
"""The most characters of one fact; a certificate may have ten thousand names."""


class TlsLine(NamedTuple):
    """One fact."""

    name: str
    text: str
    """Sanitised."""
    is_warning: bool = False
    """Whether it is, or will soon be, the reason for a failure."""


def tls_lines(tls: Mapping[str, Any]) -> Iterator[TlsLine]:
    """The lines of a value of the column ``tls``."""
    for name, text, is_warning in _lines(tls):
        yield TlsLine(name, sanitise(text, LONGEST_LINE), is_warning)


NO_SECRET = "no secret"
"""A reason of :func:`why_dark`: the only one that the user can remove."""
HOW_TO = "kdissect doctor tls says how to get one"


def why_dark(connection: Connection) -> str:
    """Why nothing of a TLS connection was decoded, without the parts that differ from one connection to
    another."""
    nothing = "not recognised as Kafka" if connection.skipped_bytes else "nothing was sent in it"
    why: str = (connection.tls or {}).get("dark") or nothing
    return why.partition(" for client random")[0]


def _lines(tls: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    if tls["dark"] is not None:
        yield "dark" if not tls["decrypted"] else "partly dark", tls["dark"], True
    offered = tls["offered"]
    yield "version", _chosen(tls["version"], offered.get("versions", ())), False
    if tls["suite"] is not None:
        yield "suite", tls["suite"], False
    if tls["server_name"] is not None:
        yield "server name", tls["server_name"], False
    if tls["alpn"] is not None or "alpn" in offered:
        yield "ALPN", _chosen(tls["alpn"], offered.get("alpn", ())), False
    if tls["resumed"]:
        yield "resumed", "an earlier session, whose certificates count", False
    if tls["early_data"] is not None:
        yield "early data", tls["early_data"], False
    for whose in ("certificate", "client certificate"):
        shown = tls[f"{whose.replace(' ', '_')}s"]
        for number, certificate in enumerate(shown):
            place = f" {number + 1} of {len(shown)}" if len(shown) > 1 else ""
            yield f"{whose}{place}", _certificate(certificate), "warning" in certificate
    if tls["version"] == handshake.version_name(handshake.TLS_1_3) and not tls["decrypted"]:
        yield "certificate", "encrypted, as always in TLS 1.3", False
    for alert in tls["alerts"]:
        text = f"{alert['name']} ({alert['level']}) from the {alert['from']}, packet {alert['packet']}"
        yield "alert", text, alert["name"] != "close_notify"


def _chosen(chosen: str | None, offered: Sequence[str]) -> str:
    """The broker's choice among the client's offers."""
    text = chosen or "none chosen"
    return text if not offered or list(offered) == [chosen] else f"{text}; offered: {', '.join(offered)}"


def _certificate(certificate: Mapping[str, Any]) -> str:
    """One certificate, with problems of its dates first."""
    parts = [certificate["warning"].upper()] if "warning" in certificate else []
    if "subject" in certificate:
        parts.append(certificate["subject"] or "no subject")
        if certificate["names"]:
            parts.append(f"names {', '.join(certificate['names'])}")
        parts.append(f"valid {certificate['not_before']} to {certificate['not_after']}")
        issuer = certificate["issuer"]
        parts.append(f"issued by {'itself' if issuer == certificate['subject'] else issuer or 'nobody'}")
    else:
        parts.append(f"cannot be read; SHA-256 {certificate['sha256']}")
    return "; ".join(parts)
