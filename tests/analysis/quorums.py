"""Fetches of the log of metadata, and what the statistic ``quorum`` says of them."""

from __future__ import annotations

from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.quorum import Quorum
from kdissect.exchange import Exchange
from tests.analysis.folds import made

LOG = "AAAAAAAAAAAAAAAAAAAAAQ"


def fetch(
    at_s: float,
    lacks: int = 0,
    error: int = 0,
    node: int = 3,
    leader: dict[str, int] | None = None,
    cluster: str = "a",
) -> Exchange:
    """A Fetch of the log of metadata, and what the node lacked then."""
    ns = int(at_s * SECOND)
    partition = {"partition": 0, "currentLeaderEpoch": 1, "fetchOffset": 1000, "partitionMaxBytes": 0}
    partition |= {"lastFetchedEpoch": 1, "logStartOffset": -1}
    told = {
        "partitionIndex": 0,
        "errorCode": error,
        "highWatermark": -1 if error else 1000 + lacks,
        "lastStableOffset": -1,
        "logStartOffset": 0,
        "abortedTransactions": [],
        "preferredReadReplica": -1,
        "records": None,
        "currentLeader": leader or {"leaderId": -1, "leaderEpoch": -1},
    }
    return made(
        "Fetch",
        17,
        {
            "clusterId": cluster,
            "maxWaitMs": 500,
            "minBytes": 0,
            "maxBytes": 1,
            "isolationLevel": 0,
            "sessionId": 0,
            "sessionEpoch": -1,
            "rackId": "",
            "topics": [{"topicId": LOG, "partitions": [partition]}],
            "forgottenTopicsData": [],
            "replicaState": {"replicaId": node, "replicaEpoch": -1},
        },
        {
            "throttleTimeMs": 0,
            "errorCode": 0,
            "sessionId": 0,
            "responses": [{"topicId": LOG, "partitions": [told]}],
        },
        (ns, ns + 1),
    )


def quorum_of(*exchanges: Exchange, cut: int | None = None) -> Row:
    """The row of the node, of one fold or of two that were added."""
    first, later = Quorum(), Quorum()
    for at, each in enumerate(exchanges):
        (first if cut is None or at < cut else later).feed(each)
    first.merge(later)
    return first.result()[0]


NOT_LEADER = 6
Nodes = tuple[int, ...]


def refused(
    from_s: float, to_s: float, nodes: Nodes = (2, 3), leader: int = -1, epoch: int = 1
) -> tuple[Exchange, ...]:
    """Fetches of these nodes, each 0.5 s, that are told to ask another, and who leads."""
    told = {"leaderId": leader, "leaderEpoch": epoch}
    times = [from_s + 0.5 * at for at in range(round((to_s - from_s) / 0.5) + 1)]
    return tuple(fetch(at_s, error=NOT_LEADER, node=node, leader=told) for at_s in times for node in nodes)
