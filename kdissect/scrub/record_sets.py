"""Record sets → record sets of the same form, with headers, offsets, times and sizes, and without contents.

Keys become other keys of the same length, and equal keys stay equal. Names of record headers become tokens.
Values become zeros, compressed records become bytes that begin with :data:`~kdissect.scrub.allowed.MARK`.
Valid checksums become valid checksums; wrong ones stay wrong.

Control records, and the records of brokers in ``__cluster_metadata``, contain no user data. They are
rewritten field by field.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import crc32c

from kdissect.embedded.internal import decode_internal
from kdissect.limits import Limits
from kdissect.model import DecodeError, Node
from kdissect.protocol.cursor import Cursor
from kdissect.record.batch import BATCH_HEADER, CODEC_BITS, CRC_START, Batch
from kdissect.record.messages import contents_of
from kdissect.record.sets import frame_defect, read_record_set
from kdissect.scrub.allowed import MARK
from kdissect.scrub.damaged_numbers import Range, blank_texts
from kdissect.scrub.values import Scrubber, encoded

Write = Callable[[list[Node], bytes, bytearray], None]
"""Writes the allowed parts of these nodes, which were read from the bytes, into bytes of the same length."""

_CRC = slice(17, 21)
_MESSAGE_CRC = slice(12, 16)
_MESSAGE_CRC_START = 16
_MAGIC = 16


class _CopiedBytes:
    """Copies bytes."""

    def __init__(self, data: bytes, out: bytearray) -> None:
        self.data, self.out = data, out
        self._copied: list[Range] = []

    def keep(self, start: int, end: int) -> None:
        """Copy these bytes."""
        self.out[start:end] = self.data[start:end]
        self._copied.append((start, end))

    def doubt(self) -> None:
        """Note that the bytes may be something else than they were read as."""
        blank_texts(self.out, self._copied)


def _copy_header(copy: _CopiedBytes, position: int) -> None:
    """Write the captured part of the header of a batch that breaks off. The rest of it is unknown."""
    data = copy.data
    defect = frame_defect(data, position) if position < len(data) else None
    if defect is None or defect.kind != "partial-batch":
        return
    magic = data[position + _MAGIC] if len(data) - position > _MAGIC else 0
    size = BATCH_HEADER.size if magic == 2 else _MAGIC + 2
    copy.keep(position, min(len(data), position + size))


class RecordSetScrubber:
    """Replaces record sets.

    :param write: writes messages that are embedded in records.
    """

    def __init__(self, scrubber: Scrubber, limits: Limits, write: Write) -> None:
        self._scrubber, self._limits, self._write = scrubber, limits, write
        self.compressed = 0
        """How many batches were compressed: the lengths of their keys are lost."""

    def scrubbed(self, data: bytes, is_metadata: bool, is_sure: bool = True) -> bytes:
        """The replacement of a set.

        :param is_metadata: whether it belongs to ``__cluster_metadata``.
        :param is_sure: whether it is certainly a record set. Then its batches are where they seem to be, up
            to the first one with a wrong checksum.
        """
        out = bytearray(len(data))
        found = read_record_set(data, self._limits)
        for batch in found.batches:
            header, copy = _CopiedBytes(data, out), _CopiedBytes(data, out)
            if batch.magic == 2:
                self._batch(batch, header, copy, is_metadata)
            else:
                self._message(batch, header, copy)
            if not is_sure:
                header.doubt()
            if not is_sure or batch.crc_valid is False:
                copy.doubt()
            is_sure = is_sure and batch.crc_valid is not False
        header = _CopiedBytes(data, out)
        _copy_header(header, found.remainder)
        if not is_sure:
            header.doubt()
        return bytes(out)

    def _batch(self, batch: Batch, header: _CopiedBytes, copy: _CopiedBytes, is_metadata: bool) -> None:
        out = copy.out
        start, end = batch.position, batch.end
        first = start + BATCH_HEADER.size
        header.keep(start, first)
        if batch.attributes & CODEC_BITS:
            self._packed(batch, out, first, end)
        else:
            self._records(batch, copy, first, end, is_metadata)
        if batch.crc_valid:
            crc = crc32c.crc32c(bytes(out[start + CRC_START : end]))
            out[start + _CRC.start : start + _CRC.stop] = crc.to_bytes(4, "big")

    def _packed(self, batch: Batch, out: bytearray, start: int, end: int) -> None:
        self.compressed += 1
        for record in batch.records():
            self._take(record.key)
            self._take(record.value)
            for name, value in record.headers:
                self._take(encoded(name))
                self._take(value)
        mark = MARK[: end - start]
        out[start : start + len(mark)] = mark

    def _take(self, data: bytes | None) -> None:
        if data:
            self._scrubber.taken.add(data)

    def _records(self, batch: Batch, copy: _CopiedBytes, position: int, end: int, is_metadata: bool) -> None:
        cursor = Cursor(copy.data, position, end)
        while position < end:
            cursor.position, cursor.end = position, end
            try:
                size = cursor.read_varint()
            except DecodeError:
                return
            begin = cursor.position
            copy.keep(position, begin)
            if not 0 < size <= end - begin:
                return
            cursor.end = position = begin + size
            try:
                self._record(cursor, copy, batch.is_control, is_metadata)
            except DecodeError:
                continue

    def _record(self, cursor: Cursor, copy: _CopiedBytes, is_control: bool, is_metadata: bool) -> None:
        data, out, start = copy.data, copy.out, cursor.position
        cursor.read_int8()
        cursor.read_varlong()
        cursor.read_varint()
        key_size = cursor.read_varint()
        copy.keep(start, cursor.position)
        key_at = cursor.take(max(key_size, 0))
        start = cursor.position
        value_size = cursor.read_varint()
        copy.keep(start, cursor.position)
        value_at = cursor.take(max(value_size, 0))
        key = data[key_at : key_at + key_size] if key_size >= 0 else None
        value = data[value_at : value_at + value_size] if value_size >= 0 else None
        if is_control or is_metadata:
            self._internal("control" if is_control else "metadata", key, value, key_at, value_at, out)
        else:
            if key:
                out[key_at : key_at + key_size] = self._scrubber.key(key)
            self._take(value)
        self._headers(cursor, copy)

    def _headers(self, cursor: Cursor, copy: _CopiedBytes) -> None:
        data, out, start = copy.data, copy.out, cursor.position
        count = cursor.read_varint()
        copy.keep(start, cursor.position)
        for _ in range(min(count, cursor.remaining())):
            start = cursor.position
            size = cursor.read_varint()
            copy.keep(start, cursor.position)
            at = cursor.take(size)
            name = data[at : at + size].decode("utf-8", "surrogateescape")
            out[at : at + size] = encoded(self._scrubber.name(name))
            start = cursor.position
            size = cursor.read_varint()
            copy.keep(start, cursor.position)
            at = cursor.take(max(size, 0))
            self._take(data[at : at + max(size, 0)])

    def _internal(
        self, family: str, key: bytes | None, value: bytes | None, key_at: int, value_at: int, out: bytearray
    ) -> None:
        """Write a record whose form is Kafka's own."""
        found = decode_internal(family, key, value, limits=self._limits)
        for part, data, at in ((found.key_part, key, key_at), (found.value_part, value, value_at)):
            if part is not None and data:
                made = bytearray(len(data))
                self._write(part.draw(), data, made)
                out[at : at + len(data)] = made

    def _message(self, batch: Batch, header: _CopiedBytes, copy: _CopiedBytes) -> None:
        """Write a message of magic 0 or 1."""
        data, out = copy.data, copy.out
        start, end = batch.position, batch.end
        header.keep(start, min(end, start + (26 if batch.magic == 1 else 18)))
        try:
            found = contents_of(data, start, end, batch.magic)
        except DecodeError:
            return
        for at in (found.key_at, found.value_at):
            copy.keep(at - 4, at)
        if found.key_size > 0:
            key = data[found.key_at : found.key_at + found.key_size]
            out[found.key_at : found.key_at + found.key_size] = self._scrubber.key(key)
        if batch.attributes & CODEC_BITS:
            self._packed(batch, out, found.value_at, found.end)
        elif found.value_size > 0:
            self._take(data[found.value_at : found.end])
        if batch.crc_valid:
            crc = zlib.crc32(bytes(out[start + _MESSAGE_CRC_START : end]))
            out[start + _MESSAGE_CRC.start : start + _MESSAGE_CRC.stop] = crc.to_bytes(4, "big")
