"""Words → checks of a field: values of the field's kind, or an error that lists the possible values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

from kdissect.filter import addresses, checks, literals, paths
from kdissect.filter.checks import Check
from kdissect.filter.field import FieldKind, FilterField, plain
from kdissect.filter.syntax import ComparedField, Word
from kdissect.message import SASL_TOKEN
from kdissect.present.nearest import nearest
from kdissect.protocol import apis
from kdissect.protocol.errors import error_name, error_names

_EQUAL = ("==", "===", "!=", "!==", "in")
_ORDER = ("<", "<=", ">", ">=")
_SEARCH = ("contains", "matches")
OPERATORS = {
    FieldKind.NUMBER: _EQUAL + _ORDER,
    FieldKind.FLOAT: _EQUAL + _ORDER,
    FieldKind.MOMENT: _EQUAL + _ORDER,
    FieldKind.TEXT: _EQUAL + _ORDER + _SEARCH,
    FieldKind.BYTES: _EQUAL + _ORDER + _SEARCH,
    FieldKind.ADDRESS: _EQUAL + _ORDER + _SEARCH,
    FieldKind.FLAG: _EQUAL,
    FieldKind.API: _EQUAL + _SEARCH,
    FieldKind.ERROR: _EQUAL + _SEARCH,
    FieldKind.WORD: _EQUAL + _SEARCH,
    FieldKind.RULE: _EQUAL + _SEARCH,
    FieldKind.JSON: _SEARCH,
    FieldKind.PRESENCE: (),
}
_EVERY = ("!=", "===")
_UNEQUAL = ("!=", "!==")


def presence(field: FilterField) -> Check:
    """The check of a field alone."""
    if field.kind is FieldKind.FLAG:
        return Check(bool)
    if field.kind is FieldKind.ERROR:
        return Check(lambda value: code_of(value) != 0)
    return checks.PRESENT


def not_asked(field: FilterField, operator: str) -> str:
    """Why an operator cannot be used with a field."""
    if field.kind is FieldKind.PRESENCE:
        return f"{field.name} is {field.kind.value}: use it without a value, or name a field inside it"
    if operator in _SEARCH:
        return f"{field.name} is {field.kind.value}: {operator} works with text only"
    if field.kind is FieldKind.JSON:
        return f"{field.name} is {field.kind.value}: only contains and matches work with it"
    return f"{field.name} is {field.kind.value}: {operator} does not work with it"


def check_of(field: FilterField, asked: ComparedField, hints: list[str]) -> Check:
    """The check that a comparison means.

    :raises FilterError: a word is no value of this field.
    """
    check = _check_of(field, asked, hints)
    return check if asked.every is None else check._replace(every=asked.every)


def _check_of(field: FilterField, asked: ComparedField, hints: list[str]) -> Check:
    operator, items = asked.operator, asked.items
    if operator in _SEARCH:
        return _search(field, operator, items[0][0])
    if field.kind is FieldKind.NUMBER:
        return _numbers(field, operator, items, hints)
    if field.kind is FieldKind.MOMENT:
        return _moments(field, operator, items)
    if field.kind is FieldKind.ERROR:
        intervals = _intervals(operator, items, lambda word: Fraction(_error(word)))
        check = checks.whole_numbers(intervals, operator in _EVERY)
        return checks.converted(check, code_of)
    if field.kind is FieldKind.FLOAT:
        return _ordered(operator, items, lambda word: float(literals.number(word, "", field.name)))
    if field.kind is FieldKind.TEXT:
        return _ordered(operator, items, lambda word: word.text)
    if field.kind is FieldKind.ADDRESS:
        return _addresses(field, operator, items)
    if field.kind is FieldKind.BYTES:
        return checks.converted(_ordered(operator, items, lambda word: checks.as_bytes(word.text)), _bytes_of)
    if field.kind is FieldKind.RULE:
        return _rules(operator, items)
    known = {FieldKind.API: _api, FieldKind.FLAG: _truth}.get(field.kind, lambda word: _word_of(field, word))
    for low, high in items:
        if high is not None:
            raise low.error(f"{field.name} is {field.kind.value}: it has no ranges")
    return _ordered(operator, items, known)


def _search(field: FilterField, operator: str, word: Word) -> Check:
    if operator == "contains":
        test = checks.contains(word.text)
    else:
        try:
            test = checks.matches(word.raw.replace('\\"', '"') if word.quoted else word.text)
        except ValueError as error:
            raise word.error(f"this is not a regular expression (RE2): {error}") from None
    check = Check(test)
    return checks.converted(check, _name_of) if field.kind is FieldKind.ERROR else check


Items = tuple[tuple[Word, Word | None], ...]


def _intervals(operator: str, items: Items, value: Callable[[Word], Fraction]) -> list[literals.Interval]:
    if operator != "in":
        return literals.merged(literals.interval_of(operator, value(items[0][0])))
    out: list[literals.Interval] = []
    for low, high in items:
        if high is None:
            out += literals.interval_of("==", value(low))
        else:
            ends = value(low), value(high)
            if ends[0] > ends[1]:
                raise high.error("the range ends before it begins")
            out.append((literals.interval_of(">=", ends[0])[0][0], literals.interval_of("<=", ends[1])[0][1]))
    return literals.merged(out)


def _numbers(field: FilterField, operator: str, items: Items, hints: list[str]) -> Check:
    def value(word: Word) -> Fraction:
        code = None if word.quoted else field.codes.get(word.text.lower())
        if code is None and len(field.codes) > 1 and not word.text[:1].isdigit():
            raise word.error(f"{field.name} is one of {', '.join(field.codes)}, and {word.text!r} is not")
        number = literals.number(word, field.unit, field.name) if code is None else Fraction(code)
        if field.unit == "ns" and number and word.text[-1].isdigit():
            hints.append(f"{field.name} counts nanoseconds: {word.text} means {word.text}ns")
        return number

    return checks.whole_numbers(_intervals(operator, items, value), operator in _EVERY)


def _moments(field: FilterField, operator: str, items: Items) -> Check:
    sorts: set[bool] = set()

    def value(word: Word) -> Fraction:
        found = literals.moment(word, field.unit, field.name)
        sorts.add(found.of_day)
        if len(sorts) > 1:
            raise word.error("one set cannot contain both times of day and dates")
        return found.value

    intervals = _intervals(operator, items, value)
    if sorts == {True}:
        return checks.times_of_day(intervals, field.unit, operator in _EVERY)
    return checks.whole_numbers(intervals, operator in _EVERY)


def _addresses(field: FilterField, operator: str, items: Items) -> Check:
    ranges: list[tuple[addresses.Key, addresses.Key]] = []
    with_port = not field.name.endswith((".ip", ".addr"))
    for low, high in items:
        first, last = addresses.range_of(low, field.name, with_port)
        if high is not None:
            last = addresses.range_of(high, field.name, with_port)[1]
            if first > last:
                raise high.error("the range ends before it begins")
        ranges.append((first, last))
    first, last = ranges[0]

    def among(key: addresses.Key) -> bool:
        return any(low <= key <= high for low, high in ranges)

    tests: dict[str, checks.Predicate] = {
        "!=": lambda key: not among(key),
        "!==": lambda key: not among(key),
        "<": lambda key: key[0] == first[0] and key < first,
        "<=": lambda key: key[0] == first[0] and key <= last,
        ">": lambda key: key[0] == first[0] and key > last,
        ">=": lambda key: key[0] == first[0] and key >= first,
    }
    return checks.converted(Check(tests.get(operator, among), operator in _EVERY), addresses.key_of)


def _ordered(operator: str, items: Items, value: Callable[[Word], Any]) -> Check:
    """A check of values that Python can order."""
    first = value(items[0][0])
    if operator == "in":
        single = {value(low) for low, high in items if high is None}
        ranges = [(value(low), value(high)) for low, high in items if high is not None]
        for (low, high), (_, word) in zip(ranges, (item for item in items if item[1]), strict=True):
            if low > high and word is not None:
                raise word.error("the range ends before it begins")
        return Check(lambda x: x in single or any(low <= x <= high for low, high in ranges))
    if operator in _UNEQUAL:
        return Check(lambda x: x != first, operator in _EVERY)
    if operator in _EQUAL:
        return Check(lambda x: x == first, operator in _EVERY)
    if operator in ("<", "<="):
        return Check((lambda x: x < first) if operator == "<" else (lambda x: x <= first))
    return Check((lambda x: x > first) if operator == ">" else (lambda x: x >= first))


def _rules(operator: str, items: Items) -> Check:
    """A check of ids of findings, which may be patterns."""
    from kdissect.insight.catalogue import RULES

    patterns = []
    for low, high in items:
        if high is not None:
            raise high.error("ids of findings have no ranges")
        if not any(fnmatchcase(id, low.text) for id in RULES):
            raise low.error(f"there is no finding {low.text}{nearest(low.text, RULES)}")
        patterns.append(low.text)

    def among(id: str) -> bool:
        return any(fnmatchcase(id, pattern) for pattern in patterns)

    if operator in _UNEQUAL:
        return Check(lambda id: not among(id), operator in _EVERY)
    return Check(among, operator in _EVERY)


def _bytes_of(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else checks.as_bytes(value)


def _truth(word: Word) -> bool:
    found = {"true": True, "1": True, "false": False, "0": False}.get(word.text.lower())
    if found is None:
        raise word.error(f"true or false should be here, not {word.text}")
    return found


def _word_of(field: FilterField, word: Word) -> str:
    wanted = plain(word.text)
    found = next((known for known in field.words if plain(known) == wanted), None)
    if found is None:
        near = nearest(word.text, field.words) or f"; there are {', '.join(field.words)}"
        raise word.error(f"{field.name} is never {word.text!r}{near}")
    return found


def _begun(text: str, known: Sequence[str]) -> str:
    """``"; did you mean …?"`` with the shortest name that begins with ``text``; empty if no name does."""
    wanted = plain(text)
    found = min((name for name in known if plain(name).startswith(wanted)), key=len, default=None)
    return f"; did you mean {found}?" if found is not None and wanted else ""


def _api(word: Word) -> str:
    if plain(word.text) == plain(SASL_TOKEN):
        return SASL_TOKEN
    number = word.text.removeprefix("Unknown(").removesuffix(")")
    if number.lstrip("-").isdecimal() and len(number) < 7:
        return apis.api_name(int(number))
    key = paths.api_of(word.text)
    if key is None:
        known = [*map(apis.api_name, apis.api_keys()), SASL_TOKEN]
        raise word.error(
            f"there is no API {word.text}{_begun(word.text, known) or nearest(word.text, known)}"
        )
    return apis.api_name(key)


# -- errors -----------------------------------------------------------------------------------------

ERROR_CODES = {name: code for code, name in error_names().items()}
_PLAIN_CODES = {plain(name): code for name, code in ERROR_CODES.items()}


def code_of(value: str | int) -> int | None:
    """The code of an error, given by the name in a column or by its number; None if the name is unknown."""
    if isinstance(value, int):
        return value
    code = ERROR_CODES.get(value)
    if code is None and value.startswith("UNKNOWN("):
        number = value[8:-1]
        code = int(number) if number.lstrip("-").isdecimal() else None
    return code


def _name_of(value: str | int) -> str:
    return value if isinstance(value, str) else error_name(value)


def error_code(text: str) -> int | None:
    """The code of an error's name; None if no error has the name."""
    return _PLAIN_CODES.get(plain(text))


def _error(word: Word) -> int:
    code = error_code(word.text)
    if code is not None:
        return code
    number = word.text.removeprefix("UNKNOWN(").removesuffix(")")
    if number.lstrip("-").isdecimal() and len(number) < 7:
        return int(number)
    raise word.error(f"there is no error {word.text}{nearest(word.text, ERROR_CODES)}")
