"""A disk that is full and a ring that overflows: told in a line each, counted right, and the file is whole
for other programs, too."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kdissect.capture.files import read_packets
from kdissect.live.journal import Status, status_of
from kdissect.live.ring import BLOCKS, RETIRE_MS
from kdissect.model import Fault, Packet
from tests.live.machine import (
    ROOT,
    Network,
    children,
    end,
    ended,
    eventually,
    kdissect_of,
    network,
    until_it_captures,
)
from tests.live.requires import requires_namespaces
from tests.waiting import wait_until

pytestmark = requires_namespaces
pytest.importorskip("scapy")


_BESIDE = re.compile("no Kafka was found|nothing of Kafka|none with Kafka|no packet has|^kdissect: 0 dropped")


class Live:
    """``kdissect live -w`` on one end of a cable."""

    def __init__(self, cable: Network, process: subprocess.Popen[bytes], folder: Path, path: Path) -> None:
        self._cable, self.process, self.path = cable, process, path
        self._sent = 0
        self.out = b""
        self._journal = until_it_captures(process, folder)
        self.capture = children(kdissect_of(process.pid))["capture"]

    @property
    def status(self) -> Status:
        return status_of(str(self._journal)) or Status()

    def send(self, rate: int, seconds: float) -> None:
        """Send packets that are alike."""
        command = self._cable.command("-m", "benchmarks.sending", "va", "frames")
        done = subprocess.run(
            [*command, "--rate", str(rate), "--seconds", str(seconds)],
            check=True,
            capture_output=True,
            cwd=ROOT,
        )
        self._sent += json.loads(done.stdout)["packets"]

    def settled(self) -> Status:
        """How it goes when all that came is dealt with."""

        def is_settled() -> bool:
            status = self.status
            return self._sent == status.received == status.dropped + status.lost + status.written

        eventually(is_settled)
        return self.status

    def end(self, expected: int = 0) -> list[str]:
        """End it; gives what it said, but for that nothing of Kafka's came, and how many are lost by now."""
        code, self.out, error = end(self.process)
        assert code == expected, error
        return [line for line in error.splitlines() if not re.search(_BESIDE, line)]


@contextmanager
def live(folder: Path, path: Path | None, *more: object) -> Iterator[Live]:
    with network() as cable:
        if path is not None:
            more = (*more, "-w", path)
        given = ("live", "-i", "vb", "--allow-root", "-q", "--spool", folder, *more)
        with ended(cable.start(*given)) as process:
            yield Live(cable, process, folder, path or Path())


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of two megabytes, if we may have one."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("disks cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def packets_by_all(path: Path) -> set[int]:
    """How many packets a file has, by us and by the other programs there are; none finds fault with it."""
    items = list(read_packets([path]))
    assert not [item for item in items if isinstance(item, Fault)]
    found = {sum(isinstance(item, Packet) for item in items)}
    for command in (
        ["tshark", "-r", str(path), "-T", "fields", "-e", "frame.number"],
        ["tcpdump", "-n", "-r", str(path)],
    ):
        if shutil.which(command[0]):
            done = subprocess.run(command, capture_output=True, check=True)
            assert b"cut short" not in done.stderr
            assert b"truncated" not in done.stderr
            found.add(len(done.stdout.splitlines()))
    return found


def test_a_disk_that_is_full_costs_what_does_not_fit_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    with small_disk(tmp_path / "disk") as disk, live(tmp_path / "journal", disk / "out.pcapng") as capturing:
        capturing.send(8_000, 2)
        full = capturing.settled()
        assert 0 < full.lost < full.received
        assert packets_by_all(capturing.path) == {full.written}
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        capturing.send(1_000, 0.5)
        after = capturing.settled()
        assert after.lost == full.lost
        eventually(lambda: len(capturing.status.notes) == 2)
        said = capturing.end(3)
        assert packets_by_all(capturing.path) == {after.written}
    path = capturing.path
    lost = f"{after.lost:,} could not be written"
    why = f"{path}: No space left on device"
    assert [re.sub("[-0-9T:.]+(Z| s(?=.:))", "TIME", line) for line in sorted(said)] == sorted(
        [
            f"kdissect: {why}: packets are lost until it can be written again",
            f"kdissect: writing goes on; {full.lost:,} packets lost",
            f"kdissect: {full.lost:,} packets lost from TIME to TIME (TIME): {why}",
            f"kdissect: {after.written:,} packets captured, 0 dropped by the system, {lost}",
        ]
    )


def test_more_than_a_small_disk_holds_passes_through_it(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk, live(disk, None, "-T", "faults") as capturing:
        for _ in range(8):
            capturing.send(2_000, 0.5)
        status = capturing.settled()
        eventually(lambda: taken(disk) < 1 << 20)
        said = capturing.end()
    assert status.bytes > 2 << 20
    assert (status.lost, said, capturing.out) == (0, [], b"")


def taken(folder: Path) -> int:
    """Bytes of the packets that are in a spool."""
    return sum(path.stat().st_size for path in folder.rglob("spool*"))


def test_a_spool_whose_size_is_given_loses_what_is_too_much_and_tells_it_in_a_row(tmp_path: Path) -> None:
    with live(tmp_path, None, "--spool-size", "200kB", "-T", "faults") as capturing:
        decoder = kdissect_of(capturing.process.pid)
        os.kill(decoder, signal.SIGSTOP)
        try:
            capturing.send(5_000, 0.5)
            status = capturing.settled()
            full = taken(tmp_path)
            assert full <= 200_000
        finally:
            os.kill(decoder, signal.SIGCONT)
        assert status.lost > 0
        eventually(lambda: taken(tmp_path) < full)  # it may have been stopped before it read anything
        said = capturing.end(3)
    (row,) = [json.loads(line) for line in capturing.out.splitlines()]
    assert (row["layer"], row["kind"]) == ("file", "packets-lost")
    # Packets are written in batches. A small one may still fit after the first one that did not.
    assert 0 < row["packet"] <= status.written < row["packet"] + status.lost
    assert f"{status.lost:,} packets lost from " in row["message"]
    assert said[-1].endswith(f"{status.lost:,} could not be written")


def test_a_ring_that_overflows_is_told_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "out.pcapng"
    with live(tmp_path, path) as capturing:
        os.kill(capturing.capture, signal.SIGSTOP)
        try:
            capturing.send(
                2_000, 2 * BLOCKS * RETIRE_MS / 1_000
            )  # a block is full when its time is over, too
        finally:
            os.kill(capturing.capture, signal.SIGCONT)
        status = capturing.settled()
        assert status.dropped > 0
        wait_until(lambda: bool(capturing.status.notes), 5)
        said = capturing.end()
        assert packets_by_all(path) == {status.written}
    assert [line for line in said if "the system drops packets" in line] == said[:1]
    assert f"{status.dropped:,} dropped by the system" in said[-1]
    capture = read_packets([path])
    assert sum(isinstance(item, Packet) for item in capture) == status.written
    assert (capture.interfaces[0].received, capture.interfaces[0].dropped) == (
        status.received,
        status.dropped,
    )
