"""What is written around the moments that matter."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdissect.capture.reader import Interface
from kdissect.live.spool import SECOND
from kdissect.live.triggers import CaptureTrigger
from kdissect.model import Packet, Secrets
from tests.live.test_spool import packets_of


def packet(second: int, size: int = 1) -> Packet:
    return Packet(second, second * SECOND, 1, b"%02d" % second * size, 2, 0, ())


def run(folder: Path, hits: set[int], seconds: range, before: int = 3, after: int = 2) -> list[list[int]]:
    """A packet a second; the seconds that each file has."""
    began: list[str] = []
    trigger = CaptureTrigger(
        str(folder / "out.pcapng"), [Interface(1)], before * SECOND, after * SECOND, began.append
    )
    for second in seconds:
        trigger.packet(packet(second))
        if second in hits:
            trigger.hit()
    trigger.close()
    assert trigger.hits == len(hits)
    assert trigger.files == len(began)
    return [[int(data) for data in packets_of(Path(path))] for path in began]


def test_a_file_has_what_came_before_and_after(tmp_path: Path) -> None:
    assert run(tmp_path, {10}, range(20)) == [[7, 8, 9, 10, 11, 12]]


def test_hits_whose_times_touch_share_a_file(tmp_path: Path) -> None:
    assert run(tmp_path, {10, 12}, range(20)) == [[7, 8, 9, 10, 11, 12, 13, 14]]


def test_hits_far_apart_have_a_file_each_and_no_packet_is_in_two(tmp_path: Path) -> None:
    assert run(tmp_path, {5, 9}, range(20)) == [[2, 3, 4, 5, 6, 7], [8, 9, 10, 11]]


def test_without_a_hit_nothing_is_written(tmp_path: Path) -> None:
    assert run(tmp_path, set(), range(20)) == []
    assert list(tmp_path.iterdir()) == []


def test_a_hit_at_the_end_is_whole(tmp_path: Path) -> None:
    assert run(tmp_path, {19}, range(20)) == [[16, 17, 18, 19]]


@pytest.mark.parametrize("seconds", [range(2_000), range(1)])
def test_memory_is_bounded_by_time(tmp_path: Path, seconds: range) -> None:
    trigger = CaptureTrigger(str(tmp_path / "x"), [], 5 * SECOND, SECOND, lambda _: None)
    for second in seconds:
        trigger.packet(packet(second))
    assert trigger.kept_bytes <= 6 * 210


def test_memory_is_bounded_by_bytes(tmp_path: Path) -> None:
    trigger = CaptureTrigger(
        str(tmp_path / "x"), [], 1_000 * SECOND, SECOND, lambda _: None, most_bytes=10_000
    )
    for second in range(99):
        trigger.packet(packet(second, 500))
        assert trigger.kept_bytes <= 10_000
    trigger.packet(Packet(1, 99 * SECOND, 1, bytes(20_000), 1, 0, ()))
    assert trigger.kept_bytes == 0


def test_captures_are_for_their_owner_only(tmp_path: Path) -> None:
    run(tmp_path, {5}, range(10))
    assert [path.stat().st_mode & 0o777 for path in tmp_path.iterdir()] == [0o600]


def test_secrets_are_not_packets(tmp_path: Path) -> None:
    trigger = CaptureTrigger(str(tmp_path / "x"), [], SECOND, SECOND, lambda _: None)
    trigger.packet(Secrets(1, b"x"))
    assert trigger.kept_bytes == 0
