"""Record sets inside messages → JSON, straight from their bytes: each batch, and its records."""

from __future__ import annotations

from kdissect.model import DecodeError
from kdissect.present.batches import BATCH_COLUMNS, control_of, plain_columns, record_objects
from kdissect.present.options import Options
from kdissect.present.record_text import write_nested, write_value
from kdissect.protocol.json_form import dumps
from kdissect.protocol.json_text import JsonText
from kdissect.record.batch import Batch
from kdissect.record.records import Columns
from kdissect.record.sets import read_record_set
from kdissect.record.sound import is_sound

_MOST_CONTROLS = 4_096
_MOST_TRAITS = 1_024

POSITION, BATCH_SIZE, MAGIC, LAST_OFFSET, MAX_TIMESTAMP, PRODUCER_ID, PRODUCER_EPOCH = range(7)
BASE_SEQUENCE, LEADER_EPOCH, CRC, BASE_TIMESTAMP, CRC_VALID, PARTIAL, TRAIT, VALUE = range(7, 15)
"""How the value of a column is come by."""

_BATCH_WAYS = {
    "position": POSITION,
    "size": BATCH_SIZE,
    "magic": MAGIC,
    "last_offset": LAST_OFFSET,
    "max_timestamp": MAX_TIMESTAMP,
    "producer_id": PRODUCER_ID,
    "producer_epoch": PRODUCER_EPOCH,
    "base_sequence": BASE_SEQUENCE,
    "partition_leader_epoch": LEADER_EPOCH,
    "crc": CRC,
    "base_timestamp": BASE_TIMESTAMP,
    "crc_valid": CRC_VALID,
    "partial": PARTIAL,
    "codec": TRAIT,
    "timestamp_type": TRAIT,
    "is_transactional": TRAIT,
    "is_control": TRAIT,
}
"""Of columns that the header tells, by name. A TRAIT follows from magic and attributes."""


class BatchStep:
    """A column of a batch."""

    __slots__ = ("before", "name", "traits", "way")

    def __init__(self, at: int, name: str) -> None:
        self.name = name
        self.before = f"{',' if at else '{'}{dumps(name)}:".encode("ascii")
        """What stands before its value."""
        self.way = _BATCH_WAYS.get(name, VALUE)
        self.traits: dict[int, bytes] = {}
        """Of a trait, its texts by magic and attributes."""

    def trait(self, batch: Batch) -> bytes:
        """The text of a trait."""
        key = batch.magic << 16 | batch.attributes & 0xFFFF
        text = self.traits.get(key)
        if text is None:
            if len(self.traits) >= _MOST_TRAITS:
                self.traits.clear()
            text = self.traits[key] = dumps(getattr(batch, self.name)).encode("ascii")
        return text


class RecordSets:
    """Writes record sets inside messages, with their records where those are wanted."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.may_end_early = False
        """Whether it is ordinary that they end inside a batch."""
        self._steps = [BatchStep(at, name) for at, (name, _, _) in enumerate(BATCH_COLUMNS)]
        self._told_controls: dict[tuple[bytes | None, bytes | None], bytes] = {}
        """What control records say, by their keys and values: most are equal."""

    def write(
        self, out: JsonText, data: bytes, start: int, size: int, name: bytes, is_metadata: bool
    ) -> None:
        """Write the batches of a record set.

        :param data: bytes of which ``size`` from ``start`` on are the record set.
        :param name: what stands before them.
        :param is_metadata: whether they are of ``__cluster_metadata``.
        :raises DecodeError: something is wrong with them.
        """
        options = self._options
        if not options.records and is_sound(data, start, start + size, options.limits):
            return
        if options.records and options.payloads is not None:
            raise unusual()  # what is decoded is made of objects
        found = read_record_set(data[start : start + size], options.limits)
        for each in found.own_faults:
            if not (self.may_end_early and each.kind == "partial-batch"):
                raise unusual()
        if not options.records:
            for batch in found.batches:
                batch.check()
                if batch._faults:
                    raise unusual()
            return
        out.put(name)
        out.put(b"[")
        for at, batch in enumerate(found.batches):
            if at:
                out.put(b",")
            self._batch(out, batch, is_metadata)
        out.put(b"]")

    def _batch(self, out: JsonText, batch: Batch, is_metadata: bool) -> None:
        options = self._options
        start = out.size()
        columns = plain_columns(batch, options, is_metadata, takes_control=not is_metadata)
        if columns is None:
            records = record_objects(batch, options, is_metadata)
        for step in self._steps:
            out.put(step.before)
            self._value(out, batch, step)
        out.put(b',"records":')
        if columns is not None:
            write_nested(out, columns, options.bytes_form, self._controls(batch, columns))
        else:
            out.put(dumps(records).encode("ascii"))
        out.put(b"}")
        if batch._faults:
            out.cut(start)
            raise unusual()

    def _controls(self, batch: Batch, columns: Columns) -> list[bytes] | None:
        """What each control record says; None where they are others."""
        if not batch.is_control:
            return None
        out = []
        for record in columns.records():
            told = record.key, record.value
            text = self._told_controls.get(told)
            if text is None:
                if len(self._told_controls) >= _MOST_CONTROLS:
                    self._told_controls.clear()
                text = dumps(control_of(record, batch, self._options)).encode("ascii")
                self._told_controls[told] = text
            out.append(text)
        return out

    def _value(self, out: JsonText, batch: Batch, step: BatchStep) -> None:
        """Write the value of a column."""
        way = step.way
        if way == PRODUCER_ID:
            out.number(batch.producer_id)
        elif way == PRODUCER_EPOCH:
            out.number(batch.producer_epoch)
        elif way == BASE_SEQUENCE:
            out.number(batch.base_sequence)
        elif way == LEADER_EPOCH:
            out.number(batch.partition_leader_epoch)
        elif way == LAST_OFFSET:
            out.number(batch.last_offset)
        elif way == MAX_TIMESTAMP:
            out.number(batch.max_timestamp)
        elif way == BATCH_SIZE:
            out.number(batch.size)
        elif way == CRC:
            out.number(batch.crc)
        elif way == POSITION:
            out.number(batch.position)
        elif way == MAGIC:
            out.number(batch.magic)
        elif way == TRAIT:
            out.put(step.trait(batch))
        elif way == BASE_TIMESTAMP:
            write_value(out, batch.base_timestamp)
        elif way == CRC_VALID:
            write_value(out, batch.crc_valid)
        elif way == PARTIAL:
            out.put(b"true" if batch.partial else b"false")
        else:
            write_value(out, getattr(batch, step.name))


def unusual() -> DecodeError:
    """Why a text has to be made of values: something is out of the ordinary."""
    return DecodeError("something is out of the ordinary", 0)
