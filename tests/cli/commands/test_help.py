from __future__ import annotations

import pytest

from kdissect.cli import main
from kdissect.cli.exit_codes import USAGE
from kdissect.help import TOPICS, page, title


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
