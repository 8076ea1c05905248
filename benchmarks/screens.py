"""The screens over a large capture: the time until they appear, the time until a key is answered, and their
cost.

    python -m benchmarks.screens [--exchanges 1000000] [--capture FILE] [--all-screens]

``--all-screens`` opens each screen in turn and presses keys there, while the capture is read and after that.
If it is read before 500 keys are pressed, the screens are started again with it, and go on with the next one.

The application runs as it does for a user, with its decoder in another process, but without a terminal. A
measurement ends when a frame would be written to the terminal. The time from a key to its frame includes
everything, even the wait for the next frame.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import kdissect.tui  # noqa: F401 - before Textual, as the command does: it says how often Textual draws
from kdissect.feed.decoder import Decoder
from kdissect.feed.source import ScreenSource
from kdissect.source import Input
from kdissect.system.heap import keep_what_there_is, uncollected

if TYPE_CHECKING:
    from benchmarks.screens_figures import Figure

EXCHANGES = 1_000_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--exchanges", type=int, default=EXCHANGES)
    parser.add_argument("--capture", type=Path, help="a capture to use instead of one that is made")
    parser.add_argument("--all-screens", action="store_true", help="open each screen, and press keys there")
    parser.add_argument("--since", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--goes-on", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--to", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.since is not None:
        return _run(given)
    with tempfile.TemporaryDirectory(prefix="kdissect-bench-") as folder:
        capture = given.capture
        if capture is None:
            from benchmarks.traffic import multiply

            capture = Path(folder) / "traffic.pcap"
            multiply(capture, given.exchanges)
        sys.stdout.write(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors\n")
        sys.stdout.flush()
        if not given.all_screens:
            return _start(capture)
        return _press_enough(capture, Path(folder) / "run")


def _start(capture: Path, *more: str) -> int:
    """Start the screens in another process, as a user does; return its exit code."""
    command = [sys.executable, "-m", "benchmarks.screens", "--capture", str(capture), *more]
    return subprocess.run([*command, "--since", repr(time.time())], check=False).returncode


def _press_enough(capture: Path, path: Path) -> int:
    """Start the screens as often as it takes to press enough keys while the capture is read."""
    from benchmarks.screens_keys import (
        LEAST_KEYS,
        MOST_RUNS,
        Run,
        figures_of,
        keys_while_reading,
        next_screen,
    )

    runs: list[Run] = []
    while len(runs) < MOST_RUNS and keys_while_reading(runs) < LEAST_KEYS:
        more = [] if runs else ["--goes-on"]
        code = _start(capture, "--first", str(next_screen(runs)), "--to", str(path), *more)
        if code:
            return code
        runs.append(pickle.loads(path.read_bytes()))
        count = keys_while_reading(runs[-1:])
        sys.stdout.write(f"start {len(runs)}: {count} keys while reading\n")
        sys.stdout.flush()
        if not count:  # it is read before the first key
            break
    return _report(figures_of(runs))


def _run(given: argparse.Namespace) -> int:
    """Measure the screens in this process, which was started for it."""
    decoder = Decoder(ScreenSource(Input((str(given.capture),))))  # first, as the command does
    with uncollected():
        from benchmarks.screens_figures import measure
        from benchmarks.screens_keys import run

        keep_what_there_is()
    if given.to is None:
        return _report(asyncio.run(measure(decoder, given.since)))
    found = asyncio.run(run(decoder, given.since, given.first, goes_on=given.goes_on))
    given.to.write_bytes(pickle.dumps(found))
    return 0


def _report(figures: Iterable[Figure]) -> int:
    """Write figures; return 1 if one of them exceeds its limit."""
    found = list(figures)
    sys.stdout.write("".join(f"{figure}\n" for figure in found))
    return 0 if all(figure.is_met for figure in found) else 1


if __name__ == "__main__":
    sys.exit(main())
