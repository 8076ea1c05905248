"""What a handshake shows, in lines: each fact of the column ``tls`` once, warnings first and marked."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.present.connection_lines import connection_tree
from kdissect.present.tls import LONGEST_LINE, tls_lines
from kdissect.session.conversation import Connection
from kdissect.tls.decrypting import Tls
from kdissect.tls.keylog import TlsSecrets
from tests.tls.endpoints import BROKER, Ends, Talk, run, segments
from tests.tls.forge import Forged, record
from tests.tls.talks import TLS12, TLS13, lines


def shown(made: Talk | Forged, secrets: TlsSecrets) -> dict[str, Any]:
    machine = Tls(secrets)
    run(machine, segments(made.flights))
    return machine.summary()


def texts(tls: dict[str, Any]) -> dict[str, str]:
    return {line.name: line.text for line in tls_lines(tls)}


def warnings(tls: dict[str, Any]) -> list[str]:
    return [line.name for line in tls_lines(tls) if line.is_warning]


def test_all_that_a_handshake_says() -> None:
    made = Ends(TLS12, mutual=True).talk(lines())
    tls = shown(made, made.secrets())
    found = texts(tls)
    assert found["version"] == "TLS 1.2"
    assert found["suite"] == tls["suite"]
    assert (found["server name"], found["ALPN"]) == ("kafka.test", "kafka")
    assert found["certificate"] == (
        "CN=broker-rsa; names kafka.test; valid 2023-12-31T00:00:00+00:00 to 2024-12-31T00:00:00+00:00; "
        "issued by itself"
    )
    assert found["client certificate"].startswith("CN=broker-ec; ")
    assert found["alert"].startswith("close_notify (warning) from the ")
    assert warnings(tls) == []


@pytest.mark.parametrize(("days", "said"), [(0, "EXPIRED; CN="), (5, "EXPIRES IN 4 DAYS; CN="), (90, "CN=")])
def test_a_certificate_whose_time_is_over_or_nearly(days: int, said: str) -> None:
    made = Ends(TLS12, days=days).talk(lines())
    tls = shown(made, made.secrets())
    assert texts(tls)["certificate"].startswith(said)
    assert warnings(tls) == (["certificate"] if days < 90 else [])


def test_why_it_is_dark_comes_first() -> None:
    made = Ends(TLS13).talk(lines())
    tls = shown(made, TlsSecrets())
    first, *_ = tls_lines(tls)
    assert (first.name, first.is_warning) == ("dark", True)
    assert first.text.startswith("no secret for client random ")
    assert texts(tls)["certificate"] == "encrypted, as always in TLS 1.3"


def test_what_was_offered_and_not_chosen_is_told() -> None:
    made = Ends(TLS12).talk(lines())
    tls = shown(made, made.secrets())
    tls["offered"] = {"versions": ["TLS 1.3", "TLS 1.2"], "alpn": ["kafka", "h2"]}
    tls["alpn"] = None
    found = texts(tls)
    assert found["version"] == "TLS 1.2; offered: TLS 1.3, TLS 1.2"
    assert found["ALPN"] == "none chosen; offered: kafka, h2"


def test_a_fatal_alert_is_a_warning() -> None:
    made = Forged()
    made.flights[1:] = [(BROKER, record(21, b"\x02\x28"))]
    tls = shown(made, TlsSecrets())
    assert texts(tls)["alert"] == "handshake_failure (fatal) from the broker, packet 2"
    assert "alert" in warnings(tls)


def test_text_from_the_wire_is_safe_and_bounded() -> None:
    made = Ends(TLS12).talk(lines())
    tls = shown(made, made.secrets())
    tls["server_name"] = "\x1b[2Jevil"
    tls["certificates"][0]["names"] = ["x" * 300] * 1000
    found = texts(tls)
    assert found["server name"] == "\\x1b[2Jevil"
    assert len(found["certificate"]) == LONGEST_LINE + 1


def test_the_tree_of_a_connection() -> None:
    made = Ends(TLS13).talk(lines())
    given: dict[str, Any] = dict.fromkeys(Connection._fields)
    given |= {"connection": 7, "client": "a:1", "broker": "b:2", "end": "fin"}
    for secrets, state in ((TlsSecrets(), "not decrypted"), (made.secrets(), "decrypted")):
        first, *rest = connection_tree(Connection(**(given | {"tls": shown(made, secrets)})))
        assert first == f"Connection 7: a:1 → b:2, TLS 1.3, {state}, fin"
        assert all(line.startswith("  ") for line in rest)
