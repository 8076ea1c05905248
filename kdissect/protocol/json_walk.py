"""Bytes → Kafka's JSON text, with no value made of anything: the walk that writes a million messages.

It follows the same plan as ``decode`` and writes what :func:`~kdissect.protocol.json_form.to_json` and
``dumps`` would make of the values. Where anything is out of the ordinary (a defect, bytes left over, tagged
fields) it raises, and whoever asked takes back what was written and goes that way.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol

from kdissect.model import DecodeError
from kdissect.names import METADATA_TOPIC
from kdissect.protocol import plan
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import read_count, read_size
from kdissect.protocol.json_form import SIZE_SUFFIX, dumps, java_double
from kdissect.protocol.json_text import JsonText
from kdissect.protocol.schema import Struct

INT8, INT16, INT32, INT64, UINT16, UINT32 = (
    plan.INT8,
    plan.INT16,
    plan.INT32,
    plan.INT64,
    plan.UINT16,
    plan.UINT32,
)
BOOLEAN, UUID, STRING, ARRAY, STRUCT = plan.BOOLEAN, plan.UUID, plan.STRING, plan.ARRAY, plan.STRUCT
COMPACT_STRING, COMPACT_RECORDS = plan.COMPACT_STRING, plan.COMPACT_RECORDS
COMPACT_ARRAY, NULLABLE_STRUCT = plan.COMPACT_ARRAY, plan.NULLABLE_STRUCT
RECORDS = plan.RECORDS

_METADATA = METADATA_TOPIC.encode()
_METADATA_ID = bytes(15) + b"\1"


class Records(Protocol):
    """What writes record sets."""

    def write(self, out: JsonText, data: bytes, name: bytes) -> None:
        """Write the name of a field, and what there is to say of its record set; or nothing.

        :param name: as JSON text, with what stands before and behind it.
        :raises DecodeError: that has to be done in another way.
        """


class Way:
    """The way through a struct."""

    __slots__ = ("is_flexible", "steps")

    def __init__(self, steps: list[Step], is_flexible: bool) -> None:
        self.steps = steps
        self.is_flexible = is_flexible


class Step:
    """The way through a field, or through an element of an array."""

    __slots__ = ("before", "element", "inner", "is_topic", "least", "nullable", "opcode", "size_before")

    def __init__(self, opcode: int, before: bytes = b"", nullable: bool = False) -> None:
        self.opcode = opcode
        self.before = before
        """What stands before the value: the field's name."""
        self.size_before = b""
        """The same where the value of records is their size."""
        self.nullable = nullable
        self.is_topic = False
        """Whether it may be that of ``__cluster_metadata``, whose records may hold secrets."""
        self.least = 0
        """Bytes that an element takes at least."""
        self.inner: Way | None = None
        """Through a struct, or each that is an element."""
        self.element: Step | None = None
        """Through an element that is no struct."""


class Walk:
    """One walk through bytes."""

    __slots__ = ("cursor", "out", "records")

    def __init__(self, cursor: Cursor, out: JsonText, records: Records | None) -> None:
        """:param records: writes what there is to say of record sets, beside their size."""
        self.cursor = cursor
        self.out = out
        self.records = records

    def begin(self, data: bytes, records: Records | None) -> None:
        """Begin with other bytes."""
        cursor = self.cursor
        cursor.data, cursor.position, cursor.end = data, 0, len(data)
        cursor.notes.clear()
        self.records = records

    def write(self, way: Way) -> None:
        """Write the struct that begins where the cursor stands.

        :raises DecodeError: something is out of the ordinary.
        """
        self.cursor.elements_left = self.cursor.limits.message_elements
        self.fields(way)
        if self.cursor.notes:
            raise DecodeError("something is wrong", self.cursor.position)

    def fields(self, way: Way) -> None:
        """Write a struct."""
        out = self.out
        if not way.steps:
            out.put(b"{")
        for step in way.steps:
            if step.opcode not in (RECORDS, COMPACT_RECORDS):
                out.put(step.before)
            self.value(step)
        if way.is_flexible and self.cursor.read_unsigned_varint():
            raise DecodeError("tagged fields", self.cursor.position)
        out.put(b"}")

    def value(self, step: Step) -> None:
        """Write a value."""
        cursor, out, opcode = self.cursor, self.out, step.opcode
        if opcode == INT32:
            out.number(cursor.read_int32())
        elif opcode == INT16:
            out.number(cursor.read_int16())
        elif opcode == INT64:
            out.number(cursor.read_int64())
        elif opcode in (STRING, COMPACT_STRING):
            self.text(step)
        elif opcode in (ARRAY, COMPACT_ARRAY):
            self.array(step)
        elif opcode == INT8:
            out.number(cursor.read_int8())
        elif opcode == BOOLEAN:
            out.put(b"true" if cursor.read_boolean() else b"false")
        elif opcode == UUID:
            start = cursor.take(16)
            if step.is_topic and self.records is not None and cursor.data[start : start + 16] == _METADATA_ID:
                raise DecodeError("metadata", start)
            out.uuid(cursor.data, start)
        elif opcode == UINT16:
            out.number(cursor.read_uint16())
        elif opcode == UINT32:
            out.number(cursor.read_uint32())
        elif opcode < STRING:
            out.put(java_double(cursor.read_float64()).encode("ascii"))
        elif opcode in (RECORDS, COMPACT_RECORDS):
            self.record_set(step)
        elif opcode < ARRAY:
            size = read_size(cursor, step.opcode, step.nullable)
            if size < 0:
                out.put(b"null")
            else:
                out.base64(cursor.data, cursor.take(size), size)
        elif opcode == STRUCT:
            self.inside(step)
        elif opcode == NULLABLE_STRUCT:
            there = cursor.read_int8()
            if there == 1:
                self.inside(step)
            elif there == -1:
                out.put(b"null")
            else:
                raise DecodeError("neither there nor null", cursor.position)
        else:
            raise DecodeError("tagged fields", cursor.position)

    def inside(self, step: Step) -> None:
        """Write a struct in another."""
        if step.inner is not None:
            self.fields(step.inner)

    def text(self, step: Step) -> None:
        """Write a string."""
        cursor = self.cursor
        size = read_size(cursor, step.opcode, step.nullable)
        if size < 0:
            self.out.put(b"null")
            return
        start = cursor.take(size)
        may_be = step.is_topic and self.records is not None and size == len(_METADATA)
        if may_be and cursor.data[start : start + size] == _METADATA:
            raise DecodeError("metadata", start)
        if not self.out.string(cursor.data, start, size):
            raise DecodeError("not UTF-8", start)

    def record_set(self, step: Step) -> None:
        """Write the size of a record set, and what there is to say of it."""
        cursor, out = self.cursor, self.out
        size = read_size(cursor, step.opcode, step.nullable)
        if size < 0:
            out.put(step.before)
            out.put(b"null")
            return
        start = cursor.take(size)
        out.put(step.size_before)
        out.number(size)
        if self.records is not None:
            raw = cursor.data
            self.records.write(out, raw[start : start + size], step.before)

    def array(self, step: Step) -> None:
        """Write an array."""
        cursor, out = self.cursor, self.out
        count = read_count(cursor, step.opcode, step.nullable, step.least)
        if count < 0:
            out.put(b"null")
            return
        out.put(b"[")
        for at in range(count):
            if at:
                out.put(b",")
            if step.inner is not None:
                self.fields(step.inner)
            elif step.element is not None:
                self.value(step.element)
        out.put(b"]")


# -- ways -------------------------------------------------------------------------------------------


@cache
def way_of(struct: Struct) -> Way | None:
    """The way through a struct; None where there is no simple one."""
    steps: list[Step] = []
    for opcode, name, argument in struct.plan[1]:
        field = struct.by_name[name]
        if name == "unalignedRecords":
            return None  # whether these are records depends on another field
        before = f"{',' if steps else '{'}{dumps(name)}:".encode("ascii")
        step = Step(opcode, before)
        if opcode in (ARRAY, COMPACT_ARRAY):
            step.nullable, element, inner, step.least = argument
            if field.struct is None:
                step.element = Step(element, nullable=bool(inner))
        elif opcode < STRUCT:
            step.nullable = bool(argument)
            step.is_topic = name in ("topic", "name", "topicId")
            step.size_before = f"{',' if steps else '{'}{dumps(name + SIZE_SUFFIX)}:".encode("ascii")
        if field.struct is not None:
            step.inner = way_of(field.struct)
            if step.inner is None:
                return None
        steps.append(step)
    return Way(steps, struct.plan[2] is not None)
