"""A capture that goes on for long: its memory stays flat, and nothing is lost.

    python -m tests.live.soak [--seconds 3600] [--rate 150]

Exchanges are sent over a cable of its own and shown by ``kdissect live``, which also serves metrics, and with
``--screens`` by ``kdissect tui``, too. It prints a line a minute and ends with exit code 1 where something is
not as it should be. The hour's traffic has connections that begin and end; how a minute is tried in the test
suite stands in :mod:`tests.live.test_soak`.

Memory is what each process has for itself (``RssAnon``): the ring that the kernel fills is none of it. The
screens keep a row for each exchange, for which they may take what that is worth and no more.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from kdissect.live.journal import Status, status_of
from tests.live.machine import (
    ROOT,
    Look,
    Network,
    children,
    ended,
    kdissect_of,
    look_at,
    network,
    until_it_captures,
)
from tests.tui.terminals import Terminal

MIB = 1 << 20
GROWTH_BYTES = 3 * MIB
"""What a process may have grown by between the second quarter of the time and the last."""
ROW_BYTES = 200
"""What the screens may take for an exchange: a row is 98 bytes, in arrays that grow by halves."""
MOST_DESCRIPTORS = 4
"""By so many more a process may have open at the end than in the second quarter."""
LIMITS = {
    f"KDISSECT_LIMITS_{name}": "1000"
    for name in ("ROWS", "TIMELINE_EVENTS", "TIMELINE_KEY_EVENTS", "DELIVERY_SETS")
}
"""Facts for findings grow up to their limits. These are reached in the first seconds: what grows after them
has no limit."""
_EVERY_SECONDS = 1.0
_TELL_SECONDS = 60.0
_ENDING_SECONDS = 120.0
"""A busy machine decodes what is in the spool later."""


class Watched:
    """A process, and what it had from time to time."""

    def __init__(self, name: str, pid: int, bytes_an_exchange: int = 0) -> None:
        self.name, self.pid = name, pid
        self._bytes_an_exchange = bytes_an_exchange
        self.looks: list[Look] = []

    def look(self) -> None:
        """Take another look."""
        self.looks.append(look_at(self.pid))

    def wrongs(self, exchanges: int) -> Iterator[str]:
        """What is not flat.

        :param exchanges: how many came in all this time.
        """
        quarter = len(self.looks) // 4
        second, last = self.looks[quarter : 2 * quarter], self.looks[-quarter:]
        grown = int(_middle(each.memory for each in last) - _middle(each.memory for each in second))
        allowed = GROWTH_BYTES + self._bytes_an_exchange * exchanges // 2
        if grown > allowed:
            yield f"{self.name}: its memory has grown by {grown:,} bytes, {allowed:,} at most are allowed"
        more = _middle(each.descriptors for each in last) - _middle(each.descriptors for each in second)
        if more > MOST_DESCRIPTORS:
            yield f"{self.name}: it has {more:,.0f} more files open"

    def __str__(self) -> str:
        last = self.looks[-1]
        return f"{self.name} {last.memory / MIB:.1f} MiB, {last.descriptors} files, {last.cpu:.1f} s"


def _middle(values: Iterator[int]) -> float:
    return statistics.median(values)


class Soaked(NamedTuple):
    """What became of it."""

    sent: int
    """Exchanges."""
    seconds: float
    shown: int
    """Lines of ``live``."""
    status: Status
    """How the capture went."""
    said: str
    """What ``live`` complained of."""
    code: int
    """Its exit code."""
    processes: Sequence[Watched]
    largest_spool: int
    """Bytes that the spool took of the disk at a time, at most."""

    def wrongs(self) -> Iterator[str]:
        """What is not as it should be."""
        for each in self.processes:
            yield from each.wrongs(self.sent)
        if self.shown != self.sent:
            yield f"{self.sent:,} exchanges were sent and {self.shown:,} shown"
        if self.status.dropped or self.status.lost:
            yield f"{self.status.dropped:,} packets were dropped, {self.status.lost:,} not written"
        if self.code:
            yield f"it ended with {self.code}: {self.said}"


def soak(seconds: float, rate: float, churn: float, *, screens: bool = False) -> Soaked:
    """Have so many exchanges a second sent for so long.

    :param churn: the share of them on connections that begin and end.
    :param screens: whether ``tui`` shows them, too.
    """
    with ExitStack() as stack:
        cable = stack.enter_context(network())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kdissect-soak-")))
        live = stack.enter_context(ended(_started(cable, folder)))
        spool = until_it_captures(live, folder)
        lines = _Lines(live)
        kdissect = kdissect_of(live.pid)
        watched = [Watched("decoder", kdissect), Watched("capture", children(kdissect)["capture"])]
        if screens:
            watched += stack.enter_context(_screens(cable))
        sending = subprocess.Popen(
            cable.command(
                *("-m", "benchmarks.sending", "va", "exchanges", "--churn", churn),
                *("--rate", rate, "--seconds", seconds),
            ),
            cwd=ROOT,
            stdout=subprocess.PIPE,
        )
        stack.enter_context(ended(sending))
        largest = _watch(sending, watched, spool)
        assert sending.stdout is not None
        sent = json.loads(sending.stdout.read())
        until = time.monotonic() + _ENDING_SECONDS
        while lines.count < sent["exchanges"] and time.monotonic() < until:
            time.sleep(0.1)
        status = status_of(str(spool))
        assert status is not None
        live.send_signal(signal.SIGINT)
        code = live.wait(_ENDING_SECONDS)
        lines.join()
        said = "" if live.stderr is None else live.stderr.read().decode().strip()
        return Soaked(sent["exchanges"], sent["seconds"], lines.count, status, said, code, watched, largest)


def _started(cable: Network, folder: Path) -> subprocess.Popen[bytes]:
    return cable.start(
        *("live", "-i", "vb", "--allow-root", "-T", "ndjson", "--spool", folder),
        *("--prometheus", ":19465"),
        **LIMITS,
    )


class _Lines(Thread):
    """Counts the lines that a process prints."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(daemon=True)
        assert process.stdout is not None
        self._descriptor = process.stdout.fileno()
        self.count = 0
        self.start()

    def run(self) -> None:
        while piece := os.read(self._descriptor, 1 << 16):
            self.count += piece.count(b"\n")


@contextmanager
def _screens(cable: Network) -> Iterator[list[Watched]]:
    """The screens over the same cable, in a terminal that somebody looks at."""
    command = cable.command("-m", "kdissect", "tui", "-i", "vb", "--allow-root")
    terminal = Terminal(command=command)
    try:
        terminal.until(b"0 dropped")
        terminal.read_on()
        screens = kdissect_of(terminal.process.pid)
        others = {pid: _name(pid) for pid in Terminal.children(terminal)}
        yield [
            Watched("screens", screens, ROW_BYTES),
            *(Watched(f"screens' {name}", pid) for pid, name in others.items() if name),
        ]
    finally:
        terminal.close()


def _name(pid: int) -> str:
    line = Path(f"/proc/{pid}/cmdline").read_bytes()
    return "helper" if b"spawn_main" in line else ""


def _watch(sending: subprocess.Popen[bytes], processes: Sequence[Watched], spool: Path) -> int:
    """Look at the processes until everything is sent; gives the most bytes that the spool took."""
    largest, told = 0, time.monotonic()
    while sending.poll() is None:
        time.sleep(_EVERY_SECONDS)
        for each in processes:
            each.look()
        largest = max(largest, sum(path.stat().st_size for path in spool.glob("*.pcapng")))
        if time.monotonic() - told > _TELL_SECONDS:
            told = time.monotonic()
            sys.stdout.write(f"{time.strftime('%H:%M:%S')}  {'; '.join(map(str, processes))}\n")
            sys.stdout.flush()
    return largest


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3_600)
    parser.add_argument("--rate", type=float, default=150, help="exchanges a second")
    parser.add_argument("--churn", type=float, default=0.3, help="share on connections that begin and end")
    parser.add_argument("--screens", action="store_true", help="with the screens, too")
    given = parser.parse_args()
    soaked = soak(given.seconds, given.rate, given.churn, screens=given.screens)
    sys.stdout.write(f"{soaked.sent:,} exchanges in {soaked.seconds:,.0f} s, {soaked.shown:,} shown\n")
    sys.stdout.write(
        f"spool: {soaked.largest_spool / MIB:,.1f} MiB at most, in {soaked.status.files} files\n"
    )
    for each in soaked.processes:
        quarter = len(each.looks) // 4
        second = _middle(look.memory for look in each.looks[quarter : 2 * quarter])
        last = _middle(look.memory for look in each.looks[-quarter:])
        share = each.looks[-1].cpu / soaked.seconds
        sys.stdout.write(f"{each.name}: {second / MIB:.1f} → {last / MIB:.1f} MiB, {share:.1%} of a core\n")
    wrongs = list(soaked.wrongs())
    sys.stdout.write("".join(f"wrong: {each}\n" for each in wrongs))
    return 1 if wrongs else 0


if __name__ == "__main__":
    sys.exit(main())
