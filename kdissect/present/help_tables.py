"""Tables of help pages that are made from declarations in the code, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kdissect.analysis.catalogue import STATISTICS
from kdissect.analysis.declared import COUNTER, Metric
from kdissect.analysis.fold import Statistic


def statistics_table() -> str:
    """Every statistic: its name, its meaning, and its groupings."""
    rows = [
        f"| `{name}` | {statistic.about} | {_further(statistic)} |\n"
        for name, statistic in STATISTICS.items()
    ]
    return "".join(("| `-z` | rows | after a comma |\n", "|---|---|---|\n", *rows))


def _further(statistic: type[Statistic]) -> str:
    if statistic.takes_interval:
        return "an interval: `100ms`"
    return ", ".join(f"`{grouping}`" for grouping in statistic.groupings)


def metrics_table() -> str:
    """Every metric that a column of a statistic declares: its name, its labels, its meaning."""
    told = {
        metric.name: metric
        for statistic in STATISTICS.values()
        for column in statistic.columns
        for metric in column.metrics
    }
    rows = [
        f"| `kdissect_{name}{_ENDS.get(metric.kind, '')}` | {_labels(metric)} | {metric.about} |\n"
        for name, metric in told.items()
    ]
    return "".join(("| metric | labels | what |\n", "|---|---|---|\n", *rows))


def _labels(metric: Metric) -> str:
    return ", ".join(f"`{label}`" for label, _ in (*metric.labels, *metric.always))


_ENDS = {COUNTER: "_total"}
"""The endings that Prometheus adds to names, by kind."""
HELP_TABLES: Mapping[str, Callable[[], str]] = {"statistics": statistics_table, "metrics": metrics_table}
"""The functions that make the tables, by the NAME in a line ``<!-- NAME -->`` of a page of
:mod:`kdissect.help`."""
