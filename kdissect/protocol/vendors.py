"""Vendors that use API keys which Kafka itself does not have."""

from __future__ import annotations

VENDORS: tuple[tuple[str, range], ...] = (
    ("AutoMQ", range(501, 603)),
    ("Confluent", range(10_000, 1 << 15)),
)
"""The vendors, each with the keys that it uses for its own requests."""


def vendor_of(api_key: int) -> str | None:
    """The vendor that uses a key for a request of its own; None if no vendor is known to."""
    return next((name for name, keys in VENDORS if api_key in keys), None)
