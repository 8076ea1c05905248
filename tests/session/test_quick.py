"""The short way of a connection's frames: what it takes, what it leaves, and that the result is the same."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import Any

import pytest

from kdissect.dissect import Dissector
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.session.briefs import Brief, Interest
from tests.kafka import Talk, request, response
from tests.session.runs import metadata, metadata_answer
from tests.test_dissect_short import told, without_rows


@dataclass
class Told:
    """What a talk gave."""

    briefs: list[str]
    """Of the exchanges in brief, the API, version and number."""
    whole: list[str]
    """The same of those that are whole."""


def tell(talk: Talk, limits: Limits = DEFAULTS) -> Told:
    """Dissect a talk at both speeds, which must tell the same."""
    quick, usual = Dissector(limits, briefs=Interest()), Dissector(limits)
    found = [event for segment in talk.segments for event in quick.feed(segment)]
    expected = [event for segment in talk.segments for event in usual.feed(segment)]
    held = quick.held_bytes, usual.held_bytes
    assert held[0] == held[1]
    found += quick.close()
    expected += usual.close()
    what = [told(event) for event in found]
    assert what == without_rows([told(event) for event in expected], what)
    out = Told([], [])
    for event in found:
        if isinstance(event, Brief):
            out.briefs.append(f"{event.form.name} v{event.form.version} #{event.number}")
        elif isinstance(event, Exchange):
            out.whole.append(f"{event.api} v{event.api_version} #{event.number}")
    return out


def test_a_request_and_its_answer_are_told_in_brief() -> None:
    talk = (
        Talk().ask(metadata(1)).answer(metadata_answer(1)).ask(metadata(2)).answer(metadata_answer(2)).close()
    )
    assert tell(talk) == Told(["Metadata v1 #1", "Metadata v1 #2"], [])


def test_several_requests_in_a_segment_and_their_answers_too() -> None:
    talk = Talk().ask(metadata(1), metadata(2), metadata(3)).answer(*map(metadata_answer, (1, 2, 3)))
    assert tell(talk).briefs == ["Metadata v1 #1", "Metadata v1 #2", "Metadata v1 #3"]


def test_frames_over_several_segments_too() -> None:
    talk = Talk(mss=7).ask(metadata(1)).answer(metadata_answer(1)).ask(metadata(2)).answer(metadata_answer(2))
    assert tell(talk).briefs == ["Metadata v1 #1", "Metadata v1 #2"]


def test_a_produce_without_an_answer_is_over_at_once() -> None:
    quiet = request("Produce", 3, 2, transactionalId=None, acks=0, timeoutMs=1, topicData=[])
    talk = (
        Talk().ask(metadata(1)).answer(metadata_answer(1)).ask(quiet, metadata(3)).answer(metadata_answer(3))
    )
    assert tell(talk).briefs == ["Metadata v1 #1", "Produce v3 #2", "Metadata v1 #3"]


def test_an_error_is_told_in_brief_too() -> None:
    refused = response("Heartbeat", 1, 2, throttleTimeMs=0, errorCode=25)
    beat = request("Heartbeat", 1, 2, groupId="g", generationId=1, memberId="m")
    talk = Talk().ask(metadata(1)).answer(metadata_answer(1)).ask(beat).answer(refused)
    talk.ask(metadata(3)).answer(metadata_answer(3))
    assert tell(talk) == Told(["Metadata v1 #1", "Heartbeat v1 #2", "Metadata v1 #3"], [])


@pytest.mark.parametrize(
    "strange",
    [
        request("Metadata", 1, 2, "another", topics=[]),
        request("Metadata", 1, 2, None, topics=[]),
        request("Metadata", 1, 2, "naïve", topics=[]),
        request("SaslHandshake", 0, 2, mechanism="PLAIN"),
        metadata(1),
        b"\0\3\0\x63\0\0\0\2\0\4test",
    ],
    ids=("client", "nobody", "not-ascii", "login", "same-id", "unknown-version"),
)
def test_what_is_not_ordinary_leaves_with_what_waits(strange: bytes) -> None:
    talk = Talk().ask(metadata(7)).answer(metadata_answer(7)).ask(metadata(1)).ask(strange)
    talk.answer(metadata_answer(1)).ask(metadata(9)).answer(metadata_answer(9))
    assert tell(talk).briefs == ["Metadata v1 #1"]


def test_requests_of_one_segment_keep_their_numbers_where_the_last_of_them_leaves() -> None:
    login = request("SaslHandshake", 0, 3, mechanism="PLAIN")
    talk = Talk().ask(metadata(1), metadata(2), login).answer(metadata_answer(1), metadata_answer(2))
    assert tell(talk) == Told([], ["Metadata v1 #1", "Metadata v1 #2", "SaslHandshake v0 #3"])


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def logged_in(talk: Talk, version: int, token: bytes, code: int = 0, **answer: Any) -> Talk:
    """The talk, and behind it a login by PLAIN."""
    handshake = request("SaslHandshake", 1, 1, mechanism="PLAIN")
    talk.ask(handshake).answer(response("SaslHandshake", 1, 1, errorCode=0, mechanisms=["PLAIN"]))
    talk.ask(request("SaslAuthenticate", version, 2, authBytes=_base64(token)))
    text = "no" if code else None
    return talk.answer(
        response("SaslAuthenticate", version, 2, errorCode=code, errorMessage=text, authBytes="", **answer)
    )


@pytest.mark.parametrize(
    ("version", "told"), [(0, {}), (1, {"sessionLifetimeMs": 7}), (2, {"sessionLifetimeMs": 7})]
)
def test_a_login_is_told_in_brief_and_who_it_was(version: int, told: dict[str, Any]) -> None:
    talk = logged_in(Talk(), version, b"\0alice\0secret", **told).ask(metadata(3)).answer(metadata_answer(3))
    names = ["SaslHandshake v1 #1", f"SaslAuthenticate v{version} #2", "Metadata v1 #3"]
    assert tell(talk) == Told(names, [])
    dissector = Dissector(briefs=Interest())
    found: list[object] = [event for segment in talk.segments for event in dissector.feed(segment)]
    whole = [event.exchange() for event in found if isinstance(event, Brief)]
    assert [each.principal for each in whole] == [None, "alice", "alice"]
    (row,) = (each.summary() for each in dissector._conversations()[:1])
    usual = Dissector()
    for segment in talk.segments:
        usual.feed(segment)
    assert row.sasl == usual._conversations()[0].summary().sasl
    assert row.sasl is not None
    assert (row.sasl["outcome"], row.sasl["expires_ms"] is None) == ("authenticated", not told)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_login_that_fails_leaves_and_so_does_one_out_of_form(version: int) -> None:
    lifetime = {"sessionLifetimeMs": 0} if version else {}
    refused = logged_in(Talk(), version, b"\0alice\0wrong", 58, **lifetime)
    assert tell(refused) == Told(["SaslHandshake v1 #1"], [f"SaslAuthenticate v{version} #2"])
    strange = Talk().ask(metadata(1)).answer(metadata_answer(1))
    strange.ask(request("SaslAuthenticate", version, 2, authBytes="eA==") + b"left")
    assert tell(strange) == Told(["Metadata v1 #1"], [f"SaslAuthenticate v{version} #2"])


@pytest.mark.parametrize(
    ("mechanism", "answer", "outcome"),
    [
        ("OAUTHBEARER", b'{"status":"invalid_token"}', None),
        ("OAUTHBEARER", b"", "authenticated"),
        ("SCRAM-SHA-256", b"r=nonce,s=salt,i=4096", None),
        ("SCRAM-SHA-256", b"v=proof", "authenticated"),
    ],
)
def test_a_login_whose_last_answer_is_to_come_has_no_outcome(
    mechanism: str, answer: bytes, outcome: str | None
) -> None:
    handshake = request("SaslHandshake", 1, 1, mechanism=mechanism)
    talk = Talk().ask(handshake).answer(response("SaslHandshake", 1, 1, errorCode=0, mechanisms=[mechanism]))
    talk.ask(request("SaslAuthenticate", 1, 2, authBytes=_base64(b"n,,")))
    told = {"errorCode": 0, "errorMessage": None, "authBytes": _base64(answer), "sessionLifetimeMs": 7}
    talk.answer(response("SaslAuthenticate", 1, 2, **told))
    assert same_login(talk)["outcome"] == outcome


def sasl_of(dissector: Dissector) -> Any:
    return dissector._conversations()[0].summary().sasl


def same_login(talk: Talk) -> Any:
    """The login of a talk's connection, which must be the same at both speeds after each segment."""
    quick, usual = Dissector(briefs=Interest()), Dissector()
    for segment in talk.segments:
        quick.feed(segment)
        usual.feed(segment)
        assert sasl_of(quick) == sasl_of(usual)
    return sasl_of(quick)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_login_with_bytes_left_leaves_though_it_is_answered(version: int) -> None:
    lifetime = {"sessionLifetimeMs": 7} if version else {}
    good = response("SaslAuthenticate", version, 2, errorCode=0, errorMessage=None, authBytes="", **lifetime)
    asked = request("SaslAuthenticate", version, 2, authBytes=_base64(b"\0alice\0secret"))
    for one, other in ((asked + b"left", good), (asked, good + b"left"), (asked, good[:-1])):
        talk = Talk().ask(metadata(1)).answer(metadata_answer(1)).ask(one).answer(other)
        assert tell(talk) == Told(["Metadata v1 #1"], [f"SaslAuthenticate v{version} #2"])
        same_login(talk)


@pytest.mark.parametrize("mechanism", ["Mé", "", "X" * 300])
def test_any_mechanism_is_told_the_same_at_both_speeds(mechanism: str) -> None:
    talk = Talk().ask(metadata(1)).answer(metadata_answer(1))
    talk.ask(request("SaslHandshake", 1, 2, mechanism=mechanism))
    talk.answer(response("SaslHandshake", 1, 2, errorCode=0, mechanisms=[mechanism]))
    told = tell(talk)
    assert (told.whole == []) == mechanism.isascii()
    assert same_login(talk)["mechanism"] == mechanism


def test_a_login_holds_from_the_last_packet_of_its_answer() -> None:
    talk = Talk(mss=9)
    logged_in(talk, 2, b"\0alice\0secret", sessionLifetimeMs=1_000)
    assert tell(talk).whole == []
    last_ns = talk.segments[-1].timestamp_ns
    assert same_login(talk)["expires_ms"] == last_ns // 1_000_000 + 1_000


def test_a_pipelined_login_that_fails_is_told_the_same_at_both_speeds() -> None:
    talk = Talk().ask(
        request("SaslHandshake", 1, 1, mechanism="PLAIN"),
        request("SaslAuthenticate", 1, 2, authBytes=_base64(b"\0alice\0wrong")),
        metadata(3),
    )
    talk.answer(
        response("SaslHandshake", 1, 1, errorCode=0, mechanisms=["PLAIN"]),
        response(
            "SaslAuthenticate", 1, 2, errorCode=58, errorMessage="no", authBytes="", sessionLifetimeMs=0
        ),
        metadata_answer(3),
    )
    assert tell(talk) == Told(["SaslHandshake v1 #1"], ["SaslAuthenticate v1 #2", "Metadata v1 #3"])
    assert same_login(talk)["outcome"] == "SASL_AUTHENTICATION_FAILED"


def test_who_logs_in_anew_is_somebody_else_from_then_on() -> None:
    talk = logged_in(Talk(), 2, b"\0alice\0secret", sessionLifetimeMs=1)
    talk.ask(metadata(3)).answer(metadata_answer(3))
    talk.ask(request("SaslHandshake", 1, 4, mechanism="PLAIN"))
    talk.answer(response("SaslHandshake", 1, 4, errorCode=0, mechanisms=["PLAIN"]))
    talk.ask(request("SaslAuthenticate", 2, 5, authBytes=_base64(b"\0bob\0secret")))
    talk.answer(
        response("SaslAuthenticate", 2, 5, errorCode=0, errorMessage=None, authBytes="", sessionLifetimeMs=0)
    )
    assert tell(talk).whole == []
    dissector = Dissector(briefs=Interest())
    found: list[object] = [event for segment in talk.segments for event in dissector.feed(segment)]
    told = [event.principal for event in found if isinstance(event, Brief)]
    assert told == [None, "alice", "alice", None, "bob"]


def test_answers_in_another_order_leave() -> None:
    talk = Talk().ask(metadata(1), metadata(2)).answer(metadata_answer(2)).answer(metadata_answer(1))
    assert tell(talk).briefs == []


def test_a_size_that_cannot_be_leaves() -> None:
    talk = Talk().ask(metadata(1)).answer(metadata_answer(1)).say(Talk().client, b"\xff\xff\xff\xff")
    assert tell(talk.ask(metadata(2)).answer(metadata_answer(2))).briefs == ["Metadata v1 #1"]


def exchanged(talk: Talk, first: int, last: int) -> Talk:
    """The talk, and behind it requests of one client with their answers."""
    for each in range(first, last + 1):
        talk.ask(metadata(each)).answer(metadata_answer(each))
    return talk


def named(first: int, last: int) -> list[str]:
    return [f"Metadata v1 #{each}" for each in range(first, last + 1)]


def test_a_connection_comes_back_when_what_was_unusual_is_over() -> None:
    talk = exchanged(Talk(), 1, 2).ask(request("Metadata", 1, 3, "another", topics=[]))
    exchanged(talk.answer(metadata_answer(3)), 4, 6).ask(metadata(7)).close()
    assert tell(talk) == Told([*named(1, 2), *named(5, 6)], [*named(3, 4), *named(7, 7)])


def test_a_connection_that_began_before_the_capture_comes_in_when_it_is_understood() -> None:
    talk = exchanged(Talk(), 1, 9)
    del talk.segments[:5]
    found = tell(talk)
    assert found.briefs[-5:] == named(4, 8)
    assert found.whole


def test_a_connection_comes_back_behind_lost_bytes() -> None:
    talk = exchanged(Talk(mss=30), 1, 20)
    del talk.segments[6]
    found = tell(talk)
    assert found.briefs[-5:] == named(16, 20)
    assert found.whole


@pytest.mark.parametrize("begin", [0, 5])
@pytest.mark.parametrize("mss", [1460, 40])
def test_whatever_is_lost_is_told_as_on_the_long_way(begin: int, mss: int) -> None:
    talk = (
        exchanged(Talk(mss=mss), 1, 3).ask(metadata(4)).ask(request("Metadata", 1, 5, "another", topics=[]))
    )
    talk.answer(metadata_answer(4), metadata_answer(5))
    exchanged(talk, 6, 12).ask(metadata(13), metadata(14)).answer(metadata_answer(13)).close()
    segments = talk.segments[begin:]
    for first in range(len(segments)):
        for second in range(first, len(segments), 3):
            talk.segments = [each for at, each in enumerate(segments) if at not in (first, second)]
            tell(talk)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_limits_hold(most: int) -> None:
    talk = Talk().ask(metadata(1), metadata(2), metadata(3)).answer(*map(metadata_answer, (1, 2, 3)))
    tell(talk, DEFAULTS._replace(pending_requests=most))
    tell(talk, DEFAULTS._replace(waiting_bytes=most * 2_100))
