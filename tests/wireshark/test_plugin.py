"""The plug-in, run by tshark over what kdissect wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kdissect.capture.writer import PcapngWriter
from kdissect.model import Packet
from kdissect.present.comments import COMMENT_TABLE
from kdissect.wireshark.plugin import plugin_text
from tests.cli.run import CAPTURES, run
from tests.tshark import requires_tshark, tshark

CAPTURE = CAPTURES / "errors.pcapng"


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plugin") / "kdissect.lua"
    path.write_text(plugin_text(), "utf-8")
    return path


def fields(plugin: Path, capture: Path, *names: str, shown: str = "kdissect") -> list[list[str]]:
    asked = [each for name in names for each in ("-e", name)]
    out = tshark("-X", f"lua_script:{plugin}", "-r", capture, "-Y", shown, "-T", "fields", *asked)
    return [line.split("\t") for line in out.splitlines()]


def test_every_column_of_comments_is_a_field() -> None:
    text = plugin_text()
    for column in COMMENT_TABLE.columns:
        assert f'{{"{column.name}", "{column.type}", ' in text


@requires_tshark
def test_exchanges_are_fields(
    capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path, plugin: Path
) -> None:
    out = tmp_path / "out.pcapng"
    run(capsysbinary, "read", CAPTURE, "-w", out, "--comment", "exchanges")
    names = ("number", "api", "latency_ns", "error", "request_packet", "response_packet")
    rows = run(capsysbinary, "read", CAPTURE, "-T", "ndjson", "-e", ",".join(names))
    expected = [
        ["" if row[name] is None else str(row[name]) for name in names]
        for row in map(json.loads, rows.lines)
        if row["response_packet"] is not None
    ]
    found = fields(plugin, out, *(f"kdissect.{name}" for name in names), shown="kdissect.latency_ns")
    assert sorted(found) == sorted(expected)


@requires_tshark
def test_findings_are_fields_and_expert_information(
    capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path, plugin: Path
) -> None:
    out = tmp_path / "out.pcapng"
    run(capsysbinary, "read", CAPTURE, "-w", out, "--comment", "findings")
    shown = fields(plugin, out, "kdissect.finding", "kdissect.finding.severity", shown="kdissect.finding")
    ran = run(capsysbinary, "explain", CAPTURE, "--all", "-q", "-T", "ndjson")
    known = {(row["finding"], row["severity"]) for row in map(json.loads, ran.lines) if row["exchanges"]}
    told = {pair for ids, words in shown for pair in zip(ids.split(","), words.split(","), strict=True)}
    assert told == known
    expert = tshark("-X", f"lua_script:{plugin}", "-r", out, "-q", "-z", "expert,chat")
    for name, _ in known:
        assert f"{name}: " in expert


HOSTILE = (
    'kdissect exchange: number=99999999999999999999 api="a\\"b c %s%n" latency_ns=x request_packet=-',
    'kdissect exchange: number=7 api=unclosed client_id="no end \\',
    "kdissect exchange: nothing here",
    "kdissect exchange: __index=1 number=8",
    "kdissect warning ../../x: no id",
    "kdissect fatal some-id: no severity",
    "kdissect critical some-id: \x1b[2J\u202e \u061c\ufeff\u00ad\U000e0041 %s%n <b>",
    "kdissect ",
)


@requires_tshark
def test_hostile_comments_do_no_harm(tmp_path: Path, plugin: Path) -> None:
    out = tmp_path / "hostile.pcapng"
    with out.open("wb") as file:
        writer = PcapngWriter(file)
        for number, text in enumerate(HOSTILE, 1):
            writer.write(Packet(number, number, 1, bytes(60), 60, 0, (text,)))
    rows = fields(
        plugin, out, "frame.number", "kdissect.number", "kdissect.api", "kdissect.finding", "_ws.lua.error"
    )
    assert rows == [
        ["1", "", 'a"b c %s%n', "", ""],
        ["2", "7", "unclosed", "", ""],
        ["3", "", "", "", ""],
        ["4", "8", "", "", ""],
        ["7", "", "", "some-id", ""],
    ]
    ours = tshark("-X", f"lua_script:{plugin}", "-r", out, "-O", "kdissect")
    assert "some-id" in ours
    assert "Lua Error" not in ours
    assert not {"\x1b", "\u202e", "\u061c", "\ufeff", "\u00ad", "\U000e0041"} & set(ours)
