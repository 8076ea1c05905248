"""A JSON Schema's text → an object that checks values (drafts 4, 6, 7, 2019-09, 2020-12).

Schemas may come from strangers. So every check is bounded, and no address is fetched. Patterns,
``unevaluated…``, dynamic references and references to unknown schemas leave the answer open. ``format`` and
``content…`` are ignored, as they are by default in the newer drafts. Steps and depth are bounded: a schema
may refer to itself without end, or double its work with each reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from kdissect.model import DecodeError
from kdissect.payload.avro import SchemaError
from kdissect.payload.json_checks import KEYWORDS
from kdissect.payload.json_judge import OPEN, JudgingRun, Misfit, identity
from kdissect.payload.plain import decode_json

FREE_STEPS, STEPS_A_BYTE = 2_048, 16
"""How many keywords may be checked for one value: a fixed part, and a part for each byte."""
UNKNOWN_DRAFT = 0
DRAFTS = {
    **{f"http://json-schema.org/draft-0{each}/schema": each for each in (4, 6, 7)},
    "http://json-schema.org/schema": 7,
    "https://json-schema.org/draft/2019-09/schema": 2019,
    "https://json-schema.org/draft/2020-12/schema": 2020,
}
DEFAULT_DRAFT = 7
"""The draft of a schema that names none, as in registries."""

_BY_NAME = ("properties", "patternProperties", "definitions", "$defs", "dependentSchemas", "dependencies")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_ONE = (
    *("additionalProperties", "additionalItems", "items", "not", "if", "then", "else", "contains"),
    *("propertyNames", "unevaluatedItems", "unevaluatedProperties"),
)
"""The keywords whose schemas may contain references and names of their own."""


class Checked(NamedTuple):
    """The result of checking a value against its schema."""

    problem: str | None = None
    """What does not fit, and where in the value; it shows no part of the value."""
    is_open: bool = False
    """True if it is unknown whether the value fits."""


class JsonSchema:
    """A schema that checks values. It can be copied into other processes."""

    def __init__(self, root: Any, draft: int, targets: dict[str, Any]) -> None:
        self._root = root
        self._draft = draft
        self._targets = targets
        """Documents by address, and named schemas by address and name."""

    def check(self, value: Any, size: int) -> Checked:
        """Check a value.

        :param size: the number of its bytes.
        """
        run = JudgingRun(KEYWORDS, self._draft, self.target, FREE_STEPS + STEPS_A_BYTE * size)
        found = run.judge(self._root, value, 0)
        if isinstance(found, Misfit):
            return Checked(str(found))
        return Checked(is_open=found is OPEN)

    def target(self, reference: str) -> Any:
        """The schema of an absolute reference; None if unknown."""
        if reference in self._targets:
            return self._targets[reference]
        address, fragment = urldefrag(reference)
        found = self._targets.get(address)
        if fragment and not fragment.startswith("/"):
            return None
        for part in unquote(fragment).split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and part.isdecimal() and int(part[:9]) < len(found):
                found = found[int(part[:9])]
            elif isinstance(found, dict):
                found = found.get(part)
            else:
                return None
        return found if isinstance(found, dict | bool) else None


def json_schema(text: str, others: Mapping[str, str] | None = None) -> JsonSchema:
    """The schema in a text.

    :param others: schemas that it may refer to, by the names in its references.
    :raises SchemaError: the text is no JSON Schema.
    """
    root = _parsed(text)
    draft = _draft(root, DEFAULT_DRAFT)
    targets: dict[str, Any] = {}
    address = root.get("id" if draft == 4 else "$id") if isinstance(root, dict) else None
    for name, other in (others or {}).items():
        found = _parsed(other)
        targets[name] = _SchemaReader(targets, _draft(found, draft)).read(found, name)
        if isinstance(address, str):  # references are relative to this address
            targets.setdefault(_join(address, name), targets[name])
    targets[""] = _SchemaReader(targets, draft).read(root, "")
    return JsonSchema(targets[""], draft, targets)


def _parsed(text: str) -> Any:
    try:
        found = decode_json(text.encode("utf-8", "surrogatepass"))
    except DecodeError as error:
        raise SchemaError(f"a JSON Schema is JSON, and this is not: {error.reason}") from None
    if not isinstance(found, dict | bool):
        raise SchemaError("a JSON Schema is an object, true or false")
    return found


def _draft(root: Any, otherwise: int) -> int:
    said = root.get("$schema") if isinstance(root, dict) else None
    if said is None:
        return otherwise
    return DRAFTS.get(said.rstrip("#"), UNKNOWN_DRAFT) if isinstance(said, str) else UNKNOWN_DRAFT


class _SchemaReader:
    """Makes references absolute, and lists of values comparable."""

    def __init__(self, targets: dict[str, Any], draft: int) -> None:
        self._targets = targets
        self._draft = draft
        self._id = "id" if draft == 4 else "$id"

    def read(self, schema: Any, base: str) -> Any:
        """A copy of a schema with absolute references.

        :param base: the address of the schema around it.
        """
        if not isinstance(schema, dict):
            return schema
        out = dict(schema)
        name = schema.get(self._id)
        if isinstance(name, str) and not ("$ref" in schema and self._draft <= 7):
            if name.startswith("#"):
                self._targets[_join(base, name)] = out
            else:
                base = _join(base, name).rstrip("#")
                self._targets[base] = out
        for each in ("$anchor", "$dynamicAnchor"):
            if isinstance(schema.get(each), str):
                self._targets[f"{base}#{schema[each]}"] = out
        if isinstance(schema.get("$ref"), str):
            out["$ref"] = _join(base, schema["$ref"])
        for keyword, said in schema.items():
            if keyword in _BY_NAME and isinstance(said, dict):
                out[keyword] = {each: self.read(inner, base) for each, inner in said.items()}
            elif keyword in _LISTS and isinstance(said, list):
                out[keyword] = [self.read(inner, base) for inner in said]
            elif keyword in _ONE:
                out[keyword] = self.read(said, base)
            elif keyword == "enum" and isinstance(said, list):
                out[keyword] = frozenset(map(identity, said))
            elif keyword == "const":
                out[keyword] = identity(said)
        return out


def _join(base: str, reference: str) -> str:
    """A reference as an absolute address, if the base is absolute."""
    try:
        return base + reference if reference.startswith("#") else urljoin(base, reference)
    except ValueError:
        return reference
