from __future__ import annotations

from pathlib import Path

import pytest

from kdissect.analysis.catalogue import STATISTICS
from kdissect.cli import main
from kdissect.cli.exit_codes import USAGE
from kdissect.help import TOPICS, page, title
from kdissect.present.help_tables import HELP_TABLES
from tests.tui.terminals import Terminal


def test_without_a_topic_every_page_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[: len(TOPICS)]] == [
        [each, *title(each).split()] for each in TOPICS
    ]


@pytest.mark.parametrize("topic", TOPICS)
def test_a_page_prints_as_markdown_where_there_is_no_terminal(
    topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["help", topic]) == 0
    assert capsys.readouterr().out == page(topic, HELP_TABLES)


def test_an_unknown_page_is_one_line_with_what_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "filtr"]) == USAGE
    assert capsys.readouterr().err == "kdissect: there is no page filtr; did you mean filter?\n"


def test_a_terminal_shows_a_page_rendered_through_the_pager(tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho paged\nexec cat\n")
    pager.chmod(0o700)
    terminal = Terminal("help", "filter", PAGER=str(pager))
    try:
        assert terminal.end() == 0
        assert b"paged" in terminal.text
        assert title("filter").encode() in terminal.text
        assert b"```" not in terminal.text
        assert b"|---" not in terminal.text
    finally:
        terminal.close()


def test_the_page_on_statistics_says_what_each_declares(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "stats"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows[1:]] == list(STATISTICS)
    for row, statistic in zip(rows[1:], STATISTICS.values(), strict=True):
        assert statistic.about in row
        assert all(f"`{grouping}`" in row for grouping in statistic.groupings)


def test_no_mark_is_left_in_a_page() -> None:
    assert not [topic for topic in TOPICS if "<!--" in page(topic) or "<!--" in page(topic, HELP_TABLES)]
