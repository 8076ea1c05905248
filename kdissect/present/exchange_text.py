"""Exchanges → lines of NDJSON, straight from the bytes of their messages.

They are the same lines that :func:`~kdissect.present.tables.row_line` gives. That function makes the lines
with faults or with embedded bytes. An exchange in brief becomes a line directly, without an Exchange.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

from kdissect.analysis.waits import WaitAndWork, split
from kdissect.exchange import Exchange
from kdissect.model import DecodeError, Endpoint, endpoint_text
from kdissect.present.brief_text import BriefText
from kdissect.present.columns import EXCHANGES, Column
from kdissect.present.message_text import MessageText
from kdissect.present.options import Options
from kdissect.present.record_set_text import unusual
from kdissect.present.record_text import write_texts, write_value
from kdissect.present.tables import json_value, row_line
from kdissect.protocol.json_form import dumps
from kdissect.protocol.json_text import JsonText
from kdissect.session.briefs import Brief

NUMBER, CONNECTION, CLIENT, BROKER, API_KEY, API, API_VERSION, CORRELATION_ID, CLIENT_ID = range(9)
PRINCIPAL, PACKET, START_NS, TIME_NS, LATENCY, BEHIND, BEHIND_ID, NETWORK, THROTTLE = range(9, 18)
SERVED, WAIT, WORK, TRANSFER, THINK, SIZE, MISSING, INFERRED, ERROR, ERROR_CLASS = range(18, 28)
TOPICS, GROUPS, TRANSACTIONAL_IDS, POINT, POINTS, BETWEEN, FAULTS, MESSAGE, OTHER = range(28, 37)
"""The ways to get the value of a column."""

_WAYS = {
    "number": NUMBER,
    "connection": CONNECTION,
    "client": CLIENT,
    "broker": BROKER,
    "api_key": API_KEY,
    "api": API,
    "api_version": API_VERSION,
    "correlation_id": CORRELATION_ID,
    "client_id": CLIENT_ID,
    "principal": PRINCIPAL,
    "request_packet": PACKET,
    "response_packet": PACKET,
    "request_start_ns": START_NS,
    "response_start_ns": START_NS,
    "request_time_ns": TIME_NS,
    "response_time_ns": TIME_NS,
    "latency_ns": LATENCY,
    "behind_ns": BEHIND,
    "behind_correlation_id": BEHIND_ID,
    "network_ns": NETWORK,
    "throttle_ns": THROTTLE,
    "served_ns": SERVED,
    "wait_ns": WAIT,
    "broker_ns": WORK,
    "request_transfer_ns": TRANSFER,
    "response_transfer_ns": TRANSFER,
    "think_ns": THINK,
    "request_size": SIZE,
    "response_size": SIZE,
    "missing": MISSING,
    "inferred": INFERRED,
    "error": ERROR,
    "error_class": ERROR_CLASS,
    "topics": TOPICS,
    "groups": GROUPS,
    "transactional_ids": TRANSACTIONAL_IDS,
    "capture_point": POINT,
    "also_at": POINTS,
    "between_ns": BETWEEN,
    "faults": FAULTS,
    "request": MESSAGE,
    "response": MESSAGE,
}
"""The ways, by the names of columns."""

_BYTES_A_PIECE = 1 << 16
_MOST_ENDPOINTS = 4_096
"""The most endpoints whose texts are kept."""


class ColumnStep:
    """A column, and how to write it."""

    __slots__ = ("before", "column", "is_of_response", "way")

    def __init__(self, at: int, column: Column) -> None:
        self.column = column
        self.before = f"{',' if at else '{'}{dumps(column.name)}:".encode("ascii")
        """The text before its value."""
        self.is_of_response = column.name.startswith("response")
        self.way = _WAYS.get(column.name, OTHER)


class ExchangeLines:
    """The table of exchanges in NDJSON, with all its columns."""

    def __init__(self, file: BinaryIO, options: Options) -> None:
        self._file = file
        self._options = options._replace(as_text=True)
        self._text = JsonText()
        self._messages = MessageText(self._text, self._options)
        self._briefs = BriefText(self._text, self._messages)
        self._endpoints: dict[Endpoint, bytes] = {}
        """The texts of endpoints."""
        self._known: WaitAndWork | None = None
        """Wait and work of the exchange that is being written, once a column needs them."""
        self._steps = [ColumnStep(at, column) for at, column in enumerate(EXCHANGES.columns)]

    def write(self, source: Exchange | Brief) -> None:
        """Add a row."""
        self.write_all((source,))

    def write_all(self, sources: Iterable[Exchange | Brief]) -> None:
        """Add rows, many at a time."""
        out, whole = self._text, 0
        try:
            for source in sources:
                self._add(source)
                whole = out.size()
                if whole >= _BYTES_A_PIECE:
                    self._file.write(out.take())
                    whole = 0
        finally:
            out.cut(whole)
            if whole:
                self._file.write(out.take())  # including the rows before one that failed

    def _add(self, source: Exchange | Brief) -> None:
        """Add a row to the text."""
        if isinstance(source, Brief):
            if self._briefs.write(source):
                return
            source = source.exchange()
        if self._options.embedded or not self._line(source):
            self._text.put(row_line(EXCHANGES, source, self._options))

    def close(self) -> None:
        """NDJSON has no end."""

    def _line(self, exchange: Exchange) -> bool:
        """Add a row. Return False, and add nothing, if the row must be made from its values."""
        out = self._text
        begun = out.size()
        self._known = None
        try:
            if exchange.session_faults:
                raise unusual()
            for step in self._steps:
                out.put(step.before)
                self._value(exchange, step)
        except DecodeError:
            out.cut(begun)
            return False
        out.put(b"}\n")
        return True

    def _value(self, exchange: Exchange, step: ColumnStep) -> None:
        """Write the value of a column.

        :raises DecodeError: the row must be made from its values.
        """
        out, way = self._text, step.way
        message = exchange.response if step.is_of_response else exchange.request
        if way == NUMBER:
            out.number(exchange.number)
        elif way == CONNECTION:
            out.number(exchange.connection)
        elif way == CLIENT:
            out.put(self._endpoint(exchange.client_endpoint))
        elif way == BROKER:
            out.put(self._endpoint(exchange.broker_endpoint))
        elif way == API_KEY:
            write_value(out, exchange._first().api_key)
        elif way == API:
            write_value(out, exchange.api)
        elif way == API_VERSION:
            write_value(out, exchange._first().api_version)
        elif way == CORRELATION_ID:
            write_value(out, exchange._first().correlation_id)
        elif way == CLIENT_ID:
            write_value(out, exchange.client_id)
        elif way == PRINCIPAL:
            write_value(out, exchange.principal)
        elif way == LATENCY:
            write_value(out, exchange.latency_ns)
        elif way == BEHIND:
            write_value(out, exchange.behind_ns)
        elif way == BEHIND_ID:
            write_value(out, exchange.behind_correlation_id)
        elif way == NETWORK:
            write_value(out, exchange.network_ns)
        elif way == THROTTLE:
            write_value(out, exchange.throttle_ns)
        elif way == SERVED:
            write_value(out, exchange.served_ns)
        elif way in (WAIT, WORK):
            known = self._known
            if known is None:
                known = self._known = split(exchange)
            write_value(out, known.wait_ns if way == WAIT else known.broker_ns)
        elif way == TRANSFER:
            took = exchange.response_transfer_ns if step.is_of_response else exchange.request_transfer_ns
            write_value(out, took)
        elif way == THINK:
            write_value(out, exchange.think_ns)
        elif way == MISSING:
            write_value(out, exchange.missing)
        elif way == INFERRED:
            write_value(out, exchange.inferred)
        elif way == ERROR:
            write_value(out, exchange.error)
        elif way == ERROR_CLASS:
            write_value(out, exchange.error_class)
        elif way == TOPICS:
            write_texts(out, exchange.topics)
        elif way == GROUPS:
            write_texts(out, exchange.groups)
        elif way == TRANSACTIONAL_IDS:
            write_texts(out, exchange.transactional_ids)
        elif way == POINT:
            write_value(out, exchange.capture_point)
        elif way == POINTS:
            write_texts(out, exchange.also_at)
        elif way == BETWEEN:
            write_value(out, exchange.between_ns)
        elif way == FAULTS:
            out.put(b"[]")  # if there are some, nothing of this is kept
        elif way == OTHER:
            value = step.column.value(exchange, self._options)
            out.put(dumps(json_value(step.column.type, value, self._options)).encode("ascii"))
        elif message is None:
            out.put(b"null")
        elif way == MESSAGE:
            self._messages.write(exchange, message, step.is_of_response)
        elif way == PACKET:
            out.number(message.frame.last_packet)
        elif way == SIZE:
            out.number(message.frame.size)
        else:
            out.number(message.frame.first_ns if way == START_NS else message.frame.last_ns)

    def _endpoint(self, endpoint: Endpoint) -> bytes:
        """The text of an address with its port. It is kept."""
        text = self._endpoints.get(endpoint)
        if text is None:
            if len(self._endpoints) >= _MOST_ENDPOINTS:
                self._endpoints.clear()
            text = dumps(endpoint_text(endpoint)).encode("ascii")
            self._endpoints[endpoint] = text
        return text
