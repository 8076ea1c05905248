"""No byte goes astray: of every direction of every connection, frames, gaps and what was skipped add up to
what the stream is long, each byte once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

import pytest

from kdissect.capture.files import read_packets
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Chunk, Direction, Frame, Gap, Skipped
from kdissect.protocol.framing import Event, Framer, Witness
from kdissect.session import conversation
from tests.lab import CASES, Case, Dissected, dissected
from tests.shared import SHARED, requires_shared, shared

TCP_SHAPES = sorted(path.name for path in (SHARED / "testdata/tcp").glob("*.pcap")) if SHARED else []


class Account(NamedTuple):
    """What went into one Framer and what came out: ranges of the stream."""

    direction: Direction
    given: list[tuple[int, int]]
    captured: list[int]
    """Bytes of the chunks."""
    told: list[tuple[int, int]]


class WatchedFramer(Framer):
    """A Framer that keeps account of itself."""

    accounts: ClassVar[list[Account]] = []

    def __init__(self, direction: Direction, limits: Limits = DEFAULTS, trusted: bool = True) -> None:
        super().__init__(direction, limits, trusted)
        self.account = Account(direction, [], [], [])
        self.accounts.append(self.account)

    def feed(self, piece: Chunk | Gap, witness: Witness) -> Sequence[Event]:
        length = len(piece.data) if isinstance(piece, Chunk) else piece.length
        self.account.given.append((piece.offset, piece.offset + length))
        if isinstance(piece, Chunk):
            self.account.captured.append(length)
        return self._note(super().feed(piece, witness))

    def close(self, witness: Witness) -> Sequence[Event]:
        return self._note(super().close(witness))

    def _note(self, events: Sequence[Event]) -> Sequence[Event]:
        for event in events:
            if isinstance(event, Frame):
                self.account.told.append((event.offset, event.offset + 4 + len(event.payload)))
            elif isinstance(event, Gap | Skipped):
                self.account.told.append((event.offset, event.offset + event.length))
        return events


def watched(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Dissected, list[Account]]:
    """Dissect a capture with the books open."""
    accounts: list[Account] = []
    monkeypatch.setattr(WatchedFramer, "accounts", accounts)
    monkeypatch.setattr(conversation, "Framer", WatchedFramer)
    return dissected(read_packets([path])), accounts


def check(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, accounts = watched(path, monkeypatch)
    kafka = [c for c in found.connections if c.protocol == "kafka"]
    assert len(accounts) == 2 * len(kafka)
    for account in accounts:
        assert_joined(account.given)
        assert_joined(sorted(account.told))
        assert sum(e - b for b, e in account.told) == sum(e - b for b, e in account.given)
    captured = {d: sum(sum(a.captured) for a in accounts if a.direction is d) for d in Direction}
    assert captured[Direction.TO_BROKER] == sum(c.bytes_to_broker for c in kafka)
    assert captured[Direction.FROM_BROKER] == sum(c.bytes_from_broker for c in kafka)
    for other in found.connections:
        if other.protocol != "kafka":
            assert other.skipped_bytes == other.bytes_to_broker + other.bytes_from_broker


def assert_joined(ranges: list[tuple[int, int]]) -> None:
    """Each range begins where the one before it ends."""
    position = 0
    for begin, end in ranges:
        assert begin == position
        position = end


@pytest.mark.parametrize("name", CASES)
def test_every_byte_of_a_lab_capture_is_accounted_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(Case(name).capture, monkeypatch)


@requires_shared
@pytest.mark.parametrize("name", TCP_SHAPES)
def test_every_byte_is_accounted_for_in_every_shape_of_tcp(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(shared("testdata/tcp") / name, monkeypatch)
