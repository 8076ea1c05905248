"""What a broker says of a request that held a secret; and fields of which only an import tells."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kdissect.client.masking import secret_ranges
from kdissect.message import parse_request
from kdissect.present.redact import is_secret, may_hold_secrets, secrets_of
from kdissect.present.secret_names import REDACTED
from kdissect.protocol import apis, schema
from kdissect.protocol.importing import import_definitions
from kdissect.protocol.library import library
from tests.cli.run import run
from tests.fuzz.targets import _frame
from tests.kafka import Talk, request, response
from tests.present.captures import OPEN, SECRET, base64, port, write_capture
from tests.present.test_redact import OUTPUTS, dumped, forms_of_secret
from tests.protocol.layouts import forget_layouts
from tests.protocol.test_importing import jar

CONFIG = {"name": "ssl.key.password", "value": SECRET}
BROKER = {"resourceType": 4, "resourceName": "1"}
SAID = f"Invalid value {SECRET} for configuration ssl.key.password: it is too short"
HARMLESS = f"{OPEN}: the policy forbids it"


def altered(correlation: int, said: str) -> bytes:
    one = {**BROKER, "errorCode": 40, "errorMessage": said}
    return response("AlterConfigs", 1, correlation, throttleTimeMs=0, responses=[one])


def alter(correlation: int) -> bytes:
    resource = {**BROKER, "configs": [CONFIG]}
    return request("AlterConfigs", 1, correlation, resources=[resource], validateOnly=False)


def login(correlation: int) -> bytes:
    return request("SaslAuthenticate", 2, correlation, authBytes=base64(f"\0{OPEN}\0{SECRET}"))


def refused(correlation: int, said: str) -> bytes:
    body = {"errorCode": 58, "errorMessage": said, "authBytes": "", "sessionLifetimeMs": 0}
    return response("SaslAuthenticate", 2, correlation, **body)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    talk = Talk(port(50_300))
    talk.ask(request("SaslHandshake", 1, 1, mechanism="PLAIN"))
    talk.answer(response("SaslHandshake", 1, 1, errorCode=0, mechanisms=["PLAIN"]))
    talk.ask(login(2)).answer(refused(2, f"{OPEN} may not log in with {SECRET}"))
    talk.ask(login(3)).answer(refused(3, HARMLESS))
    other = Talk(port(50_301))
    other.ask(alter(1)).answer(altered(1, SAID))
    other.ask(alter(2)).answer(altered(2, HARMLESS))
    return write_capture(tmp_path_factory.mktemp("said") / "said.pcapng", talk.close(), other.close())


@pytest.mark.parametrize("arguments", OUTPUTS, ids=" ".join)
def test_no_output_shows_a_secret_that_a_broker_repeats(
    arguments: tuple[str, ...], capture: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    ran = run(capsysbinary, "read", capture, "-T", *arguments)
    assert (ran.code, ran.err) == (0, "")
    for form in forms_of_secret():
        assert form not in ran.out
        assert form not in dumped(ran.out)


def test_no_table_file_does(
    capture: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(capsysbinary, "read", capture, "-T", "parquet", "-o", tmp_path / "out").code == 0
    text = repr(pq.read_table(tmp_path / "out").to_pylist()).encode()
    assert all(form not in text for form in forms_of_secret())


def test_what_repeats_none_is_shown(capture: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    rows = [json.loads(line) for line in run(capsysbinary, "read", capture, "-T", "ndjson").lines]
    said = [
        row["response"]["body"].get("errorMessage") or row["response"]["body"]["responses"][0]["errorMessage"]
        for row in rows
        if row["error"]
    ]
    assert said == [REDACTED, HARMLESS, REDACTED, HARMLESS]
    tree = run(capsysbinary, "read", capture, "-V").out.decode()
    assert tree.count(HARMLESS) == 2


def test_a_filter_learns_nothing_of_what_is_repeated(
    capture: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    for field in ("errorMessage", "alterconfigs.response.responses.errorMessage"):
        chosen = f'{field} contains "{SECRET}"'
        assert run(capsysbinary, "read", capture, "-Y", chosen).lines == []
        assert run(capsysbinary, "read", capture, "-Y", chosen, "--show-secrets").lines != []
    assert len(run(capsysbinary, "read", capture, "-Y", f'errorMessage contains "{OPEN}"').lines) == 2


@pytest.mark.parametrize("form", ["tree", "ndjson"])
def test_without_its_request_nothing_a_broker_says_of_secrets_is_shown(
    form: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    whole = altered(1, SAID)
    given = ("--api", "AlterConfigs", "--kind", "response", "--api-version", 1, whole[4:].hex())
    ran = run(capsysbinary, "bytes", "message", *given, "-T", form)
    assert ran.code == 0
    assert REDACTED.encode() in ran.out
    assert all(each not in ran.out for each in forms_of_secret())


@pytest.mark.parametrize("password", ["a", "p=w,d", "näh"])
def test_passwords_and_tokens_are_found_in_what_logs_in(password: str) -> None:
    for data in (f"\0alice\0{password}", f"n,,\1auth=Bearer {password}\1\1"):
        assert password in secrets_of("SaslAuthenticateRequest", {"authBytes": data.encode()})
    assert "alice" not in secrets_of(
        "SaslAuthenticateRequest", {"authBytes": f"\0alice\0{password}".encode()}
    )


# -- imported definitions

MOON_FIELDS: list[dict[str, Any]] = [
    {"name": "Place", "type": "string", "versions": "0+"},
    {"name": "AccessToken", "type": "string", "versions": "0+"},
    {"name": "Hmac", "type": "bytes", "versions": "0+"},
    {"name": "TokenCount", "type": "int32", "versions": "0+"},
    {"name": "Passwords", "type": "[]string", "versions": "0+"},
    {"name": "Rest", "type": "[]MoonCredential", "versions": "0+", "fields": [
        {"name": "Value", "type": "string", "versions": "0+"},
    ]},
]  # fmt: skip
MOON = {
    "apiKey": 999,
    "type": "request",
    "name": "MoonRequest",
    "validVersions": "0-1",
    "fields": MOON_FIELDS,
}
MOON_ANSWER = MOON | {"type": "response", "name": "MoonResponse"}
RENAMED = {
    "apiKey": 38, "type": "response", "name": "MakeDelegationResponse", "validVersions": "0-3", "fields": [
        {"name": "Hmac", "type": "bytes", "versions": "0+"}]}  # fmt: skip
VALUES: dict[str, Any] = {
    "place": OPEN, "accessToken": SECRET, "hmac": base64(SECRET), "tokenCount": 7,
    "passwords": [SECRET, SECRET], "rest": [{"value": SECRET}],
}  # fmt: skip


@pytest.fixture
def moon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A capture with an API that was imported; gives the folder of the definitions."""
    kept = (library, schema.message_struct, schema.data_struct, schema.era_structs, schema.era_data_structs)

    def forget() -> None:
        for each in kept:
            each.cache_clear()
        forget_layouts()

    monkeypatch.setenv("KDISSECT_DATA_HOME", str(tmp_path / "data"))
    source = jar(tmp_path / "vendor.jar", "9.9.0", MOON, MOON_ANSWER, RENAMED)
    import_definitions(source, tmp_path / "data" / "definitions")
    forget()
    talk = Talk(port(50_400))
    talk.ask(request("Moon", 1, 1, **VALUES)).answer(response("Moon", 1, 1, **VALUES))
    yield write_capture(tmp_path / "moon.pcapng", talk.close())
    monkeypatch.undo()
    forget()


@pytest.mark.parametrize("arguments", OUTPUTS, ids=" ".join)
def test_imported_fields_whose_name_says_secret_are_hidden(
    arguments: tuple[str, ...], moon: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    ran = run(capsysbinary, "read", moon, "-T", *arguments)
    assert ran.code == 0
    for form in forms_of_secret():
        assert form not in ran.out
        assert form not in dumped(ran.out)


def test_what_they_are_not_is_shown(moon: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    (row,) = (json.loads(line) for line in run(capsysbinary, "read", moon, "-T", "ndjson").lines)
    expected = {
        "place": OPEN, "accessToken": REDACTED, "hmac": REDACTED, "tokenCount": 7, "passwords": REDACTED,
        "rest": [{"value": REDACTED}],
    }  # fmt: skip
    assert row["request"]["body"] == row["response"]["body"] == expected
    for field in ("accessToken", "passwords", "rest.value"):
        assert run(capsysbinary, "read", moon, "-Y", f'moon.request.{field} contains "{SECRET}"').lines == []


@pytest.mark.parametrize(
    ("show", "shown"),
    [
        (["Moon"], {"accessToken", "hmac", "passwords", "value"}),
        (["MoonRequest.accessToken"], {"accessToken"}),
        (["Moon.hmac", "passwords"], {"hmac", "passwords"}),
        (["MoonResponse", "Fetch"], set()),
    ],
)
def test_the_configuration_shows_them(
    show: list[str],
    shown: set[str],
    moon: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    (tmp_path / "config.toml").write_text(f"[secrets]\nshow = {json.dumps(show)}\n")
    monkeypatch.setenv("KDISSECT_CONFIG", str(tmp_path / "config.toml"))
    (row,) = (json.loads(line) for line in run(capsysbinary, "read", moon, "-T", "ndjson", "--jobs", 2).lines)
    body = row["request"]["body"]
    seen = {name for name in ("accessToken", "hmac", "passwords") if body[name] != REDACTED}
    seen |= {"value"} if body["rest"][0]["value"] != REDACTED else set()
    assert seen == shown
    tree = run(capsysbinary, "read", moon, "-V").out.decode().partition("response:")[0]
    assert tree.count(REDACTED) == 4 - len(shown) + ("passwords" not in shown)


@pytest.mark.usefixtures("moon")
def test_a_class_of_ours_keeps_its_secrets_under_another_name_too() -> None:
    assert apis.api_name(38) == "MakeDelegation"
    assert is_secret("MakeDelegationResponse", "hmac", ({},), b"x", frozenset({"hmac", "MakeDelegation"}))
    assert may_hold_secrets("MakeDelegationRequest") is may_hold_secrets("CreateDelegationTokenRequest")


def test_nothing_of_our_own_definitions_is_taken_for_imported() -> None:
    assert not is_secret("CreateDelegationTokenResponse", "tokenId", ({},), "x")
    assert not may_hold_secrets("MetadataRequest")


@pytest.mark.usefixtures("moon")
def test_a_capture_that_the_client_writes_has_them_masked() -> None:
    message = parse_request(_frame(request("Moon", 1, 1, **VALUES)))
    masked = bytearray(message.frame.payload)
    for start, end in secret_ranges(message):
        masked[start:end] = b"*" * (end - start)
    assert SECRET.encode() not in masked
    assert OPEN.encode() in masked
