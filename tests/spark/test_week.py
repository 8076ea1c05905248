"""Two nights of the week (:mod:`tests.spark.week`), of which the second is killed.

``test_lake.py`` lets a run die between its tables, which takes a fifth of the time: this is for the night.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.amount import only_long
from tests.spark.nights import TABLES, Week, plain
from tests.spark.week import Place, killed, run


@only_long
@pytest.mark.usefixtures("spark")
def test_a_night_that_is_killed_is_done_again(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    here = Place(tmp_path, "delta")
    week = Week(here.spool, 2)
    for night in week:
        if night:
            # Some tables have the run by then, and others have not.
            assert "killed" in killed(here, night + 1, "records", 0)
            assert not (here.runs / "run-2.json").exists()
        run(here)
    expected = week.expected()
    for name in TABLES:
        assert plain(name, here.rows(name)) == expected[name], name
        assert expected[name]
