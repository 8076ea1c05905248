"""The form of a question for :mod:`kdissect.spark.folds`: what to count, and the resulting tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from kdissect.analysis.part import C
from kdissect.present.columns import Table


class FoldRows(NamedTuple):
    """The rows of one table."""

    rows: Sequence[Any]
    left_out: int = 0
    """How often something was not counted because there was no room for its row."""


class FoldQuestion(Protocol[C]):
    """What is counted, and the resulting tables. It is sent to the tasks."""

    @property
    def tables(self) -> Sequence[Table]:
        """The tables, in order."""

    def new(self) -> C:
        """A new fold, which has counted nothing yet."""

    def rows(self, whole: C) -> Sequence[FoldRows]:
        """The rows of each table, when the fold has counted everything."""
