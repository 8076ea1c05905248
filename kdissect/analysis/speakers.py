"""Clients, by their address and client id."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from kdissect.exchange import Exchange


@lru_cache(maxsize=4_096)
def address(endpoint: str) -> str:
    """``10.0.0.1:50000`` without the port. All exchanges of a client share one string."""
    return endpoint.rpartition(":")[0]


class Speaker(NamedTuple):
    """A client, by its address and client id."""

    client: str
    client_id: str | None


def speaker(exchange: Exchange) -> Speaker:
    """The client of an exchange."""
    return Speaker(address(exchange.client), exchange.client_id)
