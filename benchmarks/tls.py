"""How fast records are opened: ``python -m benchmarks.tls`` prints MB/s of one core.

Records have 16 KiB, as those of large Fetch responses do, and come in segments.
"""

from __future__ import annotations

import os
import time

from kdissect.model import Chunk
from kdissect.tls.decrypting import Tls
from kdissect.tls.keylog import Secrets
from tests.tls.endpoints import BROKER
from tests.tls.forge import Forged

SUITES = {0x1301: "AES-128-GCM", 0x1302: "AES-256-GCM", 0x1303: "ChaCha20-Poly1305"}
RECORD_BYTES = 16_384
SIZES = (1_460, 65_160)


def rate(code: int, segment_bytes: int, record_bytes: int, in_all: int) -> float:
    """MB of plaintext a second."""
    made = Forged(code)
    before = len(made.flights)
    data = os.urandom(record_bytes)
    for _ in range(in_all // record_bytes):
        made.say(BROKER, "broker", data)
    secrets = Secrets()
    secrets.add(made.key_log)
    machine = Tls(secrets)
    offsets = [0, 0]
    for number, (side, flight) in enumerate(made.flights[:before]):
        machine.feed(side, Chunk(offsets[side], flight, number, 0))
        offsets[side] += len(flight)
    stream = b"".join(flight for _, flight in made.flights[before:])
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
    return count / took / 1e6


def main() -> None:
    """Print a table."""
    for code, name in SUITES.items():
        for size in SIZES:
            best = max(rate(code, size, RECORD_BYTES, 64 << 20) for _ in range(3))
            print(f"{name:<18} records of {RECORD_BYTES:,} in segments of {size:>6,}: {best:7.0f} MB/s")  # noqa: T201
    small = max(rate(0x1301, 1_460, 300, 4 << 20) for _ in range(3))
    print(f"{SUITES[0x1301]:<18} records of 300 in segments of  1,460: {small:7.0f} MB/s")  # noqa: T201


if __name__ == "__main__":
    main()
