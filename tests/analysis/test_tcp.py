"""What the segments and the first exchanges of a connection show."""

from __future__ import annotations

import pytest

from kdissect.analysis.tcp import Tcp
from kdissect.exchange import Exchange
from tests.analysis.connected import over
from tests.analysis.folds import made
from tests.analysis.test_pace import BEAT


def asked_versions(at: int, until: int) -> Exchange:
    return made("ApiVersions", 0, {}, {"errorCode": 0, "apiKeys": []}, (at, until))


def used(at: int) -> Exchange:
    return made("Heartbeat", 0, BEAT, {"errorCode": 0}, (at, at + 1))


@pytest.mark.parametrize(
    ("exchanges", "setup_ns"),
    [
        ([used(700)], 700),
        ([asked_versions(5, 40), used(700)], 40),  # it was ready, and had nothing to send
        ([asked_versions(5, 900), used(700)], 700),  # it did not wait for the versions
        ([asked_versions(5, 40)], None),
        ([asked_versions(5, 40), used(700), asked_versions(800, 900)], 40),
    ],
)
def test_a_connection_is_ready_when_its_preparations_are_answered(
    exchanges: list[Exchange], setup_ns: int | None
) -> None:
    for cut in range(len(exchanges) + 1):
        first, second = Tcp(), Tcp()
        for at, exchange in enumerate(exchanges):
            (first if at < cut else second).feed(exchange)
        second.feed(over()._replace(tcp={}))
        first.merge(second)
        (row,) = first.result()
        assert row["setup_ns"] == setup_ns
