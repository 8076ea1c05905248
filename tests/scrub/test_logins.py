"""SASL tokens say who it is, by a token, and no secret."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.scrub.logins import scrubbed_token
from kdissect.scrub.values import Scrubber
from kdissect.session.sasl import Login, principal
from tests.scrub.runs import KEY

PLAIN = b"\0alice\0wonderland"
SCRAM = b"n,,n=alice,r=fyko+d2lbbFgONRv9qkxdawL"
SCRAM_SERVER = b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096"
SCRAM_FINAL = b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfc,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="


def bearer(**claims: object) -> bytes:
    head, body = (
        urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=") for each in ({"alg": "RS256"}, claims)
    )
    return b"n,,\x01auth=Bearer " + head + b"." + body + b"." + b"c2lnbmF0dXJl" + b"\x01\x01"


TOKENS = [
    ("PLAIN", PLAIN, (b"alice", b"wonderland")),
    ("SCRAM-SHA-256", SCRAM, (b"alice", b"fyko+d2l")),
    ("SCRAM-SHA-256", SCRAM_SERVER, (b"fyko+d2l", b"QSXCR+Q6")),
    ("SCRAM-SHA-512", SCRAM_FINAL, (b"v0X8v3Bz", b"biws")),
    ("OAUTHBEARER", bearer(sub="alice", exp=1_900_000_000, email="alice@x.org"), (b"c2lnbmF0", b"alice")),
    ("GSSAPI", b"\x60\x82ticket of alice", (b"ticket", b"alice")),
    (None, PLAIN, (b"alice", b"wonderland")),
]


@pytest.mark.parametrize(("mechanism", "token", "secrets"), TOKENS)
def test_no_secret_stays(mechanism: str | None, token: bytes, secrets: tuple[bytes, ...]) -> None:
    made = scrubbed_token(mechanism, token, Scrubber(KEY))
    assert len(made) == len(token)
    assert not any(each in made for each in secrets)


@pytest.mark.parametrize(
    ("mechanism", "token"), [(m, t) for m, t, _ in TOKENS[:2]] + [("OAUTHBEARER", TOKENS[4][1])]
)
def test_the_user_has_the_token_that_it_has_everywhere(mechanism: str, token: bytes) -> None:
    scrubber = Scrubber(KEY)
    made = scrubbed_token(mechanism, token, scrubber)
    assert principal(mechanism, made) == scrubber.name("alice")


def test_a_bearer_still_expires() -> None:
    login = Login()
    login.begin("OAUTHBEARER")
    login.read_token(scrubbed_token("OAUTHBEARER", TOKENS[4][1], Scrubber(KEY)))
    assert login.expires_ms == 1_900_000_000_000


def test_the_rounds_of_scram_stay() -> None:
    made = scrubbed_token("SCRAM-SHA-256", SCRAM_SERVER, Scrubber(KEY))
    assert made.endswith(b",i=4096")


def test_what_was_taken_away_is_remembered() -> None:
    scrubber = Scrubber(KEY)
    scrubbed_token("PLAIN", PLAIN, scrubber)
    assert all(each in scrubber.taken.texts for each in (b"alice", b"wonderland", PLAIN))


@given(
    st.sampled_from(["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI"]),
    st.binary(max_size=80) | st.sampled_from([token + b"," for _, token, _ in TOKENS]),
)
def test_anything_keeps_its_length(mechanism: str, token: bytes) -> None:
    assert len(scrubbed_token(mechanism, token, Scrubber(KEY))) == len(token)


@pytest.mark.parametrize("subject", ["\ud800", "a\udc80b"])
def test_a_subject_that_is_no_text_is_left_out(subject: str) -> None:
    made = scrubbed_token("OAUTHBEARER", bearer(sub=subject, exp=5), Scrubber(KEY))
    assert len(made) == len(bearer(sub=subject, exp=5))
    assert principal("OAUTHBEARER", made) is None
