"""What was taken away is found if it is still there, and nothing else is taken for it."""

from __future__ import annotations

import io

import pytest

from kdissect.capture.blocks import WRITER
from kdissect.limits import DEFAULTS
from kdissect.scrub.needles import Needles
from kdissect.scrub.removed import Taken
from kdissect.scrub.search import Search
from tests.kafka import METADATA_RESPONSE_1, Talk, request, response
from tests.scrub.runs import packets_of


def search(
    *taken: bytes, addresses: tuple[bytes, ...] = (), tokens: tuple[bytes, ...] = (), most: int = 1_000
) -> Search:
    kept = Taken(most)
    for pile, found in ((kept.texts, taken), (kept.addresses, addresses), (kept.tokens, tokens)):
        for each in found:
            pile.add(each)
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


NAMES = tuple(b"customer-%04d" % number for number in range(20))


@pytest.mark.parametrize("most", [1, 3, 19, 20, 21])
def test_more_than_memory_holds_is_looked_for_too(most: int) -> None:
    for name in (NAMES[0], NAMES[11], NAMES[-1]):
        assert search(*NAMES, most=most).file(io.BytesIO(bytes(999) + name)) == "at byte 999 of the file"
    assert search(*NAMES, most=most).file(io.BytesIO(b"customer-1234")) is None
    short = (b"abcd", b"bcde", b"orde")
    found = search(*short, addresses=((bytes((10, 0, 0, 2))), bytes(4)), most=most)
    assert "header" in (found.capture(PACKETS, frozenset()) or "")
    assert search(*short, most=most).capture(PACKETS, frozenset()) == "in a message of exchange 1"
    tokens = (b"abcdefgh", b"orders", b"zzzz")
    assert search(*short, tokens=tokens, most=most).capture(PACKETS, frozenset()) is None


def test_hits_beyond_what_is_remembered_are_no_chance() -> None:
    kept = Taken()
    kept.texts.add(b"orde")
    kept.tokens.add(b"orders")
    assert Search(kept, DEFAULTS, most_doubts=0).capture(PACKETS, frozenset()) is not None


def test_a_name_that_is_a_number_is_found() -> None:
    talk = Talk()
    talk.ask(request("Metadata", 1, client_id="billing", topics=[{"name": "2026"}]))
    talk.answer(response("Metadata", 1, **METADATA_RESPONSE_1))
    assert search(b"2026").capture(packets_of(talk), frozenset()) is not None


def test_names_that_begin_alike_cost_no_more_than_others() -> None:
    names = [b"consumer-orders-%06d" % number for number in range(2_000)]
    needles = Needles(names)
    looked_at = [len(found) for grams in needles._indexes.values() for found in grams.values()]
    assert max(looked_at) < 20


@pytest.mark.parametrize(
    "name", [b"127.0.0.1", b"127.0.0.1:9092", b"604800000", b"2.16.1", b"kdissect", b"-changelog"]
)
def test_what_stays_by_itself_is_not_taken_for_a_name(name: bytes) -> None:
    """A client may be called so, too."""
    data = b"\x04" + WRITER + b"\x00\x01127.0.0.1:9092\x00604800000\x002.16.1\x00abc-changelog"
    assert search(name).file(io.BytesIO(data)) is None
