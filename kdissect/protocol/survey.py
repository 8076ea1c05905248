"""Bytes → what every listing asks of a message, without a value made of anything else.

Its topics, its first error code, where its records stand: the walk that a million lines take, several times
faster than decoding. It follows the same plan as ``decode`` and reads with the same functions, so that what
is wrong for one is wrong for the other. Where anything is out of the ordinary (a defect, bytes left over) it
gives None, and whoever asked decodes the values; so it must never give anything that they would not.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from kdissect.model import DecodeError
from kdissect.protocol import plan
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import (
    find_tag,
    read_count,
    read_presence,
    read_size,
    read_tag_count,
    read_tag_head,
)
from kdissect.protocol.entities import GROUP, TRANSACTIONAL_ID, has_typed, names_one
from kdissect.protocol.plan import COMPACT_STRING, STRING, UUID
from kdissect.protocol.schema import ZERO_UUID, Field, Struct
from kdissect.protocol.topics import has_id_and_name, is_topic

PASS, ERROR, ACKS, VARIABLE, TOPIC_ID, ARRAY, ONE, MAYBE, THROTTLE = range(9)
"""What a step does: pass a number of bytes; read one integer or uuid that is asked for; read a string or
bytes, an array, a struct, a struct that may be null."""

THROTTLE_FIELD = "throttleTimeMs"
"""An int32, of most responses."""

NOTHING, A_TOPIC, A_GROUP, A_TRANSACTIONAL_ID = range(4)
"""What a string names."""


class Survey:
    """What was found."""

    __slots__ = ("acks", "error", "groups", "mentions", "records", "throttle_ms", "transactional_ids")

    def __init__(self) -> None:
        self.acks = -1
        """Of a Produce request."""
        self.error = 0
        """The first error code that is not 0."""
        self.mentions: list[tuple[str | None, str | None]] = []
        """Every topic, as :func:`~kdissect.protocol.topics.mentioned_topics` gives them."""
        self.records: list[int] = []
        """Where each record set begins and ends, in the buffer."""
        self.groups: list[str] | None = None
        """Ids of groups; None for none."""
        self.transactional_ids: list[str] | None = None
        self.throttle_ms = 0
        """How long a response says that a quota holds the client back, ms."""


class Route:
    """The way through a struct."""

    __slots__ = ("is_flexible", "steps", "tags", "width")

    def __init__(self, steps: list[Step], tags: tuple[tuple[int, Step], ...] | None) -> None:
        self.steps = steps
        self.is_flexible = tags is not None
        self.tags = tags or ()
        passes = all(step.action == PASS for step in steps) and tags is None
        self.width = sum(step.width for step in steps) if passes else -1
        """Its bytes, where it is nothing but a number of bytes to pass; else -1."""


class Step:
    """The way through a field."""

    __slots__ = ("action", "inner", "least", "names", "nullable", "of", "opcode", "width")

    def __init__(self, action: int, opcode: int = 0, width: int = 0) -> None:
        self.action = action
        self.opcode = opcode
        self.width = width
        """Bytes to pass; of an array, those of an element, or -1."""
        self.nullable = False
        self.names = NOTHING
        """What its string names."""
        self.least = 0
        """Bytes that an element takes at least."""
        self.inner: Route | None = None
        """Through a struct, or each that is an element."""
        self.of: Step | None = None
        """Through an element that is no struct."""


def is_error_code(field: Field) -> bool:
    """Whether a field is an error code, which is 0 where all is well."""
    return field.type == "int16" and field.name.endswith(("ErrorCode", "errorCode"))


def survey(way: Route, cursor: Cursor) -> Survey | None:
    """Survey the struct that begins where the cursor stands, and which must fill its bytes to the end; None
    where it has to be decoded."""
    found = Survey()
    cursor.elements_left = cursor.limits.message_elements
    try:
        _follow(way, cursor, found)
    except DecodeError:
        return None
    return None if cursor.notes or cursor.position != cursor.end else found


def _follow(way: Route, cursor: Cursor, found: Survey) -> None:
    for step in way.steps:
        if step.action == PASS:
            cursor.take(step.width)
        else:
            _visit(step, cursor, found)
    if way.is_flexible:
        _pass_tags(way.tags, cursor, found)


def _visit(step: Step, cursor: Cursor, found: Survey) -> None:
    action = step.action
    if action == VARIABLE:
        size = read_size(cursor, step.opcode, step.nullable)
        if size < 0:
            return
        if step.opcode in (STRING, COMPACT_STRING):
            text = cursor.read_text(size)  # also where nobody asks for it: it may not be UTF-8
            if step.names == A_TOPIC:
                found.mentions.append((text, None))
            elif step.names == A_GROUP:
                found.groups = _with(found.groups, text)
            elif step.names == A_TRANSACTIONAL_ID:
                found.transactional_ids = _with(found.transactional_ids, text)
            return
        start = cursor.take(size)
        if step.opcode >= plan.RECORDS:
            found.records.append(start)
            found.records.append(start + size)
    elif action == ARRAY:
        count = read_count(cursor, step.opcode, step.nullable, step.least)
        if count <= 0:
            return
        if step.width >= 0:
            cursor.take(count * step.width)
        elif step.inner is not None:
            for _ in range(count):
                _follow(step.inner, cursor, found)
        elif step.of is not None:
            for _ in range(count):
                _visit(step.of, cursor, found)
    elif action == ERROR:
        code = cursor.read_int16()
        if not found.error:
            found.error = code
    elif step.inner is not None:
        if action == ONE or read_presence(cursor, step.opcode):
            _follow(step.inner, cursor, found)
    elif action == TOPIC_ID:
        name = cursor.read_uuid()
        if name != ZERO_UUID:
            found.mentions.append((None, name))
    elif action == ACKS:
        found.acks = cursor.read_int16()
    elif action == THROTTLE:
        found.throttle_ms = cursor.read_int32()
    else:
        cursor.take(step.width)


def _with(names: list[str] | None, name: str) -> list[str] | None:
    """Names with one more; an empty one is that of none."""
    if not name:
        return names
    if names is None:
        return [name]
    names.append(name)
    return names


def _pass_tags(tags: tuple[tuple[int, Step], ...], cursor: Cursor, found: Survey) -> None:
    previous = -1
    for _ in range(read_tag_count(cursor)):
        tag, _, size = read_tag_head(cursor, previous)
        previous = tag
        step = find_tag(tags, tag)
        outer_end, end = cursor.end, cursor.position + size
        if step is not None:
            cursor.end = end
            _visit(step, cursor, found)
            cursor.end = outer_end
            if cursor.position != end:
                raise DecodeError("bytes are left in a tagged field", cursor.position, "remainder")
        cursor.position = end


# -- ways -------------------------------------------------------------------------------------------


@cache
def route(struct: Struct) -> Route | None:
    """The way through a struct; None where one walk cannot tell what is asked: of a topic's name and id only
    one counts, another field may tell what one names, and what tagged fields say has its place elsewhere than
    on the wire."""
    if has_id_and_name(struct) or has_typed(struct):
        return None
    steps: list[Step] = []
    for opcode, name, argument in struct.plan[1]:
        step = _step(struct.by_name[name], opcode, argument)
        if step is None:
            return None
        if step.action == PASS and steps and steps[-1].action == PASS:
            steps[-1].width += step.width
        else:
            steps.append(step)
    if struct.plan[2] is None:
        return Route(steps, None)
    tags = []
    for tag, (opcode, name, argument) in struct.plan[2]:
        step = _step(struct.by_name[name], opcode, argument)
        if step is None or _asks(step):
            return None
        tags.append((tag, step))
    return Route(steps, tuple(tags))


def _step(field: Field, opcode: int, argument: Any) -> Step | None:
    if opcode in (plan.ARRAY, plan.COMPACT_ARRAY):
        nullable, element, inner, least = argument
        step = Step(ARRAY, opcode, -1)
        step.nullable, step.least = nullable, least
        if element == plan.STRUCT:
            assert field.struct is not None
            step.inner = route(field.struct)
            if step.inner is None:
                return None
            step.width = step.inner.width
        else:
            step.of = _step(field, element, inner)
            if step.of is None:
                return None
            if step.of.action == PASS:
                step.width = step.of.width
        return step
    if opcode >= plan.STRUCT:
        assert field.struct is not None
        step = Step(ONE if opcode == plan.STRUCT else MAYBE, opcode)
        step.inner = route(field.struct)
        return None if step.inner is None else step
    if opcode < plan.STRING:
        if opcode == UUID and is_topic(field):
            return Step(TOPIC_ID)
        if is_error_code(field):
            return Step(ERROR)
        if field.name == "acks":
            return Step(ACKS)
        return Step(THROTTLE) if field.name == THROTTLE_FIELD else Step(PASS, width=plan.WIDTHS[opcode])
    if field.name == "unalignedRecords":
        return None  # whether these are records depends on another field
    step = Step(VARIABLE, opcode)
    step.nullable = argument
    if is_topic(field):
        step.names = A_TOPIC
    elif names_one(field, GROUP):
        step.names = A_GROUP
    elif names_one(field, TRANSACTIONAL_ID):
        step.names = A_TRANSACTIONAL_ID
    return step


def _asks(step: Step) -> bool:
    """Whether anything is asked of what a step goes through."""
    if step.action in (PASS, VARIABLE):
        return step.names != NOTHING or step.opcode >= plan.RECORDS
    if step.action in (ERROR, ACKS, TOPIC_ID, THROTTLE):
        return True
    if step.of is not None:
        return _asks(step.of)
    inner = step.inner
    return inner is not None and any(
        _asks(each) for each in (*inner.steps, *(each for _, each in inner.tags))
    )
