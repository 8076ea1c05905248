from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kdissect.present.form import SECOND, TIMES, Clock, duration, plural, seconds, size, write_size
from kdissect.protocol.json_text import JsonText


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (61_249_000, "61.2 ms"),
        (999_499, "999 µs"),
        (999_500, "1.00 ms"),
        (9_995_000, "10.0 ms"),
        (99_950_000, "100 ms"),
        (1_500_000_000, "1.50 s"),
        (7_200_000_000_000, "7200 s"),
        (-2_000, "-2.00 µs"),
    ],
)
def test_durations_have_three_digits_and_a_unit(ns: int, text: str) -> None:
    assert duration(ns) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1_023, "1023 B"), (1_024, "1.0 KiB"), (1_048_524, "1023.9 KiB"), (1_048_576, "1.0 MiB")],
)
def test_sizes(count: int, text: str) -> None:
    assert size(count) == text


@given(st.integers(0, (1 << 62)))
def test_sizes_are_written_as_they_are_told(count: int) -> None:
    out = JsonText()
    write_size(out, count)
    assert out.take().decode() == size(count)


INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.sampled_from(sorted(TIMES)), st.none() | INT64, st.lists(INT64, min_size=1, max_size=3))
@example("r", -(1 << 63), [(1 << 63) - 1])
@example("r", (1 << 63) - 1, [-(1 << 63)])
@example("r", 0, [0, (1 << 62) - 1, 1 << 62])
def test_times_are_written_as_they_are_told(letter: str, first: int | None, times: list[int]) -> None:
    told, written, out = Clock(letter, first), Clock(letter, first), JsonText()
    for ns in times:
        written.write(out, ns)
        assert out.take().decode() == told.text(ns)


@given(INT64)
def test_seconds_lose_nothing(ns: int) -> None:
    whole, _, part = seconds(ns).lstrip("-").partition(".")
    assert int(whole) * 10**9 + int(part) == abs(ns)
    assert seconds(ns).startswith("-") == (ns < 0)
    assert duration(ns)
    assert Clock("u").text(ns)


@pytest.mark.parametrize(
    ("letter", "texts"),
    [
        ("r", ["0.000000", "1.500000"]),
        ("d", ["0.000000", "1.500000"]),
        ("e", ["1700000000.000000001", "1700000001.500000001"]),
        ("u", ["2023-11-14T22:13:20.000000Z", "2023-11-14T22:13:21.500000Z"]),
    ],
)
def test_times(letter: str, texts: list[str]) -> None:
    clock = Clock(letter)
    first = 1_700_000_000_000_000_001
    assert [clock.text(first), clock.text(first + 1_500_000_000)] == texts


def test_relative_times_count_from_the_first_packet() -> None:
    assert Clock("r", 1_000_000_000).text(3_000_000_000) == "2.000000"
    assert Clock("r", 3_000_000_000).text(1_000_000_000) == "-2.000000"


def test_counting() -> None:
    assert [plural(1, "byte"), plural(1_234, "byte"), plural(2, "entry", "entries")] == [
        "1 byte",
        "1,234 bytes",
        "2 entries",
    ]


def by_floats(ns: int) -> str:
    """The rule that short durations follow in whole numbers."""
    for scale, unit in ((1_000, "µs"), (1_000_000, "ms"), (SECOND, "s")):
        value = ns / scale
        if value < 999.5 or unit == "s":
            return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"
    raise AssertionError


@given(
    st.one_of(
        st.integers(1_000, 10**12),
        st.builds(lambda a, b: a * 5 * 10**b, st.integers(1, 10**5), st.integers(3, 6)),
    )
)
def test_durations_are_rounded_as_floats_are(ns: int) -> None:
    assert duration(ns) == by_floats(ns)
    assert duration(-ns) == "-" + by_floats(ns)


@given(st.integers(-(10**20), 10**20))
def test_a_clock_cuts_what_is_below_a_microsecond(ns: int) -> None:
    assert Clock("r", 0).text(ns) == seconds(ns)[:-3]
