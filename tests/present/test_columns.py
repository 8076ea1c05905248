from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from struct import pack
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kdissect.capture.files import read_packets
from kdissect.present.catalogue import RECORDS, TABLES
from kdissect.present.columns import EXCHANGES, Table
from tests.capture.build import enhanced, interface, option, section
from tests.cli.run import CAPTURES, run
from tests.kafka import Talk, request, response
from tests.lab import dissected
from tests.present.captures import frame
from tests.tcp.segments import BROKER

CAPTURE = CAPTURES / "transactions-kafka39.pcapng"

JSON_TYPES: dict[str, tuple[type, ...]] = {
    "int16": (int,),
    "int32": (int,),
    "int64": (int,),
    "bool": (bool,),
    "text": (str,),
    "bytes": (str, dict),
    "texts": (list,),
    "int64s": (list,),
    "faults": (list,),
    "headers": (list,),
    "json": (dict,),
}
BITS = {"int16": 16, "int32": 32, "int64": 64}


def rows(capsysbinary: pytest.CaptureFixture[bytes], table: str, *more: object) -> list[dict[str, Any]]:
    ran = run(capsysbinary, "read", CAPTURE, "-T", f"{table}.ndjson", *more)
    return [json.loads(line) for line in ran.lines]


def test_the_columns_of_an_exchange_are_those_of_the_contract() -> None:
    assert [column.name for column in EXCHANGES.columns] == [
        *("number", "connection", "client", "broker", "api_key", "api", "api_version"),
        *("correlation_id", "client_id", "principal", "request_packet", "response_packet"),
        *("request_start_ns", "request_time_ns", "response_start_ns", "response_time_ns", "latency_ns"),
        *(
            "behind_ns",
            "behind_correlation_id",
            "network_ns",
            "throttle_ns",
            "served_ns",
            "wait_ns",
            "broker_ns",
        ),
        *("request_transfer_ns", "response_transfer_ns", "think_ns"),
        *("request_size", "response_size", "missing", "inferred"),
        *("error", "error_class", "topics", "groups", "transactional_ids"),
        *("capture_point", "also_at", "between_ns", "faults", "request", "response"),
    ]


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_every_format_prints_the_columns_of_the_table(
    table: Table, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    # Those of decoded bytes are there with --embedded and --decode-as.
    names = [each.name for each in table.columns if not each.name.endswith(("Decoded", "Format"))]
    required = [column.name for column in table.columns if not column.optional]
    for row in rows(capsysbinary, table.name):
        assert [name for name in row if name in required] == required
        assert set(row) <= set(names)
    heading = run(capsysbinary, "read", CAPTURE, "-T", f"{table.name}.csv").lines[0]
    assert next(csv.reader([heading])) == names
    assert run(capsysbinary, "read", CAPTURE, "-T", f"{table.name}.tsv").lines[0].split("\t") == names
    path = tmp_path / "out.parquet"
    run(capsysbinary, "read", CAPTURE, "-T", f"{table.name}.parquet", "-o", path)
    assert pq.read_schema(path).names == names
    stream = run(capsysbinary, "read", CAPTURE, "-T", f"{table.name}.arrow").out
    assert pa.ipc.open_stream(stream).schema.names == names


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_values_have_the_type_that_the_table_says(
    table: Table, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    types = {column.name: column.type for column in table.columns}
    for row in rows(capsysbinary, table.name):
        for name, value in row.items():
            if value is None:
                continue
            assert isinstance(value, JSON_TYPES[types[name]]), (name, value)
            assert isinstance(value, bool) == (types[name] == "bool")
            if types[name] in BITS and isinstance(value, int):
                assert -(1 << BITS[types[name]] - 1) <= value < 1 << BITS[types[name]] - 1


def test_csv_and_parquet_hold_what_ndjson_says(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    expected = rows(capsysbinary, "exchanges")
    text = run(capsysbinary, "read", CAPTURE, "-T", "csv").out.decode("utf-8")
    path = tmp_path / "out.parquet"
    run(capsysbinary, "read", CAPTURE, "-T", "parquet", "-o", path)
    from_csv = list(csv.DictReader(io.StringIO(text, newline="")))
    from_parquet = pq.read_table(path).to_pylist()
    assert len(expected) == len(from_csv) == len(from_parquet)
    for want, cells, values in zip(expected, from_csv, from_parquet, strict=True):
        for name, value in want.items():
            if name in ("request", "response"):
                assert json.loads(cells[name] or "null") == value
                assert json.loads(values[name] or "null") == value
                continue
            assert values[name] == value
            if value is None:
                assert cells[name] == ""
            elif isinstance(value, list):
                assert json.loads(cells[name]) == value
            else:
                assert cells[name] == str(value)


def test_keys_values_and_headers_are_binary_in_parquet(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "out.parquet"
    run(capsysbinary, "read", CAPTURE, "-T", "records.parquet", "-o", path)
    expected = rows(capsysbinary, "records", "--bytes", "hex")
    for want, got in zip(expected, pq.read_table(path).to_pylist(), strict=True):
        assert [None if got[name] is None else got[name].hex() for name in ("key", "value")] == [
            want["key"],
            want["value"],
        ]
        assert [{**each, "value": each["value"] and each["value"].hex()} for each in got["headers"]] == [
            dict(each) for each in want["headers"]
        ]


def test_control_records_say_what_they_are(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    controls = [row["control"] for row in rows(capsysbinary, "records") if row["control"]]
    assert {control["type"] for control in controls} == {"COMMIT", "ABORT"}


def test_produced_records_have_the_offset_that_the_broker_gave(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    found = rows(capsysbinary, "records")
    fetched = {
        (row["topic"], row["partition"], row["offset"]): row for row in found if row["direction"] == "fetch"
    }
    produced = [row for row in found if row["direction"] == "produce" and row["assigned_offset"] is not None]
    same = [
        fetched[place]["value"] == row["value"]
        for row in produced
        if (place := (row["topic"], row["partition"], row["assigned_offset"])) in fetched
    ]
    assert same
    assert all(same)


def test_columns_are_found_by_name_and_alias_whatever_the_case() -> None:
    assert EXCHANGES.column("LatencyNs").name == EXCHANGES.column("latency").name == "latency_ns"
    with pytest.raises(LookupError, match="did you mean latency_ns"):
        EXCHANGES.column("latency_n")


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_names_and_aliases_are_unique(table: Table) -> None:
    words = [word.replace("_", "").lower() for word in table.words()]
    assert len(words) == len(set(words))


def test_the_api_of_a_record_shows_only_where_it_is_another(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    assert all("api" not in row for row in rows(capsysbinary, "records"))
    assert RECORDS.column("api").optional


def test_a_latency_that_64_bits_cannot_hold_is_null_in_every_format(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    talk = Talk().ask(request("ApiVersions", 0)).answer(response("ApiVersions", 0, errorCode=0, apiKeys=[]))
    clocks = [
        option(9, b"\x09") + option(14, pack("<q", offset)) for offset in (-9_200_000_000, 9_200_000_000)
    ]
    blocks = [section(), *(interface(options=clock + bytes(4)) for clock in clocks)]
    blocks += [
        enhanced(frame(segment), segment.timestamp_ns, int(segment.source == BROKER))
        for segment in talk.segments
    ]
    path = tmp_path / "absurd.pcapng"
    path.write_bytes(b"".join(blocks))
    (line,) = run(capsysbinary, "read", path, "-T", "ndjson").lines
    row = json.loads(line)
    assert row["response_start_ns"] - row["request_time_ns"] > 1 << 63
    assert row["latency_ns"] is None
    run(capsysbinary, "read", path, "-T", "parquet", "-o", tmp_path / "x")
    (same,) = pq.read_table(tmp_path / "x").to_pylist()
    assert (same["request_time_ns"], same["latency_ns"]) == (row["request_time_ns"], None)


def test_columns_are_what_the_exchange_says_under_the_same_name() -> None:
    found = dissected(read_packets([CAPTURE])).exchanges
    assert len(found) > 10
    presented = {"topics", "faults", "request", "response", "wait_ns", "broker_ns"}
    for exchange in found:
        row = dict(zip((column.name for column in EXCHANGES.columns), EXCHANGES.row(exchange), strict=True))
        assert {name: getattr(exchange, name) for name in row.keys() - presented} == {
            name: value for name, value in row.items() if name not in presented
        }


def test_the_parts_of_a_latency_add_up_to_it() -> None:
    """As they are printed, and where none is null but the network, which then counts nothing."""
    added = 0
    for exchange in dissected(read_packets([CAPTURE])).exchanges:
        row = dict(zip((column.name for column in EXCHANGES.columns), EXCHANGES.row(exchange), strict=True))
        if row["served_ns"] is None:
            continue
        parts = [row[f"{name}_ns"] for name in ("behind", "throttle", "network", "served")]
        assert row["latency_ns"] == sum(each or 0 for each in parts)
        if row["wait_ns"] is not None:
            assert row["served_ns"] == row["wait_ns"] + row["broker_ns"]
            added += 1
    assert added
