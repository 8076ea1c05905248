"""Everything that a report shows of a capture: findings, and the tables behind its panels.

A state (``--state``) stores all of it as it is counted, so that ``explain``, ``report`` and ``diff`` share
states.
"""

from __future__ import annotations

import hashlib

from kdissect.analysis.catalogue import STATISTICS, statistic
from kdissect.analysis.fold import MILLISECOND, Statistic
from kdissect.analysis.timeline import Timeline
from kdissect.insight.coverage import Coverage
from kdissect.insight.judge import Judge, of_captures
from kdissect.limits import DEFAULTS, Limits

TABLES = (
    *("timeline", "latency", "latency,broker", "slowest", "topics", "delivery", "groups", "lag", "lag,1s"),
    *(
        "rebalances",
        "rebalance_steps",
        "members",
        "stays",
        "assignments",
        "share",
        "transactions",
        "producers",
    ),
    *("clients", "versions", "connections", "errors", "cluster_brokers", "cluster_partitions"),
    *("cluster_topics", "cluster_configs", "cluster_changes", "quorum", "replication", "exposure", "graph"),
    *("damage", "profile"),
)
"""The tables of a report, by their names for ``-z``. Intervals of ``timeline`` are as long as they need to
be."""
MOST_INTERVALS = 600
"""The most intervals of a time line."""
_SHORTEST_NS = 100 * MILLISECOND


def whole_judge(limits: Limits = DEFAULTS) -> Judge:
    """A judge that also counts the tables of a report."""
    return Judge(limits, tables=whole_tables(limits))


def whole_tables(limits: Limits = DEFAULTS) -> dict[str, Statistic]:
    """The tables of a report, by the name that was requested."""
    return {text: _table(text, limits) for text in TABLES}


def _table(text: str, limits: Limits) -> Statistic:
    if text == Timeline.name:
        return Timeline(limits, _SHORTEST_NS, MOST_INTERVALS)
    return statistic(text, limits)[1]


def form() -> str:
    """A word for the form of states. It changes when rules or reports need other facts, or when the facts are
    counted in another way."""
    needs = {need for each in of_captures() for need in each.needs}
    needs |= {STATISTICS[text.partition(",")[0]] for text in TABLES}
    names = [f"{need.name} {' '.join(column.name for column in need.columns)}" for need in needs]
    names.append(f"coverage {' '.join(sorted(vars(Coverage())))}")
    return hashlib.sha256("\n".join(sorted([*names, *TABLES])).encode()).hexdigest()[:16]
