"""Fields of a filter that are computed from an exchange: values found anywhere in its messages, and flags.

Facts that one exchange cannot show are not offered. :data:`NOT_OFFERED` says what to use instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

from kdissect.exchange import Exchange
from kdissect.filter.field import BODY, FieldKind, FilterField
from kdissect.filter.row import Row
from kdissect.insight.evidence import RANKS
from kdissect.message import Token
from kdissect.present.sanitise import valid_text
from kdissect.protocol.errors import error_name
from kdissect.protocol.program import is_error_code
from kdissect.protocol.schema import Field as SchemaField
from kdissect.protocol.schema import Struct
from kdissect.protocol.select import Selection, pick, selection


@cache
def _with_entity(struct: Struct, entity: str) -> Selection:
    return selection(struct, lambda field: field.entity == entity)


@cache
def _acks(struct: Struct) -> Selection:
    return selection(struct, lambda field: field.name == "acks")


_PARTITION_NAMES = ("partition", "partitionIndex", "partitionId", "index")


def _is_partition(field: SchemaField) -> bool:
    if field.type == "[]int32":
        return field.name in ("partitions", "partitionIndexes")
    return field.type == "int32" and field.name in _PARTITION_NAMES


@cache
def _partition_fields(struct: Struct) -> Selection:
    return selection(struct, _is_partition)


@cache
def _error_fields(struct: Struct) -> Selection:
    return selection(struct, is_error_code)


def _picked(exchange: Exchange | None, plan: Callable[[Struct], Selection]) -> Iterator[Any]:
    for message in exchange.messages if exchange is not None else ():
        body = message.decoded()
        if body.struct is None:
            continue
        for _, value, _ in pick(plan(body.struct), body.values):
            if isinstance(value, list):
                yield from (item for item in value if item is not None)
            else:
                yield value


NOBODY = -1
"""The producer id by which Kafka means no producer."""


def _entities(entity: str, row: Row) -> list[Any]:
    found = _picked(row.exchange, lambda struct: _with_entity(struct, entity))
    return [valid_text(value) if isinstance(value, str) else value for value in found if value != NOBODY]


def _partitions(row: Row) -> list[int]:
    return list(_picked(row.exchange, _partition_fields))


def _acks_of(row: Row) -> list[int]:
    return list(_picked(row.exchange, _acks))


def _errors(row: Row) -> list[str]:
    exchange = row.exchange
    if exchange is None or exchange.response is None:
        return []
    body = exchange.response.decoded()
    if body.struct is None:
        return []
    return [error_name(code) for _, code, _ in pick(_error_fields(body.struct), body.values) if code]


def _packets(row: Row) -> list[int]:
    if row.exchange is None:
        return []
    return [number for message in row.exchange.messages for number in message.frame.packets]


def _truncated(row: Row) -> bool:
    return row.exchange is not None and any(message.is_cut for message in row.exchange.messages)


def _undecoded(row: Row) -> bool:
    if row.exchange is None:
        return False
    bodies = [each.decoded() for each in row.exchange.messages if not isinstance(each, Token)]
    return any(body.struct is None or body.remainder for body in bodies)


def _slow(row: Row) -> bool:
    return row.exchange is not None and row.slowness is not None and row.slowness.is_slow(row.exchange)


def _ids(row: Row) -> list[str]:
    return [sign.id for sign in row.signs]


def _ranks(row: Row) -> list[int]:
    return [sign.rank for sign in row.signs]


SLOW = "slow"
OF_FINDINGS = ("finding", "finding.severity")
"""The fields that need findings."""

COMPUTED = (
    FilterField(
        "errors", FieldKind.ERROR, "every error code of the response that is not 0", _errors, True, BODY
    ),
    FilterField("partition", FieldKind.NUMBER, "partitions in request and response", _partitions, True, BODY),
    FilterField(
        "producer_id",
        FieldKind.NUMBER,
        "producer ids in request and response, outside records",
        partial(_entities, "producerId"),
        True,
        BODY,
        aliases=("producer.id",),
    ),
    FilterField(
        "acks",
        FieldKind.NUMBER,
        "what a Produce request waits for: 0, 1 or -1 (all)",
        _acks_of,
        True,
        BODY,
        codes={"all": -1},
    ),
    FilterField(
        "packet",
        FieldKind.NUMBER,
        "packets that carried its bytes (Wireshark's frame.number)",
        _packets,
        True,
        aliases=("frame", "frame.number"),
    ),
    FilterField(
        SLOW,
        FieldKind.FLAG,
        "the broker's work took longer than slow_ms, or than 99 % of its API (below 100 exchanges: than "
        "three times their median, or 1 s)",
        _slow,
        cost=BODY,
    ),
    FilterField(
        "finding",
        FieldKind.RULE,
        "ids of findings that name this exchange; * stands for any text, as in rebalance-* (reads the "
        "capture twice)",
        _ids,
        True,
        BODY,
    ),
    FilterField(
        "finding.severity",
        FieldKind.NUMBER,
        "severity of these findings: info, notice, warning, critical, in this order",
        _ranks,
        True,
        BODY,
        codes=RANKS,
    ),
    FilterField(
        "truncated", FieldKind.FLAG, "not all bytes of the request or the response were captured", _truncated
    ),
    FilterField(
        "undecoded",
        FieldKind.FLAG,
        "some bytes of the request or the response are in no field",
        _undecoded,
        cost=BODY,
    ),
)

MACROS = {
    "no_response": (
        'request_packet and not response_packet and not missing == "acks=0"',
        "the request needs a response, and none was captured",
    ),
    "duplicate": ("fault.kind == duplicate-correlation", "a request whose correlation id is still in use"),
    "no_request": ("response_packet and not request_packet", "a response whose request was not captured"),
}
"""Flags that are short for a filter: name, filter, meaning."""

NOT_OFFERED = {
    "retransmitted": "kdissect counts retransmitted bytes per connection (-T connections), not per exchange; "
    "quote the word to search for it as text",
}
"""Words that look like flags, but that one exchange cannot show; and what to use instead."""
