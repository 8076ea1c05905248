"""What was taken away is found if it is still there, and nothing else is taken for it."""

from __future__ import annotations

import io

import pytest

from kdissect.limits import DEFAULTS
from kdissect.scrub.search import Search
from kdissect.scrub.values import Taken
from tests.kafka import METADATA_RESPONSE_1, Talk, request, response
from tests.scrub.runs import packets_of


def search(*taken: bytes, addresses: tuple[bytes, ...] = (), tokens: tuple[bytes, ...] = ()) -> Search:
    kept = Taken()
    kept.texts.update(taken)
    kept.addresses.update(addresses)
    kept.tokens.update(tokens)
    return Search(kept, DEFAULTS)


TALK = Talk()
TALK.ask(request("Metadata", 1, client_id="billing", topics=[{"name": "orders"}]))
TALK.answer(response("Metadata", 1, **METADATA_RESPONSE_1))
PACKETS = packets_of(TALK)


@pytest.mark.parametrize("place", [0, 1, 1 << 20, (1 << 20) - 5, (1 << 20) + 3, (2 << 20) - 1])
@pytest.mark.parametrize("filler", [b"\0", b"z"])
def test_a_text_is_found_anywhere_in_the_file(place: int, filler: bytes) -> None:
    data = filler * place + b"customer-4711" + filler * 300
    assert search(b"customer-4711").file(io.BytesIO(data)) == f"at byte {place:,} of the file"


def test_bytes_are_found_that_no_number_is_by_chance() -> None:
    secret = bytes(range(0x80, 0x90))
    assert search(secret).file(io.BytesIO(bytes(999) + secret)) is not None
    assert search(b"\0\0\0\0\0\0\0\x05").file(io.BytesIO(bytes(999) + b"\x05")) is None


def test_nothing_is_found_where_nothing_is() -> None:
    assert search(b"customer-4711").file(io.BytesIO(b"customer-4712" * 999)) is None
    assert search().file(io.BytesIO(b"customer-4712" * 999)) is None


@pytest.mark.parametrize("name", [b"orders", b"billing", b"orde"])
def test_a_name_is_found_in_a_message(name: bytes) -> None:
    found = search(name).capture(PACKETS, frozenset())
    assert found is not None
    assert "exchange 1" in found


def test_an_address_is_found_in_a_header() -> None:
    found = search(addresses=(bytes((10, 0, 0, 2)),)).capture(PACKETS, frozenset())
    assert found is not None
    assert "header" in found


def test_an_address_is_found_as_text() -> None:
    taken = search(addresses=(bytes((10, 0, 0, 2)),))
    assert taken.file(io.BytesIO(b"at 10.0.0.2:9092")) is not None


def test_a_name_that_is_part_of_a_word_that_is_kept_is_none() -> None:
    taken = search(b"kafka", b"metadata")
    assert taken.file(io.BytesIO(b"..apache-kafka-java..metadata.version")) is None
    assert taken.file(io.BytesIO(b"..apache-kafka-java..metadata.of.mine")) is not None


def test_a_short_name_in_a_token_is_none() -> None:
    assert search(b"orde", tokens=(b"orders",)).capture(PACKETS, frozenset()) is None
    assert search(b"orde", tokens=(b"hoarders",)).capture(PACKETS, frozenset()) is not None


@pytest.mark.parametrize("taken", [b"xxxxxxxx", b"\0\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\x07"])
def test_filler_and_small_numbers_are_not_looked_for(taken: bytes) -> None:
    assert search(taken).file(io.BytesIO(taken * 9)) is None
