from __future__ import annotations

import random
import struct
from zlib import crc32

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.limits import DEFAULTS, Limits
from kdissect.record.records import Record
from kdissect.record.sets import read_record_set
from kdissect.record.sound import are_plain, is_sound
from kdissect.record.write import write_batch

PLAIN = write_batch([Record(number, 1_000, b"k", b"value", (("h", b"1"),)) for number in range(5)], 0)


def looked_at_closely(data: bytes, limits: Limits = DEFAULTS) -> bool:
    """Whether reading everything finds nothing wrong."""
    found = read_record_set(data, limits)
    for batch in found.batches:
        batch.check()
    return not found.faults


def again(data: bytes) -> bytes:
    """The same batch with the checksum that its bytes have."""
    return data[:17] + struct.pack(">I", crc32c.crc32c(data[21:])) + data[21:]


def test_batches_that_are_as_they_should_be_are_sound() -> None:
    assert is_sound(PLAIN, 0, len(PLAIN), DEFAULTS)
    assert is_sound(b"before" + 3 * PLAIN + b"behind", 6, 6 + 3 * len(PLAIN), DEFAULTS)
    assert is_sound(b"", 0, 0, DEFAULTS)


@pytest.mark.parametrize("at", [0, 8, 11, 16, 17, 21, 22, 23, 57, 60, 61, len(PLAIN) - 1])
def test_a_changed_byte_is_seen_where_it_matters(at: int) -> None:
    data = bytearray(PLAIN)
    data[at] ^= 0x81
    for changed in (bytes(data), again(bytes(data))):
        if is_sound(changed, 0, len(changed), DEFAULTS):
            assert looked_at_closely(changed)
    assert at == 0 or not is_sound(bytes(data), 0, len(data), DEFAULTS)


@pytest.mark.parametrize("cut", [1, 5, len(PLAIN) - 61, len(PLAIN) - 3])
def test_a_set_that_ends_inside_a_batch_is_looked_at_more_closely(cut: int) -> None:
    data = (PLAIN + PLAIN)[:-cut]
    assert not is_sound(data, 0, len(data), DEFAULTS)


def test_what_is_compressed_is_looked_at_more_closely() -> None:
    packed = write_batch([Record(0, 0, None, b"v" * 100)], 1)
    assert looked_at_closely(packed)
    assert not is_sound(packed, 0, len(packed), DEFAULTS)


def test_of_what_is_compressed_header_and_checksum_are_enough_where_nothing_is_unpacked() -> None:
    packed = write_batch([Record(0, 0, None, b"v" * 100)], 1)
    assert is_sound(packed, 0, len(packed), DEFAULTS, False)
    assert not is_sound(packed[:-1] + b"\0\0", 0, len(packed) + 1, DEFAULTS, False)
    unknown = again(packed[:22] + b"\7" + packed[23:])
    assert not is_sound(unknown, 0, len(unknown), DEFAULTS, False)


def message(magic: int, attributes: int, value: bytes) -> bytes:
    """A message of magic 0 or 1 without a key."""
    stamp = bytes(8) if magic else b""
    body = bytes((magic, attributes)) + stamp + struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", 5, len(body) + 4, crc32(body)) + body


def has_faults(data: bytes, unpacks: bool) -> bool:
    """Whether reading everything of an answer finds something wrong, beside a last batch without its end."""
    found = read_record_set(data)
    for batch in found.batches:
        if unpacks or not batch.is_packed:
            batch.check()
    return any(each.kind != "partial-batch" for each in found.faults)


PACKED = write_batch([Record(0, 0, None, b"v" * 100)], 1)


@pytest.mark.parametrize("last", [message(0, 0, b"value"), message(1, 0, b"value"), PACKED])
def test_an_answer_may_end_inside_a_batch_of_which_no_record_can_be_read(last: bytes) -> None:
    whole = last + last
    for end in range(len(last), len(whole)):
        cut = whole[:end]
        assert is_sound(cut, 0, end, DEFAULTS, False, True)
        assert is_sound(b"b" + cut + b"behind", 1, 1 + end, DEFAULTS, False, True)
        assert end == len(last) or not is_sound(cut, 0, end, DEFAULTS, False)
        assert not has_faults(cut, False)


def test_records_before_the_end_of_an_answer_are_looked_at_more_closely() -> None:
    header = 61
    for end in range(len(PLAIN) + 1, 2 * len(PLAIN)):
        assert is_sound(2 * PLAIN, 0, end, DEFAULTS, False, True) == (end < len(PLAIN) + header)
    assert not is_sound(2 * PACKED, 0, 2 * len(PACKED) - 1, DEFAULTS, True, True)  # it must be unpacked


def test_a_cut_batch_beyond_the_most_batches_of_a_set_is_looked_at_more_closely() -> None:
    most = DEFAULTS._replace(elements=1)
    assert is_sound(2 * PACKED, 0, 2 * len(PACKED) - 1, DEFAULTS, False, True)
    assert not is_sound(2 * PACKED, 0, 2 * len(PACKED) - 1, most, False, True)


@given(st.data())
def test_what_is_sound_at_the_end_of_an_answer_has_no_faults(data: st.DataObject) -> None:
    last = bytearray(
        data.draw(st.sampled_from([message(0, 0, b"value"), message(1, 1, b"v"), PACKED, PLAIN]))
    )
    for _ in range(data.draw(st.integers(0, 3))):
        last[data.draw(st.integers(0, min(27, len(last) - 1)))] = data.draw(st.integers(0, 255))
    answer = PLAIN + bytes(last[: data.draw(st.integers(0, len(last)))])
    unpacks = data.draw(st.booleans())
    if is_sound(answer, 0, len(answer), DEFAULTS, unpacks, True):
        assert not has_faults(answer, unpacks)


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_are_sound_as_they_should_be(magic: int) -> None:
    whole = message(magic, 0, b"value")
    assert looked_at_closely(2 * whole)
    assert is_sound(2 * whole, 0, 2 * len(whole), DEFAULTS)
    for at in range(8, len(whole)):
        changed = whole[:at] + bytes((whole[at] ^ 0x81,)) + whole[at + 1 :]
        assert not is_sound(changed, 0, len(changed), DEFAULTS)
    for cut in range(1, len(whole)):
        assert not is_sound(whole, 0, len(whole) - cut, DEFAULTS)


@pytest.mark.parametrize("magic", [0, 1])
def test_wrappers_are_sound_where_nothing_is_unpacked(magic: int) -> None:
    wrapper = message(magic, 1, b"what is packed")
    assert not is_sound(wrapper, 0, len(wrapper), DEFAULTS)
    assert is_sound(wrapper, 0, len(wrapper), DEFAULTS, False)
    assert not is_sound(message(magic, 4, b"zstd"), 0, len(message(magic, 4, b"zstd")), DEFAULTS, False)


@given(st.binary(max_size=80), st.booleans())
def test_any_bytes_that_are_sound_read_without_a_fault(data: bytes, unpacks: bool) -> None:
    if is_sound(data, 0, len(data), DEFAULTS, unpacks):
        assert looked_at_closely(data) or not unpacks


def test_a_set_is_plain_where_no_batch_is_compressed() -> None:
    packed = write_batch([Record(0, 0, None, b"v" * 100)], 1)
    assert are_plain(b"")
    assert are_plain(2 * PLAIN)
    assert not are_plain(PLAIN + packed)
    assert not are_plain(PLAIN[:-1])
    assert not are_plain(PLAIN, 0, len(PLAIN) - 1)
    assert are_plain(PLAIN, 0, len(PLAIN) + 1000), "no byte beyond the last is looked at"
    assert not are_plain(PLAIN, -1)
    assert not are_plain(message(1, 0, b"value"))


def test_limits_hold() -> None:
    few = DEFAULTS._replace(elements=8)  # the first four records, each with a header
    assert not looked_at_closely(PLAIN, few)
    assert not is_sound(PLAIN, 0, len(PLAIN), few)
    enough = DEFAULTS._replace(elements=9)
    assert looked_at_closely(PLAIN, enough)
    assert is_sound(PLAIN, 0, len(PLAIN), enough)
    batches = 3 * write_batch([Record(0, 0, None, b"v")], 0)
    assert not is_sound(batches, 0, len(batches), DEFAULTS._replace(elements=2))


def test_what_is_sound_has_no_fault_however_it_was_damaged() -> None:
    dice = random.Random(3)
    sound = 0
    for _ in range(20_000):
        data = bytearray(PLAIN)
        for _ in range(dice.randrange(1, 3)):
            data[dice.randrange(len(data))] = dice.choice((0, 1, 2, 0x7F, 0x80, 0xFF, dice.randrange(256)))
        changed = again(bytes(data))
        if is_sound(changed, 0, len(changed), DEFAULTS):
            sound += 1
            assert looked_at_closely(changed)
        elif looked_at_closely(changed):
            # What it does not take for sound without a reason would only cost time.
            assert data[22] & 7 or data[16] != 2
    assert sound > 1_000


@given(st.binary(max_size=200), st.integers(0, 20))
def test_any_bytes_have_an_answer(data: bytes, start: int) -> None:
    start = min(start, len(data))
    if is_sound(data, start, len(data), DEFAULTS):
        assert looked_at_closely(data[start:])
