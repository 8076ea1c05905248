"""The short way of a connection's frames: what it takes, what it leaves, and that the result is the same."""

from __future__ import annotations

from dataclasses import dataclass

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
        request("SaslHandshake", 1, 2, mechanism="PLAIN"),
        metadata(1),
        b"\0\3",
        b"\0\3\0\x63\0\0\0\2\0\4test",
    ],
    ids=("client", "nobody", "not-ascii", "login", "same-id", "short", "unknown-version"),
)
def test_what_is_not_ordinary_leaves_with_what_waits(strange: bytes) -> None:
    talk = Talk().ask(metadata(7)).answer(metadata_answer(7)).ask(metadata(1)).ask(strange)
    talk.answer(metadata_answer(1)).ask(metadata(9)).answer(metadata_answer(9))
    assert tell(talk).briefs == ["Metadata v1 #1"]


def test_requests_of_one_segment_keep_their_numbers_where_the_last_of_them_leaves() -> None:
    login = request("SaslHandshake", 1, 3, mechanism="PLAIN")
    talk = Talk().ask(metadata(1), metadata(2), login).answer(metadata_answer(1), metadata_answer(2))
    assert tell(talk) == Told([], ["Metadata v1 #1", "Metadata v1 #2", "SaslHandshake v1 #3"])


def test_answers_in_another_order_leave() -> None:
    talk = Talk().ask(metadata(1), metadata(2)).answer(metadata_answer(2)).answer(metadata_answer(1))
    assert tell(talk).briefs == []


def test_a_size_that_cannot_be_leaves() -> None:
    talk = Talk().ask(metadata(1)).answer(metadata_answer(1)).say(Talk().client, b"\xff\xff\xff\xff")
    assert tell(talk.ask(metadata(2)).answer(metadata_answer(2))).briefs == ["Metadata v1 #1"]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_limits_hold(most: int) -> None:
    talk = Talk().ask(metadata(1), metadata(2), metadata(3)).answer(*map(metadata_answer, (1, 2, 3)))
    tell(talk, DEFAULTS._replace(pending_requests=most))
    tell(talk, DEFAULTS._replace(waiting_bytes=most * 2_100))
