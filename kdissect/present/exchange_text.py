"""Exchanges → lines of NDJSON, straight from the bytes of their messages.

They are the lines that :func:`~kdissect.present.tables.row_line` gives, which makes those where anything is
out of the ordinary: wrong, or hidden, or embedded and wanted.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, BinaryIO

from kdissect.exchange import Exchange
from kdissect.message import Message, Token
from kdissect.model import DecodeError, endpoint_text
from kdissect.present.batches import BATCH_COLUMNS, is_plain, record_objects
from kdissect.present.columns import EXCHANGES
from kdissect.present.options import Options
from kdissect.present.record_text import write_nested, write_value
from kdissect.present.redact import may_hold_secrets
from kdissect.present.sanitise import valid_text
from kdissect.present.tables import row_line
from kdissect.protocol import apis
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.json_form import dumps
from kdissect.protocol.json_text import JsonText
from kdissect.protocol.json_walk import Walk, Way, way_of
from kdissect.protocol.schema import data_struct, message_struct
from kdissect.record.batch import Batch
from kdissect.record.sets import read_record_set


class ExchangeLines:
    """The table of exchanges in NDJSON, with all its columns."""

    def __init__(self, file: BinaryIO, options: Options) -> None:
        self._file = file
        self._options = options._replace(as_text=True)
        self._text = JsonText()
        self._records = RecordSets(self._options)
        self._steps = [
            (f"{',' if at else '{'}{dumps(column.name)}:".encode("ascii"), column.name, column.type)
            for at, column in enumerate(EXCHANGES.columns)
        ]

    def write(self, exchange: Exchange) -> None:
        """Add a row."""
        line = None if self._options.embedded else self._line(exchange)
        self._file.write(row_line(EXCHANGES, exchange, self._options) if line is None else line)

    def close(self) -> None:
        """NDJSON has no end."""

    def _line(self, exchange: Exchange) -> bytes | None:
        """A row; None where it has to be made of its values."""
        out = self._text
        try:
            if exchange.session_faults:
                raise _unusual()
            facts = _facts(exchange)
            for before, name, kind in self._steps:
                out.put(before)
                if kind == "json":
                    message = exchange.request if name == "request" else exchange.response
                    if message is None:
                        out.put(b"null")
                    else:
                        self._message(message, exchange)
                elif kind == "faults":
                    out.put(b"[]")  # where there are any, none of this is kept
                elif kind == "texts":
                    out.put(dumps([valid_text(topic) for topic in exchange.topics]).encode("ascii"))
                else:
                    value = facts[name]
                    write_value(out, valid_text(value) if isinstance(value, str) else value)
        except DecodeError:
            out.cut(0)
            return None
        out.put(b"}\n")
        return out.take()

    def _message(self, message: Message, exchange: Exchange) -> None:
        """Write a request or response.

        :raises DecodeError: that has to be done in the other way.
        """
        out, options = self._text, self._options
        ways = None
        if message.limits is options.limits and not message.header_faults and not isinstance(message, Token):
            ways = _ways(
                message.api_key,
                message.api_version,
                message.header_version,
                message.kind,
                options.show_secrets,
            )
        if ways is None:
            raise _unusual()
        header, body = ways
        cursor = Cursor(message.frame.payload, 0, None, message.limits)
        out.put(b'{"header":')
        Walk(cursor, out, None).write(header)
        if cursor.position != message.body_start:
            raise _unusual()
        out.put(b',"body":')
        self._records.may_end_early = message is exchange.response
        Walk(cursor, out, self._records).write(body)
        if cursor.position != cursor.end:
            raise _unusual()
        out.put(b"}")


def _facts(exchange: Exchange) -> dict[str, Any]:
    """The columns of an exchange that are its attributes, by name: those of its frames at once."""
    facts = {
        "number": exchange.number,
        "connection": exchange.connection,
        "client": endpoint_text(exchange.client_endpoint),
        "broker": endpoint_text(exchange.broker_endpoint),
        "api_key": exchange.api_key,
        "api": exchange.api,
        "api_version": exchange.api_version,
        "correlation_id": exchange.correlation_id,
        "client_id": exchange.client_id,
        "latency_ns": exchange.latency_ns,
        "missing": exchange.missing,
        "inferred": exchange.inferred,
        "error": exchange.error,
    }
    request, response = exchange.request, exchange.response
    frame = None if request is None else request.frame
    facts["request_packet"] = None if frame is None else frame.last_packet
    facts["request_size"] = None if frame is None else frame.size
    facts["request_start_ns"] = None if frame is None else frame.first_ns
    facts["request_time_ns"] = None if frame is None else frame.last_ns
    frame = None if response is None else response.frame
    facts["response_packet"] = None if frame is None else frame.last_packet
    facts["response_size"] = None if frame is None else frame.size
    facts["response_start_ns"] = None if frame is None else frame.first_ns
    facts["response_time_ns"] = None if frame is None else frame.last_ns
    return facts


class RecordSets:
    """Writes record sets inside messages, with their records where those are wanted."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.may_end_early = False
        """Whether it is ordinary that they end inside a batch."""
        self._steps = [
            (f"{',' if at else '{'}{dumps(name)}:".encode("ascii"), name)
            for at, (name, _, _) in enumerate(BATCH_COLUMNS)
        ]

    def write(self, out: JsonText, data: bytes, name: bytes) -> None:
        """Write the batches of a record set that is not of ``__cluster_metadata``.

        :param name: what stands before them.
        :raises DecodeError: something is wrong with them.
        """
        options = self._options
        found = read_record_set(data, options.limits)
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
            self._batch(out, batch)
        out.put(b"]")

    def _batch(self, out: JsonText, batch: Batch) -> None:
        options = self._options
        start = out.size()
        columns = None
        if is_plain(batch, options, False):
            columns = batch.columns()
        else:
            records = record_objects(batch, options, False)
        for before, name in self._steps:
            out.put(before)
            write_value(out, getattr(batch, name))
        out.put(b',"records":')
        if columns is not None:
            write_nested(out, columns, options.bytes_form)
        else:
            out.put(dumps(records).encode("ascii"))
        out.put(b"}")
        if batch._faults:
            out.cut(start)
            raise _unusual()


@lru_cache(maxsize=4096)
def _ways(
    api_key: int | None, api_version: int | None, header_version: int | None, kind: str, show_secrets: bool
) -> tuple[Way, Way] | None:
    """The ways through the header and the body of a message; None where they are not told by this alone, or
    lead to what must not be shown."""
    if api_key is None or api_version is None or header_version is None:
        return None
    if api_key == apis.API_VERSIONS and kind == "response":
        return None  # its version is told by its bytes
    try:
        struct = message_struct(api_key, api_version, kind)
    except LookupError:
        return None
    if may_hold_secrets(struct.name) and not show_secrets:
        return None
    header = way_of(data_struct(f"{kind.capitalize()}Header", header_version))
    body = way_of(struct)
    return None if header is None or body is None else (header, body)


def _unusual() -> DecodeError:
    return DecodeError("something is out of the ordinary", 0)
