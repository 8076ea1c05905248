"""Are these bytes a request? What proves it, what is evidence, and what is neither."""

from __future__ import annotations

import gc
import random
from base64 import b64encode
from collections.abc import Callable

import pytest

from kdissect.limits import DEFAULTS
from kdissect.protocol import apis
from kdissect.session.evidence import (
    FUTURE_VERSIONS,
    MOST_VERSIONS,
    Evidence,
    RequestHead,
    begins_ordinary_request,
    examine_request,
    is_distinctive_response,
    read_head,
)
from tests.kafka import framed, request, response
from tests.session.runs import metadata, metadata_answer


def evidence(data: bytes, position: int = 0) -> Evidence:
    return examine_request(data, position)[0]


def test_a_request_that_fits_to_the_last_byte_is_proof() -> None:
    data = framed(metadata(1))
    assert examine_request(data, 0) == (Evidence.EXACT, len(data))
    assert examine_request(b"xyz" + data + b"more", 3) == (Evidence.EXACT, 3 + len(data))


@pytest.mark.parametrize("version", range(4))
def test_a_request_without_client_id_is_proof_too(version: int) -> None:
    assert evidence(framed(request("ListGroups", version, 1, client_id=None))) is Evidence.EXACT


def test_a_client_id_need_not_be_printable_but_utf8() -> None:
    assert evidence(framed(request("ListGroups", 0, 1, client_id="a\x1bb"))) is Evidence.EXACT
    broken = framed(request("ListGroups", 0, 1, client_id="abcd")).replace(b"abcd", b"ab\xff\xfe")
    assert evidence(broken) is Evidence.NONE


def test_a_request_that_is_not_all_there_is_told_by_its_header() -> None:
    data = framed(metadata(1))
    verdicts = [evidence(data[:end]) for end in range(len(data))]
    header = verdicts.index(Evidence.HEADER)
    assert header == 4 + 10 + len("test")
    assert set(verdicts[:header]) == {Evidence.MORE}
    assert set(verdicts[header:]) == {Evidence.HEADER}


def test_bytes_that_are_left_after_the_body_make_it_no_proof() -> None:
    assert evidence(framed(request("ListGroups", 0, 1, "rdkafka") + bytes(4))) is Evidence.LOOSE
    assert evidence(framed(request("ListGroups", 0, 1, None) + bytes(4))) is Evidence.NONE


def test_the_tail_of_a_known_program_is_part_of_a_request_that_fits() -> None:
    known = framed(request("ApiVersions", 0, 1, "rdkafka") + bytes(4))
    assert evidence(known) is Evidence.EXACT
    assert begins_ordinary_request(known, 0, len(known))
    for other in (
        framed(request("ApiVersions", 0, 1, "rdkafka") + b"\0\0\0\1"),
        framed(request("ApiVersions", 0, 1, "rdkafka") + bytes(5)),
        framed(request("ApiVersions", 1, 1, "rdkafka") + bytes(4)),
    ):
        assert evidence(other) is Evidence.LOOSE
        assert not begins_ordinary_request(other, 0, len(other))
    for nameless in (None, "rd\x1bkafka"):
        data = framed(request("ApiVersions", 0, 1, nameless) + bytes(4))
        assert evidence(data) is Evidence.NONE
        assert not begins_ordinary_request(data, 0, len(data))


def test_a_version_of_api_versions_from_the_future_is_evidence_and_of_others_none() -> None:
    known = request("ApiVersions", 0, 1, "new")
    assert evidence(framed(known[:2] + b"\0\x0f" + known[4:])) is Evidence.LOOSE
    assert evidence(framed(known[:2] + b"\0\x40" + known[4:])) is Evidence.NONE


def newer(payload: bytes, key: int, version: int) -> bytes:
    return key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True) + payload[4:]


@pytest.mark.parametrize(
    ("key", "version", "found"),
    [
        (apis.FETCH, apis.versions(apis.FETCH).stop, Evidence.STRANGE),
        (apis.FETCH, apis.versions(apis.FETCH).stop + FUTURE_VERSIONS, Evidence.NONE),
        (apis.FETCH, -1, Evidence.NONE),
        (10_001, 0, Evidence.STRANGE),
        (10_001, MOST_VERSIONS, Evidence.NONE),
        (-1, 0, Evidence.NONE),
    ],
)
def test_a_request_of_an_api_or_version_that_is_not_known_is_strange(
    key: int, version: int, found: Evidence
) -> None:
    data = framed(newer(metadata(1), key, version))
    assert evidence(data) is found
    assert (read_head(data, 0) is None) == (found is Evidence.NONE)
    assert evidence(data[:-1]) is (Evidence.NONE if found is Evidence.NONE else Evidence.MORE)
    nameless = framed(newer(request("Metadata", 1, 1, None, topics=[]), key, version))
    assert evidence(nameless) is Evidence.NONE
    assert read_head(nameless, 0) is None


def test_a_head_is_read_where_all_of_it_is_there() -> None:
    data = b"xyz" + framed(newer(request("ListGroups", 0, 7, "app"), 10_001, 2)) + b"more"
    assert read_head(data, 3) == RequestHead(len(data) - 11, False, 7, b"app")
    assert read_head(data[:-4], 3) is not None
    assert read_head(data[: 3 + 14 + 2], 3) is None
    assert read_head(framed(metadata(5)), 0) == RequestHead(len(metadata(5)), True, 5, b"test")
    assert read_head(framed(metadata(5)), 0, DEFAULTS._replace(frame_bytes=12)) is None


def test_a_request_over_a_limit_of_ours_is_still_evidence() -> None:
    data = framed(request("Metadata", 1, 1, topics=[{"name": "orders"}] * 20))
    assert examine_request(data, 0, DEFAULTS._replace(elements=10))[0] is Evidence.LOOSE


def asked_first(number: int, left: bytes = b"") -> bytes:
    """A client's first request; the evidence of such requests is kept."""
    return framed(request("ApiVersions", 3, number, clientSoftwareName="x", clientSoftwareVersion="1") + left)


def test_the_same_bytes_are_judged_within_the_limits_that_count_each_time() -> None:
    few = DEFAULTS._replace(elements=10)
    data = framed(request("Metadata", 1, 1, topics=[{"name": "orders"}] * 20))
    found = [examine_request(data, 0, limits)[0] for limits in (DEFAULTS, few, few, DEFAULTS, DEFAULTS)]
    assert found == [Evidence.EXACT, Evidence.LOOSE, Evidence.LOOSE, Evidence.EXACT, Evidence.EXACT]
    small = DEFAULTS._replace(tagged_fields=1)
    tagged = asked_first(1)[4:-1] + b"\2\x63\1a\x64\1b"
    one, other = (examine_request(framed(tagged), 0, limits)[0] for limits in (DEFAULTS, small))
    assert one is Evidence.EXACT
    assert other is not Evidence.EXACT
    assert [examine_request(framed(tagged), 0, limits)[0] for limits in (DEFAULTS, small)] == [one, other]


@pytest.mark.parametrize("made", [asked_first, lambda number, left=b"": framed(metadata(number) + left)])
def test_each_of_many_frames_is_judged_by_its_own_bytes(made: Callable[..., bytes]) -> None:
    for _ in range(2):
        for number in range(300):
            assert evidence(made(number)) is Evidence.EXACT
            assert evidence(made(number, b"x")) is Evidence.LOOSE


def kept_with(data: bytes) -> list[bytes]:
    """The keys, of any table that Python's memory management looks at, with these bytes in them."""
    tables = [each for each in gc.get_objects() if type(each) is dict]
    return [key for table in tables for key in list(table) if type(key) is bytes and data in key]


def test_what_a_login_says_is_not_kept() -> None:
    limits = DEFAULTS._replace()  # others begin a table, which no earlier gc.freeze() hides
    token = b64encode(b"\0alice\0secret-4711").decode("ascii")
    for version in range(3):
        login = framed(request("SaslAuthenticate", version, 1, authBytes=token))
        assert examine_request(login, 0, limits)[0] is Evidence.EXACT
    broken = bytearray(framed(request("SaslAuthenticate", 1, 1, authBytes=token)))
    broken[5] = apis.API_VERSIONS
    broken[12:14] = b"\x7f\xff"
    assert examine_request(bytes(broken), 0, limits)[0] is Evidence.NONE
    assert not kept_with(b"secret-4711")


def test_a_first_request_is_kept_up_to_a_number_and_a_size() -> None:
    limits = DEFAULTS._replace()  # as above
    for number in range(2_000):
        examine_request(asked_first(number, b"the same end"), 0, limits)
    examine_request(asked_first(1, b"a long end" * 200), 0, limits)
    assert 0 < len(kept_with(b"the same end")) <= 256
    assert not kept_with(b"a long end")


@pytest.mark.parametrize(
    "data",
    [
        framed(b"\xff\xff" + metadata(1)[2:]),  # an API key that there cannot be
        (7).to_bytes(4, "big") + bytes(7),  # too short for any header
        b"\xff\xff\xff\xff" + metadata(1),
        framed(metadata(1)[:8] + b"\x7f\xff" + metadata(1)[10:]),  # a client id that does not fit
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03" + bytes(range(190)),
        framed(bytes(44)),  # ZooKeeper's connect: like a Produce request with nothing in it
    ],
)
def test_other_bytes_are_no_request(data: bytes) -> None:
    assert evidence(data) is Evidence.NONE


def test_a_size_over_the_limit_of_frames_is_none() -> None:
    data = framed(metadata(1))
    assert examine_request(data, 0, DEFAULTS._replace(frame_bytes=len(data) - 5))[0] is Evidence.NONE
    assert examine_request(data, 0, DEFAULTS._replace(frame_bytes=len(data) - 4))[0] is Evidence.EXACT


def test_a_header_that_fits_before_a_body_that_does_not_is_told_from_other_bytes() -> None:
    data = request("Metadata", 1, 1, "app", topics=[])
    assert evidence(framed(data[:-4] + b"\x7f\xff\xff\xff")) is Evidence.BROKEN
    assert evidence(framed(data[:-4] + b"\xff\xff\xff\xfe")) is Evidence.BROKEN
    nameless = request("Metadata", 1, 1, None, topics=[])
    assert evidence(framed(nameless[:-4] + b"\xff\xff\xff\xfe")) is Evidence.NONE
    control = data.replace(b"app", b"a\x1bp")[:-4] + b"\xff\xff\xff\xfe"
    assert evidence(framed(control)) is Evidence.NONE


@pytest.mark.parametrize("cut", range(1, 3))
def test_a_client_id_may_be_cut_inside_a_character_but_not_end_so(cut: int) -> None:
    data = framed(request("ListGroups", 0, 1, client_id="a\N{EURO SIGN}") + b"\0")
    assert evidence(data[: 4 + 10 + 1 + cut]) is Evidence.MORE
    assert evidence(data.replace(b"\x82\xac", b"\x82\x20")) is Evidence.NONE


def test_random_bytes_are_no_proof() -> None:
    chance = random.Random(11)
    data = chance.randbytes(200_000)
    assert not any(evidence(data, at) is Evidence.EXACT for at in range(0, len(data), 7))


def test_a_response_with_names_in_it_tells_that_it_is_one() -> None:
    assert is_distinctive_response(metadata_answer(1))


def api_versions(count: int) -> bytes:
    keys = [{"apiKey": key, "minVersion": 0, "maxVersion": 1} for key in range(count)]
    return response("ApiVersions", 0, 1, errorCode=0, apiKeys=keys)


def test_a_list_of_apis_tells_it_only_if_it_is_one_that_a_broker_may_have() -> None:
    assert is_distinctive_response(api_versions(20))
    assert not is_distinctive_response(api_versions(3))
    assert not is_distinctive_response(api_versions(0)), "ten bytes, nearly all of them zero"


def test_numbers_alone_do_not_tell_it() -> None:
    assert not is_distinctive_response(response("Heartbeat", 0, 1, errorCode=0))
    assert not is_distinctive_response(bytes(20))
    assert not is_distinctive_response(b"")


@pytest.mark.parametrize("length", [1, 126, 127, 249, 10_000])
def test_the_beginning_of_a_produce_request_is_evidence_whatever_its_transactional_id(length: int) -> None:
    data = framed(
        request(
            "Produce", 9, 1, transactionalId="t" * length, acks=-1, timeoutMs=1500,
            topicData=[{"name": "orders", "partitionData": [{"index": 0, "records": "AAAA" * 600}]}],
        )
    )  # fmt: skip
    assert evidence(data[: 200 + length]) is Evidence.HEADER
    acks = data.index(b"\xff\xff\0\0\x05\xdc")
    assert evidence(data[:acks] + b"\x7f\xff" + data[acks + 2 : 200 + length]) is Evidence.NONE
