"""How much of anything is taken in before it is refused: one table, each with its reason.

Captured bytes are hostile until proven otherwise; no length or count read from them is trusted
further than these bounds. A limit that was hit is always reported as a fault.
"""

from __future__ import annotations

from typing import NamedTuple

MIB = 1 << 20
LARGEST = (1 << 63) - 1
"""No limit can be more; it is counted in 64 bits."""


class Limits(NamedTuple):
    """Defaults follow the systems named beside them; every one can be set by the user."""

    packet_bytes: int = 262_144
    """One captured packet (libpcap's MAXIMUM_SNAPLEN)."""
    block_bytes: int = 16 * MIB
    """One pcapng block (libpcap)."""
    layers: int = 16
    """Nested link, network and tunnel headers (Suricata)."""
    tunnels: int = 4
    """Tunnels inside tunnels (Zeek)."""
    fragment_bytes: int = 32 * MIB
    """IP fragments that wait for the others (Suricata's defrag memcap)."""
    fragments: int = 65_535
    """How many pieces of them wait (Suricata)."""
    fragment_ns: int = 60_000_000_000
    """How long they wait."""
    reorder_bytes: int = 10 * MIB
    """Bytes of one direction that wait behind a hole (Zeek)."""
    reorder_one_sided_bytes: int = MIB
    """The same where the other direction was not captured: no acknowledgement will ever settle the hole."""
    waiting_bytes: int = 128 * MIB
    """What waits in all connections together: bytes behind holes and for a TLS secret, bytes of connections
    of which it is not known yet what they speak, the beginnings of frames (the largest frame fits), and
    requests for their responses. Of more, the connections that hold most wait no longer."""
    frame_bytes: int = 104_857_600
    """Kafka's socket.request.max.bytes; a larger size prefix is taken for a lost boundary."""
    connections: int = 65_536
    """Connections remembered at a time, of four kilobytes each; of more, those that were silent longest are
    given up."""
    tenants: int = 64
    """Connections between the same endpoints that came through tunnels, and the networks by which one of them
    is known; of more connections, those that were silent longest are given up."""
    settle_bytes: int = 65_536
    """Bytes of a connection that are held back until it is known what it speaks."""
    tls_wait_bytes: int = MIB
    """Encrypted bytes of a connection that wait for its secret, which may come later."""
    secret_bytes: int = 256 * MIB
    """What the TLS secrets take that are remembered: those of over a million connections of TLS 1.2, or of
    600,000 of TLS 1.3, which are three million lines of a key log. Of more, the oldest are forgotten."""
    elements: int = 1_000_000
    """Elements of one array."""
    message_elements: int = 2_000_000
    """Elements of all arrays of one message, and tagged fields. An element of two bytes may take 250 in
    memory; a Metadata response of 200,000 partitions with three replicas each, what one cluster can have
    without KRaft, is 1,400,000."""
    tree_nodes: int = 1_000_000
    """Nodes of the tree of one message, each of which takes about 240 bytes in memory; elements of arrays
    beyond it are read and not drawn."""
    tagged_fields: int = 4_096
    """Tagged fields of one struct."""
    decompressed_bytes: int = 64 * MIB
    """Unpacked bytes of one batch."""
    decompressed_ratio: int = 1_000
    """Unpacked to packed bytes, beyond the first MiB (gzip reaches 1,029, zstd 32,700)."""
    pending_requests: int = 1_024
    """Requests of one connection that wait for a response."""
    topic_names: int = 250_000
    """Topic ids whose names are remembered; more than any cluster has topics."""
    rows: int = 100_000
    """Rows of one statistic; of more, those that came first are kept."""
    timeline_events: int = 1_000_000
    """Events that one statistic keeps by time, of groups, transactions, the cluster; a rebalance of three
    members is about 12."""
    timeline_key_events: int = 20_000
    """The same of one group, transactional id or partition."""
    delivery_sets: int = 200_000
    """Record sets that were produced, and as many that were fetched, of which it is remembered when; each
    takes about 80 bytes."""
    fact_bytes: int = 224 * MIB
    """What the statistics of one reading hold together, and the rows made of it, by an estimate. What comes
    first is kept; what is left out is counted."""


DEFAULTS = Limits()

DEEPEST = 32
"""Structs of a definition that lie one in the other; Kafka's own deepest is far below. What is captured lies
no deeper than its definition, so this is nothing to be set."""
