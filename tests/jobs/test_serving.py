"""What goes through a pipe between processes of this program."""

from __future__ import annotations

import pickle

import pytest

from kdissect.jobs.serving import dump, load


class Table:
    """Of a class of its own, as what is shared is."""

    def __init__(self, name: str) -> None:
        self.name = name


def test_a_shared_object_is_the_same_one_at_the_other_end_and_another_of_its_class_a_copy() -> None:
    mine, theirs, other = Table("names"), Table("names"), Table("other")
    first, second, third, numbers = load(dump((mine, [mine], other, [1, 2]), (mine,)), (theirs,))
    assert first is theirs
    assert second[0] is theirs
    assert (type(third), third.name, third is other) == (Table, "other", False)
    assert numbers == [1, 2]


def test_of_several_shared_objects_each_keeps_its_place() -> None:
    mine, theirs = (Table("a"), Table("b")), (Table("x"), Table("y"))
    assert load(dump([mine[1], mine[0]], mine), theirs) == [theirs[1], theirs[0]]


def test_without_what_is_shared_it_cannot_be_read() -> None:
    shared = Table("names")
    with pytest.raises((IndexError, pickle.UnpicklingError)):
        load(dump(shared, (shared,)), ())
    with pytest.raises(pickle.UnpicklingError):
        pickle.loads(dump(shared, (shared,)))
