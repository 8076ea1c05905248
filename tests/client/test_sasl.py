from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode

import pytest

from kdissect.client.sasl import SaslCredentials, SaslError, Scram, mechanism


def test_scram_sha_256_is_the_example_of_rfc_7677() -> None:
    client = Scram("SHA-256", "user", "pencil", nonce="rOprNGfwEbeRWgbNEkqO")
    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    final = client.answer(
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert final == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert client.answer(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


def server_of(digest: str, password: bytes, client: Scram) -> tuple[bytes, bytes]:
    """A server's two messages, and whether it could check the proof."""
    bare = client.first()[3:]
    nonce = bare.split(b"r=")[1] + b"server"
    first = b"r=" + nonce + b",s=" + b64encode(b"salt") + b",i=4096"
    final = client.answer(first)
    assert final is not None
    without, _, proof = final.rpartition(b",p=")
    salted = hashlib.pbkdf2_hmac(digest, password, b"salt", 4096)
    message = bare + b"," + first + b"," + without
    client_key = hmac.new(salted, b"Client Key", digest).digest()
    signature = hmac.new(hashlib.new(digest, client_key).digest(), message, digest).digest()
    assert bytes(a ^ b for a, b in zip(b64decode(proof), signature, strict=True)) == client_key
    server_key = hmac.new(salted, b"Server Key", digest).digest()
    return final, b"v=" + b64encode(hmac.new(server_key, message, digest).digest())


@pytest.mark.parametrize("digest", ["SHA-256", "SHA-512"])
def test_a_server_that_knows_the_password_accepts_the_proof_and_is_proven(digest: str) -> None:
    client = Scram(digest, "a,b=c", "päss")
    assert client.first().startswith(b"n,,n=a=2Cb=3Dc,r=")
    _, verdict = server_of(digest.replace("-", "").lower(), "päss".encode(), client)
    assert client.answer(verdict) is None
    with pytest.raises(SaslError, match="after its end"):
        client.answer(verdict)


def test_a_server_that_does_not_know_the_password_is_found_out() -> None:
    client = Scram("SHA-256", "user", "pencil")
    server_of("sha256", b"pencil", client)
    with pytest.raises(SaslError, match="does not know the password"):
        client.answer(b"v=" + b64encode(bytes(32)))


@pytest.mark.parametrize(
    ("received", "why"),
    [
        (b"e=unknown-user", "unknown-user"),
        (b"r=other,s=c2FsdA==,i=4096", "nonce"),
        (b"r=abc,s=c2FsdA==,i=4096", "nonce"),
        (b"r=abcd,s=c2FsdA==,i=4095", "iterations"),
        (b"r=abcd,s=c2FsdA==,i=99999999", "iterations"),
        (b"r=abcd,s=c2FsdA==,i=x", "iterations"),
        (b"r=abcd,s=!,i=4096", "salt"),
        (b"r=abcd,i=4096", "salt"),
        (b"\xff", "UTF-8"),
    ],
)
def test_what_a_server_may_not_say_ends_the_login(received: bytes, why: str) -> None:
    client = Scram("SHA-256", "user", "pencil", nonce="abc")
    client.first()
    with pytest.raises(SaslError, match=why):
        client.answer(received)


def test_plain_is_rfc_4616() -> None:
    client = mechanism("PLAIN", SaslCredentials("tim", "tanstaaftanstaaf"))
    assert client.first() == b"\0tim\0tanstaaftanstaaf"
    assert client.answer(b"") is None
    with pytest.raises(SaslError, match="NUL"):
        mechanism("PLAIN", SaslCredentials("a\0b", "c"))


def test_a_bearer_token_is_sent_and_a_refusal_is_closed_with_one_byte() -> None:
    client = mechanism("OAUTHBEARER", SaslCredentials(token="abc.def.ghi"))
    assert client.first() == b"n,,\x01auth=Bearer abc.def.ghi\x01\x01"
    assert client.answer(b"") is None
    assert client.answer(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(SaslError, match="continues the login"):
        client.answer(b'{"status":"invalid_token"}')  # or the two would never be done
    with pytest.raises(SaslError, match="one line"):
        mechanism("OAUTHBEARER", SaslCredentials(token="a\nb"))


def test_missing_credentials_and_unknown_mechanisms_are_told() -> None:
    with pytest.raises(SaslError, match="--user"):
        mechanism("SCRAM-SHA-256", SaslCredentials())
    with pytest.raises(SaslError, match="--token-file"):
        mechanism("OAUTHBEARER", SaslCredentials("user", "password"))
    with pytest.raises(SaslError, match="there are PLAIN"):
        mechanism("GSSAPI", SaslCredentials())


def test_credentials_have_no_text_form() -> None:
    assert "tanstaaf" not in repr(SaslCredentials("tim", "tanstaaf", "token"))
    assert "tanstaaf" not in f"{SaslCredentials('tim', 'tanstaaf')}"
