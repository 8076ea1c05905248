from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import kdissect.cli.jobs
import kdissect.jobs.cutting
from benchmarks.traffic import grow, multiply
from kdissect.cli.folding import FoldingWork
from kdissect.dissect import Event
from kdissect.jobs.cutting import PartCounts
from kdissect.jobs.workers import Workers
from tests.amount import LONG
from tests.cli.run import CAPTURES
from tests.jobs.same import FORMS, said, small_batches

SHORT = (0, 2, 8, 9, 15)
"""Places of the forms that every change is held against."""

PLACES = range(len(FORMS)) if LONG else SHORT


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[PartCounts]]:
    """Small files are cut in small parts; gives how each run went."""
    monkeypatch.setattr(kdissect.cli.jobs, "CUT_BYTES", 1)
    monkeypatch.setattr(kdissect.jobs.cutting, "FIRST_BYTES", 4_000)
    monkeypatch.setattr(kdissect.jobs.cutting, "PART_BYTES", 30_000)
    found: list[PartCounts] = []
    close = kdissect.cli.jobs._Sharing.close

    def noted(sharing: kdissect.cli.jobs._Sharing) -> None:
        found.append(sharing.counts)
        close(sharing)

    monkeypatch.setattr(kdissect.cli.jobs._Sharing, "close", noted)
    with small_batches(50):
        yield found


@pytest.mark.parametrize("place", PLACES)
def test_a_file_in_parts_says_what_one_process_says(place: int, counts: list[PartCounts]) -> None:
    names = ("basic-kafka43.pcapng", "loss.pcapng")
    for name in names if LONG else names[PLACES.index(place) % 2 :][:1]:
        command = (*FORMS[place], CAPTURES / name)
        alone = said(*command, "--jobs", 1)
        for jobs in (2, 3) if LONG else (2,) if name.startswith("basic") else (3,):
            assert said(*command, "--jobs", jobs) == alone
            assert counts[-1].seams >= 3
            assert counts[-1].given_up == 0


def test_the_first_part_is_done_before_any_process_begins(
    counts: list[PartCounts], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    many, fork = FoldingWork.many, Workers._fork

    def counted_here(self: FoldingWork[Any], events: Sequence[Event]) -> None:
        steps.append("here")
        many(self, events)

    def forked(self: Workers, *whose: Any) -> None:
        steps.append("forked")
        fork(self, *whose)

    monkeypatch.setattr(FoldingWork, "many", counted_here)
    monkeypatch.setattr(Workers, "_fork", forked)
    assert said("stats", "-z", "srt", CAPTURES / "basic-kafka43.pcapng", "--jobs", 2).code == 0
    assert counts[-1].seams
    assert steps == sorted(steps, key=["here", "forked"].index)
    assert len(set(steps)) == 2


def test_explain_does_too(counts: list[PartCounts]) -> None:
    command = ("explain", "--all", "-T", "ndjson", CAPTURES / "errors.pcapng")
    assert said(*command, "--jobs", 2) == said(*command, "--jobs", 1)
    assert counts[-1].seams


def test_where_one_connection_has_nearly_all_one_process_dissects_the_rest(
    counts: list[PartCounts], tmp_path: Path
) -> None:
    path = tmp_path / "skewed.pcap"
    grow(path, 900_000, 0.97)
    assert said("read", path, "--jobs", 2) == said("read", path, "--jobs", 1)
    assert counts[-1].seams < 15  # of 30


def test_columns_that_grow_are_as_wide_as_one_process_makes_them(
    counts: list[PartCounts], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kdissect.jobs.cutting, "PART_BYTES", 100_000)
    path = tmp_path / "traffic.pcap"
    multiply(path, 1_200)
    alone = said("read", path, "--jobs", 1)
    assert said("read", path, "--jobs", 3) == alone
    assert counts[-1].seams >= 6


def test_what_cannot_be_cut_is_read_as_one(counts: list[PartCounts]) -> None:
    paths = [CAPTURES / name for name in ("errors.pcapng", "loss.pcapng")]
    assert said("read", *paths, "--jobs", 2) == said("read", *paths, "--jobs", 1)
    assert counts[-1] == PartCounts()


def test_the_packets_of_what_is_shown_are_the_same(counts: list[PartCounts], tmp_path: Path) -> None:
    for jobs in (1, 2):
        ran = said(
            *("read", CAPTURES / "basic-kafka43.pcapng", "-Y", "api == Fetch", "--jobs", jobs),
            *("-w", tmp_path / f"{jobs}.pcapng"),
        )
        assert ran.code == 0
    assert (tmp_path / "1.pcapng").read_bytes() == (tmp_path / "2.pcapng").read_bytes()
