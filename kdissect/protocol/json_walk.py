"""Bytes → Kafka's JSON text, without an object for each value: the fast walk to write a million messages.

It follows the plan that ``decode`` follows, prepared by :mod:`kdissect.protocol.json_plan`. It writes the
text that :func:`~kdissect.protocol.json_form.to_json` and ``dumps`` would make of the values. If the bytes
have a defect, it raises. The caller then drops the written text and decodes the values.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Protocol

from kdissect.model import DecodeError
from kdissect.protocol import json_plan, plan
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import read_count, read_presence, read_size, read_tag_count
from kdissect.protocol.json_form import dumps, java_double
from kdissect.protocol.json_plan import Step, Way
from kdissect.protocol.json_text import JsonText
from kdissect.protocol.schema import UNKNOWN_TAGS
from kdissect.wording import REDACTED

INT8, INT16, INT32, INT64, UINT16, UINT32 = (
    plan.INT8,
    plan.INT16,
    plan.INT32,
    plan.INT64,
    plan.UINT16,
    plan.UINT32,
)
BOOLEAN, UUID, STRING, ARRAY, STRUCT = plan.BOOLEAN, plan.UUID, plan.STRING, plan.ARRAY, plan.STRUCT
COMPACT_STRING, RECORDS, COMPACT_RECORDS = plan.COMPACT_STRING, plan.RECORDS, plan.COMPACT_RECORDS
COMPACT_ARRAY, TAGGED_NULLABLE_STRUCT = plan.COMPACT_ARRAY, plan.TAGGED_NULLABLE_STRUCT
TOPIC, POSITION, UNUSUAL = json_plan.TOPIC, json_plan.POSITION, json_plan.UNUSUAL
PIECE, COMPACT_PIECE = json_plan.PIECE, json_plan.COMPACT_PIECE
SECRET, MARKED = json_plan.SECRET, json_plan.MARKED

_HIDDEN = dumps(REDACTED).encode("ascii")
_UNKNOWN = dumps(UNKNOWN_TAGS).encode("ascii") + b":["


class Records(Protocol):
    """The writer of record sets."""

    def write(
        self, out: JsonText, data: bytes, start: int, size: int, name: bytes, is_metadata: bool
    ) -> None:
        """Write the name of a field and the description of its record set, or nothing.

        :param data: bytes that contain the record set: ``size`` bytes from ``start`` on.
        :param name: the field's name as JSON text, with the text before and after it.
        :param is_metadata: whether the records are from ``__cluster_metadata``.
        :raises DecodeError: the record set has to be written in another way.
        """


class TellsSecrets(Protocol):
    """Decides which values are secrets, if that depends on other values of the message."""

    def hides(self) -> bool:
        """Whether the next possible secret is a secret. The calls come in the order of the wire. Null and
        empty values are left out.

        :raises DecodeError: that cannot be decided.
        """


class Walk:
    """One walk through bytes."""

    __slots__ = (
        *("_has_written", "_is_marked", "_is_metadata", "_position", "cursor", "judge", "out", "records"),
    )

    def __init__(self, cursor: Cursor, out: JsonText) -> None:
        self.cursor = cursor
        self.out = out
        self.records: Records | None = None
        """The writer of record sets, beside their size."""
        self.judge: TellsSecrets | None = None
        """Decides about secrets that depend on other values."""
        self._is_metadata = False
        """Whether one of the structs around is about ``__cluster_metadata``."""
        self._has_written = False
        """Whether a record set was written as one of another topic."""
        self._is_marked = True
        """Whether the latest mark makes values secrets."""
        self._position = 0
        """The position of a part of a record set in the whole set."""

    def begin(self, data: bytes, start: int, end: int) -> None:
        """Begin with other bytes, from ``start`` to ``end``, without a writer of record sets and without
        secrets."""
        cursor = self.cursor
        cursor.data, cursor.position, cursor.end = data, start, end
        cursor.notes.clear()
        self.records = self.judge = None
        self._is_metadata = self._has_written = False
        self._is_marked = True

    def write(self, way: Way) -> None:
        """Write the struct at the cursor's position.

        :raises DecodeError: it has a defect.
        """
        self.cursor.elements_left = self.cursor.limits.message_elements
        self.fields(way)
        if self.cursor.notes:
            raise DecodeError("something is wrong", self.cursor.position)

    def fields(self, way: Way) -> None:
        """Write a struct."""
        out, outer = self.out, self._is_metadata
        begun = out.size()
        anchors: list[int] | None = None
        if not way.steps:
            out.put(b"{")
        for step in way.steps:
            if step.is_anchor:
                if anchors is None:
                    anchors = []
                anchors.append(out.size())
            out.put(step.before)
            self.value(step)
        if way.is_flexible:
            cursor, raw = self.cursor, self.cursor.data
            if cursor.position < cursor.end and raw[cursor.position] == 0:  # in nearly all cases
                cursor.position += 1
            else:
                count = read_tag_count(cursor)
                if count:
                    self.tagged(way, count, begun, anchors)
        self._is_metadata = outer
        out.put(b"}")

    def tagged(self, way: Way, count: int, begun: int, anchors: list[int] | None) -> None:
        """Write the tagged fields of a struct. On the wire they come last. In JSON, fields of the definition
        come in its order. So each is written at the end, and moved to its place.

        :param begun: where the struct begins in the text.
        :param anchors: where those fields begin in the text that tagged fields must precede.
        """
        cursor, out = self.cursor, self.out
        unknown: list[bytes] = []
        later: list[tuple[int, Step, int, int]] = []
        previous = -1
        moved = 0  # bytes that were moved before the next anchors
        for _ in range(count):
            tag = cursor.read_unsigned_varint()
            size = cursor.read_unsigned_varint()
            if tag <= previous or size > cursor.end - cursor.position:
                raise DecodeError("tags out of order, or one that breaks off", cursor.position)
            previous = tag
            step = _find(way.tags, tag)
            if step is None:
                unknown.append(b'{"tag":%d,"data":%b}' % (tag, self._unknown(way, size)))
            elif way.is_ordered:
                moved = self._tagged(step, cursor.position + size, begun, anchors, moved)
            else:
                start = cursor.take(size)
                later.append((step.rank, step, start, start + size))
        if later:
            end = cursor.position
            for _, step, start, stop in sorted(later, key=itemgetter(0)):
                cursor.position = start
                moved = self._tagged(step, stop, begun, anchors, moved)
            cursor.position = end
        if unknown:
            if out.size() > begun + 1:
                out.put(b",")
            out.put(_UNKNOWN + b",".join(unknown) + b"]")

    def _tagged(self, step: Step, end: int, begun: int, anchors: list[int] | None, moved: int) -> int:
        """Write a tagged field, which fills the bytes to ``end``. The tagged fields before it in the
        definition are already written.

        :param moved: the number of bytes already moved before its anchor. The new number is returned.
        """
        cursor, out, outer_end = self.cursor, self.out, self.cursor.end
        at = out.size()
        place = -1 if anchors is None or step.anchor < 0 else anchors[step.anchor]
        # The brace stays before the field that was the first, and the comma comes after the moved field.
        is_first = place == begun
        if not is_first and at > begun + 1:
            out.put(b",")
        out.put(step.before)
        value_at = out.size()
        cursor.end = end
        self.value(step)
        cursor.end = outer_end
        if cursor.position != end:
            raise DecodeError("bytes are left in a tagged field", cursor.position)
        if out.is_since(value_at, step.default):
            out.cut(at)
            return moved
        if place < 0:
            return moved
        if is_first:
            out.put(b",")
            place += 1
        size = out.size() - at
        out.move(at, place + moved)
        return moved + size

    def _unknown(self, way: Way, size: int) -> bytes:
        """The text of a tagged field that the definition does not have."""
        out, at = self.out, self.out.size()
        start = self.cursor.take(size)
        if way.hides_unknown:
            out.put(_HIDDEN)
        else:
            out.base64(self.cursor.data, start, size)
        text = out.since(at)
        out.cut(at)
        return text

    def value(self, step: Step) -> None:
        """Write a value."""
        cursor, out, opcode = self.cursor, self.out, step.opcode
        at, raw = cursor.position, cursor.data
        left = cursor.end - at
        # Nearly all values are of these types, and are read in place. If bytes are missing, the cursor raises
        # the error.
        if opcode == INT32 and left >= 4:
            cursor.position = at + 4
            out.number(_int16(raw, at) * 0x1_0000 + (raw[at + 2] << 8 | raw[at + 3]))
        elif opcode == INT16 and left >= 2:
            cursor.position = at + 2
            out.number(_int16(raw, at))
        elif opcode == INT32:
            out.number(cursor.read_int32())
        elif opcode == INT16:
            out.number(cursor.read_int16())
        elif opcode == INT64:
            out.number(cursor.read_int64())
        elif opcode in (STRING, COMPACT_STRING):
            size = read_size(cursor, opcode, step.nullable)
            if size < 0:
                out.put(b"null")
            else:
                start = cursor.take(size)
                if not out.string(cursor.data, start, size):
                    raise DecodeError("not UTF-8", start)
        elif opcode in (ARRAY, COMPACT_ARRAY):
            self.array(step)
        elif opcode == INT8:
            out.number(cursor.read_int8())
        elif opcode == BOOLEAN:
            out.put(b"true" if cursor.read_boolean() else b"false")
        elif opcode == UUID:
            start = cursor.take(16)
            out.uuid(cursor.data, start)
        elif opcode == UINT16:
            out.number(cursor.read_uint16())
        elif opcode == UINT32:
            out.number(cursor.read_uint32())
        elif opcode < STRING:
            out.put(java_double(cursor.read_float64()).encode("ascii"))
        elif opcode in (RECORDS, COMPACT_RECORDS):
            self.record_set(step, opcode, False)
        elif opcode < ARRAY:
            size = read_size(cursor, opcode, step.nullable)
            if size < 0:
                out.put(b"null")
            else:
                start = cursor.take(size)
                out.base64(cursor.data, start, size)
        elif opcode <= TAGGED_NULLABLE_STRUCT:
            if step.inner is not None and (opcode == STRUCT or read_presence(cursor, opcode)):
                self.fields(step.inner)
            else:
                out.put(b"null")
        elif opcode == POSITION:
            self._position = cursor.read_int64()
            out.number(self._position)
        elif opcode in (PIECE, COMPACT_PIECE):
            self.record_set(step, RECORDS if opcode == PIECE else COMPACT_RECORDS, self._position != 0)
        elif step.element is not None:
            self.special(step, step.element)

    def special(self, step: Step, element: Step) -> None:
        """Write a topic or a possible secret, and refuse an unusual value."""
        cursor, out, opcode = self.cursor, self.out, step.opcode
        if opcode == UNUSUAL:
            raise DecodeError("unusual", cursor.position)
        start, begun = cursor.position, out.size()
        self.value(element)
        if opcode == TOPIC:
            size = cursor.position - start
            if size == len(step.word) and cursor.data[start : start + size] == step.word:
                if self._has_written:
                    raise DecodeError("a topic that is told behind its records", start)
                self._is_metadata = True
            return
        if step.mark >= 0:
            if step.mark >= cursor.end - cursor.position:
                raise DecodeError("no mark", cursor.position)
            self._is_marked = cursor.data[cursor.position + step.mark] != 0
        # Null and empty values are no secrets.
        written = out.size() - begun
        if written == 2 or (written == 4 and out.since(begun) == b"null"):
            return
        if opcode == MARKED:
            hides = self._is_marked
        else:
            hides = opcode == SECRET or self.judge is None or self.judge.hides()
        if hides:
            out.cut(begun)
            out.put(_HIDDEN)

    def record_set(self, step: Step, opcode: int, is_piece: bool) -> None:
        """Write the size of a record set, and its description.

        :param is_piece: whether it is a part from the middle of a set, which has no description.
        """
        cursor, out = self.cursor, self.out
        size = read_size(cursor, opcode, step.nullable)
        if size < 0:
            out.put(step.plain_before)
            out.put(b"null")
            return
        start = cursor.take(size)
        out.put(step.size_before)
        out.number(size)
        if self.records is not None and not is_piece:
            self._has_written = self._has_written or not self._is_metadata
            self.records.write(out, cursor.data, start, size, step.plain_before, self._is_metadata)

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


def _int16(raw: bytes, at: int) -> int:
    """The int16 at a position."""
    value = raw[at] << 8 | raw[at + 1]
    return value - 0x1_0000 if value > 0x7FFF else value


def _find(steps: list[Step], tag: int) -> Step | None:
    """The step of a tagged field; None if the definition does not have it."""
    for step in steps:
        if step.tag == tag:
            return step
    return None
