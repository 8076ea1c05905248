"""What a capture covers: what rules must know before they accuse anybody."""

from __future__ import annotations

from typing import NamedTuple


class Context(NamedTuple):
    """The whole of what was captured."""

    first_ns: int | None = None
    last_ns: int | None = None
    packets: int = 0
    exchanges: int = 0
    one_sided: int = 0
    """Exchanges of which one side was not captured, though it should have been."""
    connections: int = 0
    """All of them, whatever they speak."""
    kafka: int = 0
    """Those that speak Kafka."""
    dark: int = 0
    """Those of TLS that are not decrypted."""
    mid_stream: int = 0
    """Those of Kafka that began before the capture."""
    gap_bytes: int = 0
    captured_bytes: int = 0
    """Of both directions of all connections."""

    @property
    def span_ns(self) -> int:
        """From the first to the last that was seen."""
        if self.first_ns is None or self.last_ns is None:
            return 0
        return self.last_ns - self.first_ns

    @property
    def span_s(self) -> float:
        return self.span_ns / 1e9
