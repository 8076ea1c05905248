"""Captures of which a part is missing, that have packets twice or out of order, or whose clock was set: they
accuse nobody of what the whole capture does not show."""

from __future__ import annotations

from functools import cache

import pytest

from kdissect.insight.finding import CRITICAL, WARNING
from tests.amount import some
from tests.analysis.lossy import LESS, SAME_BYTES, taken_away, whole
from tests.insight.judged import CAPTURES, judged

INCIDENTS = CAPTURES / "incidents"
PATHS = {path.name.partition(".pcap")[0]: path for path in sorted(INCIDENTS.glob("*.pcap*"))}
CASES = [(case, way) for case in PATHS for way in (*LESS, *SAME_BYTES)]
SHORT = (
    ("connection-churn", "requests only"),
    ("healthy", "requests only"),
    ("idle-members", "first 300 bytes"),
    ("latency-by-linger", "no first third"),
    ("member-killed", "first 300 bytes"),
    ("plaintext-client-on-tls-port", "2 % lost, 1"),
    ("unknown-topic", "seen twice"),
    ("unknown-topic", "an hour back"),
    ("rolling-restart-static", "half a minute back"),
    ("controlled-shutdown", "an hour on"),
    ("idle-members", "half a minute on"),
    ("rolling-restart-dynamic", "half a minute on"),
    ("healthy-cluster-idle", "5 s on"),
    ("healthy-cluster-idle", "2 s on"),
)
KEPT = {("plaintext-client-on-tls-port", "2 % lost, 1"): "tls-on-plaintext-port"}
"""What has to be found all the same."""


@cache
def worst_of(case: str, way: str) -> frozenset[str]:
    """Ids of what is worth a warning, or worse."""
    path = PATHS[case]
    events = whole(path) if way == "whole" else taken_away(path, way)
    return frozenset(each.id for each in judged(events).findings if each.severity in (WARNING, CRITICAL))


@pytest.mark.parametrize(("case", "way"), some(CASES, len(SHORT), *SHORT))
def test_what_is_missing_accuses_nobody(case: str, way: str) -> None:
    found = worst_of(case, way)
    assert found <= worst_of(case, "whole")
    assert KEPT.get((case, way), next(iter(found), None)) in {*found, None}


SAME = (("unknown-topic", "in another order"), ("wrong-advertised-listener", "seen twice"))


@pytest.mark.parametrize(("case", "way"), some([each for each in CASES if each[1] in SAME_BYTES], 2, *SAME))
def test_what_tells_no_less_shows_the_same(case: str, way: str) -> None:
    assert worst_of(case, way) == worst_of(case, "whole")
