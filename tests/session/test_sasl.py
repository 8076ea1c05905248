"""SASL tokens: who logs in. The passwords in them are made up."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode

import pytest

from kdissect.protocol.apis import SASL_AUTHENTICATE, SASL_HANDSHAKE
from kdissect.session.sasl import LONGEST_TOKEN, Login, answer_in, first_field_in, principal
from tests.kafka import request, response


def body_at(version: int) -> int:
    """Where the body of a request of the client ``test`` begins."""
    return 10 + len("test") + (version == 2)


def bearer(claims: object) -> bytes:
    body = urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=")
    return b"n,,\x01auth=Bearer e30." + body + b".sig\x01\x01"


@pytest.mark.parametrize(
    ("mechanism", "token", "name"),
    [
        ("PLAIN", b"\0alice\0secret", "alice"),
        ("PLAIN", b"other\0alice\0secret", "alice"),
        ("PLAIN", b"\0alice", None),
        ("PLAIN", b"\0\xff\0secret", None),
        ("SCRAM-SHA-256", b"n,,n=bob,r=nonce", "bob"),
        ("SCRAM-SHA-512", b"n,,n=a=2Cb=3Dc,r=nonce", "a,b=c"),
        ("SCRAM-SHA-256", b"c=biws,r=nonce,p=proof", None),
        ("OAUTHBEARER", bearer({"sub": "carol"}), "carol"),
        ("OAUTHBEARER", bearer({"sub": 7}), None),
        ("OAUTHBEARER", bearer({"sub": "a\ud800"}), "a\\ud800"),
        ("OAUTHBEARER", bearer(["sub"]), None),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer nodots\x01\x01", None),
        ("OAUTHBEARER", b"", None),
        ("GSSAPI", b"\x60\x03abc", None),
        ("PLAIN", b"\0alice\0" + bytes([1]) * LONGEST_TOKEN, None),
    ],
)
def test_the_principal_is_the_one_that_the_first_token_names(
    mechanism: str, token: bytes, name: str | None
) -> None:
    assert principal(mechanism, token) == name


def test_nobody_logs_in_until_a_mechanism_is_named() -> None:
    login = Login()
    login.read_token(b"\0alice\0secret")
    assert login.summary() is None


def test_the_first_token_that_names_a_principal_counts() -> None:
    login = Login()
    login.begin("SCRAM-SHA-256")
    for token in (b"n,,n=bob,r=nonce", b"c=biws,r=nonce,p=proof", b"n,,n=eve,r=nonce"):
        login.read_token(token)
    told = {"mechanism": "SCRAM-SHA-256", "principal": "bob", "outcome": None, "expires_ms": None}
    assert login.summary() == told


def test_another_login_begins_with_nothing_of_the_last() -> None:
    login = Login()
    login.begin("PLAIN")
    login.read_token(b"\0alice\0secret")
    login.outcome = "authenticated"
    login.lasts(1_700_000_000_123_456_789, 5_000)
    login.begin("SCRAM-SHA-256")
    told = {"mechanism": "SCRAM-SHA-256", "principal": None, "outcome": None, "expires_ms": None}
    assert login.summary() == told
    login.read_token(b"n,,n=bob,r=nonce")
    assert login.principal == "bob"


def test_the_broker_says_when_a_login_ends() -> None:
    login = Login()
    login.begin("PLAIN")
    login.lasts(1_700_000_000_123_456_789, 0)
    assert login.expires_ms is None
    login.lasts(1_700_000_000_123_456_789, 5_000)
    assert login.expires_ms == 1_700_000_005_123


@pytest.mark.parametrize(
    ("claims", "expires_ms"),
    [
        ({"sub": "carol", "exp": 1_700_000_000}, 1_700_000_000_000),
        ({"sub": "carol", "exp": 1_700_000_000.5}, 1_700_000_000_500),
        ({"sub": "carol", "exp": "soon"}, None),
        ({"sub": "carol", "exp": -1}, None),
        ({"sub": "carol", "exp": 1e300}, None),
        ({"sub": "carol"}, None),
    ],
)
def test_a_bearer_token_says_when_it_ends(claims: object, expires_ms: int | None) -> None:
    login = Login()
    login.begin("OAUTHBEARER")
    login.read_token(bearer(claims))
    assert login.expires_ms == expires_ms


def test_each_bearer_token_names_its_own_subject_however_often_it_comes() -> None:
    """What was read of a token is remembered; the token itself is not."""
    tokens = [bearer({"sub": f"client-{each}", "exp": each + 1}) for each in range(300)]
    for _ in range(2):
        for each, token in enumerate(tokens):
            login = Login()
            login.begin("OAUTHBEARER")
            login.read_token(token)
            assert (login.principal, login.expires_ms) == (f"client-{each}", 1_000 * (each + 1))


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 20_000])
def test_what_a_request_of_a_login_says_first_is_what_its_body_decodes_to(version: int, size: int) -> None:
    token = b"x" * size
    data = b"abc" + request("SaslAuthenticate", version, 1, authBytes=b64encode(token).decode("ascii"))
    assert first_field_in((SASL_AUTHENTICATE, version), data, 3 + body_at(version)) == token


def test_the_mechanism_of_a_handshake_is_what_its_body_decodes_to() -> None:
    data = b"abc" + request("SaslHandshake", 1, 1, mechanism="SCRAM-SHA-256")
    assert first_field_in((SASL_HANDSHAKE, 1), data, 3 + body_at(1)) == b"SCRAM-SHA-256"


def test_null_says_nothing() -> None:
    assert first_field_in((SASL_HANDSHAKE, 1), b"\xff\xff", 0) is None
    assert first_field_in((SASL_AUTHENTICATE, 1), b"\xff\xff\xff\xff", 0) is None
    assert first_field_in((SASL_AUTHENTICATE, 2), b"\0", 0) is None


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("text", [None, "", "why not", "y" * 300])
@pytest.mark.parametrize("lifetime", [0, 1, 3_600_000, 1 << 40])
def test_what_an_answer_to_a_login_says_is_what_its_body_decodes_to(
    version: int, text: str | None, lifetime: int
) -> None:
    holds = {"sessionLifetimeMs": lifetime} if version else {}
    answer = {"errorCode": 0, "errorMessage": text, "authBytes": b64encode(b"z" * 200).decode("ascii")}
    data = b"abc" + response("SaslAuthenticate", version, 1, **answer, **holds)
    at = 3 + (5 if version == 2 else 4)
    assert answer_in(version, data, at) == (b"z" * 200, lifetime if version else 0)


@pytest.mark.parametrize(
    ("mechanism", "token", "over"),
    [
        ("PLAIN", b"", True),
        ("SCRAM-SHA-256", b"r=nonce,s=salt,i=4096", False),
        ("SCRAM-SHA-256", b"v=proof", True),
        ("OAUTHBEARER", b"", True),
        ("OAUTHBEARER", b'{"status":"invalid_token"}', False),
        ("GSSAPI", b"\x60\x03abc", True),
    ],
)
def test_a_login_is_over_when_the_mechanism_s_last_answer_comes(
    mechanism: str, token: bytes, over: bool
) -> None:
    login = Login()
    login.begin(mechanism)
    assert login.is_over(token) == over
