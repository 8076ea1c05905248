"""Completions at the cursor of a filter that is being written.

The grammar decides what may follow: lark's interactive parser lists the terminals that it would accept. Names
come from the fields, and values from the field before the operator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from kdissect.durations import DURATIONS
from kdissect.filter import paths, wireshark
from kdissect.filter.computed import MACROS
from kdissect.filter.decoded import PREFIXES
from kdissect.filter.errors import FilterError
from kdissect.filter.field import FieldKind, FilterField, plain
from kdissect.filter.fields import own_fields
from kdissect.filter.parts import HEADER_PREFIX
from kdissect.filter.resolve import named
from kdissect.filter.syntax import LONGEST, SPELLINGS, Word, accepted_after, parser
from kdissect.filter.units import SIZES
from kdissect.filter.values import OPERATORS
from kdissect.message import SASL_TOKEN
from kdissect.protocol import apis
from kdissect.protocol.errors import error_names

MOST = 200
"""The most completions given at a time."""
_SHORTEST = 3
"""The number of typed characters after which names of fields without their path are offered too."""

_UNDER_CURSOR = re.compile(r"""(?:[^\s(){},"'=<>!&|~.]|(?<!\.)\.(?!\.))*$""")
_QUOTES = ('"', "'")
_DIGITS = re.compile(r"-?\d+(\.\d+)?")


class Completion(NamedTuple):
    """Text to put in place of ``filter[start:end]``."""

    text: str
    start: int
    end: int
    meaning: str


def complete(
    text: str, cursor: int | None = None, inside: Mapping[str, str] | None = None
) -> list[Completion]:
    """The completions of the word at the cursor, or of the empty place at the cursor; the likeliest first.
    Empty if the text cannot be continued.

    :param inside: names inside decoded keys and values (``customer.id``), with their types.
    """
    cursor = len(text) if cursor is None else max(0, min(cursor, len(text)))
    if len(text) > LONGEST:
        return []
    start = _start(text[:cursor])
    begun = text[start:cursor]
    accepted = accepted_after(text[:start])
    if not accepted:
        return []
    quote = begun[:1] if begun[:1] in _QUOTES else ""
    wanted = plain(begun.removeprefix(quote))
    out: dict[str, str] = {}
    for offered, meaning in chain(_offers(text[:start], begun, accepted), _inside(begun, inside or {})):
        word = offered.strip('"')
        if quote:
            offered = f"{quote}{word}{quote}"
        if plain(word).startswith(wanted) and offered != begun:
            out.setdefault(offered, meaning)
            if len(out) == MOST:
                break
    return [Completion(offered, start, cursor, meaning) for offered, meaning in out.items()]


def _inside(begun: str, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for prefix in PREFIXES:
        if begun.lower().startswith(prefix):
            yield from ((f"{prefix}{name}", meaning) for name, meaning in names.items())


def _start(before: str) -> int:
    """The start of the word or string that ends at the cursor."""
    from lark.exceptions import UnexpectedCharacters

    try:
        for _ in parser().lex(before):
            pass
    except UnexpectedCharacters as error:
        position = int(error.pos_in_stream or 0)
        if before[position] in _QUOTES:
            return position
    found = _UNDER_CURSOR.search(before)
    assert found is not None
    return found.start()


def _offers(before: str, begun: str, accepted: set[str]) -> Iterator[tuple[str, str]]:
    field = _field_before(before)
    if field is not None:
        yield from _values(field, begun)
        return
    last = _last_word(before)
    if last is not None and "OPERATOR" in accepted:
        yield from ((operator, "") for operator in OPERATORS[last.kind])
        if "in" in OPERATORS[last.kind]:
            yield "not in", ""
    elif begun[:1] in _QUOTES and begun:
        return
    elif "LPAR" in accepted or accepted == {"WORD"}:
        yield from _names(begun)
        if "LPAR" in accepted:
            yield from (("not", ""), ("any", "any value of a field"), ("all", "every value of a field"))
    elif "IN" in accepted and "OPERATOR" not in accepted:
        yield "in", ""
    for terminal in ("AND", "OR", "LPAR", "RPAR", "LBRACE", "RBRACE", "COMMA", "RANGE"):
        if terminal in accepted:
            yield SPELLINGS[terminal], ""


# -- where the cursor is ----------------------------------------------------------------------------


def _tokens(before: str) -> list[Any]:
    return list(parser().lex(before))


def _field_before(before: str) -> FilterField | None:
    """The field whose value must follow this text; None if no value can follow."""
    tokens = _tokens(before)
    if tokens and tokens[-1].type in ("LBRACE", "COMMA", "RANGE"):
        at = len(tokens) - 1
        while at >= 0 and tokens[at].type != "IN":
            at -= 1
        tokens = tokens[: at + 1]
    if not tokens or tokens[-1].type not in ("OPERATOR", "CONTAINS", "MATCHES", "IN"):
        return None
    if tokens[-1].type == "IN" and before.rstrip()[-1:] not in ("{", ",", "."):
        return None
    while tokens and tokens[-1].type != "WORD":
        tokens.pop()
    return _field(tokens[-1]) if tokens else None


def _last_word(before: str) -> FilterField | None:
    """The field that is the last word of this text."""
    tokens = _tokens(before)
    return _field(tokens[-1]) if tokens and tokens[-1].type == "WORD" else None


def _field(token: Any) -> FilterField | None:
    text = str(token)
    try:
        return named(Word(text, text, False, 0, len(text)))
    except FilterError:
        return None


# -- names ------------------------------------------------------------------------------------------


def _names(begun: str) -> Iterator[tuple[str, str]]:
    for field in own_fields():
        for alias in field.aliases:
            if begun and field.name == f"{alias}_ns":  # a filter's values have units, so offer the alias
                yield alias, field.meaning
        yield field.name, field.meaning
    for name, (_, meaning) in MACROS.items():
        yield name, meaning
    for field in own_fields():
        for alias in field.aliases:
            yield alias, f"the same as {field.name}"
    for prefix in PREFIXES:
        yield prefix, "a field inside the decoded bytes; its path follows"
    yield HEADER_PREFIX, "the value of a record header; its name follows"
    head, dot, rest = begun.partition(".")
    api = paths.api_of(head) if dot else None
    if api is not None:
        yield from _steps(api, head, rest)
        return
    for key in apis.api_keys():
        name = apis.api_name(key)
        yield f"{name[0].lower()}{name[1:]}.", f"the fields of {name}"
    yield wireshark.PREFIX, "the names of Wireshark's fields"
    if dot and plain(f"{head}.") == wireshark.PREFIX:
        yield from wireshark.names()
    if len(begun) >= _SHORTEST and not dot:
        for name in paths.all_names():
            yield name, "in every message that has it"


def _steps(api: int, head: str, rest: str) -> Iterator[tuple[str, str]]:
    """The next step of a path: one name, with a dot if it has fields inside."""
    *done, _ = rest.split(".")
    if not done:
        for side in paths.SIDES:
            yield f"{head}.{side}.", f"the fields of the {side}"
        return
    side = plain(done[0])
    if side not in paths.SIDES:
        return
    in_header = len(done) > 1 and plain(done[1]) == paths.HEADER_STEP
    if len(done) == 1:
        yield f"{head}.{done[0]}.{paths.HEADER_STEP}.", f"the fields of the {side}'s header"
    twigs = paths.header_tree(side) if in_header else paths.tree(api, side)
    for step in done[1 + in_header :]:
        twig = twigs.get(plain(step.partition("[")[0]))
        if twig is None:
            return
        twigs = twig.children
    prefix = ".".join((head, *done))
    for twig in twigs.values():
        yield f"{prefix}.{twig.name}{'.' if twig.children else ''}", twig.type


# -- values -----------------------------------------------------------------------------------------


def _values(field: FilterField, begun: str) -> Iterator[tuple[str, str]]:
    if field.kind is FieldKind.API:
        yield from ((apis.api_name(key), f"API {key}") for key in apis.api_keys())
        yield SASL_TOKEN, "a SASL token without a header"
    elif field.kind is FieldKind.ERROR:
        yield from ((name, f"error {code}") for code, name in error_names().items())
    elif field.kind is FieldKind.FLAG:
        yield from (("true", ""), ("false", ""))
    elif field.kind is FieldKind.RULE:
        from kdissect.insight.catalogue import RULES

        yield from ((id, each.severity) for id, each in RULES.items())
    elif field.kind is FieldKind.WORD:
        for word in field.words:
            yield (f'"{word}"' if set(" =") & set(word) else word), ""
    yield from ((name, str(code)) for name, code in field.codes.items())
    number = _DIGITS.fullmatch(begun)
    if number and field.unit:
        units = SIZES if field.unit == "bytes" else DURATIONS
        yield from ((begun + unit, "") for unit in units)
