"""How long a quota holds a request back, as the responses tell it (KIP-124, KIP-219).

Brokers before 2.0 hold the answer itself back for ``throttleTimeMs``. Since KIP-219 they answer at once, and
then read nothing from the connection for that long: what comes in the meantime waits, and that wait is a part
of the *next* exchange's latency. A client of today waits by itself, so that nothing is left of it there.

Which of the two a broker does follows from its release, whatever version it is asked in. So once a connection
shows that its broker is 2.0 or newer, by a version that came with KIP-219 or by what it offers, that counts.
Where nothing shows it, the answer was held back only if it took at least as long as it says.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from kdissect.message import Message, Request
from kdissect.protocol.apis import PRODUCE, api_key
from kdissect.protocol.survey import THROTTLE_FIELD

_SINCE = {
    **{"Produce": 6, "Fetch": 8, "ListOffsets": 3, "Metadata": 6, "OffsetCommit": 4, "OffsetFetch": 4},
    **{"FindCoordinator": 2, "JoinGroup": 3, "Heartbeat": 2, "LeaveGroup": 2, "SyncGroup": 2},
    **{"DescribeGroups": 2, "ListGroups": 2, "ApiVersions": 2, "CreateTopics": 3, "DeleteTopics": 2},
    **{"DeleteRecords": 1, "InitProducerId": 1, "AddPartitionsToTxn": 1, "AddOffsetsToTxn": 1, "EndTxn": 1},
    **{"TxnOffsetCommit": 1, "DescribeAcls": 1, "CreateAcls": 1, "DeleteAcls": 1, "DescribeConfigs": 2},
    **{"AlterConfigs": 1, "AlterReplicaLogDirs": 1, "DescribeLogDirs": 1, "CreatePartitions": 1},
    **{"CreateDelegationToken": 1, "RenewDelegationToken": 1, "ExpireDelegationToken": 1},
    **{"DescribeDelegationToken": 1, "DeleteGroups": 1, "OffsetForLeaderEpoch": 2},
}
"""By API, the version from which the broker answers first and mutes the connection afterwards: those in which
Kafka's clients wait by themselves (``AbstractResponse.shouldClientThrottle``), and one that came later."""
_NEWER_API = 43
"""Keys from here on (ElectLeaders, Kafka 2.2) are newer than KIP-219."""


def answers_first(request: Request) -> bool:
    """Whether the version of a request that was served shows that its broker answers before it throttles."""
    key, version = request.api_key, request.api_version
    if key is None or version is None:
        return False
    return key >= _NEWER_API or version >= _since().get(key, version + 1)


def offers_answers_first(offered: dict[str, Any]) -> bool:
    """Whether the versions that a broker offers show it; ``offered`` is the body of its answer to
    ApiVersions."""
    for each in offered.get("apiKeys") or ():
        if each.get("apiKey") == PRODUCE:
            return bool((each.get("maxVersion") or 0) >= _SINCE["Produce"])
    return False


def told_ms(response: Message) -> int:
    """The throttle time that a response tells, ms; 0 where it tells none."""
    seen = response.survey()
    told = seen.throttle_ms if seen is not None else response.body().get(THROTTLE_FIELD)
    return max(0, told) if isinstance(told, int) else 0


@cache
def _since() -> dict[int, int]:
    return {api_key(name): version for name, version in _SINCE.items()}
