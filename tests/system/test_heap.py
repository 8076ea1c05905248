"""What the heap of the screens' process gives back, measured in a process of its own."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from kdissect.system import heap
from kdissect.system.heap import PutOff, uncollected

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


KEPT = """
import resource
from kdissect.system.heap import keep_freed_blocks

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [bytearray(b"x") * 300_000 for _ in range(100)]
    del blocks
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keep_freed_blocks()
print(faults(), faults())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count page faults in other ways")
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="not the GNU C library")
def test_what_was_freed_is_used_again_without_asking_the_system() -> None:
    ran = subprocess.run([sys.executable, "-c", KEPT], check=True, capture_output=True, text=True, timeout=60)
    first, again = map(int, ran.stdout.split())
    assert first > 5_000
    assert again < first / 10


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


def test_collections_wait_from_a_key_to_its_frame() -> None:
    put_off = PutOff()
    assert gc.isenabled()
    put_off.begin()
    assert put_off.wait
    put_off.begin()  # another key before the frame
    assert not gc.isenabled()
    put_off.end()
    assert gc.isenabled()
    put_off.end()  # another frame
    assert gc.isenabled()


def test_collections_wait_no_longer_if_keys_have_no_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    put_off = PutOff()
    put_off.begin()
    monkeypatch.setattr(heap, "MOST_WAIT_SECONDS", 0.0)
    time.sleep(0.001)
    put_off.begin()
    assert gc.isenabled()


@pytest.mark.parametrize("is_frame_first", [True, False])
def test_two_reasons_to_wait_end_in_any_order(is_frame_first: bool) -> None:
    put_off, large = PutOff(), uncollected()
    put_off.begin()
    large.__enter__()
    ends: list[Callable[[], object]] = [put_off.end, lambda: large.__exit__(None, None, None)]
    first, second = ends if is_frame_first else ends[::-1]
    first()
    assert not gc.isenabled()
    second()
    assert gc.isenabled()
