"""Bytes → where the record sets of a message stand and which partition each is of, with no value made of
anything else. In the answer to a Produce request, also the offset that each partition got.

It follows the same plan as ``decode``. It gives None where anything is unusual: a defect, bytes left over,
tagged fields, a schema whose fields stand in another order. Then the caller decodes the values. So it must
never find anything that they would not show.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from kdissect.model import DecodeError
from kdissect.protocol import plan
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import read_count, read_size
from kdissect.protocol.schema import ZERO_UUID, Field, Struct
from kdissect.protocol.topics import told_by

PASS, TEXT, BYTES, NAME, ID, PARTITION, RECORDS, OFFSET, ARRAY, STRUCT = range(10)
"""What a step does: pass a number of bytes, a string, bytes; read what tells the partition; take note of a
record set or of a base offset; go through an array or a struct."""

COMPACT_STRING, COMPACT_RECORDS = plan.COMPACT_STRING, plan.COMPACT_RECORDS
COMPACT_ARRAY, STRING = plan.COMPACT_ARRAY, plan.STRING

Place = tuple[str | None, str | None, int | None, str, int, int]
"""Topic, topic id, partition; the field's name; where it begins in the buffer, and its bytes. Of a base
offset, the offset and 0."""


class PlaceWay:
    """The way through a struct."""

    __slots__ = ("is_flexible", "steps", "width")

    def __init__(self, steps: list[PlaceStep], is_flexible: bool) -> None:
        self.steps = steps
        self.is_flexible = is_flexible
        is_fixed = not is_flexible and all(step.action == PASS for step in steps)
        self.width = sum(step.width for step in steps) if is_fixed else -1
        """Its bytes, where it is nothing but a number of bytes to pass; else -1."""


class PlaceStep:
    """The way through a field, or through an element of an array."""

    __slots__ = ("action", "element", "inner", "least", "name", "nullable", "opcode", "width")

    def __init__(self, action: int, opcode: int, name: str, nullable: bool = False) -> None:
        self.action = action
        self.opcode = opcode
        self.name = name
        self.nullable = nullable
        self.width = 0
        """Bytes to pass; of an array, those of each element, or -1."""
        self.least = 0
        """Bytes that an element takes at least."""
        self.inner: PlaceWay | None = None
        """Through a struct, or each that is an element."""
        self.element: PlaceStep | None = None
        """Through an element that is no struct."""


class Finder:
    """One walk."""

    __slots__ = ("cursor", "found", "partition", "topic", "topic_id")

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.found: list[Place] = []
        self.topic: str | None = None
        self.topic_id: str | None = None
        self.partition: int | None = None

    def through(self, way: PlaceWay) -> None:
        """Go through a struct.

        :raises DecodeError: something is out of the ordinary.
        """
        for step in way.steps:
            if step.action == PASS:
                self.cursor.take(step.width)
            else:
                self.visit(step)
        if way.is_flexible and self.cursor.read_unsigned_varint():
            raise DecodeError("tagged fields", self.cursor.position)

    def visit(self, step: PlaceStep) -> None:
        """Go through a field."""
        cursor, action = self.cursor, step.action
        if action == TEXT:
            size = read_size(cursor, step.opcode, step.nullable)
            if size >= 0:
                cursor.read_text(size)  # it may not be UTF-8
        elif action == BYTES:
            cursor.take(max(read_size(cursor, step.opcode, step.nullable), 0))
        elif action == NAME:
            size = read_size(cursor, step.opcode, step.nullable)
            if size >= 0:
                self.topic = cursor.read_text(size)
        elif action == ID:
            topic_id = cursor.read_uuid()
            if topic_id != ZERO_UUID:
                self.topic_id = topic_id
        elif action == PARTITION:
            self.partition = cursor.read_int32()
        elif action == RECORDS:
            size = read_size(cursor, step.opcode, step.nullable)
            if size >= 0:
                start = cursor.take(size)
                self.found.append((self.topic, self.topic_id, self.partition, step.name, start, size))
        elif action == OFFSET:
            offset = cursor.read_int64()
            self.found.append((self.topic, self.topic_id, self.partition, step.name, offset, 0))
        elif action == ARRAY:
            self.elements(step)
        elif action == STRUCT and step.inner is not None:
            self.inside(step.inner)
        else:
            cursor.take(step.width)

    def elements(self, step: PlaceStep) -> None:
        """Go through an array."""
        cursor = self.cursor
        count = read_count(cursor, step.opcode, step.nullable, step.least)
        if count <= 0:
            return
        if step.width >= 0:
            cursor.take(count * step.width)
        elif step.inner is not None:
            for _ in range(count):
                self.inside(step.inner)
        elif step.element is not None:
            for _ in range(count):
                self.visit(step.element)

    def inside(self, way: PlaceWay) -> None:
        """Go through a struct in another: what it says of its partition does not hold behind it."""
        topic, topic_id, partition = self.topic, self.topic_id, self.partition
        self.through(way)
        self.topic, self.topic_id, self.partition = topic, topic_id, partition


def find_places(struct: Struct, cursor: Cursor) -> list[Place] | None:
    """The record sets, or base offsets, of the struct that begins at the cursor. The struct must fill the
    bytes to their end. None where it has to be decoded.
    """
    way = way_through(struct)
    if way is None:
        return None
    cursor.elements_left = cursor.limits.message_elements
    finder = Finder(cursor)
    try:
        finder.through(way)
    except DecodeError:
        return None
    return None if cursor.notes or cursor.position != cursor.end else finder.found


# -- ways -------------------------------------------------------------------------------------------


@cache
def way_through(struct: Struct) -> PlaceWay | None:
    """The way through a struct; None where there is no simple one."""
    steps: list[PlaceStep] = []
    is_inside = False
    for opcode, name, argument in struct.plan[1]:
        step = _step(struct.by_name[name], opcode, argument)
        if step is None:
            return None
        if step.action in (NAME, ID, PARTITION):
            if is_inside:
                return None  # it would count for what was found before it
        elif step.action not in (PASS, TEXT, BYTES):
            is_inside = True
        if step.action == PASS and steps and steps[-1].action == PASS:
            steps[-1].width += step.width
        else:
            steps.append(step)
    return PlaceWay(steps, struct.plan[2] is not None)


def _step(field: Field, opcode: int, argument: Any) -> PlaceStep | None:
    if opcode in (plan.ARRAY, plan.COMPACT_ARRAY):
        nullable, element, inner, least = argument
        step = PlaceStep(ARRAY, opcode, field.name, nullable)
        step.least, step.width = least, -1
        if element == plan.STRUCT:
            assert field.struct is not None
            step.inner = way_through(field.struct)
            if step.inner is None:
                return None
            step.width = step.inner.width
        else:
            of = step.element = _leaf(element, field.name, inner)
            if of.action == PASS:
                step.width = of.width
        return step
    if opcode == plan.STRUCT:
        assert field.struct is not None
        step = PlaceStep(STRUCT, opcode, field.name)
        step.inner = way_through(field.struct)
        return None if step.inner is None else step
    if opcode > plan.STRUCT or field.name == "unalignedRecords":
        return None  # whether these are records depends on another field
    told = told_by(field.name)
    if told is not None:
        action = _TELLING.get((told, field.type))
        return None if action is None else PlaceStep(action, opcode, field.name, bool(argument))
    if field.name == "baseOffset" and opcode == plan.INT64:
        return PlaceStep(OFFSET, opcode, field.name)
    return _leaf(opcode, field.name, argument)


_TELLING = {("topic", "string"): NAME, ("topic id", "uuid"): ID, ("partition", "int32"): PARTITION}


def _leaf(opcode: int, name: str, argument: Any) -> PlaceStep:
    if opcode < plan.STRING:
        step = PlaceStep(PASS, opcode, name)
        step.width = plan.WIDTHS[opcode]
        return step
    if opcode in (plan.STRING, plan.COMPACT_STRING):
        action = TEXT
    else:
        action = RECORDS if opcode in (plan.RECORDS, plan.COMPACT_RECORDS) else BYTES
    return PlaceStep(action, opcode, name, bool(argument))
