"""Whether a definition in Kafka's JSON is valid and not too large: its author may be malicious.

Kafka 4.4 has some 300 definitions of at most 13 kB, with at most 19 versions and 60 fields. The bounds allow
many times as much. A larger definition gives one line of error instead of filling the memory.
"""

from __future__ import annotations

import re
from typing import Any

from kdissect.limits import DEEPEST
from kdissect.protocol import plan
from kdissect.protocol.definition import NEWEST, NONE, VersionRange, versions_of
from kdissect.wording import plural

MOST_VERSIONS = 256
"""The largest number of versions of one class."""
MOST_FIELDS = 2_000
"""The largest number of fields of one class; a struct's fields count once for each use."""
KINDS = ("request", "response", "header", "data", "metadata", "coordinator-key", "coordinator-value")
LONGEST_NAME = 100
LONGEST_DEFAULT = 1_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VERSIONS = re.compile(r"none|[0-9]{1,5}\+?|[0-9]{1,5}-[0-9]{1,5}")

Definition = dict[str, Any]
Structures = dict[str, list[Definition]]


def vet(definition: Definition) -> int:
    """Check that everything in a definition has the form that Kafka's generator requires.

    :returns: the number of fields, each counted once for each version.

    :raises ValueError: a part has another form, or there are too many.
    """
    valid = _versions(definition, "validVersions")
    if valid == NONE:
        return 0
    if valid.high - valid.low >= MOST_VERSIONS:
        raise ValueError(f"validVersions {valid}: more than {MOST_VERSIONS} versions")
    name, kind = _name(definition, "name"), _text(definition, "type", LONGEST_NAME)
    if kind not in KINDS:
        raise ValueError(f"type: {kind!r} is not one of {', '.join(KINDS)}")
    if kind in ("request", "response") and (not name.removesuffix(kind.capitalize()) or len(name) < 9):
        raise ValueError(f"{name} is not the name of a {kind}")
    _versions(definition, "flexibleVersions", "none")
    _integer(definition, "apiKey", required=kind in ("request", "response"))
    structures: Structures = {}
    for each in _list(definition, "commonStructs", required=False):
        structures[_name(each, "name")] = _list(each, "fields")
        _vet_fields(structures[each["name"]], structures, 1)
    fields = _list(definition, "fields")
    _vet_fields(fields, structures, 1)
    for each in structures.values():
        _count(each, structures, {}, ())
    return (valid.high - valid.low + 1) * (1 + _count(fields, structures, {}, ()))


def _vet_fields(fields: list[Definition], structures: Structures, depth: int) -> None:
    """Check each field, and collect the struct types."""
    if depth > DEEPEST:
        raise ValueError(f"it is nested deeper than {DEEPEST}")
    if len(fields) > MOST_FIELDS:
        raise ValueError(f"it has more than {plural(MOST_FIELDS, 'field')}")
    for field in fields:
        _name(field, "name")
        kind = _text(field, "type", LONGEST_NAME + 2)
        if not _NAME.fullmatch(kind.removeprefix("[]")):
            raise ValueError(f"{kind!r} is not a type")
        for word in ("versions", "nullableVersions", "taggedVersions", "flexibleVersions"):
            _versions(field, word, "none")
        _integer(field, "tag")
        if "entityType" in field:
            _name(field, "entityType")
        _vet_default(field)
        if "fields" in field:
            inner = _list(field, "fields")
            structures.setdefault(kind.removeprefix("[]"), inner)
            _vet_fields(inner, structures, depth + 1)


def _vet_default(field: Definition) -> None:
    value = field.get("default")
    if not isinstance(value, str | int | float | None):
        raise ValueError(f"{field['name']}: its default is neither text nor a number")
    text = str(value)
    if len(text) > LONGEST_DEFAULT or not text.isprintable():
        raise ValueError(f"{field['name']}: its default is too long or has invisible characters")


def _count(
    fields: list[Definition], structures: Structures, known: dict[str, int], around: tuple[str, ...]
) -> int:
    """The number of fields; a struct's fields count once for each use.

    :param known: the numbers of the struct types already counted.
    :param around: the struct types around the fields.
    """
    count = 0
    for field in fields:
        element = field["type"].removeprefix("[]")
        count += 1
        if element in structures and element not in plan.PRIMITIVES:
            if element in around or len(around) >= DEEPEST:
                raise ValueError(f"{element} is nested deeper than {DEEPEST}")
            if element not in known:
                known[element] = _count(structures[element], structures, known, (*around, element))
            count += known[element]
        if count > MOST_FIELDS:
            raise ValueError(f"it has more than {plural(MOST_FIELDS, 'field')}")
    return count


# -- words ------------------------------------------------------------------------------------------


def _member(given: Any, word: str) -> Any:
    if not isinstance(given, dict):
        raise ValueError(f"an object with {word} is needed")
    if word not in given:
        raise ValueError(f"{word} is missing")
    return given[word]


def _text(given: Any, word: str, longest: int) -> str:
    value = _member(given, word)
    if not isinstance(value, str) or len(value) > longest:
        raise ValueError(f"{word}: text of at most {longest} characters is needed")
    return value


def _name(given: Any, word: str) -> str:
    value = _text(given, word, LONGEST_NAME)
    if not _NAME.fullmatch(value):  # some become file names, and all are shown
        raise ValueError(f"{word}: {value!r} is not a name")
    return value


def _versions(given: Any, word: str, absent: str | None = None) -> VersionRange:
    is_absent = absent is not None and isinstance(given, dict) and word not in given
    value = absent if is_absent else _member(given, word)
    if not isinstance(value, str) or not _VERSIONS.fullmatch(value):
        raise ValueError(f"{word}: versions such as 0-4 or 3+ are needed")
    found = versions_of(value)
    if max(found) > NEWEST:
        raise ValueError(f"{word} {value}: there is no version above {NEWEST}")
    return found


def _integer(given: Definition, word: str, required: bool = False) -> None:
    """Check that a value is an int16, as a number or as text."""
    if word not in given and not required:
        return
    value = _member(given, word)
    text = value if isinstance(value, str) else str(value)
    is_number = isinstance(value, str | int) and not isinstance(value, bool)
    if not is_number or not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > NEWEST:
        raise ValueError(f"{word}: a whole number from 0 to {NEWEST} is needed")


def _list(given: Any, word: str, required: bool = True) -> list[Any]:
    value = _member(given, word) if required or word in given else []
    if not isinstance(value, list):
        raise ValueError(f"{word}: a list is needed")
    return value
