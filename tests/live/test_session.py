"""The capture process and who follows it, when one of them is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from kdissect.capture.files import read_packets
from kdissect.live.errors import LiveError
from kdissect.live.external import External
from kdissect.live.rotation import Bounds
from kdissect.live.session import CaptureSession
from kdissect.live.sources import PacketSource
from kdissect.live.spooled import Spooled
from kdissect.model import Fault, Packet
from tests.capture.test_following import capture_of
from tests.live.machine import ROOT, eventually


class Piped:
    """A session whose packets we write ourselves."""

    def __init__(self, path: Path | None = None, rotation: Bounds = Bounds()) -> None:  # noqa: B008
        read, self.write = os.pipe()
        os.write(self.write, capture_of(1))
        self.session = CaptureSession(
            [External("ours", None, read, None)], None if path is None else str(path), rotation
        )
        os.close(read)

    def put(self, *numbers: int) -> None:
        before = self.session.status().written
        os.write(self.write, capture_of(*numbers))
        eventually(lambda: self.session.status().written >= before + len(numbers))

    def close(self) -> None:
        os.close(self.write)
        self.session.close()


@pytest.fixture
def piped(tmp_path: Path) -> Iterator[Piped]:
    with closing(Piped(tmp_path / "out.pcapng")) as made:
        eventually(lambda: made.session.status().written == 1)
        yield made


def numbers_of(path: Path) -> list[int]:
    items = list(read_packets([path]))
    assert not [item for item in items if isinstance(item, Fault)]
    return [int(item.data) for item in items if isinstance(item, Packet)]


def test_what_comes_is_followed_and_the_end_is_seen(piped: Piped, tmp_path: Path) -> None:
    following = Spooled(piped.session.folder)
    assert isinstance(next(following), Packet)
    piped.put(2, 3)
    piped.session.stop()
    assert [int(item.data) for item in following if isinstance(item, Packet)] == [2, 3]
    following.close()
    piped.session.join()
    assert piped.session.death() is None
    assert piped.session.status().reason == "stopped"
    assert numbers_of(tmp_path / "out.pcapng") == [1, 2, 3]


def test_a_capture_process_that_is_killed_leaves_a_whole_file_and_its_end_is_seen(
    piped: Piped, tmp_path: Path
) -> None:
    following = Spooled(piped.session.folder)
    piped.put(2)
    assert piped.session.pid is not None
    os.kill(piped.session.pid, signal.SIGKILL)
    assert [int(item.data) for item in following if isinstance(item, Packet)] == [1, 2]
    following.close()
    with (tmp_path / "out.pcapng").open("ab") as file:
        file.write(bytes.fromhex("06000000 ff000000 0000"))  # what it was just writing
    piped.session.join()
    assert piped.session.death() == (
        "the capture process was killed by signal 9; the packets that it had written are complete"
    )
    assert numbers_of(tmp_path / "out.pcapng") == [1, 2]


def test_a_capture_process_ends_cleanly_when_who_started_it_is_killed(tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from tests.live.test_session import Piped\n"
        "if __name__ == '__main__':\n"
        f"    piped = Piped(Path({str(tmp_path / 'out.pcapng')!r}))\n"
        "    piped.put(2, 3)\n"
        "    print(piped.session.pid, piped.session.folder, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    (tmp_path / "owner.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "owner.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as owner:
        assert owner.stdout is not None
        pid, folder = owner.stdout.readline().split()
        following = Spooled(folder.decode())
        owner.kill()
    # The process has gone when nobody holds the journal.
    assert [int(item.data) for item in following if isinstance(item, Packet)] == [1, 2, 3]
    following.close()
    capture = read_packets([tmp_path / "out.pcapng"])
    assert len(list(capture)) == 3
    assert capture.interfaces[0].received == 3  # what is written at a clean end
    eventually(lambda: not _runs(int(pid)))
    assert not Path(folder.decode()).exists()


_STARTING = """
import multiprocessing.connection, multiprocessing.util, os, signal
from kdissect.live.external import External
from kdissect.live.session import CaptureSession
from tests.capture.test_following import capture_of

start = multiprocessing.util.spawnv_passfds

def started(path, arguments, descriptors):
    pid = start(path, arguments, descriptors)
    if any("spawn_main" in str(each) for each in arguments):
        os.kill(os.getpid(), signal.SIGTERM)
    return pid

def killed(_):
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    {when}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    read, write = os.pipe()
    os.write(write, capture_of(1))
    try:
        CaptureSession([External("ours", None, read, None)], {path!r}, folder={folder!r})
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("multiprocessing.util.spawnv_passfds = started", b"interrupted\n"),
        ("multiprocessing.connection.Connection.recv = killed", b""),
    ],
    ids=["TERM while it starts it", "KILL while it waits for it"],
)
def test_who_is_killed_when_the_capture_begins_leaves_neither_a_folder_nor_a_traceback(
    tmp_path: Path, when: str, said: bytes
) -> None:
    folder, script = tmp_path / "folder", tmp_path / "owner.py"
    folder.mkdir()
    script.write_text(_STARTING.format(when=when, path=str(tmp_path / "out.pcapng"), folder=str(folder)))
    # Its standard error is shut when the capture process has ended, too.
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == (said, b"")
    assert list(folder.iterdir()) == []


def _runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False


def test_the_folder_is_gone_at_the_end_and_was_ours_alone() -> None:
    piped = Piped()
    folder = Path(piped.session.folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    piped.close()
    assert not folder.exists()


@dataclass
class Failing:
    """A source that cannot be opened."""

    error: Exception

    def __call__(self) -> PacketSource:
        raise self.error

    def close(self) -> None:
        """There is nothing to let go of."""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (LiveError("no capture here"), "no capture here"),
        (OSError(24, "Too many open files", "eth0"), "eth0: Too many open files"),
        (ValueError("a defect"), "a defect in kdissect, please report it: ValueError"),
    ],
)
def test_what_cannot_begin_is_told_in_one_line(error: Exception, words: str) -> None:
    with pytest.raises(LiveError, match=words):
        CaptureSession([Failing(error)])


def test_nothing_is_left_of_what_was_stopped_before_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def press(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("multiprocessing.connection.Connection.recv", press)
    with pytest.raises(KeyboardInterrupt):
        CaptureSession([Failing(LiveError("too late"))], folder=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_counts_never_fall_because_they_cannot_be_read(piped: Piped) -> None:
    (Path(piped.session.folder) / "status").write_bytes(b'{"received": 1')
    assert piped.session.status().written == 1


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(LiveError, match=r"nowhere/out.pcapng: No such file"):
        Piped(tmp_path / "nowhere" / "out.pcapng")
