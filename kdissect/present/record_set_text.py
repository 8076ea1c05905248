"""Record sets inside messages → JSON, directly from their bytes: each batch, and its records."""

from __future__ import annotations

from collections.abc import Sequence

from kdissect.model import DecodeError, Fault
from kdissect.present.batch_columns import BATCH_COLUMNS
from kdissect.present.batches import control_of, record_object, shown
from kdissect.present.options import Options
from kdissect.present.plain_records import are_plain, plain_columns
from kdissect.present.record_text import write_nested, write_value
from kdissect.protocol.json_form import dumps
from kdissect.protocol.json_text import JsonText
from kdissect.record.batch import CONTROL, DELETE_HORIZON, Batch
from kdissect.record.records import Columns, Record
from kdissect.record.sets import BatchReader, read_record_set
from kdissect.record.sound import is_sound

_MOST_CONTROLS = 4_096
_MOST_TRAITS = 1_024
_MOST_KEPT = 4_096
"""The most records whose columns are kept for the next batch."""

_ORDER = (
    *("position", "size", "magic", "base_offset", "last_offset", "codec", "timestamp_type", "base_timestamp"),
    *("max_timestamp", "producer_id", "producer_epoch", "base_sequence", "partition_leader_epoch"),
    *("is_transactional", "is_control", "delete_horizon_ms", "count", "crc", "crc_valid", "partial"),
)
"""The columns of a batch, as :meth:`RecordSets._header` writes them."""
_BEFORE = {name: f"{',' if at else '{'}{dumps(name)}:".encode("ascii") for at, name in enumerate(_ORDER)}
assert tuple(name for name, _, _ in BATCH_COLUMNS) == _ORDER


class Traits:
    """The texts that depend on the magic and the attributes of a batch only."""

    __slots__ = ("at_codec", "at_flags", "at_magic")

    def __init__(self, batch: Batch) -> None:
        self.at_magic = _columns_text(batch, "magic", "base_offset")
        """The text from the magic up to the base offset."""
        if batch.magic >= 2:
            self.at_codec = _columns_text(batch, "codec", "base_timestamp")
            self.at_flags = _columns_text(batch, "is_transactional", "delete_horizon_ms")
        else:  # without a base timestamp and a producer
            self.at_codec = _columns_text(batch, "codec", "max_timestamp")
            self.at_flags = _columns_text(batch, "producer_id", "count")


def _columns_text(batch: Batch, first: str, following: str) -> bytes:
    """The text of the columns from the first one up to the value of the following one."""
    names = _ORDER[_ORDER.index(first) : _ORDER.index(following)]
    told = [_BEFORE[name] + dumps(getattr(batch, name)).encode("ascii") for name in names]
    return b"".join(told) + _BEFORE[following]


class ControlTexts:
    """The contents of control records, as JSON. Most of them are equal."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._texts: dict[tuple[bytes | None, bytes | None], bytes] = {}
        """The texts by key and value."""

    def text(self, batch: Batch, record: Record) -> bytes:
        """The contents of a record of a batch."""
        told = record.key, record.value
        text = self._texts.get(told)
        if text is None:
            if len(self._texts) >= _MOST_CONTROLS:
                self._texts.clear()
            text = self._texts[told] = dumps(control_of(record, batch, self._options)).encode("ascii")
        return text


class RecordSets:
    """Writes record sets inside messages, with their records if the user wants these."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.may_end_early = False
        """Whether it is ordinary that the sets end inside a batch."""
        self._with_records, self._shows_secrets = options.records, options.show_secrets
        self._form = options.bytes_form
        self._controls = ControlTexts(options)
        self._traits: dict[int, Traits] = {}
        """The texts by magic and attributes."""
        self._reader = BatchReader(b"", options.limits)
        self._batch = Batch.__new__(Batch)
        self._columns = Columns(b"", 0, -1)
        """One object for all batches. The columns of the previous batch are already written."""

    def write(
        self, out: JsonText, data: bytes, start: int, size: int, name: bytes, is_metadata: bool
    ) -> None:
        """Write the batches of a record set.

        :param data: bytes that contain the record set at ``start``, ``size`` bytes long.
        :param name: the text before the batches.
        :param is_metadata: whether they belong to ``__cluster_metadata``.
        :raises DecodeError: they have a fault.
        """
        if not self._with_records:
            self._check(data, start, size)
            return
        options = self._options
        if options.payloads is not None:
            raise unusual()  # decoded values are made from objects
        reader, batch = self._reader, self._batch
        reader.begin(data[start : start + size])
        out.put(name)
        before = b"["
        while reader.read(batch):
            out.put(before)
            self._write_batch(out, batch, is_metadata)
            before = b","
        self._see(reader.faults)
        out.put(b"[]" if before == b"[" else b"]")

    def _check(self, data: bytes, start: int, size: int) -> None:
        """Check a record set of which only the size is printed.

        :raises DecodeError: it has a fault.
        """
        limits = self._options.limits
        if is_sound(data, start, start + size, limits):
            return
        found = read_record_set(data[start : start + size], limits)
        self._see(found.own_faults)
        for batch in found.batches:
            batch.check()
            if batch._faults:
                raise unusual()

    def _see(self, faults: list[Fault]) -> None:
        """Check whether the faults of a set are ordinary.

        :raises DecodeError: they are not.
        """
        for each in faults:
            if not (self.may_end_early and each.kind == "partial-batch"):
                raise unusual()

    def _write_batch(self, out: JsonText, batch: Batch, is_metadata: bool) -> None:
        columns = plain_columns(batch, self._shows_secrets, is_metadata, True, self._columns)
        others: Sequence[tuple[int, bytes]] = ()
        if columns is None:
            columns = batch.columns(self._columns)
            others = self._others(batch, columns, is_metadata)
        self._header(out, batch)
        controls = None
        if batch.has(CONTROL):
            controls = [self._controls.text(batch, record) for record in columns.records()]
        write_nested(out, columns, self._form, controls, others)
        if columns.count > _MOST_KEPT:
            self._columns = Columns(b"", 0, -1)
        out.put(b"}")
        if batch._faults:
            raise unusual()

    def _others(self, batch: Batch, columns: Columns, is_metadata: bool) -> list[tuple[int, bytes]]:
        """The records with a secret: the place and the JSON of each."""
        found = []
        for index, record in enumerate(columns.records()):
            if are_plain(columns.only(index), is_metadata):
                continue
            if shown(record, self._options, is_metadata) is not record:
                text = dumps(record_object(record, batch, self._options, is_metadata))
                found.append((index, text.encode("ascii")))
        return found

    def _traits_of(self, batch: Batch) -> Traits:
        key = batch.magic << 16 | batch.attributes & 0xFFFF
        traits = self._traits.get(key)
        if traits is None:
            if len(self._traits) >= _MOST_TRAITS:
                self._traits.clear()
            traits = self._traits[key] = Traits(batch)
        return traits

    def _header(self, out: JsonText, batch: Batch) -> None:
        """Write all columns of a batch, and the text before its records."""
        traits, is_wrapper = self._traits_of(batch), batch._is_wrapper()
        out.put(b'{"position":')
        out.number(batch.position)
        out.put(b',"size":')
        out.number(batch.size)
        out.put(traits.at_magic)
        if is_wrapper:
            write_value(out, batch.base_offset)
        else:
            out.number(batch.header_offset)
        out.put(b',"last_offset":')
        out.number(batch.last_offset)
        out.put(traits.at_codec)
        if batch.magic >= 2:
            write_value(out, batch.base_timestamp)
            out.put(b',"max_timestamp":')
        out.number(batch.max_timestamp)
        if batch.magic >= 2:
            self._producer(out, batch)
        out.put(traits.at_flags)
        if batch.magic >= 2:
            write_value(out, batch.base_timestamp if batch.has(DELETE_HORIZON) else None)
            out.put(b',"count":')
        if is_wrapper:
            write_value(out, batch.count)
        else:
            out.number(batch.header_count)  # as for a plain message 1; with a wrong checksum nothing is kept
        out.put(b',"crc":')
        out.number(batch.crc)
        if batch.crc_valid is True and not batch.partial:
            out.put(b',"crc_valid":true,"partial":false,"records":')
            return
        out.put(b',"crc_valid":')
        write_value(out, batch.crc_valid)
        out.put(b',"partial":true,"records":' if batch.partial else b',"partial":false,"records":')

    def _producer(self, out: JsonText, batch: Batch) -> None:
        """Write the fields of magic 2 for the producer and the leader."""
        out.put(b',"producer_id":')
        out.number(batch.producer_id)
        out.put(b',"producer_epoch":')
        out.number(batch.producer_epoch)
        out.put(b',"base_sequence":')
        out.number(batch.base_sequence)
        out.put(b',"partition_leader_epoch":')
        out.number(batch.partition_leader_epoch)


def unusual() -> DecodeError:
    """The error for anything unusual: the text must be made from values."""
    return DecodeError("something is out of the ordinary", 0)
