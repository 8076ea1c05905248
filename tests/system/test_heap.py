"""What the heap of the screens' process gives back, measured in a process of its own."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

HOLES = """
from kdissect.system.heap import give_back_holes

def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096

blocks, between = [], []
for _ in range(600):
    blocks.append(bytes(100_000))
    between.append(bytes(2_000))
full = resident()
blocks.clear()
before = resident()
give_back_holes()
print(full - before, before - resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the system's own count of resident pages is asked")
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="not the GNU C library")
def test_what_lies_free_between_blocks_in_use_is_given_back() -> None:
    command = [sys.executable, "-c", HOLES]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    of_itself, when_told = map(int, ran.stdout.split())
    assert of_itself < 10_000_000
    assert when_told > 30_000_000


CYCLES = """
import gc
from kdissect.system.heap import keep_what_there_is, look_at_all

class Thing:
    count = 0
    def __init__(self):
        Thing.count += 1
        self.own = self
    def __del__(self):
        Thing.count -= 1

keep_what_there_is()
most = 0
for _ in range(60):
    things = [Thing() for _ in range(5_000)]
    gc.collect(0); gc.collect(1); gc.collect(1); gc.collect(1)
    look_at_all()
    keep_what_there_is()
    del things
    most = max(most, Thing.count)
print(most)
"""


def test_what_was_kept_goes_when_nobody_holds_it_any_more() -> None:
    """Each thing holds itself, and was kept while it was in use. 300,000 are made."""
    ran = subprocess.run(
        [sys.executable, "-c", CYCLES], check=True, capture_output=True, text=True, timeout=60
    )
    assert 5_000 <= int(ran.stdout) < 150_000
