"""Secrets in records of users' topics, in every form of output."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kdissect.present.branch import message_branches
from kdissect.present.detail import Detail
from kdissect.present.options import Options
from kdissect.present.record_secrets import is_connect_config, shown_config, shown_headers
from kdissect.present.secret_names import REDACTED, contains_secret_name, suggests_secret
from kdissect.record.compression import CODECS
from kdissect.record.records import Record
from kdissect.record.write import write_batch, write_message_set
from tests.cli.run import run
from tests.kafka import Talk, request, response
from tests.present.captures import OPEN, SECRET, port, write_capture
from tests.present.test_redact import OUTPUTS, dumped, forms_of_secret

HEADERS = (
    ("Authorization", f"Bearer {SECRET}".encode()),
    ("proxy-authorization", SECRET.encode()),
    ("Cookie", f"session={SECRET}".encode()),
    ("http_Set-Cookie", SECRET.encode()),
    ("X-Api-Key", SECRET.encode()),
    ("traceparent", OPEN.encode()),
    ("Authorization", None),
)
PROPERTIES = {
    "connector.class": OPEN,
    "database.password": SECRET,
    "connection.uri": f"mongodb://{OPEN}:{SECRET}@host/db",
    "connection.url": f"jdbc:postgresql://host/db?user={OPEN}&password={SECRET}",
    "sasl.jaas.config": f'x required username="{OPEN}" password="{SECRET}";',
    "aws.secret.access.key": SECRET,
    "note": f'{OPEN} password="{SECRET}" x',
    "nested": {"token": [SECRET, {"a": SECRET}], "port": 5432},
}
CONNECT = json.dumps({"properties": PROPERTIES}).encode()
SESSION = json.dumps({"key": SECRET, "algorithm": "HmacSHA256", "creation-timestamp": 1}).encode()
RECORDS = [
    Record(0, 1, b"k", OPEN.encode(), HEADERS),
    Record(1, 1, b"connector-orders", CONNECT),
    Record(2, 1, b"task-orders-0", CONNECT[:-40] + SECRET.encode()),
    Record(3, 1, b"session-key", SESSION),
    Record(4, 1, b"task-other", b'{"properties":{"a.password":"' + SECRET.encode()),
    Record(5, 1, b"commit-orders", b'{"tasks":1}'),
]


def fetched(records: bytes, version: int = 4) -> dict[str, Any]:
    partition = {
        "partitionIndex": 0, "errorCode": 0, "highWatermark": 2, "lastStableOffset": 2,
        "abortedTransactions": None, "records": b64encode(records).decode(),
    }  # fmt: skip
    return {"throttleTimeMs": 0, "responses": [{"topic": "connect-configs", "partitions": [partition]}]}


def asked() -> bytes:
    return request(
        "Fetch", 4, 1, replicaId=-1, maxWaitMs=1, minBytes=1, maxBytes=1, isolationLevel=0, topics=[]
    )


def record_sets() -> list[bytes]:
    plain = [record._replace(headers=()) for record in RECORDS]
    broken = bytearray(write_batch(RECORDS))
    broken[61] = 2  # the first record seems to be shorter than it is
    return [
        *(write_batch(RECORDS, number) for number in range(len(CODECS))),
        write_message_set(plain, 1, 0),
        write_message_set(plain, 1, 1),
        write_batch(RECORDS)[:-30],
        bytes(broken),
    ]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    talks = []
    for number, data in enumerate(record_sets()):
        produced = {"name": "orders", "partitionData": [{"index": 0, "records": b64encode(data).decode()}]}
        talks.append(
            Talk(port(50_100 + number))
            .ask(asked())
            .answer(response("Fetch", 4, 1, **fetched(data)))
            .ask(request("Produce", 3, 2, transactionalId=None, acks=1, timeoutMs=1, topicData=[produced]))
            .close()
        )
    whole = response("Fetch", 4, 1, **fetched(write_batch(RECORDS)))
    # A message whose last bytes are in no field: what the frame says is longer than what its fields need.
    longer = whole + b"Authorization: Bearer " + SECRET.encode()
    talks.append(Talk(port(50_200)).ask(asked()).answer(longer).close())
    return write_capture(tmp_path_factory.mktemp("records") / "records.pcapng", *talks)


@pytest.mark.parametrize("arguments", OUTPUTS, ids=" ".join)
def test_no_output_shows_a_secret_of_a_record(
    arguments: tuple[str, ...], capture: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    ran = run(capsysbinary, "read", capture, "-T", *arguments)
    assert ran.code == 0
    for form in forms_of_secret():
        assert form not in ran.out
        assert form not in dumped(ran.out)
    shown = run(capsysbinary, "read", capture, "-T", *arguments, "--show-secrets")
    if "records" in arguments or "--records" in arguments or arguments[0] == "tree":
        assert any(form in shown.out for form in forms_of_secret())


@pytest.mark.parametrize("form", ["parquet", "arrow", "records.parquet", "records.arrow"])
def test_no_table_file_holds_a_secret_of_a_record(
    form: str, capture: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "out"
    assert run(capsysbinary, "read", capture, "-T", form, "--records", "-o", path).code == 0
    table = pq.read_table(path) if "parquet" in form else pa.ipc.open_stream(path.read_bytes()).read_all()
    text = repr(table.to_pylist()).encode()
    assert REDACTED.encode() in text
    for secret in forms_of_secret():
        assert secret not in text


@pytest.mark.parametrize("form", [(), ("-x",), ("-T", "ndjson")], ids=" ".join)
def test_bytes_of_record_sets_show_none(
    form: tuple[str, ...], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    for data in record_sets():
        ran = run(capsysbinary, "bytes", "records", data.hex(), *form)
        for secret in forms_of_secret():
            assert secret not in ran.out
            assert secret not in dumped(ran.out)


def test_the_log_of_a_topic_shows_none(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    folder = tmp_path / "connect-configs-0"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(write_batch(RECORDS))
    for form in ("records", "records.csv", "text", "batches"):
        ran = run(capsysbinary, "log", folder, "-T", form)
        assert ran.code == 0
        for secret in forms_of_secret():
            assert secret not in ran.out


def test_a_filter_learns_nothing_of_them(capture: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    for asked_for in ("record.headers", "record.value"):
        chosen = f'{asked_for} contains "{SECRET}"'
        assert run(capsysbinary, "read", capture, "-T", "records", "-Y", chosen).lines == []
        assert run(capsysbinary, "read", capture, "-T", "records", "-Y", chosen, "--show-secrets").lines != []


def test_what_is_no_secret_beside_them_is_shown(
    capture: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    rows = [json.loads(line) for line in run(capsysbinary, "read", capture, "-T", "records").lines[:6]]
    headers = {each["key"]: each["value"] for each in rows[0]["headers"][:-1]}
    assert headers.pop("traceparent") == OPEN
    assert set(headers.values()) == {REDACTED}
    assert rows[0]["headers"][-1]["value"] is None
    shown = json.loads(rows[1]["value"])["properties"]
    assert shown["connector.class"] == OPEN
    assert shown["connection.uri"] == f"mongodb://{OPEN}:{REDACTED}@host/db"
    assert shown["connection.url"].endswith(f"user={OPEN}&password={REDACTED}")
    assert shown["nested"] == {"token": REDACTED, "port": 5432}
    assert rows[1]["value_size"] == len(CONNECT)
    assert json.loads(rows[3]["value"]) == json.loads(SESSION) | {"key": REDACTED}
    assert rows[5]["value"] == '{"tasks":1}'


def test_panes_of_the_screens_hide_their_bytes(capture: Path) -> None:
    import kdissect

    for exchange in kdissect.read(capture):
        for message in exchange.messages:
            if message.kind == "response":
                message_branches(message, Options())
        detail = Detail(exchange, Options(embedded=True))
        detail.records()
        for data in detail.buffers():
            seen = bytearray(data)
            for start, end in detail.hidden(data):
                seen[start:end] = b"*" * (end - start)
            assert SECRET.encode() not in seen


# -- the rules


@pytest.mark.parametrize(
    "name",
    [
        *("password", "ssl.key.password", "PASSWD", "saltedPassword", "api_key", "X-API-KEY", "accessToken"),
        *("Authorization", "Set-Cookie", "hmac", "basic.auth.user.info", "sasl.jaas.config", "privateKey"),
        *("aws.secret.access.key", "client-credentials", "Passphrase"),
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert suggests_secret(name)
    assert contains_secret_name(b"\0\x12" + name.encode() + b"\0")


@pytest.mark.parametrize(
    "name", ["key", "traceparent", "name", "topics", "key.converter", "content-type", ""]
)
def test_names_that_say_nothing(name: str) -> None:
    assert not suggests_secret(name)


def test_headers_without_secrets_are_the_same_object() -> None:
    headers = (("a", b"b"), ("Cookie", None), ("token", b""))
    assert shown_headers(headers) is headers


def test_only_what_looks_like_connects_is_taken_for_it() -> None:
    assert is_connect_config(b"connector-x", b' {"properties":{}}')
    for key, value in ((b"connector-x", b"avro"), (b"orders", b"{}"), (None, b"{}"), (b"task-1", None)):
        assert not is_connect_config(key, value)
    value = b'{"properties":{"a":"b"}}'
    assert shown_config(b"connector-x", value) is value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b'{"a.password": "x\\"y", "b": 1}', b'{"a.password": "<redacted>", "b": 1}'),
        (b'{"p\\u0061ssword":"x"}', b'{"p\\u0061ssword":"<redacted>"}'),
        (b'{"token":5,"c":{}}', b'{"token":"<redacted>","c":{}}'),
        (b'{"token":null,"secret":"","c":2}', b'{"token":null,"secret":"","c":2}'),
        (b'{"secret":{"a":[1,{}]},"c":2}', b'{"secret":"<redacted>","c":2}'),
        (b'{"secret":[1,', b'{"secret":"<redacted>"'),
        (b'{"secret":"ab\\', b'{"secret":"<redacted>'),
        (b'{"password":"a","password":"b"}', b'{"password":"<redacted>","password":"<redacted>"}'),
        (b"{" * 100_000, b"{" * 100_000),
        (b'{"password', b'{"password'),
    ],
)
def test_members_are_replaced_in_their_text(value: bytes, shown: bytes) -> None:
    assert shown_config(b"connector-x", value) == shown
