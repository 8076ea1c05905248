"""Talks of OpenSSL's two ends that several tests read, and what comes of reading them."""

from __future__ import annotations

import ssl
from functools import cache
from random import Random

from kdissect.tls.decrypting import Piece, Tls
from kdissect.tls.keylog import TlsSecrets
from tests.tls.endpoints import Ends, Flight, Talk, run, segments, streams

TLS12, TLS13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
NO_ENCRYPT_THEN_MAC, NO_EXTENDED_MASTER_SECRET = 0x80000, 0x1
"""OpenSSL's options, for which Python has no names."""


def lines() -> list[Flight]:
    sizes = (10, 100, 40_000, 3, 17_000, 16_384, 1)
    return [(number % 2, Random(number).randbytes(size)) for number, size in enumerate(sizes)]


@cache
def talk(version: ssl.TLSVersion = TLS13, ciphers: str = "ALL:@SECLEVEL=0") -> Talk:
    return Ends(version, ciphers).talk(lines())


def secrets_of(key_log: bytes) -> TlsSecrets:
    found = TlsSecrets()
    found.add(key_log)
    return found


def decrypted(made: Talk, size: int = 1460) -> tuple[Tls, list[Piece]]:
    machine = Tls(made.secrets())
    return machine, run(machine, segments(made.flights, size))


def is_all(made: Talk, out: list[Piece]) -> bool:
    return streams(out) == (bytes(made.said[0]), bytes(made.said[1]))


def suites_here() -> list[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")
    names = [each["name"] for each in context.get_ciphers() if each["protocol"] != "TLSv1.3"]
    return [name for name in names if not any(word in name for word in ("PSK", "SRP", "DSS", "TLS_"))]
