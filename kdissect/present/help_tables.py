"""The tables of help pages that are made of what the code declares, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kdissect.analysis.catalogue import STATISTICS
from kdissect.analysis.fold import Statistic


def statistics_table() -> str:
    """Every statistic: its name, what it tells, and what may follow its name."""
    rows = [
        f"| `{name}` | {statistic.about} | {_further(statistic)} |\n"
        for name, statistic in STATISTICS.items()
    ]
    return "".join(("| `-z` | rows | after a comma |\n", "|---|---|---|\n", *rows))


def _further(statistic: type[Statistic]) -> str:
    if statistic.takes_interval:
        return "an interval: `100ms`"
    return ", ".join(f"`{grouping}`" for grouping in statistic.groupings)


HELP_TABLES: Mapping[str, Callable[[], str]] = {"statistics": statistics_table}
"""What makes the table of a line ``<!-- NAME -->`` in a page of :mod:`kdissect.help`."""
