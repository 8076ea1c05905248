"""Bytes → the facts of a message that every listing needs, without an object for any other value.

These are its topics, its error codes, and the positions of its records. Listings of a million lines use this
walk, which is ten times faster than decoding. The plan of a struct is compiled once into a program
(:mod:`kdissect.protocol.program`), which the walk runs. It notes the wanted facts and passes everything else.
It returns None if anything is unusual: a defect, bytes left over, a wanted tagged field. Then the caller
decodes the values. So its result must never differ from theirs.

:func:`find_places` does the same for readers of records. It also notes the partition of each record set, and
the base offset of each partition.

Compiled, ``raw`` is a pointer to the bytes: every position is checked before it is read.
"""

from __future__ import annotations

from functools import cache

from kdissect.limits import DEFAULTS, Limits
from kdissect.protocol.cursor import Cursor, uuid_text
from kdissect.protocol.entities import ANY, GROUP, PREFIXED, RESOURCE_KINDS, TOPIC, TRANSACTIONAL_ID
from kdissect.protocol.program import (
    A_GROUP,
    A_KEY,
    A_RESOURCE,
    A_TOPIC,
    A_TRANSACTIONAL_ID,
    ACKS,
    APPENDED,
    BESIDE_ID,
    BYTES,
    COMPACT,
    COORDINATOR_TYPE,
    DIVERGES,
    ERROR,
    IDENTIFIES,
    LATER,
    LIST,
    MAYBE,
    NULLABLE,
    OFFSET,
    OFFSET_FIELD,
    OPEN,
    PARTITION,
    PASS,
    RECORD_FIELD,
    RECORDS,
    REPLICA,
    RESOURCE_PATTERN,
    RESOURCE_TYPE,
    SESSION,
    STRUCT,
    TAGS,
    TEACHES,
    TEXT,
    THROTTLE,
    TOPIC_ID,
    identifies_places,
    program_of,
)
from kdissect.protocol.schema import Struct

Place = tuple[str | None, str | None, int | None, str, int, int]
"""Topic, topic id, partition; the field's name; its position in the buffer, and its number of bytes. For a
base offset, the last two are the offset and 0."""

_ZERO = bytes(16)
_SHORT = 64
"""The longest string, in bytes, that is checked for ASCII byte by byte."""
_PLAIN_BYTES = 6
"""The fewest bytes of the program of a struct in a flexible version that has only numbers."""

_NAMED = {TOPIC: A_TOPIC, GROUP: A_GROUP, TRANSACTIONAL_ID: A_TRANSACTIONAL_ID}
_OF_RESOURCE = {kind: _NAMED[entity] for kind, entity in RESOURCE_KINDS.items()}
"""The kind of thing that a resource's name names, by the resource's type."""
_PREFIXED = PREFIXED

_LOW = 0xFFFF_FFFF
"""The lower 32 bits. The name makes it a C number when compiled; written in an expression it would be an
object."""
_NO_VARINT = -1 << 32
"""Means no varint: it is negative, and its upper bits are negative too."""

_ELEMENTS, _IN_ARRAY, _TAGGED_FIELDS = DEFAULTS.message_elements, DEFAULTS.elements, DEFAULTS.tagged_fields
"""The limits as C numbers; reading a table of limits takes longer than a small message."""

_NO_MENTIONS: list[tuple[str | None, str | None]] = []
_NO_RECORDS: list[int] = []
"""The value for all messages without records; it must not be changed."""

_IDS = 64
_id_bytes = [b""] * _IDS
_ids: list[tuple[None, str]] = [(None, "")] * _IDS
"""Some recent topic ids, each with its mention: most messages repeat earlier ids."""
_Name = tuple[bytes, str, tuple[str, None]]
_NO_NAME: _Name = (b"", "", ("", None))
_names: list[_Name] = [_NO_NAME] * _IDS
"""Some recent names, each with its bytes, its text and its mention. Sharing one text also makes later lookups
faster."""
_LONGEST_NAME = 256
"""The largest number of bytes of a name that is kept."""

_UNUSUAL = -1
"""The result of a walk, instead of a position, if anything is unusual."""


class Survey:
    """The facts found in a message."""

    __slots__ = (
        *("_elements", "_most_in_array", "_most_tags", "acks", "appended_ms", "error", "errors"),
        *("groups", "mentions"),
        *("coordinator_type", "keys", "records", "redirects", "session_id", "taught"),
        *("has_tail", "partition", "places", "throttle_ms", "topic", "topic_id", "transactional_ids"),
    )

    def __init__(self) -> None:
        self.acks = -1
        """The acks of a Produce request."""
        self.error = 0
        """The first error code that is not 0."""
        self.errors: list[int] | None = None
        """All error codes that are not 0, in the order of the wire; None if there are none."""
        self.mentions = _NO_MENTIONS
        """Every topic, as :func:`~kdissect.protocol.topics.mentioned_topics` returns them. Read only."""
        self.records = _NO_RECORDS
        """The beginning and end of each record set in the buffer. Read only."""
        self.taught: list[tuple[str, str]] | None = None
        """Every topic id with a name in the same struct, and that name; None if there are none."""
        self.groups: list[str] | None = None
        """The ids of groups; None if there are none."""
        self.transactional_ids: list[str] | None = None
        self.keys: list[str] | None = None
        """The keys of coordinators; None if there are none. The request's type decides what they name."""
        self.coordinator_type = 0
        """The coordinators' type, in a request."""
        self.throttle_ms = 0
        """The time for which the response's quota throttles the client, ms."""
        self.session_id = 0
        """The fetch session of a Fetch; 0 without a session."""
        self.appended_ms = 0
        """The first time above 0 that the broker gave to records of a Produce, ms since the epoch."""
        self.redirects = False
        """Whether a partition of a Fetch has a preferred replica or a diverging epoch."""
        self.has_tail = False
        """Whether the tail of its route follows the message."""
        self.places: list[Place] | None = None
        """Record sets and base offsets with their partitions; None if they were not wanted."""
        self.topic: str | None = None
        """The topic of the structs around, while places are noted."""
        self.topic_id: str | None = None
        self.partition: int | None = None
        self._elements = 0
        """The number of elements that the message may still have."""
        self._most_in_array = self._most_tags = 0
        """The limits of elements in an array, and of tagged fields in a struct."""


class Route:
    """The route through a message.

    :ivar program: see :mod:`kdissect.protocol.program`.
    :ivar tail: the bytes that may follow the message, as some programs write it.
    """

    __slots__ = ("_places", "_struct", "program", "tail")

    def __init__(self, struct: Struct, program: bytes, tail: bytes) -> None:
        self._struct = struct
        self.program = program
        self.tail = tail
        self._places: bytes | None = None

    def places(self) -> bytes:
        """The program that notes places; empty if a struct does not have its partition before its places."""
        if self._places is None:
            is_told = identifies_places(self._struct)
            self._places = (program_of(self._struct, notes_places=True) if is_told else None) or b""
        return self._places


def survey_at(way: Route, data: bytes, start: int, end: int, limits: Limits) -> Survey | None:
    """Survey the struct of the bytes from ``start`` to ``end``; None if it has to be decoded."""
    found = _nothing(limits)
    if _run(way.program, data, start, end, found):
        return found
    tail = way.tail
    if not tail or end - start < len(tail) or data[end - len(tail) : end] != tail:
        return None
    found = _nothing(limits)
    found.has_tail = True
    return found if _run(way.program, data, start, end - len(tail), found) else None


def find_places(way: Route, cursor: Cursor) -> list[Place] | None:
    """The record sets, or base offsets, of the struct at the cursor, which must fill the bytes to their end.
    None if it has to be decoded."""
    return places_at(way, cursor.data, cursor.position, cursor.end, cursor.limits)


def places_at(way: Route, data: bytes, start: int, end: int, limits: Limits) -> list[Place] | None:
    """The places as in :func:`find_places`, for the struct of the bytes from ``start`` to ``end``."""
    program = way.places()
    if not program:
        return None
    found = _nothing(limits)
    places: list[Place] = []
    found.places = places
    return places if _run(program, data, start, end, found) else None


def _nothing(limits: Limits) -> Survey:
    """An empty survey."""
    # Set attribute by attribute: compiled, that is several times faster than a call of the class.
    found = Survey.__new__(Survey)
    found.acks, found.error, found.throttle_ms, found.session_id = -1, 0, 0, 0
    found.mentions, found.records = _NO_MENTIONS, _NO_RECORDS
    found.errors = found.taught = found.groups = found.transactional_ids = found.keys = None
    found.coordinator_type = 0
    found.appended_ms = 0
    found.redirects = found.has_tail = False
    found.places = found.topic = found.topic_id = found.partition = None
    if limits is DEFAULTS:
        found._elements, found._most_in_array, found._most_tags = _ELEMENTS, _IN_ARRAY, _TAGGED_FIELDS
    else:
        found._elements, found._most_in_array = limits.message_elements, limits.elements
        found._most_tags = limits.tagged_fields
    return found


def _run(code: bytes, data: bytes, start: int, end: int, found: Survey) -> bool:
    """Run a whole program. Return whether it reached the end of the bytes."""
    try:
        return _walk(code, 0, len(code), data, start, end, found) == end
    except UnicodeDecodeError:
        return False


def _walk(code: bytes, at: int, stop: int, data: bytes, position: int, end: int, found: Survey) -> int:
    """Run the program from ``at`` to ``stop`` over the bytes from ``position`` to ``end``. Return its end
    position, or :data:`_UNUSUAL`."""
    raw, program = data, code
    name = topic_id = ""
    id_at = -1
    teaches = False
    resource = resource_type = 0
    pending: str | None = None
    topic = known_id = partition = None
    if found.places is not None:
        topic, known_id, partition = found.topic, found.topic_id, found.partition
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
                if what & A_RESOURCE:
                    text = _name_at(data, position, size)[1]
                    resource = 0 if text == ANY else _OF_RESOURCE.get(resource_type, 0)
                    if what & LATER:
                        pending = text
                    elif resource:
                        _note(found, text, None, resource)
                elif what:
                    known = _name_at(data, position, size)
                    text = known[1]
                    _note(found, text, known[2], what)
                    if what & IDENTIFIES and found.places is not None:
                        found.topic = text
                    if what & BESIDE_ID and size:
                        name = text
                        if id_at >= 0:
                            del found.mentions[id_at]
                            id_at = -1
                elif not _is_ascii(raw, position, size):
                    raw[position : position + size].decode("utf-8")  # it must still be UTF-8
            elif step == RECORDS:
                if found.records is _NO_RECORDS:
                    found.records = []
                found.records.append(position)
                found.records.append(position + size)
                if found.places is not None:
                    found.places.append(
                        (found.topic, found.topic_id, found.partition, RECORD_FIELD, position, size)
                    )
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
                if count * least > end - position or found._elements < 0 or count > found._most_in_array:
                    return _UNUSUAL
                if width != OPEN:
                    if count * width > end - position:
                        return _UNUSUAL
                    position += count * width
                else:
                    # For example a broker's list of API versions: numbers, and hardly ever a tagged field.
                    is_plain = length >= _PLAIN_BYTES and program[at] == PASS and program[at + 3] == TAGS
                    width = program[at + 1] << 8 | program[at + 2] if is_plain else 0
                    while count > 0:
                        count -= 1
                        if is_plain and end - position > width and raw[position + width] == 0:
                            position += width + 1
                            continue
                        position = _walk(code, at, at + length, data, position, end, found)
                        if position < 0:
                            return _UNUSUAL
            at += length
        elif step == TAGS:
            length = program[at] << 8 | program[at + 1]
            at += 2
            if position < end and raw[position] == 0:
                position += 1
            else:
                position = _walk_tags(code, at, at + length, data, position, end, found)
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
            form = program[at + 1]
            teaches = form & TEACHES != 0
            at += 2
            if end - position < 16:
                return _UNUSUAL
            mention = _id_at(data, position)
            topic_id = mention[1]
            position += 16
            if topic_id and form & IDENTIFIES and found.places is not None:
                found.topic_id = topic_id
            if topic_id and not name:
                if found.mentions is _NO_MENTIONS:
                    found.mentions = []
                id_at = len(found.mentions)
                found.mentions.append(mention)
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
                position = _walk(code, at, at + length, data, position, end, found)
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
        elif step == COORDINATOR_TYPE:
            if end - position < 1:
                return _UNUSUAL
            size = raw[position]
            found.coordinator_type = size - 256 if size > 127 else size
            position += 1
        elif step == RESOURCE_TYPE:
            if end - position < 1:
                return _UNUSUAL
            resource_type = raw[position]
            position += 1
        elif step == RESOURCE_PATTERN:
            if end - position < 1:
                return _UNUSUAL
            if pending is not None and resource and raw[position] != _PREFIXED:
                _note(found, pending, None, resource)
            pending = None
            position += 1
        elif step == SESSION:
            if end - position < 4:
                return _UNUSUAL
            found.session_id = _int32(raw, position)
            position += 4
        elif step == REPLICA:
            if end - position < 4:
                return _UNUSUAL
            if _int32(raw, position) != -1:
                found.redirects = True
            position += 4
        elif step == DIVERGES:
            found.redirects = True
        elif step == APPENDED:
            if end - position < 8:
                return _UNUSUAL
            if raw[position] <= 0x7F and not found.appended_ms:  # it is mostly -1
                found.appended_ms = int.from_bytes(data[position : position + 8], "big")
            position += 8
        elif step == PARTITION:
            if end - position < 4:
                return _UNUSUAL
            if found.places is not None:
                found.partition = _int32(raw, position)
            position += 4
        elif step == OFFSET:
            if end - position < 8:
                return _UNUSUAL
            if found.places is not None:
                offset = int.from_bytes(data[position : position + 8], "big", signed=True)
                found.places.append((found.topic, found.topic_id, found.partition, OFFSET_FIELD, offset, 0))
            position += 8
        else:
            return _UNUSUAL
    if teaches and name and topic_id:
        if found.taught is None:
            found.taught = []
        found.taught.append((topic_id, name))
    if found.places is not None:  # a struct's partition is not valid after it
        found.topic, found.topic_id, found.partition = topic, known_id, partition
    return position


def _walk_tags(code: bytes, at: int, stop: int, data: bytes, position: int, end: int, found: Survey) -> int:
    """Walk tagged fields. The program of the known ones is from ``at`` to ``stop``."""
    raw, program = data, code
    head = _varint(raw, position, end)
    position = head >> 32
    count = head & _LOW
    if position < 0:
        return _UNUSUAL
    found._elements -= count
    if count * 2 > end - position or found._elements < 0 or count > found._most_tags:
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
                if length == 3 and program[known + 4] == PASS:
                    reached = position + (program[known + 5] << 8 | program[known + 6])
                else:
                    reached = _walk(
                        code, known + 4, known + 4 + length, data, position, position + size, found
                    )
                if reached != position + size:
                    return _UNUSUAL
                break
            known += 4 + length
        position += size
    return position


def _varint(raw: bytes, position: int, end: int) -> int:
    """Read an unsigned varint of at most five bytes and 32 bits. The bits above 32 are the position after it.
    The result is below 0 if there is no varint."""
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
    """Whether these bytes are surely ASCII."""
    if size > _SHORT:
        return False
    while size > 0:
        size -= 1
        if raw[at + size] > 0x7F:
            return False
    return True


def _id_at(data: bytes, at: int) -> tuple[None, str]:
    """The mention of the topic id in the 16 bytes at a position, in Kafka's form; empty for the zero id."""
    raw = data
    place = (raw[at + 7] + raw[at + 15]) & (_IDS - 1)
    known: bytes = _id_bytes[place]
    if known and data.startswith(known, at):
        return _ids[place]
    topic_id = raw[at : at + 16]
    mention = (None, "" if topic_id == _ZERO else uuid_text(topic_id))
    _id_bytes[place], _ids[place] = topic_id, mention
    return mention


def _name_at(data: bytes, at: int, size: int) -> _Name:
    """The name at a position: its bytes, its text, and its mention as a topic.

    :raises UnicodeDecodeError: it is not UTF-8.
    """
    raw = data
    if size <= 0:
        return _NO_NAME
    place = (raw[at] + 7 * raw[at + size - 1] + 31 * size) & (_IDS - 1)
    known = _names[place]
    name: bytes = known[0]
    if len(name) == size and data.startswith(name, at):
        return known
    name = raw[at : at + size]
    text = name.decode("utf-8")
    known = (name, text, (text, None))
    if size <= _LONGEST_NAME:
        _names[place] = known
    return known


def _note(found: Survey, text: str, mention: tuple[str, None] | None, what: int) -> None:
    """Note a string that names something.

    :param mention: its mention as a topic, if it was already made.
    """
    if what == A_KEY:
        if text != ANY:
            found.keys = _with(found.keys, text)
        return
    what &= BESIDE_ID - 1
    if what == A_TOPIC:
        if found.mentions is _NO_MENTIONS:
            found.mentions = []
        found.mentions.append((text, None) if mention is None else mention)
    elif what == A_GROUP:
        found.groups = _with(found.groups, text)
    elif what == A_TRANSACTIONAL_ID:
        found.transactional_ids = _with(found.transactional_ids, text)


def _with(names: list[str] | None, name: str) -> list[str] | None:
    """Names with one more; an empty name is left out."""
    if not name:
        return names
    if names is None:
        return [name]
    names.append(name)
    return names


@cache
def route(struct: Struct, tail: bytes = b"") -> Route | None:
    """The route through a struct; None if no walk can find the facts.

    :param tail: as in :class:`Route`.
    """
    program = program_of(struct)
    return None if program is None else Route(struct, program, tail)
