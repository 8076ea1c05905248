"""Marks of a transactional id ─► its transactions: the begin of each, its content, and its end.

The messages that show an end:

* EndTxn that is answered without an error. One without an answer counts if the same producer is seen to begin
  another transaction, and nothing else can have ended this one. Otherwise the outcome is unknown: the EndTxn
  may have been refused.
* InitProducerId of a producer that begins: it takes the transactional id over and ends the open transaction
  (fenced). If the transaction was older than its timeout and the answer is good at once, no transaction was
  open any more.
* A refusal (PRODUCER_FENCED, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE): after the timeout it timed out;
  before it, somebody took over who was not captured.
* A marker in a partition without an EndTxn: the coordinator ended the transaction. An ABORT after the timeout
  is a timeout.
* The producer's next epoch (KIP-890), or a partition that is added again: its end was not captured.

Unknown values stay None. A transaction whose begin was not captured has no begin. Only captured data is
counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from kdissect.analysis.fold import SECOND
from kdissect.analysis.packed import packed
from kdissect.analysis.transaction import ABORTED, COMMITTED, FENCED, TIMED_OUT, UNKNOWN, Transaction
from kdissect.analysis.transaction_marks import ADD, END, INIT, OFFSETS, PRODUCE, TOLD, Mark, Marker, Place
from kdissect.protocol.errors import RETRIABLE, errors

REFUSALS = frozenset(
    ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE", "TRANSACTION_TIMED_OUT")
)
"""Errors that mean for a producer that its transaction is over."""
_BUSY = "CONCURRENT_TRANSACTIONS"
CLEANUP_NS = 10 * SECOND
"""The longest time between two searches of a coordinator for transactions that are too old
(``transaction.abort.timed.out.transaction.cleanup.interval.ms``)."""
_ENDING = ("PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence")
_REFUSED_COMMITS = 4
"""From this version of EndTxn on, a coordinator may refuse a commit (TRANSACTION_ABORTABLE). The producer
then aborts at the same epoch."""
_LOST = ("not captured", "gap", "skipped", "evicted")
"""The reasons for a missing answer that may nevertheless have come."""


@packed
@dataclass(slots=True)
class _Producer:
    """The known facts of the producer that holds the id."""

    timeout_ms: int | None = None
    is_known: bool = False
    """Whether nothing was open when it began, so that all its later requests are captured."""
    begun: Mark | None = None
    """Its InitProducerId."""


class Machine:
    """Processes the marks of one transactional id, in order."""

    def __init__(self, markers: dict[int, list[Marker]]) -> None:
        self._markers = markers
        self.done: list[Transaction] = []
        self._open: Transaction | None = None
        self._producer = _Producer()

    def run(self, marks: Sequence[Mark]) -> list[Transaction]:
        """All transactions, in the order in which they began."""
        by_clients = any(each.kind in (ADD, PRODUCE, OFFSETS, END) for each in marks)
        for mark in marks:
            if mark.kind == INIT:
                self._init(mark)
            elif mark.kind in (ADD, PRODUCE, OFFSETS):
                self._work(mark)
            elif mark.kind == END:
                self._end(mark)
            elif mark.kind == TOLD:
                self._take_statement(mark, by_clients)
        if self._open is not None:
            self.done.append(self._open)
            self._open = None
        for each in self.done:
            if is_unanswered(each):
                each.begin_ns, each.is_incomplete = None, True
        return [each for each in self.done if each.is_begun]

    def _close(self, outcome: str, ns: int | None, by: str | None) -> None:
        assert self._open is not None
        self._open.end(outcome, ns, by)
        self.done.append(self._open)
        self._open = None

    def _close_open(self, mark: Mark) -> None:
        """Close the open transaction because its producer goes on: by the EndTxn without an answer, if
        nothing else can have ended it; otherwise with an unknown end."""
        found = self._open
        if found is None:
            return
        asked = found.asked
        if asked is None or asked.committed is None:
            self._close(UNKNOWN, None, None)
        elif not _is_next(found, mark):
            self._close(UNKNOWN, None, None)
            if mark.epoch == found.epoch:
                self._producer.is_known = False  # later marks may still be of the same transaction
        elif asked.committed and asked.api_version >= _REFUSED_COMMITS:
            self._close(UNKNOWN, None, None)  # an EndTxn that was not captured may have aborted it
        else:
            self._close(COMMITTED if asked.committed else ABORTED, None, "EndTxn")

    def _init(self, mark: Mark) -> None:
        found = self._open
        good = mark.done_ns is not None and mark.error is None
        if found is not None and mark.error in (None, _BUSY):
            own = not mark.is_new or mark.connection in found.connections
            found.take(mark)
            who = f"InitProducerId of {mark.client_id or mark.client}"
            if found.asked is not None:
                self._close(UNKNOWN, None, who if mark.done_ns is not None else None)
            elif mark.done_ns is None:
                found.taker_client_id, found.taker_client = mark.client_id, mark.client
            elif (good and found.is_late(mark.ns)) or found.is_late(mark.ns, CLEANUP_NS):
                if good and not own:  # otherwise it did not get the id yet
                    found.taker_client_id, found.taker_client = mark.client_id, mark.client
                self._close(TIMED_OUT, None, _after(found))
            else:
                found.taker_client_id, found.taker_client = mark.client_id, mark.client
                self._close(ABORTED if own else FENCED, mark.done_ns, who)
        elif mark.error is not None:
            self._take_refusal(mark)
        if good:
            if found is None and mark.is_new:
                self._taken_idle(mark)
            self._producer = _Producer(mark.timeout_ms, True, mark)

    def _work(self, mark: Mark) -> None:
        found = self._open
        refused = mark.error in REFUSALS
        if found is not None and self._begins_anew(found, mark) and not refused:
            self._close_open(mark)
            found = None
        if found is not None and refused and found.is_of(mark):
            found.take(mark)
            self._over(found, mark)
            return
        if refused or (found is not None and not found.is_of(mark) and not _follows(found, mark)):
            self._take_refusal(mark)
            return
        if found is None:
            found = self._open = self._begun(mark)
        found.take(mark)
        found.connections.add(mark.connection)
        self._count(found, mark)

    def _begun(self, mark: Mark) -> Transaction:
        """A transaction whose first captured request this is."""
        known = self._producer.is_known
        if mark.kind == PRODUCE and mark.version == "TV2" and any(each.sequence > 0 for each in mark.written):
            known = False  # each transaction of version 2 has an epoch of its own, whose sequences begin at 0
        started = Transaction(mark, None, mark.producer_id, mark.epoch)
        started.is_whole = known
        started.timeout_ms = self._producer.timeout_ms
        self._producer.is_known = True
        return started

    def _begins_anew(self, found: Transaction, mark: Mark) -> bool:
        """Whether a request can only be that of a later transaction."""
        if found.asked is not None and mark.ns > found.asked.ns and found.is_of(mark):
            return True
        if _follows(found, mark):
            return True
        is_addition = mark.kind == ADD and mark.client is not None and mark.error is None
        return is_addition and not found.added.isdisjoint(mark.parts)  # a client adds each once

    def _count(self, found: Transaction, mark: Mark) -> None:
        """Add the data of a request."""
        if found.producer_id is None:
            found.producer_id, found.epoch = mark.producer_id, mark.epoch
        key = mark.kind if mark.kind != OFFSETS else f"{OFFSETS} {bool(mark.offsets)}"
        if mark.error is not None and not mark.written:
            found.retries += mark.error in retriable()
            found.refused_at.setdefault(key, mark.done_ns or mark.ns)
            return
        since = found.refused_at.pop(key, None)
        if since is not None and mark.done_ns is not None and mark.error is None:
            found.retry_ns += max(0, mark.done_ns - since)
        if any(each.error is None for each in mark.written) or not mark.written:
            if found.began_by is None:
                found.began_by = mark
                found.begin_ns = mark.ns if found.is_whole else None
            elif _repeats(mark, found.began_by):
                found.begin_ns = None  # the first may have been refused
        found.parts.update(mark.parts)
        if mark.kind == ADD and mark.client is not None and mark.done_ns is not None:
            found.added.update(mark.parts)
        if mark.group is not None:
            found.groups[mark.group] = None
        found.offsets.update(mark.offsets)
        for each in mark.written:
            place = (each.place, each.sequence)
            if each.error is not None:
                found.retries += each.error in retriable()
                continue
            found.parts.add(each.place)
            if each.offset is not None or place not in found.written:
                found.written[place] = each.records, each.size, each.offset

    def _end(self, mark: Mark) -> None:
        found = self._open
        if found is None or not found.is_of(mark):
            if found is not None and _follows(found, mark) and mark.error is None:
                self._close_open(mark)
                found = None
            if found is None and mark.error is None and not self._is_repeated(mark):
                self._unseen(mark)
            else:
                self._take_refusal(mark)
            return
        found.take(mark)
        if mark.committed is not None:
            found.to_commit = mark.committed
        if mark.done_ns is None:
            if mark.missing in _LOST or found.asked is None:
                found.asked = mark
            return
        if mark.error in REFUSALS:
            self._over(found, mark)
        elif mark.error is not None:
            found.retries += mark.error in retriable()
            found.refused_at.setdefault(END, mark.done_ns)
        elif mark.committed is None:
            self._close(UNKNOWN, mark.done_ns, "EndTxn")
        else:
            since = found.refused_at.pop(END, None)
            if since is not None:
                found.retry_ns += max(0, mark.done_ns - since)
            late = not mark.committed and mark.version == "TV2" and found.is_late(mark.ns)
            # then a coordinator also answers without an error if it has already aborted the transaction
            # itself
            if late and (found.is_late(mark.ns, CLEANUP_NS) or self._was_aborted(found, mark.ns)):
                self._close(TIMED_OUT, None, _after(found))
            elif late:
                self._close(UNKNOWN, mark.done_ns, "EndTxn, or the coordinator before EndTxn")
            else:
                self._close(COMMITTED if mark.committed else ABORTED, mark.done_ns, "EndTxn")

    def _was_aborted(self, found: Transaction, ns: int) -> bool:
        """Whether a reader got its ABORT before a time."""
        marker = self.marker_of(found)
        return marker is not None and not marker.committed and marker.ns < ns and marker.place is not None

    def _is_repeated(self, mark: Mark) -> bool:
        """Whether an EndTxn repeats the end of a finished transaction."""
        return bool(self.done) and (self.done[-1].is_of(mark) or mark.done_ns is None)

    def _unseen(self, mark: Mark) -> None:
        """The end of a transaction that was not captured otherwise. If all requests of its producer are
        captured, there was no such transaction."""
        if self._producer.is_known and mark.version != "TV2":
            return
        self._open = Transaction(mark, None, mark.producer_id, mark.epoch)
        self._open.timeout_ms = self._producer.timeout_ms
        self._open.is_incomplete = True
        self._producer.is_known = True
        self._end(mark)

    def _over(self, found: Transaction, mark: Mark) -> None:
        """End a transaction, because its producer got the error that it is over."""
        taker = found.taker_client_id or found.taker_client
        late = found.is_late(mark.ns)
        if found.asked is not None:
            self._close(UNKNOWN, None, None)  # its EndTxn may have been accepted before
        elif taker is not None:
            self._close(FENCED, None, f"InitProducerId of {taker}")
        elif mark.error == "TRANSACTION_TIMED_OUT" or late:
            self._close(TIMED_OUT, None, _after(found))
        elif late is False and mark.error in ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"):
            self._close(FENCED, None, None)
        else:
            self._close(UNKNOWN, None, None)
        self._producer.is_known = False

    def _take_refusal(self, mark: Mark) -> None:
        """Take in a refused request of a former producer: add it to that producer's last transaction."""
        for each in reversed(self.done):
            if each.producer_id is not None and each.is_of(mark) and mark.producer_id is not None:
                each.take(mark)
                return
        begun = self._producer.begun
        if (
            mark.error in REFUSALS
            and begun is not None
            and begun.epoch is not None
            and _follows_begun(begun, mark)
        ):
            lost = Transaction(mark, None, mark.producer_id, mark.epoch)
            lost.take(mark)
            lost.taker_client_id, lost.taker_client = begun.client_id, begun.client
            lost.end(FENCED, None, f"InitProducerId of {begun.client_id or begun.client}")
            self.done.append(lost)

    def _taken_idle(self, mark: Mark) -> None:
        """Note a takeover of the id while no transaction is open."""
        if self.done and mark.connection not in self.done[-1].connections:
            last = self.done[-1]
            if last.taker_client is None:
                last.taker_client_id, last.taker_client = mark.client_id, mark.client

    def _take_statement(self, mark: Mark, by_clients: bool) -> None:
        """Take in a statement of the coordinator."""
        found = self._open
        if found is not None and found.is_of(mark):
            found.state = mark.state
            found.timeout_ms = found.timeout_ms if mark.timeout_ms is None else mark.timeout_ms
            if mark.state == "Ongoing":
                found.is_accepted = True
                if found.begin_ns is None:
                    found.begin_ns = mark.start_ns
                    found.parts.update(mark.parts)
            found.coordinator = mark.coordinator or found.coordinator
        if by_clients and (found is not None or self.done or mark.state != "Ongoing"):
            return
        if mark.state == "Ongoing":
            if found is not None and found.begin_ns != mark.start_ns and mark.start_ns is not None:
                self._close_open(mark)
                found = None
            if found is None:
                found = self._open = Transaction(mark, mark.start_ns, mark.producer_id, mark.epoch)
                found.timeout_ms, found.state = mark.timeout_ms, mark.state
            found.take(mark)
            found.is_told = True
            found.parts.update(mark.parts)
        elif found is not None and mark.state in _ENDING:
            found.take(mark)
            if mark.state.endswith("Commit"):
                self._close(COMMITTED, mark.ns, None)
            elif mark.state == "PrepareEpochFence":
                self._close(FENCED, mark.ns, None)
            else:
                self._close(ABORTED, mark.ns, None)

    def marker_of(self, found: Transaction) -> Marker | None:
        """Its first marker that anybody got. The marker is of its producer, at its epoch or the next one that
        the end gives (KIP-890), after its writes."""
        if found.producer_id is None or found.epoch is None:
            return None
        offsets: dict[Place, int] = {}
        for (place, _), (_, _, offset) in found.written.items():
            if offset is not None:
                offsets[place] = max(offset, offsets.get(place, 0))
        for marker in self._markers.get(found.producer_id, ()):
            if marker.epoch not in (found.epoch, found.epoch + 1) or marker.ns < found.first.ns:
                continue
            if marker.place is None:
                if found.end_ns is None or marker.ns >= found.last_ns:
                    return marker
            elif (
                marker.place in offsets
                and marker.offset is not None
                and marker.offset > offsets[marker.place]
            ):
                return marker
        return None


@cache
def retriable() -> frozenset[str]:
    """Names of errors after which a client asks again."""
    return frozenset(each.name for each in errors().values() if each.error_class == RETRIABLE)


def is_unanswered(found: Transaction) -> bool:
    """Whether no broker is seen to accept any of its requests, because the answers are missing."""
    begun = found.began_by
    return not found.is_accepted and begun is not None and begun.missing not in (None, "capture ended")


def _is_next(found: Transaction, mark: Mark) -> bool:
    """Whether a broker accepts a request of the same producer that only a later transaction sends. In version
    2 of the protocol the end of a transaction gives the next epoch. In version 1 the epoch stays, and a
    coordinator accepts further partitions while the transaction is open. But a client adds each partition
    once."""
    if not mark.is_accepted or found.producer_id is None or found.producer_id != mark.producer_id:
        return False
    if found.epoch is None or mark.epoch is None:
        return False
    if found.version == "TV2":
        return mark.epoch == found.epoch + 1
    return mark.epoch == found.epoch and mark.kind == ADD and not found.added.isdisjoint(mark.parts)


def _follows(found: Transaction, mark: Mark) -> bool:
    """Whether a mark is of a later epoch of the producer."""
    if None in (found.producer_id, found.epoch, mark.producer_id, mark.epoch):
        return False
    assert found.epoch is not None
    assert mark.epoch is not None
    return found.producer_id != mark.producer_id or mark.epoch > found.epoch


def _follows_begun(begun: Mark, mark: Mark) -> bool:
    """Whether a producer began after the producer of a mark, on another connection."""
    if begun.epoch is None or mark.epoch is None or begun.producer_id != mark.producer_id:
        return False
    return mark.epoch < begun.epoch and begun.connection != mark.connection


def _repeats(mark: Mark, earlier: Mark) -> bool:
    """Whether a request repeats an earlier one whose answer was not captured."""
    return (
        earlier.done_ns is None
        and mark.kind == earlier.kind
        and mark.parts == earlier.parts
        and mark.offsets == earlier.offsets
        and {(each.place, each.sequence) for each in mark.written}
        == {(each.place, each.sequence) for each in earlier.written}
    )


def _after(found: Transaction) -> str | None:
    if found.timeout_ms is None:
        return "the coordinator"
    return f"the coordinator, after {found.timeout_ms / 1000:g} s"
