"""``kdissect.explain``."""

from __future__ import annotations

import re
from typing import Any

import pytest

import kdissect
from tests.cli.run import CAPTURES


def test_findings_and_tables() -> None:
    report = kdissect.explain(CAPTURES / "loss.pcapng", tables=("srt", "srt,broker"))
    (gaps,) = [each for each in report.findings if each.id == "capture-gaps"]
    assert isinstance(gaps, kdissect.Finding)
    assert gaps.connections == (2, 3, 14)
    assert report.context.exchanges == 71
    assert list(report.tables) == ["srt", "srt,broker"]
    assert report.tables["srt"]


def test_rules_can_be_left_out() -> None:
    report = kdissect.explain([CAPTURES / "midstream.pcapng"], ignore=("mid-*",))
    assert "mid-stream" not in {each.id for each in report.findings}


def test_what_cannot_be_read_or_counted() -> None:
    with pytest.raises(kdissect.CaptureError):
        kdissect.explain("nothing-there.pcap")
    with pytest.raises(LookupError):
        kdissect.explain(CAPTURES / "loss.pcapng", tables=("nothing",))


@pytest.mark.parametrize(
    ("given", "kind", "told"),
    [
        ({"thresholds": {"tiny-batch": {"records": 3}}}, LookupError, "did you mean tiny-batches?"),
        ({"thresholds": {"tiny-*": {"records": 3}}}, LookupError, "there is no rule 'tiny-*'"),
        ({"thresholds": {"tiny-batches": {"record": 3}}}, LookupError, "did you mean records?"),
        (
            {"thresholds": {"tiny-batches": {"records": 0}}},
            ValueError,
            "records of tiny-batches must be above 0",
        ),
        ({"ignore": ["mid-strem"]}, LookupError, "did you mean mid-stream?"),
        ({"ignore": ["x-*"]}, LookupError, "there is no rule 'x-*'"),
        ({"tables": ["rebalancs"]}, LookupError, "did you mean rebalances?"),
    ],
)
def test_what_is_misspelt_is_told(given: dict[str, Any], kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=re.escape(told)):
        kdissect.explain(CAPTURES / "loss.pcapng", **given)


def test_a_report_becomes_a_page() -> None:
    page = kdissect.explain(CAPTURES / "loss.pcapng", page=True).html()
    assert page.startswith("<!doctype html>")
    assert "loss.pcapng" in page
    with pytest.raises(ValueError, match="page=True"):
        kdissect.explain(CAPTURES / "loss.pcapng").html()
