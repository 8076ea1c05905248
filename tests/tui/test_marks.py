from __future__ import annotations

from kdissect.tui.marks import Marks


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
    marks.found([(9, "y")])
    assert [marks.next(number) for number in (1, 5, 6, 7, 9, 100)] == [5, 7, 7, 9, 5, 5]


def test_own_comments_stand_beside_those_of_the_capture() -> None:
    marks = Marks()
    marks.found([(1, "theirs")])
    assert (marks.own(1), marks.comment(1), marks.sign(1)) == (None, "theirs", "✎")
    marks.set_comment(1, "mine")
    assert (marks.own(1), marks.comment(1)) == ("mine", "mine  theirs")
    marks.set_comment(1, "")
    assert marks.comment(1) == "theirs"
    assert marks.comments == {}
