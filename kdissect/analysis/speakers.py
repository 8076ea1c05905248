"""Clients, named by what tells them from others."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from kdissect.exchange import Exchange


@lru_cache(maxsize=4_096)
def address(endpoint: str) -> str:
    """``10.0.0.1:50000`` without the port: one text for all exchanges of a client."""
    return endpoint.rpartition(":")[0]


class Speaker(NamedTuple):
    """A client, named by what tells it from others: address and client id."""

    client: str
    client_id: str | None


def speaker(exchange: Exchange) -> Speaker:
    """The client that asks."""
    return Speaker(address(exchange.client), exchange.client_id)
