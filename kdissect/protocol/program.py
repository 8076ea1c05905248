"""The plan of a struct → the program that :mod:`~kdissect.protocol.survey` runs: a few bytes for each
field."""

from __future__ import annotations

from functools import cache
from typing import Any

from kdissect.protocol import plan
from kdissect.protocol.entities import (
    COORDINATOR_KEYS,
    GROUP,
    KEY_TYPE,
    RESOURCE_PATTERNS,
    TRANSACTIONAL_ID,
    kind_field_of,
    names_one,
    typed,
)
from kdissect.protocol.schema import Field, Struct
from kdissect.protocol.topics import (
    IDENTITY_BY_NAME,
    IDS,
    NAMES,
    RESOURCES,
    identity_part_of,
    is_topic,
    teaches,
)

PASS, ERROR, ACKS, THROTTLE, TEXT, BYTES, RECORDS, TOPIC_ID, LIST, MAYBE, STRUCT, TAGS, LEAVE = range(13)
PARTITION, OFFSET, SESSION, COORDINATOR_TYPE, RESOURCE_TYPE, RESOURCE_PATTERN, REPLICA, DIVERGES = range(
    13, 21
)
APPENDED = 21
"""The steps of a program. Numbers of two bytes follow some of them, highest first:

| step | what it does | numbers |
|---|---|---|
| ``PASS`` | passes bytes | how many |
| ``ERROR``, ``ACKS``, ``THROTTLE``, ``SESSION``, ``COORDINATOR_TYPE`` | reads an integer that is asked \
for | |
| ``TEXT`` | reads a string | :data:`COMPACT` …, what it names |
| ``BYTES``, ``RECORDS`` | passes bytes, notes records | :data:`COMPACT` … |
| ``RESOURCE_TYPE``, ``RESOURCE_PATTERN`` | reads what the resource of its struct is, and whether it is \
named whole | |
| ``REPLICA`` | reads an integer, notes whether it names a broker | |
| ``DIVERGES`` | notes that what follows is there | |
| ``APPENDED`` | reads a time, notes the first that is known | |
| ``PARTITION``, ``OFFSET`` | notes a partition's number or base offset, in programs for places | |
| ``TOPIC_ID`` | reads a topic's id | :data:`TEACHES`, :data:`IDENTIFIES` |
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
"""Whether a length is a varint; whether null is allowed."""
OPEN = 0xFFFF
"""Marks elements without a fixed size."""

THROTTLE_FIELD = "throttleTimeMs"
"""An int32 of most responses."""
SESSION_FIELD = "sessionId"
"""An int32 of a Fetch: the fetch session (KIP-227)."""
REPLICA_FIELD = "preferredReadReplica"
"""An int32 of a Fetch: the replica to ask instead, or -1 (KIP-392)."""
APPENDED_FIELD = "logAppendTimeMs"
"""An int64 of the response to a Produce: the time that the broker gave to the records, or -1."""
DIVERGING_FIELD = "divergingEpoch"
"""A tagged struct of a Fetch: where the log of the fetching replica diverges (KIP-595)."""

NOTHING, A_TOPIC, A_GROUP, A_TRANSACTIONAL_ID = range(4)
"""The kinds of things that a string names."""
BESIDE_ID = 4
"""Added to the kind: the name of the topic whose id is in the same struct."""
IDENTIFIES = 8
"""Added to the kind, and to the number of an id, in programs for places: the topic of the partitions in its
struct."""
A_KEY = 16
"""Instead of a kind: the key of a coordinator. The request has the kind of thing that it names."""
A_RESOURCE = 32
"""Instead of a kind: the name of a resource. The resource's type decides the kind of thing that it names."""
LATER = 64
"""Added to :data:`A_RESOURCE`: the pattern of the name comes after it."""
TEACHES = 1
"""For an id: the topic's name is in the same struct."""
RECORD_FIELD, OFFSET_FIELD = "records", "baseOffset"
"""The only names of fields whose places are noted."""


_ERROR_CODES = ("ErrorCode", "errorCode")
_NUMBERS = frozenset(range(plan.STRING)) - {plan.INT8, plan.UUID}
_ASKED_NUMBERS = frozenset(
    (
        *("acks", THROTTLE_FIELD, SESSION_FIELD, REPLICA_FIELD, OFFSET_FIELD, APPENDED_FIELD),
        *IDENTITY_BY_NAME,
    ),
)
"""The names of the only numbers of more than a byte that a survey reads, beside error codes."""
_ASKED_TEXTS = frozenset((*COORDINATOR_KEYS, *RESOURCES, *IDS, *NAMES, *IDENTITY_BY_NAME, GROUP))
"""The names of the only strings that a survey reads, if the definitions do not have the kind of thing that
they name."""


def is_error_code(field: Field) -> bool:
    """Whether a field is an error code, which is 0 without an error."""
    return field.type == "int16" and field.name.endswith(_ERROR_CODES)


def program_of(struct: Struct, notes_places: bool = False) -> bytes | None:
    """The program of a struct; None if no walk can find the facts: the kind of a name may depend on another
    field.

    :param notes_places: whether it is to note the partitions of records and base offsets. A program without
        them has fewer steps.
    """
    program = _struct(struct, notes_places)
    return None if program is None or len(program) > OPEN else program


def _struct(struct: Struct, notes_places: bool) -> bytes | None:
    """The program of a struct; the parameters are those of :func:`program_of`."""
    if not _is_type_first(struct):
        return None
    names = struct.by_name.keys()
    if not names.isdisjoint(IDS) and not names.isdisjoint(NAMES) and not _is_simple(struct):
        return None
    steps: list[bytes] = []
    passed = 0
    for opcode, name, argument in struct.plan[1]:
        if opcode in _NUMBERS and name not in _ASKED_NUMBERS and not name.endswith(_ERROR_CODES):
            passed += plan.WIDTHS[opcode]
            continue
        step = _field(struct, struct.by_name[name], opcode, argument, notes_places)
        if step is None:
            return None
        if step[0] == PASS and len(step) == 3:
            passed += _two(step, 1)
            continue
        if passed:
            steps.append(bytes((PASS,)) + _number(passed))
            passed = 0
        steps.append(step)
    if passed:
        steps.append(bytes((PASS,)) + _number(passed))
    if struct.plan[2] is not None:
        known = []
        for tag, (opcode, name, argument) in struct.plan[2]:
            step = _field(struct, struct.by_name[name], opcode, argument, notes_places)
            if step is None or _asks(struct.by_name[name]):
                # Its value is at another place than on the wire.
                step = bytes((LEAVE,))
            elif name == DIVERGING_FIELD:
                step = bytes((DIVERGES,)) + step
            known.append(_number(tag) + _number(len(step)) + step)
        steps.append(bytes((TAGS,)) + _number(sum(map(len, known))) + b"".join(known))
    return b"".join(steps)


def _is_type_first(struct: Struct) -> bool:
    """Whether the resource's type precedes its name, and its pattern, if there is one, follows it. None of
    them may be a tagged field."""
    asked = typed(struct).difference(COORDINATOR_KEYS)
    if not asked:
        return True
    plain = [name for _, name, _ in struct.plan[1]]
    for name in asked:
        places = [plain.index(each) if each in plain else -1 for each in (kind_field_of(name), name)]
        behind = [
            plain.index(field.name) if field.tag is None else -1
            for field in struct.fields
            if field.name in RESOURCE_PATTERNS
        ]
        if not -1 < places[0] < places[1] or any(place < places[1] for place in behind):
            return False
    return True


def _is_simple(struct: Struct) -> bool:
    """Whether the topic of a struct has one id and one name, neither of them in a tagged field."""
    told = [field for field in struct.fields if field.name in (*IDS, *NAMES)]
    types = sorted(field.type for field in told)
    return types == ["string", "uuid"] and all(field.tag is None for field in told)


def _field(struct: Struct, field: Field, opcode: int, argument: Any, notes_places: bool) -> bytes | None:
    if opcode in (plan.ARRAY, plan.COMPACT_ARRAY):
        nullable, element, inner, least = argument
        program = _element(struct, field, element, inner, notes_places)
        if program is None or least > OPEN or len(program) > OPEN:
            return None
        width = _two(program, 1) if len(program) == 3 and program[0] == PASS else OPEN
        form = _form(opcode == plan.COMPACT_ARRAY, nullable)
        return bytes((LIST,)) + form + b"".join(map(_number, (least, width, len(program)))) + program
    if opcode >= plan.STRUCT:
        assert field.struct is not None
        program = _struct(field.struct, notes_places)
        if program is None or len(program) > OPEN:
            return None
        if opcode == plan.STRUCT:
            return bytes((STRUCT,)) + _number(len(program)) + program
        form = _form(opcode == plan.TAGGED_NULLABLE_STRUCT, True)
        return bytes((MAYBE,)) + form + _number(len(program)) + program
    return _leaf(struct, field, opcode, bool(argument), notes_places)


def _element(struct: Struct, field: Field, element: int, inner: Any, notes_places: bool) -> bytes | None:
    if element == plan.STRUCT:
        assert field.struct is not None
        return _struct(field.struct, notes_places)
    return _leaf(struct, field, element, bool(inner), notes_places)


def _leaf(struct: Struct, field: Field, opcode: int, nullable: bool, notes_places: bool) -> bytes | None:
    """:param struct: the struct of the field."""
    if opcode < plan.STRING:
        if opcode == plan.UUID and is_topic(field):
            tells = IDENTIFIES if notes_places and _identifies_partition(struct, field) else 0
            return bytes((TOPIC_ID,)) + _number((TEACHES if teaches(struct, field) else 0) | tells)
        if is_error_code(field):
            return bytes((ERROR,))
        if field.name == "acks":
            return bytes((ACKS,))
        if field.name == THROTTLE_FIELD:
            return bytes((THROTTLE,))
        if field.name == SESSION_FIELD and field.type == "int32":
            return bytes((SESSION,))
        if field.name == REPLICA_FIELD and field.type == "int32":
            return bytes((REPLICA,))
        if opcode == plan.INT64 and field.name == APPENDED_FIELD:
            return bytes((APPENDED,))
        if opcode == plan.INT8 and field.name == KEY_TYPE:
            return bytes((COORDINATOR_TYPE,))
        if opcode == plan.INT8 and not typed(struct).isdisjoint(RESOURCES):
            if field.name in map(kind_field_of, typed(struct)):
                return bytes((RESOURCE_TYPE,))
            if field.name in RESOURCE_PATTERNS:
                return bytes((RESOURCE_PATTERN,))
        if notes_places and opcode == plan.INT32 and _identifies_partition(struct, field):
            return bytes((PARTITION,))
        if notes_places and opcode == plan.INT64 and field.name == OFFSET_FIELD:
            return bytes((OFFSET,))
        return bytes((PASS,)) + _number(plan.WIDTHS[opcode])
    form = _form(opcode in plan.COMPACT, nullable)
    if opcode <= plan.COMPACT_STRING and field.entity is None and field.name not in _ASKED_TEXTS:
        return bytes((TEXT,)) + form + _number(NOTHING)
    if opcode > plan.COMPACT_STRING:
        if field.name == "unalignedRecords":
            return None  # another field decides whether these are records
        return bytes((RECORDS if opcode >= plan.RECORDS else BYTES,)) + form
    what = NOTHING
    if field.name in typed(struct) and field.name in RESOURCES:
        has_pattern = any(each.name in RESOURCE_PATTERNS for each in struct.fields)
        what = A_RESOURCE + (LATER if has_pattern else 0)
    elif field.name in typed(struct):
        what = A_KEY
    elif is_topic(field):
        what = A_TOPIC
    elif names_one(field, GROUP):
        what = A_GROUP
    elif names_one(field, TRANSACTIONAL_ID):
        what = A_TRANSACTIONAL_ID
    if field.name in NAMES and any(each.name in IDS for each in struct.fields):
        what += BESIDE_ID
    if notes_places and _identifies_partition(struct, field):
        what += IDENTIFIES
    return bytes((TEXT,)) + form + _number(what)


@cache
def _has_places(struct: Struct) -> bool:
    """Whether it contains record sets or base offsets."""
    for field in struct.fields:  # a generator would take twice as long
        if _is_place(field) or (field.struct is not None and _has_places(field.struct)):
            return True
    return False


def _is_place(field: Field) -> bool:
    return field.type == "records" or (field.type == "int64" and field.name == OFFSET_FIELD)


_IDENTITY_TYPES = {"topic": "string", "topic id": "uuid", "partition": "int32"}
"""The type of each field that identifies the partition of its struct."""


def _identifies_partition(struct: Struct, field: Field) -> bool:
    """Whether a field identifies the partition of the places in its struct."""
    told = identity_part_of(field.name)
    return told is not None and _IDENTITY_TYPES[told] == field.type and _has_places(struct)


@cache
def identifies_places(struct: Struct) -> bool:
    """Whether each struct with places has its partition before them, and not in tagged fields. The places
    must also have the names that are noted."""
    if not _has_places(struct):
        return True
    is_inside = False
    for field in struct.fields:
        told = identity_part_of(field.name)
        if told is not None and (is_inside or field.tag is not None or _IDENTITY_TYPES[told] != field.type):
            return False
        if _is_place(field):
            is_inside = True
            if field.tag is not None or field.name not in (RECORD_FIELD, OFFSET_FIELD):
                return False
        elif field.struct is not None:
            is_inside = True
            if not identifies_places(field.struct):
                return False
    return True


_ASKED = ("acks", THROTTLE_FIELD, SESSION_FIELD, KEY_TYPE, *COORDINATOR_KEYS, *RESOURCES)


def _asks(field: Field) -> bool:
    """Whether a survey needs a field."""
    if field.struct is not None:
        return any(_asks(each) for each in field.struct.fields)
    if is_error_code(field) or is_topic(field) or field.name in _ASKED:
        return True
    return field.type == "records" or names_one(field, GROUP) or names_one(field, TRANSACTIONAL_ID)


def _form(is_compact: bool, nullable: bool) -> bytes:
    return _FORMS[(COMPACT if is_compact else 0) | (NULLABLE if nullable else 0)]


def _number(value: int) -> bytes:
    return value.to_bytes(2, "big")


_FORMS = tuple(_number(form) for form in range(4))
"""The numbers of all forms."""


def _two(program: bytes, at: int) -> int:
    return program[at] << 8 | program[at + 1]
