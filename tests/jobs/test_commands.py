from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import kdissect.cli.jobs
import kdissect.jobs.cutting
import kdissect.present.text
from benchmarks.traffic import multiply
from kdissect.jobs.workers import Workers
from tests.cli.run import CAPTURES, ROOT, spawn
from tests.jobs.same import said

EXCHANGES = 2_000


@pytest.fixture(scope="module")
def traffic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traffic") / "traffic.pcap"
    multiply(path, EXCHANGES)
    return path


@pytest.fixture(scope="module")
def alone(traffic: Path) -> bytes:
    return said("read", traffic, "--jobs", 1).out


@contextmanager
def reading(path: Path, rows: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command that reads most of a capture, then waits for the rest; its rows go to a file."""
    command = [sys.executable, "-m", "kdissect", "read", "-", "--jobs", "2"]
    pipe = subprocess.PIPE
    with (
        rows.open("wb") as file,
        subprocess.Popen(command, stdin=pipe, stdout=file, stderr=pipe, cwd=ROOT) as running,
    ):
        assert running.stdin is not None
        data = path.read_bytes()
        running.stdin.write(data[: len(data) * 3 // 4])
        running.stdin.flush()
        try:
            yield running
        finally:
            running.kill()


def wait_for(rows: Path) -> None:
    """Wait until there are some."""
    until = time.monotonic() + 30
    while not rows.stat().st_size and time.monotonic() < until:
        time.sleep(0.01)


def others(running: subprocess.Popen[bytes]) -> list[int]:
    """The processes that it began."""
    text = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text(encoding="ascii")
    return list(map(int, text.split()))


def settle(running: subprocess.Popen[bytes]) -> None:
    """Wait until it waits for input."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        before = cpu(running.pid)
        time.sleep(0.3)
        if before == cpu(running.pid):
            return


def cpu(pid: int) -> tuple[str, ...]:
    return tuple(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11:13])


def test_a_killed_process_is_told_in_one_line_and_what_came_before_is_there(
    traffic: Path, alone: bytes, tmp_path: Path
) -> None:
    """One of its processes is killed while it waits for a part's seam, or makes rows."""
    rows = tmp_path / "rows"
    program = (
        "import os, signal, sys\n"
        "import kdissect.cli.jobs as j, kdissect.jobs.cutting as c, kdissect.jobs.workers as w\n"
        "j.CUT_BYTES, c.FIRST_BYTES, c.GROWTH, take, left = 1, 20_000, 2, w.Workers.submit_part, [3]\n"
        "def submit(self, part, *rest):\n"
        "    left[0] -= 1\n"
        "    if not left[0]: os.kill(part.process.pid, signal.SIGKILL)\n"
        "    take(self, part, *rest)\n"
        "w.Workers.submit_part = submit\n"
        "from kdissect.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    command = [sys.executable, "-c", program, "read", str(traffic), "--jobs", "2", "-o", str(rows)]
    ran = subprocess.run(command, capture_output=True, cwd=ROOT, timeout=60, check=False)
    assert ran.stderr.decode() == (
        "kdissect: a decoding process was killed by signal 9; the rows before that are written"
        " (--jobs 1 uses no such process)\n"
    )
    assert ran.returncode == 3
    assert alone.startswith(rows.read_bytes())
    assert rows.read_bytes().endswith(b"\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_interrupt_key_ends_the_input_and_leaves_its_rows(
    traffic: Path, alone: bytes, number: signal.Signals, tmp_path: Path
) -> None:
    rows = tmp_path / "rows"
    with reading(traffic, rows) as running:
        wait_for(rows)
        settle(running)
        pids = others(running)
        for pid in (running.pid, *pids):  # a terminal sends it to all of them that are still there
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        assert running.wait(30) == 130
        assert running.stderr is not None
        assert running.stderr.read() == b""
    assert alone.startswith(rows.read_bytes())
    assert rows.read_bytes().count(b"\n") > EXCHANGES // 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("times", [1, 2])
def test_the_interrupt_key_amid_parts_leaves_whole_rows_and_no_process(
    traffic: Path, alone: bytes, times: int, tmp_path: Path
) -> None:
    """It is pressed while others dissect: once to end the input, or twice to end at once."""
    rows = tmp_path / "rows"
    program = (
        "import os, signal, sys, kdissect.cli.jobs as j\n"
        "import kdissect.jobs.cutting as c, kdissect.jobs.workers as w\n"
        "j.CUT_BYTES, c.PART_BYTES, take, left = 1, 150_000, w.Workers.edge_of, [3]\n"
        "def edge_of(self, part):\n"
        "    left[0] -= 1\n"
        f"    if not left[0]: [os.kill(os.getpid(), signal.SIGINT) for _ in range({times})]\n"
        "    return take(self, part)\n"
        "w.Workers.edge_of = edge_of\n"
        "from kdissect.cli import main\n"
        "code = main(sys.argv[1:])\n"
        "try: os.waitpid(-1, os.WNOHANG)\n"
        "except ChildProcessError: sys.exit(code)\n"
    )
    command = [sys.executable, "-c", program, "read", str(traffic), "--jobs", "3", "-o", str(rows)]
    ran = subprocess.run(command, capture_output=True, cwd=ROOT, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (130, b"")
    found = rows.read_bytes()
    assert alone.startswith(found)
    assert found.endswith(b"\n") or (times == 2 and not found)


def test_a_reader_that_has_enough_ends_it_quietly(traffic: Path, alone: bytes) -> None:
    command = f"{sys.executable} -m kdissect read {traffic} --jobs 3 | head -n 5; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, cwd=ROOT, timeout=60, check=True)
    assert done.stdout == b"".join(alone.splitlines(keepends=True)[:5]) + b"0\n"
    assert done.stderr == b""


def test_standard_input_and_compressed_files_are_shared_too(traffic: Path, alone: bytes) -> None:
    import gzip

    packed = traffic.with_suffix(".gz")
    packed.write_bytes(gzip.compress(traffic.read_bytes(), 1))
    assert said("read", packed, "--jobs", 2).out == alone
    assert spawn("read", "-", "--jobs", 2, stdin=traffic.read_bytes()).out == alone


def test_a_small_capture_is_the_work_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kdissect.cli.jobs, "_processors", lambda: 4)
    monkeypatch.setattr(kdissect.jobs.workers, "Workers", None)
    assert said("read", CAPTURES / "basic-kafka43.pcapng").code == 0
    assert said("stats", CAPTURES / "basic-kafka43.pcapng", "-z", "srt").code == 0


def test_a_large_one_is_shared_behind_its_beginning(
    traffic: Path, alone: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []

    class Counted(Workers):
        def __init__(self, *given: object, **named: object) -> None:
            begun.append(given[1])
            super().__init__(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(kdissect.cli.jobs, "_processors", lambda: 2)
    monkeypatch.setattr(kdissect.cli.jobs, "WORTH_BYTES", 200_000)
    monkeypatch.setattr(kdissect.cli.jobs, "CUT_BYTES", 1 << 40)
    monkeypatch.setattr(kdissect.jobs.workers, "Workers", Counted)
    assert said("read", traffic, "-T", "records", "-c", 1).code == 0
    assert begun == []
    assert said("read", traffic).out == alone
    assert begun == [2]
    strict = said("read", traffic, "--strict", "-T", "faults")
    assert strict == said("read", traffic, "--strict", "-T", "faults", "--jobs", 1)
    monkeypatch.setattr(kdissect.cli.jobs, "CUT_BYTES", 1)
    monkeypatch.setattr(kdissect.jobs.cutting, "PART_BYTES", 300_000)
    assert said("read", traffic).out == alone


def test_rows_that_are_wanted_as_they_come_are_the_work_of_one(tmp_path: Path) -> None:
    ran = said("read", "--follow", tmp_path, "--jobs", 2)
    assert ran.code == 2
    assert "--follow decodes in one process" in ran.err


def test_a_system_without_forks_has_one_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kdissect.cli.jobs, "IS_POSSIBLE", False)
    ran = said("read", CAPTURES / "errors.pcapng", "--jobs", 2)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert said("read", CAPTURES / "errors.pcapng", "--jobs", 1).code == 0
    assert said("read", CAPTURES / "errors.pcapng").code == 0


@pytest.mark.skipif(
    not (kdissect.present.text.__file__ or "").endswith(".py"), reason="a compiled module calls its own"
)
def test_a_defect_is_told_as_one_process_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise RuntimeError("the line cannot be made")

    monkeypatch.setattr("kdissect.present.text.topics_text", fail)
    ran = [said("read", CAPTURES / "errors.pcapng", "--jobs", jobs) for jobs in (1, 2)]
    assert ran[0] == ran[1]
    assert "RuntimeError in kdissect.present.text" in ran[0].err
