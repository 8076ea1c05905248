"""A producer snapshot → the state of each producer (``ProducerStateManager``, ``ProducerSnapshot``).

The file is an int16 version, the CRC-32C of the rest, a count, and the producers. They are read one by one,
so that a cut file gives its complete producers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kdissect.faults import fault
from kdissect.lazy import Later
from kdissect.model import DecodeError, Fault
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import decode
from kdissect.protocol.schema import Struct, data_struct
from kdissect.wording import plural

if TYPE_CHECKING:
    import crc32c
else:
    crc32c = Later("crc32c", "_crc32c")

_CRC_END = 6


def read_snapshot(data: bytes) -> tuple[list[dict[str, Any]], list[Fault]]:
    """The producers under Kafka's field names, and the faults. The last producer of a cut file may lack
    fields."""
    cursor = Cursor(data)
    producers: list[dict[str, Any]] = []
    faults: list[Fault] = []
    try:
        version = cursor.read_int16()
        producer = _producer(version)
        if producer is None:
            text = f"version {version} of a snapshot is not known; not read: {plural(len(data) - 2, 'byte')}"
            return [], [fault("unknown-version", text, offset=0, layer="file")]
        crc = cursor.read_uint32()
        if crc != crc32c.crc32c(data[_CRC_END:]):
            size = plural(len(data) - _CRC_END, "byte")
            text = f"CRC-32C 0x{crc:08x} does not fit the {size} of the producers"
            faults.append(fault("bad-crc", text, offset=2, layer="file"))
        _read_producers(producer, cursor, producers)
    except DecodeError as error:
        faults.append(fault("bad-entry", f"the snapshot: {error.reason}", offset=error.offset))
    else:
        if cursor.remaining():
            text = f"{plural(cursor.remaining(), 'byte')} after the last producer"
            faults.append(fault("trailing-bytes", text, offset=cursor.position))
    return producers, faults


def _producer(version: int) -> Struct | None:
    try:
        return data_struct("ProducerSnapshot", version).fields[-1].struct
    except LookupError:
        return None


def _read_producers(producer: Struct, cursor: Cursor, producers: list[dict[str, Any]]) -> None:
    """Add the producers to the list, up to the first error."""
    count = cursor.read_int32()
    if count < 0:
        raise DecodeError(f"a count of {count} producers", cursor.position - 4)
    for at in range(count):
        if not cursor.remaining():
            raise DecodeError(f"{count} producers are announced, there are {at}", cursor.position)
        values: dict[str, Any] = {}
        producers.append(values)
        decode(producer, cursor, values)
