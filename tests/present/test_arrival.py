"""What is told of an exchange beside its fields."""

from __future__ import annotations

from kdissect import read
from kdissect.present.arrival import timing_lines
from tests.cli.run import CAPTURES


def test_what_a_request_waited_behind_another_is_told() -> None:
    exchanges = {each.number: each for each in read(CAPTURES / "basic-kafka43.pcapng")}
    waited = [line for line in timing_lines(exchanges[3], None) if line.startswith("waited: ")]
    assert waited == [
        "waited: 22.7 ms of it behind #1; a broker serves one request of a connection at a time"
    ]
    assert not any(line.startswith("waited: ") for line in timing_lines(exchanges[1], None))
