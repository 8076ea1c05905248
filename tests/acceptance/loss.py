"""Lose packets of real captures at random: what is still in the file is found, and nothing else is.

    python -m tests.acceptance.loss [--count 2000] [--seed 0]

The capture as it was tells the truth. A frame counts as being in what is left if every packet that carried
bytes of it is there. Each pattern has a rate between 0.1 and 10 %, and loses single packets or bursts.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from kdissect.exchange import Exchange
from kdissect.message import Message
from kdissect.model import Frame, Packet
from tests.lab import CLEAR_CASES, Case, dissected

LEAST_RATE, MOST_RATE = 0.001, 0.1
LONGEST_BURST = 8
LEAST_RECOVERED = 0.95

Place = tuple[str, str, str]
"""Client, broker, and ``request`` or ``response``."""


class Truth(NamedTuple):
    """What a capture holds of which nothing was lost."""

    packets: tuple[Packet, ...]
    frames: dict[Place, list[tuple[Frame, int]]]
    """Each with the number of its exchange; some connections ended inside one."""


class Score(NamedTuple):
    """What was found of what was left; scores add up."""

    patterns: int = 0
    there: int = 0
    """Frames of which every packet was left."""
    recovered: int = 0
    found: int = 0
    """Frames that were given out, cut ones too."""
    false: int = 0
    """Those that are no frame of the capture, nor the beginning of one."""
    paired: int = 0
    """Exchanges of a request and a response."""
    wrong_pairs: int = 0

    def plus(self, other: Score) -> Score:
        """Both together."""
        return Score(*(mine + its for mine, its in zip(self, other, strict=True)))

    def __str__(self) -> str:
        share = 100 * self.recovered / max(1, self.there)
        return (
            f"{self.patterns:,} patterns: {self.recovered:,} of {self.there:,} frames in the file recovered "
            f"({share:.2f} %), {self.false:,} of {self.found:,} frames false, "
            f"{self.wrong_pairs:,} of {self.paired:,} pairs wrong"
        )

    @property
    def is_good(self) -> bool:
        """Whether it is as it has to be."""
        return self.recovered >= LEAST_RECOVERED * self.there and not self.false and not self.wrong_pairs


@cache
def truth(name: str) -> Truth:
    """The packets of a case and its frames."""
    packets = tuple(item for item in Case(name).packets() if isinstance(item, Packet))
    frames: dict[Place, list[tuple[Frame, int]]] = {}
    for exchange in dissected(packets).exchanges:
        for message in exchange.messages:
            frames.setdefault(place(exchange, message), []).append((message.frame, exchange.number))
    return Truth(packets, frames)


def place(exchange: Exchange, message: Message) -> Place:
    return exchange.client, exchange.broker, message.kind


def losses(count: int, randomly: random.Random) -> set[int]:
    """Which of so many packets are lost."""
    rate = LEAST_RATE * (MOST_RATE / LEAST_RATE) ** randomly.random()
    burst = randomly.choice((1, 1, 1, randomly.randint(2, LONGEST_BURST)))
    lost: set[int] = set()
    for at in range(count):
        if randomly.random() < rate / burst:
            lost.update(range(at, at + burst))
    return lost


def tried(seed: str) -> Score:
    """Lose packets of one capture in the pattern of this seed."""
    randomly = random.Random(seed)
    whole = truth(randomly.choice(CLEAR_CASES))
    lost = losses(len(whole.packets), randomly)
    return score(whole, [packet for at, packet in enumerate(whole.packets) if at not in lost])


def score(whole: Truth, left: list[Packet]) -> Score:
    """Hold what is found in these packets, which have their old numbers, against the truth."""
    numbers = {packet.number for packet in left}
    there = {
        (at, frame.offset, frame.packets)
        for at, frames in whole.frames.items()
        for frame, _ in frames
        if frame.size == len(frame.payload) and numbers.issuperset(frame.packets)
    }
    recovered: set[tuple[Place, int, tuple[int, ...]]] = set()
    found = false = paired = wrong = 0
    for exchange in dissected(left).exchanges:
        known: list[set[int]] = []
        for message in exchange.messages:
            found += 1
            at = place(exchange, message)
            same = [each for each in whole.frames.get(at, ()) if _is_of(message.frame, each[0])]
            false += not same
            known.append({number for _, number in same})
            if not message.is_cut:
                recovered.update((at, frame.offset, frame.packets) for frame, _ in same)
        if len(known) == 2 and all(known):
            paired += 1
            wrong += not known[0] & known[1]
    return Score(1, len(there), len(there & recovered), found, false, paired, wrong)


def _is_of(frame: Frame, other: Frame) -> bool:
    """Whether it is the other one, or as much of its beginning as is left; bytes that were captured twice may
    be there by their second packet."""
    return (
        frame.size == other.size
        and other.payload.startswith(frame.payload)
        and abs(frame.first_packet - other.first_packet) <= FARTHEST_COPY
    )


FARTHEST_COPY = 200
"""Packets between a segment and its retransmission in these captures."""


def in_all(seeds: Iterable[str]) -> Score:
    """The score of all patterns; bad ones are named on the error stream."""
    total = Score()
    for seed in seeds:
        one = tried(seed)
        if one.false or one.wrong_pairs:
            sys.stderr.write(f"seed {seed}: {one}\n")
        total = total.plus(one)
    return total


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.loss", description=__doc__)
    parser.add_argument("--count", type=int, default=2_000, help="how many patterns (default %(default)s)")
    parser.add_argument("--seed", default="0", help="another seed gives other patterns (default %(default)s)")
    options = parser.parse_args()
    total = in_all(f"{options.seed}-{number}" for number in range(options.count))
    sys.stdout.write(f"{total}\n")
    return 0 if total.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
