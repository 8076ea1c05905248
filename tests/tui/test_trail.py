from __future__ import annotations

from kdissect.tui.trail import MOST, Trail


def test_back_and_forward_go_the_same_way() -> None:
    trail = Trail()
    assert trail.back(1) is None
    trail.leave(1)
    trail.leave(5)
    assert trail.back(9) == 5
    assert trail.back(5) == 1
    assert trail.back(1) is None
    assert trail.forward(1) == 5
    assert trail.forward(5) == 9
    assert trail.forward(9) is None


def test_a_jump_forgets_what_was_ahead() -> None:
    trail = Trail()
    trail.leave(1)
    assert trail.back(5) == 1
    trail.leave(1)
    assert trail.forward(7) is None
    assert trail.back(7) == 1


def test_a_place_where_one_is_already_is_passed_over() -> None:
    trail = Trail()
    trail.leave(1)
    trail.leave(5)
    assert trail.back(5) == 1


def test_the_oldest_are_forgotten() -> None:
    trail = Trail()
    for place in range(MOST + 10):
        trail.leave(place)
    found: list[int] = []
    while (left := trail.back(found[-1] if found else -1)) is not None:
        found.append(left)
    assert found == list(range(MOST + 9, 9, -1))
