"""The screen of topics."""

from __future__ import annotations

from kdissect.analysis.fold import Row
from kdissect.present.form import plural
from kdissect.tui.feed.counting import Asked
from kdissect.tui.filtering import quoted
from kdissect.tui.lists import topics
from kdissect.tui.lists.figures import Figures
from kdissect.tui.pages.grouped import GroupedPage
from kdissect.tui.statistics import Counted

ASKED = ("topics", "positions")


class TopicsPage(GroupedPage):
    """Topics, or their partitions; Enter shows the exchanges of one."""

    GROUPINGS = (topics.TOPIC, topics.PARTITION)

    def figures(self) -> Figures:
        return topics.figures()

    def asked_by(self, grouping: str) -> Asked:
        return ASKED

    def fill(self, counted: Counted) -> None:
        tables = counted.tables
        if self.grouping == topics.TOPIC:
            rows = topics.topic_rows(tables["topics"], tables["positions"])
            self.rows.show(rows, topics.TOPIC_COLUMNS)
        else:
            rows = topics.partition_rows(tables["topics"], tables["positions"])
            self.rows.show(rows, topics.PARTITION_COLUMNS)

    def what(self) -> str:
        one = "topic" if self.grouping == topics.TOPIC else "partition and direction"
        many = None if self.grouping == topics.TOPIC else "partitions and directions"
        return plural(len(self.rows), one, many)

    def filter_of(self, row: Row) -> str | None:
        if row["topic"] is None:
            return None
        text = f"topic == {quoted(row['topic'])}"
        if row.get("partition") is not None:
            text += f" and partition == {row['partition']}"
        return text
