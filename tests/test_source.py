"""A single place turns the description of an input into a dissector that is fed with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import pytest

from kdissect.capture.files import read_packets
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS
from kdissect.model import CaptureError, Packet
from kdissect.source import Input, Pass, secrets_of
from tests.cli.run import CAPTURES
from tests.dissecting import dissect

BASIC = str(CAPTURES / "basic-kafka43.pcapng")


def told(events: Iterable[Sequence[Event]]) -> list[str]:
    """The comparable parts of events."""
    return [f"{type(event).__name__} {_shown(event)}" for event in chain.from_iterable(events)]


def _shown(event: Event) -> object:
    if isinstance(event, Exchange):
        return event.number, event.api, event.connection, event.topics
    return event


@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_pass_gives_what_the_dissector_gives(one_by_one: bool) -> None:
    reading = Pass(Input((BASIC,)).with_points())
    found: list[Sequence[Event]] = []
    for items in reading.items(one_by_one=one_by_one):
        found += reading.feed_all(items)
    found.append(list(reading.end()))
    assert told(found) == told([list(dissect(read_packets([BASIC])))])
    assert reading.packets == sum(isinstance(item, Packet) for item in read_packets([BASIC]))


def test_packet_by_packet_is_the_same() -> None:
    one, other = Pass(Input((BASIC,))), Pass(Input((BASIC,)))
    fed = [one.feed(item) for item in one.open()]
    fed.append(list(one.end()))
    assert told(fed) == told(other.events())


def test_names_hold_from_the_start_in_another_pass_if_they_are_asked_for() -> None:
    first = Pass(Input((BASIC,), topics={"MMMMMMMMMMMMMMMMMMMMMA": "given"}))
    assert [name for _, name, _ in first.names.order] == ["given"]
    for _ in first.events():
        pass
    known = len(first.names.order)
    assert known > 1
    assert len(first.repeat().names.order) == 1
    assert len(first.repeat(with_names=True).names.order) >= known


def test_another_pass_has_the_secrets_that_the_first_learned() -> None:
    first = Pass(Input((BASIC,)))
    for _ in first.events():
        pass
    assert first.repeat().secrets is first.secrets


def test_files_are_opened_by_who_knows_how() -> None:
    opened: list[str] = []

    def open_file(path: str) -> object:
        opened.append(path)
        return open(BASIC, "rb")

    reading = Pass(Input(("elsewhere",), open_file=open_file))  # type: ignore[arg-type]
    assert any(isinstance(event, Exchange) for event in chain.from_iterable(reading.events()))
    assert set(opened) == {"elsewhere"}


def test_what_cannot_be_read_is_told_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="absent"):
        Pass(Input((str(tmp_path / "absent"),))).open()
    with pytest.raises(CaptureError, match="no such key log"):
        secrets_of([str(tmp_path / "absent")], [], DEFAULTS)
    with pytest.raises(CaptureError, match="cannot be read"):
        secrets_of([], [str(tmp_path / "absent")], DEFAULTS)
