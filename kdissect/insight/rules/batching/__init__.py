"""Rules on how records travel: batches, compression, fetches, and how evenly they are spread."""

from __future__ import annotations

from kdissect.insight.rules.batching import batches, compression, fetching

__all__ = ["batches", "compression", "fetching"]
