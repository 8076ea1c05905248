"""How long producers kept batches until a young record was in them. A rule reads this before it asks for the
delivery of records. It joins nothing, so it takes a small part of the time."""

from __future__ import annotations

from kdissect.analysis.declared import TOPIC_COLUMN, column
from kdissect.analysis.fold import Row, View
from kdissect.analysis.transit import Transit

MARGIN = 1.02
"""The factor within which percentiles may differ. In the rows of ``delivery`` they are exact within 0.4 %."""


class Lingers(View[Transit]):
    """A row for each topic with batches whose youngest record was less than half as old as the first when
    they were sent.

    Without such a batch, the median age of youngest records is at least half of the median age of first ones.
    If only one of the two ages is known for some batches, all batches count.
    """

    basis_type = Transit
    name = "lingers"
    about = "the longest time that a batch was kept, if its youngest record is young"
    columns = (
        TOPIC_COLUMN,
        column("linger_max_ns", "int64", "the longest time that such a batch was kept"),
    )

    def result(self) -> list[Row]:
        every: dict[str | None, int] = {}
        young: dict[str | None, int] = {}
        unknown: set[str | None] = set()
        for topic, kept_ns, youngest_ns in self.basis.ages():
            if kept_ns is None or youngest_ns is None:
                unknown.add(topic)
            if kept_ns is None:
                continue
            every[topic] = max(kept_ns, every.get(topic, kept_ns))
            if youngest_ns is not None and 2 * youngest_ns < MARGIN * kept_ns:
                young[topic] = max(kept_ns, young.get(topic, kept_ns))
        found = {**young, **{topic: every[topic] for topic in unknown if topic in every}}
        return [
            {"topic": topic, "linger_max_ns": longest}
            for topic, longest in sorted(found.items(), key=lambda each: each[0] or "")
        ]
