"""Control records: a transaction's COMMIT and ABORT, and KRaft's records about its own log.

The key is an int16 version and the int16 type (``ControlRecordType.java``). The value of a transaction marker
has an int16 version before it. The other values have their version as their first field.
"""

from __future__ import annotations

from typing import Any

from kdissect.embedded import framing
from kdissect.embedded.decoded import Embedded, opaque
from kdissect.limits import DEFAULTS, Limits

KEY = "ControlRecordTypeSchema"
MARKER = "EndTxnMarker"

TYPES = {
    0: ("ABORT", MARKER),
    1: ("COMMIT", MARKER),
    2: ("LEADER_CHANGE", "LeaderChangeMessage"),
    3: ("SNAPSHOT_HEADER", "SnapshotHeaderRecord"),
    4: ("SNAPSHOT_FOOTER", "SnapshotFooterRecord"),
    5: ("KRAFT_VERSION", "KRaftVersionRecord"),
    6: ("KRAFT_VOTERS", "VotersRecord"),
}
"""For each type, Kafka's name of it and the class of the value."""


def type_name(number: int) -> str:
    """``COMMIT``, ``ABORT`` …; ``UNKNOWN(n)`` for a type that Kafka does not have."""
    return TYPES[number][0] if number in TYPES else f"UNKNOWN({number})"


def read(
    key: bytes | None, value: bytes | None, name: str | None, limits: Limits = DEFAULTS
) -> framing.InternalRecord:
    """A control record; ``name`` is needed only if there is no key."""
    kind = None if key is None else framing.read_versioned(KEY, key, True, limits)
    number = None if kind is None else kind.values.get("type")
    if number in TYPES:
        name = TYPES[number][1]
    elif number is not None:
        name = framing.unknown(number)
    if kind is not None:
        kind = kind._replace(name=name or "")
    return framing.InternalRecord(kind, None if value is None else _value(name, value, limits))


def _value(name: str | None, value: bytes, limits: Limits) -> Embedded:
    if name == MARKER:
        return framing.read_versioned(MARKER, value, True, limits)
    if name in {known for _, known in TYPES.values()}:
        return framing.read_own(str(name), value, limits)
    if name is None:
        return opaque("", None, value, (), "embedded", "a record without a key, so its type is unknown")
    return opaque(name, None, value, (), "unknown-version", "not decoded, because its type is unknown")


def write(name: str, version: int, key: Any, body: Any) -> tuple[bytes, bytes]:
    """The key and the value. A marker's key must contain its type, COMMIT or ABORT.

    :raises ValueError: the arguments do not fit the definitions.
    """
    numbers = [number for number, (_, known) in TYPES.items() if known == name]
    if not numbers:
        raise ValueError(f"name: no control record is named {name}")
    if key is None and len(numbers) == 1:
        key = {"type": numbers[0]}
    first = framing.write_versioned(KEY, 0, key)
    if key["type"] not in numbers:
        raise ValueError(f"key.type: {name} has type {' or '.join(map(str, numbers))}")
    if name == MARKER:
        return first, framing.write_versioned(name, version, body)
    return first, framing.write_struct(name, version, body)


def control_column(
    key: bytes | None, value: bytes | None, limits: Limits = DEFAULTS
) -> dict[str, Any] | None:
    """The ``control`` column of a record: the name of the type, and the fields of the value."""
    kind, found = read(key, value, None, limits)
    number = None if kind is None else kind.values.get("type")
    if number is None:
        return None
    return {"type": type_name(number), **(found.json() if found is not None else {})}
