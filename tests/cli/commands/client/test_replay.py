"""The requests of captures that are sent again."""

from __future__ import annotations

from pathlib import Path

from kdissect.cli.commands.client.replay import _requests
from kdissect.cli.errors import Complaints
from kdissect.client.replay import ReplayedRequest
from kdissect.present.options import Options
from tests.points.places import BASIC, MS, brokers_of, elsewhere, packets_of, written


def requests(*captures: object) -> list[ReplayedRequest]:
    given = {"log": None, "captures": tuple(map(str, captures)), "filter": None}
    return _requests(given, Options(), Complaints())


def test_what_two_capture_points_saw_is_sent_once(tmp_path: Path) -> None:
    packets = packets_of(BASIC)
    far = written(tmp_path / "far.pcapng", elsewhere(packets, brokers_of(BASIC), away_ns=5 * MS))
    once = requests(BASIC)
    assert sorted(each.message for each in requests(BASIC, far)) == sorted(each.message for each in once)
    assert len(once) > 10
