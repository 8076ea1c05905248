"""Bytes → what every listing asks of a message, without a value made of anything else.

Its topics, its error codes, where its records stand: the walk that a million lines take, ten times faster
than decoding. The plan of a struct is compiled once into a program, a few bytes for each field, and the walk
runs it. What is asked it notes, all else it passes. It gives None where anything is unusual: a defect, bytes
left over, a wanted tagged field. Then the caller decodes the values. So it must never give anything that they
would not.

Compiled, ``raw`` is a pointer to the bytes: every position is checked before it is looked at.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from kdissect.limits import Limits
from kdissect.protocol import plan
from kdissect.protocol.cursor import Cursor, uuid_text
from kdissect.protocol.entities import GROUP, TRANSACTIONAL_ID, has_typed, names_one
from kdissect.protocol.schema import Field, Struct
from kdissect.protocol.topics import IDS, NAMES, is_topic, teaches

PASS, ERROR, ACKS, THROTTLE, TEXT, BYTES, RECORDS, TOPIC_ID, LIST, MAYBE, STRUCT, TAGS, LEAVE = range(13)
SESSION = 13
"""The steps of a program. Numbers of two bytes follow some of them, highest first:

| step | what it does | numbers |
|---|---|---|
| ``PASS`` | passes bytes | how many |
| ``ERROR``, ``ACKS``, ``THROTTLE``, ``SESSION`` | reads an integer that is asked for | |
| ``TEXT`` | reads a string | :data:`COMPACT` …, what it names |
| ``BYTES``, ``RECORDS`` | passes bytes, notes records | :data:`COMPACT` … |
| ``TOPIC_ID`` | reads a topic's id | whether it teaches a name |
| ``LIST`` | goes through an array | :data:`COMPACT` …, least bytes of an element, its bytes or \
:data:`OPEN`, bytes of the program of an element, which follows |
| ``MAYBE`` | goes through a struct that may be null | :data:`COMPACT` if a varint tells, bytes of its \
program |
| ``STRUCT`` | goes through a struct that has a topic's id and name | bytes of its program |
| ``TAGS`` | goes through tagged fields | bytes of what follows: of each that is known its tag, the \
bytes of its program, the program |
| ``LEAVE`` | gives up | |
"""

COMPACT, NULLABLE = 1, 2
"""Whether a length is a varint; whether there may be null."""
OPEN = 0xFFFF
"""Elements have no fixed size."""

THROTTLE_FIELD = "throttleTimeMs"
"""An int32, of most responses."""
SESSION_FIELD = "sessionId"
"""An int32, of a Fetch: the fetch session (KIP-227)."""

NOTHING, A_TOPIC, A_GROUP, A_TRANSACTIONAL_ID = range(4)
"""What a string names."""
BESIDE_ID = 4
"""Added to it: the name of the topic whose id stands beside it."""

_MOST_IDS = 4_096
"""Topic ids whose text is kept."""
_ids: dict[bytes, str] = {}
_ZERO = bytes(16)
_PLAIN_BYTES = 6
"""Of the program of a struct that has only numbers, and no tagged fields that are known."""
_SHORT = 64
"""A string up to so many bytes is looked at byte by byte: is it ASCII?"""

_LOW = 0xFFFF_FFFF
"""The lower 32 bits; compiled, a number of C. Written out in an expression it would be an object."""
_NO_VARINT = -1 << 32
"""What is below 0, and so are its upper bits."""

_UNUSUAL = -1
"""What a walk gives in place of a position where something is out of the ordinary."""


class Survey:
    """What was found."""

    __slots__ = (
        *("_elements", "acks", "error", "errors", "groups", "mentions", "records", "session_id", "taught"),
        *("throttle_ms", "transactional_ids"),
    )

    def __init__(self) -> None:
        self.acks = -1
        """Of a Produce request."""
        self.error = 0
        """The first error code that is not 0."""
        self.errors: list[int] | None = None
        """All of them, in the order of the wire; None for none."""
        self.mentions: list[tuple[str | None, str | None]] = []
        """Every topic, as :func:`~kdissect.protocol.topics.mentioned_topics` gives them."""
        self.records: list[int] = []
        """Where each record set begins and ends, in the buffer."""
        self.taught: list[tuple[str, str]] | None = None
        """Every topic id that stands beside a name, and that name; None for none."""
        self.groups: list[str] | None = None
        """Ids of groups; None for none."""
        self.transactional_ids: list[str] | None = None
        self.throttle_ms = 0
        """How long a response says that a quota holds the client back, ms."""
        self.session_id = 0
        """The fetch session of a Fetch; 0 where it has none."""
        self._elements = 0
        """How many more elements the message may have."""


class Route:
    """The way through a message.

    :ivar program: see :data:`LEAVE`.
    """

    __slots__ = ("program",)

    def __init__(self, program: bytes) -> None:
        self.program = program


def is_error_code(field: Field) -> bool:
    """Whether a field is an error code, which is 0 where all is well."""
    return field.type == "int16" and field.name.endswith(("ErrorCode", "errorCode"))


def survey(way: Route, cursor: Cursor) -> Survey | None:
    """Survey the struct that begins where the cursor stands, and which must fill its bytes to the end; None
    where it has to be decoded."""
    return survey_at(way, cursor.data, cursor.position, cursor.end, cursor.limits)


def survey_at(way: Route, data: bytes, start: int, end: int, limits: Limits) -> Survey | None:
    """The same of the bytes from ``start`` to ``end``."""
    # Made part by part: compiled, that is several times faster than a call of the class.
    found = Survey.__new__(Survey)
    found.acks, found.error, found.throttle_ms, found.session_id = -1, 0, 0, 0
    found.mentions, found.records = [], []
    found.errors = found.taught = found.groups = found.transactional_ids = None
    found._elements = limits.message_elements
    code = way.program
    try:
        position = _walk(code, 0, len(code), data, start, end, found, limits)
    except UnicodeDecodeError:
        return None
    return found if position == end else None


def _walk(
    code: bytes, at: int, stop: int, data: bytes, position: int, end: int, found: Survey, limits: Limits
) -> int:
    """Run the program from ``at`` to ``stop`` over the bytes from ``position`` to ``end``. Gives where it
    ended, or :data:`_UNUSUAL`."""
    raw, program = data, code
    name = topic_id = ""
    id_at = -1
    teaches = False
    while at < stop:
        step = program[at]
        at += 1
        if step == PASS:
            size = program[at] << 8 | program[at + 1]
            at += 2
            if size > end - position:
                return _UNUSUAL
            position += size
        elif step in (TEXT, BYTES, RECORDS):
            form = program[at] << 8 | program[at + 1]
            at += 2
            if form & COMPACT:
                size = _varint(raw, position, end)
                position = size >> 32
                size = (size & _LOW) - 1
                if position < 0:
                    return _UNUSUAL
            elif step == TEXT:
                if end - position < 2:
                    return _UNUSUAL
                size = _int16(raw, position)
                position += 2
            else:
                if end - position < 4:
                    return _UNUSUAL
                size = _int32(raw, position)
                position += 4
            what = 0
            if step == TEXT:
                what = program[at + 1]
                at += 2
            if size < 0:
                if size != -1 or not form & NULLABLE:
                    return _UNUSUAL
                continue
            if size > end - position:
                return _UNUSUAL
            if step == TEXT:
                if what:
                    text = raw[position : position + size].decode("utf-8")
                    _note(found, text, what)
                    if what & BESIDE_ID and size:
                        name = text
                        if id_at >= 0:
                            del found.mentions[id_at]
                            id_at = -1
                elif not _is_ascii(raw, position, size):
                    raw[position : position + size].decode("utf-8")  # it must be UTF-8 all the same
            elif step == RECORDS:
                found.records.append(position)
                found.records.append(position + size)
            position += size
        elif step == LIST:
            form = program[at] << 8 | program[at + 1]
            least = program[at + 2] << 8 | program[at + 3]
            width = program[at + 4] << 8 | program[at + 5]
            length = program[at + 6] << 8 | program[at + 7]
            at += 8
            if form & COMPACT:
                count = _varint(raw, position, end)
                position = count >> 32
                count = (count & _LOW) - 1
                if position < 0:
                    return _UNUSUAL
            else:
                if end - position < 4:
                    return _UNUSUAL
                count = _int32(raw, position)
                position += 4
            if count < 0:
                if count != -1 or not form & NULLABLE:
                    return _UNUSUAL
            elif count:
                found._elements -= count
                if count * least > end - position or found._elements < 0 or count > limits.elements:
                    return _UNUSUAL
                if width != OPEN:
                    if count * width > end - position:
                        return _UNUSUAL
                    position += count * width
                else:
                    if length == _PLAIN_BYTES and program[at] == PASS and program[at + 3] == TAGS:
                        # As the versions that a broker has: numbers, and hardly ever a tagged field.
                        width = program[at + 1] << 8 | program[at + 2]
                        while count > 0 and end - position > width and raw[position + width] == 0:
                            position += width + 1
                            count -= 1
                    while count > 0:
                        position = _walk(code, at, at + length, data, position, end, found, limits)
                        if position < 0:
                            return _UNUSUAL
                        count -= 1
            at += length
        elif step == TAGS:
            length = program[at] << 8 | program[at + 1]
            at += 2
            if position < end and raw[position] == 0:
                position += 1
            else:
                position = _walk_tags(code, at, at + length, data, position, end, found, limits)
                if position < 0:
                    return _UNUSUAL
            at += length
        elif step == ERROR:
            if end - position < 2:
                return _UNUSUAL
            size = _int16(raw, position)
            position += 2
            if size:
                if found.errors is None:
                    found.errors = []
                    found.error = size
                found.errors.append(size)
        elif step == TOPIC_ID:
            teaches = program[at + 1] != 0
            at += 2
            if end - position < 16:
                return _UNUSUAL
            topic_id = _id_text(data[position : position + 16])
            position += 16
            if topic_id and not name:
                id_at = len(found.mentions)
                found.mentions.append((None, topic_id))
        elif step in (STRUCT, MAYBE):
            is_there = True
            if step == MAYBE:
                form = program[at] << 8 | program[at + 1]
                at += 2
                if form & COMPACT:
                    count = _varint(raw, position, end)
                    position = count >> 32
                    if position < 0:
                        return _UNUSUAL
                    is_there = count & _LOW != 0
                else:
                    if position >= end or (raw[position] != 1 and raw[position] != 0xFF):
                        return _UNUSUAL
                    is_there = raw[position] == 1
                    position += 1
            length = program[at] << 8 | program[at + 1]
            at += 2
            if is_there:
                position = _walk(code, at, at + length, data, position, end, found, limits)
                if position < 0:
                    return _UNUSUAL
            at += length
        elif step == ACKS:
            if end - position < 2:
                return _UNUSUAL
            found.acks = _int16(raw, position)
            position += 2
        elif step == THROTTLE:
            if end - position < 4:
                return _UNUSUAL
            found.throttle_ms = _int32(raw, position)
            position += 4
        elif step == SESSION:
            if end - position < 4:
                return _UNUSUAL
            found.session_id = _int32(raw, position)
            position += 4
        else:
            return _UNUSUAL
    if teaches and name and topic_id:
        if found.taught is None:
            found.taught = []
        found.taught.append((topic_id, name))
    return position


def _walk_tags(
    code: bytes, at: int, stop: int, data: bytes, position: int, end: int, found: Survey, limits: Limits
) -> int:
    """Go through tagged fields, of which those that are known stand from ``at`` to ``stop``."""
    raw, program = data, code
    head = _varint(raw, position, end)
    position = head >> 32
    count = head & _LOW
    if position < 0:
        return _UNUSUAL
    found._elements -= count
    if count * 2 > end - position or found._elements < 0 or count > limits.tagged_fields:
        return _UNUSUAL
    previous = -1
    while count > 0:
        count -= 1
        head = _varint(raw, position, end)
        position = head >> 32
        tag = head & _LOW
        if position < 0 or tag <= previous:
            return _UNUSUAL
        previous = tag
        head = _varint(raw, position, end)
        position = head >> 32
        size = head & _LOW
        if position < 0 or size > end - position:
            return _UNUSUAL
        known = at
        while known < stop:
            length = program[known + 2] << 8 | program[known + 3]
            if program[known] << 8 | program[known + 1] == tag:
                reached = _walk(
                    code, known + 4, known + 4 + length, data, position, position + size, found, limits
                )
                if reached != position + size:
                    return _UNUSUAL
                break
            known += 4 + length
        position += size
    return position


def _varint(raw: bytes, position: int, end: int) -> int:
    """An unsigned varint, of at most five bytes and 32 bits, and above these 32 the position behind it; below
    0 where there is none."""
    value = shift = 0
    while position < end and shift < 35:
        byte = raw[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return _NO_VARINT if value >> 32 else position << 32 | value
        shift += 7
    return _NO_VARINT


def _int16(raw: bytes, at: int) -> int:
    value = raw[at] << 8 | raw[at + 1]
    return value - 0x1_0000 if value > 0x7FFF else value


def _int32(raw: bytes, at: int) -> int:
    high = raw[at]
    if high > 0x7F:
        high -= 0x100
    return high * 0x100_0000 + (raw[at + 1] << 16 | raw[at + 2] << 8 | raw[at + 3])


def _is_ascii(raw: bytes, at: int, size: int) -> bool:
    """Whether it is known that these bytes are ASCII."""
    if size > _SHORT:
        return False
    while size > 0:
        size -= 1
        if raw[at + size] > 0x7F:
            return False
    return True


def _id_text(data: bytes) -> str:
    """A topic id in Kafka's form; empty for that of none."""
    text = _ids.get(data)
    if text is None:
        if len(_ids) >= _MOST_IDS:
            _ids.clear()
        text = _ids[data] = "" if data == _ZERO else uuid_text(data)
    return text


def _note(found: Survey, text: str, what: int) -> None:
    """Note a string that names something."""
    what &= BESIDE_ID - 1
    if what == A_TOPIC:
        found.mentions.append((text, None))
    elif what == A_GROUP:
        found.groups = _with(found.groups, text)
    elif what == A_TRANSACTIONAL_ID:
        found.transactional_ids = _with(found.transactional_ids, text)


def _with(names: list[str] | None, name: str) -> list[str] | None:
    """Names with one more; an empty one is that of none."""
    if not name:
        return names
    if names is None:
        return [name]
    names.append(name)
    return names


# -- programs ---------------------------------------------------------------------------------------


@cache
def route(struct: Struct) -> Route | None:
    """The way through a struct; None where no walk can tell what is asked: another field may tell what one
    names."""
    program = _struct(struct)
    return None if program is None or len(program) > OPEN else Route(program)


def _struct(struct: Struct) -> bytes | None:
    """The program of a struct."""
    if has_typed(struct):
        return None
    names = {field.name for field in struct.fields}
    if not names.isdisjoint(IDS) and not names.isdisjoint(NAMES) and not _is_simple(struct):
        return None
    steps: list[bytes] = []
    for opcode, name, argument in struct.plan[1]:
        step = _field(struct, struct.by_name[name], opcode, argument)
        if step is None:
            return None
        if steps and steps[-1][0] == PASS == step[0] and len(step) == len(steps[-1]) == 3:
            steps[-1] = bytes((PASS,)) + _number(_two(steps[-1], 1) + _two(step, 1))
        else:
            steps.append(step)
    if struct.plan[2] is not None:
        known = []
        for tag, (opcode, name, argument) in struct.plan[2]:
            step = _field(struct, struct.by_name[name], opcode, argument)
            if step is None or _asks(struct.by_name[name]):
                # What it says has its place elsewhere than on the wire.
                step = bytes((LEAVE,))
            known.append(_number(tag) + _number(len(step)) + step)
        steps.append(bytes((TAGS,)) + _number(sum(map(len, known))) + b"".join(known))
    return b"".join(steps)


def _is_simple(struct: Struct) -> bool:
    """Whether the topic of a struct has one id and one name, neither of them in a tagged field."""
    told = [field for field in struct.fields if field.name in (*IDS, *NAMES)]
    types = sorted(field.type for field in told)
    return types == ["string", "uuid"] and all(field.tag is None for field in told)


def _field(struct: Struct, field: Field, opcode: int, argument: Any) -> bytes | None:
    if opcode in (plan.ARRAY, plan.COMPACT_ARRAY):
        nullable, element, inner, least = argument
        program = _element(struct, field, element, inner)
        if program is None or least > OPEN or len(program) > OPEN:
            return None
        width = _two(program, 1) if len(program) == 3 and program[0] == PASS else OPEN
        form = _form(opcode == plan.COMPACT_ARRAY, nullable)
        return bytes((LIST,)) + form + b"".join(map(_number, (least, width, len(program)))) + program
    if opcode >= plan.STRUCT:
        assert field.struct is not None
        program = _struct(field.struct)
        if program is None or len(program) > OPEN:
            return None
        if opcode == plan.STRUCT:
            return bytes((STRUCT,)) + _number(len(program)) + program
        form = _form(opcode == plan.TAGGED_NULLABLE_STRUCT, True)
        return bytes((MAYBE,)) + form + _number(len(program)) + program
    return _leaf(struct, field, opcode, bool(argument))


def _element(struct: Struct, field: Field, element: int, inner: Any) -> bytes | None:
    if element == plan.STRUCT:
        assert field.struct is not None
        return _struct(field.struct)
    return _leaf(struct, field, element, bool(inner))


def _leaf(struct: Struct, field: Field, opcode: int, nullable: bool) -> bytes | None:
    """:param struct: the one that it stands in."""
    if opcode < plan.STRING:
        if opcode == plan.UUID and is_topic(field):
            return bytes((TOPIC_ID,)) + _number(teaches(struct, field))
        if is_error_code(field):
            return bytes((ERROR,))
        if field.name == "acks":
            return bytes((ACKS,))
        if field.name == THROTTLE_FIELD:
            return bytes((THROTTLE,))
        if field.name == SESSION_FIELD and field.type == "int32":
            return bytes((SESSION,))
        return bytes((PASS,)) + _number(plan.WIDTHS[opcode])
    form = _form(opcode in plan.COMPACT, nullable)
    if opcode > plan.COMPACT_STRING:
        if field.name == "unalignedRecords":
            return None  # whether these are records depends on another field
        return bytes((RECORDS if opcode >= plan.RECORDS else BYTES,)) + form
    what = NOTHING
    if is_topic(field):
        what = A_TOPIC
    elif names_one(field, GROUP):
        what = A_GROUP
    elif names_one(field, TRANSACTIONAL_ID):
        what = A_TRANSACTIONAL_ID
    if field.name in NAMES and any(each.name in IDS for each in struct.fields):
        what += BESIDE_ID
    return bytes((TEXT,)) + form + _number(what)


def _asks(field: Field) -> bool:
    """Whether anything is asked of a field."""
    if field.struct is not None:
        return any(_asks(each) for each in field.struct.fields)
    if is_error_code(field) or is_topic(field) or field.name in ("acks", THROTTLE_FIELD, SESSION_FIELD):
        return True
    return field.type == "records" or names_one(field, GROUP) or names_one(field, TRANSACTIONAL_ID)


def _form(is_compact: bool, nullable: bool) -> bytes:
    return _number((COMPACT if is_compact else 0) | (NULLABLE if nullable else 0))


def _number(value: int) -> bytes:
    return value.to_bytes(2, "big")


def _two(program: bytes, at: int) -> int:
    return program[at] << 8 | program[at + 1]
