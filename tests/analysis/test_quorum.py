"""The statistic ``quorum``."""

from __future__ import annotations

from kdissect.analysis.fold import SECOND
from kdissect.analysis.quorum import Quorum
from kdissect.exchange import Exchange
from tests.analysis.folds import made, rows_of


def heartbeat(at_s: float, is_fenced: bool = False, epoch: int = 7) -> Exchange:
    ns = int(at_s * SECOND)
    return made(
        "BrokerHeartbeat",
        1,
        {
            "brokerId": 3,
            "brokerEpoch": epoch,
            "currentMetadataOffset": 1,
            "wantFence": False,
            "wantShutDown": False,
        },
        {
            "throttleTimeMs": 0,
            "errorCode": 0,
            "isCaughtUp": True,
            "isFenced": is_fenced,
            "shouldShutDown": False,
        },
        (ns, ns + 1),
    )


def test_votes_and_leaders_of_a_real_quorum() -> None:
    rows = {row["node"]: row for row in rows_of("quorum", "cluster43-combined")}
    assert set(rows) == {1, 2, 3}
    assert rows[3]["role"] == "leader"
    assert rows[3]["leader_since_ns"] is not None
    assert (rows[1]["prevotes"], rows[1]["votes_asked"], rows[1]["elections"]) == (2, 2, 1)
    assert all(row["lag_offsets"] == 0 for row in rows.values())


def test_a_late_heartbeat_is_counted_and_a_new_life_is_none() -> None:
    quorum = Quorum()
    for each in (
        heartbeat(1),
        heartbeat(3),
        heartbeat(8),
        heartbeat(60, epoch=9),
        heartbeat(62, True, epoch=9),
    ):
        quorum.feed(each)
    (row,) = quorum.result()
    assert (row["role"], row["heartbeats"], row["heartbeat_late"]) == ("broker", 5, 1)
    assert row["heartbeat_max_ns"] == 5 * SECOND
    assert row["heartbeat_gap_ns"] == heartbeat(3).begun_ns
    assert row["fenced"] is True
