"""Whatever a handshake or a record holds, nothing but pieces comes out, in bounded time and memory.

``KDISSECT_FUZZ_RUNS`` says how many mutations are tried; inputs that once broke something are kept in
``CORPUS``.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from kdissect.faults import KINDS
from kdissect.model import Chunk, Fault, Gap
from kdissect.tls.decrypting import Tls
from kdissect.tls.keying import Side
from kdissect.tls.keylog import Secrets
from tests.tls.endpoints import CLIENT, Ends, Flight, Talk, run, segments
from tests.tls.forge import Forged, client_hello, message, record, server_hello
from tests.tls.test_decrypting import TLS12, TLS13

RUNS = int(os.environ.get("KDISSECT_FUZZ_RUNS", "20000"))
PARTS = 8

CORPUS: tuple[list[Flight], ...] = (
    [(0, record(22, message(1, b"")))],
    [(0, record(22, b"\x01\xff\xff\xff"))],
    [(0, record(22, client_hello(bytes(32), (), {43: b"\xff", 16: b"\0", 0: b"\0\0\0"})))],
    [(0, record(22, b""))] * 50,
    [(1, record(22, server_hello(bytes(32), 0x1301, {43: b"\x03\x04"}))), (1, record(23, b""))],
    [(0, record(22, client_hello(bytes(32), (1,), {}))), (1, record(22, server_hello(bytes(32), 1, {})))],
    [(0, record(20, b"\x01")), (0, record(22, bytes(40))), (1, record(21, b"\x02"))],
    [(0, record(22, message(11, b"\0\0\x03\0\0\0")))],
    [(0, record(22, message(11, b"\0\0\x07\0\0\x04abcd")))],
)


def talks() -> list[tuple[Talk | Forged, list[Flight]]]:
    small: list[Flight] = [(0, b"ask" * 30), (1, b"answer" * 60)]
    made: list[Talk | Forged] = [
        Ends(TLS13, mutual=True).talk(small),
        Ends(TLS12, mutual=True).talk(small),
        Ends(TLS12, "AES128-SHA256:@SECLEVEL=0").talk(small),
    ]
    forged = Forged(0x1304, early=True)
    forged.say(CLIENT, "client", b"data", padding=3)
    made.append(forged)
    return [(each, each.flights) for each in made]


def assert_sane(flights: list[Flight], secrets: Secrets, random: Random) -> None:
    machine = Tls(secrets)
    pieces: list[tuple[Side, Chunk | Gap]] = []
    for side, chunk in segments(flights, random.choice((7, 100, 1460, 65_536))):
        is_lost = random.random() < 0.02
        gap = Gap(chunk.offset, len(chunk.data), "lost", chunk.packet, 0)
        pieces.append((side, gap if is_lost else chunk))
    sent = sum(len(chunk.data) for _, chunk in pieces if isinstance(chunk, Chunk))
    out = run(machine, pieces)
    got = sum(len(piece.data) for _, piece in out if isinstance(piece, Chunk))
    assert got <= sent
    assert machine.held_bytes == 0
    for _, piece in out:
        assert not isinstance(piece, Fault) or (piece.layer == "tls" and piece.kind in KINDS)
    machine.summary()


def mutated(flights: list[Flight], random: Random) -> list[Flight]:
    out = list(flights)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(out))
        side, data = out[at]
        changed = bytearray(data)
        what = random.randrange(6)
        limit = len(changed) if random.random() < 0.5 else min(len(changed), 90)
        place = random.randrange(limit + 1)
        if what == 0 and changed:
            changed[place % len(changed)] = random.randrange(256)
        elif what == 1:
            changed[place:place] = random.randbytes(random.randrange(1, 9))
        elif what == 2:
            del changed[place : place + random.randrange(1, 20)]
        elif what == 3:
            changed[place : place + 2] = random.choice((b"\0\0", b"\xff\xff", b"\x00\x01", b"\x40\x00"))
        elif what == 4:
            side = 1 - side
        else:
            other = random.randrange(len(out))
            out[at], out[other] = out[other], out[at]
            continue
        out[at] = (side, bytes(changed))
    return out


@pytest.mark.parametrize("number", range(len(CORPUS)))
def test_what_once_broke_something_or_is_likely_to(number: int) -> None:
    assert_sane(CORPUS[number], Secrets(), Random(0))


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_connections(part: int) -> None:
    random = Random(part)
    known = [(flights, made.key_log) for made, flights in talks()]
    for _ in range(RUNS // PARTS):
        flights, key_log = random.choice(known)
        secrets = Secrets()
        if random.random() < 0.8:
            secrets.add(key_log)
        assert_sane(mutated(flights, random), secrets, random)
