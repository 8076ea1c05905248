"""Record sets → record sets of the same form: headers, offsets, times and sizes, and nothing that was said.

Keys become other keys of the same length, so that equal ones stay equal. Names of record headers become
tokens. Values are filled up with zeros, compressed records with bytes that begin with
:data:`~kdissect.scrub.allowed.MARK`. Checksums that were right are right again; wrong ones stay wrong.

What brokers tell each other in ``__cluster_metadata``, and control records, are no values of users. They are
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
from kdissect.scrub.values import Scrubber, encoded

Write = Callable[[list[Node], bytes, bytearray], None]
"""Writes what may stay of these nodes, which were read from the bytes, into others of the same length."""

_CRC = slice(17, 21)
_MESSAGE_CRC = slice(12, 16)
_MESSAGE_CRC_START = 16
_MAGIC = 16


class RecordSets:
    """What becomes of record sets.

    :param write: for what is embedded in records.
    """

    def __init__(self, scrubber: Scrubber, limits: Limits, write: Write) -> None:
        self._scrubber, self._limits, self._write = scrubber, limits, write
        self.compressed = 0
        """How many batches were compressed: their keys cannot be told apart any more."""

    def scrubbed(self, data: bytes, is_metadata: bool) -> bytes:
        """What becomes of a set.

        :param is_metadata: whether it is one of ``__cluster_metadata``.
        """
        out = bytearray(len(data))
        found = read_record_set(data, self._limits)
        for batch in found.batches:
            if batch.magic == 2:
                self._batch(batch, data, out, is_metadata)
            else:
                self._message(batch, data, out)
        self._rest(data, found.remainder, out)
        return bytes(out)

    def _rest(self, data: bytes, position: int, out: bytearray) -> None:
        """The header of a message that breaks off: no more of it is known."""
        if len(data) - position > _MAGIC and data[_MAGIC + position] < 2:
            defect = frame_defect(data, position)
            if defect is not None and defect.kind == "partial-batch":
                out[position : position + _MAGIC + 2] = data[position : position + _MAGIC + 2]
        elif len(data) - position > _MAGIC and data[_MAGIC + position] == 2:
            end = min(len(data), position + BATCH_HEADER.size)
            out[position:end] = data[position:end]
        else:
            end = min(len(data), position + 12)
            out[position:end] = data[position:end] if end - position == 12 else bytes(end - position)

    def _batch(self, batch: Batch, data: bytes, out: bytearray, is_metadata: bool) -> None:
        start, end = batch.position, batch.end
        first = start + BATCH_HEADER.size
        out[start:first] = data[start:first]
        if batch.attributes & CODEC_BITS:
            self._packed(batch, out, first, end)
        else:
            self._records(batch, data, out, first, end, is_metadata)
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

    def _records(
        self, batch: Batch, data: bytes, out: bytearray, position: int, end: int, is_metadata: bool
    ) -> None:
        cursor = Cursor(data, position, end)
        while position < end:
            cursor.position, cursor.end = position, end
            try:
                size = cursor.read_varint()
            except DecodeError:
                return
            begin = cursor.position
            out[position:begin] = data[position:begin]
            if not 0 < size <= end - begin:
                return
            cursor.end = position = begin + size
            try:
                self._record(cursor, out, batch.is_control, is_metadata)
            except DecodeError:
                continue

    def _record(self, cursor: Cursor, out: bytearray, is_control: bool, is_metadata: bool) -> None:
        data, start = cursor.data, cursor.position
        cursor.read_int8()
        cursor.read_varlong()
        cursor.read_varint()
        key_size = cursor.read_varint()
        out[start : cursor.position] = data[start : cursor.position]
        key_at = cursor.take(max(key_size, 0))
        start = cursor.position
        value_size = cursor.read_varint()
        out[start : cursor.position] = data[start : cursor.position]
        value_at = cursor.take(max(value_size, 0))
        key = data[key_at : key_at + key_size] if key_size >= 0 else None
        value = data[value_at : value_at + value_size] if value_size >= 0 else None
        if is_control or is_metadata:
            self._internal("control" if is_control else "metadata", key, value, key_at, value_at, out)
        else:
            if key:
                out[key_at : key_at + key_size] = self._scrubber.key(key)
            self._take(value)
        self._headers(cursor, out)

    def _headers(self, cursor: Cursor, out: bytearray) -> None:
        data, start = cursor.data, cursor.position
        count = cursor.read_varint()
        out[start : cursor.position] = data[start : cursor.position]
        for _ in range(min(count, cursor.remaining())):
            start = cursor.position
            size = cursor.read_varint()
            out[start : cursor.position] = data[start : cursor.position]
            at = cursor.take(size)
            name = data[at : at + size].decode("utf-8", "surrogateescape")
            out[at : at + size] = encoded(self._scrubber.name(name))
            start = cursor.position
            size = cursor.read_varint()
            out[start : cursor.position] = data[start : cursor.position]
            at = cursor.take(max(size, 0))
            self._take(data[at : at + max(size, 0)])

    def _internal(
        self, family: str, key: bytes | None, value: bytes | None, key_at: int, value_at: int, out: bytearray
    ) -> None:
        """A record whose form is Kafka's own."""
        found = decode_internal(family, key, value, limits=self._limits)
        for part, data, at in ((found.key_part, key, key_at), (found.value_part, value, value_at)):
            if part is not None and data:
                made = bytearray(len(data))
                self._write(part.draw(), data, made)
                out[at : at + len(data)] = made

    def _message(self, batch: Batch, data: bytes, out: bytearray) -> None:
        """A message of magic 0 or 1."""
        start, end = batch.position, batch.end
        first = start + (26 if batch.magic == 1 else 18)
        out[start:first] = data[start:first]
        try:
            found = contents_of(data, start, end, batch.magic)
        except DecodeError:
            return
        for at in (found.key_at, found.value_at):
            out[at - 4 : at] = data[at - 4 : at]
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
