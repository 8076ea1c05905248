"""``kdissect scrub``: a result that may be sent away, or none."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from unittest import mock

import pytest

from kdissect.capture.files import read_packets
from kdissect.capture.names import names_body
from kdissect.capture.reader import Interface, InterfaceCounts
from kdissect.capture.writer import PcapngWriter
from kdissect.model import Packet
from kdissect.scrub.packets import Headers, Layers
from kdissect.scrub.search import Search
from kdissect.scrub.values import Scrubber
from tests.capture.build import pcap, record
from tests.cli.run import CAPTURES, run, run_with
from tests.kafka import METADATA_RESPONSE_1, Talk, request, response
from tests.lab import Case
from tests.scrub.runs import packets_of

Capsys = pytest.CaptureFixture[bytes]


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A capture with a name, an address and nothing else."""
    said = Talk()
    said.ask(request("Metadata", 1, client_id="billing-of-alice", topics=[{"name": "orders-of-alice"}]))
    said.answer(response("Metadata", 1, **METADATA_RESPONSE_1))
    path = tmp_path / "in.pcap"
    path.write_bytes(pcap(record(each.data) for each in packets_of(said)))
    return path


def test_the_result_is_for_its_owner_and_has_the_exchanges(
    capture: Path, tmp_path: Path, capsysbinary: Capsys
) -> None:
    out = tmp_path / "out.pcapng"
    ran = run(capsysbinary, "scrub", capture, "-o", out)
    assert ran.code == 0
    assert ran.out == b""
    assert "5 packets with 1 exchange written to" in ran.err
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert b"alice" not in out.read_bytes()
    read = run(capsysbinary, "read", out, "-T", "ndjson")
    assert b'"Metadata"' in read.out
    assert b"10.0.0.1:" not in read.out


def test_of_a_file_only_the_counts_of_interfaces_stay(
    capture: Path, tmp_path: Path, capsysbinary: Capsys
) -> None:
    source, out = tmp_path / "named.pcapng", tmp_path / "out"
    counts = InterfaceCounts(7_000, 5, None, ((1, b"seen by alice"), (4, (99).to_bytes(8, "little"))))
    names = names_body([(1, b"\x0a\0\0\1host-of-alice\0")], [(2, b"dns-of-alice")])
    interface = Interface(1, name="eth-of-alice", description="alice's", section=((1, b"by alice"),))
    told = [interface._replace(counts=counts, names=(names,), options=((11, b"\0host alice"),))]
    with source.open("wb") as file:
        writer = PcapngWriter(file, told, None)
        for packet in read_packets([capture]):
            assert isinstance(packet, Packet)
            writer.write(packet._replace(comments=("alice again",), options=((2988, b"1234alice"),)))
        writer.write_names(told)
        writer.write_counts(told)
    assert source.read_bytes().count(b"alice") > 9
    assert run(capsysbinary, "scrub", source, "-o", out).code == 0
    assert b"alice" not in out.read_bytes()
    kept = read_packets([out])
    assert list(kept)
    assert kept.interfaces[0].counts == InterfaceCounts(7_000, 5, None, counts.options[1:])


def test_what_was_there_is_replaced(capture: Path, tmp_path: Path, capsysbinary: Capsys) -> None:
    out = tmp_path / "out.pcapng"
    out.write_bytes(b"old")
    out.chmod(0o644)
    assert run(capsysbinary, "scrub", capture, "-o", out).code == 0
    assert b"old" not in out.read_bytes()[:9]
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_a_key_that_is_not_there_is_made_and_then_used(
    capture: Path, tmp_path: Path, capsysbinary: Capsys
) -> None:
    key, first, second, other = (tmp_path / name for name in ("key", "first", "second", "other"))
    for out in (first, second):
        assert run(capsysbinary, "scrub", capture, "-o", out, "--key", key).code == 0
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert first.read_bytes() == second.read_bytes()
    assert run(capsysbinary, "scrub", capture, "-o", other).code == 0
    assert other.read_bytes() != first.read_bytes()


@pytest.mark.parametrize(
    ("data", "mode", "said"),
    [
        (b"", 0o600, "the file has no key of kdissect scrub"),
        (b"kdissect scrub key 1\n" + b"0" * 63, 0o600, "the file has no key of kdissect scrub"),
        (b"kdissect scrub key 1\n" + b"0" * 64 + b"\nmore", 0o600, "the file has no key of kdissect scrub"),
        (b"kdissect scrub key 1\n" + b"0" * 64 + b"\n", 0o644, "other users can read the key"),
    ],
)
def test_a_bad_key_is_one_line(
    data: bytes, mode: int, said: str, capture: Path, tmp_path: Path, capsysbinary: Capsys
) -> None:
    key, out = tmp_path / "key", tmp_path / "out"
    key.write_bytes(data)
    key.chmod(mode)
    ran = run(capsysbinary, "scrub", capture, "-o", out, "--key", key)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert not out.exists()
    assert key.read_bytes() == data


@pytest.mark.parametrize("place", ["folder", "none/key"])
def test_a_key_that_cannot_be_read_or_made_is_one_line(
    place: str, capture: Path, tmp_path: Path, capsysbinary: Capsys
) -> None:
    (tmp_path / "folder").mkdir()
    ran = run(capsysbinary, "scrub", capture, "-o", tmp_path / "out", "--key", tmp_path / place)
    assert ran.code == 2
    assert ran.err.count("\n") == 1


def test_nothing_is_written_if_something_is_still_there(
    capture: Path, tmp_path: Path, capsysbinary: Capsys
) -> None:
    out = tmp_path / "out"
    out.write_bytes(b"as it was")
    with mock.patch.object(Search, "file", return_value="at byte 7 of the file"):
        ran = run(capsysbinary, "scrub", capture, "-o", out)
    assert ran.code == 1
    assert "still there, at byte 7 of the file" in ran.err
    assert ran.err.count("\n") == 1
    assert out.read_bytes() == b"as it was"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.pcap", "out"]


def test_a_name_that_slipped_through_is_found(capture: Path, tmp_path: Path, capsysbinary: Capsys) -> None:
    honest = Headers.layers

    def leaky(self: Headers, packet: Packet) -> Layers | None:
        found = honest(self, packet)
        if found is not None:
            found.out[:12] = b"orders-of-alice"[:12]
            found.out += b"orders-of-alice"
        return found

    with mock.patch.object(Headers, "layers", leaky):
        ran = run(capsysbinary, "scrub", capture, "-o", tmp_path / "out")
    assert ran.code == 1
    assert "still there" in ran.err
    assert not (tmp_path / "out").exists()


def test_a_key_by_which_addresses_clash_is_given_up(
    capture: Path, tmp_path: Path, capsysbinary: Capsys
) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"kdissect scrub key 1\n" + b"0" * 64)
    key.chmod(0o600)
    with mock.patch.object(Scrubber, "clashes", new_callable=mock.PropertyMock, return_value=True):
        ran = run(capsysbinary, "scrub", capture, "-o", tmp_path / "out", "--key", key)
    assert ran.code == 1
    assert "give another --key" in ran.err
    assert not (tmp_path / "out").exists()


def test_damage_is_told_and_the_rest_is_written(capture: Path, tmp_path: Path, capsysbinary: Capsys) -> None:
    capture.write_bytes(capture.read_bytes()[:-3])
    ran = run(capsysbinary, "scrub", capture, "-o", tmp_path / "out")
    assert ran.code == 3
    assert "the file ends inside a record" in ran.err
    assert (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("no-such-file", "-o", "{out}"), 3, "no-such-file"),
        (("{in}", "-o", "-"), 2, "give a file name"),
        (("{in}", "-o", "{in}"), 2, "is also an input"),
        (("{in}", "-o", "{folder}"), 2, "is not a regular file"),
        (("{in}", "-o", "{folder}/none/out"), 2, "cannot be written"),
        (("{text}", "-o", "{out}"), 3, "{text}"),
        (("{in}", "-o", "{key}", "--key", "{key}"), 2, "is also an input"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    arguments: tuple[str, ...], code: int, said: str, capture: Path, tmp_path: Path, capsysbinary: Capsys
) -> None:
    text, key = tmp_path / "text", tmp_path / "key"
    text.write_text("no capture")
    key.write_bytes(b"kdissect scrub key 1\n" + b"0" * 64)
    key.chmod(0o600)
    names = {"in": capture, "out": tmp_path / "out", "folder": tmp_path, "text": text, "key": key}
    ran = run(capsysbinary, "scrub", *(each.format(**names) for each in arguments))
    assert ran.code == code
    assert said.format(**names) in ran.err
    assert ran.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_capture_may_come_through_a_pipe(capture: Path, tmp_path: Path) -> None:
    ran = run_with(capture.read_bytes(), "scrub", "-", "-o", str(tmp_path / "out"), "-q")
    assert ran.code == 0
    assert ran.err == ""
    assert (tmp_path / "out").stat().st_size > 100


def test_tls_is_written_in_the_clear_with_a_key_log_and_not_without(
    tmp_path: Path, capsysbinary: Capsys
) -> None:
    case, out = Case("tls13"), tmp_path / "out"
    ran = run(capsysbinary, "scrub", case.capture, "-o", out, "--keylog", case.folder / "keys.log")
    assert "written decrypted, without TLS: 11 connections" in ran.err
    with mock.patch.dict(os.environ):
        os.environ.pop("SSLKEYLOGFILE", None)
        ran = run(capsysbinary, "scrub", case.capture, "-o", out)
    assert "of 11 connections without Kafka messages" in ran.err


def test_shipped_captures_can_be_scrubbed(tmp_path: Path, capsysbinary: Capsys) -> None:
    ran = run(capsysbinary, "scrub", CAPTURES / "sasl-scram.pcapng", "-o", tmp_path / "out")
    assert ran.code == 0


def test_a_new_key_is_not_overwritten_by_the_result(
    capture: Path, tmp_path: Path, capsysbinary: Capsys
) -> None:
    ran = run(capsysbinary, "scrub", capture, "-o", tmp_path / "one", "--key", tmp_path / "." / "one")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "-o and --key both name" in ran.err
    assert not (tmp_path / "one").exists()
