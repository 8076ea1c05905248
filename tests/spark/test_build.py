"""Which code made a state."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import kdissect
from kdissect.spark.build import build


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Some of the package, in a folder that can be changed."""
    top, here = tmp_path / "kdissect", Path(kdissect.__file__).parent
    for name in ("__init__.py", "dissect.py", "session/conversation.py", "tui/app.py"):
        (top / name).parent.mkdir(exist_ok=True)
        shutil.copy(here / name, top / name)
    monkeypatch.setattr(kdissect, "__file__", str(top / "__init__.py"))
    return top


def test_it_is_another_one_where_the_code_of_states_changes(copy: Path) -> None:
    def now() -> str:
        return build.__wrapped__()

    before = now()
    assert now() == before
    with (copy / "tui" / "app.py").open("a") as file:
        file.write("# no state has any of it\n")
    assert now() == before
    with (copy / "session" / "conversation.py").open("a") as file:
        file.write("# another\n")
    after = now()
    assert after != before
    (copy / "session" / "conversation.py").rename(copy / "session" / "talk.py")
    assert now() not in (before, after)


def test_compiled_modules_make_other_states_than_sources(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert copy
    found = set()
    for name in ("dissect.py", "dissect.so"):
        monkeypatch.setattr("kdissect.dissect.__file__", name)
        found.add(build.__wrapped__())
    assert len(found) == 2
