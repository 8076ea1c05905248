"""Damage TLS at random: whatever a handshake, a record or a certificate holds, there come pieces and faults,
in bounded time and memory, and no byte comes out that was not said.

    python -m tests.tls.mutate --count 1000000 [--seed 0]

Every mutation has a seed of its own, which is printed when it fails; ``--only SEED`` runs that one again.
What is damaged are connections of OpenSSL that were kept (``tests/data/tls/talks.json``, written anew by
``--record``), and such as :mod:`tests.tls.forge` makes, whose encrypted messages are damaged before they are
sealed. Inputs that once broke something are kept in :data:`KEPT` and :data:`CORPUS`.
"""

from __future__ import annotations

import argparse
import json
import random
import ssl
import sys
import time
import traceback
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from kdissect.faults import KINDS
from kdissect.limits import Limits
from kdissect.model import Chunk, Fault, Gap
from kdissect.tls.crypto import read_certificate
from kdissect.tls.decrypting import Piece, Tls
from kdissect.tls.handshake import CERTIFICATE, Messages, read_certificates
from kdissect.tls.keylog import TlsSecrets
from tests.tls.endpoints import BROKER, CLIENT, Ends, Flight, segments, streams
from tests.tls.forge import Forged, client_hello, extensions, message, record, server_hello, vector

TALKS = Path(__file__).parents[1] / "data" / "tls" / "talks.json"

SLOWEST_S = 5.0
"""A mutation that takes longer is a failure: its few kilobytes take a few milliseconds."""

WAIT_BYTES = 20_000

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
"""Connections that once broke something, or are likely to."""

KEPT: tuple[str, ...] = ()
"""Seeds of mutations that once failed."""


class Known(NamedTuple):
    """A connection, and what is known of it."""

    flights: list[Flight]
    key_log: bytes
    said: tuple[bytes, bytes]


def recorded() -> list[Known]:
    """Connections between two ends of OpenSSL, made now."""
    small: list[Flight] = [(CLIENT, b"ask" * 30), (BROKER, b"answer" * 60)]
    ends = (
        Ends(mutual=True),
        Ends(ssl.TLSVersion.TLSv1_2, mutual=True),
        Ends(ssl.TLSVersion.TLSv1_2, "AES128-SHA256:@SECLEVEL=0"),
        Ends(ssl.TLSVersion.TLSv1_2, "ECDHE-RSA-CHACHA20-POLY1305:@SECLEVEL=0"),
    )
    talks = [each.talk(small) for each in ends]
    return [Known(made.flights, made.key_log, (bytes(made.said[0]), bytes(made.said[1]))) for made in talks]


@cache
def talks() -> tuple[Known, ...]:
    """The connections that were kept."""
    return tuple(
        Known(
            [(side, b64decode(data)) for side, data in each["flights"]],
            each["key_log"].encode(),
            (b64decode(each["said"][0]), b64decode(each["said"][1])),
        )
        for each in json.loads(TALKS.read_text())
    )


@cache
def certificates() -> tuple[bytes, ...]:
    """The certificates in them that are not encrypted, in DER."""
    found = []
    for each in talks():
        for _, data in each.flights:
            if data[0] == 22:
                size = int.from_bytes(data[3:5], "big")
                for one in Messages().feed(data[5 : 5 + size]):
                    found += read_certificates(one, 0x0303) if one[0] == CERTIFICATE else []
    return tuple(found)


def damage(data: bytes, randomly: random.Random) -> bytes:
    """The bytes with a defect; headers are hit as often as all the rest."""
    out = bytearray(data)
    limit = len(out) if randomly.random() < 0.5 else min(len(out), 90)
    at = randomly.randrange(limit + 1)
    match randomly.randrange(4):
        case 0 if out:
            out[at % len(out)] = randomly.randrange(256)
        case 1:
            out[at:at] = randomly.randbytes(randomly.randrange(1, 9))
        case 2:
            del out[at : at + randomly.randrange(1, 20)]
        case _:
            out[at : at + 2] = randomly.choice((b"\0\0", b"\xff\xff", b"\x00\x01", b"\x40\x00"))
    return bytes(out)


def damaged(flights: list[Flight], randomly: random.Random) -> list[Flight]:
    """The flights with one to four defects: of bytes, of order, of direction."""
    out = list(flights)
    for _ in range(randomly.randint(1, 4)):
        at = randomly.randrange(len(out))
        side, data = out[at]
        match randomly.randrange(6):
            case 4:
                out[at] = (1 - side, data)
            case 5:
                other = randomly.randrange(len(out))
                out[at], out[other] = out[other], out[at]
            case _:
                out[at] = (side, damage(data, randomly))
    return out


def check_connection(randomly: random.Random) -> None:
    """Read a damaged connection, with its secrets, some of them, or none."""
    known = randomly.choice(talks())
    lines = known.key_log.splitlines()
    kept = randomly.choice((lines, lines, lines, randomly.sample(lines, len(lines) // 2), []))
    secrets = TlsSecrets()
    secrets.add(b"\n".join(kept))
    assert_sane(damaged(known.flights, randomly), secrets, randomly, known.said)


def check_sealed(randomly: random.Random) -> None:
    """Read a connection whose messages were damaged before they were sealed: they are authentic."""
    early = randomly.random() < 0.3
    made = Forged(randomly.choice((0x1301, 0x1303, 0x1304)), early=early)
    chain = randomly.choice(certificates())
    certificate = vector(1, b"") + vector(3, vector(3, chain) + vector(2, b""))
    inside = (
        message(8, extensions({16: vector(2, vector(1, b"kafka")), 42: b""})),
        message(11, certificate),
        message(4, bytes(9) + vector(2, b"ticket") + vector(2, b"")),
        message(24, b"\x01"),
        message(20, bytes(32)),
    )
    for _ in range(randomly.randint(1, 6)):
        side = randomly.randrange(2)
        who = ("client", "broker")[side] + randomly.choice(("", " handshake"))
        kind = randomly.choice((22, 22, 22, 21, 23, 20, 99))
        made.say(side, who, damage(randomly.choice(inside), randomly), kind, randomly.randrange(5))
    secrets = TlsSecrets()
    secrets.add(made.key_log)
    assert_sane(made.flights, secrets, randomly)


def check_certificate(randomly: random.Random) -> None:
    """Read a damaged certificate."""
    der = randomly.choice(certificates())
    for _ in range(randomly.randint(1, 4)):
        der = damage(der, randomly)
    read_certificate(der)


def assert_sane(
    flights: list[Flight],
    secrets: TlsSecrets,
    randomly: random.Random,
    said: tuple[bytes, bytes] | None = None,
) -> None:
    """Read flights in segments, of which some are lost, and look at all that comes.

    :param said: all that may come out, if that is known.
    """
    machine = Tls(secrets, Limits(tls_wait_bytes=WAIT_BYTES))
    out: list[Piece] = []
    sent = 0
    for side, chunk in segments(flights, randomly.choice((7, 100, 1460, 65_536))):
        piece: Chunk | Gap = chunk
        if randomly.random() < 0.02:
            piece = Gap(chunk.offset, len(chunk.data), "lost", chunk.packet, 0)
        else:
            sent += len(chunk.data)
        out += machine.feed(side, piece)
        assert machine.held_bytes <= WAIT_BYTES
    out += machine.close()
    assert machine.held_bytes == 0
    streams(out)  # pieces join
    chunks = [piece for _, piece in out if isinstance(piece, Chunk)]
    assert sum(len(piece.data) for piece in chunks) <= sent
    for piece in chunks if said is not None else ():
        assert any(piece.data in each for each in said or ()), "bytes that nobody said"
    for _, each in out:
        assert not isinstance(each, Fault) or (each.layer == "tls" and each.kind in KINDS)
    json.dumps(machine.summary())


CHECKS: tuple[Callable[[random.Random], None], ...] = (
    check_connection,
    check_connection,
    check_sealed,
    check_certificate,
)


def check(seed: str) -> None:
    """Run the mutation of this seed. It fails with whatever kdissect raises, or an AssertionError."""
    randomly = random.Random(seed)
    begin = time.process_time()
    randomly.choice(CHECKS)(randomly)
    seconds = time.process_time() - begin
    assert seconds < SLOWEST_S, f"{seconds:.1f} s"


def failures(seeds: Iterable[str]) -> Iterable[str]:
    """The seeds that fail, each with its traceback on the error stream."""
    for seed in seeds:
        try:
            check(seed)
        except BaseException as error:  # also a panic of what cryptography is made of
            if isinstance(error, KeyboardInterrupt):
                raise
            sys.stderr.write(f"seed {seed} failed\n{traceback.format_exc()}\n")
            yield seed


def record_talks() -> None:
    """Write the connections that are kept anew."""
    rows = [
        {
            "flights": [[side, b64encode(data).decode()] for side, data in each.flights],
            "key_log": each.key_log.decode(),
            "said": [b64encode(data).decode() for data in each.said],
        }
        for each in recorded()
    ]
    TALKS.parent.mkdir(exist_ok=True)
    TALKS.write_text(json.dumps(rows, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tls.mutate", description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="how many mutations (default %(default)s)")
    parser.add_argument(
        "--seed", default="0", help="another seed gives other mutations (default %(default)s)"
    )
    parser.add_argument("--only", metavar="SEED", help="run the mutation of this seed only")
    parser.add_argument("--record", action="store_true", help="keep new connections instead")
    options = parser.parse_args()
    if options.record:
        record_talks()
        return 0
    seeds = [options.only] if options.only else [f"{options.seed}-{n}" for n in range(options.count)]
    begin = time.perf_counter()
    failed = list(failures(seeds))
    seconds = time.perf_counter() - begin
    sys.stdout.write(f"{len(failed)} of {len(seeds)} mutations failed, {seconds:.0f} s\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
