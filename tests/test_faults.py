"""The table of fault kinds is closed: the code uses no other kinds, and all kinds in the table are used."""

from __future__ import annotations

from pathlib import Path

import kdissect
from kdissect.faults import KINDS, fault, leaves_out
from tests.trees import strings

PACKAGE = Path(kdissect.__file__).parent


def words_of_the_code() -> set[str]:
    """Every string in the package except those of the table itself."""
    return set().union(*(strings(path) for path in PACKAGE.rglob("*.py") if path.name != "faults.py"))


def test_every_kind_is_reported_somewhere() -> None:
    assert set(KINDS) - words_of_the_code() == set()


def test_layers_are_those_of_the_contract() -> None:
    layers = {"file", "link", "tcp", "frame", "session", "message", "records", "tls"}
    assert {layer for layer, _ in KINDS.values()} <= layers


def test_a_late_file_that_was_read_leaves_nothing_out() -> None:
    told = [
        fault("late-file", ""),
        fault("late-file", "", offset=7),
        fault("unreadable", ""),
        fault("gap", ""),
        fault("upgraded", ""),
    ]
    assert [leaves_out(each) for each in told] == [False, True, True, False, False]
