"""What the lengths of records tell of a handshake that nobody can read."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from kdissect.capture.files import read_packets
from kdissect.session.conversation import Connection
from kdissect.tls.decrypting import Tls
from kdissect.tls.handshake import TLS_1_3, version_name
from kdissect.tls.keylog import TlsSecrets
from kdissect.tls.summary import NOTHING_SHOWN, SOMETHING_SHOWN, SeenHandshake
from tests.dissecting import dissect
from tests.tls.endpoints import BROKER as BROKER_END
from tests.tls.endpoints import CLIENT as CLIENT_END
from tests.tls.endpoints import Ends, certificate, segments

CAPTURES = Path(__file__).parents[2] / "captures" / "incidents"
SECOND = 1_000_000_000
CLIENT, BROKER = True, False
Record = tuple[bool, int, int]


def told(records: list[Record], version: int = TLS_1_3, left_ns: int | None = None) -> list[str]:
    """The alerts that are shown after records: the sender, the length, and when."""
    seen = SeenHandshake()
    seen.version, seen.suite = version_name(version), "TLS_AES_256_GCM_SHA384"
    for packet, (is_client, size, ns) in enumerate(records, 1):
        seen.unopened.take(is_client, size, ns, packet)
    return [f"{each['packet']} {each['name']}" for each in seen.summary(left_ns)["alerts"]]


FLIGHT: Record = (BROKER, 662, 0)
"""The certificate and all that belongs to it."""
FINISHED: Record = (CLIENT, 93, 5)
"""Of Java, after the empty list of certificates."""


@pytest.mark.parametrize("size", [19, 35], ids=["without padding", "Java"])
def test_an_alert_alone_after_the_part_of_the_client_is_a_refusal(size: int) -> None:
    assert told([FLIGHT, FINISHED, (BROKER, size, 9)]) == [f"3 {NOTHING_SHOWN}"]
    assert told([FLIGHT, FINISHED, (CLIENT, 41, 6), (BROKER, size, 9)]) == [f"4 {NOTHING_SHOWN}"]


@pytest.mark.parametrize(
    ("first", "shown"),
    [
        *((size, NOTHING_SHOWN) for size in (25, 41, 77, 93)),
        *((size, None) for size in (69, 85, 61, 24, 199)),  # the Finished alone: no certificate was asked for
        *((size, SOMETHING_SHOWN) for size in (200, 340, 1200)),
    ],
)
def test_only_a_broker_that_asked_for_a_certificate_refuses(first: int, shown: str | None) -> None:
    assert told([FLIGHT, (CLIENT, first, 5), (BROKER, 35, 9)]) == ([f"3 {shown}"] if shown else [])


def test_a_client_that_left_first_was_not_refused() -> None:
    records = [FLIGHT, FINISHED, (BROKER, 35, 9)]
    assert told(records, left_ns=10)
    assert told(records, left_ns=9) == told(records, left_ns=6) == []


def test_what_follows_a_loss_is_not_known() -> None:
    seen = SeenHandshake()
    seen.version = version_name(TLS_1_3)
    seen.unopened.lose()
    for packet, record in enumerate([FINISHED, (BROKER, 35, 9)]):
        seen.unopened.take(record[0], record[1], record[2], packet)
    assert not seen.summary()["alerts"]


@pytest.mark.parametrize(
    ("mode", "shows", "name"),
    [
        (ssl.CERT_REQUIRED, False, NOTHING_SHOWN),
        (ssl.CERT_REQUIRED, True, SOMETHING_SHOWN),
        (ssl.CERT_NONE, False, None),
    ],
)
def test_real_ends_show_what_was_refused(mode: ssl.VerifyMode, shows: bool, name: str | None) -> None:
    ends = Ends(tickets=False)
    ends.broker.verify_mode = mode
    ends.broker.load_verify_locations(certificate("rsa", 36_500).path)
    if shows:
        ends.client.load_cert_chain(certificate("ec", 36_500).path)
    over = Tls(TlsSecrets())
    for side, piece in segments(ends.attempt()):
        over.feed(side, piece)
    over.close()
    alerts = over.summary(BROKER_END, 0)["alerts"]
    assert [each["name"] for each in alerts] == ([name] if name else [])
    assert not over.summary(CLIENT_END, 0)["alerts"]


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
        assert [alert["name"] for alert in each.tls["alerts"]] == [NOTHING_SHOWN]
