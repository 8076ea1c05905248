"""The statistics by the name that ``-z`` takes: a name, and perhaps options after commas.

    srt  srt,broker  srt,client,client_id  srt,topic  topics  positions  groups  errors,group,topic  io,100ms

A statistic is one file of this package, and one line here. Its module is imported on first use, because most
runs need a few of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from kdissect.analysis.fold import Statistic
from kdissect.lazy import Made
from kdissect.limits import DEFAULTS, Limits

_PLACES = {
    "srt": "srt.ResponseTimes",
    "latency": "latency.Latency",
    "slowest": "slowest.Slowest",
    "topics": "topics.Topics",
    "positions": "positions.Positions",
    "lag": "lag.Lag",
    "delivery": "delivery.Delivery",
    "groups": "groups.Groups",
    "members": "groups.Members",
    "stays": "groups.Stays",
    "rebalances": "rebalances.Rebalances",
    "rebalance_steps": "rebalances.RebalanceSteps",
    "assignments": "rebalances.Assignments",
    "share": "share.Share",
    "connections": "connections.Connections",
    "endpoints": "endpoints.Endpoints",
    "repeats": "repeats.Repeats",
    "tcp": "tcp.Tcp",
    "clients": "clients.Clients",
    "versions": "versions.Versions",
    "errors": "errors.Errors",
    "io": "intervals.Intervals",
    "traffic": "traffic.Traffic",
    "transactions": "transactions.Transactions",
    "producers": "producers.Producers",
    "payloads": "payloads.Payloads",
    "exposure": "exposure.Exposure",
    "cluster_brokers": "cluster.ClusterBrokers",
    "cluster_partitions": "cluster.ClusterPartitions",
    "cluster_topics": "cluster.ClusterTopics",
    "cluster_configs": "cluster.ClusterConfigs",
    "cluster_changes": "cluster.ClusterChanges",
    "timeline": "timeline.Timeline",
    "quorum": "quorum.Quorum",
    "replication": "replication.Replication",
    "graph": "graph.Graph",
    "damage": "damage.Damage",
    "profile": "profile.Profile",
}
"""The module and the class of each statistic, in the order in which they are listed."""

_JUDGED = {
    "broker_clocks": "broker_clocks.BrokerClocks",
    "lingers": "lingers.Lingers",
    "metadata_asked": "metadata_asked.MetadataAsked",
    "offers": "offers.Offers",
    "offsets_asked": "offsets_asked.OffsetsAsked",
    "pace": "pace.Pace",
    "racks": "racks.Racks",
    "rereads": "rereads.Rereads",
    "spikes": "stalls.Spikes",
    "stale_leaders": "stale_leaders.StaleLeaders",
    "stalls": "stalls.Stalls",
}
"""Statistics that only rules read. No list shows them."""
_ALL = {**_PLACES, **_JUDGED}


def _found(name: str) -> type[Statistic]:
    module, _, kind = _ALL[name].rpartition(".")
    found: type[Statistic] = getattr(import_module(f"kdissect.analysis.{module}"), kind)
    return found


STATISTICS: Mapping[str, type[Statistic]] = Made(_PLACES, _found)
"""The statistics by name."""

FOLDS: Mapping[str, type[Statistic]] = Made(_ALL, _found)
"""The listed statistics, and those that only rules read: every fold that makes rows. All engines count each
of them."""


def statistic(text: str, limits: Limits = DEFAULTS) -> tuple[str, Statistic]:
    """The statistic that ``text`` names, with its name.

    :raises LookupError: no statistic has that name.
    :raises ValueError: the text after the name is not understood; the error's text lists the allowed ones.
    """
    name, *how = (part.strip() for part in text.split(","))
    return name, STATISTICS[name].from_option(limits, tuple(how))
