"""Bytes → values: the walk that decodes message bodies, headers and internal records.

Values are bool, int, float, str, bytes (also of records), a uuid in Kafka's text form, list, dict and None,
under Kafka's JSON names. Absent tagged fields are not in the dict; unknown ones are in
``_unknownTaggedFields``.

If bytes end early, everything read so far is in the dict that was passed in: children are attached before
they are read. The cursor is then at the beginning of the field that failed. Decoding goes on after some
defects, which become the cursor's ``notes``. These are null if the schema forbids it, tags out of order, and
a tagged field that does not fill its declared size.
"""

from __future__ import annotations

from typing import Any, TypeVar

from kdissect.limits import DEFAULTS
from kdissect.model import DecodeError
from kdissect.protocol import plan
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.plan import (
    ARRAY,
    BOOLEAN,
    COMPACT_ARRAY,
    COMPACT_BYTES,
    COMPACT_RECORDS,
    COMPACT_STRING,
    INT8,
    INT16,
    INT32,
    INT64,
    NULLABLE_STRUCT,
    STRING,
    STRUCT,
    UINT16,
    UINT32,
    UUID,
)
from kdissect.protocol.schema import UNKNOWN_TAGS, Struct
from kdissect.wording import plural

Known = TypeVar("Known")

_ELEMENTS = DEFAULTS.elements


def decode(struct: Struct, cursor: Cursor, into: dict[str, Any] | None = None) -> dict[str, Any]:
    """The values of one struct, read from the cursor's position.

    :param into: the dict to fill; after an error it has the values read so far.
    :raises DecodeError: bytes are missing, or a length or count is impossible.
    """
    cursor.elements_left = cursor.limits.message_elements
    values: dict[str, Any] = {} if into is None else into
    _read_struct(struct.plan, cursor, values)
    return values


def read_fixed(cursor: Cursor, opcode: int) -> Any:
    """Read a value of fixed width, with an opcode below ``STRING``. Frequent opcodes are checked first."""
    if opcode == INT32:
        return cursor.read_int32()
    if opcode == INT16:
        return cursor.read_int16()
    if opcode == INT64:
        return cursor.read_int64()
    if opcode == INT8:
        return cursor.read_int8()
    if opcode == BOOLEAN:
        return cursor.read_boolean()
    if opcode == UUID:
        return cursor.read_uuid()
    if opcode == UINT16:
        return cursor.read_uint16()
    return cursor.read_uint32() if opcode == UINT32 else cursor.read_float64()


def _read_struct(form: plan.Plan, cursor: Cursor, into: dict[str, Any]) -> None:
    _, fields, tags = form
    for opcode, name, argument in fields:
        if opcode < STRING:
            into[name] = read_fixed(cursor, opcode)
        elif opcode < ARRAY:
            into[name] = read_variable(cursor, opcode, argument)
        else:
            _read_compound(cursor, opcode, name, argument, into)
    if tags is not None:
        _read_tagged(tags, cursor, into)


def _read_compound(cursor: Cursor, opcode: int, name: str, argument: Any, into: dict[str, Any]) -> None:
    """Read an array or a struct."""
    if opcode > COMPACT_ARRAY:
        if opcode != STRUCT and not read_presence(cursor, opcode):
            into[name] = None
            return
        child: dict[str, Any] = {}
        into[name] = child
        _read_struct(argument, cursor, child)
        return
    nullable, element, inner, least = argument
    count = read_count(cursor, opcode, nullable, least)
    if count < 0:
        into[name] = None
        return
    items: list[Any] = []
    into[name] = items
    read_elements(cursor, element, inner, count, items)


def read_elements(cursor: Cursor, element: int, inner: Any, count: int, items: list[Any]) -> None:
    """Read the next elements of an array into ``items``."""
    if element == STRUCT:
        for _ in range(count):
            item: dict[str, Any] = {}
            items.append(item)
            _read_struct(inner, cursor, item)
    elif element < STRING:
        for _ in range(count):
            items.append(read_fixed(cursor, element))
    else:
        for _ in range(count):
            items.append(read_variable(cursor, element, inner))


def _read_tagged(
    tags: tuple[tuple[int, tuple[int, str, Any]], ...], cursor: Cursor, into: dict[str, Any]
) -> None:
    count = read_tag_count(cursor)
    previous = -1
    for _ in range(count):
        tag, _, size = read_tag_head(cursor, previous)
        previous = tag
        known = find_tag(tags, tag)
        if known is None:
            into.setdefault(UNKNOWN_TAGS, []).append({"tag": tag, "data": cursor.read_bytes(size)})
            continue
        opcode, name, argument = known
        outer_end, start = cursor.end, cursor.position
        cursor.end = start + size
        try:
            if opcode < STRING:
                into[name] = read_fixed(cursor, opcode)
            elif opcode < ARRAY:
                into[name] = read_variable(cursor, opcode, argument)
            else:
                _read_compound(cursor, opcode, name, argument, into)
        except DecodeError as error:
            note_broken_tag(cursor, name, error)
        else:
            note_remainder(cursor, name)
        # The size is known whatever the contents are, so the walk goes on after it.
        cursor.position, cursor.end = start + size, outer_end


# -- parts that annotate reads in the same way -------------------------------------------------------


def read_variable(cursor: Cursor, opcode: int, nullable: bool) -> str | bytes | None:
    """Read a string, bytes or records, with the length before it."""
    length = read_size(cursor, opcode, nullable)
    if length < 0:
        return None
    return cursor.read_text(length) if opcode <= COMPACT_STRING else cursor.read_bytes(length)


def read_size(cursor: Cursor, opcode: int, nullable: bool) -> int:
    """Read the length of a string, bytes or records, and check that so many bytes remain; below 0 for
    null."""
    start = cursor.position
    if opcode in (COMPACT_STRING, COMPACT_BYTES, COMPACT_RECORDS):
        length = cursor.read_unsigned_varint() - 1
    else:
        length = cursor.read_int16() if opcode == STRING else cursor.read_int32()
    if length < 0:
        _note_null(cursor, start, length, nullable)
    elif length > cursor.end - cursor.position:
        left = cursor.end - cursor.position
        offset, cursor.position = cursor.position, start
        text = f"announces {plural(length, 'byte')}, but {plural(left, 'is', 'are')} left"
        raise DecodeError(text, offset, "truncated")
    return length


def read_count(cursor: Cursor, opcode: int, nullable: bool, least: int) -> int:
    """Read the number of elements of an array, -1 for null. Each element needs at least ``least`` bytes."""
    start = cursor.position
    count = cursor.read_unsigned_varint() - 1 if opcode == COMPACT_ARRAY else cursor.read_int32()
    if count < 0:
        _note_null(cursor, start, count, nullable)
        return -1
    granted = cursor.elements_left - count
    most = _ELEMENTS if cursor.limits is DEFAULTS else cursor.limits.elements
    if count * least > cursor.end - cursor.position or granted < 0 or count > most:
        raise _too_many(cursor, start, count, "element", least, cursor.limits.elements)
    cursor.elements_left = granted
    return count


def read_presence(cursor: Cursor, opcode: int) -> bool:
    """Whether a nullable struct is present: an int8 (-1, 1), in a tagged field a varint (0, 1)."""
    start = cursor.position
    if opcode != NULLABLE_STRUCT:
        return cursor.read_unsigned_varint() > 0
    value = cursor.read_int8()
    if value not in (-1, 1):
        cursor.notes.append(
            ("malformed", f"announces {value}; a struct is either there (1) or null (-1)", start)
        )
    return value >= 0


def read_tag_count(cursor: Cursor) -> int:
    """Read the number of tagged fields of a struct; each needs at least two bytes."""
    start = cursor.position
    count = cursor.read_unsigned_varint()
    if count:
        granted = cursor.elements_left - count
        if count * 2 > cursor.end - cursor.position or granted < 0 or count > cursor.limits.tagged_fields:
            raise _too_many(cursor, start, count, "tagged field", 2, cursor.limits.tagged_fields)
        cursor.elements_left = granted
    return count


def _too_many(cursor: Cursor, start: int, count: int, what: str, least: int, limit: int) -> DecodeError:
    """The error of an excessive count, with the reason: the remaining bytes, the ``limit`` of one array or
    struct, or the message's limit is too small."""
    left = cursor.end - cursor.position
    kind = "too-many-elements"
    if count * least > left:
        held = plural(left, "byte is", "bytes are")
        kind, why = "truncated", f"but {held} left, and each takes at least {plural(least, 'byte')}"
    elif count > limit:
        why = f"but the limit is {limit:,}"
    else:
        granted = plural(cursor.elements_left, "is", "are")
        why = f"but {granted} left of the message's limit of {cursor.limits.message_elements:,}"
    cursor.position = start
    return DecodeError(f"announces {plural(count, what)}, {why}", start, kind)


def read_tag_head(cursor: Cursor, previous: int) -> tuple[int, int, int]:
    """Read the tag of a tagged field, the position of its size, and its size."""
    start = cursor.position
    tag = cursor.read_unsigned_varint()
    size_at = cursor.position
    try:
        size = cursor.read_unsigned_varint()
    except DecodeError:
        cursor.position = start
        raise
    left = cursor.end - cursor.position
    if size > left:
        cursor.position = start
        text = f"tag {tag} announces {plural(size, 'byte')}, but {plural(left, 'is', 'are')} left"
        raise DecodeError(text, size_at, "truncated")
    if tag <= previous:
        cursor.notes.append(("tag-order", f"tag {tag} comes after tag {previous}", start))
    return tag, size_at, size


def find_tag(tags: tuple[tuple[int, Known], ...], tag: int) -> Known | None:
    """The definition of a tagged field; None if it is unknown."""
    for known, field in tags:
        if known == tag:
            return field
    return None


def note_broken_tag(cursor: Cursor, name: str, error: DecodeError) -> None:
    cursor.notes.append((error.kind, f"in the tagged field {name}: {error.reason}", error.offset))


def note_remainder(cursor: Cursor, name: str) -> None:
    left = cursor.end - cursor.position
    if left:
        message = f"{plural(left, 'byte is', 'bytes are')} left in the tagged field {name}"
        cursor.notes.append(("remainder", message, cursor.position))


def _note_null(cursor: Cursor, start: int, length: int, nullable: bool) -> None:
    if not nullable:
        cursor.notes.append(("unexpected-null", "is null, but the schema does not allow that", start))
    elif length != -1:
        cursor.notes.append(("negative-length", f"the length is {length}; only -1 means null", start))
