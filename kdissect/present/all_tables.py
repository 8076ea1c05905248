"""Every table that a command prints, by its name."""

from __future__ import annotations

from kdissect.present.catalogue import BATCHES, TABLES
from kdissect.present.conformance import CHECKS
from kdissect.present.diffs import DIFF
from kdissect.present.findings import FINDINGS
from kdissect.present.log_columns import INDEX, SNAPSHOT
from kdissect.present.statistics import STATISTICS

ALL_TABLES = {
    **TABLES,
    "batches": BATCHES,
    "index": INDEX,
    "snapshot": SNAPSHOT,
    **{f"stats {name}": table for name, table in STATISTICS.items()},
    FINDINGS.name: FINDINGS,
    DIFF.name: DIFF,
    "conformance": CHECKS,
}
