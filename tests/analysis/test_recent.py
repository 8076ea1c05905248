"""What a fold read lately."""

from __future__ import annotations

import copy
import pickle

from kdissect.analysis.recent import Recent


def test_a_kept_value_is_returned_and_found() -> None:
    recent: Recent[str, int] = Recent(2)
    assert recent.keep("a", 1) == 1
    assert recent.get("a") == 1


def test_all_are_forgotten_when_one_more_than_the_most_comes() -> None:
    recent: Recent[str, int] = Recent(2)
    for number, key in enumerate("abc"):
        recent.keep(key, number)
    assert dict(recent) == {"c": 2}


def test_pickled_and_copied_it_is_empty_with_the_same_limit() -> None:
    recent: Recent[str, int] = Recent(1)
    recent.keep("a", 1)
    for other in (pickle.loads(pickle.dumps(recent)), copy.copy(recent)):
        assert not other
        other.keep("b", 1)
        other.keep("c", 2)
        assert dict(other) == {"c": 2}
    assert recent == {"a": 1}
