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
            text = await shown_after(pilot, "9")
            assert "no exchange was captured" in text
            assert "nothing was captured" not in text  # there are packets

    asyncio.run(run())


DAMAGES = {"nothing could be read": (300, 400), "stopped": (10, 100)}
"""What is said of a compressed capture, by the bytes that are damaged: its first block, or its beginning."""


@pytest.fixture(params=DAMAGES)
def damaged(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A capture of which nothing can be unpacked; its name is what is said of it."""
    start, end = DAMAGES[request.param]
    data = bytearray((CAPTURES / "incidents" / "member-killed.pcapng.gz").read_bytes())
    data[start:end] = b"\xff" * (end - start)
    path = tmp_path / f"{request.param}.pcapng.gz"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(("width", "height"), some([(80, 24), (200, 50)], 1))
def test_why_nothing_could_be_read_is_told_on_every_screen(width: int, height: int, damaged: Path) -> None:
    async def run() -> None:
        async with running(app_of(damaged), width, height) as pilot:
            for key in ("1", "2", "3", "4", "5", "6", "7", "8", "9", "0", "T", "C"):
                text = " ".join((await shown_after(pilot, key)).split())
                assert f"! {damaged.name.partition('.')[0]}: " in text, key
                assert "the gzip data is damaged" in text, key
                assert "no Kafka was found" not in text, key

    asyncio.run(run())


def test_nothing_is_said_of_kafka_where_nothing_could_be_read(damaged: Path) -> None:
    async def run() -> None:
        async with running(app_of(damaged, home=None)) as pilot:
            text = await shown_after(pilot)
            assert "Nothing was judged: nothing of the capture could be read." in text
            assert "nothing was read" in text
            assert "There are no findings" not in text
            assert "no-kafka" not in text

    asyncio.run(run())


def test_of_several_files_one_that_cannot_be_read_is_told_on_every_screen(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng", tmp_path / "gone.pcapng")) as pilot:
            for key in ("1", "6", "9"):
                assert "gone.pcapng: cannot be read: No such file" in await shown_after(pilot, key), key

    asyncio.run(run())


def test_the_first_screen_tells_what_was_not_read_of_a_damaged_file(tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes((CAPTURES / "errors.pcapng").read_bytes()[:30_000])

    async def run() -> None:
        async with running(app_of(cut, home=None)) as pilot:
            text = await shown_after(pilot)
            assert "not all was read: the file ends inside a block" in text

    asyncio.run(run())


def test_a_capture_with_kafka_does_not_say_it() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng")) as pilot:
            for key in ("1", "5"):
                assert "no Kafka was found" not in await shown_after(pilot, key)

    asyncio.run(run())
