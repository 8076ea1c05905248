"""What a column is, and the columns of an exchange: one list for NDJSON, CSV, Parquet, Arrow and
``kdissect fields``. The other tables are in :mod:`kdissect.present.catalogue`.

A :class:`Column` has a name, a type and a meaning. It reads its value from a row's source: an exchange, a
connection, a fault, or a dict from another module. Types are these words:

``int16 int32 int64 float64 bool text bytes``   plain values; null if a value is absent.
``texts``      list of text.
``int64s``     list of int64.
``faults``     list of {layer, kind, message, packet, offset}.
``headers``    list of {key, value}: text and bytes.
``json``       an object; JSON text if the format has no objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kdissect.analysis.declared import PLAIN as PLAIN_UNIT
from kdissect.analysis.declared import unit_of
from kdissect.exchange import Exchange
from kdissect.lazy import Later
from kdissect.model import Fault
from kdissect.present.nearest import nearest
from kdissect.present.options import PLAIN, Options
from kdissect.present.sanitise import valid_text

if TYPE_CHECKING:
    from kdissect.analysis import waits
    from kdissect.present import body
else:  # lines and statistics do not need it
    waits = Later("kdissect.analysis.waits")
    body = Later("kdissect.present.body")

Source = Any
"""The source of a row: an Exchange, a Connection, a Fault or a dict."""


class Column(NamedTuple):
    """One column of a table."""

    name: str
    type: str
    meaning: str
    value: Callable[[Source, Options], Any]
    aliases: tuple[str, ...] = ()
    optional: bool = False
    """Whether NDJSON leaves it out if it is null."""
    unit: str = PLAIN_UNIT
    """The unit of its numbers, for people: a word of :mod:`kdissect.analysis.declared`."""
    rare: bool = False
    """Whether a table for people leaves it out if all values are 0."""
    kept: bool = False
    """Whether it is the last of all figures to be left out if there is too little room."""
    key: str | None = None
    """Its key in a row that is a dict. The value is used unchanged, except for text that is not valid."""
    apart: bool = False
    """Whether a table for people leaves it out if all rows have the same value."""


class Table(NamedTuple):
    """A table: its name on the command line and its columns in order."""

    name: str
    columns: tuple[Column, ...]

    def select(self, names: Iterable[str]) -> Table:
        """A copy of the table with these columns only, in this order.

        :raises LookupError: there is no such column; the text names the nearest.
        """
        known = self._known()
        return Table(self.name, tuple(self._found(known, name) for name in names))

    def column(self, name: str) -> Column:
        """A column by its name or an alias, ignoring case and underscores.

        :raises LookupError: no column has that name; the text names the nearest.
        """
        return self._found(self._known(), name)

    def _known(self) -> dict[str, Column]:
        return {_plain(word): column for column in self.columns for word in (column.name, *column.aliases)}

    def _found(self, known: dict[str, Column], name: str) -> Column:
        found = known.get(_plain(name))
        if found is None:
            raise LookupError(f"{self.name} have no column {name!r}{nearest(name, self.words())}")
        return found

    def words(self) -> list[str]:
        """Names and aliases."""
        return [word for column in self.columns for word in (column.name, *column.aliases)]

    def row(self, source: Source, options: Options = PLAIN) -> list[Any]:
        """The values of one row."""
        return [column.value(source, options) for column in self.columns]


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


# -- values of columns ------------------------------------------------------------------------------


def _attribute(name: str, source: Source, _: Options) -> Any:
    return getattr(source, name)


def _text(name: str, source: Source, _: Options) -> str | None:
    value = getattr(source, name)
    return None if value is None else valid_text(value)


def _item(name: str, source: Source, _: Options) -> Any:
    return source.get(name)


def _message(side: str, exchange: Exchange, options: Options) -> dict[str, Any] | None:
    return body.side_object(exchange, side, options)


def _known(name: str, exchange: Exchange, _: Options) -> int | None:
    value: int | None = getattr(waits.split(exchange), name)
    return value


def _names(name: str, exchange: Exchange, _: Options) -> list[str]:
    return [valid_text(each) for each in getattr(exchange, name)]


def _faults(exchange: Exchange, _: Options) -> list[dict[str, Any]]:
    return [fault_object(each) for each in exchange.faults]


def fault_object(fault: Fault) -> dict[str, Any]:
    """A fault inside a row that names the exchange itself."""
    return {
        "layer": fault.layer,
        "kind": fault.kind,
        "message": fault.message,
        "packet": fault.packet,
        "offset": fault.offset,
    }


def attribute_column(name: str, kind: str, meaning: str, *aliases: str) -> Column:
    """A column that is an attribute of the row's source."""
    read = _text if kind == "text" else _attribute
    return Column(name, kind, meaning, partial(read, name), aliases)


def dict_column(name: str, kind: str, meaning: str, optional: bool = False) -> Column:
    """A column of rows that are dicts. A missing value is null."""
    return Column(name, kind, meaning, partial(_item, name), (), optional, unit_of(name))


# -- exchanges -------------------------------------------------------------------------------------

EXCHANGES = Table(
    "exchanges",
    (
        attribute_column("number", "int64", "number of the exchange: 1, 2, … in the order of recognition"),
        attribute_column(
            "connection",
            "int64",
            "the TCP connection: 0, 1, … by its first packet (Wireshark's tcp.stream)",
            "conn",
            "tcp.stream",
        ),
        attribute_column("client", "text", "address:port of the client"),
        attribute_column("broker", "text", "address:port of the broker"),
        attribute_column(
            "api_key", "int16", "Kafka's number of the API; null for raw SASL tokens", "api.key"
        ),
        attribute_column("api", "text", "Kafka's newest name of the API, without Request"),
        attribute_column("api_version", "int16", "version of the API", "version", "api.version"),
        attribute_column(
            "correlation_id",
            "int32",
            "the client's number for the request",
            "correlation",
            "correlation.id",
            "corr",
        ),
        attribute_column("client_id", "text", "the name the client gives itself", "client.id"),
        attribute_column("principal", "text", "user of the connection, from its login"),
        attribute_column(
            "request_packet",
            "int64",
            "packet whose arrival completed the request (Wireshark's frame.number)",
        ),
        attribute_column(
            "response_packet",
            "int64",
            "packet whose arrival completed the response",
        ),
        attribute_column(
            "request_start_ns",
            "int64",
            "time of the packet with the request's first byte, ns since the epoch",
        ),
        attribute_column(
            "request_time_ns",
            "int64",
            "time of the packet that completed the request, ns since the epoch",
            "time",
        ),
        attribute_column(
            "response_start_ns",
            "int64",
            "time of the packet with the response's first byte, ns since the epoch",
        ),
        attribute_column(
            "response_time_ns",
            "int64",
            "time of the packet that completed the response, ns since the epoch",
        ),
        attribute_column(
            "latency_ns",
            "int64",
            "response_start_ns - request_time_ns, as captured: may be negative",
            "latency",
        ),
        attribute_column(
            "behind_ns",
            "int64",
            "part of latency_ns: the wait behind the previous request of the connection (a broker serves "
            "one at a time); null if unknown",
            "behind",
        ),
        attribute_column(
            "behind_correlation_id", "int32", "correlation_id of the request that it waited behind"
        ),
        attribute_column(
            "network_ns",
            "int64",
            "part of latency_ns: the network, as the smallest round trip so far between capture point and "
            "broker on the connection; null if unknown",
            "network",
        ),
        attribute_column(
            "throttle_ns",
            "int64",
            "part of latency_ns: the delay by a quota, from its own response (brokers before 2.0) or the "
            "previous one; null if unknown",
            "throttle",
        ),
        attribute_column(
            "served_ns",
            "int64",
            "time of the broker: latency_ns - behind_ns - throttle_ns - network_ns (0 if unknown)",
            "served",
        ),
        Column(
            "wait_ns",
            "int64",
            "part of served_ns: the wait that the client asked for (long poll); null if unknown",
            partial(_known, "wait_ns"),
            ("wait",),
        ),
        Column(
            "broker_ns",
            "int64",
            "part of served_ns: the broker's work (the rest); null if the wait is unknown",
            partial(_known, "broker_ns"),
            ("broker_time",),
        ),
        attribute_column(
            "request_transfer_ns",
            "int64",
            "from the first byte of the request to its last",
            "request.transfer",
        ),
        attribute_column(
            "response_transfer_ns",
            "int64",
            "from the first byte of the response to its last",
            "response.transfer",
        ),
        attribute_column(
            "think_ns",
            "int64",
            "the client's time since the previous response, if no other request was waiting; null if unknown",
            "think",
        ),
        attribute_column(
            "request_size",
            "int64",
            "bytes of the request without the 4-byte size",
            "size",
            "request.size",
        ),
        attribute_column(
            "response_size",
            "int64",
            "bytes of the response without the 4-byte size",
            "response.size",
        ),
        attribute_column(
            "missing",
            "text",
            "why one side is missing or the response incomplete: acks=0, not captured, gap, skipped, "
            "capture ended, connection closed, waiting, evicted",
        ),
        attribute_column(
            "inferred", "text", "what kdissect concluded although it is not on the wire, with the evidence"
        ),
        attribute_column("error", "text", "the first error code of the response that is not 0, by name"),
        attribute_column(
            "error_class",
            "text",
            "the gravest error of the response: fatal (the client gives up), retriable (it tries again) or "
            "routine (an ordinary step; kdissect fields errors says more)",
        ),
        Column(
            "topics",
            "texts",
            "topics in the order of the message, each once",
            partial(_names, "topics"),
            ("topic",),
        ),
        Column(
            "groups",
            "texts",
            "group ids in request and response, each once",
            partial(_names, "groups"),
            ("group", "group.id"),
        ),
        Column(
            "transactional_ids",
            "texts",
            "transactional ids in request and response, each once",
            partial(_names, "transactional_ids"),
            ("transactional_id", "transactional.id"),
        ),
        attribute_column(
            "capture_point",
            "text",
            "capture point, if several captured the same traffic; null if there is only one",
        ),
        Column("also_at", "texts", "the other capture points that saw it", partial(_names, "also_at")),
        attribute_column(
            "between_ns",
            "int64",
            "response time at the capture point farthest from the broker minus that at the nearest: the "
            "network between them, both ways",
            "between",
        ),
        Column("faults", "faults", "what is wrong with the captured bytes", _faults, ("fault",)),
        Column("request", "json", "header and body in Kafka's JSON form", partial(_message, "request")),
        Column("response", "json", "header and body in Kafka's JSON form", partial(_message, "response")),
    ),
)
