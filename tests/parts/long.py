"""Random captures in parts: ``python -m tests.parts.long [--count N] [--first SEED] [--seconds N]``.

Each is composed of three captures of real clients, with packets that are missing, fragments, clocks that are
set, ports that are used again, and TLS with its secrets somewhere. It is cut in 2, 7 or 40 parts at random
places. All events must be those of one dissector. The exit code is 1 if any are not, or if fewer than nine
parts in ten have become stitched seams.
"""

# ruff: noqa: T201

from __future__ import annotations

import random
import sys
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections import Counter

from kdissect.capture.files import read_packets
from kdissect.capture.reader import Item
from kdissect.model import TLS_KEY_LOG, Secrets
from kdissect.session.briefs import Interest
from tests.cli.run import CAPTURES
from tests.lab import CLEAR_CASES, TLS_CASES, Case
from tests.parts.compositions import composed
from tests.parts.cut import alone, places, stitched, without_rows

_MOST = 1_500
"""Packets of one of the captures."""
_LEAST_SHARE = 0.9


def main() -> int:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1_000, help="how many captures")
    parser.add_argument("--first", type=int, default=0, help="seed of the first; each next one has one more")
    parser.add_argument("--seconds", type=float, default=7_200, help="after so many none is begun")
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    kinds: list[list[Item]] = [
        list(read_packets([path]))[:_MOST] for path in sorted(CAPTURES.glob("*.pcap*"))
    ]
    kinds += [list(Case(name).packets())[:_MOST] for name in CLEAR_CASES]
    tls = [list(Case(name).packets())[:_MOST] for name in TLS_CASES]
    secrets = [Secrets(TLS_KEY_LOG, (Case(name).folder / "keys.log").read_bytes()) for name in TLS_CASES]
    seams, given_up, wrong, done = 0, Counter[str](), [], 0
    for seed in range(given.first, given.first + given.count):
        if time.monotonic() > end:
            break
        chance = random.Random(seed)
        has_tls = chance.random() < 0.25
        items = composed([*kinds, *(4 * tls if has_tls else ())], chance, secrets if has_tls else ())
        cuts = places(len(items), chance.choice((2, 7, 40)), chance)
        briefs = Interest() if chance.random() < 0.5 else None
        whole, found = alone(items), stitched(items, cuts, chance=chance, briefs=briefs)
        is_same = found.events == whole
        if briefs is not None:
            is_same = without_rows(found.events) == without_rows(whole)
        if not is_same:
            wrong.append(seed)
            print(f"seed {seed} differs", flush=True)
        done += 1
        seams += found.seams
        given_up.update(found.given_up)
        if done % 50 == 0:
            print(f"{done} done, {seams} seams, {given_up.total()} parts given up", flush=True)
    parts = seams + given_up.total()
    print(f"{done} captures, {len(wrong)} differ: {wrong}; {seams} of {parts} parts became seams")
    for why, count in given_up.most_common():
        print(f"  {count} given up: {why}")
    return int(bool(wrong) or done < given.count or seams < _LEAST_SHARE * parts)


if __name__ == "__main__":
    sys.exit(main())
