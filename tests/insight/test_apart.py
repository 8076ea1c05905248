"""A capture of two clusters whose groups, topics and transactional ids have the same names shows of each what
it shows alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdissect.insight.finding import Finding
from tests.insight.judged import judged_file
from tests.two_clusters import EAST, LAG, TRANSACTIONS, WEST, two_clusters

Told = tuple[str, str | None, str | None, str | None, str | None]


def told(findings: list[Finding]) -> list[Told]:
    """Findings without their clusters, each with the rule of its cause."""
    return sorted(
        (
            each.id,
            each.subject.group,
            each.subject.topic,
            each.subject.transactional_id,
            (each.because or "").partition(" ")[0],
        )
        for each in findings
    )


@pytest.mark.parametrize("capture", [LAG, TRANSACTIONS])
def test_each_cluster_shows_what_it_shows_alone(capture: Path, tmp_path: Path) -> None:
    east, west = two_clusters(tmp_path, capture)
    alone, both = judged_file(east).findings, judged_file(east, west).findings
    assert told(both) == sorted([*told(alone), *told(judged_file(west).findings)])
    named = [each for each in both if each.subject.group or each.subject.topic]
    assert named
    assert {each.subject.cluster_id for each in named} == {EAST, WEST}
    assert all(each.where.endswith(f"cluster {each.subject.cluster_id}") for each in named)
    assert len({each.key for each in both}) == len(both)


def test_no_finding_explains_one_of_another_cluster(tmp_path: Path) -> None:
    both = {each.key: each for each in judged_file(*two_clusters(tmp_path)).findings}
    for each in both.values():
        if each.because is not None and both[each.because].subject.cluster_id is not None:
            assert both[each.because].subject.cluster_id == each.subject.cluster_id
