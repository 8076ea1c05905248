from __future__ import annotations

from pathlib import Path

import pytest

from kdissect.analysis.catalogue import STATISTICS
from kdissect.cli import main
from kdissect.cli.exit_codes import USAGE
from kdissect.help import TOPICS, page, title
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
    assert capsys.readouterr().out == page(topic)


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


def test_the_page_on_statistics_names_every_table() -> None:
    table = page("stats").partition("## Response times")[0]
    named = {each.partition(",")[0] for each in table.split("`")[1::2]}
    assert not STATISTICS.keys() - named
