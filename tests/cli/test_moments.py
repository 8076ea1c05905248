"""Points in time on the command line."""

from __future__ import annotations

from datetime import datetime

import pytest

from kdissect.analysis.fold import SECOND
from kdissect.cli.errors import Wrong
from kdissect.cli.moments import moment_of

FIRST = 1_700_000_000 * SECOND
"""2023-11-14T22:13:20Z."""


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("+30s", FIRST + 30 * SECOND),
        ("+1.5m", FIRST + 90 * SECOND),
        ("2023-11-14T22:13:21Z", FIRST + SECOND),
        ("2023-11-14T22:13:20.5Z", FIRST + SECOND // 2),
        ("2023-11-15T00:13:20+02:00", FIRST),
        (str(FIRST), FIRST),
    ],
)
def test_a_point_in_time(text: str, ns: int) -> None:
    assert moment_of(text, "--since").ns_since_epoch(FIRST) == ns


def test_a_time_of_day_is_of_the_day_of_the_first_packet() -> None:
    found = moment_of("12:03:01", "--since").ns_since_epoch(FIRST)
    day = datetime.fromtimestamp(1_700_000_000)
    assert found == int(day.replace(hour=12, minute=3, second=1).timestamp()) * SECOND


@pytest.mark.parametrize(
    "text", ["5", "0", "14.55", str(FIRST // SECOND), str(FIRST // 1_000_000), str(FIRST // 1_000)]
)
def test_a_number_in_another_unit_is_no_time_in_nanoseconds(text: str) -> None:
    with pytest.raises(
        Wrong, match=rf"--since {text}: this number is not a time in nanoseconds .* give \+30s"
    ):
        moment_of(text, "--since")


@pytest.mark.parametrize("text", ["", "+", "+x", "noon", "25:00", "2023-13-01"])
def test_anything_else_is_told(text: str) -> None:
    with pytest.raises(Wrong, match="--since"):
        moment_of(text, "--since")
