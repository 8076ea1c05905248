from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kdissect
from kdissect.embedded.framing import read_metadata
from kdissect.present.redact import RULES, is_secret, is_secret_record
from kdissect.present.secret_names import REDACTED
from kdissect.protocol import apis
from kdissect.protocol.config_names import is_secret_config
from kdissect.protocol.traits import field_traits
from tests.cli.run import ROOT, run
from tests.present.captures import OPEN, SECRET, secret_talks, write_capture


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_capture(tmp_path_factory.mktemp("secrets") / "secrets.pcapng", *secret_talks())


def forms_of_secret() -> Iterator[bytes]:
    """How the secret, its beginning or its end may show, whatever stands before it in the same bytes."""
    for piece in (SECRET, SECRET[:6], SECRET[-6:]):
        yield from forms_of(piece.encode())


def forms_of(data: bytes) -> Iterator[bytes]:
    yield data
    yield data.hex().encode()
    yield data.hex(" ").encode()
    for shift in range(3):
        # base64 of what begins 0, 1 or 2 bytes earlier; what the neighbours colour is left out
        text = b64encode(bytes(shift) + data)
        yield text[(shift * 4 + 2) // 3 : -4]


_DUMP = re.compile(rb"^ *[0-9a-f]{8}  ((?:[0-9a-f]{2} ){1,16}) *\|", re.MULTILINE)


def dumped(out: bytes) -> bytes:
    """The bytes of all hex dumps together: what a line's end cuts in two is whole here."""
    return b"".join(bytes.fromhex(digits.decode()) for digits in _DUMP.findall(out))


OUTPUTS = [
    ("text", "-x"),
    ("tree",),
    ("tree", "-x"),
    ("tree", "-x", "--embedded"),
    ("ndjson",),
    ("ndjson", "--records", "--embedded"),
    ("ndjson", "--records", "--bytes", "hex"),
    ("ndjson", "--records", "--bytes", "base64"),
    ("csv", "--records", "--embedded"),
    ("tsv", "--records"),
    ("records",),
    ("records", "--embedded", "--bytes", "hex"),
    ("records.csv", "--bytes", "base64"),
    ("connections",),
    ("faults",),
]


@pytest.mark.parametrize("arguments", OUTPUTS, ids=" ".join)
def test_no_output_shows_a_secret(
    arguments: tuple[str, ...], capture: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    ran = run(capsysbinary, "read", capture, "-T", *arguments)
    assert (ran.code, ran.err) == (0, "")
    for form in forms_of_secret():
        assert form not in ran.out
        assert form not in dumped(ran.out)


@pytest.mark.parametrize("form", ["parquet", "arrow", "records.parquet", "records.arrow"])
def test_no_table_file_holds_a_secret(
    form: str, capture: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "out"
    assert run(capsysbinary, "read", capture, "-T", form, "--records", "--embedded", "-o", path).code == 0
    table = pq.read_table(path) if "parquet" in form else pa.ipc.open_stream(path.read_bytes()).read_all()
    text = repr(table.to_pylist()).encode()
    assert table.num_rows > 0
    assert REDACTED.encode() in text
    for secret in forms_of_secret():
        assert secret not in text


def exchanges(capsysbinary: pytest.CaptureFixture[bytes], capture: Path, *more: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(capsysbinary, "read", capture, "-T", "ndjson", *more).lines]


def test_what_is_no_secret_stays(capture: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    by_api = {each["api"]: each for each in exchanges(capsysbinary, capture, "--embedded", "--records")}
    topic = by_api["CreateTopics"]["request"]["body"]["topics"][0]
    assert topic["configs"] == [
        {"name": "retention.ms", "value": OPEN},
        {"name": "made.up", "value": REDACTED},
    ]
    told = by_api["DescribeConfigs"]["response"]["body"]["results"][0]["configs"][0]
    assert (told["name"], told["value"], told["synonyms"][0]["value"]) == (
        "ssl.key.password",
        REDACTED,
        REDACTED,
    )
    token = by_api["DescribeDelegationToken"]["response"]["body"]["tokens"][0]
    assert (token["tokenId"], token["hmac"]) == (OPEN, REDACTED)
    fetched = by_api["Fetch"]["response"]["body"]["responses"][0]["partitions"][0]["records"][0]["records"]
    assert [each["value"] == REDACTED for each in fetched] == [True, False]
    envelope = by_api["Envelope"]["request"]["body"]
    assert envelope["requestData"] == envelope["requestPrincipal"] == REDACTED
    inner = envelope["requestDataDecoded"]["body"]["resources"][0]["configs"][0]
    assert inner == {"name": "ssl.key.password", "value": REDACTED}
    assert by_api["SaslToken"]["request"]["body"] == {"authBytes": REDACTED}


def test_secrets_are_shown_when_asked_for(capture: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    shown = exchanges(capsysbinary, capture, "--show-secrets", "--records")
    assert REDACTED not in json.dumps(shown)
    by_api = {each["api"]: each for each in shown}
    assert (
        by_api["SaslToken"]["request"]["body"]["authBytes"]
        == b64encode(f"\0{OPEN}\0{SECRET}".encode()).decode()
    )
    assert by_api["CreateTopics"]["request"]["body"]["topics"][0]["configs"][1]["value"] == SECRET


def test_who_logs_in_is_told_without_the_password(
    capture: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    rows = [json.loads(line) for line in run(capsysbinary, "read", capture, "-T", "connections").lines]
    assert rows[0]["sasl"] == {
        "mechanism": "PLAIN",
        "principal": OPEN,
        "outcome": "authenticated",
        "expires_ms": None,
    }


def test_every_rule_of_the_definitions_is_known() -> None:
    messages = [f"{apis.api_name(key)}{kind}" for key in apis.api_keys() for kind in ("Request", "Response")]
    told = [rule for each in (*messages, *apis.data_names()) for rule in field_traits(each).secrets.values()]
    assert set(told) == RULES.keys()


@pytest.mark.parametrize(
    ("resource", "name", "secret"),
    [
        (2, "retention.ms", False),
        (2, "made.up", True),
        (4, "log.retention.ms", False),
        (4, "ssl.keystore.password", True),
        (4, "listener.name.internal.ssl.keystore.password", True),
        (4, "listener.name.internal.max.connections", False),
        (4, "listener.name.sasl.plain.sasl.jaas.config", True),
        (4, "super.users", True),
        (4, "leader.replication.throttled.rate", False),
        (2, "leader.replication.throttled.rate", True),
        (8, "kafka.request.logger", False),
        (16, "interval.ms", False),
        (32, "share.session.timeout.ms", False),
        (99, "retention.ms", True),
        (None, "retention.ms", True),
    ],
)
def test_configs_are_secret_by_the_rule_of_kafkas_own_log(
    resource: int | None, name: str, secret: bool
) -> None:
    assert is_secret_config(resource, name) is secret


METADATA_LOG = ROOT / "captures" / "logs" / "__cluster_metadata-0" / "00000000000000000000.log"


@pytest.mark.parametrize("arguments", [(), ("-x",), ("-T", "ndjson")], ids=" ".join)
def test_secrets_of_the_metadata_log_are_told_by_content_where_the_topic_is_not_known(
    arguments: tuple[str, ...], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    values = [record.value or b"" for record in kdissect.records(METADATA_LOG.read_bytes()).records()]
    secrets = [
        value for value in values if read_metadata("metadata", value).name == "UserScramCredentialRecord"
    ]
    assert secrets
    ran = run(capsysbinary, "bytes", "records", METADATA_LOG, *arguments)
    shown = run(capsysbinary, "bytes", "records", METADATA_LOG, *arguments, "--show-secrets")
    assert (ran.code, ran.out.count(REDACTED.encode())) == (0, len(secrets))
    assert REDACTED.encode() not in shown.out
    for value in secrets:
        for form in forms_of(value[20:28]):
            assert form not in ran.out
            assert form not in dumped(ran.out)
    if "-x" in arguments:
        assert secrets[0] in dumped(shown.out)


def test_only_a_whole_metadata_record_with_a_secret_is_taken_for_one_without_its_topic() -> None:
    secret = scram_record()
    assert is_secret_record(secret, None)
    assert is_secret_record(secret + b"x", True)
    assert not is_secret_record(secret, False)
    for other in (None, b"", b"\x01", b"\x01,text of a user", secret + b"x", secret[:-1]):
        assert not is_secret_record(other, None)


@pytest.mark.parametrize("form", ["tree", "ndjson"])
@pytest.mark.parametrize("framed", [True, False])
def test_what_is_left_after_a_record_with_secrets_is_hidden(
    form: str, framed: bool, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    arguments: tuple[object, ...] = ("internal", "--family", "metadata")
    data = scram_record()
    if not framed:
        arguments = ("message", "--kind", "data", "--name", "UserScramCredentialRecord", "--api-version", 0)
        data = data[3:]
    ran = run(capsysbinary, "bytes", *arguments, (data + SECRET.encode()).hex(), "-T", form)
    assert (ran.code, REDACTED.encode() in ran.out) == (0, True)
    for found in forms_of(SECRET.encode()):
        assert found not in ran.out


def scram_record() -> bytes:
    values = {
        "name": "alice",
        "mechanism": 1,
        "salt": b"salt",
        "storedKey": b"s",
        "serverKey": b"k",
        "iterations": 1,
    }
    frame = bytes((1, apis.data_record_type("UserScramCredentialRecord") or 0, 0))
    return frame + kdissect.schema("UserScramCredentialRecord", 0, "data").encode(values)


@pytest.mark.parametrize(
    ("config", "hidden"),
    [
        ({"name": "a", "value": "x", "isSensitive": False}, False),
        ({"name": "a", "value": "x", "isSensitive": True}, True),
        ({"name": "a", "value": "x"}, True),  # the message breaks off before it says
    ],
)
def test_a_config_of_which_nothing_says_that_it_may_be_shown_is_hidden(
    config: dict[str, Any], hidden: bool
) -> None:
    ancestors: list[dict[str, Any]] = [{}, {"resourceType": 2}, config]
    for message in ("DescribeConfigsResponse", "CreateTopicsResponse"):
        assert is_secret(message, "value", ancestors, "x") is hidden
        assert (
            is_secret(message, "value", [*ancestors, {"name": "a", "value": "x"}], "x") is hidden
        )  # synonym
