"""A line of the tree or a cell of the list under the cursor → the filter that selects it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from kdissect.exchange import Exchange
from kdissect.feed.field_values import has_all, values_of
from kdissect.feed.filtering import quoted
from kdissect.filter.compiled import compile_filter
from kdissect.filter.computed import NOBODY
from kdissect.filter.errors import FilterError
from kdissect.filter.field import FieldKind, FilterField
from kdissect.model import Node
from kdissect.present.detail import Detail, TreeSpot
from kdissect.present.options import Options
from kdissect.present.sanitise import valid_text
from kdissect.present.secret_names import REDACTED
from kdissect.present.whole_record import is_redacted
from kdissect.protocol.errors import error_name

OPERATIONS = {
    "only": "{this}",
    "not": "not {this}",
    "and": "({shown}) and {this}",
    "or": "({shown}) or {this}",
}
"""The new filter, made from the filter for one value and the current one."""


_NO_VALUE = re.compile(r"not [\w.]+")
"""The filter for a missing value."""


def joined(operation: str, this: str, shown: str) -> str:
    """The filter of one of the :data:`OPERATIONS`.

    :param this: the filter for the value under the cursor.
    :param shown: the current filter; empty for none.
    """
    if operation == "not" and _NO_VALUE.fullmatch(this):
        operation, this = "only", this.removeprefix("not ")
    if not shown:
        operation = "not" if operation == "not" else "only"
    return OPERATIONS[operation].format(this=this, shown=shown)


# -- a line of the tree -----------------------------------------------------------------------------

_HEADER = {
    "requestApiKey": "api",
    "requestApiVersion": "api_version",
    "correlationId": "correlation_id",
    "clientId": "client_id",
}
_BATCH = {
    "baseOffset": "record.batch_offset",
    "partitionLeaderEpoch": "record.partition_leader_epoch",
    "magic": "record.magic",
    "producerId": "record.producer_id",
    "producerEpoch": "record.producer_epoch",
}
_RECORD = {"key": "record.key", "value": "record.value"}
_INSIDE = {"RecordBatch": _BATCH, "Record": _RECORD, "Message": _RECORD | {"magic": "record.magic"}}
"""For each struct of a record set, its fields that filters have."""


def filter_of_line(detail: Detail, spots: Sequence[TreeSpot]) -> str | None:
    """The filter for the value of a tree line. None if no filter finds it, or if the value is secret.

    :param spots: the line, after the lines around it, the outermost first.
    """
    return _checked(_of_line(detail, spots))


def word_of_line(detail: Detail, spots: Sequence[TreeSpot]) -> str | None:
    """The name of a tree line in filters. None for a line that is no field, if no filter finds it, or if its
    value is secret.

    :param spots: as for :func:`filter_of_line`.
    """
    return None if _is_secret(detail, spots) else _checked(field_of_line(detail, spots))


def _checked(text: str | None) -> str | None:
    try:
        return text if text is None else compile_filter(text).text
    except FilterError:  # too long, or inside bytes that filters do not decode
        return None


def _is_secret(detail: Detail, spots: Sequence[TreeSpot]) -> bool:
    """Whether any part of a line, or of the lines around it, is hidden."""
    return any(spot.is_hidden for spot in spots) or (bool(spots) and detail.is_partly_hidden(spots[-1]))


def field_of_line(detail: Detail, spots: Sequence[TreeSpot]) -> str | None:
    """The name in filters of a tree line's field, whatever its value; None without one.

    :param spots: as for :func:`filter_of_line`.
    """
    spots, nodes = _field_around(spots)
    name = _name_of_line(detail.exchange, spots, nodes)
    # For lines without a more precise filter, the name is that of the API.
    return None if name == "api" and (not nodes or nodes[-1].name not in _HEADER) else name


def _field_around(spots: Sequence[TreeSpot]) -> tuple[list[TreeSpot], list[Node]]:
    """The line of the field to which a line belongs, with the lines around it; and their nodes."""
    spots = [spot for spot in spots if not spot.text.startswith("(")]  # (length), (count): of what is around
    return spots, [spot.branch.node for spot in spots[1:] if spot.branch is not None]


def _name_of_line(exchange: Exchange, spots: Sequence[TreeSpot], nodes: Sequence[Node]) -> str | None:
    """The name of the field: a column of exchanges, a column of records, or the path in the message."""
    message = spots[0].message if spots else None
    if nodes and _is_in_records(spots):
        around = spots[-2].branch
        return _INSIDE.get("" if around is None else around.node.type, {}).get(nodes[-1].name)
    if message is None or not nodes or nodes[0].name != "body":
        return _HEADER.get(nodes[-1].name, "api") if nodes else "api"
    if exchange.api is None or len(nodes) == 1:
        return "api"
    names = [each.name for each in nodes[1:] if not each.name.startswith("[")]
    api = exchange.api[0].lower() + exchange.api[1:]
    return ".".join((api, message.kind, *names))


def _is_in_records(spots: Sequence[TreeSpot]) -> bool:
    """Whether the line is below a record set, or below a batch that is shown alone."""
    if spots[0].message is None and spots[0].branch is not None:
        return True
    sets = [at for at, spot in enumerate(spots) if spot.branch is not None and spot.branch.is_record_set]
    return bool(sets) and sets[0] < len(spots) - 1


def _of_line(detail: Detail, spots: Sequence[TreeSpot]) -> str | None:
    spots, nodes = _field_around(spots)
    if not spots or _is_secret(detail, spots):
        return None
    name = _name_of_line(detail.exchange, spots, nodes)
    if name is None:
        return None
    if name in _VALUES:
        return _cell(name, detail.exchange)
    node = nodes[-1]
    if _is_in_records(spots):
        return None if node.value == NOBODY else _asked(name, node.value, True)
    is_empty = node.type.startswith("[]") and not any(each.name.startswith("[") for each in node.children)
    if not is_empty and (node.children or node.buffer is not None or spots[-1].can_open):
        return name
    if is_empty or node.value is None:
        in_array = any(each.name.startswith("[") for each in nodes)
        return None if in_array or not node.is_decoded else f"not {name}"
    return _asked(name, node.value)


def _asked(path: str, value: object, is_bytes: bool = False) -> str | None:
    literal = _literal(value, is_bytes)
    return None if literal is None else f"{path} == {literal}"


def _literal(value: object, is_bytes: bool = False) -> str | None:
    """A value in the syntax of filters; None if it has no such form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, bytes):
        return _bytes_literal(value)
    if isinstance(value, str):
        return (
            _bytes_literal(value.encode("utf-8", "surrogateescape"))
            if is_bytes
            else quoted(valid_text(value))
        )
    return None


def _bytes_literal(value: bytes) -> str:
    """The text, if all bytes are plain text. If not, the other bytes are written as ``\\xff``."""
    if value.isascii() or not _is_text(value):
        return '"' + "".join(map(_byte, value)) + '"'
    return quoted(value.decode("utf-8"))


def _is_text(value: bytes) -> bool:
    try:
        return value.decode("utf-8").isprintable()
    except UnicodeDecodeError:
        return False


def _byte(value: int) -> str:
    character = chr(value)
    if character in '\\"':
        return f"\\{character}"
    return character if 0x20 <= value < 0x7F else f"\\x{value:02x}"


# -- a cell of the list of records ------------------------------------------------------------------

OF_RECORDS = {
    "Direction": "direction",
    "Time": "timestamp",
    "Topic": "topic",
    "Part": "partition",
    "Key": "key",
    "Value": "value",
    "Hdr": "headers",
    "Size": "value_size",
    "Codec": "codec",
}
"""For each column of the list, the column of the record that it shows."""


def filter_of_record(column: str, record: dict[str, Any], exchange: Exchange) -> str | None:
    """The filter for a record's value in a column of the list; None if filters do not have it, or if it is
    secret.

    :param record: a row of ``read -T records``.
    """
    if column == "No.":
        return f"number == {exchange.number}"
    if column == "Client id":
        return _cell("client_id", exchange)
    name = OF_RECORDS.get(column)
    if column == "Offset":
        known = record["offset"] if record["direction"] == "fetch" else record["assigned_offset"]
        if known is not None:  # its writer and its readers
            fetched = f"record.direction == fetch and record.offset == {known}"
            return f"(record.assigned_offset == {known} or {fetched})"
        name = "offset"
    if name is None or (name in ("key", "value") and is_redacted(record, name)):
        return None
    field, value = f"record.{name}", record[name]
    if name == "headers" and value:  # the list has their number
        return field
    if value is None or name == "headers":
        return f"not {field}"
    if name in ("direction", "codec"):
        return f"{field} == {value}"
    text = _asked(field, value, name in ("key", "value"))
    try:
        return text if text is None else compile_filter(text).text
    except FilterError:  # too long
        return None


# -- a cell of the list -----------------------------------------------------------------------------

_VALUES: dict[str, Callable[[Exchange], object]] = {
    "number": lambda exchange: exchange.number,
    "connection": lambda exchange: exchange.connection,
    "client": lambda exchange: exchange.client,
    "broker": lambda exchange: exchange.broker,
    "api": lambda exchange: exchange.api,
    "api_version": lambda exchange: exchange.api_version,
    "correlation_id": lambda exchange: exchange.correlation_id,
    "client_id": lambda exchange: exchange.client_id,
    "request_packet": lambda exchange: exchange.request.frame.last_packet if exchange.request else None,
    "response_packet": lambda exchange: exchange.response.frame.last_packet if exchange.response else None,
    "request_time_ns": lambda exchange: exchange.request.frame.last_ns if exchange.request else None,
    "latency_ns": lambda exchange: exchange.latency_ns,
    "behind_ns": lambda exchange: exchange.behind_ns,
    "request_size": lambda exchange: exchange.request.frame.size if exchange.request else None,
    "response_size": lambda exchange: exchange.response.frame.size if exchange.response else None,
    "missing": lambda exchange: exchange.missing,
    "error": lambda exchange: exchange.error,
    "topics": lambda exchange: next(iter(exchange.topics), None),
    "faults": lambda exchange: len(exchange.faults) or None,
}
"""The columns of an exchange that the list shows. For several topics, the first."""
_ANY = ("faults",)
"""Columns for which a filter only asks whether they are not empty."""
_SHORT = {"who": "client_id", "what": "api", "sizes": "response_size"}
"""For columns of the list that combine several, the one that filters use."""


def filter_of_column(column: str, exchange: Exchange) -> str | None:
    """The filter for an exchange's value in a column; None for a column that filters do not have.

    The column of remarks has the error, or else the missing side, or else the topics.
    """
    if column == "info":
        column = "error" if exchange.error else "missing" if exchange.missing else "topics"
    return _checked(_cell(_SHORT.get(column, column), exchange))


def filter_of_field(field: FilterField, exchange: Exchange, options: Options) -> str | None:
    """The filter for an exchange's value in a column that shows a field. It uses the whole value, not a cut
    text. None if the exchange has several values, or a secret, or if not all records were searched for
    one."""
    values = set(values_of(field, exchange, options))
    if not values:
        none = f"not {field.name}"
        is_so = has_all(field, exchange) and compile_filter(none, options).matches(exchange)
        return none if is_so else None
    (value, *others) = values
    if others or value in (REDACTED, REDACTED.encode()):
        return None
    if field.kind is FieldKind.ERROR and isinstance(value, int):
        return _named(field.name, error_name(value))
    text = _asked(field.name, value, field.kind is FieldKind.BYTES)
    try:
        return text if text is None else compile_filter(text, options).text
    except FilterError:  # too long
        return None


def _cell(column: str, exchange: Exchange) -> str | None:
    read = _VALUES.get(column)
    if read is None:
        return None
    value = read(exchange)
    if value is None:
        return f"not {column}"
    if column in _ANY:
        return column
    if column in ("api", "error"):
        return _named(column, str(value))
    return _asked(column, value)


def _named(column: str, name: str) -> str:
    """The filter for the name of an error or an API, without quotes if possible."""
    return f"{column} == {name if name.isidentifier() else quoted(name)}"
