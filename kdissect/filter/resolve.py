"""Syntax → meaning: names become fields, words become values of their kind, and what cannot be is refused
with its place and the nearest name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import NamedTuple

from kdissect.filter import checks, paths
from kdissect.filter.checks import Check
from kdissect.filter.computed import MACROS, NOT_OFFERED
from kdissect.filter.errors import FilterError
from kdissect.filter.expression import And, Expression, Leaf, Not, Or
from kdissect.filter.field import Field, plain
from kdissect.filter.fields import by_name, names
from kdissect.filter.parts import HEADER_PREFIX, header_field
from kdissect.filter.syntax import Bare, Joined, Negated, Syntax, Word, parse
from kdissect.filter.values import OPERATORS, check_of, error_code, not_asked, presence
from kdissect.present.nearest import nearest
from kdissect.protocol import apis
from kdissect.protocol.errors import error_name

SEARCHED = ("topics", "client_id", "group", "record.key", "record.value", "record.headers")
"""Where a word alone is looked for."""
_ALIKE = 0.75
"""How near a field's name must be to a word that is looked for, to be worth a hint."""
_ROOTS = ("record", "fault", *paths.SIDES)
"""What a name with a dot can begin with, beside columns and APIs."""


class Meaning(NamedTuple):
    """An expression, and what its author should know of it."""

    expression: Expression
    hints: tuple[str, ...]


def resolve(syntax: Syntax) -> Meaning:
    """:raises FilterError: a name is not known, or a value not one of its field."""
    hints: list[str] = []
    return Meaning(_resolve(syntax, hints), tuple(dict.fromkeys(hints)))


def _resolve(syntax: Syntax, hints: list[str]) -> Expression:
    if isinstance(syntax, Joined):
        parts = tuple(_resolve(part, hints) for part in syntax.parts)
        return And(parts) if syntax.operator == "and" else Or(parts)
    if isinstance(syntax, Negated):
        return Not(_resolve(syntax.part, hints))
    if isinstance(syntax, Bare):
        return _bare(syntax.word, hints)
    field = named(syntax.field)
    if field is None:
        raise _unknown(syntax.field)
    if syntax.operator not in OPERATORS[field.kind]:
        raise syntax.at.error(not_asked(field, syntax.operator))
    return Leaf(field, check_of(field, syntax, hints))


# -- names ------------------------------------------------------------------------------------------


def named(word: Word) -> Field | None:
    """The field of a name; None where there is none.

    :raises FilterError: the path is ambiguous.
    """
    text = word.text
    field = by_name().get(plain(text))
    if field is not None:
        return field
    first, _, rest = text.partition(".")
    second, _, header = rest.partition(".")
    if header and plain(f"{first}.{second}.") == HEADER_PREFIX:
        return header_field(header)
    found = paths.places(text)
    if not found:
        return None
    try:
        return paths.field_at(text, found)
    except ValueError as error:
        raise word.error(str(error)) from None


def _unknown(word: Word) -> FilterError:
    name = plain(word.text)
    if name in map(plain, MACROS):
        return word.error(f"{word.text} stands alone: it is true or not")
    if name in NOT_OFFERED:
        return word.error(f"there is no field {word.text}: {NOT_OFFERED[name]}")
    return _wrong_step(word) or word.error(
        f"there is no field {word.text}{nearest(word.text, _known(word.text))}"
    )


def _wrong_step(word: Word) -> FilterError | None:
    """What is wrong in the path of an API's field, if one of its names is; None for other words."""
    head, *steps = word.text.split(".")
    api = paths.api_of(head) if steps else None
    if api is None:
        return None
    known = [
        *paths.SIDES,
        *(place.name.rpartition(".")[2] for side in paths.SIDES for place in paths.below(api, side)),
    ]
    plains = set(map(plain, known))
    start = word.start + len(head) + 1
    for step in steps:
        if plain(step) not in plains:
            reason = f"{apis.api_name(api)} has no field {step or 'without a name'}{nearest(step, known)}"
            return FilterError(reason, start, max(1, len(step)))
        start += len(step) + 1
    return None


def _known(text: str) -> Iterable[str]:
    """Names that a wrong one may have meant."""
    head, dot, _ = text.partition(".")
    api = paths.api_of(head) if dot else None
    if api is None:
        yield from names()
        if dot:
            tails = (f"{name[0].lower()}{name[1:]}" for name in map(apis.api_name, apis.api_keys()))
            yield from (f"{name}.{text.partition('.')[2]}" for name in tails)
        yield from paths.all_names()
        return
    for side in paths.SIDES:
        for place in paths.below(api, side):
            _, _, rest = place.name.partition(".")
            yield f"{head}.{rest}"
            yield f"{head}.{place.name.rpartition('.')[2]}"


def _bare(word: Word, hints: list[str]) -> Expression:
    """A word alone: a field's presence, a flag, or text to look for."""
    name = plain(word.text)
    if not word.quoted:
        flag = next((flag for flag in MACROS if plain(flag) == name), None)
        if flag is not None:
            return _resolve(parse(MACROS[flag][0]), [])
        if name in NOT_OFFERED:
            raise word.error(f"{word.text} is no flag: {NOT_OFFERED[name]}")
        # A field of a message is asked for by more than its last name, which may be any word.
        field = named(word) if "." in word.text else by_name().get(name)
        if field is not None:
            field = by_name()[plain(field.alone)] if field.alone else field
            return Leaf(field, presence(field))
        head = word.text.partition(".")[0]
        if "." in word.text and (head.lower() in _ROOTS or paths.api_of(head) is not None):
            raise _unknown(word)
        hints += _hint(word)
    if not word.text.strip():
        raise word.error("there is nothing to look for")
    check = Check(checks.mentions(word.text))
    return Or(tuple(Leaf(by_name()[plain(name)], check) for name in SEARCHED))


def _hint(word: Word) -> list[str]:
    """What else a word that is looked for as text may have meant."""
    text = word.text
    key = paths.api_of(text)
    if key is not None:
        return [f"{text} is looked for as text; api == {apis.api_name(key)} asks for the API"]
    code = error_code(text)
    if code is not None:
        return [f"{text} is looked for as text; error == {error_name(code)} asks for the error"]
    near = get_close_matches(text.lower(), [name for name in names() if "." not in name], 1, _ALIKE)
    return [f"{text} is looked for as text; did you mean {near[0]}?"] if near else []
