"""Captures that other programs make: their command lines, and what they say."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdissect.capture.blocks import Captured
from kdissect.capture.reader import Interface
from kdissect.live.errors import LiveError, NoCaptureError, NoInterfaceError, NotPermittedError
from kdissect.live.external import External, PipedCapture, command_of, is_external, opener
from kdissect.live.journal import MOST_NOTES
from kdissect.live.sources import Interfaces, SourceCounts
from kdissect.model import Packet
from tests.capture.test_following import capture_of
from tests.cli.run import CAPTURES

WANTED = Interfaces((), "tcp port 9092", 96)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which programs are found before those of the system."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def make(programs: Path, name: str, script: str) -> None:
    path = programs / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def everything(stream: PipedCapture, seconds: float = 10) -> Iterator[Captured]:
    until = time.monotonic() + seconds
    while not stream.is_over() and time.monotonic() < until:
        stream.trouble()
        block = stream.read()
        if block is None:
            time.sleep(0.005)
        else:
            yield from block[1]


def test_names_tell_the_program() -> None:
    for name in ("-", "ssh://host/eth0", "tcpdump:eth0", "dumpcap:any"):
        assert is_external(name)
    for name in ("eth0", "any", "lo", "tcpdump"):
        assert is_external(name) == (name == "tcpdump")


def test_filter_and_lengths_are_handed_on_and_nothing_is_a_shells_to_read() -> None:
    command = command_of("tcpdump:eth0", WANTED)
    assert command[:3] == ["tcpdump", "-n", "-U"]
    assert command[-2:] == ["--", "tcp port 9092"]
    assert command[command.index("-s") + 1] == "96"
    command = command_of("dumpcap:eth0", WANTED._replace(is_promiscuous=False))
    assert command[0] == "dumpcap"
    assert command[-2:] == ["-f", "tcp port 9092"]
    assert "-p" in command


def test_over_ssh_its_own_traffic_is_left_out() -> None:
    command = command_of("ssh://me@host:2222/eth0", WANTED)
    assert command[:-1] == ["ssh", "-p", "2222", "--", "me@host"]
    assert "'(tcp port 9092) and not tcp port 2222'" in command[-1]
    assert "not tcp port 22'" in command_of("ssh://host/eth0", WANTED)[-1]


@pytest.mark.parametrize(
    "name",
    [
        "ssh://-oProxyCommand=x/eth0",
        "ssh://host/",
        "ssh://host/-w",
        "ssh://ho st/eth0",
        "ssh://host/eth0;reboot",
        "tcpdump:-w",
        "dumpcap:",
        "tcpdump:eth0 -z x",
    ],
)
def test_a_name_cannot_smuggle_in_an_option_or_a_command(name: str) -> None:
    with pytest.raises(NoInterfaceError):
        command_of(name, WANTED)


@pytest.mark.parametrize("name", ["basic-kafka43.pcapng", "broker-0.9.pcap"])
def test_packets_are_those_of_the_stream_however_it_is_cut(
    programs: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from kdissect.capture.files import read_packets

    monkeypatch.setattr("kdissect.live.external._PIECE", 777)
    make(programs, "tcpdump", f"exec cat {CAPTURES / name}")
    stream = opener("tcpdump:eth0", WANTED)()
    found = list(everything(stream))
    capture = read_packets([CAPTURES / name])
    packets = [item for item in capture if isinstance(item, Packet)]
    assert found == [(each.timestamp_ns, each.wire_length, each.data) for each in packets]
    assert [each.link_type for each in stream.interfaces] == [each.link_type for each in capture.interfaces]
    assert stream.counts() == SourceCounts(len(packets), 0)
    stream.close()


@pytest.mark.parametrize(
    "said",
    ["7 packets dropped by kernel", "Packets received/dropped on interface 'eth0': 12/7 (pcap:7/dumpcap:0)"],
)
def test_what_the_program_lost_is_counted(programs: Path, said: str) -> None:
    path = programs / "capture"
    path.write_bytes(capture_of(1, 2))
    make(programs, "dumpcap", f'cat {path}; echo "{said}" >&2')
    stream = opener("dumpcap:eth0", WANTED)()
    assert len(list(everything(stream))) == 2
    assert stream.counts() == SourceCounts(9, 7)
    stream.close()


@pytest.mark.parametrize(
    ("script", "error", "words"),
    [
        ("echo 'tcpdump: eth9: No such device exists' >&2; exit 1", LiveError, "No such device exists"),
        ("echo 'eth0: You do not have permission to capture' >&2; exit 1", NotPermittedError, "permission"),
        ("exit 0", LiveError, "ended without a capture"),
        (
            "echo this is no capture at all, not at all",
            LiveError,
            "is not a capture .it begins with 74 68 69 73",
        ),
    ],
)
def test_a_program_that_fails_is_told_in_its_own_words(
    programs: Path, script: str, error: type[LiveError], words: str
) -> None:
    make(programs, "tcpdump", script)
    start = opener("tcpdump:eth0", WANTED)
    with pytest.raises(error, match=words):
        start()


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"", "is empty"),
        (b"hello", "is not a capture"),
        (b"hello" * 99, "is not a capture"),
        (capture_of(1)[:9], "cut short"),
    ],
)
def test_what_is_piped_in_and_is_no_capture_is_an_input_that_cannot_be_read(head: bytes, words: str) -> None:
    read, write = os.pipe()
    os.write(write, head)
    os.close(write)
    with pytest.raises(NoCaptureError, match=f"ours: .*{words}"):
        External("ours", None, read, None)()
    os.close(read)


def test_a_stream_of_damage_does_not_fill_the_memory_and_all_of_it_is_counted(programs: Path) -> None:
    count = 2_000
    block = (0x7F).to_bytes(4, "little") + (12).to_bytes(4, "little") + (16).to_bytes(4, "little")
    (programs / "capture").write_bytes(capture_of(1) + (block + capture_of(2)) * count)
    make(programs, "tcpdump", f"exec cat {programs / 'capture'}")
    stream = opener("tcpdump:eth0", WANTED)()
    told: list[str] = []
    while not stream.is_over():
        while stream.read() is not None:
            pass
        assert len(stream._troubles) <= MOST_NOTES + 1
        if (trouble := stream.trouble()) is not None:
            told.append(trouble)
    more = [int(each.split()[1].replace(",", "")) for each in told if each.endswith("more faults")]
    assert sum(more) + len(told) - len(more) - 1 == count
    stream.close()


def test_when_it_ends_its_last_words_are_told(programs: Path) -> None:
    path = programs / "capture"
    path.write_bytes(capture_of(1))
    make(programs, "tcpdump", f'cat {path}; echo "tcpdump: the interface went down" >&2')
    stream = opener("tcpdump:eth0", WANTED)()
    while stream.read() is not None or not stream._is_over:
        time.sleep(0.005)
    assert stream.trouble() == "tcpdump:eth0 has ended: tcpdump: the interface went down"
    stream.close()


def test_a_stop_ends_the_program_and_keeps_what_it_wrote_at_the_end(programs: Path) -> None:
    head, rest = capture_of(1), capture_of(2)
    (programs / "head").write_bytes(head)
    (programs / "rest").write_bytes(rest)
    script = (
        f"trap 'cat {programs / 'rest'}; exit' TERM; cat {programs / 'head'}; while :; do sleep 0.05; done"
    )
    make(programs, "tcpdump", script)
    stream = opener("tcpdump:eth0", WANTED)()
    stream.stop()
    blocks = []
    while (block := stream.read()) is not None:
        blocks.append(block)
    assert [data for _, packets in blocks for _, _, data in packets] == [b"1", b"2"]
    stream.close()


def test_a_program_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(LiveError, match=r"dumpcap:eth0: dumpcap is not installed"):
        opener("dumpcap:eth0", WANTED)


def test_interfaces_are_those_of_the_stream(programs: Path) -> None:
    path = programs / "capture"
    path.write_bytes(capture_of(1, interface=Interface(113, 0, "any")))
    make(programs, "tcpdump", f"cat {path}")
    stream = opener("tcpdump:any", WANTED)()
    [interface] = stream.interfaces
    assert interface._replace(section=()) == Interface(113, 0, "any")
    stream.close()
