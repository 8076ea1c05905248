"""``kdissect wireshark``, in a home of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kdissect.wireshark.folders import find_program
from tests.cli.run import Ran, run
from tests.tshark import requires_tshark, tshark

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="homes are told otherwise there")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for command in ("wireshark", "doctor.wireshark"):
        monkeypatch.setattr(f"kdissect.cli.commands.{command}.find_program", lambda: None)
    for name in ("XDG_CONFIG_HOME", "SUDO_UID", "SUDO_GID"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def states(ran: Ran) -> dict[str, str]:
    return {row["what"]: row["state"] for row in map(json.loads, ran.lines)}


def test_install_status_uninstall(capsysbinary: pytest.CaptureFixture[bytes], home: Path) -> None:
    before = run(capsysbinary, "wireshark", "status", "-T", "ndjson")
    assert (before.code, states(before)["plug-in"], states(before)["interfaces"]) == (1, "absent", "absent")
    assert run(capsysbinary, "wireshark", "install").code == 0
    assert list(home.rglob("kdissect.lua"))
    there = run(capsysbinary, "wireshark", "status", "-T", "ndjson")
    assert (there.code, states(there)["plug-in"], states(there)["interfaces"]) == (
        0,
        "installed",
        "installed",
    )
    assert run(capsysbinary, "wireshark", "uninstall").code == 0
    assert not [path for path in home.rglob("*") if "kdissect" in path.name]


def test_a_foreign_file_is_one_line(capsysbinary: pytest.CaptureFixture[bytes], home: Path) -> None:
    run(capsysbinary, "wireshark", "install")
    (plugin,) = home.rglob("kdissect.lua")
    plugin.write_text("-- my own")
    for command, code, kept in (
        ("install", 2, "so kdissect does not replace it: move it away"),
        ("uninstall", 0, "so it is not removed"),
    ):
        ran = run(capsysbinary, "wireshark", command)
        assert (ran.code, ran.err.count("\n")) == (code, 1)
        assert f"{plugin} is not from kdissect, {kept}" in ran.err
        assert plugin.read_text() == "-- my own"
    assert [line.split()[:2] for line in ran.lines] == [["plug-in", "foreign"], ["interfaces", "removed"]]


def test_a_folder_that_cannot_be_written_is_one_line(
    capsysbinary: pytest.CaptureFixture[bytes], home: Path
) -> None:
    (home / ".local").write_text("no folder")
    ran = run(capsysbinary, "wireshark", "install")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "cannot be written" in ran.err


def test_doctor_tells_of_it(capsysbinary: pytest.CaptureFixture[bytes], home: Path) -> None:
    assert home.is_dir()
    rows = map(json.loads, run(capsysbinary, "doctor", "-T", "ndjson").lines)
    assert next(row for row in rows if row["what"] == "wireshark")["state"] == "absent"
    run(capsysbinary, "wireshark", "install")
    rows = map(json.loads, run(capsysbinary, "doctor", "-T", "ndjson").lines)
    assert next(row for row in rows if row["what"] == "wireshark")["state"] == "ok"


@requires_tshark
def test_tshark_loads_what_was_laid(
    capsysbinary: pytest.CaptureFixture[bytes], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kdissect.cli.commands.wireshark.find_program", find_program)
    run(capsysbinary, "wireshark", "install")
    assert str(home) in tshark("-G", "plugins").partition("kdissect.lua")[2]
    listed = tshark("-D")
    assert "by kdissect" in listed
    assert "(Kafka on lo" in listed
