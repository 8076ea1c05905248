"""Completion, through the protocol of the scripts that ``kdissect completion`` prints."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.shell_completion import split_arg_string

from kdissect.analysis.catalogue import STATISTICS
from kdissect.cli import main
from kdissect.cli.root import COMMANDS
from kdissect.filter.compiled import compile_filter
from kdissect.protocol import apis
from tests.cli.run import ROOT, Ran, spawn

Asked = Callable[..., Ran]
Offered = Callable[..., list[str]]
SHELLS = ("bash", "zsh", "fish")


@pytest.fixture
def asked(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What the shell's script gets for a line with the cursor at its end."""

    def answer(line: str, shell: str = "bash") -> Ran:
        words = split_arg_string(line)
        is_quoted = line.count("'") % 2 == 1
        fresh = line.endswith(" ") and not is_quoted
        raw = "'" + line.rpartition("'")[2] if is_quoted else line.rpartition(" ")[2]
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", raw if shell == "fish" else str(len(words) - (not fresh)))
        monkeypatch.setenv("_KDISSECT_COMPLETE", f"{shell}_complete")
        capsysbinary.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([])
        out, err = capsysbinary.readouterr()
        return Ran(int(ended.value.code or 0), out, err.decode())

    return answer


@pytest.fixture
def offered(asked: Asked) -> Offered:
    """The words that would stand there."""

    def words(line: str, shell: str = "bash") -> list[str]:
        lines = [line for line in asked(line, shell).lines if line]
        if shell == "zsh":
            return [value.replace("\\:", ":") for value in lines[1::3]]
        return [line.partition(",")[2].partition("\t")[0] for line in lines]

    return words


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("kdissect st", ["stats"]),
        ("kdissect read x.pcap -Y lat", ["latency", "latency_ns"]),
        ("kdissect read x.pcap -Y 'api == Fe", ["api == Fetch", "api == FetchSnapshot"]),
        ("kdissect x.pcap -Y 'error and no_r", ["error and no_response", "error and no_request"]),
        ("kdissect stats x -Y 'api or error == not_lea", ["api or error == NOT_LEADER_OR_FOLLOWER"]),
        ("kdissect read x -Y 'fetch.request.header.cl", ["fetch.request.header.clientId"]),
        (
            "kdissect read x -Y 'fetch.request.topics[0].partitions.partitionM",
            ["fetch.request.topics[0].partitions.partitionMaxBytes"],
        ),
        ("kdissect stats x -z sr", ["srt"]),
        ("kdissect stats x -z ", list(STATISTICS)),
        ("kdissect stats x -z srt,client,cli", ["srt,client,client_id"]),
        ("kdissect stats x -z io,", []),
        ("kdissect stats x -z errors -e first_", ["first_exchange", "first_ns"]),
        ("kdissect stats x -T n", ["ndjson"]),
        ("kdissect read x -T rec", ["records"]),
        ("kdissect read x -T records.p", ["records.parquet"]),
        ("kdissect read x -T connections -e soft", ["software"]),
        ("kdissect read x -e api,lat", ["api,latency_ns"]),
        ("kdissect read x -t ", ["a", "r", "d", "e", "u"]),
        ("kdissect log x -T sn", ["snapshot"]),
        ("kdissect log x -T index -e time", ["timestamp"]),
        ("kdissect schema show Metad", ["Metadata"]),
        ("kdissect schema show RequestH", ["RequestHeader"]),
        ("kdissect schema show EndTxn ", [str(version) for version in reversed(apis.versions(26))]),
        ("kdissect schema show Nothing ", []),
        ("kdissect bytes message --api Heartb", ["Heartbeat"]),
        ("kdissect bytes message --api Heartbeat --api-version 3", ["3"]),
        ("kdissect fields 'stats sr", ["stats srt"]),
        ("kdissect explain --rule mid-st", ["mid-stream"]),
        ("kdissect explain x --id no-kafka,mid-st", ["no-kafka,mid-stream"]),
        ("kdissect explain --error NOT_ENOUGH_REPLICAS_", ["NOT_ENOUGH_REPLICAS_AFTER_APPEND"]),
        ("kdissect explain x --fail-on w", ["warning"]),
        ("kdissect explain x --category captu", ["capture"]),
        ("kdissect read x -Y 'finding == mid-st", ["finding == mid-stream"]),
        ("kdissect read x -Y 'finding.severity >= warn", ["finding.severity >= warning"]),
        ("kdissect completion ", list(SHELLS)),
    ],
)  # fmt: skip
def test_offers(line: str, wanted: list[str], offered: Offered) -> None:
    assert offered(line) == wanted


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_the_same(shell: str, offered: Offered) -> None:
    for line in ("kdissect read x -Y 'api == Fe", "kdissect stats x -z conn", "kdissect schema show Metad"):
        assert offered(line, shell) == offered(line)
    assert set(COMMANDS) <= set(offered("kdissect ", shell))


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_shells_that_show_meanings_get_them(shell: str, asked: Asked) -> None:
    out = asked("kdissect read x -Y 'latency_n", shell).out.decode()
    assert "request_time_ns" in out


def test_a_path_that_can_only_go_on_one_way_goes_on(offered: Offered) -> None:
    found = offered("kdissect read x -Y 'not fetch.resp")
    assert "not fetch.response.throttleTimeMs" in found
    assert len(found) > 1


def test_what_is_offered_for_a_filter_is_one(offered: Offered) -> None:
    for line in ("api == Fe", "record.codec == ", "error and fault.kind == g", "latency > 5"):
        found = offered(f"kdissect read x -Y '{line}")
        assert found
        for text in found:
            compile_filter(text)


def test_a_filter_that_cannot_go_on_offers_nothing(asked: Asked) -> None:
    for line in ("error) and ", 'topic == "a" "', "a" * 5_000):
        ran = asked(f"kdissect read x -Y '{line}")
        assert (ran.code, ran.out, ran.err) == (0, b"\n", "")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_the_shells(shell: str) -> None:
    ran = spawn("completion", shell)
    assert ran.code == 0
    assert f"_KDISSECT_COMPLETE={shell}_complete" in ran.out.decode()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_itself_completes(tmp_path: Path) -> None:
    """The script, sourced, and its function called as bash calls it."""
    command = tmp_path / "kdissect"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kdissect "$@"\n')
    command.chmod(0o755)
    script = (
        "source <(kdissect completion bash)\n"
        'COMP_WORDS=(kdissect read x.pcap -Y "\'api == Fe"); COMP_CWORD=4\n'
        '_kdissect_completion kdissect; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines() == ["api == Fetch", "api == FetchSnapshot"]
