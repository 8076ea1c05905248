"""Which rows an event adds to which table."""

from __future__ import annotations

from kdissect.capture.files import read_packets
from kdissect.exchange import Exchange
from kdissect.model import Fault
from kdissect.present.catalogue import TABLES
from kdissect.present.options import Options
from kdissect.present.sources import sources_of
from kdissect.session.conversation import Connection
from tests.cli.run import CAPTURES
from tests.dissecting import dissect

EVENTS = list(dissect(read_packets([CAPTURES / "loss.pcapng"])))


def rows(table: str) -> list[object]:
    return [row for event in EVENTS for row in sources_of(table, event, Options())]


def test_every_event_is_in_the_table_of_its_kind_and_no_other() -> None:
    assert rows("exchanges") == [event for event in EVENTS if isinstance(event, Exchange)]
    assert rows("connections") == [event for event in EVENTS if isinstance(event, Connection)]


def test_faults_of_exchanges_stand_among_all_faults() -> None:
    own = [event for event in EVENTS if isinstance(event, Fault)]
    of_exchanges = [fault for event in EVENTS if isinstance(event, Exchange) for fault in event.faults]
    assert own
    assert len(rows("faults")) == len(own) + len(of_exchanges)


def test_every_table_that_can_be_asked_for_has_its_rows() -> None:
    assert set(TABLES) == {"exchanges", "records", "connections", "faults"}
    assert rows("records")
    assert rows("batches")
