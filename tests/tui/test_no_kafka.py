"""A capture without Kafka says so on every screen."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.amount import some
from tests.cli.run import CAPTURES
from tests.present import test_no_kafka
from tests.tui.snapshots import app_of, running, shown_after

SAID = (
    "no Kafka was found: 18 packets, 3 TCP connections (2 of another protocol on port 2222, 1 of HTTP on "
    "port 8080) -d tcp.port==2222,kafka treats a port as Kafka"
)
capture = test_no_kafka.capture


@pytest.mark.parametrize(("width", "height"), some([(70, 24), (200, 50)], 1))
def test_it_is_told_on_every_screen_and_whole(width: int, height: int, capture: Path) -> None:
    async def run() -> None:
        async with running(app_of(capture), width, height) as pilot:
            for key in ("1", "2", "3", "4", "5", "6", "7", "8"):
                text = await shown_after(pilot, key)
                assert SAID in " ".join(text.split()), key
            assert SAID in " ".join((await shown_after(pilot, "1", "L")).split())

    asyncio.run(run())


def test_a_capture_with_kafka_does_not_say_it() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng")) as pilot:
            for key in ("1", "5"):
                assert "no Kafka was found" not in await shown_after(pilot, key)

    asyncio.run(run())
