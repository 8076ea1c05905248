from __future__ import annotations

import pytest

from kdissect.settings.key_names import clash, key_name


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("a", "a"),
        ("A", "A"),
        ("?", "question_mark"),
        ("\\", "backslash"),
        ("'", "apostrophe"),
        (",", "comma"),
        ("-", "minus"),
        ("_", "underscore"),
        ("space", "space"),
        ("PgUp", "pageup"),
        ("esc", "escape"),
        ("F5", "f5"),
        ("ctrl+t", "ctrl+t"),
        ("ctrl-T", "ctrl+t"),
        ("ctrl--", "ctrl+minus"),
        ("shift-tab", "shift+tab"),
        ("alt-ctrl-x", "ctrl+alt+x"),
        ("f25", None),
        ("hyper-x", None),
        ("ctrl-ctrl-x", None),
        ("ctrl-", None),
        ("\x1b", None),
        ("enterr", None),
    ],
)
def test_names_of_keys(key: str, name: str | None) -> None:
    assert key_name(key) == name


def test_no_two_actions_answer_the_same_key() -> None:
    assert clash({}) is None
    assert clash({"save": "e"}) == ("save", "next-error", "e")
    assert clash({"save": "j"}) == ("save", "down", "j")
    assert clash({"save": "e", "next-error": "w"}) is None
