"""The bytes of a message after its header → :class:`Body`: values, faults, and remaining bytes.

Kafka's releases changed the layout of a few versions without a new number. So the candidates are tried one
after the other until one fits to the last byte. If none fits, the result of the first one is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from kdissect.faults import fault
from kdissect.model import DecodeError, Fault
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import decode
from kdissect.protocol.schema import Struct
from kdissect.wording import plural


class Body(NamedTuple):
    """The result of decoding a message's bytes after the header."""

    struct: Struct | None
    """The schema it was read with; None without a schema (``opaque`` has the reason)."""
    values: dict[str, Any]
    start: int
    """Where the body begins in the frame's payload."""
    remainder: bytes
    """Bytes that no field accounts for."""
    opaque: str | None
    """The reason why nothing was decoded."""
    faults: tuple[Fault, ...]
    era: bool = False
    """Whether an older release's layout of the same version fitted."""
    quirk: str | None = None
    """The known deviation of its writer from the definitions, if it has one."""

    @property
    def is_exact(self) -> bool:
        """Whether it fits its schema to the last byte, without faults."""
        return self.struct is not None and not self.faults and not self.remainder


new_tuple = tuple.__new__


def read_body(cursor: Cursor, candidates: Iterable[Struct], version: int, packet: int, is_cut: bool) -> Body:
    """Read the body that begins at the cursor's position.

    :param candidates: the structs that it may be, the likeliest first; at least one.
    :param version: the version in the header; an older layout must have this version too.
    :param packet: the packet that completed the message, for the faults.
    :param is_cut: whether the frame was not captured completely. Then the frame has a fault for that, and the
        body has no fault because its bytes end early.
    """
    start = cursor.position
    first: Body | None = None
    for struct in candidates:
        if first is not None:
            cursor.position = start
            cursor.notes.clear()
        found = _try(cursor, struct, packet, is_cut)
        if found.is_exact:
            is_era = first is not None and struct.version == version
            return found._replace(era=True) if is_era else found
        if first is None:
            first = found
    assert first is not None
    return first


def _try(cursor: Cursor, struct: Struct, packet: int, is_cut: bool) -> Body:
    start = cursor.position
    values: dict[str, Any] = {}
    faults: list[Fault] = []
    try:
        decode(struct, cursor, values)
    except DecodeError as error:
        # The cursor is at the beginning of the field that could not be read.
        if not (is_cut and error.kind == "truncated"):
            faults.append(fault(error.kind, error.reason, packet, error.offset))
    else:
        if left := cursor.remaining():
            message = f"{plural(left, 'byte is', 'bytes are')} left after the last field"
            faults.append(fault("remainder", message, packet, cursor.position))
    if cursor.notes:
        faults += [fault(kind, message, packet, offset) for kind, message, offset in cursor.notes]
    left_over = cursor.data[cursor.position :] if cursor.position < len(cursor.data) else b""
    return new_tuple(Body, (struct, values, start, left_over, None, tuple(faults), False, None))
