"""The same plaintext as tshark reads with the same secrets, to the byte, where tshark is installed.

Written against tshark 4.0.17. One case is known in which it differs: early data that was rejected.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from kdissect.model import Packet
from kdissect.tls.keylog import TlsSecrets
from tests.lab import TLS_CASES, Case
from tests.tls.endpoints import BROKER, CLIENT, Ends, Flight, Talk
from tests.tls.forge import Forged, message
from tests.tls.reseal import renegotiated
from tests.tls.talks import (
    NO_ENCRYPT_THEN_MAC,
    NO_EXTENDED_MASTER_SECRET,
    TLS12,
    lines,
    secrets_of,
    suites_here,
    talk,
)
from tests.tls.tshark import BROKER_END, TSHARK, Said, ours, packets_of, theirs

pytestmark = pytest.mark.skipif(TSHARK is None, reason="there is no tshark")


def compared(packets: list[Packet], key_log: bytes, folder: Path, broker: bytes = BROKER_END) -> list[Said]:
    """What both read, which must be the same."""
    keys = folder / "keys.log"
    keys.write_bytes(key_log)
    found = ours(packets, secrets_of(key_log))
    assert found == theirs(packets, folder, broker, "-o", f"tls.keylog_file:{keys}")
    return found


def said_of(made: Talk) -> Said:
    return bytes(made.said[0]), bytes(made.said[1])


@pytest.mark.parametrize("name", TLS_CASES)
def test_captures_of_real_brokers(name: str, tmp_path: Path) -> None:
    packets = [item for item in Case(name).packets() if isinstance(item, Packet)]
    key_log = (Case(name).folder / "keys.log").read_bytes()
    (port,) = Case(name).info()["ports"]
    found = compared(packets, key_log, tmp_path, bytes((127, 0, 0, 1)) + port.to_bytes(2, "big"))
    assert all(client and broker for client, broker in found)


def test_every_suite_of_tls_1_2(tmp_path: Path) -> None:
    names = [name for name in suites_here() if "ARIA" not in name and "CAMELLIA" not in name]
    made = [
        Ends(TLS12, f"{name}:@SECLEVEL=0", kind="ec" if "ECDSA" in name else "rsa").talk(lines())
        for name in names
    ]
    found = compared(
        packets_of(each.flights for each in made), b"".join(each.key_log for each in made), tmp_path
    )
    assert dict(zip(names, found, strict=True)) == dict(zip(names, map(said_of, made), strict=True))


def cbc(name: str, options: int) -> Talk:
    ends = Ends(TLS12, f"{name}:@SECLEVEL=0")
    ends.broker.options |= options
    return ends.talk(lines())


def resumed(version: ssl.TLSVersion, tickets: bool) -> Talk:
    ends = Ends(version, tickets=tickets)
    return ends.talk(lines(), ends.talk(lines()).session)


TALKS: dict[str, Callable[[], Talk]] = {
    "TLS 1.3": talk,
    "TLS 1.3, resumed": lambda: resumed(ssl.TLSVersion.TLSv1_3, tickets=True),
    "TLS 1.2, resumed by ticket": lambda: resumed(TLS12, tickets=True),
    "TLS 1.2, resumed by id": lambda: resumed(TLS12, tickets=False),
    "the MAC first": lambda: cbc("AES128-SHA", NO_ENCRYPT_THEN_MAC),
    "the MAC first, SHA-384": lambda: cbc("ECDHE-RSA-AES256-SHA384", NO_ENCRYPT_THEN_MAC),
    "no extended master secret": lambda: cbc("AES128-GCM-SHA256", NO_EXTENDED_MASTER_SECRET),
}


def test_resumption_and_older_ways_of_tls_1_2(tmp_path: Path) -> None:
    made = [make() for make in TALKS.values()]
    found = compared(
        packets_of(each.flights for each in made), b"".join(each.key_log for each in made), tmp_path
    )
    assert found == list(map(said_of, made))


def updated(code: int) -> Forged:
    made = Forged(code)
    update = message(24, b"\x01")
    for turn in range(3):
        made.say(CLIENT, "client", b"ask %d " % turn, padding=turn * 7)
        made.say(BROKER, "broker", b"answer %d " % turn)
        made.say(CLIENT, "client", update, kind=22)
        made.sealers["client"].update()
        made.say(BROKER, "broker", update, kind=22)
        made.sealers["broker"].update()
    made.say(CLIENT, "client", b"last")
    return made


@pytest.mark.parametrize("code", [0x1301, 0x1302, 0x1303, 0x1304, 0x1305])
def test_every_suite_of_tls_1_3_with_padding_and_key_updates(code: int, tmp_path: Path) -> None:
    made = updated(code)
    (found,) = compared(packets_of([made.flights]), made.key_log, tmp_path)
    assert found == (b"ask 0 ask 1 ask 2 last", b"answer 0 answer 1 answer 2 ")


def test_early_data(tmp_path: Path) -> None:
    made = Forged(early=True)
    made.say(CLIENT, "client", b"late")
    (found,) = compared(packets_of([made.flights]), made.key_log, tmp_path)
    assert found == (b"early late", b"")


def test_early_data_that_the_broker_rejects_is_shown_by_tshark_only(tmp_path: Path) -> None:
    """A client sends it again then (RFC 8446, 4.2.10): in tshark it is there twice."""
    made = Forged(early=True, early_accepted=False)
    made.say(CLIENT, "client", b"early ")
    packets, keys = packets_of([made.flights]), tmp_path / "keys.log"
    keys.write_bytes(made.key_log)
    assert ours(packets, secrets_of(made.key_log)) == [(b"early ", b"")]
    assert theirs(packets, tmp_path, BROKER_END, "-o", f"tls.keylog_file:{keys}") == [(b"early early ", b"")]


def test_a_renegotiation(tmp_path: Path) -> None:
    ciphers = "ECDHE-RSA-CHACHA20-POLY1305:@SECLEVEL=0"
    first, second = talk(TLS12, ciphers), Ends(TLS12, ciphers).talk(lines())
    flights: list[Flight] = renegotiated(first, second)
    (found,) = compared(packets_of([flights]), first.key_log + second.key_log, tmp_path)
    assert found == (bytes(first.said[0] + second.said[0]), bytes(first.said[1] + second.said[1]))


@pytest.mark.parametrize("extended", [True, False])
def test_the_key_of_a_broker(extended: bool, tmp_path: Path) -> None:
    ends = Ends(TLS12, "AES128-GCM-SHA256:@SECLEVEL=0")
    ends.broker.options |= 0 if extended else NO_EXTENDED_MASTER_SECRET
    made, key = ends.talk(lines()), tmp_path / "key.pem"
    key.write_bytes(ends.certificate.key_pem)
    secrets = TlsSecrets()
    secrets.add_rsa_key(ends.certificate.key_pem)
    packets = packets_of([made.flights])
    found = theirs(packets, tmp_path, BROKER_END, "-o", f'uat:rsa_keys:"{key}",""')
    assert found == ours(packets, secrets) == [said_of(made)]
