"""What the lengths of records tell of a handshake that nobody can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdissect.capture.files import read_packets
from kdissect.session.conversation import Connection
from kdissect.tls.handshake import TLS_1_3, version_name
from kdissect.tls.seen import ENCRYPTED, SeenHandshake
from tests.dissecting import dissect

CAPTURES = Path(__file__).parents[2] / "captures" / "incidents"
SECOND = 1_000_000_000
CLIENT, BROKER = True, False
Record = tuple[bool, int, int]


def told(records: list[Record], version: int = TLS_1_3) -> list[str]:
    """The alerts that are shown after records: the sender, the length, and when."""
    seen = SeenHandshake()
    seen.version = version_name(version)
    for packet, (is_client, size, ns) in enumerate(records, 1):
        seen.unopened.take(is_client, size, ns, packet)
    return [f"{each['packet']} {each['name']}" for each in seen.summary()["alerts"]]


FLIGHT: Record = (BROKER, 662, 0)
"""The certificate and all that belongs to it."""
FINISHED: Record = (CLIENT, 93, 5)


@pytest.mark.parametrize("size", [19, 35], ids=["without padding", "Java"])
def test_an_alert_alone_after_the_part_of_the_client_is_a_refusal(size: int) -> None:
    assert told([FLIGHT, FINISHED, (BROKER, size, 9)]) == [f"3 {ENCRYPTED}"]
    assert told([FLIGHT, FINISHED, (CLIENT, 41, 6), (BROKER, size, 9)]) == [f"4 {ENCRYPTED}"]


@pytest.mark.parametrize(
    "records",
    [
        [FLIGHT, FINISHED],
        [FLIGHT, FINISHED, (BROKER, 653, 7), (BROKER, 35, 9)],  # tickets, then it closes
        [FLIGHT, FINISHED, (BROKER, 35, 9), (BROKER, 59, 10)],
        [FLIGHT, FINISHED, (CLIENT, 19, 6), (BROKER, 35, 9)],  # the client closes, and is answered
        [FLIGHT, FINISHED, (BROKER, 35, 5 + 2 * SECOND + 1)],  # it was idle
        [FLIGHT, FINISHED, (BROKER, 34, 9)],
        [FLIGHT, (BROKER, 35, 1), FINISHED],
    ],
)
def test_what_else_is_so_short_is_none(records: list[Record]) -> None:
    assert told(records) == []


def test_other_versions_say_their_alerts() -> None:
    assert told([FLIGHT, FINISHED, (BROKER, 35, 9)], 0x0303) == []


def test_a_real_client_without_a_certificate() -> None:
    path = CAPTURES / "tls13-no-client-certificate.pcapng.gz"
    over = [each for each in dissect(iter(read_packets([path]))) if isinstance(each, Connection)]
    assert len(over) == 8
    for each in over:
        assert each.tls is not None
        assert [alert["name"] for alert in each.tls["alerts"]] == [ENCRYPTED]
