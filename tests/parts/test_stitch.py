from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.traffic import multiply
from kdissect.capture.files import read_packets
from kdissect.capture.reader import Item
from kdissect.dissect import LINGER_NS, Dissector
from kdissect.limits import DEFAULTS
from kdissect.model import TLS_KEY_LOG, CaptureError, Fault, Packet, Secrets, renumbered
from kdissect.parts.part import dissect_part
from kdissect.parts.stitch import Stitcher
from kdissect.session.briefs import Interest
from kdissect.session.conversation import Connection
from tests.amount import only_long, some, times
from tests.cli.run import CAPTURES
from tests.lab import CLEAR_CASES, TLS_CASES, Case
from tests.parts.compositions import composed, fragments
from tests.parts.cut import Stitched, alone, places, stitched, without_rows
from tests.shared import SHARED

OWN = sorted(CAPTURES.glob("*.pcap*"))
MOST = times(1_500, 20_000)
"""Packets of a capture."""
COUNTS = (2, 7, 40)
"""Parts that a capture is cut into."""
BRIEF_COUNT = 7
"""The one of them for which exchanges are told in brief, too."""


def packets_of(path: Path) -> list[Item]:
    return list(read_packets([path]))[:MOST]


def check(
    items: Sequence[Item], seed: int = 1, counts: Sequence[int] = COUNTS, brief_count: int = BRIEF_COUNT
) -> list[Stitched]:
    """Hold a capture in parts against what one dissector says."""
    whole, out = alone(items), []
    for count in counts:
        chance = random.Random(f"{seed} {count}")
        found = stitched(items, places(len(items), count, chance), chance=chance)
        assert found.events == whole
        out.append(found)
        if count == brief_count:
            found = stitched(items, places(len(items), count, chance), chance=chance, briefs=Interest())
            assert without_rows(found.events) == without_rows(whole)
            out.append(found)
    return out


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_parts_say_what_one_dissector_says(path: Path) -> None:
    for found in check(packets_of(path)):
        assert found.given_up == []


@pytest.mark.parametrize("name", some(CLEAR_CASES, 5, *(set(CLEAR_CASES) & {"java43-basic-loss", "ipv6"})))
def test_so_they_do_with_captures_of_real_clients(name: str) -> None:
    found = check(list(Case(name).packets())[:MOST])
    seams = sum(each.seams for each in found)
    assert seams >= 0.9 * (seams + sum(len(each.given_up) for each in found))


@pytest.mark.parametrize("name", TLS_CASES)
@pytest.mark.parametrize("place", [0.0, 0.5])
def test_what_speaks_tls_is_set_aside_for_whoever_has_the_secrets(name: str, place: float) -> None:
    packets = list(Case(name).packets())[:MOST]
    secrets = Secrets(TLS_KEY_LOG, (Case(name).folder / "keys.log").read_bytes())
    at = int(place * len(packets))
    clear = [each for each in packets_of(CAPTURES / "errors.pcapng") if isinstance(each, Packet)]
    packets[at:at] = [secrets]
    found = check(among(packets, clear))
    assert [each.given_up for each in found] == len(found) * [[]]
    assert max(each.seams for each in found) >= 20


def among(items: Sequence[Item], others: Sequence[Packet]) -> list[Item]:
    """Other packets among these, evenly."""
    out: list[Item] = []
    step, given, number = len(others) / len(items), 0, 0
    time = 0
    for place, item in enumerate(items, 1):
        until = int(place * step)
        for each in (*others[given:until], item):
            if isinstance(each, Packet):
                number += 1
                time += 1_000_000
                out.append(renumbered(each, number, each.interface)._replace(timestamp_ns=time))
            else:
                out.append(each)
        given = until
    return out


@only_long
@pytest.mark.parametrize("folder", ["captures", "incidents", "tcp", "damaged", "malicious"])
def test_all_the_material_is_the_same_in_parts(folder: str) -> None:
    if SHARED is None:
        pytest.skip("the shared test material is not beside this checkout")
    for path in sorted((SHARED / "testdata" / folder).rglob("*.pcap*")):
        try:
            items = packets_of(path)
        except CaptureError:
            continue
        check(items)


def test_random_compositions_with_loss_are_the_same_in_parts() -> None:
    kinds = [packets_of(path) for path in OWN]
    for seed in range(times(14, 1_000)):
        chance = random.Random(seed)
        items, count = composed(kinds, chance), chance.choice((3, 11, 40))
        check(items, seed, (count,), count)


@pytest.fixture(scope="module")
def traffic(tmp_path_factory: pytest.TempPathFactory) -> list[Item]:
    path = tmp_path_factory.mktemp("traffic") / "traffic.pcap"
    multiply(path, times(600, 6_000))
    return list(read_packets([path]))


def test_connections_that_linger_over_seams_are_told_in_their_order(traffic: list[Item]) -> None:
    for found in check(traffic):
        assert found.given_up == []


def test_connections_end_a_minute_after_their_last_packet_whichever_part_has_it(traffic: list[Item]) -> None:
    packets = [each for each in traffic if isinstance(each, Packet)][:400]
    slow: list[Item] = [
        each._replace(timestamp_ns=10**18 + 10**9 * at, number=at + 1) for at, each in enumerate(packets)
    ]
    ends = [each for each in alone(slow) if isinstance(each, Connection) and each.end != "open"]
    assert len(ends) > 9
    for cuts in ([100], [90, 180, 270], list(range(25, 400, 25))):
        found = stitched(slow, cuts)
        assert found.events == alone(slow)
        assert found.given_up == []


def test_what_concerns_all_connections_is_not_settled_by_a_part(traffic: list[Item]) -> None:
    cuts = places(len(traffic), 5, random.Random(3))
    for limits in (
        DEFAULTS._replace(connections=9),
        DEFAULTS._replace(waiting_bytes=9_000),
        DEFAULTS._replace(topic_names=3),
    ):
        found = stitched(traffic, cuts, limits)
        assert found.events == alone(traffic, limits)
        assert found.given_up


def test_a_fragment_that_waits_is_told_when_another_one_comes(traffic: list[Item]) -> None:
    packets = [each for each in traffic[:400] if isinstance(each, Packet)]
    place = next(at for at, each in enumerate(packets) if len(each.data) > 200)
    whole = [each._replace(timestamp_ns=10**18 + 10**9 * at) for at, each in enumerate(packets)]
    first, _ = fragments(whole[place], 64, 1)
    later = next(at for at in range(place + 200, 400) if len(packets[at].data) > 200)
    both = fragments(whole[later], 64, 2)
    mixed = [*whole[:place], first, *whole[place + 1 : later], *both, *whole[later + 1 :]]
    items = [renumbered(each, number, each.interface) for number, each in enumerate(mixed, 1)]
    for cuts in ([place + 50], [place + 50, place + 100, later - 10]):
        found = stitched(items, cuts)
        assert any(isinstance(each, Fault) and each.packet == place + 1 for each in found.events)
        assert found.events == alone(items)
        assert found.given_up == ["something waits that is not of one connection"]
    behind = items[place + 1 :]
    between, after = later - place, later - place + 50
    for cut, why in ((between, ["something waits that is not of one connection"]), (after, [])):
        found = stitched(behind, [cut])
        assert found.events == alone(behind)
        assert found.given_up == why


def test_a_clock_that_is_set_back_gives_its_part_up(traffic: list[Item]) -> None:
    packets = [each for each in traffic if isinstance(each, Packet)]
    at = len(packets) // 2
    later = [each._replace(timestamp_ns=each.timestamp_ns - 2 * LINGER_NS) for each in packets[at:]]
    items: list[Item] = [*packets[:at], *later]
    found = stitched(items, [at - 300, at + 300])
    assert found.events == alone(items)
    assert found.given_up == ["the clock was set back"]


def test_ports_that_are_used_again_behind_a_seam_give_the_part_up(traffic: list[Item]) -> None:
    packets = [each for each in traffic[:2_000] if isinstance(each, Packet)]
    again = [
        renumbered(each, len(packets) + number, each.interface) for number, each in enumerate(packets, 1)
    ]
    whole: list[Item] = [*packets, *again]
    found = stitched(whole, [len(packets)], chance=_Never())
    assert found.events == alone(whole)
    assert found.given_up == ["a connection began between ends that have one"]
    found = stitched(whole, [len(packets)])
    assert (found.events, found.given_up) == (alone(whole), [])


class _Never(random.Random):
    """No part knows which connections may go on."""

    def random(self) -> float:
        return 1.0


def test_an_edge_of_another_version_is_not_believed(traffic: list[Item]) -> None:
    edge = dissect_part([traffic], None).edge
    stitcher = Stitcher(Dissector(), DEFAULTS)
    assert stitcher.refusal_reason(edge) is None
    assert stitcher.refusal_reason(edge._replace(version=0)) == "it is of another version"
