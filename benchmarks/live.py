"""Live capture, from the interface to the screen: losses, delays and costs.

    python -m benchmarks.live capture [--rate 100000] [--seconds 30]  packets, to the spool
    python -m benchmarks.live screens [--rate 5000] [--seconds 30]    exchanges of captures, to the screen
    python -m benchmarks.live client [--rate 2000] [--seconds 30]     librdkafka's and its mock broker's
    python -m benchmarks.live broker [--rate 2000] [--seconds 30]     librdkafka's and Kafka's own broker's

It needs the permission to capture and to make network namespaces; ``broker`` fetches Kafka's jars with
``mvn`` and needs Java. Everything runs on this machine, so the sender uses processors, too. The exit code is
1 if a figure is outside its limit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.screens_figures import Figure
from kdissect.live.journal import Status, status_of
from tests.live.machine import (
    ROOT,
    children,
    end,
    ended,
    eventually,
    kdissect_of,
    look_at,
    network,
    until_it_captures,
)
from tests.tui.terminals import Terminal
from tests.waiting import wait_until

_RATES = {"capture": 100_000, "screens": 5_000, "client": 2_000, "broker": 2_000}
_END_SECONDS = 60.0


def capture(rate: float, seconds: float) -> Iterator[Figure]:
    """``kdissect live -w`` while equal packets come from the other end of a cable."""
    with ExitStack() as stack:
        cable = stack.enter_context(network())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kdissect-bench-")))
        given = ("live", "-i", "vb", "--allow-root", "-q", "--spool", folder, "-w", folder / "out.pcapng")
        live = stack.enter_context(ended(cable.start(*given)))
        journal = until_it_captures(live, folder)
        kdissect = kdissect_of(live.pid)
        process = children(kdissect)["capture"]
        before = look_at(process).cpu
        command = cable.command("-m", "benchmarks.sending", "va", "frames")
        sent = _said([*command, "--rate", str(rate), "--seconds", str(seconds)])
        cpu = look_at(process).cpu - before
        eventually(lambda: _status(journal).received >= sent["packets"], _END_SECONDS)
        status = _status(journal)
        end(live)
    yield Figure("packets sent a second", sent["packets"] / sent["seconds"], "")
    yield Figure("packets sent", sent["packets"], "")
    yield Figure("not in the file", sent["packets"] - status.written, "", 0)
    yield Figure("dropped by the system", status.dropped, "", 0)
    yield Figure("capture process", 100 * cpu / sent["seconds"], "% of a core", 40)


def screens(rate: float, seconds: float) -> Iterator[Figure]:
    """``kdissect tui`` while exchanges of captures come from the other end of a cable."""
    with network() as cable, _Screen(cable.command(), "vb", "tcp") as screen:
        command = cable.command("-m", "benchmarks.sending", "va", "exchanges")
        sent = _said([*command, "--rate", str(rate), "--seconds", str(seconds)])
        found = screen.end(sent["exchanges"])
    yield from _figures(sent["exchanges"], found["exchanges"], sent["seconds"], found)


def client(rate: float, seconds: float) -> Iterator[Figure]:
    """``kdissect tui`` while librdkafka talks to its own mock broker."""
    with network() as cable:
        # An address other than loopback. Without one, names of loopback addresses are not resolved either.
        cable.ip("address", "add", "192.0.2.1/24", "dev", "va")
        command = cable.command("-m", "benchmarks.live_client")
        yield from _with_client(cable.command(), command, rate, seconds)


def broker(rate: float, seconds: float) -> Iterator[Figure]:
    """``kdissect tui`` while librdkafka talks to Kafka's own broker."""
    from tests.client.kraft import RELEASES, Kraft

    with Kraft(RELEASES[-1]) as kraft:
        command = [sys.executable, "-m", "benchmarks.live_client", "--broker", kraft.address()]
        yield from _with_client([sys.executable], command, rate, seconds)


def _with_client(
    python: Sequence[str], command: Sequence[str], rate: float, seconds: float
) -> Iterator[Figure]:
    timing = ("--rate", str(rate), "--seconds", str(seconds))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with ended(subprocess.Popen([*command, *timing], cwd=ROOT, **pipes)) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        port = int(client.stdout.readline())
        with _Screen(python, "lo", f"tcp port {port}") as screen:
            client.stdin.write(b"go\n")
            client.stdin.close()
            sent = json.loads(client.stdout.readline())
            found = screen.end(sent["delivered"])
    yield from _figures(sent["delivered"], found["by_api"].get("Produce", 0), sent["seconds"], found)


class _Screen:
    """The screens, in a terminal that reads what they draw.

    :param python: the command that runs Python where the interface is.
    """

    def __init__(self, python: Sequence[str], interface: str, capture_filter: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kdissect-bench-")
        self._figures = Path(self._folder.name) / "figures.json"
        command = [*python, "-m", "benchmarks.live_screens", str(self._figures)]
        given = ("tui", "-i", interface, "-f", capture_filter, "--allow-root")
        self._terminal = Terminal(
            command=[*command, *given], TMPDIR=self._folder.name, KDISSECT_PAGE="exchanges"
        )
        self._terminal.until(b"0 dropped")
        self._terminal.send(b"F")  # the end of the list is shown, so that every row is visible for a moment
        self._terminal.until(b"following")
        self._terminal.read_on()

    def __enter__(self) -> _Screen:
        return self

    def __exit__(self, *_: object) -> None:
        self._terminal.close()
        self._folder.cleanup()

    def end(self, exchanges: int) -> dict[str, Any]:
        """Quit when this many exchanges are on the screen, or long enough after they should be."""
        wait_until(lambda: self._count() >= exchanges, _END_SECONDS)
        self._terminal.send(b"qq")
        wait_until(lambda: self._terminal.process.poll() is not None, _END_SECONDS)
        found: dict[str, Any] = json.loads(self._figures.read_text())
        return found

    def _count(self) -> int:
        """The number of exchanges on the screen."""
        try:
            return int(self._figures.with_suffix(".count").read_text() or "0")
        except OSError:
            return 0


def _figures(sent: int, shown: int, seconds: float, found: dict[str, Any]) -> Iterator[Figure]:
    yield Figure("exchanges a second", sent / seconds, "")
    yield Figure("exchanges", sent, "")
    yield Figure("not on the screen", sent - shown, "", 0)
    yield Figure("dropped by the system, or not written", found["dropped"] + found["lost"], "", 0)
    for percent, wait in found["waits_us"].items():
        limit = 500 if percent == "99" else None
        yield Figure(f"response to screen, p{percent}", wait / 1_000, "ms", limit)
    yield Figure("process of the screens", 100 * found["cpu_share"], "% of a core", 30)


def _said(command: Sequence[str]) -> dict[str, Any]:
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _status(journal: Path) -> Status:
    return status_of(str(journal)) or Status()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    measures = {each.__name__: each for each in (capture, screens, client, broker)}
    parser.add_argument("what", choices=tuple(measures))
    parser.add_argument("--rate", type=float, help="packets or exchanges a second")
    parser.add_argument("--seconds", type=float, default=30)
    given = parser.parse_args()
    rate = _RATES[given.what] if given.rate is None else given.rate
    sys.stdout.write(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors\n")
    figures = list(measures[given.what](rate, given.seconds))
    sys.stdout.write("".join(f"{figure}\n" for figure in figures))
    return 0 if all(figure.is_met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
