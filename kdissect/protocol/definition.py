"""The language of the definitions: text to :class:`Document` and back.

One file describes one API (its request and its response) or one other message class. A block is one
layout; indentation is nesting::

    also ListClientMetricsResources
    api reads unless a follower asks; waits for records; answers first 8+

    request 4-18 of 4.4.0, 0-3 of 3.9; flexible 12+
        clusterId     string      12+   nullable, default null, tag 0, ignorable, harmless
        maxWaitMs     int32       0+
        topics        []FetchTopic  0+
            topic     string      0-12  ignorable, is topicName

Two lines may precede the blocks. ``also`` lists older names of the class. ``api`` has the traits of an API,
separated by semicolons (:class:`ApiTraits`).

A block's first line has the versions that it describes, and the Kafka release of its definition. It may mark
a version as ``unstable``. ``flexible`` gives the first version with a flexible layout (KIP-482). Without it,
no version is flexible. Records of Kafka's own topics have their ``record type``.

A field's line is its name in Kafka's JSON spelling, its type and the versions that have it. Then follow,
separated by commas:

``nullable``, ``tag n``   in which versions, where not in all.
``default``               the value that an absent field has.
``flexible``              where it differs from the message.
``ignorable``             the field may be dropped from a version that lacks it, whatever its value.
``key``                   its value is unique in the array.
``is``                    what kind of thing it names.

The fields of a struct type are below its first use in the block. A block that begins with ``era`` is the
layout of an older release for the same versions.

Kafka's files contain all of that. kdissect adds the traits of an API, and three traits of a field. ``secret``
means that outputs hide the value, always or by a rule (:mod:`kdissect.present.redact`). ``holds`` names the
content of bytes (:mod:`kdissect.embedded.fields`). ``harmless`` means that text or bytes are not secret and
have no such content.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple

NEWEST = 32767
"""The upper end of an open range: Kafka's versions are int16."""


class VersionRange(NamedTuple):
    """An inclusive range of versions; empty if ``high < low``."""

    low: int
    high: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high

    def __str__(self) -> str:
        if self.high < self.low:
            return "none"
        if self.high == NEWEST:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


NONE = VersionRange(0, -1)


@lru_cache(maxsize=1_024)
def versions_of(text: str) -> VersionRange:
    """The range of ``4+``, ``0-12``, ``3`` or ``none``.

    :raises ValueError: the text has another form.
    """
    if text == "none":
        return NONE
    if text.endswith("+"):
        return VersionRange(int(text[:-1]), NEWEST)
    low, _, high = text.partition("-")
    return VersionRange(int(low), int(high or low))


ALWAYS = "always"
"""A trait without a rule: it always applies."""


class ApiTraits(NamedTuple):
    """The traits of an API beside its layout. An API without traits changes data and waits for nothing."""

    reads: str | None = None
    """``reads`` or ``reads unless RULE``: a request changes nothing on the broker
    (:mod:`kdissect.client.changing`). None: it may change data."""
    administers: bool = False
    """``administers``: a request changes the cluster, as an administrator does."""
    waits: str | None = None
    """``waits for records`` or ``waits for members``: the broker may delay the response until these arrive,
    as the client requested."""
    between_brokers: bool = False
    """``between brokers``: only brokers and controllers send it, according to the listeners of Kafka's
    definitions and the classes that send it."""
    answers_first: VersionRange = NONE
    """``answers first 6+``: in these versions a broker answers first and throttles afterwards (KIP-219)."""
    logs_in: bool = False
    """``logs in``: the API is used when a connection authenticates."""
    removed_in: str | None = None
    """``removed in 4.1``: the release that removed its old versions, if not 4.0."""


class FieldDefinition(NamedTuple):
    """One field in all its versions."""

    name: str
    type: str
    versions: VersionRange
    nullable: VersionRange = NONE
    tag: int | None = None
    tagged: VersionRange = NONE
    flexible: VersionRange | None = None
    """The flexible versions, if they differ from the message's."""
    default: str | None = None
    """The default as text; None if the type's own default applies."""
    ignorable: bool = False
    key: bool = False
    entity: str | None = None
    fields: tuple[FieldDefinition, ...] = ()
    """The fields of the struct, at its first use in the block."""
    secret: str | None = None
    """The rule that decides whether its value is a secret, or :data:`ALWAYS`."""
    holds: str | None = None
    """The content of its bytes."""
    harmless: bool = False
    """Whether it is text or bytes without known content and without secrets."""

    @property
    def element(self) -> str:
        """The type without the ``[]`` of an array."""
        return self.type.removeprefix("[]")


class ReleaseSpan(NamedTuple):
    """The versions from one release."""

    versions: VersionRange
    release: str
    """A Kafka release, such as ``4.4.0``, or a vendor's: ``confluent-7.9.0``."""
    unstable: bool = False


class Block(NamedTuple):
    """One layout of a message class and the versions that have it."""

    kind: str
    """``request``, ``response``, ``header``, ``data``, ``metadata``, ``coordinator-key`` or
    ``coordinator-value``."""
    spans: tuple[ReleaseSpan, ...]
    flexible: VersionRange
    fields: tuple[FieldDefinition, ...]
    record_type: int | None = None
    era: bool = False

    def __contains__(self, version: object) -> bool:
        return any(version in span.versions for span in self.spans)


class Document(NamedTuple):
    """The contents of one file."""

    blocks: tuple[Block, ...]
    also: tuple[str, ...] = ()
    api: ApiTraits = ApiTraits()


# -- reading ----------------------------------------------------------------------------------------


def parse(text: str) -> Document:
    """:raises ValueError: the text is not in the language; the message begins with the line's number."""
    blocks: list[Block] = []
    also: tuple[str, ...] = ()
    api = ApiTraits()
    body: list[tuple[int, FieldDefinition]] = []
    for number, line in enumerate(text.split("\n"), 1):
        words = line.strip()
        if not words or words[0] == "#":
            continue
        try:
            if line[0] == " ":
                body.append((len(line) - len(line.lstrip()), _field(words)))
            elif words.startswith("also "):
                also = tuple(words[5:].split(", "))
            elif words.startswith("api "):
                api = _api(words[4:])
            else:
                _close(blocks, body)
                body = []
                blocks.append(_block(words))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    _close(blocks, body)
    return Document(tuple(blocks), also, api)


def _close(blocks: list[Block], body: list[tuple[int, FieldDefinition]]) -> None:
    if body and not blocks:
        raise ValueError("fields before the first block")
    if body:
        fields, rest = _nest(body, 0)
        if rest != len(body):
            raise ValueError(f"{body[rest][1].name} is indented less than the first field")
        blocks[-1] = blocks[-1]._replace(fields=fields)


def _nest(body: list[tuple[int, FieldDefinition]], at: int) -> tuple[tuple[FieldDefinition, ...], int]:
    """The fields at the indentation of line ``at``, each with the fields indented below it."""
    depth = body[at][0]
    fields = []
    while at < len(body) and body[at][0] == depth:
        definition = body[at][1]
        at += 1
        if at < len(body) and body[at][0] > depth:
            below, at = _nest(body, at)
            definition = _new(FieldDefinition, (*definition[:_FIELDS], below, *definition[_FIELDS + 1 :]))
        fields.append(definition)
    return tuple(fields), at


def _api(line: str) -> ApiTraits:
    traits = ApiTraits()
    for clause in line.split("; "):
        value = clause.partition(" ")[2]
        if clause == "reads" or clause.startswith("reads unless "):
            traits = traits._replace(reads=value.removeprefix("unless ") or ALWAYS)
        elif clause == "administers":
            traits = traits._replace(administers=True)
        elif clause in ("waits for records", "waits for members"):
            traits = traits._replace(waits=value.removeprefix("for "))
        elif clause == "between brokers":
            traits = traits._replace(between_brokers=True)
        elif clause == "logs in":
            traits = traits._replace(logs_in=True)
        elif clause.startswith("answers first "):
            traits = traits._replace(answers_first=versions_of(value.removeprefix("first ")))
        elif clause.startswith("removed in "):
            traits = traits._replace(removed_in=value.removeprefix("in "))
        else:
            raise ValueError(f"{clause!r} is not a known clause")
    return traits


def _block(line: str) -> Block:
    head, *clauses = line.split("; ")
    era = head.startswith("era ")
    kind, _, spans = head.removeprefix("era ").partition(" ")
    flexible, record_type = NONE, None
    for clause in clauses:
        word, _, value = clause.rpartition(" ")
        if word == "flexible":
            flexible = versions_of(value)
        elif word == "record type":
            record_type = int(value)
        else:
            raise ValueError(f"{clause!r} is not a known clause")
    return Block(kind, tuple(_span(span) for span in spans.split(", ")), flexible, (), record_type, era)


def _span(text: str) -> ReleaseSpan:
    versions, of, release = text.partition(" of ")
    if not of:
        raise ValueError(f"{text!r} does not name a release")
    stable = release.removesuffix(" unstable")
    return ReleaseSpan(versions_of(versions), stable, stable != release)


def _field(line: str) -> FieldDefinition:
    parts = line.split(maxsplit=3)
    if len(parts) < 3:
        raise ValueError(f"{line!r} has no type or no versions")
    told = _parse_attributes(parts[2], parts[3] if len(parts) > 3 else "")
    return _new(FieldDefinition, (parts[0], parts[1], *told))


_new = tuple.__new__
"""``_new(FieldDefinition, values)``: avoids the second call that NamedTuple's own ``__new__`` makes."""
_FIELDS = FieldDefinition._fields.index("fields")


@lru_cache(maxsize=1_024)
def _parse_attributes(versions: str, attributes: str) -> tuple[Any, ...]:
    """The parsed words of a field's line after the type, in the form of :class:`FieldDefinition`. They are
    cached, because many fields have the same words."""
    spans = versions_of(versions)
    told: dict[str, Any] = {}
    for attribute in _attributes(attributes) if attributes else []:
        word, _, value = attribute.partition(" ")
        told |= _attribute(spans, word, value)
    return FieldDefinition("", "", spans, **told)[2:]


def _attributes(text: str) -> list[str]:
    """Split at commas; only a string's default, which is quoted, can contain a comma."""
    before, quote, rest = text.partition('default "')
    if not quote:
        return text.split(", ")
    value, end = json.JSONDecoder().raw_decode('"' + rest)
    after = rest[end - 1 :].removeprefix(", ")
    attributes = before.removesuffix(", ").split(", ") if before else []
    return [*attributes, f"default {json.dumps(value)}", *(after.split(", ") if after else [])]


def _attribute(versions: VersionRange, word: str, value: str) -> dict[str, Any]:
    """The meaning of an attribute of a field that exists in ``versions``."""
    if word == "nullable":
        return {"nullable": versions_of(value) if value else versions}
    if word == "tag":
        tag, _, tagged = value.partition(" ")
        return {"tag": int(tag), "tagged": versions_of(tagged) if tagged else versions}
    if word == "default":
        return {"default": json.loads(value) if value.startswith('"') else value}
    if word == "flexible":
        return {"flexible": versions_of(value)}
    if word in ("ignorable", "key", "harmless"):
        return {word: True}
    if word == "is":
        return {"entity": value}
    if word == "secret":
        return {"secret": value or ALWAYS}
    if word == "holds":
        return {"holds": value}
    raise ValueError(f"{word!r} is not a known word")


# -- writing ----------------------------------------------------------------------------------------


def write(document: Document) -> str:
    """The text of a document; :func:`parse` makes an equal document of it."""
    top = f"also {', '.join(document.also)}\n" if document.also else ""
    if document.api != ApiTraits():
        top += f"api {_api_text(document.api)}\n"
    parts = [top] if top else []
    for block in document.blocks:
        rows = list(_rows(block.fields, 1))
        name_width = max((len(row[0]) for row in rows), default=0)
        type_width = max((len(row[1]) for row in rows), default=0)
        versions_width = max((len(row[2]) for row in rows), default=0)
        lines = [_head(block)]
        for name, type_name, versions, attributes in rows:
            line = f"{name:{name_width}}  {type_name:{type_width}}  {versions:{versions_width}}  {attributes}"
            lines.append(line.rstrip())
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _api_text(api: ApiTraits) -> str:
    clauses = []
    if api.reads is not None:
        clauses.append("reads" if api.reads == ALWAYS else f"reads unless {api.reads}")
    if api.administers:
        clauses.append("administers")
    if api.waits is not None:
        clauses.append(f"waits for {api.waits}")
    if api.between_brokers:
        clauses.append("between brokers")
    if api.logs_in:
        clauses.append("logs in")
    if api.answers_first != NONE:
        clauses.append(f"answers first {api.answers_first}")
    if api.removed_in is not None:
        clauses.append(f"removed in {api.removed_in}")
    return "; ".join(clauses)


def _head(block: Block) -> str:
    spans = ", ".join(
        f"{span.versions} of {span.release}{' unstable' * span.unstable}" for span in block.spans
    )
    line = f"{'era ' * block.era}{block.kind} {spans}"
    if block.record_type is not None:
        line += f"; record type {block.record_type}"
    return line if block.flexible == NONE else f"{line}; flexible {block.flexible}"


def _rows(fields: tuple[FieldDefinition, ...], depth: int) -> list[tuple[str, str, str, str]]:
    rows = []
    for field in fields:
        rows.append(("    " * depth + field.name, field.type, str(field.versions), _attributes_text(field)))
        rows.extend(_rows(field.fields, depth + 1))
    return rows


def _attributes_text(field: FieldDefinition) -> str:
    words = []
    if field.nullable != NONE:
        words.append("nullable" if field.nullable == field.versions else f"nullable {field.nullable}")
    if field.default is not None:
        quoted = field.type == "string" and field.default != "null"
        words.append(f"default {json.dumps(field.default) if quoted else field.default}")
    if field.tag is not None:
        words.append(
            f"tag {field.tag}" if field.tagged == field.versions else f"tag {field.tag} {field.tagged}"
        )
    if field.flexible is not None:
        words.append(f"flexible {field.flexible}")
    if field.key:
        words.append("key")
    if field.ignorable:
        words.append("ignorable")
    if field.entity is not None:
        words.append(f"is {field.entity}")
    if field.secret is not None:
        words.append("secret" if field.secret == ALWAYS else f"secret {field.secret}")
    if field.holds is not None:
        words.append(f"holds {field.holds}")
    if field.harmless:
        words.append("harmless")
    return ", ".join(words)
