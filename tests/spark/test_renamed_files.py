"""Which of the names of one file counts."""

from __future__ import annotations

import pytest

from kdissect.spark.renamed_files import doubles, twins


def test_twins_differ_in_how_they_are_compressed() -> None:
    assert twins("in/a.pcap") == ["in/a.pcap.gz", "in/a.pcap.zst", "in/a.pcap.lz4"]
    assert twins("in/a.pcap.zst") == ["in/a.pcap", "in/a.pcap.gz", "in/a.pcap.lz4"]


@pytest.mark.parametrize(
    ("firsts", "known", "expected"),
    [
        ({"a": 5, "a.gz": 5}, [], {"a.gz"}),
        ({"a": 5, "a.gz": 5}, ["a"], {"a.gz"}),
        ({"a": 5, "a.gz": 5}, ["a.gz"], {"a"}),
        ({"a": 5, "a.gz": None}, ["a"], {"a.gz"}),
        ({"a": 5, "a.gz": 5, "a.zst": 5}, [], {"a.gz", "a.zst"}),
        ({"a": 5, "a.gz": 6}, ["a"], set()),
        ({"a": 5, "b.gz": 5}, ["a"], set()),
        ({"a": None, "a.gz": None}, [], set()),
        ({"a": 0, "a.gz": 0}, [], set()),  # no captures: nothing says that they are one
    ],
)
def test_one_name_of_a_file_counts(
    firsts: dict[str, int | None], known: list[str], expected: set[str]
) -> None:
    assert doubles(firsts, known) == expected
