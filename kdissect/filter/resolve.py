"""Syntax → meaning: names become fields, words become values of their kind. Errors have the position and the
nearest name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from kdissect.filter import checks, pairs, paths, wireshark
from kdissect.filter.brackets import steps_of
from kdissect.filter.checks import Check
from kdissect.filter.columns import BOTH_ENDS
from kdissect.filter.computed import MACROS, NOT_OFFERED, OF_FINDINGS, SLOW
from kdissect.filter.decoded import asked_for, decoded_field, is_decoded
from kdissect.filter.errors import FilterError
from kdissect.filter.expression import And, Expression, Leaf, Not, Or, Pair
from kdissect.filter.field import FieldKind, FilterField, plain
from kdissect.filter.fields import by_name, names
from kdissect.filter.parts import HEADER_PREFIX, header_field
from kdissect.filter.reach import field_at, parts_of
from kdissect.filter.syntax import Bare, ComparedField, Joined, Negated, Syntax, Word, parse
from kdissect.filter.values import OPERATORS as VALUE_OPERATORS
from kdissect.filter.values import check_of, error_code, not_asked, presence
from kdissect.present.nearest import nearest
from kdissect.protocol import apis
from kdissect.protocol.errors import error_name

SEARCHED = ("topics", "client_id", "groups", "record.key", "record.value", "record.headers")
"""The fields in which a word alone is searched."""
_ALIKE = 0.75
"""How similar a searched word and a field's name must be for a hint."""
_ROOTS = ("record", "fault", *paths.SIDES)
"""The first steps of a name with a dot, besides columns and APIs."""


class Meaning(NamedTuple):
    """An expression, and the hints for its author."""

    expression: Expression
    hints: tuple[str, ...]


def resolve(syntax: Syntax, knows_slow: bool = True, knows_findings: bool = True) -> Meaning:
    """:param knows_slow: whether ``slow`` can be decided.
    :param knows_findings: whether findings are known.
    :raises FilterError: a name is unknown, or a word is no value of its field.
    """
    hints: list[str] = []
    meaning = Meaning(_resolve(syntax, hints), tuple(dict.fromkeys(hints)))
    refused = {} if knows_slow else {SLOW: _NO_SLOW}
    if not knows_findings:
        refused |= dict.fromkeys(OF_FINDINGS, _NO_FINDINGS)
    if refused:
        _refuse(syntax, refused)
    return meaning


_NO_SLOW = "slow is not known here; give a limit, as in latency > 500ms"
_NO_FINDINGS = "findings are not known here; kdissect explain, read and stats know them for files"


def _resolve(syntax: Syntax, hints: list[str]) -> Expression:
    if isinstance(syntax, Joined):
        parts = tuple(_resolve(part, hints) for part in syntax.parts)
        return And(parts) if syntax.operator == "and" else Or(parts)
    if isinstance(syntax, Negated):
        return Not(_resolve(syntax.part, hints))
    if isinstance(syntax, Bare):
        return _bare(syntax.word, hints)
    return _compared(syntax, hints)


def _refuse(syntax: Syntax, refused: Mapping[str, str]) -> None:
    """Raise an error if a field is used that cannot be decided.

    :param refused: the reason, by the name of the field.
    """
    if isinstance(syntax, Joined):
        for part in syntax.parts:
            _refuse(part, refused)
    elif isinstance(syntax, Negated):
        _refuse(syntax.part, refused)
    else:
        word = syntax.word if isinstance(syntax, Bare) else syntax.field
        why = None if word.quoted else refused.get(plain(word.text))
        if why is not None:
            raise word.error(why)


# -- comparisons ------------------------------------------------------------------------------------


def _compared(syntax: ComparedField, hints: list[str]) -> Expression:
    field = named(syntax.field)
    if field is None:
        raise _unknown(syntax.field)
    if is_decoded(field):
        field = asked_for(field, syntax)
    if syntax.operator not in VALUE_OPERATORS[field.kind]:
        raise syntax.at.error(not_asked(field, syntax.operator))
    if field.name in BOTH_ENDS:
        return _of_both_ends(syntax, BOTH_ENDS[field.name], hints)
    (word, high), *others = syntax.items
    is_alone = word.quoted or is_decoded(field)
    if is_alone or high is not None or others or syntax.operator not in pairs.OPERATORS:
        return Leaf(field, check_of(field, syntax, hints))
    if field.kind in (FieldKind.TEXT, FieldKind.BYTES):
        other = _text_field(word)
        if other is None:
            return Leaf(field, check_of(field, syntax, hints))
        if "." not in word.text:
            hints.append(f'{word.text} means the field of that name; "{word.text}" in quotes means the text')
        return _pair(field, syntax, other)
    try:
        return Leaf(field, check_of(field, syntax, hints))
    except FilterError as error:
        other = named(word) if word.text[:1].isalpha() else None
        if other is not None:
            return _pair(field, syntax, other)
        raise (error if field.kind is FieldKind.ADDRESS else _nearer(error, word, field.kind)) from None


def _of_both_ends(syntax: ComparedField, names: tuple[str, ...], hints: list[str]) -> Expression:
    """The same comparison of each end's field. An index has columns of these fields."""
    parts = [_compared(syntax._replace(field=syntax.field._replace(text=name)), hints) for name in names]
    every = any(
        part.check.every if isinstance(part, Leaf) else part.comparison.every
        for part in parts
        if isinstance(part, (Leaf, Pair))
    )
    return And(tuple(parts)) if every else Or(tuple(parts))


def _pair(field: FilterField, syntax: ComparedField, other: FilterField) -> Pair:
    refused = pairs.refusal(field, other)
    if refused is not None:
        raise syntax.items[0][0].error(refused)
    return Pair(field, other, pairs.comparison(field, syntax.operator, other, syntax.every))


def _text_field(word: Word) -> FilterField | None:
    """The field that a word after a field of text means. Any text may stand there. So a word is a name only
    if it is one of kdissect's own, or a path that begins with an API or a side."""
    head, dot, _ = word.text.partition(".")
    is_path = dot and (head.lower() in _ROOTS or paths.api_of(head) is not None)
    if not is_path and plain(word.text.partition("[")[0]) not in by_name():
        return None
    found = named(word)
    return found if found is not None and found.kind in (FieldKind.TEXT, FieldKind.BYTES) else None


def _nearer(error: FilterError, word: Word, kind: FieldKind) -> FilterError:
    """An error about a value. If the word looks like the name of a field of that kind, the error suggests
    that name."""
    wrong = _wrong_step(word)
    if wrong is not None:
        return wrong
    if error.position != word.start or "did you mean" in error.reason or not word.text[:1].isalpha():
        return error
    fields = by_name()
    alike = (name for name in names() if plain(name) in fields and fields[plain(name)].kind is kind)
    near = nearest(word.text, alike)
    return FilterError(error.reason + near, error.position, error.length)


# -- names ------------------------------------------------------------------------------------------


def named(word: Word) -> FilterField | None:
    """The field of a name; None if there is no such field.

    :raises FilterError: the path is ambiguous, or the brackets are wrong.
    """
    text = word.text
    steps = steps_of(word) if "[" in text else []
    name = ".".join(step.name for step in steps) or text
    own = by_name().get(plain(name)) or _header_field(name) or decoded_field(name) or wireshark.field_of(name)
    try:
        if own is not None:
            return own if not steps else parts_of(own, text, steps)
        found = paths.places(name)
        return field_at(text, found, steps) if found else None
    except ValueError as error:
        raise word.error(str(error)) from None


def field_named(name: str) -> FilterField:
    """The field of a name that is used outside of a filter.

    :raises FilterError: there is no such field, or the path is ambiguous; the text names the nearest.
    """
    word = Word(name, name, False, 0, len(name))
    found = named(word)
    if found is None:
        raise _unknown(word)
    return found


def _header_field(name: str) -> FilterField | None:
    first, _, rest = name.partition(".")
    second, _, header = rest.partition(".")
    return header_field(header) if header and plain(f"{first}.{second}.") == HEADER_PREFIX else None


def _unknown(word: Word) -> FilterError:
    name = plain(word.text)
    theirs = wireshark.known(word.text)
    if isinstance(theirs, wireshark.Refused):
        return word.error(f"{word.text} is Wireshark's: {theirs.why}")
    if name in map(plain, MACROS) or isinstance(theirs, wireshark.Means):
        return word.error(f"{word.text} is true or false by itself and takes no value")
    if name in NOT_OFFERED:
        return word.error(f"there is no field {word.text}: {NOT_OFFERED[name]}")
    return _wrong_step(word) or word.error(
        f"there is no field {word.text}{nearest(word.text, _known(word.text))}"
    )


def _wrong_step(word: Word) -> FilterError | None:
    """The error of a path that begins with an API and has a wrong name; None for other words."""
    head, *steps = word.text.split(".")
    api = paths.api_of(head) if steps else None
    if api is None:
        return None
    known = [
        *paths.SIDES,
        paths.HEADER_STEP,
        paths.BODY_STEP,
        *(twig.name for side in paths.SIDES for twig in paths.header_tree(side).values()),
        *(place.name.rpartition(".")[2] for side in paths.SIDES for place in paths.below(api, side)),
    ]
    plains = {*map(plain, known), *paths.old_names(api)}
    start = word.start + len(head) + 1
    for text in steps:
        step = text.partition("[")[0]
        if plain(step) not in plains:
            reason = f"{apis.api_name(api)} has no field {step or 'without a name'}{nearest(step, known)}"
            return FilterError(reason, start, max(1, len(step)))
        start += len(text) + 1
    return None


def _known(text: str) -> Iterable[str]:
    """The names that a wrong name may have meant."""
    head, dot, _ = text.partition(".")
    api = paths.api_of(head) if dot else None
    if dot and plain(f"{head}.") == wireshark.PREFIX:
        yield from (f"{wireshark.PREFIX}{name}" for name in wireshark.NAMES)
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
    """A word alone: a field's presence, a flag, or text to search."""
    name = plain(word.text)
    if not word.quoted:
        flag = next((flag for flag in MACROS if plain(flag) == name), None)
        if flag is not None:
            return _resolve(parse(MACROS[flag][0]), [])
        theirs = wireshark.known(word.text)
        if isinstance(theirs, wireshark.Means):
            return _resolve(parse(theirs.filter), [])
        if isinstance(theirs, wireshark.Refused):
            raise _unknown(word)
        if name in NOT_OFFERED:
            raise word.error(f"{word.text} is not a flag: {NOT_OFFERED[name]}")
        # The last name of a message's field may be any word: alone it is searched as text.
        whole = "." in word.text or plain(word.text.partition("[")[0]) in by_name()
        field = named(word) if whole else None
        if field is not None:
            field = by_name()[plain(field.alone)] if field.alone else field
            return Leaf(field, presence(field))
        head = word.text.partition(".")[0]
        is_path = head.lower() in _ROOTS or paths.api_of(head) is not None
        if "." in word.text and (is_path or plain(f"{head}.") == wireshark.PREFIX):
            raise _unknown(word)
        hints += _hint(word)
    if not word.text.strip():
        raise word.error("the text to search for is empty")
    check = Check(checks.mentions(word.text))
    return Or(tuple(Leaf(by_name()[plain(name)], check) for name in SEARCHED))


def _hint(word: Word) -> list[str]:
    """Hints about a word that is searched as text but may have meant something else."""
    text = word.text
    key = paths.api_of(text)
    if key is not None:
        return [f"{text} is searched as text; api == {apis.api_name(key)} selects the API"]
    code = error_code(text)
    if code is not None:
        return [f"{text} is searched as text; error == {error_name(code)} selects the error"]
    near = get_close_matches(text.lower(), [name for name in names() if "." not in name], 1, _ALIKE)
    return [f"{text} is searched as text; did you mean {near[0]}?"] if near else []
