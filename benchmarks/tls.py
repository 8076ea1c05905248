"""How fast TLS records are decrypted: ``python -m benchmarks.tls`` prints MB/s of one core, and the time as a
multiple of the cipher's time.

Records have 16 KiB, as in large responses to Fetch, or 300 bytes, as in small messages, and come in segments.
The cipher alone decrypts the same records in the same run, one call for each, and does nothing else.
"""

from __future__ import annotations

import os
import time

from kdissect.model import Chunk
from kdissect.tls.ciphers import Opener13
from kdissect.tls.decrypting import Tls
from kdissect.tls.keylog import TlsSecrets
from kdissect.tls.records import HEADER_BYTES
from tests.tls.endpoints import BROKER
from tests.tls.forge import Forged

SUITES = {0x1301: "AES-128-GCM", 0x1302: "AES-256-GCM", 0x1303: "ChaCha20-Poly1305"}
CASES = ((16_384, 1_460, 64 << 20), (16_384, 65_160, 64 << 20), (300, 1_460, 8 << 20))
"""The size of a record and of a segment, and the total of plaintext, in bytes."""
RUNS = 5
"""The number of runs; the best one counts."""


def rate(code: int, segment_bytes: int, record_bytes: int, in_all: int) -> tuple[float, float]:
    """MB of plaintext per second: of kdissect, and of the cipher alone."""
    made = Forged(code)
    before = len(made.flights)
    data = os.urandom(record_bytes)
    for _ in range(in_all // record_bytes):
        made.say(BROKER, "broker", data)
    secrets = TlsSecrets()
    secrets.add(made.key_log)
    machine = Tls(secrets)
    offsets = [0, 0]
    for number, (side, flight) in enumerate(made.flights[:before]):
        machine.feed(side, Chunk(offsets[side], flight, number, 0))
        offsets[side] += len(flight)
    records = [flight for _, flight in made.flights[before:]]
    stream = b"".join(records)
    start = offsets[BROKER]
    chunks = [
        Chunk(start + at, stream[at : at + segment_bytes], before + at, 0)
        for at in range(0, len(stream), segment_bytes)
    ]
    count, begun = 0, time.process_time()
    for chunk in chunks:
        for _, piece in machine.feed(BROKER, chunk):
            assert isinstance(piece, Chunk)
            count += len(piece.data)
    took = time.process_time() - begun
    assert count == in_all // record_bytes * record_bytes
    return count / took / 1e6, count / _cipher_seconds(made, records) / 1e6


def _cipher_seconds(made: Forged, records: list[bytes]) -> float:
    """The seconds that the cipher alone takes for these records."""
    opener = Opener13.of(made.suite, made.labels["SERVER_TRAFFIC_SECRET_0"])
    calls = [
        ((opener.iv ^ seq).to_bytes(12, "big"), each[HEADER_BYTES:], each[:HEADER_BYTES])
        for seq, each in enumerate(records)
    ]
    decrypt = opener.aead.open
    begun = time.process_time()
    for nonce, fragment, header in calls:
        assert decrypt(nonce, fragment, header) is not None
    return time.process_time() - begun


def main() -> None:
    """Print a table."""
    for record_bytes, segment_bytes, in_all in CASES:
        for code, name in SUITES.items():
            rates = [rate(code, segment_bytes, record_bytes, in_all) for _ in range(RUNS)]
            ours, cipher = max(each for each, _ in rates), max(each for _, each in rates)
            print(  # noqa: T201
                f"{name:<18} records of {record_bytes:>6,} in segments of {segment_bytes:>6,}: "
                f"{ours:6,.0f} MB/s, {cipher / ours:3.1f} times as long as the cipher alone"
            )


if __name__ == "__main__":
    main()
