"""Record sets keep their form, their checksums hold, and nothing that was said is left."""

from __future__ import annotations

import pytest

from kdissect.limits import DEFAULTS
from kdissect.model import Node
from kdissect.record.batch import CODEC_BITS
from kdissect.record.records import Record
from kdissect.record.sets import read_record_set
from kdissect.record.write import write_batch, write_message_set
from kdissect.scrub.allowed import MARK
from kdissect.scrub.record_sets import RecordSetScrubber
from kdissect.scrub.values import Scrubber
from tests.scrub.runs import KEY

RECORDS = [
    Record(7, 1_700_000_000_000, b"customer-4711", b'{"name": "Alice", "card": "4111 1111"}'),
    Record(8, 1_700_000_000_001, b"customer-4711", None),
    Record(9, 1_700_000_000_002, None, b"second value of hers"),
    Record(10, 1_700_000_000_003, b"customer-4712", b""),
]
WORDS = (b"customer", b"Alice", b"4111", b"second value", b"trace-of-alice", b"span-0815")


def nothing(nodes: list[Node], data: bytes, out: bytearray) -> None:
    """Nothing embedded is expected."""


def made_of(data: bytes, scrubber: Scrubber | None = None) -> bytes:
    return RecordSetScrubber(scrubber or Scrubber(KEY), DEFAULTS, nothing).scrubbed(data, is_metadata=False)


def form(data: bytes) -> list[dict[str, object]]:
    """What of a set does not change, apart from what compression hides."""
    names = (
        "position",
        "size",
        "magic",
        "attributes",
        "header_offset",
        "last_offset",
        "max_timestamp",
        "crc_valid",
    )
    found = read_record_set(data)
    return [{name: getattr(batch, name) for name in names} for batch in found.batches]


def shapes(data: bytes) -> list[tuple[object, ...]]:
    """What of records does not change."""
    records = read_record_set(data).records()
    return [
        (
            each.offset,
            each.timestamp,
            *(None if part is None else len(part) for part in (each.key, each.value)),
        )
        for each in records
    ]


SETS = {
    "magic 0": write_message_set([each._replace(timestamp=-1) for each in RECORDS], 0),
    "magic 1": write_message_set(RECORDS, 1),
    "magic 2": write_batch(RECORDS, producer_id=4, base_sequence=3, transactional=True),
    "headers": write_batch([RECORDS[0]._replace(headers=((("trace-of-alice"), b"span-0815"),))]),
}


@pytest.mark.parametrize("name", SETS)
def test_records_keep_their_form(name: str) -> None:
    made = made_of(SETS[name])
    assert form(made) == form(SETS[name])
    assert shapes(made) == shapes(SETS[name])
    assert not read_record_set(made).faults


@pytest.mark.parametrize("name", SETS)
def test_nothing_that_was_said_is_left(name: str) -> None:
    scrubber = Scrubber(KEY)
    made = made_of(SETS[name], scrubber)
    assert not any(word in made for word in WORDS)
    assert b"customer-4711" in scrubber.taken.texts


@pytest.mark.parametrize("name", ["magic 0", "magic 1", "magic 2"])
def test_equal_keys_stay_equal(name: str) -> None:
    first, second, _, other = read_record_set(made_of(SETS[name])).records()
    assert first.key == second.key != other.key


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_compressed_records_become_filler_that_is_marked(magic: int, codec: int) -> None:
    if magic < 2 and codec == 4:
        pytest.skip("zstd came with magic 2")
    kept = [each._replace(value=(each.value or b"") * 9) for each in RECORDS]
    if magic < 2:
        kept = [each._replace(timestamp=-1 if magic == 0 else each.timestamp) for each in kept]
    data = write_batch(kept, codec) if magic == 2 else write_message_set(kept, magic, codec)
    scrubber = Scrubber(KEY)
    made = made_of(data, scrubber)
    assert form(made) == form(data)
    assert MARK in made
    assert all(each.key in scrubber.taken.texts for each in kept if each.key)
    assert [batch.attributes & CODEC_BITS for batch in read_record_set(made).batches] == [codec]


def test_a_wrong_checksum_stays_wrong() -> None:
    data = bytearray(SETS["magic 2"])
    data[20] ^= 1
    assert [batch.crc_valid for batch in read_record_set(made_of(bytes(data))).batches] == [False]


@pytest.mark.parametrize("name", SETS)
def test_a_set_that_breaks_off_anywhere_keeps_its_length_and_tells_nothing(name: str) -> None:
    data = SETS[name]
    for end in range(len(data)):
        made = made_of(data[:end])
        assert len(made) == end
        assert not any(word in made for word in WORDS)


@pytest.mark.parametrize("name", SETS)
def test_a_set_with_a_broken_byte_tells_nothing(name: str) -> None:
    data = SETS[name]
    for at in range(len(data)):
        broken = bytearray(data)
        broken[at] ^= 0x55
        made = made_of(bytes(broken))
        assert len(made) == len(data)
        assert not any(word in made for word in WORDS)
