from __future__ import annotations

from pathlib import Path

import pytest

import kdissect.help
from kdissect.help import TOPICS, page, title

FOLDER = Path(kdissect.help.__file__).parent


def test_every_page_has_a_topic() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} == set(TOPICS)


@pytest.mark.parametrize("topic", TOPICS)
def test_a_page_begins_with_its_title_and_has_neither_marks_nor_pictures(topic: str) -> None:
    text = page(topic)
    assert text.startswith(f"# {title(topic)}\n\n")
    assert "<!--" not in text
    assert "](../" not in text


def test_an_unknown_page_is_a_lookup_error() -> None:
    with pytest.raises(LookupError):
        page("../secrets")
