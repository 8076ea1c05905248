"""Coloring rules → the rule of each drawn exchange.

Columns of the index answer first, for a block of rows at once. If they cannot decide, the exchange itself is
read when its row is drawn, if there is time (:mod:`kdissect.feed.frame_time`). Rows that have to wait get
their colour in one of the next frames.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from kdissect.exchange import Exchange
from kdissect.feed.columns import FilterColumns
from kdissect.feed.frame_time import FrameTime
from kdissect.feed.index import Index
from kdissect.filter.compiled import Filter
from kdissect.filter.computed import SLOW
from kdissect.filter.errors import FilterError
from kdissect.settings.coloring import ColoringRule

BLOCK = 1024
"""The number of rows decided at once."""
MORE = 1.25
"""When the number of exchanges has grown by this factor, slow exchanges are determined again."""
_UNSEEN, _OPEN, _NONE = -3, -2, -1
"""Values of a row that was not looked at, a row that its exchange must decide, and a row without a rule."""


class _CompiledRule(NamedTuple):
    rule: ColoringRule
    filter: Filter


class Coloring:
    """The coloring rule of each exchange.

    :param exchange_at: returns the exchange at a place of the index; None if reading takes long. It may raise
        OSError.
    :param compiled: makes a filter from its text, by its current meaning.
    :param frame_time: the time that reading exchanges may take.
    """

    def __init__(
        self,
        index: Index,
        exchange_at: Callable[[int], Exchange | None],
        compiled: Callable[[str], Filter | None],
        rules: Sequence[ColoringRule],
        frame_time: FrameTime,
    ) -> None:
        self._index, self._exchange_at, self._compile = index, exchange_at, compiled
        self._given = tuple(rules)
        self._added: list[ColoringRule] = []
        self._frame_time = frame_time
        self._begin()

    @property
    def rules(self) -> tuple[ColoringRule, ...]:
        """All rules, in the order in which they are tried."""
        return (*self._added, *self._given)

    def add(self, rule: ColoringRule) -> None:
        """Add a rule that is tried before all others. It replaces an added rule with the same filter.

        :raises FilterError: its text is no filter.
        """
        self._compile(rule.filter)
        self.remove(rule.filter)
        self._added.insert(0, rule)
        self._begin()

    def remove(self, filter: str) -> bool:
        """Remove the added rule with a filter. Return whether there was one."""
        left = [each for each in self._added if each.filter != filter]
        is_less = len(left) < len(self._added)
        self._added = left
        self._begin()
        return is_less

    def rule_of(self, place: int) -> ColoringRule | None:
        """The rule of the exchange at a place of the index; None if there is no rule, or it is not known
        yet."""
        if not self._rules:
            return None
        if self._asks_what_is_slow and len(self._index) > self._looked_at * MORE:
            self._begin()
        if place >= len(self._known) or self._known[place] == _UNSEEN:
            self._look_at_block(place)
        found = int(self._known[place])
        if found == _OPEN:
            found = self._ask(place)
        return self._rules[found].rule if found >= 0 else None

    def _begin(self) -> None:
        """Look at every row again."""
        self._rules = [
            _CompiledRule(rule, chosen)
            for rule in self.rules
            for chosen in (self._filter_of(rule),)
            if chosen is not None
        ]
        self._asks_what_is_slow = any(SLOW in each.filter.fields for each in self._rules)
        self._looked_at = len(self._index)
        self._known = np.full(0, _UNSEEN, np.int16)

    def _filter_of(self, rule: ColoringRule) -> Filter | None:
        try:
            return self._compile(rule.filter)
        except FilterError:  # the configuration was checked when the screens began
            return None

    def _look_at_block(self, place: int) -> None:
        """Decide the rows around a place by the columns."""
        start = place - place % BLOCK
        end = min(start + BLOCK, len(self._index))
        if len(self._known) < end:
            more = np.full(max(end, 2 * len(self._known)) - len(self._known), _UNSEEN, np.int16)
            self._known = np.concatenate([self._known, more])
        known = np.full(end - start, _UNSEEN, np.int16)
        for at, (_, chosen) in enumerate(self._rules):
            found = FilterColumns(self._index, start, end, chosen.slowness).masks(chosen)
            is_left = known == _UNSEEN
            known[is_left & found.certain] = at
            known[is_left & found.possible & ~found.certain] = _OPEN
        known[known == _UNSEEN] = _NONE
        is_new = self._known[start:end] == _UNSEEN
        self._known[start:end][is_new] = known[is_new]

    def _ask(self, place: int) -> int:
        """Decide a row by the exchange itself, unless the time of this frame is used up."""
        if not self._frame_time.is_left():
            return _OPEN
        with self._frame_time.spent():
            try:
                exchange = self._exchange_at(place)
            except OSError:  # it is tried again when the row is drawn next
                return _OPEN
            rules = () if exchange is None else enumerate(self._rules)
            matching = (at for at, (_, chosen) in rules if exchange is not None and chosen.matches(exchange))
            self._known[place] = found = next(matching, _NONE)
        return found
