"""Requests from a broker's request log or a capture → the same requests, sent again.

A line of the request log has the header and the body as JSON. It has only the size of records, so kdissect
cannot send a logged Produce again. It sends a captured request byte by byte, with a new correlation id.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from kdissect.client.changing import changes
from kdissect.exchange import Exchange
from kdissect.message import Request
from kdissect.protocol import apis
from kdissect.protocol.encode import encode
from kdissect.protocol.json_form import from_json
from kdissect.protocol.schema import data_struct, message_struct
from kdissect.protocol.traits import api_traits


class ReplayedRequest(NamedTuple):
    """A request to be sent."""

    api_key: int
    api_version: int
    message: bytes
    """Header and body, without the size."""
    may_change: bool
    """Whether it may change data."""
    source: str
    """The place that it comes from, for people."""

    @property
    def name(self) -> str:
        return f"{apis.api_name(self.api_key)} v{self.api_version}"


class DamagedLineError(ValueError):
    """A damaged line of a log: it is cut, or mixed with other output."""


def from_log_line(line: str, number: int) -> ReplayedRequest | None:
    """The request in a line of a request log: a line of the broker's log, or only its JSON. None if the line
    has no request.

    :raises ValueError: it cannot be sent again; the text says why.
    """
    begin = line.find("{")
    if begin < 0:
        return None
    try:
        found, _ = json.JSONDecoder().raw_decode(line, begin)
    except (ValueError, RecursionError):
        raise DamagedLineError(f"line {number}: the request is not JSON") from None
    if not isinstance(found, dict):
        return None
    header = found.get("requestHeader", found.get("header"))
    body = found.get("request")
    if not isinstance(header, dict) or not isinstance(body, dict):
        return None
    if "body" in body and "header" in body:
        header, body = body["header"], body["body"]  # an exchange, as kdissect prints it
    return _encoded(header, body, number)


def _encoded(header: dict[str, Any], body: Any, number: int) -> ReplayedRequest:
    try:
        key, version = int(header["requestApiKey"]), int(header["requestApiVersion"])
    except (KeyError, TypeError, ValueError):
        raise DamagedLineError(f"line {number}: its header names no API and version") from None
    source = f"line {number}"
    try:
        struct = message_struct(key, version, "request")
        head = data_struct("RequestHeader", apis.request_header_version(key, version))
        said = {name: value for name, value in header.items() if name in head.by_name}
        values = from_json(struct, body)
        message = encode(head, from_json(head, {**said, "correlationId": 0})) + encode(struct, values)
    except LookupError as error:
        raise ValueError(f"{source}: {error.args[0]}") from None
    except ValueError as error:
        name = apis.api_name(key)
        raise ValueError(f"{source}: {name} v{version} cannot be sent again: {error}") from None
    return ReplayedRequest(key, version, message, changes(key, values), source)


def from_exchange(exchange: Exchange) -> ReplayedRequest | None:
    """The request of a captured exchange; None if the exchange has no whole request."""
    request = exchange.request
    if not isinstance(request, Request) or request.is_cut or request.api_key is None:
        return None
    if request.api_version is None or api_traits(request.api_key).logs_in:
        return None  # the new connection has a login of its own
    body = request.decoded()
    values = body.values if body.is_exact else None
    may_change = changes(request.api_key, values)
    payload = request.frame.payload
    return ReplayedRequest(
        request.api_key, request.api_version, payload, may_change, f"exchange {exchange.number}"
    )


def from_log(lines: Iterator[str]) -> Iterator[ReplayedRequest | ValueError]:
    """The requests of a log, in order. A ValueError in place of a request says why it cannot be sent."""
    for number, line in enumerate(lines, 1):
        try:
            found = from_log_line(line, number)
        except ValueError as error:
            yield error
            continue
        if found is not None and not api_traits(found.api_key).logs_in:
            yield found
