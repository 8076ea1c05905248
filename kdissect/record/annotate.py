"""Record sets as a tree: every value with the bytes it was read from.

It reads the same bytes as :mod:`kdissect.record.sets` and :mod:`kdissect.record.batch`, by the same rules and
with the same tolerance. Names are those of Kafka's documentation of its message formats. The unpacked bytes
of a compressed batch are the buffer of its ``records`` (magic 0 and 1: ``value``) node; their nodes are below
it. The nodes without children cover every byte once.
"""

from __future__ import annotations

from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import DecodeError, Fault, Node
from kdissect.protocol.cursor import Cursor
from kdissect.record.batch import CODEC_BITS, Batch
from kdissect.record.messages import (
    LOG_OVERHEAD,
    MESSAGE_HEADER,
    SMALLEST_MESSAGE,
    contents_of,
    message_crc,
    piece,
)
from kdissect.record.nodes import FIELDS_OF_MAGIC, fixed_fields, leaf, record_node, rest
from kdissect.record.scan import MOST_BROKEN
from kdissect.record.sets import frame_defect, read_record_set
from kdissect.wording import plural

_RECORDS_PER_ELEMENT = 16
"""A record takes about eight nodes, each about as large as two plain values. So the number of records drawn
is the limit on elements, divided by this."""


def annotate_record_set(data: bytes, start: int = 0, limits: Limits = DEFAULTS) -> list[Node]:
    """A node for each batch, and one for the bytes outside of batches.

    :param start: the start of the set in the message's buffer, which is added to the ranges. Offsets of
        faults count in the set, as everywhere.
    """
    found = read_record_set(data, limits)
    tree = _Tree(limits.elements // _RECORDS_PER_ELEMENT)
    nodes = [
        tree.batch(batch, f"[{index}]", data, start)
        if batch.magic == 2
        else tree.message(batch, f"[{index}]", data, start)
        for index, batch in enumerate(found.batches)
    ]
    if found.remainder < len(data):
        nodes.append(_remainder(data, found.remainder, start, found.own_faults[-1]))
    return nodes


def _remainder(data: bytes, position: int, shift: int, problem: Fault) -> Node:
    """The bytes outside of batches. If they begin an incomplete batch, its complete fields are named."""
    node = Node("(remainder)", "bytes", None, position + shift, len(data) + shift, fault=problem)
    partial = frame_defect(data, position)
    if len(data) - position > 16 and partial and partial.kind == "partial-batch":
        magic = data[position + 16]
        at = fixed_fields(node, FIELDS_OF_MAGIC[magic], data, position, shift, magic)
        if at < len(data):
            leaf(node, "(cut)", "bytes", data[at:], at + shift, len(data) + shift)
    else:
        node.value = data[position:]
    return node


class _Tree:
    """Draws batches, and counts the records that may still be drawn."""

    def __init__(self, records_left: int) -> None:
        self.records_left = records_left

    def batch(self, batch: Batch, name: str, data: bytes, shift: int) -> Node:
        """A batch of magic 2."""
        node = Node(name, "RecordBatch", None, batch.position + shift, batch.end + shift)
        position = fixed_fields(node, FIELDS_OF_MAGIC[2], data, batch.position, shift, 2)
        _place_header_faults(node, batch)
        records = Node("records", "[]Record", None, position + shift, batch.end + shift)
        node.children.append(records)
        if batch.attributes & CODEC_BITS and position < batch.end:
            unpacked = batch.unpack(position, batch.end)
            if unpacked.fault:
                records.fault = unpacked.fault._replace(offset=batch.position)
            if unpacked.data:
                records.buffer = unpacked.data
                self.records(records, unpacked.data, 0, len(unpacked.data), 0, batch)
            else:
                records.value = data[position : batch.end]
        else:
            self.records(records, data, position, batch.end, shift, batch)
        return node

    def records(self, parent: Node, data: bytes, position: int, end: int, shift: int, batch: Batch) -> None:
        """The records from ``position`` to ``end``, as ``read_records`` reads them."""
        cursor = Cursor(data, position, end)
        found = broken = 0
        while position < end:
            cursor.position, cursor.end = position, end
            kind, problem = "bad-record", None
            size = 0
            try:
                size = cursor.read_varint()
                if not 0 <= size <= cursor.remaining():
                    left = plural(cursor.remaining(), "is", "are")
                    problem = f"a record announces {plural(size, 'byte')}, but {left} left"
            except DecodeError as error:
                problem = error.reason
            if not problem and self.records_left <= 0:
                kind, problem = (
                    "too-many-elements",
                    f"{plural(end - position, 'byte')} of further records, which are not drawn",
                )
            if problem:
                rest(parent, data, position, end, shift, _records_fault(kind, problem, batch.position))
                return
            record, headers = record_node(
                f"[{found}]", cursor, position, size, shift, batch.position, self.records_left
            )
            self.records_left -= 1 + headers
            parent.children.append(record)
            found += 1
            position = record.end - shift
            broken += record.fault is not None
            if broken == MOST_BROKEN:
                problem = f"{MOST_BROKEN} broken records"
                rest(parent, data, position, end, shift, _records_fault(kind, problem, batch.position))
                return
        if found != batch.count and not batch.partial and not parent.fault:
            there = plural(found, "is", "are")
            text = f"the header announces {plural(batch.header_count, 'record')}, but {there} there"
            parent.fault = fault("record-count", text, offset=batch.position)

    def message(self, batch: Batch, name: str, data: bytes, shift: int) -> Node:
        """An outer message of magic 0 or 1, and what it wraps."""
        node = Node(name, "Message", None, batch.position + shift, batch.end + shift)
        fixed_fields(node, FIELDS_OF_MAGIC[batch.magic], data, batch.position, shift, batch.magic)
        _place_header_faults(node, batch)
        value = _key_and_value(node, data, batch.position, batch.end, shift, batch.magic, batch.position)
        if not batch.attributes & CODEC_BITS or value is None:
            return node
        if value.value is None:
            value.fault = fault("bad-batch", "a compressed message has no value", offset=batch.position)
            return node
        unpacked = batch.unpack(value.start - shift + 4, value.end - shift)
        if unpacked.fault:
            value.fault = unpacked.fault._replace(offset=batch.position)
        if unpacked.data:
            value.value, value.buffer = None, unpacked.data
            self._messages(value, unpacked.data, batch.position)
        return node

    def _messages(self, parent: Node, data: bytes, where: int) -> None:
        """The message set inside a wrapper. Offsets are shown as stored."""
        position, end, found = 0, len(data), 0
        while position < end:
            problem = None
            if end - position < LOG_OVERHEAD + SMALLEST_MESSAGE[0]:
                text = f"{plural(end - position, 'byte is', 'bytes are')} left, too few for a message"
                problem = fault("bad-record", text, offset=where)
            else:
                _, size, crc, magic, attributes = MESSAGE_HEADER.unpack_from(data, position)
                left = end - position - LOG_OVERHEAD
                if magic not in (0, 1):
                    problem = fault("bad-magic", f"magic {magic} inside a wrapper", offset=where)
                elif not SMALLEST_MESSAGE[magic] <= size <= left:
                    text = f"a message announces {plural(size, 'byte')}, but {plural(left, 'is', 'are')} left"
                    problem = fault("bad-record", text, offset=where)
                elif self.records_left <= 0:
                    text = f"{plural(end - position, 'byte')} of further messages, which are not drawn"
                    problem = _records_fault("too-many-elements", text, where)
            if problem:
                rest(parent, data, position, end, 0, problem)
                return
            self.records_left -= 1
            message_end = position + LOG_OVERHEAD + size
            node = Node(f"[{found}]", "Message", None, position, message_end)
            parent.children.append(node)
            fixed_fields(node, FIELDS_OF_MAGIC[magic], data, position, 0, magic)
            if message_crc(data, position, message_end) != crc:
                node.children[2].fault = fault("bad-crc", "a message inside a wrapper", offset=where)
            value = _key_and_value(node, data, position, message_end, 0, magic, where)
            if attributes & CODEC_BITS:
                (value or node).fault = fault("nested-compression", "a wrapper in a wrapper", offset=where)
            found += 1
            position = message_end


def _records_fault(kind: str, text: str, offset: int) -> Fault:
    return fault(kind, text, offset=offset, layer="records")


def _place_header_faults(node: Node, batch: Batch) -> None:
    for problem in batch.faults:
        if problem.kind == "bad-crc":
            next(child for child in node.children if child.name == "crc").fault = problem
        else:
            node.fault = node.fault or problem
    if batch.partial:
        left = plural(batch.end - batch.position, "is", "are")
        text = f"the batch announces {plural(batch.size, 'byte')}, but {left} there"
        node.fault = fault("partial-batch", text, offset=batch.position)


def _key_and_value(
    node: Node, data: bytes, position: int, end: int, shift: int, magic: int, where: int
) -> Node | None:
    """Add key and value of a message to its node; return the value's node."""
    try:
        found = contents_of(data, position, end, magic)
    except DecodeError as error:
        start = node.children[-1].end - shift
        rest(node, data, start, end, shift, fault("bad-record", error.reason, offset=where))
        return None
    key, value, last = found.key_at, found.value_at, found.end
    leaf(node, "key", "bytes", piece(data, key, found.key_size), key - 4 + shift, value - 4 + shift)
    leaf(node, "value", "bytes", piece(data, value, found.value_size), value - 4 + shift, last + shift)
    child = node.children[-1]
    if last < end:
        text = f"{plural(end - last, 'byte follows', 'bytes follow')} the value"
        rest(node, data, last, end, shift, fault("bad-record", text, offset=where))
    return child
