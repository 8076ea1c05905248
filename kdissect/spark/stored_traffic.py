"""Rows of the table ``exchanges`` → the statistic ``traffic``: the fold that counts exchanges is fed rows."""

from __future__ import annotations

from typing import Self

from kdissect.analysis.fold import Row
from kdissect.analysis.traffic import Traffic
from kdissect.limits import DEFAULTS, Limits
from kdissect.spark.row_fold import RowFold


class StoredTraffic(Traffic, RowFold):
    """The statistic of rows. A topic has its name if any row has it."""

    def __init__(self, limits: Limits = DEFAULTS, by: tuple[str, ...] = ()) -> None:
        super().__init__(limits, by)
        self._names: dict[str, str] = {}
        """The names of topic ids. If there are several, it is the first in the alphabet, because rows have no
        order."""

    @property
    def reads_names(self) -> bool:
        return self._by_topic or "topics" in self._asked

    def learn(self, topic_id: str, name: str) -> None:
        """Learn the name of a topic id from a row. Beyond the limit ``rows``, ids keep no name."""
        known = self._names.get(topic_id)
        if known is None:
            if len(self._names) < self.limits.rows:
                self._names[topic_id] = name
        elif name < known:
            self._names[topic_id] = name

    def merge(self, later: Self) -> None:
        """Add the counts of other rows, and their names."""
        super().merge(later)
        for topic_id, name in later._names.items():
            self.learn(topic_id, name)

    def result(self) -> list[Row]:
        """The rows of the statistic, with names in place of known topic ids."""
        rows = self._rows.rows
        for key in [*rows] if self._names and self.reads_names else ():
            # The API comes first, topic and layer come last. Between them are values of the exchange.
            named = list(key)
            if self._by_topic:
                named[-2] = self._names.get(str(key[-2]), key[-2])
            if "topics" in self._asked:
                at = 1 + self._asked.index("topics")
                named[at] = ", ".join(self._names.get(each, each) for each in str(key[at]).split(", "))
            if tuple(named) != key:
                row = rows.pop(key)
                same = rows.setdefault(tuple(named), row)
                if same is not row:
                    same.merge(row)
        return super().result()
