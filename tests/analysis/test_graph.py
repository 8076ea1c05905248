"""The statistic ``graph``."""

from __future__ import annotations

from tests.analysis.folds import rows_of


def edges(case: str) -> set[tuple[str, str, str]]:
    return {(row["from"], row["relation"], row["to"]) for row in rows_of("graph", case)}


def test_who_does_what_with_what() -> None:
    found = edges("cluster43-combined")
    assert ("producer-lz4", "produces", "cluster43-combined") in found
    assert ("share0", "fetches", "cluster43-combined-s") in found
    assert ("share0", "member-of", "cluster43-combined-s-g") in found
    assert ("cluster43-combined-group", "commits", "cluster43-combined") in found
    assert ("2", "replicates", "cluster43-combined") in found
    assert ("cluster-admin", "administers", "cluster43-combined-r") in found


def test_what_is_sent_and_fetched_is_counted() -> None:
    topics = [row for row in rows_of("topics", "java43-basic") if row["direction"] == "produce"]
    produced = [row for row in rows_of("graph", "java43-basic") if row["relation"] == "produces"]
    assert sum(row["records"] for row in produced) == sum(row["records"] for row in topics) > 0


def test_how_a_client_logged_in_is_told() -> None:
    (row, *_) = rows_of("graph", "sasl-scram-512-java")
    assert (row["authenticated"], row["encrypted"]) == ("SCRAM-SHA-512", False)
    assert row["principal"]
