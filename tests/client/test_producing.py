from __future__ import annotations

import json
from pathlib import Path

import pytest

from kdissect.present.catalogue import LOG_RECORDS, RECORDS
from kdissect.present.columns import Table
from tests.cli.run import spawn
from tests.client.broker import TestBroker
from tests.client.running import Capsys, client, rows
from tests.client.stored import produced


def test_lines_become_records_with_keys_headers_and_a_codec(
    capsysbinary: Capsys, broker: TestBroker, tmp_path: Path
) -> None:
    produced(broker)
    file = tmp_path / "lines"
    file.write_bytes(b"a:1\nb:2\r\nc:\n")
    options = (
        "--key-separator",
        ":",
        "--codec",
        "gzip",
        "--header",
        "h=x",
        "--header",
        "n=",
        "-T",
        "records",
    )
    found = rows(client(capsysbinary, "produce", broker, "orders", file, *options, "--timestamp", 5))
    assert [(each["key"], each["value"], each["offset"], each["assigned_offset"]) for each in found] == [
        ("a", "1", 0, 17),
        ("b", "2", 1, 18),
        ("c", "", 2, 19),
    ]
    assert {each["codec"] for each in found} == {"gzip"}
    assert {each["timestamp"] for each in found} == {5}
    assert found[0]["headers"] == [{"key": "h", "value": "x"}, {"key": "n", "value": ""}]


def test_rows_of_records_are_produced_as_they_were_read(
    capsysbinary: Capsys, broker: TestBroker, tmp_path: Path
) -> None:
    produced(broker)
    broker.partitions = 3
    given = [
        {"partition": 2, "key": None, "value": {"base64": "/w=="}, "timestamp": 9, "headers": []},
        {"partition": 0, "key": "k", "value": None, "headers": [{"key": "h", "value": "ü"}]},
        {"partition": 0, "key": "marker", "value": "x", "control": {"type": "COMMIT"}},
    ]
    file = tmp_path / "records.ndjson"
    file.write_text("\n".join(map(json.dumps, given)) + "\n")
    found = rows(
        client(capsysbinary, "produce", broker, "orders", file, "--input", "ndjson", "-T", "records")
    )
    assert [(each["partition"], each["key"], each["value"]) for each in found] == [
        (0, "k", None),
        (2, None, {"base64": "/w=="}),
    ]
    assert found[0]["headers"] == [{"key": "h", "value": "ü"}]
    assert found[1]["timestamp"] == 9


@pytest.mark.parametrize("table", [RECORDS, LOG_RECORDS])
def test_a_row_may_have_all_columns_that_such_rows_are_printed_with(
    capsysbinary: Capsys, broker: TestBroker, tmp_path: Path, table: Table
) -> None:
    produced(broker)
    file = tmp_path / "records.ndjson"
    file.write_text(json.dumps({column.name: None for column in table.columns} | {"value": "v"}))
    (row,) = rows(client(capsysbinary, "produce", broker, "t", file, "--input", "ndjson", "-T", "records"))
    assert (row["key"], row["value"]) == (None, "v")


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (2, 1), (3, 2), (5, 2), (11, 2)])
def test_a_version_takes_the_newest_format_that_it_can(
    capsysbinary: Capsys, broker: TestBroker, version: int, magic: int
) -> None:
    produced(broker)
    found = rows(
        client(
            capsysbinary, "produce", broker, "t", "--value", "v", "--api-version", version, "-T", "records"
        )
    )
    assert [(each["api_version"], each["magic"]) for each in found] == [(version, magic)]


def test_an_old_format_chooses_a_version_that_takes_it(capsysbinary: Capsys, broker: TestBroker) -> None:
    produced(broker)
    found = rows(
        client(capsysbinary, "produce", broker, "t", "--value", "v", "--message-format", 1, "-T", "ndjson")
    )
    assert found[0]["api_version"] == 2
    ran = client(
        capsysbinary, "produce", broker, "t", "--value", "v", "--message-format", 1, "--api-version", 9
    )
    assert ran.code == 2
    assert "Produce v9 needs records of magic 2, not 1" in ran.err


def test_acks_0_waits_for_nothing(capsysbinary: Capsys, broker: TestBroker) -> None:
    ran = client(capsysbinary, "produce", broker, "t", "--value", "v", "--acks", 0)
    assert ran.code == 0
    assert "[no response: acks=0]" in ran.lines[0]


def test_refused_records_are_told_with_the_brokers_words(capsysbinary: Capsys, broker: TestBroker) -> None:
    broker.answers["Produce"] = lambda _, body: {
        "responses": [
            {
                "name": "t",
                "partitionResponses": [
                    {"index": 0, "errorCode": 10, "baseOffset": -1, "errorMessage": "too large"}
                ],
            }
        ]
    }
    ran = client(capsysbinary, "produce", broker, "t", "--value", "v")
    assert ran.code == 6
    assert ran.err.endswith("t-0: MESSAGE_TOO_LARGE: too large: nothing was written there\n")
    assert "MESSAGE_TOO_LARGE" in ran.lines[0]


def test_what_was_written_beside_refused_records_is_told(
    capsysbinary: Capsys, broker: TestBroker, tmp_path: Path
) -> None:
    broker.partitions = 4
    broker.answers["Produce"] = lambda _, body: {
        "responses": [
            {
                "name": "t",
                "partitionResponses": [
                    {"index": at, "errorCode": at and 10, "baseOffset": -1 if at else 17} for at in range(3)
                ],
            }
        ]
    }
    file = tmp_path / "rows"
    file.write_text("".join(f'{{"value": "v", "partition": {at}}}\n' for at in (1, 0, 2, 3)))
    ran = client(capsysbinary, "produce", broker, "t", file, "--input", "ndjson")
    assert ran.code == 6
    written, refused = ran.err.splitlines()
    assert written == "kdissect: t-0: 1 record, from offset 17"
    assert refused.endswith(
        "t-1: MESSAGE_TOO_LARGE: nothing was written there; 2 more partitions refused the records too"
    )


def test_a_line_that_is_too_long_is_refused_and_not_cut(
    capsysbinary: Capsys, broker: TestBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kdissect.cli.commands.client.drafts.LONGEST_LINE", 1024)
    produced(broker)
    file = tmp_path / "lines"
    file.write_bytes(b"short\n" + b"x" * 1023 + b"\n")
    assert client(capsysbinary, "produce", broker, "t", file).code == 0
    broker.asked.clear()
    file.write_bytes(b"short\n" + b"x" * 1024 + b"\n")
    ran = client(capsysbinary, "produce", broker, "t", file)
    assert (ran.code, ran.err) == (3, f"kdissect: {file}, line 2: it is longer than 1.0 KiB\n")
    assert broker.asked == []


def test_a_partition_that_is_not_there_is_told(capsysbinary: Capsys, broker: TestBroker) -> None:
    ran = client(capsysbinary, "produce", broker, "t", "--value", "v", "-p", 4)
    assert (ran.code, ran.err) == (6, "kdissect: topic t has no partition 4: it has 1\n")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"key": "k", "valu": "v"}', "line 2: there is no column 'valu'; did you mean value?"),
        ('{"value": "v", "headers": [{"name": "h"}]}', "headers: a list of"),
        ('{"headers": [{"key": "h", "valeu": 1}]}', "no field of a header 'valeu'; did you mean value?"),
        ('{"partition": -1}', "partition: -1 is outside 0 to 2147483647"),
        ('{"timestamp": 9223372036854775808}', "timestamp: 9223372036854775808 is outside -1 to"),
        ('{"value": 5}', "value: text is needed"),
        ("[]", "a JSON object is needed"),
    ],
)
def test_a_row_that_cannot_be_meant_is_refused_before_anybody_is_asked(
    capsysbinary: Capsys, broker: TestBroker, tmp_path: Path, text: str, why: str
) -> None:
    file = tmp_path / "rows"
    file.write_text('{"value": "first"}\n' + text + "\n")
    ran = client(capsysbinary, "produce", broker, "t", file, "--input", "ndjson")
    assert (ran.code, ran.err.count("\n")) == (3, 1)
    assert f"{file}, line 2: " in ran.err
    assert why in ran.err
    assert broker.asked == []


@pytest.mark.parametrize(
    ("options", "code", "why"),
    [
        (("no-such-file",), 3, "no-such-file: cannot be read: No such file"),
        (("--value", "v", "--header", "h"), 2, "--header h: the form is NAME=VALUE"),
        (("--value", "v", "--header", "=v"), 2, "the form is NAME=VALUE"),
        (("--key", "k"), 2, "--key needs --value"),
        (("-", "--input", "ndjson", "--key-separator", ":"), 2, "--key-separator needs --input lines"),
        (("-", "--key-separator", ""), 2, "--key-separator is empty"),
        (("--value", "v", "--input", "ndjson"), 2, "describe FILE"),
        (("--value", "v", "--key-separator", ":"), 2, "describe FILE"),
        (("--value", "v", "--api-version", "77"), 2, "version 77"),
        (("--value", "v", "--tls-ca", "no-such-ca"), 3, "no-such-ca: cannot be read: No such file"),
        (("--value", "v", "--timeout", "nan"), 2, "nan is not a duration"),
        (("--value", "v", "--timeout", "inf"), 2, "--timeout"),
        (("--value", "v", "--timeout", "-1"), 2, "--timeout"),
        (("--value", "v", "--client-id", "x" * 32_768), 2, "at most 32,767"),
    ],
)
def test_options_and_files_are_looked_at_before_anybody_is_asked(
    capsysbinary: Capsys, broker: TestBroker, options: tuple[str, ...], code: int, why: str
) -> None:
    ran = client(capsysbinary, "produce", broker, "t", *options)
    assert (ran.code, ran.err.count("\n")) == (code, 1)
    assert why in ran.err
    assert broker.asked == []


def test_that_there_is_nothing_to_send_is_told(
    capsysbinary: Capsys, broker: TestBroker, tmp_path: Path
) -> None:
    file = tmp_path / "empty"
    file.write_bytes(b"")
    ran = client(capsysbinary, "produce", broker, "t", file)
    assert (ran.code, ran.err) == (0, f"kdissect: {file}: 0 records: nothing is sent\n")
    file.write_text('{"key": "AAA=", "control": {"type": "COMMIT"}}\n')
    ran = client(capsysbinary, "produce", broker, "t", file, "--input", "ndjson")
    assert (ran.code, ran.err.count("\n")) == (0, 1)
    assert "0 records, 1 marker of transactions left out: only brokers write them: nothing is sent" in ran.err
    assert broker.asked == []
    done = spawn("client", "produce", broker.address, "t", stdin=b"")
    assert (done.code, done.err) == (0, "kdissect: standard input: 0 records: nothing was sent\n")


def test_what_was_written_before_a_run_broke_off_is_told(capsysbinary: Capsys, broker: TestBroker) -> None:
    produced(broker)
    done = spawn("client", "produce", broker.address, "t", "--input", "ndjson", "--batch", 2,
                 stdin=b'{"value": "a"}\n' * 5 + b"{")  # fmt: skip
    assert done.code == 3
    assert done.err.splitlines()[0] == "kdissect: t-0: 4 records, from offset 17"
    assert "standard input, line 6: this is not JSON" in done.err.splitlines()[1]
