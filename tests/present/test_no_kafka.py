from __future__ import annotations

from pathlib import Path

import pytest

from kdissect.present.no_kafka import MOST_TOLD, NoKafka
from kdissect.session.conversation import Connection
from tests.cli.run import run, run_with
from tests.kafka import Talk, request
from tests.present.captures import port as endpoint
from tests.present.captures import write_capture

HTTP = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
OTHER = b"SSH-2.0-OpenSSH_9.2\r\n"


def talk(port: int, client: int, said: bytes) -> Talk:
    made = Talk(endpoint(client), bytes((10, 0, 0, 2)) + port.to_bytes(2, "big"))
    return made.say(made.client, said).close() if said else made.close()


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    talks = [talk(8080, 50_000, HTTP), talk(2222, 50_001, OTHER), talk(2222, 50_002, OTHER)]
    return write_capture(tmp_path / "none.pcapng", *talks)


FOUND = (
    "kdissect: no Kafka was found: 18 packets, 3 TCP connections (2 of another protocol on port 2222, "
    "1 of HTTP on port 8080); -d tcp.port==2222,kafka treats a port as Kafka\n"
)


@pytest.mark.parametrize(
    "arguments",
    [(), ("-T", "ndjson"), ("-T", "records"), ("-T", "connections"), ("-Y", "error"), ("--jobs", 2)],
)
def test_reading_into_a_pipe_says_what_there_is_instead(
    arguments: tuple[object, ...], capture: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    ran = run(capsysbinary, "read", capture, *arguments)
    assert ran.code == 0
    assert ran.err == FOUND
    assert bool(ran.out) is ("connections" in arguments)


def test_statistics_say_it_too(capture: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert FOUND in run(capsysbinary, "stats", capture, "-z", "srt").err


def test_a_capture_with_one_exchange_says_nothing(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = write_capture(tmp_path / "one.pcapng", Talk().ask(request("Metadata", 1, 1, topics=[])).close())
    assert run(capsysbinary, "read", path, "-Y", "error").err == ""


def test_a_pipe_on_both_sides(capture: Path) -> None:
    ran = run_with(capture.read_bytes(), "read", "-")
    assert (ran.code, ran.out, ran.err) == (0, b"", FOUND)


def test_without_tcp_there_is_no_port_to_name(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = write_capture(tmp_path / "empty.pcapng")
    assert run(capsysbinary, "read", path).err == "kdissect: no Kafka was found: there are no packets\n"
    assert NoKafka().text(7) == "no Kafka was found: 7 packets, none of TCP"


def connection(protocol: str, port: int, count: int = 1) -> Connection:
    ends = ("10.0.0.1:50000", f"[::1]:{port}", 0, 1, "open")
    return Connection(0, *ends, 1, count, 0, 0, 0, 0, 0, 0, protocol, None, None, None)


def test_of_many_ports_the_most_frequent_are_told() -> None:
    found, later = NoKafka(), NoKafka()
    for port in range(9_000, 9_010):
        found.add(connection("unknown", port))
    later.add(connection("unknown", 9_005))
    found.merge(later)
    text = found.text(1)
    assert "(2 of another protocol on port 9005, 1 of another protocol on port 9000, " in text
    assert text.count("on port") == MOST_TOLD
    http = NoKafka()
    http.add(connection("http", 80))
    assert "-d" not in http.text(1)  # it is known to be something else
    assert "and others); -d tcp.port==9005,kafka" in text


def test_what_has_no_bytes_and_what_stays_dark_is_told() -> None:
    found = NoKafka()
    found.add(connection("unknown", 9_092, 0))
    assert "(1 without a byte on port 9092); -d tcp.port==9092,kafka" in found.text(1)
    found = NoKafka()
    tls = {"dark": "no secret for client random 00", "decrypted": False}
    found.add(connection("tls", 9_093)._replace(tls=tls))
    assert found.lines(3) == [
        "no Kafka was found: 3 packets, 1 TCP connection (1 of TLS on port 9093)",
        "nothing is decrypted of 1 TLS connection: no secret; kdissect doctor tls says how to get one",
    ]
