"""The statistics by name, as ``-z`` asks for them: a name, and perhaps how, after commas.

srt  srt,broker  srt,client,client_id  srt,topic  topics  positions  groups  errors,group,topic  io,100ms

A statistic is one file of this package, and one line here.
"""

from __future__ import annotations

from kdissect.analysis.clients import Clients
from kdissect.analysis.cluster import (
    ClusterBrokers,
    ClusterChanges,
    ClusterConfigs,
    ClusterPartitions,
    ClusterTopics,
)
from kdissect.analysis.connections import Connections
from kdissect.analysis.delivery import Delivery
from kdissect.analysis.endpoints import Endpoints
from kdissect.analysis.errors import Errors
from kdissect.analysis.exposure import Exposure
from kdissect.analysis.fold import Statistic
from kdissect.analysis.graph import Graph
from kdissect.analysis.groups import Groups, Members, Stays
from kdissect.analysis.intervals import Intervals
from kdissect.analysis.lag import Lag
from kdissect.analysis.latency import Latency
from kdissect.analysis.payloads import Payloads
from kdissect.analysis.positions import Positions
from kdissect.analysis.producers import Producers
from kdissect.analysis.profile import Profile
from kdissect.analysis.quorum import Quorum
from kdissect.analysis.rebalances import Assignments, Rebalances, RebalanceSteps
from kdissect.analysis.repeats import Repeats
from kdissect.analysis.replication import Replication
from kdissect.analysis.share import Share
from kdissect.analysis.slowest import Slowest
from kdissect.analysis.srt import ResponseTimes
from kdissect.analysis.tcp import Tcp
from kdissect.analysis.timeline import Timeline
from kdissect.analysis.topics import Topics
from kdissect.analysis.transactions import Transactions
from kdissect.analysis.versions import Versions
from kdissect.limits import DEFAULTS, Limits

_ALL: tuple[type[Statistic], ...] = (
    ResponseTimes,
    Latency,
    Slowest,
    Topics,
    Positions,
    Lag,
    Delivery,
    Groups,
    Members,
    Stays,
    Rebalances,
    RebalanceSteps,
    Assignments,
    Share,
    Connections,
    Endpoints,
    Repeats,
    Tcp,
    Clients,
    Versions,
    Errors,
    Intervals,
    Transactions,
    Producers,
    Payloads,
    Exposure,
    ClusterBrokers,
    ClusterPartitions,
    ClusterTopics,
    ClusterConfigs,
    ClusterChanges,
    Timeline,
    Quorum,
    Replication,
    Graph,
    Profile,
)

STATISTICS: dict[str, type[Statistic]] = {each.name: each for each in _ALL}


def statistic(text: str, limits: Limits = DEFAULTS) -> tuple[str, Statistic]:
    """The statistic that ``text`` asks for, with its name.

    :raises LookupError: no statistic has that name.
    :raises ValueError: what follows the name is not understood; the text says what may.
    """
    name, *how = (part.strip() for part in text.split(","))
    return name, STATISTICS[name].asked(limits, tuple(how))
