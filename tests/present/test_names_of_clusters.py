"""Groups, topics and transactional ids of one name in several clusters."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdissect.analysis.fold import Row
from kdissect.insight.report_data import whole_judge
from kdissect.present.html.report import report_page
from kdissect.present.names_of_clusters import NamesOfClusters, with_ambiguous_clusters
from kdissect.reading import read
from tests.present.reports import MADE
from tests.two_clusters import EAST, GROUP, TRANSACTIONS, WEST, two_clusters


def row(group: str | None, cluster: str | None) -> Row:
    return {"group": group, "cluster_id": cluster}


def test_a_cluster_is_named_only_where_rows_would_look_the_same() -> None:
    rows = [row("a", "x"), row("b", "x"), row("b", "y"), row("c", None), row("d", None), row("d", "y")]
    assert [each["cluster_id"] for each in with_ambiguous_clusters(rows, "group")] == [
        None,
        "x",
        "y",
        None,
        None,
        "y",
    ]
    assert with_ambiguous_clusters(
        with_ambiguous_clusters(rows, "group"), "group"
    ) == with_ambiguous_clusters(rows, "group")
    names = NamesOfClusters(rows, "group")
    assert [names.text(each) for each in rows] == ["a", "b of x", "b of y", "c", "d", "d of y"]
    assert NamesOfClusters([row(None, "x")], "group").text(row(None, "x")) == ""


@pytest.mark.parametrize("count", [1, 2])
def test_a_report_names_the_clusters_of_groups_of_one_name(count: int, tmp_path: Path) -> None:
    judge = whole_judge()
    for event in read(two_clusters(tmp_path)[:count], on_fault=judge.feed, on_connection=judge.feed):
        judge.feed(event)
    page = report_page(judge.report(), MADE)
    groups = page[page.index('<section id="groups"') :]
    groups = groups[: groups.index("</section>")]
    told = [f"{GROUP} of {cluster}" for cluster in (EAST, WEST)]
    assert [each in groups for each in told] == [count == 2] * 2
    assert ("<td>" + WEST in groups, ">cluster<" in groups) == (count == 2, count == 2)


@pytest.mark.parametrize("count", [1, 2])
def test_a_report_names_the_clusters_of_topics_and_transactions_of_one_name(
    count: int, tmp_path: Path
) -> None:
    judge = whole_judge()
    files = two_clusters(tmp_path, TRANSACTIONS)[:count]
    for event in read(files, on_fault=judge.feed, on_connection=judge.feed):
        judge.feed(event)
    report = judge.report()
    page = report_page(report, MADE)
    captions = [
        "Traffic by partition and direction",
        "From producer to consumer",
        "Producers",
        "Transactions",
        "Flows",
    ]
    for caption in captions:
        table = page[page.index(f"<caption>{caption}") :]
        table = table[: table.index("</table>")]
        assert (WEST in table, ">cluster<" in table) == (count == 2, count == 2), caption
    names = {row["transactional_id"] for row in report.tables["transactions"] if row["transactional_id"]}
    flows, lanes = (
        page[page.index(heading) :].partition("</figure>")[0]
        for heading in ("Who exchanges what with whom", "Transactions by transactional id")
    )
    assert [f" of {cluster}" in flows for cluster in (EAST, WEST)] == [count == 2] * 2
    assert names
    for name in names:
        assert [f"{name} of {cluster}" in lanes for cluster in (EAST, WEST)] == [count == 2] * 2
