"""What :mod:`kdissect.spark.folds` is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from kdissect.analysis.part import C
from kdissect.present.columns import Table


class FoldRows(NamedTuple):
    """The rows of one table."""

    rows: Sequence[Any]
    left_out: int = 0
    """How often something was not counted because its row would have been one too many."""


class FoldQuestion(Protocol[C]):
    """What is counted, and the tables that come of it; it is sent to the tasks."""

    @property
    def tables(self) -> Sequence[Table]:
        """The tables, in order."""

    def new(self) -> C:
        """What nothing was fed to yet."""

    def rows(self, whole: C) -> Sequence[FoldRows]:
        """The rows of each table, when all was fed."""
