"""A connection that is over, made by hand."""

from __future__ import annotations

from kdissect.session.conversation import Connection


def over(connection: int = 0, opened: bool = True, gaps: int = 0) -> Connection:
    return Connection(
        connection=connection,
        client="10.0.0.1:1",
        broker="10.0.0.2:2",
        start_ns=0,
        end_ns=9,
        end="fin",
        packets=9,
        bytes_to_broker=9,
        bytes_from_broker=9,
        retransmitted=0,
        gaps=gaps,
        gap_bytes=gaps,
        skipped_bytes=0,
        exchanges=2,
        protocol="kafka",
        client_id=None,
        software=None,
        sasl=None,
        opened=opened,
    )
