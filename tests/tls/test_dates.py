"""The dates of certificates are those that the package ``cryptography`` reads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from kdissect.tls.crypto import read_certificate
from kdissect.tls.dates import microseconds, valid_us

KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(begins: datetime, expires: datetime) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")])
    made = x509.CertificateBuilder(name, name, KEY.public_key(), 7, begins, expires)
    return made.sign(KEY, SHA256()).public_bytes(Encoding.DER)


@pytest.mark.parametrize(
    "begins", [datetime(1950, 1, 1), datetime(1999, 12, 31, 23, 59, 59), datetime(2049, 2, 28)]
)
@pytest.mark.parametrize("days", [1, 9_999, 100_000])
def test_dates_of_both_forms_and_centuries_are_read(begins: datetime, days: int) -> None:
    expires = begins + timedelta(days=days)
    der = certificate(begins, expires)
    read = read_certificate(der)
    assert read is not None
    assert valid_us(der) == (microseconds(read.begins), microseconds(read.expires))
    assert valid_us(der) == (
        microseconds(begins.replace(tzinfo=UTC)),
        microseconds(expires.replace(tzinfo=UTC)),
    )


def test_changed_bytes_give_no_other_dates_than_cryptography_reads() -> None:
    der = certificate(datetime(2020, 1, 1), datetime(2060, 1, 1))
    same = 0
    for at in range(len(der)):
        for bit in (1, 16, 128):
            changed = bytearray(der)
            changed[at] ^= bit
            read, dates = read_certificate(bytes(changed)), valid_us(bytes(changed))
            if read is not None and dates is not None:
                assert dates == (microseconds(read.begins), microseconds(read.expires))
                same += 1
    assert same > 100


def test_a_certificate_that_breaks_off_has_no_dates() -> None:
    der = certificate(datetime(2020, 1, 1), datetime(2060, 1, 1))
    assert all(valid_us(der[:size]) is None for size in range(0, len(der), 7))
    assert valid_us(b"\x30\x80" + der[2:]) is None
