from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kdissect import __version__
from kdissect.cli.root import COMMANDS
from kdissect.faults import KINDS
from kdissect.insight.catalogue import RULES
from kdissect.present.columns import EXCHANGES
from kdissect.protocol import apis
from tests.cli.run import CAPTURES, ROOT, ask_no_tshark, run, spawn

Capsys = pytest.CaptureFixture[bytes]
LOGS = CAPTURES / "logs"


def test_version_and_help(capsysbinary: Capsys) -> None:
    assert run(capsysbinary, "--version").lines == [f"kdissect {__version__}"]
    shown = run(capsysbinary, "--help").out.decode()
    assert all(command in shown for command in COMMANDS)
    assert run(capsysbinary) == run(capsysbinary, "--help")
    assert run(capsysbinary, "schema") == run(capsysbinary, "schema", "--help")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsysbinary: Capsys) -> None:
    ran = run(capsysbinary, command, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, capsysbinary: Capsys) -> None:
    assert b"_KDISSECT_COMPLETE" in run(capsysbinary, "completion", shell).out


def test_importing_the_library_loads_nothing() -> None:
    code = "import sys, kdissect; print(*(name for name in sys.modules if name.startswith('kdissect.')))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=True)
    # What takes care of an early Ctrl-C, and what says whether compiled modules are taken.
    assert ran.stdout.split() == [b"kdissect.ctrl_c", b"kdissect.leaves"]


def test_the_library_loads_no_vendor_before_it_is_used() -> None:
    code = (
        "import sys, kdissect\n"
        "kdissect.read, kdissect.records, kdissect.Conversation, kdissect.schema('Fetch', 12)\n"
        "print(sorted({'click', 'pyarrow', 'numpy', 'textual', 'pyspark', 'scapy'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=True)
    assert ran.stdout.split() == [b"[]"]


def test_help_imports_no_command() -> None:
    code = (
        "import sys; from kdissect.cli import main; main(['--help'])\n"
        "print({'pyarrow', 'dpkt', 'kdissect.dissect', 'kdissect.cli.commands.read'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=True)
    assert ran.stdout.startswith(b"Usage:")
    assert ran.stdout.splitlines()[-1] == b"set()"


# -- schema


def test_schema_list_has_every_api(capsysbinary: Capsys) -> None:
    rows = [json.loads(line) for line in run(capsysbinary, "schema", "list", "-T", "ndjson").lines]
    assert [row["key"] for row in rows] == list(apis.api_keys())
    assert len(run(capsysbinary, "schema", "list").lines) == len(rows) + 1
    classes = run(capsysbinary, "schema", "list", "--all", "-T", "ndjson").lines
    assert [json.loads(line)["name"] for line in classes] == list(apis.data_names())


@pytest.mark.parametrize("name", ["Fetch", "fetch", "1", "FetchRequest", "RequestHeader"])
def test_schema_show_finds_names_and_keys(name: str, capsysbinary: Capsys) -> None:
    assert run(capsysbinary, "schema", "show", name).code == 0


@pytest.mark.parametrize(
    ("arguments", "part"),
    [(["Fetsch"], "did you mean Fetch?"), (["Fetch", "99"], "no version 99"), (["4711"], "4711")],
)
def test_schema_show_says_what_there_is(arguments: list[str], part: str, capsysbinary: Capsys) -> None:
    ran = run(capsysbinary, "schema", "show", *arguments)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert part in ran.err


def test_schema_import_takes_in_a_folder(tmp_path: Path, capsysbinary: Capsys) -> None:
    source, target = tmp_path / "9.9.9", tmp_path / "to"
    source.mkdir()
    fields = [{"name": "Word", "type": "string", "versions": "0+"}]
    made_up = {"apiKey": 4711, "type": "request", "listeners": ["broker"], "name": "MadeUpRequest"}
    made_up |= {"validVersions": "0", "flexibleVersions": "none", "fields": fields}
    (source / "MadeUpRequest.json").write_text(json.dumps(made_up))
    made_up |= {"type": "response", "name": "MadeUpResponse"}
    (source / "MadeUpResponse.json").write_text(json.dumps(made_up))
    ran = run(capsysbinary, "schema", "import", source, "--to", target)
    assert (ran.code, ran.err) == (0, "")
    assert (target / "apis" / "4711-MadeUp.txt").exists()


@pytest.mark.parametrize("source", ["/nosuch", "EMPTY", "NOJAR"])
def test_schema_import_of_nothing_is_one_line(source: str, tmp_path: Path, capsysbinary: Capsys) -> None:
    (tmp_path / "EMPTY").mkdir()
    (tmp_path / "NOJAR").write_text("no jar")
    ran = run(capsysbinary, "schema", "import", tmp_path / source, "--release", "1.0")
    assert (ran.code, ran.err.count("\n")) == (3, 1)


# -- fields, doctor


def test_fields_lists_columns_aliases_and_faults(capsysbinary: Capsys) -> None:
    rows = [json.loads(line) for line in run(capsysbinary, "fields", "-T", "ndjson").lines]
    exchanges = [row["name"] for row in rows if row["table"] == "exchanges"]
    assert exchanges == [column.name for column in EXCHANGES.columns]
    assert {row["name"] for row in rows if row["table"] == "kinds of faults"} == set(KINDS)
    aliases = run(capsysbinary, "fields", "aliases").lines
    assert any("latency_ns" in line and "also latency" in line for line in aliases)
    assert any("AlterPartition" in line and "also AlterIsr" in line for line in aliases)
    assert run(capsysbinary, "fields", "zzz").code == 2
    rules = [json.loads(line) for line in run(capsysbinary, "fields", "rules", "-T", "ndjson").lines]
    assert {row["name"]: row["type"] for row in rules} == {id: each.severity for id, each in RULES.items()}
    assert [row["meaning"] for row in rules if row["name"] == "acks-none"] == [
        "A producer does not ask for confirmation of what it writes."
    ]
    assert len({row["table"] for row in rules}) == len({each.category for each in RULES.values()})
    kinds = run(capsysbinary, "fields", "faults").out.decode()
    assert all(kind in kinds for kind in KINDS)


def test_doctor_says_what_is_there(capsysbinary: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    ask_no_tshark(monkeypatch)
    ran = run(capsysbinary, "doctor", "-T", "ndjson")
    found = {row["what"]: row for row in map(json.loads, ran.lines)}
    assert ran.code == 0
    assert {"python", "click", "pyarrow", "compiled", "definitions", "configuration"} <= set(found)
    assert found["click"]["state"] == "ok"
    assert "Kafka 4.4.0" in found["definitions"]["details"]


def test_a_missing_extra_is_one_line_that_names_it() -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from kdissect.cli import main\n"
        f"sys.exit(main(['read', {str(CAPTURES / 'errors.pcapng')!r}, '-T', 'parquet', '-o', '/dev/null']))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=False)
    assert ran.returncode == 2
    assert b"pip install pyarrow, or kdissect with its extra arrow" in ran.stderr
    assert ran.stderr.count(b"\n") == 1


# -- log


def test_log_shows_what_is_in_a_folder(capsysbinary: Capsys) -> None:
    lines = run(capsysbinary, "log", LOGS).lines
    assert any("00000000000000000000.log: segment" in line for line in lines)


@pytest.mark.parametrize("table", ["records", "batches", "index", "snapshot", "facts"])
def test_log_has_tables(table: str, capsysbinary: Capsys) -> None:
    ran = run(capsysbinary, "log", LOGS, "-T", table)
    assert (ran.code, ran.err) == (0, "")
    assert all("file" in json.loads(line) for line in ran.lines)
    assert ran.lines


def test_log_decodes_records_of_kafkas_own_topics(capsysbinary: Capsys) -> None:
    folder = LOGS / "__consumer_offsets-0"
    rows = [
        json.loads(line) for line in run(capsysbinary, "log", folder, "-T", "records", "--embedded").lines
    ]
    names = {row["valueDecoded"]["name"] for row in rows if row.get("valueDecoded")}
    assert "OffsetCommit" in names


def test_log_tells_what_is_no_log_directory(tmp_path: Path, capsysbinary: Capsys) -> None:
    ran = run(capsysbinary, "log", tmp_path, LOGS / "t09-0", "-T", "records")
    assert ran.code == 3
    assert ran.lines
    assert ran.err.count("\n") == 1
    assert str(tmp_path) in ran.err


def test_log_prints_what_can_be_read_of_a_torn_segment(tmp_path: Path, capsysbinary: Capsys) -> None:
    folder = tmp_path / "t09-0"
    folder.mkdir()
    whole = (LOGS / "t09-0" / "00000000000000000000.log").read_bytes()
    (folder / "00000000000000000000.log").write_bytes(whole[:-10])
    ran = run(capsysbinary, "log", folder, "-T", "records")
    assert ran.code == 3
    assert ran.lines
    (fault, *_) = map(json.loads, run(capsysbinary, "log", folder, "-T", "faults").lines)
    assert (fault["layer"], fault["kind"]) == ("file", "torn-tail")


def test_python_dash_m_is_the_command() -> None:
    assert spawn("--version").lines == [f"kdissect {__version__}"]


def test_a_damaged_definition_of_the_users_costs_no_row(tmp_path: Path) -> None:
    broken = tmp_path / "definitions" / "apis" / "003-Metadata.txt"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"garbage\n")
    capture = CAPTURES / "basic-kafka43.pcapng"
    whole = spawn("read", capture, KDISSECT_DATA_HOME=str(tmp_path / "none"))
    ran = spawn("read", capture, KDISSECT_DATA_HOME=str(tmp_path))
    assert (ran.code, ran.out) == (0, whole.out)
    (line,) = ran.err.splitlines()
    assert str(broken) in line
    assert "remove it" in line
    doctor = spawn("doctor", KDISSECT_DATA_HOME=str(tmp_path))
    assert str(broken) in doctor.out.decode()


def test_fields_finds_a_statistic_by_its_name(capsysbinary: Capsys) -> None:
    lines = run(capsysbinary, "fields", "groups").lines
    at = lines.index("stats groups")
    assert any(line.startswith("  rebalances ") for line in lines[at + 1 : at + 12])
