"""A registry that is asked over HTTP."""

from __future__ import annotations

import json
import pickle
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from kdissect.payload.decoder import PayloadDecoder
from kdissect.payload.schemas import Schemas
from kdissect.registry import remote
from kdissect.registry.remote import Registry, RegistryCredentials, place_of
from tests.client.certificates import make, requires_openssl
from tests.registry.server import Answer, Server, say, serving

INT = {"schema": '"int"'}
LINE = {"schema": '{"type": "record", "name": "shop.Line", "fields": [{"name": "n", "type": "int"}]}'}
ORDER = {
    "schema": '{"type": "record", "name": "shop.Order", "fields": [{"name": "line", "type": "shop.Line"}]}',
    "references": [{"name": "shop.Line", "subject": "shop/line", "version": 3}],
}
GUID = "12345678-1234-4234-9234-123456789abc"
SECRET = "hunter2-and-more"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as found:
        yield found


def asking(server: Server, path: str = "", **more: Any) -> Schemas:
    schemas = Schemas()
    schemas.registry = Registry(place_of(server.url + path), **more)
    return schemas


def value(schemas: Schemas, data: bytes, headers: Any = ()) -> Any:
    return PayloadDecoder(schemas).decode("orders", "value", data, headers).value


def test_each_schema_is_asked_for_once(server: Server) -> None:
    server.answers["/schemas/ids/7"] = INT
    schemas = asking(server)
    assert [value(schemas, b"\0\0\0\0\7\6") for _ in range(3)] == [3, 3, 3]
    assert [value(schemas, b"\0\0\0\0\x09\6") for _ in range(3)] == [None, None, None]
    assert server.asked == ["/schemas/ids/7", "/schemas/ids/9"]
    assert schemas.problems == []


def test_what_a_folder_has_is_not_asked_for(server: Server) -> None:
    schemas = asking(server)
    schemas.learn(b'{"keytype": "SCHEMA"}', b'{"id": 7, "schema": "\\"int\\""}')
    assert value(schemas, b"\0\0\0\0\7\6") == 3
    assert server.asked == []


def test_references_are_asked_for_by_subject_and_version(server: Server) -> None:
    server.answers["/apis/ccompat/v7/schemas/ids/7"] = ORDER
    server.answers["/apis/ccompat/v7/subjects/shop%2Fline/versions/3?deleted=true"] = LINE
    assert value(asking(server, "/apis/ccompat/v7/"), b"\0\0\0\0\7\6") == {"line": {"n": 3}}


def test_imports_of_protobuf_are_asked_for(server: Server) -> None:
    text = 'syntax = "proto3"; import "line.proto"; message Order { Line line = 1; }'
    line = 'syntax = "proto3"; message Line { int32 n = 1; }'
    references = [{"name": "line.proto", "subject": "line", "version": 1}]
    server.answers["/schemas/ids/7"] = {"schemaType": "PROTOBUF", "schema": text, "references": references}
    server.answers["/subjects/line/versions/1?deleted=true"] = {"schemaType": "PROTOBUF", "schema": line}
    assert value(asking(server), b"\0\0\0\0\7\0\x0a\x02\x08\x05") == {"line": {"n": 5}}


def test_a_reference_that_is_not_there_is_one_line(server: Server) -> None:
    server.answers["/schemas/ids/7"] = ORDER
    schemas = asking(server)
    assert value(schemas, b"\0\0\0\0\7\6") is None
    (problem,) = schemas.problems
    assert "schema 7 cannot be used: refers to shop/line version 3, which is not known" in problem


def test_ids_in_headers_are_asked_for_and_those_of_other_registries_are_not(server: Server) -> None:
    server.answers[f"/schemas/guids/{GUID}"] = INT
    headers = (("__value_schema_id", b"\1" + bytes.fromhex(GUID.replace("-", ""))),)
    schemas = asking(server)
    assert value(schemas, b"\6", headers) == 3
    glue = b"\3\0" + bytes.fromhex(GUID.replace("-", "")) + b"\6\6"
    avro = b"\xc3\1" + bytes(range(8)) + b"\6"
    azure = b"\0\0\0\0" + b"a" * 32 + b"\6"
    assert [value(asking(server), each) for each in (glue, avro, azure)] == [None] * 3
    assert len(server.asked) == 1


def test_records_of_other_ids_are_still_decoded_after_a_miss(server: Server) -> None:
    server.answers["/schemas/ids/7"] = INT
    schemas = asking(server)
    assert [value(schemas, b"\0\0\0\0" + bytes([id]) + b"\6") for id in (1, 7, 2)] == [None, 3, None]


# -- failures


def _dripping(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    _drip(handler)


def _drip(handler: BaseHTTPRequestHandler) -> None:
    for _ in range(5_000):  # 100 seconds
        handler.wfile.write(b"x")
        time.sleep(0.02)


def _dripping_header(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    _drip(handler)


def _endless(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        handler.wfile.write(b"10000\r\n" + bytes(0x10000) + b"\r\n")


def _endless_headers(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        handler.wfile.write(b"X: y\r\n" * 1_000)


def _hanging_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


def _breaking_off(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
    handler.close_connection = True


def _other_language(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"\x15\x03\x03\0\x02\x02\x46 garbage \xff\n\n")
    handler.close_connection = True


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (say(401, b'{"error_code": 401}'), "it wants credentials (401): KDISSECT_REGISTRY_USER and"),
        (say(403, b""), "it wants credentials (403)"),
        (say(404, b"<html>"), "it answers 404, so this may not be a schema registry: is the URL's"),
        (say(500, b"oops"), "it answers 500"),
        (say(429, b"slow down"), "it answers 429"),
        (say(301, b"", Location="http://evil.example/"), "it redirects (301), and kdissect does not follow"),
        (say(200, b"\xff garbage"), "it does not answer as a schema registry"),
        (say(200, b"[" * 100_000), "it does not answer as a schema registry"),
        (say(200, b"[1]"), "it does not answer as a schema registry"),
        (say(200, b'{"schema": 5}'), "it does not answer as a schema registry"),
        (say(200, b'{"schema": "int", "schemaType": "MARS"}'), "it does not answer as a schema registry"),
        (_dripping, "it does not answer within 0.3 s"),
        (_dripping_header, "it does not answer within 0.3 s"),
        (lambda _: time.sleep(2), "it does not answer within 0.3 s"),
        (_endless, "its answer has more than 1,000,000 bytes"),
        (_endless_headers, "it does not speak HTTP"),
        (_hanging_up, "it cannot be reached"),
        (_breaking_off, "it does not speak HTTP"),
        (_other_language, "it does not speak HTTP"),
    ],
)  # fmt: skip
def test_a_registry_that_fails_is_told_in_one_line_and_left_alone(
    answer: Answer, said: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "LARGEST_ANSWER", 1_000_000)
    server.otherwise = answer
    slow = "0.3 s" in said
    schemas, begin = asking(server, timeout_s=0.3 if slow else 20), time.monotonic()
    decoder = PayloadDecoder(schemas)
    found = [decoder.decode("orders", "value", b"\0\0\0\0" + bytes([id]) + b"\6") for id in (7, 8, 7)]
    assert not slow or time.monotonic() - begin < 30
    assert [each.value for each in found] == [None] * 3
    assert found[0].problem == "schema 7 is not known, and kdissect cannot ask the registry"
    (problem,) = schemas.problems
    assert problem.startswith(f"--registry {server.url}: {said}")
    assert problem.endswith("; kdissect no longer asks it, and records stay raw")
    assert len(server.asked) <= 1


def test_a_registry_that_is_not_there_is_told(server: Server) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    for url, said in (
        (f"http://127.0.0.1:{port}", "cannot be reached"),
        ("http://no.such.invalid", "no such host"),
    ):
        schemas = Schemas()
        schemas.registry = Registry(place_of(url))
        assert value(schemas, b"\0\0\0\0\7\6") is None
        (problem,) = schemas.problems
        assert said in problem


def test_a_server_that_accepts_and_says_nothing_costs_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        schemas = Schemas()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        schemas.registry = Registry(place_of(url), timeout_s=0.2)
        assert value(schemas, b"\0\0\0\0\7\6") is None
        assert "within 0.2 s" in schemas.problems[0]


def test_bytes_that_only_look_framed_end_the_asking(server: Server) -> None:
    schemas = asking(server)
    for number in range(1, 1_000):
        assert value(schemas, b"\0" + number.to_bytes(4, "big") + b"abc") is None
    assert len(server.asked) == remote.MOST_MISSES
    assert "it has none of the 100 requested schemas" in schemas.problems[0]


def test_all_answers_together_have_an_end(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "PATIENCE_S", 0.2)

    def slowly(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.06)
        say(200, json.dumps(INT).encode())(handler)

    server.otherwise = slowly
    schemas = asking(server)
    for number in range(1, 50):
        value(schemas, b"\0\0\0\0" + bytes([number]) + b"\6")
    assert len(server.asked) <= 5
    assert len(schemas.problems) == 1


# -- credentials


@pytest.mark.parametrize(
    ("credentials", "header"),
    [
        (RegistryCredentials("me", SECRET), "Basic " + b64encode(f"me:{SECRET}".encode()).decode()),
        (RegistryCredentials(token=SECRET), f"Bearer {SECRET}"),
        (RegistryCredentials(), None),
    ],
)
def test_credentials_are_shown_to_the_registry_and_to_nobody_else(
    credentials: RegistryCredentials, header: str | None, server: Server
) -> None:
    server.otherwise = say(401, SECRET.encode())
    schemas = asking(server, credentials=credentials)
    assert value(schemas, b"\0\0\0\0\7\6") is None
    assert server.headers[0].get("Authorization") == header
    told = f"{schemas.problems} {credentials!r} {schemas.registry!r}"
    assert SECRET not in told
    assert b64encode(f"me:{SECRET}".encode()).decode() not in told
    assert ("refuses these credentials" in told) is (header is not None)


def test_credentials_do_not_follow_a_redirect(server: Server) -> None:
    with serving() as other:
        server.otherwise = say(307, b"", Location=f"{other.url}/schemas/ids/7")
        assert value(asking(server, credentials=RegistryCredentials("me", SECRET)), b"\0\0\0\0\7\6") is None
        assert other.asked == []


def test_a_copy_asks_anew(server: Server) -> None:
    server.otherwise = say(200, json.dumps(INT).encode())
    schemas = asking(server)
    assert value(schemas, b"\0\0\0\0\7\6") == 3
    copy = pickle.loads(pickle.dumps(schemas))
    assert value(copy, b"\0\0\0\0\x08\6") == 3


# -- TLS


@requires_openssl
def test_the_certificate_is_verified(tmp_path: Path) -> None:
    mine, other = make(tmp_path, "mine"), make(tmp_path, "other")
    with serving(mine.server()) as server:
        server.otherwise = say(200, json.dumps(INT).encode())
        for ca in (None, str(other.certificate)):
            schemas = asking(server, ca_file=ca, credentials=RegistryCredentials("me", SECRET))
            assert value(schemas, b"\0\0\0\0\7\6") is None
            assert "its certificate is not trusted: " in schemas.problems[0]
            assert "--registry-ca FILE" in schemas.problems[0]
        assert server.asked == []
        assert value(asking(server, ca_file=str(mine.certificate)), b"\0\0\0\0\7\6") == 3
        plain = Schemas()
        plain.registry = Registry(place_of(server.url.replace("https", "http")), timeout_s=1)
        assert value(plain, b"\0\0\0\0\7\6") is None
        assert len(plain.problems) == 1


def test_tls_with_a_server_that_has_none(server: Server) -> None:
    schemas = Schemas()
    schemas.registry = Registry(place_of(server.url.replace("http", "https")), timeout_s=5)
    assert value(schemas, b"\0\0\0\0\7\6") is None
    assert "TLS failed: " in schemas.problems[0]


def test_a_handshake_that_never_ends_costs_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            sock, _ = listening.accept()
            with sock:
                try:
                    for each in b"\x16\x03\x03\x40\x00" + bytes(5_000):
                        sock.sendall(bytes([each]))
                        time.sleep(0.02)
                except OSError:
                    return

        thread = threading.Thread(target=drip)
        thread.start()
        schemas, begin = Schemas(), time.monotonic()
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"
        schemas.registry = Registry(place_of(url), timeout_s=0.2)
        assert value(schemas, b"\0\0\0\0\7\6") is None
        assert time.monotonic() - begin < 30  # it would go on for 100
        thread.join()
        assert len(schemas.problems) == 1


@pytest.mark.parametrize(("text", "said"), [("", "no certificates in PEM"), (None, "cannot be read")])
def test_a_file_of_certificates_that_cannot_be_used(text: str | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValueError, match=said):
        Registry(place_of("https://registry"), ca_file=str(path))


# -- URLs


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://registry:8081", "http://registry:8081"),
        ("https://registry/apis/ccompat/v7/", "https://registry/apis/ccompat/v7"),
        ("http://[::1]:8081/", "http://[::1]:8081"),
        ("https://registry:443", "https://registry"),
    ],
)
def test_urls_of_registries(url: str, shown: str) -> None:
    assert str(place_of(url)) == shown


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"https://me:{SECRET}@registry", "the URL must not contain user and password"),
        (f"https://{SECRET}@registry", "the URL must not contain user"),
        ("registry:8081", "a URL is needed"),
        ("ftp://registry", "a URL is needed"),
        ("https://", "a URL is needed"),
        ("https://registry:99999", "this is not a URL"),
        ("https://[registry", "this is not a URL"),
        ("https://registry?x=y", "without \\? and #"),
        ("https://registry/ä", "only ASCII"),
        ("https://reg istry", "a URL is needed"),
        ("https://registry/a\r\nX-Evil: 1", "URL"),
    ],
)
def test_what_is_no_url_of_a_registry(url: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        place_of(url)
    assert SECRET not in str(caught.value)
