from __future__ import annotations

import pickle
from typing import Any

import pytest

from kdissect.capture.files import read_packets
from kdissect.dissect import Dissector, Event
from kdissect.limits import DEFAULTS
from kdissect.model import Fault
from kdissect.plain import plain_exchange
from kdissect.protocol.survey import Survey
from kdissect.session.briefs import Brief, Interest, brief_of, plain_brief, runs_of_briefs, without_briefs
from kdissect.session.quick import PairLayouts
from tests.cli.run import CAPTURES

FAULT = Fault("file", "damaged", "a text")


def events_in_brief(name: str) -> list[Event]:
    dissector = Dissector(briefs=Interest())
    events = [event for packet in read_packets([CAPTURES / name]) for event in dissector.feed(packet)]
    return [*events, *dissector.close()]


def test_events_are_parted_by_whether_they_are_in_brief() -> None:
    briefs = events_in_brief("errors.pcapng")
    others = [FAULT._replace(offset=number) for number in range(3)]
    events = [others[0], *briefs[:5], *others[1:], *briefs[5:]]
    assert without_briefs(events) == others
    parted = runs_of_briefs(events)
    assert [each for each in parted if not isinstance(each, list)] == others
    assert [each for some in parted for each in (some if isinstance(some, list) else [some])] == events


def test_where_all_are_in_brief_nothing_else_is_left() -> None:
    briefs = [event for event in events_in_brief("errors.pcapng") if isinstance(event, Brief)]
    assert briefs
    assert without_briefs(briefs) == []
    assert runs_of_briefs(briefs) == [briefs]


def _without_surveys(plain: tuple[Any, ...]) -> list[Any]:
    return [each for each in plain if not isinstance(each, Survey)]


@pytest.mark.parametrize("name", ["errors.pcapng", "basic-kafka43.pcapng", "transactions-kafka39.pcapng"])
def test_a_brief_is_the_same_in_another_process(name: str) -> None:
    events: list[Any] = list(events_in_brief(name))
    briefs = [event for event in events if isinstance(event, Brief)]
    assert briefs
    find = PairLayouts(Interest()).find
    for brief in briefs:
        assert brief.names is not None
        again = brief_of(pickle.loads(pickle.dumps(plain_brief(brief))), find, brief.names, DEFAULTS)
        assert again.is_over
        assert again.size() == brief.size()
        assert again.form.api == brief.form.api
        assert _without_surveys(plain_brief(again)) == _without_surveys(plain_brief(brief))
        for found, expected in (
            (again.request_survey, brief.request_survey),
            (again.response_survey, brief.response_survey),
        ):
            assert (found is None) == (expected is None)
            if found is not None and expected is not None:
                assert (found.error, found.mentions) == (expected.error, expected.mentions)
        assert plain_exchange(again.exchange()) == plain_exchange(brief.exchange())
        assert again.exchange().recognised == brief.exchange().recognised
        assert again.topics() == brief.topics()
