"""What happens to brokers, by what the log of the metadata and heartbeats tell."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kdissect.analysis.cluster_events import Changes, Events
from kdissect.analysis.cluster_history import Event
from kdissect.analysis.cluster_nodes import HEARTBEAT, Nodes
from kdissect.analysis.fold import SECOND

LOG = "BrokerRegistrationChangeRecord"


def told(at_s: int, told_by: str = LOG, **values: Any) -> Event:
    """What is told of broker 3."""
    return Event(at_s * SECOND, at_s, at_s * SECOND, at_s, told_by, "a teller", values)


def changes(*events: Event) -> list[tuple[str, str | None]]:
    """What changed, and how it is after."""
    source = SimpleNamespace(of=lambda kind: {"node": {("a", (3,)): [*events]}}.get(kind, {}), clusters=list)
    found = Changes()
    list(Nodes(cast(Events, source), found).endpoints())
    return [(each.what, each.after) for each in found.in_order()]


REGISTERED, FENCED = told(1, "RegisterBrokerRecord", epoch=7, fenced=False), told(5, fenced=True, epoch=7)


@pytest.mark.parametrize(
    ("later", "after"),
    [
        ((told(15, fenced=False, epoch=7),), "alive"),
        ((told(14, HEARTBEAT, epoch=7), told(15, fenced=False)), "alive"),
        ((told(15, fenced=False),), None),  # it may have started again
        ((told(14, "RegisterBrokerRecord", epoch=8, fenced=True), told(15, fenced=False, epoch=8)), None),
    ],
)
def test_a_broker_that_goes_on_with_its_epoch_was_alive_while_it_was_fenced(
    later: tuple[Event, ...], after: str | None
) -> None:
    assert ("broker-fenced", after) in changes(REGISTERED, FENCED, *later)
