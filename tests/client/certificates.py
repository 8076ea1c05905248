"""Certificates for tests, made by the openssl command where there is one."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

requires_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl command")


class Certificate(NamedTuple):
    """A self-signed one, and its key."""

    certificate: Path
    key: Path

    def server(self, clients: Path | None = None) -> ssl.SSLContext:
        """What a server with it needs; it wants certificates of clients that ``clients`` trusts."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        if clients is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients)
        return context


def make(folder: Path, name: str, password: str | None = None) -> Certificate:
    """One for the host 127.0.0.1 and the name ``broker``."""
    found = Certificate(folder / f"{name}.pem", folder / f"{name}.key")
    protected = ["-passout", f"pass:{password}"] if password else ["-nodes"]
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-keyout", str(found.key), "-out", str(found.certificate), "-days", "2", *protected),
            *("-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:broker,IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    return found
