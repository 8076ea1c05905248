from __future__ import annotations

import subprocess
import sys

import pytest

from kdissect.analysis.catalogue import STATISTICS, statistic


def test_each_statistic_is_listed_under_its_name() -> None:
    assert [each.name for each in STATISTICS.values()] == list(STATISTICS)


def test_a_grouping_follows_the_name() -> None:
    name, found = statistic("srt, broker")
    assert (name, found.name) == ("srt", "srt")


def test_an_unknown_name_is_no_statistic() -> None:
    with pytest.raises(LookupError):
        statistic("srtt")


def test_who_asks_for_one_does_not_import_the_others() -> None:
    program = (
        "import sys\n"
        "from kdissect.analysis.catalogue import statistic\n"
        "statistic('srt')\n"
        "print('kdissect.analysis.srt' in sys.modules, 'kdissect.analysis.quorum' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "True False\n"
