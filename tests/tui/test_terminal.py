"""The screens in a real terminal."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.amount import some
from tests.cli.run import CAPTURES
from tests.tui.terminals import LEAVE_ALTERNATE_SCREEN, Terminal, end_with_q, ended

CAPTURE = CAPTURES / "errors.pcapng"

Begin = Callable[..., Terminal]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Starts a command in a terminal, with a home of its own."""
    begun: list[Terminal] = []

    def start(*arguments: object, **given: object) -> Terminal:
        home = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
        home["KDISSECT_PAGE"] = "exchanges"
        begun.append(Terminal(*arguments, **{**home, **given}))  # type: ignore[arg-type]
        return begun[-1]

    yield start
    for terminal in begun:
        terminal.close()


def test_the_screens_come_answer_keys_and_sizes_and_go(begin: Begin) -> None:
    terminal = begin("tui", CAPTURE)
    terminal.until(b"52 exchanges")
    terminal.until(b"RequestHeader")
    terminal.send(b"e")
    terminal.until(b"INVALID_TOPIC")
    # Frames of the size before may still come after a change: what is waited for stands in none of them.
    terminal.resize(80, 24)
    terminal.until(b"1 Exchanges  2  3")
    terminal.send(b"\r")
    terminal.until(b"Back")
    terminal.until(b"errorCode")  # the tree is open where the error is
    terminal.resize(200, 60)
    terminal.until(b"T Transactions")
    terminal.send(b"\x1b")
    terminal.until(b"Quit")  # Escape left the tree for the list, where q does not lead back
    end_with_q(terminal)


def test_without_a_command_a_file_is_shown_on_the_screen(begin: Begin) -> None:
    terminal = begin(CAPTURE)
    terminal.until(b"RequestHeader")
    terminal.until(b"errors.pcapng")
    end_with_q(terminal)


def test_an_option_that_screens_do_not_have_prints(begin: Begin) -> None:
    terminal = begin(CAPTURE, "-T", "ndjson", "-c", "1")
    assert terminal.end() == 0
    assert b'{"number":1,' in terminal.output


def test_no_colours_where_none_are_wanted(begin: Begin) -> None:
    def colours(**environment: str) -> set[tuple[bytes, ...]]:
        terminal = begin("tui", CAPTURE, COLORTERM="truecolor", **environment)
        terminal.until(b"RequestHeader")
        drawn = terminal.output
        end_with_q(terminal)
        return set(re.findall(rb"[34]8;2;(\d+);(\d+);(\d+)[;m]", drawn))

    assert any(len(set(colour)) > 1 for colour in colours())
    # Textual makes shades of grey of colours then.
    assert all(len(set(colour)) == 1 for colour in colours(NO_COLOR="1"))


@pytest.mark.parametrize("name", ["dumb", "unknown"])
def test_a_terminal_that_cannot_be_drawn_on_gets_a_line(name: str, begin: Begin) -> None:
    terminal = begin("tui", CAPTURE, TERM=name)
    assert terminal.end() == 2
    said = (
        f"kdissect: the screens cannot draw on TERM={name}: set what the terminal is (TERM=xterm-256color); "
    )
    said += "kdissect read prints to anything\r\n"
    assert terminal.output.decode() == said


def test_a_capture_is_piped_in_and_keys_come_from_the_terminal(begin: Begin, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    reader, writer = os.pipe()
    data = CAPTURE.read_bytes()
    os.set_inheritable(reader, True)
    terminal = begin("tui", "-", stdin=reader, TMPDIR=str(temporary))
    os.close(reader)
    half = len(data) // 2
    os.write(writer, data[:half])
    terminal.until(b"standard input")
    terminal.until(b"ApiVersions v4")  # shown while more is to come
    assert b"52 exchanges" not in terminal.output
    os.write(writer, data[half:])
    os.close(writer)
    terminal.until(b"52 exchanges")
    terminal.send(b"e")
    terminal.until(b"INVALID_TOPIC")
    assert len(list(temporary.glob("kdissect-*/standard input"))) == 1
    end_with_q(terminal, unsaved=True)
    assert list(temporary.iterdir()) == []


def test_a_piped_capture_can_be_saved(begin: Begin, tmp_path: Path) -> None:
    with CAPTURE.open("rb") as file:
        terminal = begin("tui", "-", stdin=file.fileno())
        terminal.until(b"52 exchanges")
    terminal.send(b"w")
    terminal.until(b"shown: 52 exchanges")
    terminal.send(b"\r")
    terminal.until(b"name.pcapng")
    terminal.send(f"{tmp_path}/x.pcapng\r".encode())
    terminal.until(b"of 52 exchanges written to")
    end_with_q(terminal)
    assert (tmp_path / "x.pcapng").stat().st_size > 10_000


def test_what_is_piped_in_and_no_capture_is_said(begin: Begin) -> None:
    reader, writer = os.pipe()
    terminal = begin("tui", "-", stdin=reader)
    os.close(reader)
    os.write(writer, b"this is no capture at all\n" * 10)
    os.close(writer)
    terminal.until(b"stopped: standard input: ")
    terminal.until(b"not a capture")
    assert b"pipe/" not in terminal.text
    end_with_q(terminal)


def test_a_decoder_that_is_killed_is_told_and_survived(begin: Begin) -> None:
    reader, writer = os.pipe()
    terminal = begin("tui", "-", stdin=reader)
    os.close(reader)
    data = CAPTURE.read_bytes()
    os.write(writer, data[: len(data) // 2])
    terminal.until(b"ApiVersions v4")
    decoders = [
        child
        for child in terminal.children()
        if b"multiprocessing.spawn" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
    assert decoders
    for decoder in decoders:
        os.kill(decoder, signal.SIGKILL)
    terminal.until(b"killed by signal 9")
    terminal.send(b"e")
    terminal.until(b"INVALID_TOPIC")  # what was decoded is still shown
    end_with_q(terminal, unsaved=True)
    os.close(writer)


@pytest.mark.parametrize(
    ("number", "code"),
    some(
        [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)],
        2,
        *((signal.SIGTERM, 143), (signal.SIGHUP, 129)),
    ),
)
def test_asked_to_end_it_leaves_the_terminal_as_it_was(
    number: signal.Signals, code: int, begin: Begin
) -> None:
    terminal = begin("tui", CAPTURE)
    terminal.until(b"RequestHeader")
    terminal.output = b""
    terminal.process.send_signal(number)
    assert b"\x1b[?1000l" in ended(terminal, code)  # no reports of the mouse


def test_ctrl_c_ends_it_while_a_capture_is_read_and_leaves_the_terminal_as_it_was(begin: Begin) -> None:
    reader, writer = os.pipe()
    terminal = begin("tui", "-", stdin=reader)
    os.close(reader)
    data = CAPTURE.read_bytes()
    os.write(writer, data[: len(data) // 2])
    terminal.until(b"ApiVersions v4")  # more is to come
    terminal.send(b"\x03")
    terminal.until(b"Ctrl-C ends")  # what was piped in is not saved
    terminal.send(b"\x03")
    ended(terminal, 130)
    os.close(writer)


@pytest.mark.parametrize("keys", some([b"/", b":", b"?", b"w"], 2, b":", b"w"))
def test_ctrl_c_ends_it_from_everywhere(keys: bytes, begin: Begin) -> None:
    terminal = begin("tui", CAPTURE)
    terminal.until(b"RequestHeader")
    terminal.send(keys)
    time.sleep(1)
    terminal.send(b"\x03")
    ended(terminal, 130)


SHELL = """
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(1, os.getpid())
    if len(sys.argv) > 3:
        data = open(sys.argv[3], "rb").read()
        os.write(writer, data[:60_000])
        os.dup2(reader, 0)
    os.execv(sys.argv[1], [sys.argv[1], "-m", "kdissect", "tui", sys.argv[2]])
_, status = os.waitpid(child, os.WUNTRACED)
assert os.WIFSTOPPED(status)
os.tcsetpgrp(1, os.getpgrp())
print("STOPPED", flush=True)
os.read(1, 1)
os.tcsetpgrp(1, child)
os.killpg(child, signal.SIGCONT)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""Runs the screens as a shell does, in a group of their own."""


@pytest.mark.parametrize("is_piped", [False, True], ids=["file", "pipe"])
def test_suspended_it_gives_the_terminal_back_and_comes_again(
    is_piped: bool, begin: Begin, tmp_path: Path
) -> None:
    script = tmp_path / "shell.py"
    script.write_text(SHELL)
    arguments = ("-", str(CAPTURE)) if is_piped else (str(CAPTURE),)
    terminal = begin(sys.executable, *arguments, script=script)
    terminal.until(b"RequestHeader")
    terminal.send(b"\x1a")
    terminal.until(b"STOPPED")
    assert LEAVE_ALTERNATE_SCREEN in terminal.output
    assert terminal.modes == terminal.before
    terminal.send(b"\n")
    terminal.until(b"RequestHeader")
    terminal.send(b"e")
    terminal.until(b"INVALID_TOPIC")
    end_with_q(terminal, unsaved=is_piped)


@pytest.mark.parametrize("ignore", [(), (signal.SIGHUP,)], ids=["hangup", "hangup ignored"])
def test_without_its_terminal_it_ends(ignore: tuple[signal.Signals, ...], begin: Begin) -> None:
    terminal = begin("tui", CAPTURE, ignore=ignore)
    terminal.until(b"RequestHeader")
    terminal.hang_up()
    assert terminal.process.wait(20) is not None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the time a process took is in /proc")
def test_an_idle_screen_takes_no_time(begin: Begin) -> None:
    terminal = begin("tui", CAPTURE)
    terminal.until(b"RequestHeader")
    for _ in range(15):  # on a busy machine it takes long until nothing is left to do
        before = ticks(terminal.process.pid)
        time.sleep(2)
        took = ticks(terminal.process.pid) - before
        if took <= 4:
            break
    assert took <= 4  # hundredths of a second: 2 %


def ticks(pid: int) -> int:
    """The time that a process took so far."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(words[11]) + int(words[12])


def clear(terminal: Terminal) -> None:
    """Take away what was typed."""
    terminal.send(b"\x15")
    terminal.until(b"the path of a capture")


def test_without_a_file_the_last_ones_are_listed_and_a_path_is_taken(begin: Begin, tmp_path: Path) -> None:
    terminal = begin("tui")
    terminal.until(b"You have not opened anything yet")
    terminal.until(b"kdissect doctor")
    terminal.send(b"/no/such\r")
    terminal.until(b"/no/such: cannot be read: No such file or directory")
    clear(terminal)
    terminal.send(str(CAPTURES / "README.md").encode() + b"\r")
    terminal.until(b"not a capture")
    clear(terminal)
    terminal.send(str(CAPTURE).encode() + b"\r")
    terminal.until(b"52 exchanges")
    end_with_q(terminal)
    kept = tmp_path / "state" / "kdissect" / "recent.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    again = begin("tui")
    again.until(b"errors.pcapng")
    again.send(b"\r")
    again.until(b"52 exchanges")
    end_with_q(again)


def test_the_start_screen_can_be_left(begin: Begin) -> None:
    terminal = begin("tui")
    terminal.until(b"kdissect doctor")
    terminal.send(b"\x11")  # Ctrl-q
    assert terminal.end() == 0
    assert terminal.modes == terminal.before
