"""Records of the metadata log: each is kept once, whoever fetches it."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis import metadata_log
from kdissect.analysis.metadata_log import Logged
from kdissect.limits import DEFAULTS


@pytest.mark.parametrize(
    ("ns", "number", "is_fresh", "counts", "is_covered"),
    [
        (10, 5, False, True, True),
        (11, 1, False, False, True),
        (9, 7, False, True, False),  # it was fetched earlier
        (10, 4, False, True, False),
        (12, 7, True, True, False),  # it had just happened
    ],
)
def test_only_a_fetch_that_tells_more_changes_a_record(
    ns: int, number: int, is_fresh: bool, counts: bool, is_covered: bool
) -> None:
    known = Logged("TopicRecord", (), 10, 5, "10.0.0.1:9092", False, True)
    assert known.covers(ns, number, is_fresh, counts) is is_covered


def test_a_fetch_that_counts_makes_the_record_count() -> None:
    known = Logged("TopicRecord", (), 10, 5, "10.0.0.1:9092", True, False)
    assert not known.covers(11, 6, False, True)
    assert known.covers(11, 6, False, False)


def test_what_is_remembered_of_records_belongs_to_the_definitions_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Others may tell other names and fields of the same bytes."""
    definitions, told = [object(), object()], ["one", "other"]
    current = 0

    def statement(_: bytes) -> tuple[str, tuple[Any, ...]]:
        return told[current], ()

    monkeypatch.setattr(metadata_log, "library", lambda: definitions[current])
    monkeypatch.setattr(metadata_log, "_statement_of", statement)
    monkeypatch.setattr(metadata_log, "_batches", lambda data, limits: statement(data))
    for expected in (0, 1, 0):
        current = expected
        assert metadata_log._known(definitions[current], b"v") == (told[expected], ())
        of_batches: Any = metadata_log._known_batches(definitions[current], b"v", DEFAULTS)
        assert of_batches == (told[expected], ())
