from __future__ import annotations

from kdissect import read
from kdissect.filter.compiled import compile_filter
from kdissect.tui.marks import Marks
from tests.cli.run import CAPTURES

ERRORS = CAPTURES / "errors.pcapng"


def test_marks_come_and_go() -> None:
    marks = Marks()
    assert marks.toggle(3)
    assert 3 in marks.numbers
    assert marks.sign(3) == "★"
    assert not marks.toggle(3)
    assert marks.sign(3) == ""


def test_the_next_mark_or_comment_begins_anew_after_the_last() -> None:
    marks = Marks()
    assert marks.next(1) is None
    marks.toggle(5)
    marks.set_comment(7, "x")
    marks.note_found([(9, "y")])
    assert [marks.next(number) for number in (1, 5, 6, 7, 9, 100)] == [5, 7, 7, 9, 5, 5]


def test_own_comments_stand_beside_those_of_the_capture() -> None:
    marks = Marks()
    marks.note_found([(1, "theirs")])
    assert (marks.own(1), marks.comment(1), marks.sign(1)) == (None, "theirs", "✎")
    marks.set_comment(1, "mine")
    assert (marks.own(1), marks.comment(1)) == ("mine", "mine  theirs")
    marks.set_comment(1, "")
    assert marks.comment(1) == "theirs"
    assert marks.comments == {}


def test_all_are_marked_and_only_if_all_are_they_lose_their_marks() -> None:
    marks = Marks()
    marks.toggle(3)
    assert marks.toggle_all([2, 3, 4])
    assert marks.numbers == {2, 3, 4}
    marks.toggle(9)
    assert not marks.toggle_all([2, 4])
    assert marks.numbers == {3, 9}


def test_marking_all_can_be_taken_back() -> None:
    marks = Marks()
    marks.toggle(3)
    assert marks.toggle_all([2, 3, 4])
    assert not marks.toggle_all([2, 3, 4])
    assert marks.numbers == {3}  # which was marked before


def test_their_filter_has_ranges() -> None:
    marks = Marks()
    assert marks.filter() == ""
    marks.toggle_all([7, 1, 2, 3, 9, 10])
    assert marks.filter() == "number in {1..3, 7, 9, 10}"
    assert {
        each.number for each in read(ERRORS) if compile_filter(marks.filter()).matches(each)
    } == marks.numbers
