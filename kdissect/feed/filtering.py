"""The display filter of the screens: which exchanges are shown.

A filter is evaluated in two stages. The columns of the index answer at once: a million rows take
milliseconds. If they cannot decide, a process beside the screens reads the exchanges themselves
(:mod:`kdissect.feed.matching`). Later rows are evaluated when they come; earlier answers stay. But later rows
change which exchanges are slow, so a filter for slow ones is evaluated again from time to time.

    index ─► columns ─► certain ──────────────► shown
                     └► open ─► exchanges ─► yes ┘

Filters form a stack: :meth:`Shown.push` adds one, :meth:`Shown.pop` goes back to the one before.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from kdissect.analysis.fold import MILLISECOND
from kdissect.analysis.slow import Slowness
from kdissect.feed.batches import Feed
from kdissect.feed.columns import FilterColumns, Stage, is_long, slowness_of, why_nothing_is_slow
from kdissect.feed.index import Index, Places
from kdissect.feed.matching import AnswerClient
from kdissect.filter.compiled import Filter, compile_filter
from kdissect.filter.computed import SLOW
from kdissect.filter.errors import FilterError
from kdissect.filter.masks import Mask, Masks
from kdissect.present.form import SECOND, plural
from kdissect.present.options import Options
from kdissect.present.sanitise import sanitise

DEEPEST = 100
"""The largest number of filters on the stack; beyond it the oldest are dropped."""
MORE = 1.25
"""When the number of exchanges has grown by this factor, slow exchanges are determined again."""


_PLAIN = re.compile(r"[ !#-\[\]-~]*")
"""Text without characters that need an escape."""


def quoted(text: str) -> str:
    """Text in a filter's syntax, with escapes for invisible characters."""
    if _PLAIN.fullmatch(text):  # as most names
        return f'"{text}"'
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in '\\"':
        return f"\\{character}"
    code = ord(character)
    if sanitise(character) == character or code > 0xFFFF:  # no escape has enough digits for these
        return character
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"


class _TimeRange(NamedTuple):
    """A chosen range of time."""

    start_ns: int
    end_ns: int
    text: str
    """The filter that shows it."""
    depth: int
    """The number of filters before it on the stack."""


OF_LAST_SESSION = "the filter of the last session"


def span_text(start_ns: int, end_ns: int) -> str:
    """The filter for exchanges that began in a range of time."""
    return f"time >= {_moment(start_ns)} and time < {_moment(end_ns)}"


def _moment(ns: int) -> str:
    seconds, rest = divmod(ns, SECOND)
    whole = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return whole + (f".{rest:09}".rstrip("0") if rest else "") + "Z"


class Shown:
    """The current filter, and the places of the index that it shows.

    :param changed: called when a filter was set, removed, or turned on or off.
    :param slow_ms: longer exchanges are slow; None: exchanges longer than nearly all of their API.
    """

    def __init__(
        self,
        index: Index,
        feed: Feed,
        options: Options,
        changed: Callable[[], None] = lambda: None,
        slow_ms: int | None = None,
    ) -> None:
        self._index, self._feed, self._options, self._changed = index, feed, options, changed
        self._slow_ns = None if slow_ms is None else slow_ms * MILLISECOND
        self._slowness = 0, Slowness(self._slow_ns)
        """The bounds of slow exchanges, and the number of exchanges that they come from."""
        self._filter: Filter | None = None
        self._before: list[str] = []
        """The texts of the filters to go back to."""
        self.is_on = True
        """Whether the filter is applied; it can be turned off for a while."""
        self.version = 0
        """A number that changes whenever the places change."""
        self._asker: AnswerClient | None = None
        self._stage: Stage | None = None
        """The first stage, while it runs beside the screens."""
        self._mask: Mask = np.zeros(0, np.bool_)
        """The rows that the filter is known to show, with room for more."""
        self._answered = 0
        """The number of rows of the index that passed the first stage."""
        self._places: tuple[tuple[int, int], Places] | None = None
        self._span: _TimeRange | None = None
        """The range of time chosen last."""
        self._restored = ""
        """The filter that was set when the screens were closed last."""

    # -- what is set --------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The text of the filter; empty without one."""
        return self._filter.text if self._filter is not None else ""

    @property
    def hints(self) -> tuple[str, ...]:
        """Hints for the author of the filter: possible mistakes, and errors of its evaluation."""
        said = self._filter.hints if self._filter is not None else ()
        if self._is_restored:
            said = (f"Esc removes {OF_LAST_SESSION}", *said)
        if self._asker is not None and self._asker.reason is not None:
            said += (self._asker.reason,)
        if self._asker is not None and self._asker.failed:
            said += (f"{plural(self._asker.failed, 'exchange')} could not be checked",)
        return said

    def restore(self, text: str) -> None:
        """Set the filter that was set when the screens were closed. It may have been for another capture, so
        its origin is shown while it is set.

        :raises FilterError: it is no filter; everything stays as it was.
        """
        chosen = self.compiled(text)
        self._restored = chosen.text if chosen is not None else ""
        self.push(text)

    @property
    def _is_restored(self) -> bool:
        return bool(self.text) and self.text == self._restored

    def compiled(self, text: str) -> Filter | None:
        """The filter of a text; None for an empty one.

        :raises FilterError: the text is not a filter.
        """
        if not text.strip():
            return None
        chosen = compile_filter(text, self._options, self._slowness[1])
        return self._learned(chosen) if SLOW in chosen.fields else chosen

    def _learned(self, chosen: Filter) -> Filter:
        """A filter with the current bounds of slow exchanges, if it needs them."""
        if self._slow_ns is None and self._slowness[0] != len(self._index):
            self._slowness = len(self._index), slowness_of(self._index)
        return compile_filter(chosen.text, self._options, self._slowness[1])

    def count(self, chosen: Filter) -> tuple[int, int]:
        """The smallest and largest number of exchanges that a filter would show, by the columns alone. Many
        different texts take a while."""
        found = self._columns(chosen, 0, len(self._index)).masks(chosen)
        return int(np.count_nonzero(found.certain)), int(np.count_nonzero(found.possible))

    def _columns(self, chosen: Filter, start: int, end: int) -> FilterColumns:
        return FilterColumns(self._index, start, end, chosen.slowness)

    def push(self, text: str) -> None:
        """Set a filter in place of the current one, which :meth:`pop` restores. An empty text shows all.

        :raises FilterError: it is no filter; everything stays as it was.
        """
        chosen = self.compiled(text)
        if (chosen.text if chosen is not None else "") != self.text:
            self._before = [*self._before, self.text][-DEEPEST:]
        self._set(chosen)

    def write(self, text: str) -> None:
        """Set a filter; the chosen range of time stays.

        :raises FilterError: it is no filter; everything stays as it was.
        """
        self.push(self.within_span(text))

    def narrow(self, text: str) -> None:
        """Show only those of the current exchanges that also match this filter.

        :raises FilterError: it is no filter; everything stays as it was.
        """
        self.compiled(text)  # report its own mistakes at their own position
        self.push(f"({self.text}) and ({text})" if self.text and self.is_on else text)

    def narrow_to(self, start_ns: int, end_ns: int) -> None:
        """Show only exchanges that began in a range of time, without its end. It replaces an earlier
        range."""
        written = self.written
        self.widen()
        if written != self.text:
            self.push(written)  # a filter written since the earlier range stays
        depth = self.depth
        self._span = _TimeRange(start_ns, end_ns, span_text(start_ns, end_ns), depth)
        self.narrow(self._span.text)

    def widen(self) -> bool:
        """Remove the range of time, with the filters set since. Return whether there was one."""
        if self.span is None or self._span is None:
            return False
        self.pop_to(self._span.depth)
        self._span = None
        return True

    @property
    def span(self) -> tuple[int, int] | None:
        """The beginning and end of the range of time in the filter; None without a range."""
        span = self._span
        if span is None or not self.is_on or span.text not in self.text:
            return None
        return span.start_ns, span.end_ns

    def within_span(self, text: str) -> str:
        """A filter with the chosen range of time, if there is one. Links to exchanges and written filters
        keep the range."""
        if self.span is None or self._span is None or self._span.text in text:
            return text
        return f"({text}) and ({self._span.text})" if text else self._span.text

    @property
    def written(self) -> str:
        """The filter without the chosen range of time."""
        if self.span is None or self._span is None:
            return self.text
        if self.text == self._span.text:
            return ""
        inner = self.text.removesuffix(f") and ({self._span.text})")
        if inner == self.text or not inner.startswith("("):
            return self.text
        with suppress(FilterError):  # brackets that do not match
            self.compiled(inner[1:])
            return inner[1:]
        return self.text

    def pop(self) -> bool:
        """Go back to the filter before. Return whether there was one."""
        if not self._before:
            return False
        text = self._before.pop()
        self._set(self.compiled(text))
        return True

    @property
    def depth(self) -> int:
        """The number of filters that :meth:`pop` can go back to."""
        return len(self._before)

    def pop_to(self, depth: int) -> None:
        """Go back to the filter with this number of filters before it."""
        if depth < len(self._before):
            del self._before[depth + 1 :]
            self.pop()

    def toggle(self) -> None:
        """Turn the filter off, or on again."""
        if self._filter is not None:
            self.is_on = not self.is_on
            self._grew_or_shrank()
            self._changed()

    def _set(self, chosen: Filter | None) -> None:
        self._filter, self.is_on = chosen, True
        self._begin()
        self._changed()

    def _begin(self) -> None:
        """Evaluate the filter from the first row on."""
        chosen = self._filter
        self._answered, self._stage = 0, None
        self._mask = np.zeros(0, np.bool_)
        if self._asker is not None:
            self._asker.forget()
        if chosen is not None and self._asker is not None:
            self._asker.set_question(chosen)
        self.index_grew()
        self._grew_or_shrank()

    # -- what it shows --------------------------------------------------------------------------------

    @property
    def places(self) -> Places:
        """The shown places of the index, ascending by number. Read only."""
        order = self._index.order()
        if self._filter is None or not self.is_on:
            return order
        key = (self.version, len(order))
        if self._places is None or self._places[0] != key:
            self.index_grew()
            mask = self._mask[: len(order)]
            self._places = key, order[mask[order]]
        return self._places[1]

    @property
    def places_of_records(self) -> Places:
        """The places of exchanges that may have a record that matches, even if they do not match."""
        chosen, order = self.chosen, self._index.order()
        if chosen is None or not chosen.asks_each_record:
            return self.places
        part = chosen.of_exchange
        if part is None:
            return order
        columns = self._columns(part, 0, len(order))
        return order if is_long(columns, part) else order[columns.masks(part).possible[order]]

    @property
    def progress(self) -> float | None:
        """The finished share of the second stage; None if nothing is left to do."""
        if self._stage is not None:
            return 0.0
        return self._asker.progress if self._asker is not None else None

    @property
    def is_filtered(self) -> bool:
        """Whether a filter is set and on."""
        return self.chosen is not None

    @property
    def chosen(self) -> Filter | None:
        """The filter, if one is set and on. It is replaced when slow exchanges are determined again."""
        return self._filter if self.is_on else None

    @property
    def why_none(self) -> str:
        """The reason why nothing is shown, if nothing is."""
        if self.progress is not None:
            return "filtering …"
        chosen = self.chosen
        said = None
        if chosen is not None and SLOW in chosen.fields and chosen.slowness is not None:
            said = why_nothing_is_slow(self._index, chosen.slowness)
        none = "no exchange matches"
        return said or (f"{none} {OF_LAST_SESSION}: Esc removes it" if self._is_restored else none)

    def index_grew(self) -> None:
        """Evaluate the filter for the new rows."""
        chosen, start, end = self._filter, self._answered, len(self._index)
        if chosen is None or start == end:
            return
        if len(self._mask) < end:
            larger = np.zeros(max(end, len(self._mask) * 5 // 4), np.bool_)
            larger[:start] = self._mask[:start]
            self._mask = larger
        if self._stage is not None:
            return
        if SLOW in chosen.fields and self._slow_ns is None and end > self._slowness[0] * MORE:
            self._look_what_is_slow()
            return
        columns = self._columns(chosen, start, end)
        if is_long(columns, chosen):
            self._stage = Stage(columns, chosen, end)
        else:
            self._answer(chosen, start, end, columns.masks(chosen))

    def index_is_complete(self) -> None:
        """Note that no more rows come."""
        chosen = self._filter
        if chosen is not None and SLOW in chosen.fields and self._slowness[0] != len(self._index):
            self._look_what_is_slow()

    def _look_what_is_slow(self) -> None:
        """Evaluate the filter again, with the current bounds of slow exchanges."""
        if self._filter is not None and self._slow_ns is None:
            self._filter = self._learned(self._filter)
            self._begin()

    def _answer(self, chosen: Filter, start: int, end: int, found: Masks) -> None:
        """Take in the first stage's answers for the rows from ``start`` to ``end``."""
        self._mask[start:end] = found.certain
        self._answered = end
        if found.certain is found.possible:
            return
        if start:
            some = found.open + start
            asked = some[np.argsort(self._index.column("number")[some], kind="stable")].astype(np.uint32)
        else:
            order = self._index.order()
            order = order[order < end]
            asked = order[(found.possible & ~found.certain)[order]]
        if len(asked):
            self._ask(chosen, asked)

    def _ask(self, chosen: Filter, places: Places) -> None:
        if self._asker is None:
            self.prepare()
            assert self._asker is not None
            self._asker.set_question(chosen)
        self._asker.add(places)

    def prepare(self) -> None:
        """Start the process for the second stage early, because a filter is being written."""
        if self._asker is None:
            self._asker = AnswerClient(self._index, self._feed.descriptor, self._feed.source.limits)
        self._asker.start()

    def poll(self) -> bool:
        """Take in the second stage's answers since the last call. Return whether there are more rows to
        show."""
        found = self._poll_stage()
        for places, hits in self._asker.poll() if self._asker is not None else ():
            self._mask[places] = hits
            found = found or bool(hits.any())
        if found:
            self._grew_or_shrank()
        return found

    def _poll_stage(self) -> bool:
        """Take in the first stage, if it is done. Return whether it is."""
        stage, chosen = self._stage, self._filter
        found = stage.masks() if stage is not None else None
        if stage is None or chosen is None or found is None:
            return False
        self._stage = None
        self._answer(chosen, self._answered, stage.end, found)
        self.index_grew()
        return True

    def _grew_or_shrank(self) -> None:
        self.version += 1

    def close(self) -> None:
        """Stop the process."""
        if self._asker is not None:
            self._asker.close()
