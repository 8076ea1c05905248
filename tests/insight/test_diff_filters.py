"""The filters that show what a difference was measured on."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from kdissect.analysis.slow import Slowness
from kdissect.capture.files import read_packets
from kdissect.exchange import Exchange
from kdissect.filter.compiled import compile_filter
from kdissect.insight.diff import differences
from kdissect.insight.diff_filters import filter_of
from kdissect.insight.difference import Difference
from kdissect.insight.judge import CaptureReport
from kdissect.insight.report_data import whole_judge
from kdissect.present.options import Options
from tests.dissecting import dissect
from tests.insight.judged import CAPTURES

SIDES = CAPTURES / "basic-kafka43.pcapng", CAPTURES / "transactions-kafka39.pcapng"


@cache
def _read(path: Path) -> tuple[CaptureReport, list[Exchange]]:
    judge, exchanges = whole_judge(), []
    for event in dissect(iter(read_packets([path]))):
        judge.feed(event)
        if isinstance(event, Exchange):
            exchanges.append(event)
    return judge.report(), exchanges


@cache
def _compared() -> tuple[list[Difference], tuple[list[Exchange], ...]]:
    (before, one), (after, other) = map(_read, SIDES)
    return differences(before, after), (one, other)


def _matched(text: str, exchanges: list[Exchange]) -> int:
    asked = compile_filter(text, Options(), Slowness())
    return sum(asked.matches(each) for each in exchanges)


@pytest.mark.parametrize("path", SIDES)
def test_the_filter_of_what_was_counted_shows_as_many(path: Path) -> None:
    report, exchanges = _read(path)
    counted = [row for row in report.tables["profile"] if row["what"] == "requests"]
    assert {row["area"] for row in counted} == {"api", "broker", "client", "group"}
    for row in counted:
        text = filter_of(row["area"], row["subject"], row["what"], {row["subject"]})
        assert _matched(text, exchanges) == row["count"], text


@pytest.mark.parametrize("side", [0, 1])
def test_what_was_measured_on_a_side_is_shown_there(side: int) -> None:
    found, exchanges = _compared()
    asked = {
        each.filters[side]
        for each in found
        if each.counts[side] and (each.before, each.after)[side] and "codec" not in each.what
    }
    assert len(asked) > 20
    for text in asked - {None}:
        assert text is not None
        assert _matched(text, exchanges[side]), text


def test_a_name_that_was_drawn_by_lot_is_matched_by_its_form() -> None:
    text = filter_of("client", 'web "1".*-*', "requests")
    assert text == 'client_id matches "^web\\\\ \\"1\\"\\\\..+\\\\-.+$"'
    compile_filter(text, Options(), Slowness())


@pytest.mark.parametrize(
    ("what", "more"),
    [
        ("errors", "error_class in {fatal, retriable}"),
        ("fatal error INVALID_PRODUCER_EPOCH", 'errors == "INVALID_PRODUCER_EPOCH"'),
        ("error UNKNOWN(4711)", 'errors == "UNKNOWN(4711)"'),
        ("Produce v9", 'api == "Produce" and api_version == 9'),
        ("broker time of Fetch p99", 'api == "Fetch"'),
    ],
)
def test_the_measure_narrows_the_filter(what: str, more: str) -> None:
    text = filter_of("client", "web", what)
    assert text == f'client_id == "web" and {more}'
    compile_filter(text, Options(), Slowness())


def test_a_side_that_lacks_the_subject_has_no_filter() -> None:
    found, _ = _compared()
    gone = [each for each in found if each.verdict == "only-before" and each.area != "finding"]
    assert gone
    assert all(each.filters[1] is None and each.filters[0] is not None for each in gone)
