from __future__ import annotations

from kdissect.tui.widgets.status import COUNT, ERRORS, NAME, PACKETS, PAUSED, Item, status_line

ITEMS = [
    Item("paused, 3 more", PAUSED),
    Item("a.pcap", NAME),
    Item("10 packets", PACKETS),
    Item("5 exchanges", COUNT),
    Item("✗ 2 errors", ERRORS),
]


def test_facts_stand_whole_or_not_at_all_and_the_least_important_go_first() -> None:
    lines = [
        " paused, 3 more  a.pcap  10 packets  5 exchanges  ✗ 2 errors",
        " paused, 3 more  a.pcap  5 exchanges  ✗ 2 errors",
        " paused, 3 more  a.pcap  ✗ 2 errors",
        " paused, 3 more  ✗ 2 errors",
        " paused, 3 more",
    ]
    for wider, line in zip([None, *lines], lines, strict=False):
        assert status_line(ITEMS, len(line)).plain == line
        if wider is not None:
            assert status_line(ITEMS, len(wider) - 1).plain == line


def test_the_most_important_stays_even_where_it_is_cut() -> None:
    assert status_line(ITEMS, 4).plain == " paused, 3 more"
