"""The names of keys: from key maps of people → in Textual; and keys that clash.

Nothing here imports Textual: the command line reads key maps too.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping

from kdissect.settings.actions import actions_of
from kdissect.settings.places import PAGES, PANES

_NAMED = {
    *("up", "down", "left", "right", "home", "end", "pageup", "pagedown", "insert", "delete", "backspace"),
    *("tab", "enter", "escape", "space", *(f"f{number}" for number in range(1, 25))),
}
_MODIFIERS = ("ctrl", "alt", "shift")
_OTHER_NAMES = {"esc": "escape", "return": "enter", "del": "delete", "pgup": "pageup", "pgdn": "pagedown"}
_TEXTUALS = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}
"""Names of characters that are different in Textual."""


def key_name(key: str) -> str | None:
    """Textual's name for a key: a character, ``space``, ``pageup``, ``f5``, ``ctrl+t`` (or ``ctrl-t``); None
    if there is no such key."""
    *modifiers, last = [key] if len(key) == 1 else _parts(key)
    modifiers = [each.lower() for each in modifiers]
    if len(last) == 1:
        name = _character(last.lower() if modifiers else last)
    else:
        name = _OTHER_NAMES.get(last.lower(), last.lower())
        name = name if name in _NAMED else None
    if name is None or not set(modifiers) <= set(_MODIFIERS) or len(set(modifiers)) < len(modifiers):
        return None
    return "+".join([*sorted(modifiers, key=_MODIFIERS.index), name])


def _parts(key: str) -> list[str]:
    """``ctrl-x`` → ``ctrl``, ``x``; the last part may be ``-`` or ``+`` itself."""
    head, last = key[:-1], key[-1:]
    if head.endswith(("+", "-")):
        return [*head[:-1].replace("-", "+").split("+"), last]
    return key.replace("-", "+").split("+")


def _character(character: str) -> str | None:
    if not character.isprintable():
        return None
    if character.isalnum():
        return character
    name = unicodedata.name(character, "").lower().replace("-", "_").replace(" ", "_")
    return _TEXTUALS.get(name, name) or None


def key_names(keys: str) -> list[str]:
    """The names of keys in a text, separated by blanks. Words that are not names of keys are left out."""
    return [name for name in map(key_name, keys.split()) if name is not None]


def clash(keymap: Mapping[str, str]) -> tuple[str, str, str] | None:
    """Two actions that would have the same key: one of the key map, the other, and the key."""
    for places in _together():
        owners: dict[str, str] = {}
        actions = [action for place in places for action in actions_of(place)]
        for action in sorted(actions, key=lambda each: each.id in keymap):
            for key in key_names(keymap.get(action.id, action.keys)):
                if owners.setdefault(key, action.id) != action.id:
                    return action.id, owners[key], key
    return None


def _together() -> Iterator[tuple[str, ...]]:
    """Groups of places whose keys work at the same time."""
    for page in PAGES:
        for pane in PANES:
            yield ("everywhere", "page", page, pane)
