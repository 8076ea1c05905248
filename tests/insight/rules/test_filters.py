"""The display filters of findings are filters."""

from __future__ import annotations

import pytest

from kdissect.capture.files import read_packets
from kdissect.exchange import Exchange
from kdissect.filter.compiled import compile_filter
from tests.dissecting import dissect
from tests.insight.judged import CAPTURES, judged

CASES = (
    *("leader-killed", "controlled-shutdown", "member-killed", "connection-churn", "client-0.10.2-on-3.9"),
    *("rolling-restart-dynamic", "commit-storm", "errors", "transactions-kafka39"),
)


@pytest.mark.parametrize("name", CASES)
def test_the_filter_of_a_finding_shows_the_exchanges_that_it_names(name: str) -> None:
    path = next(each for each in CAPTURES.rglob(f"{name}.pcap*") if each.is_file())
    events = list(dissect(iter(read_packets([path]))))
    exchanges = [each for each in events if isinstance(each, Exchange)]
    for found in judged(events).findings:
        if found.shown_by is None or not found.exchanges:
            continue
        shows = compile_filter(found.shown_by)
        shown = {each.number for each in exchanges if shows.matches(each)}
        assert shown >= set(found.exchanges), (found.key, found.shown_by)
