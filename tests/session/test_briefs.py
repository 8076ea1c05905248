from __future__ import annotations

from kdissect.capture.files import read_packets
from kdissect.dissect import Dissector, Event
from kdissect.model import Fault
from kdissect.session.briefs import Brief, Interest, runs_of_briefs, without_briefs
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
