from __future__ import annotations

import pytest

from kdissect.model import DecodeError
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.header import RequestHeader, ResponseHeader, read_request_header, read_response_header
from kdissect.protocol.layout import layout

KEY_AND_VERSION = {
    "0007 0000": 0,  # ControlledShutdown 0, without a client id
    "0003 0001": 1,
    "0003 0009": 2,
    "1267 0000": 1,  # unknown API
}


@pytest.mark.parametrize(("start", "version"), KEY_AND_VERSION.items())
def test_the_header_version_is_that_of_the_api_and_version(start: str, version: int) -> None:
    rest = ("", "0001 61", "0001 61 00")[version]
    data = bytes.fromhex(start + "00000005" + rest)
    cursor = Cursor(data + b"body")
    head = read_request_header(cursor)
    assert (head.version, head.correlation_id, head.client_id) == (version, 5, "a" if version else None)
    assert cursor.position == len(data)


def test_a_null_client_id_is_none_and_an_impossible_one_an_error() -> None:
    start = bytes.fromhex("0003 0001 00000005")
    assert read_request_header(Cursor(start + b"\xff\xff")) == RequestHeader(
        3, 1, 5, None, 1, layout(3, 1, "request")
    )
    for length, kind in ((b"\xff\xfe", "negative-length"), (b"\0\x01", "truncated")):
        with pytest.raises(DecodeError) as error:
            read_request_header(Cursor(start + length))
        assert error.value.kind == kind


def test_tagged_fields_are_passed_over() -> None:
    data = bytes.fromhex("0003 0009 00000005 0001 61 01 07 02 beef")
    cursor = Cursor(data + b"body")
    assert read_request_header(cursor).version == 2
    assert cursor.position == len(data)


def test_of_an_unknown_version_the_header_may_be_older() -> None:
    unknown = bytes.fromhex("0003 0063 00000005 0001 61")
    cursor = Cursor(unknown + bytes.fromhex("ffffffffff"))
    assert read_request_header(cursor).version == 1
    assert cursor.position == len(unknown)
    with pytest.raises(DecodeError):
        read_request_header(Cursor(bytes.fromhex("0003 0009 00000005 0001 61 ffffffffff")))


def test_a_response_header_is_told_by_the_request() -> None:
    data = bytes.fromhex("00000005 01 07 02 beef")
    for key, version, wanted, end in (
        (3, 9, 1, 9),
        (3, 1, 0, 4),
        (18, 3, 0, 4),
        (None, None, 0, 4),
        (99, 0, 0, 4),
    ):
        cursor = Cursor(data)
        known = None if key is None or version is None else layout(key, version, "response")
        assert read_response_header(cursor, known) == ResponseHeader(5, wanted)
        assert cursor.position == end
