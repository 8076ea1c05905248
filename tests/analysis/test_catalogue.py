from __future__ import annotations

import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module

import pytest

import kdissect.analysis
from kdissect.analysis.catalogue import FOLDS, STATISTICS, statistic
from kdissect.analysis.fold import Statistic
from tests.analysis.folds import events_of, fold


def test_each_statistic_is_listed_under_its_name() -> None:
    assert [each.name for each in STATISTICS.values()] == list(STATISTICS)


def test_every_statistic_of_the_package_is_registered() -> None:
    for module in pkgutil.iter_modules(kdissect.analysis.__path__):
        import_module(f"kdissect.analysis.{module.name}")
    of_package = {
        kind
        for kind in kinds_of(Statistic)  # type: ignore[type-abstract]
        if kind.__module__.startswith("kdissect.analysis.") and "name" in vars(kind)
    }
    assert of_package == set(FOLDS.values())
    assert set(STATISTICS.values()) < of_package


@pytest.mark.parametrize(
    "name", ["connections", "exposure", "positions", "producers", "profile", "repeats", "tcp"]
)
def test_rows_of_large_tables_are_made_when_they_are_asked_for(name: str) -> None:
    found = fold(name, events_of("java43-groups"))
    rows = iter(found.result_rows())
    one = next(rows)
    assert one is not next(iter(found.result_rows()))
    assert not isinstance(found.result_rows(), list)
    assert [one, *rows] == found.result()


def kinds_of(kind: type[Statistic]) -> Iterator[type[Statistic]]:
    for each in kind.__subclasses__():
        yield each
        yield from kinds_of(each)


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
