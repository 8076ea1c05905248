"""Rules on transactions."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.connections import Connections
from kdissect.analysis.errors import Errors
from kdissect.analysis.fold import MILLISECOND, SECOND, Row
from kdissect.analysis.rebalances import RebalanceSteps
from kdissect.analysis.transactions import Transactions
from kdissect.analysis.versions import Versions
from kdissect.insight.catalogue import RULES
from kdissect.insight.context import SLEPT, JudgingContext
from kdissect.insight.finding import CRITICAL, INFO, NOTICE, WARNING, Finding
from tests.insight.judged import CAPTURES, judged_file
from tests.insight.made import WHOLE, row, said, unjudged

SEVERITIES = {
    "transaction-hanging": CRITICAL,
    "lso-lag": WARNING,
    "transaction-timed-out": WARNING,
    "producer-fenced": CRITICAL,
    "concurrent-transactions": NOTICE,
    "transactions-tiny": NOTICE,
    "transactions-aborted": WARNING,
    "transaction-refused": WARNING,
    "offsets-outside-transaction": CRITICAL,
    "transaction-by-v1": INFO,
}


def transaction(**values: Any) -> Row:
    defaults = {
        "transactional_id": "pay",
        "client_id": "app",
        "client": "10.0.0.1:5000",
        "begin_ns": 10 * SECOND,
        "end_ns": 11 * SECOND,
        "last_ns": 11 * SECOND,
        "outcome": "committed",
        "partitions": 1,
        "records": 100,
        "retries": 0,
        "retry_ns": 0,
        "timeout_ms": 60_000,
        "exchanges": [1, 2],
    }
    return row(Transactions, **(defaults | values))


def judged(id: str, *rows: Row) -> list[Finding]:
    return said(id, {Transactions: list(rows)})


@pytest.mark.parametrize(("id", "severity"), SEVERITIES.items())
def test_severities_are_the_catalogue_s(id: str, severity: str) -> None:
    assert (RULES[id].severity, RULES[id].category) == (severity, "transactions")
    page = RULES[id].page
    assert page.what
    assert page.why
    assert page.do


def test_an_open_transaction_is_hanging_10_s_after_its_timeout() -> None:
    opened = {"outcome": "open", "end_ns": None}  # the capture ends after 100 s
    assert not judged("transaction-hanging", transaction(**opened, begin_ns=31 * SECOND))
    (found,) = judged("transaction-hanging", transaction(**opened, begin_ns=30 * SECOND))
    assert (found.subject.transactional_id, found.measure) == ("pay", 70)
    assert not judged("transaction-hanging", transaction(begin_ns=1 * SECOND))


def test_or_where_it_holds_readers_back_for_10_s() -> None:
    held = {
        "outcome": "open",
        "held_topic": "t",
        "held_partition": 3,
        "held_offsets": 7,
        "begin_ns": 80 * SECOND,
    }
    assert not judged("transaction-hanging", transaction(**held, held_ns=10 * SECOND - 1))
    (found,) = judged("transaction-hanging", transaction(**held, held_ns=10 * SECOND))
    assert (found.subject.topic, found.subject.partition) == ("t", 3)


@pytest.mark.parametrize(("held_s", "told"), [(16, True), (15, False)])
def test_where_bytes_are_missing_a_transaction_must_hold_readers_back_to_the_end(
    held_s: int, told: bool
) -> None:
    """Its end may be among them, and nobody says so after. If its connection ends in the gap, only other
    connections show that bytes are missing."""
    rows = transaction(
        outcome="open",
        end_ns=None,
        begin_ns=80 * SECOND,
        held_topic="t",
        held_offsets=7,
        held_ns=held_s * SECOND,
    )
    lossy = WHOLE._replace(gap_bytes=9)
    assert said("transaction-hanging", {Transactions: [rows]})
    assert bool(said("transaction-hanging", {Transactions: [rows]}, context=lossy)) == told
    assert bool(unjudged("transaction-hanging", {Transactions: [rows]}, context=lossy)) != told


@pytest.mark.parametrize(
    ("own", "silences", "told"),
    [
        ({"end": "rst"}, (), True),  # all that it sent is known
        ({"end": "open", "last_ns": 29 * SECOND}, (), True),
        ({"end": "open", "last_ns": 20 * SECOND}, (), False),  # its last packets may be missing
        ({"end": "fin", "gap_bytes": 9}, (), False),
        ({"end": "rst"}, ((12 * SECOND, 14 * SECOND),), False),  # it may have connected again
        ({"end": "rst", "client_id": "another"}, (), False),  # nothing is known of its connection
    ],
)
def test_bytes_that_others_lack_leave_a_transaction_open(
    own: dict[str, Any], silences: tuple[tuple[int, int], ...], told: bool
) -> None:
    rows = transaction(
        outcome="open",
        end_ns=None,
        begin_ns=10 * SECOND,
        held_offsets=7,
        held_ns=12 * SECOND,
    )
    mine = {"client_id": rows["client_id"], "gap_bytes": 0, "last_ns": 11 * SECOND}
    facts = {Transactions: [rows], Connections: [row(Connections, **(mine | own))]}
    lossy = WHOLE._replace(gap_bytes=9, last_ns=30 * SECOND, silences=silences)
    assert bool(said("transaction-hanging", facts, context=lossy)) == told
    assert bool(unjudged("transaction-hanging", facts, context=lossy)) != told


def test_an_open_transaction_is_as_old_as_the_clock_proves() -> None:
    opened = transaction(outcome="open", end_ns=None, begin_ns=10 * SECOND, held_ns=0)
    paused = JudgingContext(0, 400 * SECOND, silences=((50 * SECOND, 380 * SECOND),))
    back = JudgingContext(0, 400 * SECOND, set_back=((50 * SECOND, 380 * SECOND),))
    for context in (paused, back):
        assert not said("transaction-hanging", {Transactions: [opened]}, context=context)
        assert unjudged("transaction-hanging", {Transactions: [opened]}, context=context) == [SLEPT]
    held = opened | {"held_ns": 340 * SECOND, "held_topic": "t", "held_partition": 3, "held_offsets": 7}
    for ns, count in ((343 * SECOND, 0), (344 * SECOND, 1)):  # up to 334 s of them were slept
        rows = {Transactions: [held | {"held_ns": ns}]}
        assert len(said("transaction-hanging", rows, context=paused)) == count
    late = paused._replace(last_ns=414 * SECOND)
    (found,) = said("transaction-hanging", {Transactions: [opened]}, context=late)
    assert found.measure == 70


def test_readers_are_held_back_for_5_s() -> None:
    held = {"held_topic": "t", "held_partition": 3, "held_offsets": 7}
    assert not judged("lso-lag", transaction(**held, held_ns=5 * SECOND - 1))
    (found,) = judged("lso-lag", transaction(**held, held_ns=5 * SECOND))
    assert found.message == (
        "Readers of committed records got nothing new from t-3 for 5 s, while up to 7 records waited "
        "there: the transaction pay was open. It was committed in the end."
    )
    assert found.resolved_ns == 11 * SECOND
    assert not judged("lso-lag", transaction(**held, held_ns=9 * SECOND, outcome="timed-out"))
    longer = transaction(**held | {"begin_ns": 20 * SECOND, "end_ns": 28 * SECOND}, held_ns=7 * SECOND)
    (found,) = judged("lso-lag", transaction(**held, held_ns=5 * SECOND), longer)
    assert (found.count, found.measure, found.cost_ns) == (2, 7, 12 * SECOND)
    assert found.message.endswith("2 transactions did so, the worst of them for that long.")
    assert found.resolved_ns == found.last_ns == 28 * SECOND


def test_readers_are_no_longer_held_back_by_what_ended_at_an_unknown_time() -> None:
    held = {"held_topic": "t", "held_partition": 3, "held_offsets": 7, "held_ns": 9 * SECOND}
    for outcome, is_over in (("committed", True), ("aborted", True), ("open", False), ("unknown", False)):
        facts = {Transactions: [transaction(**held, outcome=outcome, end_ns=None, last_ns=14 * SECOND)]}
        (found,) = said("lso-lag", facts, context=JudgingContext(0, 20 * SECOND))
        assert (found.last_ns, found.resolved_ns) == (14 * SECOND, 14 * SECOND if is_over else None), outcome


def test_a_dead_producer_does_not_say_that_it_was_fenced() -> None:
    held = {"held_topic": "t", "held_partition": 3, "held_offsets": 7, "held_ns": 9 * SECOND}
    taken = {"outcome": "fenced", "taken_by_client": "10.0.0.2:5", "taken_by_client_id": "second"}
    (found,) = judged("lso-lag", transaction(**held, **taken))
    assert found.message.endswith("It was aborted when a producer began anew with the same transactional id.")
    assert not judged("lso-lag", transaction(**held, **taken, errors=["PRODUCER_FENCED"]))
    assert judged("producer-fenced", transaction(**held, **taken, errors=["PRODUCER_FENCED"]))


def test_a_transaction_that_ended_otherwise_is_no_timeout() -> None:
    for outcome in ("committed", "aborted", "fenced", "open", "unknown"):
        assert not judged("transaction-timed-out", transaction(outcome=outcome, timeout_ms=3000))


def test_a_timeout_names_the_transaction_and_its_client() -> None:
    (found,) = judged(
        "transaction-timed-out",
        transaction(
            outcome="timed-out", timeout_ms=3000, last_ns=20 * SECOND, errors=["INVALID_PRODUCER_EPOCH"]
        ),
        transaction(),
    )
    assert (found.subject.transactional_id, found.subject.client_id) == ("pay", "app")
    assert found.message == (
        "1 transaction was open for longer than 3 s, so the broker aborted it: readers never see what "
        "was written there. Its next request came 10 s after the beginning and was refused "
        "(INVALID_PRODUCER_EPOCH)."
    )


def test_who_took_the_id_of_a_transaction_that_timed_out_is_named() -> None:
    taken = {"taken_by_client": "10.0.0.2:6000", "taken_by_client_id": "new"}
    (found,) = judged("transaction-timed-out", transaction(outcome="timed-out", timeout_ms=3_000, **taken))
    assert found.message.endswith(" Then new at 10.0.0.2 took the transactional id.")


@pytest.mark.parametrize(
    ("values", "measure"),
    [
        ({"errors": ["INVALID_PRODUCER_EPOCH"]}, 10),  # until its next request
        ({"errors": ["INVALID_PRODUCER_EPOCH"], "timeout_ms": 11_000}, 11),
        ({}, 3),  # the producer died, and nothing shows the end
        ({"timeout_ms": None}, None),
    ],
)
def test_a_transaction_that_timed_out_was_open_for_its_timeout_at_least(
    values: dict[str, Any], measure: float | None
) -> None:
    timed_out = {"outcome": "timed-out", "timeout_ms": 3_000, "last_ns": 20 * SECOND, **values}
    (found,) = judged("transaction-timed-out", transaction(**timed_out))
    assert found.measure == measure


def test_fenced_is_who_was_refused_after_another_took_the_id() -> None:
    taken = {"taken_by_client": "10.0.0.2:6000", "taken_by_client_id": "new"}
    (found,) = judged("producer-fenced", transaction(**taken, outcome="fenced", errors=["PRODUCER_FENCED"]))
    assert (found.subject.client_id, found.subject.client) == ("app", "10.0.0.1")
    assert found.message.startswith(
        "new at 10.0.0.2 began to use the transactional id pay, which app was using"
    )
    assert not judged("producer-fenced", transaction(**taken, outcome="fenced"))  # it never learnt it
    assert not judged("producer-fenced", transaction(outcome="fenced", errors=["PRODUCER_FENCED"]))


CONNECTOR = "connector-producer-files-0"


@pytest.mark.parametrize(
    ("client_id", "taker", "transactional_id", "expired_s", "severity", "group"),
    [
        (CONNECTOR, CONNECTOR, "imports-files-0", 9, NOTICE, "imports"),
        (CONNECTOR, CONNECTOR, "imports-files-0", 11, NOTICE, None),
        (CONNECTOR, CONNECTOR, "other-files-0", 9, NOTICE, None),
        (CONNECTOR, CONNECTOR, "imports-files-1", 9, CRITICAL, None),
        (CONNECTOR, CONNECTOR, "files-0", 9, CRITICAL, None),
        (CONNECTOR, "app", "imports-files-0", 9, CRITICAL, None),
        ("app", "app", "imports-files-0", 9, CRITICAL, None),
    ],
)
def test_a_task_of_connect_is_fenced_by_its_next_run(
    client_id: str, taker: str, transactional_id: str, expired_s: int, severity: str, group: str | None
) -> None:
    taken = {"taken_by_client": "10.0.0.2:6000", "taken_by_client_id": taker, "end_ns": 10 * SECOND}
    names = {"client_id": client_id, "transactional_id": transactional_id}
    expired = {"group": "imports", "step": "expired", "ns": expired_s * SECOND}
    (found,) = said(
        "producer-fenced",
        {
            Transactions: [transaction(**taken, **names, outcome="fenced", errors=["PRODUCER_FENCED"])],
            RebalanceSteps: [row(RebalanceSteps, **expired)],
        },
    )
    assert (found.severity, found.subject.group) == (severity, group)
    assert ("exactly.once.source.support" in found.cause) == (severity == NOTICE)


@pytest.mark.parametrize(
    ("later", "fires"),
    [
        ({}, True),
        ({"producer_epoch": 4}, False),
        ({"client_id": "other"}, False),
        ({"transactional_id": "other"}, False),
        ({"errors": ["CONCURRENT_TRANSACTIONS"]}, False),
    ],
)
def test_who_learns_it_with_the_next_transaction_is_fenced_too(later: dict[str, Any], fires: bool) -> None:
    own = {"producer_id": 7, "producer_epoch": 3}
    taken = {"taken_by_client": "10.0.0.2:6000", "taken_by_client_id": "new", "outcome": "fenced"}
    refused = {"errors": ["INVALID_PRODUCER_EPOCH"], "outcome": "unknown", "begin_ns": None, "end_ns": None}
    seen = {"last_ns": 15 * SECOND, "exchanges": [8, 9], "partitions": 0}
    rows = transaction(**own, **taken), transaction(**{**own, **refused, **seen, **later})
    found = judged("producer-fenced", *rows)
    assert [(each.count, each.last_ns, each.exchanges) for each in found] == (
        [(1, 15 * SECOND, (1, 2, 9))] * fires
    )


def test_waits_count_from_100_ms_or_20_times() -> None:
    waits = {"errors": ["CONCURRENT_TRANSACTIONS"]}
    little = transaction(**waits, retries=19, retry_ns=99 * MILLISECOND)
    assert not judged("concurrent-transactions", little)
    assert judged("concurrent-transactions", transaction(**waits, retries=1, retry_ns=100 * MILLISECOND))
    assert judged("concurrent-transactions", transaction(**waits, retries=20))


def test_tiny_ones_are_many_of_few_records() -> None:
    assert not judged("transactions-tiny", *[transaction(records=10)] * 99)
    assert judged("transactions-tiny", *[transaction(records=10)] * 100)
    assert not judged("transactions-tiny", *[transaction(records=11)] * 100)


def test_aborted_ones_are_a_tenth_of_20_or_all_of_3() -> None:
    lost = transaction(outcome="aborted", errors=["UNKNOWN_SERVER_ERROR"])
    assert not judged("transactions-aborted", lost, lost, *[transaction()] * 4)
    assert not judged("transactions-aborted", lost, *[transaction()] * 19)
    (found,) = judged("transactions-aborted", lost, lost, *[transaction()] * 18)
    assert "2 of 20 transactions (10 %)" in found.message
    assert "after UNKNOWN_SERVER_ERROR)" in found.message
    waited = transaction(outcome="aborted", errors=["CONCURRENT_TRANSACTIONS"])
    (found,) = judged("transactions-aborted", *[waited] * 3)
    assert "(3 aborted by the producer):" in found.message
    assert judged("transactions-aborted", *[lost] * 3)
    assert not judged("transactions-aborted", *[lost] * 2)


def refusal(**values: Any) -> list[Finding]:
    defaults = {"api": "InitProducerId", "error_class": "fatal", "transactional_id": "pay", "count": 2}
    times = {"first_ns": 1, "last_ns": 2, "first_exchange": 3, "last_exchange": 4}
    return said("transaction-refused", {Errors: [row(Errors, **(defaults | times | values))]})


def test_a_producer_that_may_not_begin() -> None:
    (found,) = refusal(error="INVALID_TRANSACTION_TIMEOUT", client_id="app")
    assert found.subject.transactional_id == "pay"
    assert not refusal(error="TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
    assert not refusal(error="PRODUCER_FENCED")
    assert not refusal(error="COORDINATOR_LOAD_IN_PROGRESS", error_class="routine")
    assert not refusal(error="INVALID_TRANSACTION_TIMEOUT", transactional_id=None)


def committing(client_id: str, **rows: int) -> list[Row]:
    return [
        row(Versions, client="10.0.0.1", client_id=client_id, api=api, api_version=1, count=count)
        for api, count in rows.items()
    ]


@pytest.mark.parametrize(
    ("reader", "commits", "expected"),
    [("app", 5, 1), ("app", 4, 0), ("app-in", 5, 1), ("application", 5, 0), ("other", 5, 0)],
)
def test_offsets_are_committed_beside_transactions_by_the_same_program(
    reader: str, commits: int, expected: int
) -> None:
    spoken = committing(reader, Fetch=9, OffsetCommit=commits)
    found = said("offsets-outside-transaction", {Transactions: [transaction()] * 5, Versions: spoken})
    assert len(found) == expected
    inside = [transaction(groups=["g"])] * 5
    assert not said("offsets-outside-transaction", {Transactions: inside, Versions: spoken})


def test_the_first_version_where_brokers_offer_the_second() -> None:
    spoken = [row(Versions, client_id="app", api="EndTxn", api_version=3, offered_max=5)]
    assert said("transaction-by-v1", {Transactions: [transaction(version="TV1")], Versions: spoken})
    spoken[0]["offered_max"] = 4
    assert not said("transaction-by-v1", {Transactions: [transaction(version="TV1")], Versions: spoken})


def test_the_transactions_of_a_real_capture() -> None:
    found = {each.id for each in judged_file(CAPTURES / "transactions-kafka39.pcapng").findings}
    assert found & SEVERITIES.keys() <= {
        "concurrent-transactions",
        "transaction-by-v1",
        "producer-fenced",
        "transaction-timed-out",
    }
