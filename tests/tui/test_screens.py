"""The screens as texts, from captures of real brokers; six of them in three sizes, or all: tests.amount."""

from __future__ import annotations

import asyncio

import pytest

from tests.amount import LONG
from tests.cli.golden import check_golden
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, running, shown_after

SIZES = ((80, 24), (120, 40), (200, 60))
USUAL = (120, 40)
IN_ALL_SIZES = ("exchanges", "tree", "connections", "records", "findings", "ladder")
SCREENS = {
    "filter-line": ("errors.pcapng", ("slash", "e", "r", "r")),
    "filtered": ("errors.pcapng", ("j", "j", "j", "f", "right", "right", "right", "right")),
    "exchanges": ("errors.pcapng", ("e",)),
    "tree": ("basic-kafka43.pcapng", ("enter", "down", "down")),
    "bytes": ("basic-kafka43.pcapng", ("x",)),
    "loss": ("loss.pcapng", ("s", "s")),
    "secrets": ("sasl-scram.pcapng", ("j", "j", "j", "j", "enter", "G")),
    "connections": ("sasl-scram.pcapng", ("2", "j")),
    "clients": ("sasl-scram.pcapng", ("2", "g")),
    "topics": ("transactions-kafka39.pcapng", ("3",)),
    "partitions": ("transactions-kafka39.pcapng", ("3", "g", "s", "s", "s")),
    "groups": ("consumer-group-kip848.pcapng", ("4", "j")),
    "latency": ("consumer-group-kip848.pcapng", ("5", "s", "s")),
    "latency-topic": ("errors.pcapng", ("5", "g", "g", "g")),
    "capture": ("loss.pcapng", ("8",)),
    "problems": ("errors.pcapng", ("6",)),
    "faults": ("loss.pcapng", ("6",)),
    "findings": ("incidents/member-killed.pcapng.gz", ("9", "j")),
    "nothing-found": ("errors.pcapng", ("9",)),
    "facts": ("transactions-kafka39.pcapng", ("0", *"jjjjjjjjjjjjj", "enter", "j")),
    "records": ("basic-kafka43.pcapng", ("7", "j", "j", "j")),
    "record": ("basic-kafka43.pcapng", ("7", "j", "j", "j", "enter")),
    "records-hex": ("basic-kafka43.pcapng", ("7", "j", "v", "v", "v")),
    "record-tree": ("basic-kafka43.pcapng", ("7", "G", "enter", "enter")),
    "records-tab": ("basic-kafka43.pcapng", (*"jjjjj", "enter", "full_stop", "full_stop", "l")),
    "timing": ("basic-kafka43.pcapng", ("j", "enter", "comma", "comma")),
    "tcp": ("basic-kafka43.pcapng", ("j", "enter", "comma")),
    "ladder": ("errors.pcapng", ("j", "L", "e")),
    "help": ("errors.pcapng", ("question_mark",)),
    "columns": ("errors.pcapng", ("c",)),
    "save": ("errors.pcapng", ("m", "w", "down")),
}


@pytest.mark.parametrize(
    ("name", "size"),
    [(name, size) for name in SCREENS for size in SIZES if LONG or size == USUAL or name in IN_ALL_SIZES],
    ids=lambda each: each if isinstance(each, str) else f"{each[0]}x{each[1]}",
)
def test_screen(name: str, size: tuple[int, int], update_golden: bool) -> None:
    capture, keys = SCREENS[name]

    async def run() -> str:
        async with running(app_of(CAPTURES / capture), *size, drawn=True) as pilot:
            return await shown_after(pilot, *keys)

    check_golden(f"tui/{name}-{size[0]}x{size[1]}.txt", asyncio.run(run()), update_golden)
