"""The way of :mod:`kdissect.protocol.json_walk` through a struct: its plan, and all fixed text.

It is computed once for a struct. Additional opcodes mark values that need more: values that must not be
shown, and values that decide about other values.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import NamedTuple

from kdissect.names import METADATA_TOPIC
from kdissect.protocol import plan
from kdissect.protocol.json_form import SIZE_SUFFIX, dumps, to_json
from kdissect.protocol.schema import Field, Struct

TOPIC, POSITION, PIECE, COMPACT_PIECE, SECRET, MAYBE_SECRET, MARKED, UNUSUAL = range(100, 108)
"""The additional opcodes. A topic's name or id that may be that of ``__cluster_metadata``; the position of a
part of a record set, and the part; a secret; a value that may be a secret, depending on another; a value that
is a secret if a mark behind it says so; a value that the walk leaves to decoding. All but parts and positions
have the step of the value itself as their ``element``."""

MARK = "isSensitive"
"""The field that marks secrets of its struct, and of the structs inside."""

METADATA_ID = bytes(15) + b"\1"
"""Kafka's ``Uuid.METADATA_TOPIC_ID``."""

_TOPIC_FIELDS = ("topic", "name", "topicId")
SECRET_TYPES = ("string", "bytes", "[]string", "[]bytes")
"""Fields of other types are never hidden."""


class Hidden(NamedTuple):
    """The fields of a message class that must not be shown: their names, at any depth."""

    always: frozenset[str]
    maybe: frozenset[str]
    """The fields among them whose secrecy depends on other values."""
    marked: frozenset[str] = frozenset()
    """Further fields, which are secrets if :data:`MARK` says so."""


class Way:
    """The way through a struct."""

    __slots__ = ("hides_unknown", "is_flexible", "is_ordered", "steps", "tags")

    def __init__(self, steps: list[Step], tags: list[Step], is_flexible: bool, hides_unknown: bool) -> None:
        self.steps = steps
        self.tags = tags
        """The tagged fields of the definition."""
        self.is_ordered = all(one.rank < other.rank for one, other in pairwise(tags))
        """Whether tags ascend in the order of the definition, as nearly everywhere."""
        self.is_flexible = is_flexible
        self.hides_unknown = hides_unknown
        """Whether the bytes of unknown tagged fields may be secrets."""


class Step:
    """The way through a field, or through an element of an array."""

    __slots__ = (
        *("anchor", "before", "default", "element", "inner", "is_anchor", "least", "nullable", "opcode"),
        *("mark", "plain_before", "rank", "size_before", "tag", "word"),
    )

    def __init__(self, opcode: int, before: bytes = b"", nullable: bool = False) -> None:
        self.opcode = opcode
        self.before = before
        """The text before the value: the field's name. Empty for records; see the next two."""
        self.plain_before = before
        """The text before records, or before their null."""
        self.size_before = b""
        """The text before the size of records."""
        self.nullable = nullable
        self.least = 0
        """The fewest bytes that an element takes."""
        self.inner: Way | None = None
        """The way through a struct, or through each element that is a struct."""
        self.element: Step | None = None
        """The step through an element that is not a struct."""
        self.word = b""
        """For a topic: the bytes of the field if it is ``__cluster_metadata``."""
        self.mark = -1
        """For a value with a mark: the number of bytes between the two; -1 if a struct around has the
        mark."""
        self.is_anchor = False
        """Whether tagged fields belong right before it."""
        self.tag = -1
        self.rank = 0
        """For a tagged field: its rank among all fields."""
        self.anchor = -1
        """For a tagged field: the number of the first anchor after it; -1 if all untagged fields come before
        it."""
        self.default = b""
        """For a tagged field: its text if its value is the same as when it is absent."""


@cache
def way_of(struct: Struct, hidden: Hidden | None = None) -> Way:
    """The way through a struct.

    :param hidden: the fields of its message that must not be shown; None without any.
    """
    _, plain, tags = struct.plan
    steps: list[Step] = []
    anchors: list[int] = []
    ranks = {field.name: rank for rank, field in enumerate(struct.fields)}
    tagged_ranks = [ranks[name] for _, (_, name, _) in tags or ()]
    has_records = _has_records(struct)
    previous = -1
    for opcode, name, argument in plain:
        rank = ranks[name]
        step = _step(struct, opcode, name, argument, hidden, has_records)
        _name(step, name, b"," if steps else b"{")
        if any(previous < each < rank for each in tagged_ranks):
            step.is_anchor = True
            anchors.append(rank)
        steps.append(step)
        previous = rank
    ways = []
    for tag, (opcode, name, argument) in tags or ():
        field = struct.by_name[name]
        step = _step(struct, opcode, name, argument, hidden, has_records)
        if _may_mislead(field, hidden):
            step = _around(UNUSUAL, step)
        _name(step, name, b"")
        step.tag, step.rank = tag, ranks[name]
        step.anchor = next((at for at, each in enumerate(anchors) if each > step.rank), -1)
        step.default = _default_text(field)
        ways.append(step)
    return Way(steps, ways, tags is not None, hidden is not None)


def _name(step: Step, name: str, before: bytes) -> None:
    """Put the name of the field before its value."""
    text = before + dumps(name).encode("ascii") + b":"
    if step.opcode in _RECORDS:
        step.plain_before = text
        step.size_before = before + dumps(name + SIZE_SUFFIX).encode("ascii") + b":"
    else:
        step.before = text


_RECORDS = (plan.RECORDS, plan.COMPACT_RECORDS, PIECE, COMPACT_PIECE)


def _step(
    struct: Struct, opcode: int, name: str, argument: object, hidden: Hidden | None, has_records: bool
) -> Step:
    """The step through a field, without its name."""
    field = struct.by_name[name]
    step = Step(opcode)
    if isinstance(argument, tuple) and opcode in (plan.ARRAY, plan.COMPACT_ARRAY):
        step.nullable, element, inner, step.least = argument
        if field.struct is None:
            step.element = Step(element, nullable=bool(inner))
    elif opcode < plan.ARRAY:
        step.nullable = bool(argument)
    if field.struct is not None:
        step.inner = way_of(field.struct, hidden)
    if hidden is not None and field.type in SECRET_TYPES:
        if name in hidden.always:
            return _around(SECRET, step)
        if name in hidden.maybe:
            return _around(MAYBE_SECRET, step)
        if name in hidden.marked:
            return _marked(struct, name, step)
    if name == "unalignedRecords" or (name == "position" and "unalignedRecords" in struct.by_name):
        return _of_piece(struct, step)
    if has_records and name in _TOPIC_FIELDS and field.type in ("string", "uuid"):
        return _topic(step)
    return step


def _marked(struct: Struct, name: str, step: Step) -> Step:
    """The step of a value that a mark behind it makes a secret."""
    if MARK not in struct.by_name:
        return _around(MARKED, step)
    order = [each for _, each, _ in struct.plan[1]]
    if name not in order or MARK not in order[order.index(name) :]:
        return _around(UNUSUAL, step)
    between = struct.plan[1][order.index(name) + 1 : order.index(MARK)]
    if any(opcode >= plan.STRING for opcode, _, _ in between):
        return _around(UNUSUAL, step)
    around = _around(MARKED, step)
    around.mark = sum([plan.WIDTHS[opcode] for opcode, _, _ in between])
    return around


def _of_piece(struct: Struct, step: Step) -> Step:
    """The step of a part of a snapshot. FetchSnapshot sends a snapshot by byte positions: only a part that
    begins at 0 is a record set."""
    order = [(opcode, name) for opcode, name, _ in struct.plan[1]]
    names = [name for _, name in order]
    is_usual = (plan.INT64, "position") in order and "unalignedRecords" in names
    if not is_usual or names.index("position") > names.index("unalignedRecords"):
        return _around(UNUSUAL, step)
    if step.opcode == plan.INT64:
        step.opcode = POSITION
    else:
        step.opcode = COMPACT_PIECE if step.opcode == plan.COMPACT_RECORDS else PIECE
    return step


def _topic(step: Step) -> Step:
    """The step of a topic's name or id beside or around records."""
    name = METADATA_TOPIC.encode()
    word = METADATA_ID
    if step.opcode == plan.STRING:
        word = len(name).to_bytes(2, "big") + name
    elif step.opcode == plan.COMPACT_STRING:
        word = bytes([len(name) + 1]) + name
    around = _around(TOPIC, step)
    around.word = word
    return around


def _around(opcode: int, step: Step) -> Step:
    around = Step(opcode)
    around.element = step
    return around


def _has_records(struct: Struct) -> bool:
    return any(
        field.type == "records" or (field.struct is not None and _has_records(field.struct))
        for field in struct.fields
    )


def _default_text(field: Field) -> bytes:
    value = field.default
    if field.struct is not None and not field.is_array and value is not None:
        value = to_json(field.struct, value)
    elif isinstance(value, bytes):
        value = ""  # the only possible default of bytes
    return dumps(value).encode("ascii")


def _may_mislead(field: Field, hidden: Hidden | None) -> bool:
    """Whether a tagged field must be left to decoding.

    The walk compares the field's text with the text of its default. That is not sufficient if -0.0 may stand
    for 0.0, or if a secret is hidden. Records have two texts. Secrets are decided in the order of the
    definition, and tagged fields come later on the wire.
    """
    if field.type == "records" or (hidden is not None and _has_any(field, hidden.maybe | hidden.marked)):
        return True
    if field.is_array or field.default is None:
        return False
    if field.struct is not None:
        return any(_may_mislead(each, hidden) for each in field.struct.fields)
    is_hidden = hidden is not None and field.name in hidden.always
    return field.type == "float64" or (is_hidden and bool(field.default))


def _has_any(field: Field, names: frozenset[str]) -> bool:
    """Whether a field is one of these, or has one inside."""
    return field.name in names or (
        field.struct is not None and any(_has_any(each, names) for each in field.struct.fields)
    )
