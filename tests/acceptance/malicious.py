"""What malicious captures cost, and what is said of them.

    python -m tests.acceptance.malicious [--variants 3] [--seed 0] [NAME ...]

Each capture is read by ``kdissect read -T faults`` in a process of its own. Variants are the same bytes in
other shapes of TCP, tunnels and files, several at once, read one after the other in one process.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from kdissect.capture.files import read_packets
from kdissect.capture.segments import SegmentReader
from kdissect.leaves import LEAVES
from kdissect.model import Packet, Segment
from tests.acceptance.compose import Whole, composed
from tests.shared import shared

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
CPU_SECONDS = 2.0
RESIDENT_BYTES = 256 * MIB
LARGEST_VARIED = 100_000
"""Bytes. Of larger captures there are no variants: cut to segments of seven bytes they are other captures, of
hundreds of thousands of packets."""


class Outcome(NamedTuple):
    """What a malicious capture must come to."""

    kinds: frozenset[str]
    """Of its faults, where the connection is taken for Kafka's (a lone broken request proves nothing)."""
    exchanges: int
    """Where it has to be recognised."""
    protocol: str


def faults(*kinds: str, exchanges: int = 1, protocol: str = "kafka") -> Outcome:
    return Outcome(frozenset(kinds), exchanges, protocol)


MALICIOUS = {
    "array_1byte_elems_1M": faults("truncated"),
    "array_2e31_metadata_v1": faults("truncated", exchanges=0, protocol="unknown"),
    "array_neg2_metadata_v1": faults("negative-length", exchanges=0, protocol="unknown"),
    "bomb_gzip_1G": faults("decompression-limit", "bad-record"),
    "bomb_lz4_1G": faults("decompression-limit", "bad-record"),
    "bomb_zstd_1G": faults("decompression-limit", "bad-record"),
    "compact_array_2e32_metadata_v9": faults("truncated", exchanges=0, protocol="unknown"),
    "corr_reuse": faults("duplicate-correlation", exchanges=1000),
    "http_on_9092": faults("bad-size", "skipped", exchanges=0, protocol="http"),
    "len_2e31": faults("bad-size", "skipped", exchanges=0, protocol="unknown"),
    "len_neg": faults("bad-size", "skipped"),
    "len_zero": faults("malformed"),
    "nested_breadth_2e12": faults("nested-compression"),
    "nested_gzip_10": faults("nested-compression"),
    "nested_gzip_100": faults("nested-compression"),
    "nested_gzip_1000": faults("nested-compression"),
    "nested_gzip_2": faults("nested-compression"),
    "pending_100k": faults("too-many-pending", exchanges=100_000),
    "record_zero_len_many": faults("bad-record"),
    "records_count_2e31": faults("record-count"),
    "records_count_neg": faults("record-count", "bad-batch"),
    "snappy_len_lie": faults("bad-compressed-data"),
    "tagged_2e31_zero": faults("malformed", exchanges=0, protocol="unknown"),
    "tagged_2e64": faults("malformed", exchanges=0, protocol="unknown"),
    "tls_on_9092": faults(exchanges=0, protocol="tls"),
    "varint_overlong": faults("malformed", exchanges=0, protocol="unknown"),
    "xerial_neg_chunk": faults("bad-compressed-data"),
    "xerial_zero_chunks": faults("bad-compressed-data"),
}


class Cost(NamedTuple):
    """What reading a capture took."""

    code: int
    """Its exit code."""
    seconds: float
    """Of CPU time; what it takes to start is not in it."""
    peak: int
    """Bytes in memory at most, Python's own in it."""
    kinds: list[str]
    """Of the faults."""
    said: str = ""
    """On stderr."""

    @property
    def is_little(self) -> bool:
        return self.seconds <= CPU_SECONDS and self.peak <= RESIDENT_BYTES


def malicious(name: str) -> Path:
    """The capture of this name."""
    return shared(f"testdata/malicious/{name}.pcap")


def cost(paths: Iterable[Path]) -> list[Cost]:
    """What each capture costs, read one after the other in one process."""
    command = [sys.executable, "-m", "tests.acceptance.malicious", "--here", *map(str, paths)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    found = [Cost(*json.loads(line)) for line in ran.stdout.splitlines()]
    said = [line for line in ran.stderr.splitlines() if not line.startswith("kdissect: no Kafka was found: ")]
    return [each._replace(said="\n".join(said)) for each in found]


def _measure(path: str, output: str) -> tuple[int, float, int, list[str]]:
    """Read a capture in this process."""
    from kdissect.cli import main as kdissect

    Path("/proc/self/clear_refs").write_text("5")  # begin the peak anew
    begin = time.process_time()
    code = kdissect(["read", path, "-d", "tcp.port==9092,kafka", "-T", "faults", "-o", output])
    seconds = time.process_time() - begin
    peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert peak is not None
    with open(output, encoding="ascii") as lines:
        kinds = sorted({json.loads(line)["kind"] for line in lines})
    return code, seconds, int(peak[1]) * 1024, kinds


def variants(name: str, count: int, seed: str) -> Iterator[tuple[str, bytes]]:
    """A capture in other shapes: what they are, and the file."""
    reader = SegmentReader()
    packets = [each for each in read_packets([malicious(name)]) if isinstance(each, Packet)]
    segments = [each for packet in packets if isinstance(each := reader.feed(packet), Segment)]
    whole = Whole(name, tuple(segments), [], [])
    for number in range(count if sum(len(each.payload) for each in segments) <= LARGEST_VARIED else 0):
        yield composed(whole, random.Random(f"{seed}-{name}-{number}"))


def wrong_variants(count: int, seed: str, names: Iterable[str]) -> tuple[int, list[str]]:
    """How many variants there are, and what is wrong with them."""
    wrong: list[str] = []
    paths: list[Path] = []
    named: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for title, file in variants(name, count, seed):
                paths.append(Path(folder, f"{len(paths)}.pcap"))
                paths[-1].write_bytes(file)
                named.append((name, title))
        for (name, title), found in zip(named, cost(paths) if paths else (), strict=True):
            if not found.is_little or found.code or set(found.kinds) != MALICIOUS[name].kinds:
                wrong.append(f"{title}: {found}")
    return len(paths), wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.malicious", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--variants", type=int, default=3, help="of each (default %(default)s)")
    parser.add_argument("--seed", default="0", help="another seed gives other variants (default %(default)s)")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        with tempfile.TemporaryDirectory() as folder:
            for path in options.names:
                sys.stdout.write(json.dumps(_measure(path, f"{folder}/faults")) + "\n")
        return 0
    names, failed = options.names or list(MALICIOUS), 0
    for name in names:
        (found,) = cost([malicious(name)])
        is_fine = found.is_little and set(found.kinds) == MALICIOUS[name].kinds
        failed += not is_fine
        kinds = ", ".join(found.kinds) or f"none; {MALICIOUS[name].protocol}"
        sys.stdout.write(f"{name:32} {found.seconds:5.2f} s CPU {found.peak / MIB:4.0f} MiB  {kinds}")
        sys.stdout.write("\n" if is_fine else "  WRONG\n")
    count, wrong = wrong_variants(options.variants, options.seed, names)
    for each in wrong:
        sys.stdout.write(f"{each}\n")
    where = sys.modules[LEAVES[0]].__file__ or ""
    form = "as sources" if where.endswith(".py") else "compiled"
    sys.stdout.write(f"{failed} of {len(names)} captures wrong, {len(wrong)} of {count} variants; {form}\n")
    return 1 if failed or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
