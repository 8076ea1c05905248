"""The table of fault kinds is closed: the code names no other, and none stands in it for nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import kdissect
from kdissect.faults import KINDS

PACKAGE = Path(kdissect.__file__).parent


def words_of_the_code() -> set[str]:
    """Every string constant in the package but the table itself."""
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        if path.name != "faults.py":
            tree = ast.parse(path.read_text())
            found |= {
                n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)
            }
    return found


def test_every_kind_is_reported_somewhere() -> None:
    assert set(KINDS) - words_of_the_code() == set()


def test_layers_are_those_of_the_contract() -> None:
    layers = {"file", "link", "tcp", "frame", "session", "message", "records", "tls"}
    assert {layer for layer, _ in KINDS.values()} <= layers
