"""The screens over a large capture: the time until they appear, the time until a key is answered, and their
cost.

    python -m benchmarks.screens [--exchanges 1000000] [--capture FILE] [--all-screens]

``--all-screens`` opens each screen in turn and presses keys there, while the capture is read and after that.

The application runs as it does for a user, with its decoder in another process, but without a terminal. A
measurement ends when a frame would be written to the terminal. The time from a key to its frame includes
everything, even the wait for the next frame.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import kdissect.tui  # noqa: F401 - before Textual, as the command does: it says how often Textual draws
from kdissect.feed.decoder import Decoder
from kdissect.feed.source import ScreenSource
from kdissect.source import Input
from kdissect.system.heap import keep_what_there_is, uncollected

EXCHANGES = 1_000_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--exchanges", type=int, default=EXCHANGES)
    parser.add_argument("--capture", type=Path, help="a capture to use instead of one that is made")
    parser.add_argument("--all-screens", action="store_true", help="open each screen, and press keys there")
    parser.add_argument("--since", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.since is not None:
        decoder = Decoder(ScreenSource(Input((str(given.capture),))))  # first, as the command does

        with uncollected():
            from benchmarks.screens_figures import measure

            keep_what_there_is()

        figures = asyncio.run(measure(decoder, given.since, all_screens=given.all_screens))
        sys.stdout.write("".join(f"{figure}\n" for figure in figures))
        return 0 if all(figure.is_met for figure in figures) else 1
    with tempfile.TemporaryDirectory(prefix="kdissect-bench-") as folder:
        capture = given.capture
        if capture is None:
            from benchmarks.traffic import multiply

            capture = Path(folder) / "traffic.pcap"
            multiply(capture, given.exchanges)
        command = [sys.executable, "-m", "benchmarks.screens", "--capture", str(capture)]
        command += ["--all-screens"] if given.all_screens else []
        sys.stdout.write(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors\n")
        sys.stdout.flush()
        return subprocess.run([*command, "--since", repr(time.time())], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
