"""Exchanges → lines of NDJSON, straight from the bytes of their messages.

They are the lines that :func:`~kdissect.present.tables.row_line` gives, which makes those where anything is
wrong, or what is embedded is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from kdissect.analysis.waits import WaitAndWork, split
from kdissect.exchange import Exchange
from kdissect.message import Message
from kdissect.model import DecodeError, Endpoint, endpoint_text
from kdissect.present.batches import BATCH_COLUMNS, control_of, plain_columns, record_objects
from kdissect.present.body import context_of
from kdissect.present.columns import EXCHANGES, Column
from kdissect.present.options import Options
from kdissect.present.record_text import write_nested, write_texts, write_value
from kdissect.present.redact import asked_of, hidden_fields, verdicts
from kdissect.present.sanitise import valid_text
from kdissect.present.tables import json_value, row_line
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.json_form import dumps
from kdissect.protocol.json_text import JsonText
from kdissect.protocol.json_walk import Walk
from kdissect.protocol.json_way import way_of
from kdissect.protocol.schema import Struct
from kdissect.record.batch import Batch
from kdissect.record.records import Columns
from kdissect.record.sets import read_record_set
from kdissect.record.sound import is_sound

NUMBER, CONNECTION, CLIENT, BROKER, API_KEY, API_VERSION, CORRELATION_ID = range(7)
PACKET, SIZE, START_NS, TIME_NS, TOPICS, FAULTS, MESSAGE, ATTRIBUTE, OTHER = range(7, 16)
GROUPS, TRANSACTIONAL_IDS, WAIT, WORK, POINTS = range(16, 21)
"""How the value of a column is come by."""

_WAYS = {
    "number": NUMBER,
    "connection": CONNECTION,
    "api_key": API_KEY,
    "api_version": API_VERSION,
    "correlation_id": CORRELATION_ID,
    "client": CLIENT,
    "broker": BROKER,
    "wait_ns": WAIT,
    "broker_ns": WORK,
    "also_at": POINTS,
    "topics": TOPICS,
    "groups": GROUPS,
    "transactional_ids": TRANSACTIONAL_IDS,
    "faults": FAULTS,
    "request": MESSAGE,
    "response": MESSAGE,
    "request_packet": PACKET,
    "response_packet": PACKET,
    "request_size": SIZE,
    "response_size": SIZE,
    "request_start_ns": START_NS,
    "response_start_ns": START_NS,
    "request_time_ns": TIME_NS,
    "response_time_ns": TIME_NS,
}
"""Of columns by name; the others that are numbers or text are attributes."""

_MOST_ENDPOINTS = 4_096
"""Whose texts are kept."""
_MOST_CONTROLS = 4_096


class ColumnStep:
    """A column."""

    __slots__ = ("before", "column", "is_of_response", "name", "way")

    def __init__(self, at: int, column: Column) -> None:
        self.column = column
        self.name = column.name
        self.before = f"{',' if at else '{'}{dumps(column.name)}:".encode("ascii")
        """What stands before its value."""
        self.is_of_response = column.name.startswith("response")
        is_plain = column.type in ("int16", "int32", "int64", "text")
        self.way = _WAYS.get(column.name, ATTRIBUTE if is_plain else OTHER)


POSITION, BATCH_SIZE, MAGIC, LAST_OFFSET, MAX_TIMESTAMP, PRODUCER_ID, PRODUCER_EPOCH = range(7)
BASE_SEQUENCE, LEADER_EPOCH, CRC, VALUE = range(7, 11)
"""The same of a batch."""

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
}
"""Of columns that are always numbers, by name."""


class BatchStep:
    """A column of a batch."""

    __slots__ = ("before", "name", "way")

    def __init__(self, at: int, name: str) -> None:
        self.name = name
        self.before = f"{',' if at else '{'}{dumps(name)}:".encode("ascii")
        """What stands before its value."""
        self.way = _BATCH_WAYS.get(name, VALUE)


class ExchangeLines:
    """The table of exchanges in NDJSON, with all its columns."""

    def __init__(self, file: BinaryIO, options: Options) -> None:
        self._file = file
        self._options = options._replace(as_text=True)
        self._text = JsonText()
        self._records = RecordSets(self._options)
        self._judge = SecretJudge(self._options)
        self._walk = Walk(Cursor(b"", 0, None, options.limits), self._text)
        self._ways: dict[Struct, Ways] = {}
        """Those that were needed, by the struct of the body."""
        self._endpoints: dict[Endpoint, bytes] = {}
        """Their texts."""
        self._known: WaitAndWork | None = None
        """Wait and work of the exchange that is being written, once one is asked for."""
        self._steps = [ColumnStep(at, column) for at, column in enumerate(EXCHANGES.columns)]

    def write(self, exchange: Exchange) -> None:
        """Add a row."""
        line = None if self._options.embedded else self._line(exchange)
        self._file.write(row_line(EXCHANGES, exchange, self._options) if line is None else line)

    def close(self) -> None:
        """NDJSON has no end."""

    def _line(self, exchange: Exchange) -> bytes | None:
        """A row; None where it has to be made of its values."""
        out = self._text
        self._known = None
        try:
            if exchange.session_faults:
                raise _unusual()
            for step in self._steps:
                out.put(step.before)
                self._value(exchange, step)
        except DecodeError:
            out.cut(0)
            return None
        out.put(b"}\n")
        return out.take()

    def _value(self, exchange: Exchange, step: ColumnStep) -> None:
        """Write the value of a column.

        :raises DecodeError: the row has to be made of its values.
        """
        out, way = self._text, step.way
        if way == ATTRIBUTE:
            value = getattr(exchange, step.name)
            write_value(out, valid_text(value) if isinstance(value, str) else value)
            return
        if way == NUMBER:
            out.number(exchange.number)
        elif way == CONNECTION:
            out.number(exchange.connection)
        elif way in (API_KEY, API_VERSION, CORRELATION_ID):
            first = exchange.request if exchange.request is not None else exchange.response
            assert first is not None
            if way == API_KEY:
                write_value(out, first.api_key)
            else:
                write_value(out, first.api_version if way == API_VERSION else first.correlation_id)
        elif way == CLIENT:
            self._endpoint(exchange.client_endpoint)
        elif way == BROKER:
            self._endpoint(exchange.broker_endpoint)
        elif way == TOPICS:
            write_texts(out, exchange.topics)
        elif way == GROUPS:
            write_texts(out, exchange.groups)
        elif way == TRANSACTIONAL_IDS:
            write_texts(out, exchange.transactional_ids)
        elif way == FAULTS:
            out.put(b"[]")  # where there are any, none of this is kept
        elif way == POINTS:
            if exchange.seen is None:
                out.put(b"[]")
            else:
                write_texts(out, exchange.also_at)
        elif way in (WAIT, WORK):
            known = self._known
            if known is None:
                known = self._known = split(exchange)
            write_value(out, known.wait_ns if way == WAIT else known.broker_ns)
        elif way == OTHER:
            value = step.column.value(exchange, self._options)
            out.put(dumps(json_value(step.column.type, value, self._options)).encode("ascii"))
        else:
            message = exchange.response if step.is_of_response else exchange.request
            if message is None:
                out.put(b"null")
            elif way == MESSAGE:
                self._message(exchange, message, step.is_of_response)
            elif way == PACKET:
                out.number(message.frame.last_packet)
            elif way == SIZE:
                out.number(message.frame.size)
            else:
                out.number(message.frame.first_ns if way == START_NS else message.frame.last_ns)

    def _endpoint(self, endpoint: Endpoint) -> None:
        """Write an address with its port, whose text is kept."""
        text = self._endpoints.get(endpoint)
        if text is None:
            if len(self._endpoints) >= _MOST_ENDPOINTS:
                self._endpoints.clear()
            text = dumps(endpoint_text(endpoint)).encode("ascii")
            self._endpoints[endpoint] = text
        self._text.put(text)

    def _message(self, exchange: Exchange, message: Message, is_response: bool) -> None:
        """Write a request or response.

        :raises DecodeError: that has to be done in the other way.
        """
        out, options, walk = self._text, self._options, self._walk
        struct = message.body_struct()
        if struct is None or message.limits is not options.limits or message.header_faults:
            raise _unusual()
        if is_response and struct.name == "ApiVersionsResponse":
            struct = message._candidates(struct)[0]
        ways = self._ways.get(struct)
        if ways is None:
            ways = self._ways[struct] = Ways(message, struct, options)
        out.put(b'{"header":')
        walk.begin(message.frame.payload)
        walk.write(ways.header)
        if walk.cursor.position != message.body_start:
            raise _unusual()
        out.put(b',"body":')
        self._records.may_end_early = is_response
        walk.records = self._records
        if ways.hidden is not None and ways.hidden.maybe:
            self._judge.begin(exchange, message, struct, ways.hidden.maybe)
            walk.judge = self._judge
        walk.write(ways.body)
        if walk.cursor.position != walk.cursor.end:
            raise _unusual()
        out.put(b"}")


class Ways:
    """The ways through the header and the body of a message."""

    __slots__ = ("body", "header", "hidden")

    def __init__(self, message: Message, struct: Struct, options: Options) -> None:
        header = message.header_struct()
        assert header is not None
        self.header = way_of(header)
        self.hidden = None if options.show_secrets else hidden_fields(struct.name, options.shown_fields)
        self.body = way_of(struct, self.hidden)


class SecretJudge:
    """Tells secrets by other values of their message, which is decoded for it."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._about: tuple[Exchange, Message, Struct, frozenset[str]] | None = None
        self._verdicts: Iterator[bool] | None = None

    def begin(self, exchange: Exchange, message: Message, struct: Struct, maybe: frozenset[str]) -> None:
        """Begin with another message.

        :param maybe: names of the fields that may be secrets.
        """
        self._about = exchange, message, struct, maybe
        self._verdicts = None

    def hides(self) -> bool:
        """Whether the next value that may be a secret is one.

        :raises DecodeError: the message does not have the form that it was taken for.
        """
        if self._verdicts is None:
            assert self._about is not None
            exchange, message, struct, maybe = self._about
            body = message.decoded()
            if not body.is_exact or body.struct is not struct:
                raise _unusual()
            asked = asked_of(struct.name, context_of(exchange, message, self._options))
            self._verdicts = verdicts(struct, body.values, maybe, asked)
        found = next(self._verdicts, None)
        if found is None:
            raise _unusual()
        return found


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
            raise _unusual()  # what is decoded is made of objects
        found = read_record_set(data[start : start + size], options.limits)
        for each in found.own_faults:
            if not (self.may_end_early and each.kind == "partial-batch"):
                raise _unusual()
        if not options.records:
            for batch in found.batches:
                batch.check()
                if batch._faults:
                    raise _unusual()
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
            raise _unusual()

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
        else:
            write_value(out, getattr(batch, step.name))


def _unusual() -> DecodeError:
    return DecodeError("something is out of the ordinary", 0)
