"""How much kdissect accepts of anything: one table of limits, each with its reason.

Captured bytes may be hostile, so kdissect trusts no length or count in them beyond these limits. It always
reports a limit that was reached, as a fault.
"""

from __future__ import annotations

from typing import NamedTuple

MIB = 1 << 20
LARGEST = (1 << 63) - 1
"""The largest possible limit: limits are counted in 64 bits."""


class Limits(NamedTuple):
    """Limits; users can set each of them. The defaults follow the systems that are named here."""

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
    """IP fragments that wait for the others, their number (Suricata)."""
    fragment_ns: int = 60_000_000_000
    """How long IP fragments wait."""
    reorder_bytes: int = 10 * MIB
    """Bytes of one direction that wait behind a gap (Zeek)."""
    reorder_one_sided_bytes: int = MIB
    """The same if the other direction was not captured, so that no acknowledgement can show a loss."""
    waiting_bytes: int = 128 * MIB
    """Bytes that wait in all connections together: behind gaps, for a TLS secret, for the protocol to be
    recognised, for the rest of a frame (the largest frame fits), and for a response. Beyond the limit, the
    connections that hold most stop waiting."""
    frame_bytes: int = 104_857_600
    """Kafka's socket.request.max.bytes; a larger size prefix counts as a lost boundary."""
    connections: int = 65_536
    """Connections remembered at a time, four kilobytes each. Beyond the limit, kdissect gives up those
    that were silent longest."""
    tenants: int = 64
    """Connections between the same endpoints that came through tunnels, and networks in which one of them was
    seen. Beyond the limit, kdissect gives up those that were silent longest."""
    settle_bytes: int = 65_536
    """Bytes of a connection that wait until its protocol is recognised."""
    tls_wait_bytes: int = MIB
    """Encrypted bytes of a connection that wait for its secret, which may come later."""
    secret_bytes: int = 256 * MIB
    """Memory for TLS secrets: enough for a million connections of TLS 1.2, or 600,000 of TLS 1.3 (three
    million lines of a key log). Beyond the limit, kdissect forgets the oldest."""
    elements: int = 1_000_000
    """Elements of one array."""
    message_elements: int = 2_000_000
    """Elements of all arrays of one message, and tagged fields. An element of two bytes may take 250 in
    memory. A Metadata response of 200,000 partitions with three replicas each (the most without KRaft) has
    1,400,000."""
    tree_nodes: int = 1_000_000
    """Nodes of the tree of one message, about 240 bytes of memory each. Further elements are decoded
    but not in the tree."""
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
    """Rows of one statistic; beyond the limit, kdissect keeps those that came first."""
    timeline_events: int = 1_000_000
    """Events of groups, transactions or the cluster that one statistic keeps by time. A rebalance of three
    members has about 12."""
    timeline_key_events: int = 20_000
    """The same for one group, transactional id or partition."""
    delivery_sets: int = 200_000
    """Produced record sets whose time is remembered, and as many fetched ones; each takes about 80 bytes."""
    fact_bytes: int = 224 * MIB
    """Estimated memory of all statistics of one reading and their rows. Beyond the limit, kdissect keeps what
    came first and counts what it leaves out."""


DEFAULTS = Limits()

DEEPEST = 32
"""Depth of nested structs in a definition; Kafka's own are far below. Captured data is never nested deeper
than its definition, so users cannot set this."""
