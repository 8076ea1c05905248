"""Batches that one producer sent to one partition → the batches sent again, and the result of each.

With a producer id a batch has a sequence: the same sequence of the same epoch again is the same batch. Some
clients date its records anew each time (KafkaJS). A broker remembers the last five. It does not append them
again, and answers with the earlier offset. A batch without a producer id can be one sent again if the one
before was refused. The same holds if the earlier connection carries nothing more of the partition. If the
earlier one was acknowledged and its connection was used on, the client knew that it was written. Then its
application writes the records again on the later connection, as a source of Connect that starts from an old
position. Nothing that was acknowledged is sent again there. It is one sent again if

* it is the same: checksum, records and bytes; or
* it begins with the same record: by its bytes if nothing is compressed, else by its time. (librdkafka puts
  newer records into the batch that it sends again.) Or
* it is the same except for its time, uncompressed, and no batch like it was acknowledged before. (kafka-go
  dates the records anew each time.)

A batch had been appended before if its offset or an error that brokers give after appending shows it. Without
an answer, the offsets around it decide. That needs a partition that only this producer writes to. There, the
number of offsets between its acknowledged batches must equal the number of records that were sent and not
answered.
"""

from __future__ import annotations

import itertools
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from struct import Struct
from typing import NamedTuple

from kdissect.analysis.fold import SECOND
from kdissect.analysis.packed import packed
from kdissect.protocol.errors import RETRIABLE, error_class

GOOD, REFUSED, UNANSWERED, UNKNOWN, ACKS_0 = range(5)
"""The result of a batch. UNANSWERED: the connection of the Produce request ended. UNKNOWN: the answer was not
captured."""
_APPENDED_CODES = (7, 20)
"""REQUEST_TIMED_OUT and NOT_ENOUGH_REPLICAS_AFTER_APPEND: the leader has appended the batch, but other
replicas did not confirm it."""
WINDOW_NS = 600 * SECOND
"""The longest time after which a batch without a producer id may be sent again."""
PASSED_ON_NS = SECOND // 20
"""The longest time after which a proxy passes a batch on. Clients wait longer before they try again
(``retry.backoff.ms``, 100 ms)."""
HEARD_NS = SECOND
"""If a client writes on a connection so long after an answer, it has got the answer. One that got none closes
the connection."""
_SOLE = 3
"""The number of batches with consecutive offsets that is needed before gaps in the offsets count as the
producer's own."""
_SEQUENCES = 1 << 31


class SentBatch(NamedTuple):
    """A batch in a Produce request, in numbers only."""

    ns: int
    number: int
    connection: int
    epoch: int
    sequence: int
    records: int
    size: int
    crc: int
    codec: int
    """Codec and magic: ``magic * 8 + codec``."""
    base_ms: int
    max_ms: int
    first: int
    """Checksum of the first record's bytes; -1 if they are compressed."""
    state: int
    error: int
    offset: int
    """-1 if unknown."""
    done_ns: int
    """0 without an answer."""
    broker: int
    """A checksum of the broker's address."""


WIDTH = len(SentBatch._fields)
KEPT = Struct(f"{WIDTH}q")
"""The kept form of a batch."""
_NS_AND_NUMBER = itemgetter(0, 1)
CONNECTION, CODEC, STATE, OFFSET = map(SentBatch._fields.index, ("connection", "codec", "state", "offset"))
"""Fields by their position: ``kept[CODEC::WIDTH]`` has the codec of each batch in their kept form."""
_batch_of: Callable[[tuple[int, ...]], SentBatch] = partial(tuple.__new__, SentBatch)
"""A batch from its numbers, without the calls of NamedTuple's own constructor."""


def unpacked(kept: array[int]) -> list[SentBatch]:
    """The batches in their kept form, by time."""
    batches = list(map(_batch_of, KEPT.iter_unpack(kept)))
    if len(batches) > 1:
        batches.sort(key=_NS_AND_NUMBER)
    return batches


@packed
@dataclass(slots=True)
class Account:
    """The results for a producer and a partition."""

    resent: int = 0
    resent_appended: int = 0
    absorbed: int = 0
    unanswered: int = 0
    """Batches sent again to the broker that had left them unanswered when their connection closed."""
    gaps: int = 0
    lost_sequences: int = 0
    overtaken: int = 0
    epochs: int = 0
    given_up: int = 0
    """Batches that were tried for long and never acknowledged."""
    tried_ns: int = 0
    """The longest time from the first to the last try of a batch that was not acknowledged."""
    telling: list[int] | None = None
    """Numbers of exchanges with batches sent again."""

    def note_exchanges(self, *numbers: int) -> None:
        self.telling = [*(self.telling or []), *numbers][:8]


def may_be_again(kept: array[int], has_id: bool) -> bool:
    """Whether one of the batches in their kept form may be one sent again, or tell of others. Without a
    producer id, a producer sends none again on a connection that refused none.

    :param has_id: whether they have a producer id.
    """
    if len(kept) <= WIDTH:
        return False
    return has_id or REFUSED in kept[STATE::WIDTH] or len(set(kept[CONNECTION::WIDTH])) > 1


def account_of(batches: Sequence[SentBatch], has_id: bool, is_sole: bool) -> Account:
    """Examine the batches of one producer and one partition, by time.

    :param has_id: whether they have a producer id.
    :param is_sole: whether no other producer was seen to write to the partition.
    """
    out = Account()
    if len(batches) == 1:  # as mostly
        out.epochs = int(has_id)
        return out
    batches = _without_copies(batches)
    if has_id:
        by_epoch: dict[int, list[SentBatch]] = {}
        for each in batches:
            by_epoch.setdefault(each.epoch, []).append(each)
        out.epochs = len(by_epoch)
        for line in by_epoch.values():
            _with_sequences(line, out)
    else:
        _without(batches, is_sole, out)
    return out


def _without_copies(batches: Sequence[SentBatch]) -> Sequence[SentBatch]:
    """The batches without those that a proxy passed on, if both of its sides were captured."""
    if len({each.connection for each in batches}) < 2:
        return batches
    found: list[SentBatch] = []
    latest: dict[tuple[int, int, int, int], SentBatch] = {}
    for each in batches:
        key = each.crc, each.records, each.sequence, each.offset
        one = latest.get(key)
        if one is not None and one.connection != each.connection and _is_passed_on(one, each):
            continue
        latest[key] = each
        found.append(each)
    return found


def _is_passed_on(one: SentBatch, each: SentBatch) -> bool:
    """Whether a proxy passed a batch on. It is sent on while the first one waits, and answered before it with
    the same offset or error. If neither is answered, it is sent to another broker sooner than a client that
    lost its connection tries again."""
    if each.state != one.state or each.error != one.error:
        return False
    if each.state == UNANSWERED:
        return each.broker != one.broker and each.ns - one.ns < PASSED_ON_NS
    is_answered = each.state == REFUSED or (each.state == GOOD and each.offset >= 0)
    return is_answered and 0 < each.done_ns <= one.done_ns


def _with_sequences(batches: Sequence[SentBatch], out: Account) -> None:
    seen: dict[int, list[SentBatch]] = {}
    expected: int | None = None
    holes: list[tuple[int, SentBatch]] = []
    """The expected sequence number, and the batch that came instead."""
    for each in batches:
        if each.sequence < 0:
            continue
        before = seen.setdefault(each.sequence, [])
        same = [
            one
            for one in before
            if one.records == each.records and (one.crc == each.crc or one.epoch == each.epoch)
        ]
        if same:
            out.resent += 1
            out.unanswered += _is_unanswered(same[-1], each)
            appended = {one.offset for one in same if one.offset >= 0}
            known = error_name_is_duplicate(each.error) or each.offset in appended
            if known:
                out.absorbed += 1
            elif each.offset >= 0 and appended:
                out.resent_appended += each.records
            out.note_exchanges(same[-1].number, each.number)
        before.append(each)
        following = (each.sequence + each.records) % _SEQUENCES
        if expected is not None and not same:
            ahead = (each.sequence - expected) % _SEQUENCES
            if 0 < ahead < _SEQUENCES // 2 and each.state != UNKNOWN:
                holes.append((expected, each))
            if ahead >= _SEQUENCES // 2:
                continue  # before the expected number: a part of an earlier batch
        if not same or expected is None:
            expected = following
    brought = sorted(_brought(batches)) if holes else []
    for start, each in holes:
        lost = _never_written(start, (each.sequence - start) % _SEQUENCES, brought)
        if lost:
            out.gaps += 1
            out.lost_sequences += lost
            out.note_exchanges(each.number)
    for tries in seen.values():
        _given_up(tries, batches, out)


def _brought(batches: Sequence[SentBatch]) -> Iterator[tuple[int, int]]:
    """The first sequence number and the number of records of each batch that the broker has, or may have."""
    for each in batches:
        if each.sequence >= 0 and (each.state in (GOOD, UNKNOWN) or error_name_is_duplicate(each.error)):
            yield each.sequence, each.records


def _never_written(start: int, count: int, brought: list[tuple[int, int]]) -> int:
    """The number of sequence numbers in a range that no batch brought to the broker, before or after the
    unexpected batch: a client may send a batch later that got lost with its connection."""
    first = bisect_left(brought, (start, 0))
    lost = at = 0
    for index in range(first, first + len(brought)):
        sequence, records = brought[index % len(brought)]  # numbers begin again at 0 after the last one
        begin = (sequence - start) % _SEQUENCES
        if begin >= count:
            break
        lost += max(0, begin - at)
        at = max(at, begin + records)
    return lost + max(0, count - at)


def _is_unanswered(earlier: SentBatch, again: SentBatch) -> bool:
    return earlier.state == UNANSWERED and earlier.broker == again.broker


def error_name_is_duplicate(code: int) -> bool:
    """Whether a code is DUPLICATE_SEQUENCE_NUMBER."""
    return code == 46


def _given_up(tries: Sequence[SentBatch], batches: Sequence[SentBatch], out: Account) -> None:
    """Count a batch that was tried several times and never acknowledged, though its producer went on."""
    if len(tries) < 3 or any(each.state not in (REFUSED, UNANSWERED) for each in tries):
        return
    if batches[-1].ns <= tries[-1].ns and tries[-1].state == UNANSWERED:
        return  # its tries may continue
    out.given_up += 1
    out.tried_ns = max(out.tried_ns, tries[-1].ns - tries[0].ns)
    out.note_exchanges(tries[0].number, tries[-1].number)


def _without(batches: Sequence[SentBatch], is_sole: bool, out: Account) -> None:
    """Examine batches without a producer id, which are identified by their content."""
    if len({each.connection for each in batches}) < 2 and REFUSED not in [each.state for each in batches]:
        return  # as mostly: the producer had no reason to send one again
    last_of = {each.connection: (each.ns, each.number) for each in batches}
    by_crc: dict[tuple[int, int, int], list[int]] = {}
    by_first: dict[tuple[int, int], list[int]] = {}
    by_time: dict[tuple[int, int], list[int]] = {}
    by_look: dict[tuple[int, int, int], list[int]] = {}
    again: set[int] = set()
    anew: set[int] = set()
    """Connections on which the application writes records again although its client knew that they were
    written."""
    tries: dict[int, list[SentBatch]] = {}
    rest: tuple[int, SentBatch, int] | None = None
    """Records of a batch sent again that are still to come: their number, the batch, and the connection."""
    for at, each in enumerate(batches):
        keys = ((each.crc, each.records, each.size), (each.base_ms, each.first), (each.base_ms, each.codec))
        candidates = [by_crc.get(keys[0], ()), by_first.get(keys[1], ()) if each.first >= 0 else ()]
        if each.first < 0 and each.base_ms >= 0:
            candidates.append(by_time.get(keys[2], ()))
        look = by_look.setdefault((each.first, each.records, each.size), [])
        if each.first >= 0 and all(batches[one].state in (REFUSED, UNANSWERED) for one in look):
            candidates.append(look)
        known = [one for some in candidates for one in reversed(some) if one not in again]
        if any(_is_heard(batches[one], each, last_of) for one in known):
            anew.add(each.connection)
        first = next(
            (
                one
                for one in known
                if _was_lost(batches[one], each, last_of)
                and (batches[one].state != GOOD or each.connection not in anew)
            ),
            None,
        )
        look.append(at)
        by_crc.setdefault(keys[0], []).append(at)
        if each.first >= 0:
            by_first.setdefault(keys[1], []).append(at)
        elif each.base_ms >= 0:
            by_time.setdefault(keys[2], []).append(at)
        if first is not None:
            out.resent += 1
            out.unanswered += _is_unanswered(batches[first], each)
            chain = tries.setdefault(first, [batches[first]])
            chain.append(each)
            tries[at] = chain
            left, rest = each.records, None
            for one in _batches_with(batches, first, at):
                again.add(one)
                earlier = batches[one]
                shared = min(left, earlier.records)
                left -= shared
                if _was_appended(batches, one, at, is_sole) and each.state in (GOOD, ACKS_0):
                    out.resent_appended += shared
                    rest = (earlier.records - shared, earlier, each.connection)
                if left <= 0:
                    break
            if _overtaken(batches, first, at):
                out.overtaken += 1
            out.note_exchanges(batches[first].number, each.number)
        elif rest is not None and rest[0] and each.connection == rest[2] and each.base_ms <= rest[1].max_ms:
            shared = min(rest[0], each.records)
            out.resent_appended += shared if each.state in (GOOD, ACKS_0) else 0
            rest = (rest[0] - shared, rest[1], rest[2])
    for chain in {id(each): each for each in tries.values()}.values():
        _given_up(chain, batches, out)


def _was_lost(earlier: SentBatch, each: SentBatch, last_of: dict[int, tuple[int, int]]) -> bool:
    """Whether a producer had reason to send an earlier batch again."""
    if each.ns - earlier.ns > WINDOW_NS or earlier.state == ACKS_0 or earlier.number == each.number:
        return False
    if earlier.state == REFUSED:
        return earlier.done_ns <= each.ns and error_class(earlier.error) == RETRIABLE
    return earlier.connection != each.connection and last_of[earlier.connection] < (each.ns, each.number)


def _is_heard(earlier: SentBatch, each: SentBatch, last_of: dict[int, tuple[int, int]]) -> bool:
    """Whether a producer that sends a batch on another connection knew that it had been written."""
    return (
        earlier.state == GOOD
        and earlier.connection != each.connection
        and last_of[earlier.connection][0] >= earlier.done_ns + HEARD_NS
    )


def _batches_with(batches: Sequence[SentBatch], first: int, until: int) -> Iterator[int]:
    """The batch at ``first``, and those after it on its connection, which are sent again with it."""
    yield first
    for at in range(first + 1, until):
        if batches[at].connection == batches[first].connection:
            yield at


def _was_appended(batches: Sequence[SentBatch], one: int, again: int, is_sole: bool) -> bool:
    """Whether a batch was already in the log before it was sent again."""
    batch = batches[one]
    if batch.offset >= 0:
        return batches[again].offset not in (batch.offset, -1) or batches[again].state == ACKS_0
    if batch.state == REFUSED:
        return batch.error in _APPENDED_CODES
    if not is_sole or batch.state != UNANSWERED or batches[again].offset < 0:
        return False
    answered = [each for each in batches[:one] if each.offset >= 0][-_SOLE - 1 :]
    if len(answered) <= _SOLE or any(
        each.offset + each.records != following.offset for each, following in itertools.pairwise(answered)
    ):
        return False
    between = sum(
        each.records for each in batches[one:again] if each.state == UNANSWERED and each.ns >= answered[-1].ns
    )
    return batches[again].offset - (answered[-1].offset + answered[-1].records) == between > 0


def _overtaken(batches: Sequence[SentBatch], first: int, at: int) -> bool:
    """Whether a batch sent in between is in the log before one that was refused at first."""
    each = batches[at]
    if each.state != GOOD or batches[first].state != REFUSED or batches[first].error in _APPENDED_CODES:
        return False
    return any(
        one.state == GOOD and one.crc != each.crc and 0 <= one.offset < each.offset
        for one in batches[first + 1 : at]
    )
