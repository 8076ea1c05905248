"""``kdissect.explain``."""

from __future__ import annotations

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


def test_a_report_becomes_a_page() -> None:
    page = kdissect.explain(CAPTURES / "loss.pcapng", page=True).html()
    assert page.startswith("<!doctype html>")
    assert "loss.pcapng" in page
    with pytest.raises(ValueError, match="page=True"):
        kdissect.explain(CAPTURES / "loss.pcapng").html()
