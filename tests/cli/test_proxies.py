"""Captures behind proxies, by every way of asking for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.run import run
from tests.present.captures import write_capture
from tests.session.test_preamble import WHOLE, talk

Capsys = pytest.CaptureFixture[bytes]


@pytest.mark.parametrize("more", [(), ("-d", "tcp.port==19092,kafka")])
@pytest.mark.parametrize("name", WHOLE)
def test_a_proxied_connection_reads_with_and_without_decode_as(
    name: str, more: tuple[str, ...], tmp_path: Path, capsysbinary: Capsys
) -> None:
    turns, _, client = WHOLE[name]
    path = write_capture(tmp_path / "c.pcap", talk(turns))
    ran = run(capsysbinary, "read", path, "-T", "ndjson", "--strict", *more)
    assert (ran.code, [json.loads(line)["client"] for line in ran.lines]) == (0, [client] * 3)


@pytest.mark.parametrize("name", ["socks login", "connect login"])
def test_no_form_shows_a_login_at_a_proxy(name: str, tmp_path: Path, capsysbinary: Capsys) -> None:
    path = write_capture(tmp_path / "c.pcap", talk(WHOLE[name][0]))
    for form in ("text", "tree", "ndjson", "connections", "faults", "connections.csv"):
        ran = run(capsysbinary, "read", path, "-T", form, *(["-x"] if form == "tree" else []))
        assert b"s3cret" not in ran.out
        assert b"YWxpY2U6czNjcmV0" not in ran.out


def test_the_tree_and_the_table_tell_of_the_proxy(tmp_path: Path, capsysbinary: Capsys) -> None:
    path = write_capture(tmp_path / "c.pcap", talk(WHOLE["v2"][0]))
    tree = run(capsysbinary, "read", path, "-T", "tree").out.decode()
    assert "203.0.113.7:51000 → 10.0.0.2:19092, through 10.0.0.1:50000" in tree
    assert "  PROXY v2: 10.0.0.1:50000, for 203.0.113.7:51000, to 198.51.100.1:9092, 28 bytes" in tree
    (row,) = map(json.loads, run(capsysbinary, "read", path, "-T", "connections").lines)
    assert (row["client"], row["proxies"][0]["proxy"]) == ("203.0.113.7:51000", "10.0.0.1:50000")


@pytest.mark.parametrize("name", ["v1", "socks login"])
def test_what_is_written_reads_as_it_was_shown(name: str, tmp_path: Path, capsysbinary: Capsys) -> None:
    path, written = write_capture(tmp_path / "c.pcap", talk(WHOLE[name][0])), tmp_path / "w.pcapng"
    asked = ("-T", "ndjson", "-Y", "correlation_id == 2")
    shown = run(capsysbinary, "read", path, *asked, "-w", written)
    again = run(capsysbinary, "read", written, "-T", "ndjson")
    keys = ("client", "broker", "correlation_id", "request")
    rows, others = (
        [{key: json.loads(line)[key] for key in keys} for line in r.lines] for r in (shown, again)
    )
    assert rows == others
    assert ("redacted here" in shown.err) == (name == "socks login")
