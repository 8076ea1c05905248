"""The screens as texts, from captures of real brokers, in three sizes."""

from __future__ import annotations

import asyncio

import pytest

from tests.cli.golden import check_golden
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running

SIZES = ((80, 24), (120, 40), (200, 60))
SCREENS = {
    "exchanges": ("errors.pcapng", ("e",)),
    "tree": ("basic-kafka43.pcapng", ("enter", "down", "down")),
    "bytes": ("basic-kafka43.pcapng", ("x",)),
    "loss": ("loss.pcapng", ("s", "s")),
    "secrets": ("sasl-scram.pcapng", ("j", "j", "j", "j", "enter", "G")),
    "connections": ("sasl-scram.pcapng", ("2", "j")),
    "problems": ("errors.pcapng", ("6",)),
    "faults": ("loss.pcapng", ("6",)),
    "help": ("errors.pcapng", ("question_mark",)),
}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", SCREENS)
def test_screen(name: str, size: tuple[int, int], update_golden: bool) -> None:
    capture, keys = SCREENS[name]

    async def run() -> str:
        async with running(app_of(CAPTURES / capture), *size) as pilot:
            return await press(pilot, *keys)

    check_golden(f"tui/{name}-{size[0]}x{size[1]}.txt", asyncio.run(run()), update_golden)
