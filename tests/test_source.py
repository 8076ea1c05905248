"""A single place turns the description of an input into a dissector that is fed with it."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path

import pytest

from kdissect.capture.files import read_packets
from kdissect.capture.keylogs import KeyLogs
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS
from kdissect.model import CaptureError, Packet
from kdissect.source import Input, Pass, secrets_of
from kdissect.tls.keylog import TlsSecrets
from tests.capture.build import pcap, record
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


def test_secrets_can_come_unless_every_file_is_pcap_and_no_key_log_grows(tmp_path: Path) -> None:
    first, second = str(tmp_path / "first.pcap"), str(tmp_path / "second.pcap.gz")
    Path(first).write_bytes(pcap([record(bytes(60))]))
    Path(second).write_bytes(gzip.compress(pcap([record(bytes(60))])))

    def may_grow(*paths: str, key_logs: KeyLogs | None = None) -> bool:
        reading = Pass(Input(paths), key_logs=key_logs)
        assert reading.secrets.may_grow
        with closing(reading):
            reading.open()
            return reading.secrets.may_grow

    assert not may_grow(first)
    assert not may_grow(second)
    assert not may_grow(first, second)
    assert may_grow(BASIC)
    assert may_grow(first, BASIC)
    assert may_grow(first, key_logs=KeyLogs(()))


def test_secrets_can_come_again_in_another_reading_with_the_same_ones(tmp_path: Path) -> None:
    path = tmp_path / "one.pcap"
    path.write_bytes(pcap([record(bytes(60))]))
    secrets = TlsSecrets()
    for each, may_grow in ((str(path), False), (BASIC, True)):
        with closing(Pass(Input((each,)), secrets)) as reading:
            reading.open()
            assert secrets.may_grow == may_grow


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
