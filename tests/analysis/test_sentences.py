"""Exchanges in sentences, and what belongs to a story."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kdissect.analysis.neighbours import MOST_BEFORE, Beside
from kdissect.analysis.sentences import action_of
from kdissect.analysis.story import Offset, of_client, of_group, of_offset, of_transactional_id
from kdissect.capture.files import read_packets
from kdissect.exchange import Exchange
from tests.analysis.produced import MS, batch, fetch, produce
from tests.cli.run import CAPTURES
from tests.dissecting import dissect


def exchanges(name: str) -> list[Exchange]:
    events = dissect(iter(read_packets([CAPTURES / name])))
    return [each for each in events if isinstance(each, Exchange)]


@pytest.fixture(scope="module")
def transactions() -> list[Exchange]:
    return exchanges("transactions-kafka39.pcapng")


def texts(found: Iterable[Exchange]) -> dict[int, str]:
    return {each.number: action_of(each).text for each in found}


def test_what_transactions_do(transactions: list[Exchange]) -> None:
    said = texts(transactions)
    assert said[16] == "began as producer 8, epoch 0 (its transactions may last 20,000 ms)"
    assert said[30] == "added java39-transactions-out-0 to the transaction"
    assert said[31] == "added the offsets of group java39-transactions-reader to the transaction"
    assert said[33] == "committed java39-transactions-in-0 up to 10, as part of the transaction"
    assert said[34] == "wrote 10 records to java39-transactions-out-0, offsets 0 to 9"
    assert said[39] == "committed the transaction"
    assert said[46] == "aborted the transaction"
    assert said[117] == "tried to abort the transaction: PRODUCER_FENCED"


def test_names_of_topic_ids_are_told() -> None:
    said = texts(exchanges("consumer-group-kip848.pcapng"))
    assert said[17] == "joined the group, and was given 6 partitions: epoch 2"
    assert said[79] == "committed java43-kip848-2 up to 26"


def test_workers_of_connect_are_given_connectors_and_tasks() -> None:
    said = texts(exchanges("incidents/connect-worker-paused.pcap.gz"))
    assert said[247] == "gave 1 member their connectors and tasks"
    assert "asked for its connectors and tasks" in said.values()


def test_members_of_streams_groups_join_are_given_tasks_and_leave() -> None:
    said = texts(exchanges("incidents/streams-topology-changed.pcap.gz"))
    assert said[25] == "joined the group, and was given 0 tasks: epoch 1"
    assert said[38] == "sent a heartbeat, and was given 1 task: epoch 3"
    assert said[89] == "left the group"


def test_what_nobody_confirms_was_sent_and_perhaps_not_written() -> None:
    said = texts(exchanges("sasl-scram.pcapng"))
    assert said[73] == "sent 1 record to sasl-scram-256-1 (no answer was asked for: acks=0)"


def test_topics_that_are_deleted_are_named() -> None:
    said = texts(exchanges("incidents/topic-made-again.pcapng.gz"))
    assert [each for each in said.values() if each.startswith("asked to delete")] == ["asked to delete mr"]


def test_what_failed_ends_with_the_error() -> None:
    said = texts(exchanges("errors.pcapng"))
    assert said[11] == "tried to write 1 record to java43-errors-0: MESSAGE_TOO_LARGE"
    assert said[42] == "tried to commit java43-errors-0 up to 1: OFFSET_METADATA_TOO_LARGE"


@pytest.mark.parametrize("name", sorted(each.name for each in CAPTURES.glob("*.pcap*")))
def test_everything_can_be_told(name: str) -> None:
    for each in exchanges(name):
        assert action_of(each).text


def test_a_request_that_was_not_captured_is_of_an_unknown_kind() -> None:
    said = texts(exchanges("midstream.pcapng"))
    assert said[1] == "sent a request of an unknown kind (the request was not captured)"


def test_equal_lines_of_a_connection_are_one(transactions: list[Exchange]) -> None:
    story = of_transactional_id("java39-transactions-tx")
    for each in transactions:
        story.feed(each)
    lines = story.lines_in_order()
    assert [line.ns for line in lines] == sorted(line.ns for line in lines)
    by_connection: dict[int, str] = {}
    for line in story.lines:
        assert by_connection.get(line.connection) != line.kind
        by_connection[line.connection] = line.kind
    belonging = [each for each in transactions if "java39-transactions-tx" in each.transactional_ids]
    assert sum(line.count for line in lines) == len(belonging)
    assert "java39-transactions-hang" in story.names


def test_the_story_of_an_offset() -> None:
    story = of_offset(Offset("java43-basic", 1, 82))
    for each in exchanges("basic-kafka43.pcapng"):
        story.feed(each)
    assert [line.text for line in story.lines_in_order()] == [
        "wrote it, with offsets 81 to 88 of java43-basic-1",
        "read it, with offsets 81 to 88 of java43-basic-1",
        "group java43-basic-group committed 141, past this record",
        "group java43-basic-group went back to 3: it will read this record again",
    ]


def test_a_fetch_that_waited_for_a_record_read_it_after_it_was_written() -> None:
    story = of_offset(Offset("t", 0, 0))
    read, written = fetch(0, batch("a"), 1), produce(40, batch("a"), offset=0)
    assert read.response is not None
    read.response.frame.last_ns = written.ended_ns + MS
    for each in (written, read):
        story.feed(each)
    assert [(line.text, line.ns) for line in story.lines_in_order()] == [
        ("wrote it, offset 0 of t-0", written.begun_ns),
        ("read it, offset 0 of t-0", read.ended_ns),
    ]


def test_who_asks_for_later_offsets_has_not_read_what_its_answer_begins_with() -> None:
    story = of_offset(Offset("java43-basic", 1, 2))
    for each in exchanges("basic-kafka43.pcapng"):
        story.feed(each)
    assert [line.text for line in story.lines_in_order()][2:] == [
        "group java43-basic-group committed 141, past this record",
        "was sent it, with offsets 0 to 7 of java43-basic-1, and leaves it out: it asked for 3 and later",
    ]


def test_a_member_of_a_share_group_has_read_what_it_was_given() -> None:
    """Its answers have whole batches, with records that others were given."""
    told = {}
    for offset in (11, 12):
        story = of_offset(Offset("java43-share-2", 2, offset))
        for each in exchanges("share-group-kafka43.pcapng"):
            story.feed(each)
        told[offset] = [(line.text, line.count) for line in story.lines_in_order()[1:]]
    it = "it, with offsets 10 to 20 of java43-share-2-2"
    assert told[12] == [(f"read {it}", 3)]
    assert told[11] == [(f"read {it}", 1), (f"was sent {it}, but was not given it", 2)]


def test_a_client_is_an_id_or_an_address(transactions: list[Exchange]) -> None:
    for name in ("tx", "127.0.0.1"):
        story = of_client(name)
        for each in transactions:
            story.feed(each)
        assert story.lines
    story = of_group("nobody")
    for each in transactions:
        story.feed(each)
    assert not story.lines


def test_what_led_to_an_exchange_and_followed(transactions: list[Exchange]) -> None:
    (subject,) = [each for each in transactions if each.number == 46]
    beside = Beside(subject)
    for each in transactions:
        beside.feed(each)
    assert [each.number for each in beside.before] == [42, 43, 44, 45]
    assert len(beside.before) == MOST_BEFORE
    assert [each.number for each in beside.after][:2] == [53, 54]
    assert all("java39-transactions-tx" in each.transactional_ids for each in beside.after)
