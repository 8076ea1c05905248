"""One batch of a record set: the fields of its header, and access to its records.

The header is read together with the set (:mod:`kdissect.record.sets`); :meth:`Batch.records` unpacks the
batch and reads its records. A wrong checksum is a fault, and the batch is decoded all the same.
"""

from __future__ import annotations

from struct import Struct

from kdissect.faults import fault
from kdissect.limits import MIB, Limits
from kdissect.model import DecodeError, Fault
from kdissect.record.compression import CODECS, Unpacked, decompress
from kdissect.record.frames import unpack_frame
from kdissect.record.messages import LOG_OVERHEAD, Contents, unwrap
from kdissect.record.records import Columns, Record
from kdissect.record.scan import read_records
from kdissect.wording import plural

BATCH_HEADER = Struct(">qiibIhiqqqhii")
"""baseOffset, batchLength, partitionLeaderEpoch, magic, crc, attributes, lastOffsetDelta, baseTimestamp,
maxTimestamp, producerId, producerEpoch, baseSequence, recordsCount."""
SMALLEST_BATCH = BATCH_HEADER.size - LOG_OVERHEAD
CRC_START = 21
"""The start of the bytes that a batch's CRC-32C covers in magic 2: from the attributes to the end."""

CODEC_BITS, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40
"""Bits of the attributes (``DefaultRecordBatch``)."""
NEWEST_CODEC = len(CODECS) - 1

_HONEST_RATIO = 32
"""The ratio to which a whole set may unpack, beyond one batch's limit: text and JSON reach 5 to 20."""
_NOT_YET = -(1 << 62)
_MIB = MIB
# The same constants, as C numbers if this module is compiled.
_HEADER_BYTES, _CODEC_BITS, _LOG_APPEND_TIME = BATCH_HEADER.size, CODEC_BITS, LOG_APPEND_TIME


def codec_name(attributes: int) -> str:
    """``gzip``; ``unknown(6)`` for ids that Kafka does not have."""
    codec = attributes & CODEC_BITS
    return CODECS[codec] if codec < len(CODECS) else f"unknown({codec})"


class Budget:
    """How many more bytes and records the batches of one set may give.

    :param size: bytes of the set.
    """

    __slots__ = ("bytes", "elements", "limits", "most_bytes", "most_elements", "ratio")

    def __init__(self, size: int, limits: Limits) -> None:
        self.limits = limits
        self.most_bytes = limits.decompressed_bytes
        """The most bytes to which one batch may unpack, whatever its size."""
        self.ratio = limits.decompressed_ratio
        """The most bytes to which it may unpack for each byte, beyond the first MiB."""
        self.most_elements = limits.elements
        """The most records and headers of one batch."""
        self.begin(size)

    def begin(self, size: int) -> None:
        """Start again with another set of ``size`` bytes."""
        self.bytes = max(self.most_bytes, _HONEST_RATIO * size)
        self.elements = max(self.most_elements, size)

    def bound(self, packed: int, granted: int) -> int:
        """The most bytes to which ``packed`` bytes may unpack; the same as in
        :func:`~kdissect.record.compression.decompress`.

        :param granted: how many bytes the set had left.
        """
        return min(self.most_bytes, max(_MIB, self.ratio * packed), granted)


class Batch:
    """One batch: its header, and access to its records. Numbers are as in Kafka's iterators: -1 if magic 0
    and 1 have no producer or epoch, -1 for no timestamp."""

    __slots__ = (
        *("_budget", "_bytes_granted", "_data", "_elements_granted", "_faults", "_inner", "_is_told"),
        *("attributes", "base_sequence", "base_timestamp", "crc", "crc_valid", "header_count"),
        *("header_offset", "last_offset", "magic", "max_timestamp", "partial", "partition_leader_epoch"),
        *("position", "producer_epoch", "producer_id", "size"),
    )

    def __init__(self, data: bytes, position: int, budget: Budget) -> None:
        self.begin(data, position, budget)

    def begin(self, data: bytes, position: int, budget: Budget) -> None:
        """Start again with the batch at ``position`` of a set."""
        self.position = position
        """The position of its first byte in the set."""
        self.size = 0
        """The bytes that it announces, including the header; more than there are if it is partial."""
        self.magic = 0
        self.attributes = 0
        self.last_offset = -1
        self.base_timestamp: int | None = None
        """None in magic 0 and 1."""
        self.max_timestamp = -1
        """The largest timestamp; in magic 0 and 1, the outer message's."""
        self.producer_id = -1
        self.producer_epoch = -1
        self.base_sequence = -1
        self.partition_leader_epoch = -1
        self.crc = 0
        self.crc_valid: bool | None = None
        """None if the batch is partial: it cannot be checked."""
        self.partial = False
        self.header_offset = 0
        """The offset in the header: the first record's, or in magic 0 and 1 the last record's."""
        self.header_count = 1
        """The number of records in the header."""
        self._data = data
        self._budget = budget
        self._faults: tuple[Fault, ...] = ()
        self._bytes_granted = _NOT_YET
        """How many bytes the set could still unpack when this batch was first unpacked. Unpacking it again
        gives the same result, and is not counted again."""
        self._elements_granted = _NOT_YET
        """How many records and headers this batch may have, decided at the first read."""
        self._is_told = False
        """Whether the faults of its records are among its faults."""
        self._inner: tuple[int | None, int | None] | None = None
        """Base offset and count, if only the records contain them."""

    def __repr__(self) -> str:
        return f"<Batch of magic {self.magic} at {self.position}, {plural(self.size, 'byte')}>"

    @property
    def codec(self) -> str:
        return codec_name(self.attributes)

    @property
    def timestamp_type(self) -> str:
        if self.magic == 0:
            return "NoTimestampType"
        return "LogAppendTime" if self.attributes & LOG_APPEND_TIME else "CreateTime"

    @property
    def is_transactional(self) -> bool:
        return self.has(TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return self.has(CONTROL)

    def has(self, bit: int) -> bool:
        """Whether a bit is set that only magic 2 has in its attributes."""
        return self.magic >= 2 and self.attributes & bit != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the tombstones may be removed (KIP-534). If its bit is set, the base timestamp has this
        meaning too."""
        return self.base_timestamp if self.has(DELETE_HORIZON) else None

    @property
    def base_offset(self) -> int | None:
        """The offset of the first record. For a wrapper of magic 0 or 1, the wrapper is unpacked; None if
        that fails."""
        return self.header_offset if not self._is_wrapper() else self._of_wrapper()[0]

    @property
    def count(self) -> int | None:
        """The number of records: in magic 2, as in the header. In magic 0 and 1, those that were found; None
        if unknown, because the checksum is wrong or the wrapper broken."""
        if self.magic >= 2:
            return self.header_count
        if not self.crc_valid:
            return None
        return self._of_wrapper()[1] if self._is_wrapper() else 1

    @property
    def faults(self) -> list[Fault]:
        """The faults of the header, and after :meth:`records`, the faults of the records."""
        return list(self._faults)

    @property
    def end(self) -> int:
        """The end of its captured bytes in the set."""
        return self._end()

    def _end(self) -> int:
        end = self.position + self.size
        return min(end, len(self._data))

    def records(self) -> list[Record]:
        """Its valid records; broken ones are faults. They are read again at every call."""
        return self.columns().records()

    @property
    def is_packed(self) -> bool:
        """Whether its records are compressed, with a known codec."""
        return 0 < self.attributes & CODEC_BITS <= NEWEST_CODEC

    def columns(self, into: Columns | None = None) -> Columns:
        """Its valid records as columns, without an object for each.

        :param into: columns that may be used; their old content is lost.
        """
        return self._read_batch(True, False, into) if self.magic >= 2 else self._read_message(into)

    def check(self) -> None:
        """Find the faults of its records and add them to its faults."""
        if self._is_told:
            return
        if self.magic >= 2:
            self._read_batch(False, False, None)
        else:
            self._read_message(None)

    def _limit(self) -> int:
        """How many records and headers it may have; the same at each call."""
        if self._elements_granted == _NOT_YET:
            self._elements_granted = min(self._budget.most_elements, self._budget.elements)
        return self._elements_granted

    def _count_once(self, elements: int, faults: list[Fault]) -> None:
        """Count records and headers, and add faults, if this is the first time."""
        if not self._is_told:
            self._is_told = True
            self._budget.elements -= elements
            if faults:
                self._faults += tuple([each._replace(offset=self.position) for each in faults])

    def stored_timestamps(self) -> list[int]:
        """The timestamps stored in the records of magic 2 themselves. If the timestamp type is
        ``LogAppendTime``, these are the producer's, which a broker does not give to readers any more."""
        self.check()
        return [record.timestamp for record in self._read_batch(True, True, None).records()]

    def note(self, problem: Fault) -> None:
        """Add a fault of the header."""
        self._faults = (*self._faults, problem)

    def unpack(self, start: int, end: int) -> Unpacked:
        """Unpack the compressed bytes of this batch, from ``start`` to ``end`` of the set."""
        first = self._bytes_granted == _NOT_YET
        if first:
            self._bytes_granted = self._budget.bytes
        codec, packed = self.attributes & CODEC_BITS, self._data[start:end]
        unpacked = decompress(codec, packed, self.magic, self._budget.limits, self._bytes_granted)
        if first:
            self._budget.bytes -= len(unpacked.data)
        return unpacked

    def _unpacked(self, start: int, end: int, faults: list[Fault]) -> bytes:
        """The unpacked bytes; faults are added to ``faults``."""
        first, budget, packed = self._bytes_granted == _NOT_YET, self._budget, self._data[start:end]
        bound = budget.bound(end - start, budget.bytes if first else self._bytes_granted)
        whole = unpack_frame(self.attributes & _CODEC_BITS, packed, self.magic, bound)
        if whole is None:
            unpacked = self.unpack(start, end)
            if unpacked.fault is not None:
                faults.append(unpacked.fault)
            return unpacked.data
        if first:
            self._bytes_granted = budget.bytes
            budget.bytes -= len(whole)
        return whole

    def _is_wrapper(self) -> bool:
        return self.magic < 2 and bool(self.attributes & CODEC_BITS)

    def _of_wrapper(self) -> tuple[int | None, int | None]:
        if self._inner is None:
            self.records()
        return self._inner or (None, None)

    def _read_batch(self, keep: bool, as_stored: bool, into: Columns | None) -> Columns:
        """Read records of magic 2, and add their faults.

        :param keep: whether to fill the columns.
        :param as_stored: use the stored timestamps, whatever the timestamp type.
        :param into: as for :meth:`columns`.
        """
        faults: list[Fault] = []
        source, position, end = self._data, self.position + _HEADER_BYTES, self._end()
        where = "of the set"
        if self.attributes & _CODEC_BITS and position < end:
            source = self._unpacked(position, end, faults)
            position, end = 0, len(source)
            where = "of the unpacked bytes"
            # It is no further fault that the compressed data of a partial batch are incomplete.
            if faults and self.partial and faults[0].kind == "bad-compressed-data":
                faults.clear()
        cut = self.partial or bool(faults)
        assert self.base_timestamp is not None
        body = read_records(
            source,
            position,
            end,
            self.header_offset,
            self.base_timestamp,
            self.max_timestamp if self.attributes & _LOG_APPEND_TIME and not as_stored else None,
            self.base_sequence,
            self._limit(),
            keep,
            into,
        )
        if self._is_told:
            return body.columns
        if body.broken:
            faults.append(
                fault(
                    "bad-record",
                    f"{body.broken:,} of {plural(body.found, 'record')} cannot be read; the first, at byte "
                    f"{body.first_position} {where}: {body.first_problem}",
                )
            )
        if body.not_utf8:
            names = plural(body.not_utf8, "name of a header", "names of headers")
            faults.append(fault("not-utf8", names, layer="records"))
        if body.over_limit:
            faults.append(fault("too-many-elements", str(body.stopped), layer="records"))
        elif body.stopped and not cut:
            unread = plural(end - body.end, "byte is", "bytes are")
            text = f"{body.stopped}; {unread} not read, from byte {body.end} {where} on"
            faults.append(fault("bad-record", text))
        elif body.found != self.header_count and not cut:
            announced, there = plural(self.header_count, "record"), plural(body.found, "is", "are")
            faults.append(fault("record-count", f"the header announces {announced}, but {there} there"))
        self._count_once(body.elements, faults)
        return body.columns

    def _read_message(self, into: Columns | None) -> Columns:
        """Read a message of magic 0 or 1, and add its faults."""
        data, limit, end = self._data, self._limit(), self._end()
        found = into
        if found is None:
            found = Columns(data, 0, -1)
        else:
            found.begin(data, 0, -1)
        contents = Contents.__new__(Contents)  # find() fills it
        try:
            contents.find(data, self.position, end, self.magic)
        except DecodeError as error:
            self._inner = (None, None)
            self._count_once(0, [fault("bad-record", error.reason)])
            return found
        faults = []
        if contents.end < end:
            faults.append(
                fault("bad-record", f"{plural(end - contents.end, 'byte follows', 'bytes follow')} the value")
            )
        if not self._is_wrapper():
            found.base_offset = self.last_offset
            contents.add_to(found, self.last_offset, self.max_timestamp)
            self._count_once(1, faults)
            return found
        if contents.value_size < 0:
            self._inner = (None, None)
            self._count_once(0, [*faults, fault("bad-batch", "a compressed message has no value")])
            return found
        before = len(faults)
        unpacked = self._unpacked(contents.value_at, contents.end, faults)
        inner = unwrap(
            unpacked,
            len(faults) == before,
            self.magic,
            self.last_offset,
            self.max_timestamp if self.magic and self.attributes & _LOG_APPEND_TIME else None,
            limit,
            found,
        )
        self._inner = (inner.base_offset, inner.found if inner.found >= 0 else None)
        self._count_once(inner.columns.count, faults + inner.faults)
        return inner.columns
