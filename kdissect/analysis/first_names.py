"""Names from the wire, bounded in number: the first ones are kept, all others share one name."""

from __future__ import annotations

OTHER = "other"
"""The name of all others."""


class FirstNames:
    """The first names of each column.

    :param most: the most names of one column.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[str, set[str]] = {}

    def name(self, column: str, name: str | None) -> str | None:
        """The name if it is one of the first of its column, otherwise :data:`OTHER`. None is no name."""
        if name is None or name == OTHER:
            return name
        known = self._known.get(column)
        if known is None:
            known = self._known[column] = set()
        if name not in known:
            if len(known) >= self._most:
                return OTHER
            known.add(name)
        return name
