"""Addresses of brokers, and what they offer."""

from __future__ import annotations

import pytest

from tests.analysis.folds import fold, made

METADATA, VOTE, FETCH = 3, 52, 1


@pytest.mark.parametrize(
    ("keys", "is_controllers"),
    [((VOTE, FETCH), True), ((VOTE, METADATA), False), ((METADATA,), False), ((FETCH,), None), ((), None)],
)
def test_a_port_of_controllers_offers_votes_and_no_metadata(
    keys: tuple[int, ...], is_controllers: bool | None
) -> None:
    offered = [{"apiKey": key, "minVersion": 0, "maxVersion": 1} for key in keys]
    event = made("ApiVersions", 0, {}, {"errorCode": 0, "apiKeys": offered}, (1, 2))
    rows = fold("endpoints", [event]).result()
    assert [row["is_controllers"] for row in rows] == ([is_controllers] if keys else [])


def test_what_one_answer_offers_counts_for_the_port() -> None:
    """A proxy may stand before both."""
    events = [
        made(
            "ApiVersions",
            0,
            {},
            {"errorCode": 0, "apiKeys": [{"apiKey": key, "minVersion": 0, "maxVersion": 1}]},
            (1, 2),
        )
        for key in (VOTE, METADATA)
    ]
    first, second = fold("endpoints", events[:1]), fold("endpoints", events[1:])
    first.merge(second)
    assert [row["is_controllers"] for row in first.result()] == [False]
