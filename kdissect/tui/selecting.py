"""A line of the tree or a cell of the list under the cursor → the filter that selects it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from kdissect.exchange import Exchange
from kdissect.feed.filtering import quoted
from kdissect.filter.compiled import compile_filter
from kdissect.filter.computed import NOBODY
from kdissect.filter.errors import FilterError
from kdissect.present.detail import Detail, TreeSpot
from kdissect.present.sanitise import valid_text
from kdissect.present.whole_record import is_redacted

OPERATIONS = {
    "only": "{this}",
    "not": "not {this}",
    "and": "({shown}) and {this}",
    "or": "({shown}) or {this}",
}
"""Of one value, and of the filter that is set, the filter that follows."""


def joined(operation: str, this: str, shown: str) -> str:
    """The filter that one of the :data:`OPERATIONS` makes of the one that is set and of what is under the
    cursor."""
    if not shown:
        operation = "not" if operation == "not" else "only"
    return OPERATIONS[operation].format(this=this, shown=shown)


# -- a line of the tree -----------------------------------------------------------------------------

_HEADER = {"requestApiVersion": "api_version", "correlationId": "correlation_id", "clientId": "client_id"}
_BATCH = {
    "baseOffset": "record.batch_offset",
    "partitionLeaderEpoch": "record.partition_leader_epoch",
    "magic": "record.magic",
    "producerId": "record.producer_id",
    "producerEpoch": "record.producer_epoch",
}
_RECORD = {"key": "record.key", "value": "record.value"}
_INSIDE = {"RecordBatch": _BATCH, "Record": _RECORD, "Message": _RECORD | {"magic": "record.magic"}}
"""Struct of a record set: its fields that a filter can ask for."""


def filter_of_line(detail: Detail, spots: Sequence[TreeSpot]) -> str | None:
    """The filter for the value of a line of the tree. None if no filter finds it, or if the value is secret.

    :param spots: the line, after those around it, the outermost first.
    """
    asked = _of_line(detail, spots)
    return None if asked is None else _checked(asked.text())


def word_of_line(detail: Detail, spots: Sequence[TreeSpot]) -> str | None:
    """The name by which a filter asks for a line of the tree. None for a line that is no field, if no filter
    finds it, or if its value is secret.

    :param spots: as for :func:`filter_of_line`.
    """
    asked = _of_line(detail, spots)
    return None if asked is None or not asked.is_its_own else _checked(asked.word)


def _checked(text: str | None) -> str | None:
    try:
        return text if text is None else compile_filter(text).text
    except FilterError:  # too long, or inside bytes of which filters know nothing
        return None


class _Asked(NamedTuple):
    """What a filter asks of a line."""

    word: str
    """The name of a field or column."""
    text: Callable[[], str | None]
    """Makes the filter; None if none can be written for the value."""
    is_its_own: bool = True
    """Whether it is about this line, not about the exchange as a whole."""


def _of_line(detail: Detail, spots: Sequence[TreeSpot]) -> _Asked | None:
    spots = [spot for spot in spots if not spot.text.startswith("(")]  # (length), (count): of what is around
    if not spots or any(spot.is_hidden for spot in spots) or detail.is_partly_hidden(spots[-1]):
        return None
    exchange, message = detail.exchange, spots[0].message
    nodes = [spot.branch.node for spot in spots[1:] if spot.branch is not None]
    if message is None or not nodes or nodes[0].name != "body":
        name = _HEADER.get(nodes[-1].name) if nodes else None
        is_its_own = name is not None or (bool(nodes) and nodes[-1].name == "requestApiKey")
        return _Asked(name or "api", partial(_cell, name or "api", exchange), is_its_own)
    sets = [at for at, spot in enumerate(spots) if spot.branch is not None and spot.branch.is_record_set]
    node = nodes[-1]
    if sets and sets[0] < len(spots) - 1:
        around = nodes[-2].type if len(nodes) > 1 else ""
        known = _INSIDE.get(around, {}).get(node.name)
        if known is None or node.value == NOBODY:
            return None
        return _Asked(known, partial(_asked, known, node.value, True))
    if exchange.api is None or len(nodes) == 1:
        return _Asked("api", partial(_cell, "api", exchange), False)
    names = [each.name for each in nodes[1:] if not each.name.startswith("[")]
    api = exchange.api[0].lower() + exchange.api[1:]
    path = ".".join((api, message.kind, *names))
    is_empty = node.type.startswith("[]") and not any(each.name.startswith("[") for each in node.children)
    if not is_empty and (node.children or node.buffer is not None or spots[-1].can_open):
        return _Asked(path, lambda: path)
    if is_empty or node.value is None:
        in_array = any(each.name.startswith("[") for each in nodes)
        return None if in_array or not node.is_decoded else _Asked(path, lambda: f"not {path}")
    return _Asked(path, partial(_asked, path, node.value))


def _asked(path: str, value: object, is_bytes: bool = False) -> str | None:
    literal = _literal(value, is_bytes)
    return None if literal is None else f"{path} == {literal}"


def _literal(value: object, is_bytes: bool = False) -> str | None:
    """A value as a filter writes it; None for one that it cannot."""
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
    """Text where the bytes are nothing but plain text, else each byte that is none as ``\\xff``."""
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
"""Column of the list: that of the record that it shows."""


def filter_of_record(column: str, record: dict[str, Any], exchange: Exchange) -> str | None:
    """The filter for what a record has in a column of the list; None if no filter asks for it, or if it is
    secret.

    :param record: a row of ``read -T records``.
    """
    if column == "No.":
        return f"number == {exchange.number}"
    if column == "Client id":
        return _cell("client_id", exchange)
    name = OF_RECORDS.get(column)
    if column == "Offset":
        name = "offset" if record["assigned_offset"] is None else "assigned_offset"
    if name is None or (name in ("key", "value") and is_redacted(record, name)):
        return None
    field, value = f"record.{name}", record[name]
    if name == "headers" and value:  # the list has their number
        return field
    if value is None or name == "headers":
        none = f"not {field}"  # which asks for exchanges where no record has one
        return none if compile_filter(none).matches(exchange) else None
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
"""Columns of an exchange that the list shows. Of several topics the first."""
_ANY = ("faults",)
"""Columns of which a filter asks only whether anything stands there."""
_SHORT = {"who": "client_id", "what": "api", "sizes": "response_size"}
"""Columns of the list that say in one what stands in several: the one that is asked for."""


def filter_of_column(column: str, exchange: Exchange) -> str | None:
    """The filter for what an exchange has in a column; None for a column that none asks for.

    What is told in the column of remarks is the error if there is one, else what is missing, else the topics.
    """
    if column == "info":
        column = "error" if exchange.error else "missing" if exchange.missing else "topics"
    return _cell(_SHORT.get(column, column), exchange)


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
        return f"{column} == {value}" if str(value).isidentifier() else f"{column} == {quoted(str(value))}"
    return _asked(column, value)
