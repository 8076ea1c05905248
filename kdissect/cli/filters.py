"""``-Y`` and ``--slow``: which rows of a table a display filter shows.

The filter chooses exchanges. In other tables it chooses the rows of these exchanges: their connections,
records and faults. ``record.…`` matches each record separately. ``--slow`` is the filter ``slow``, alone or
together with another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import TYPE_CHECKING, Any

import click

from kdissect.cli.completing import a_filter
from kdissect.cli.config import load_config, saved_filters
from kdissect.cli.errors import Wrong, complain
from kdissect.cli.inputs import reads_once
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.model import Fault
from kdissect.present.options import Options
from kdissect.session.conversation import Connection

if TYPE_CHECKING:
    from kdissect.analysis.slow import Slowness
    from kdissect.cli.moments import MomentOption
    from kdissect.cli.reading import Reading
    from kdissect.filter.compiled import Filter
    from kdissect.insight.evidence import EvidenceIndex

MILLISECOND = 1_000_000


def filter_options(function: click.decorators.FC) -> click.decorators.FC:
    """``-Y`` and ``--slow``."""
    slow = click.option(
        "--slow",
        is_flag=True,
        help="Only slow exchanges: slower than nearly all of their API, or than slow_ms.",
    )
    of_filter = click.option(
        "-Y",
        "filter",
        metavar="FILTER",
        shell_complete=a_filter,
        help="Only what this display filter selects.",
    )
    return of_filter(slow(function))


def chooser_of(
    text: str | None,
    slow: bool,
    table: str,
    options: Options,
    slow_ms: int | None,
    within: Within | None = None,
) -> Chooser | None:
    """The chooser of the rows of a table; None if all rows are shown.

    :param text: the filter, if there is one.
    :param slow: whether to show only slow exchanges.
    :param slow_ms: the least time of a slow exchange, from the configuration.
    :param within: a span of time in which an exchange must begin.
    :raises Wrong: the filter is wrong; the text says where, and what was meant.
    """
    texts = [*((text,) if text is not None else ()), *(("slow",) if slow else ())]
    return None if not texts and within is None else Chooser(texts, table, options, slow_ms, within)


class Chooser:
    """The filters for one table. They show a row if all of them match."""

    def __init__(
        self,
        texts: list[str],
        table: str,
        options: Options,
        slow_ms: int | None = None,
        within: Within | None = None,
    ) -> None:
        """
        :param within: a span of time in which an exchange must begin.
        :raises Wrong: one of the filters is not valid.
        """
        from kdissect.analysis.slow import Slowness
        from kdissect.insight.evidence import EvidenceIndex

        self.slowness = Slowness(None if slow_ms is None else slow_ms * MILLISECOND)
        """Computes the flag ``slow``. If :attr:`must_learn` is true, :meth:`learn` must read the capture
        first."""
        self.evidence = EvidenceIndex()
        """Computes ``finding``. If :attr:`must_judge` is true, it must learn findings first."""
        self._filters = [_filter(text, options, self.slowness, evidence=self.evidence) for text in texts]
        self._limits = options.limits
        self._table = table
        self._within = within
        self.chosen: set[int] = set()
        """Connections with an exchange that the filter chooses."""

    def part(self) -> Chooser:
        """A copy for some of the events. It does not know the connections that other copies choose."""
        part = copy(self)
        part.chosen = set()
        return part

    @property
    def must_learn(self) -> bool:
        """Whether the capture must be read once before its exchanges can be chosen."""
        return self._must_know_slow or self.must_judge

    @property
    def _must_know_slow(self) -> bool:
        return self.slowness.slow_ns is None and any("slow" in each.fields for each in self._filters)

    @property
    def must_judge(self) -> bool:
        """Whether the filter uses findings."""
        return any(each.evidence is not None for each in self._filters)

    def refuse_to_judge(self, paths: Iterable[str]) -> None:
        """Check that the input suits a filter that uses findings.

        :raises Wrong: the input can be read only once.
        """
        if self.must_judge and any(map(reads_once, paths)):
            raise Wrong(
                "-Y: findings are known only after all was read, and a pipe can be read only once: give a "
                "file"
            )

    def learn(self, reading: Reading, names: bool) -> None:
        """Read a capture in advance, to learn how long its exchanges take, or its findings.

        :param names: whether to learn the names of topic ids too.
        """
        whole = None
        if self.must_judge:
            from kdissect.analysis.whole import WholeFold
            from kdissect.insight.judge import Judge

            whole = WholeFold(lambda: Judge(self._limits))

        def feed(event: Event) -> None:
            if self._must_know_slow:
                self.slowness.feed(event)
            if whole is not None:
                whole.feed(event)

        reading.read_before(names, feed)
        if self._must_know_slow and self.slowness.is_none_slow:
            complain(self.slowness.none_slow_message)
        if whole is not None:
            whole.finish()
            config = load_config()
            self.evidence.learn(whole.counted.judged(config.thresholds, config.ignored).findings)
            if not self.evidence:
                complain("-Y: no finding refers to an exchange (kdissect explain shows all findings)")

    def event(self, event: Event) -> bool:
        """Whether an event has anything to show; :meth:`row` decides on records and faults."""
        if isinstance(event, Connection):
            return event.connection in self.chosen or self._names(event)
        if isinstance(event, Fault) or self._table in ("records", "faults"):
            return True
        is_listed = self._table != "connections"
        if (is_listed or event.connection not in self.chosen) and self._matches(event):
            self.chosen.add(event.connection)
            return is_listed
        return False

    def counts(self, event: Event) -> bool:
        """Whether an event counts in statistics: a chosen exchange, or a connection with one."""
        if isinstance(event, Exchange) and self._matches(event):
            self.chosen.add(event.connection)
            return True
        return isinstance(event, Connection) and event.connection in self.chosen

    def row(self, event: Event, source: Any) -> bool:
        """Whether a row of an event is shown."""
        exchange = event if isinstance(event, Exchange) else None
        if self._table == "records" and exchange is not None:
            return all(each.matches_record(exchange, source) for each in self._filters)
        if self._table == "faults" and isinstance(source, Fault):
            return all(each.matches_fault(source, exchange) for each in self._filters)
        return True

    def _names(self, connection: Connection) -> bool:
        """Whether the filter uses only connection numbers, and matches this one. Then the connection is shown
        even without an exchange."""
        if self._within is not None or any(each.fields != {"connection"} for each in self._filters):
            return False
        return all(each.matches_connection(connection.connection) for each in self._filters)

    def _matches(self, exchange: Exchange) -> bool:
        if self._within is not None and not self._within.has(exchange):
            return False
        return all(each.matches(exchange) for each in self._filters)


class Within:
    """The span of ``--since`` and ``--until``."""

    def __init__(self, since: MomentOption | None, until: MomentOption | None) -> None:
        self._since = since
        self._until = until
        self.first_ns: Callable[[], int | None] = lambda: None
        """Returns the time of the first packet, once there is one."""

    def has(self, exchange: Exchange) -> bool:
        """Whether an exchange begins in the span."""
        first_ns, ns = self.first_ns() or 0, exchange.begun_ns
        if self._since is not None and ns < self._since.ns_since_epoch(first_ns):
            return False
        return self._until is None or ns < self._until.ns_since_epoch(first_ns)

    def check(self, first_ns: int | None, last_ns: int | None) -> None:
        """Check that the span overlaps the capture.

        :raises Wrong: it begins after the capture's end, ends before its beginning, or ends before it begins.
        """
        if first_ns is None or last_ns is None:
            return
        if self._since is not None and self._until is not None:
            since_ns, until_ns = (each.ns_since_epoch(first_ns) for each in (self._since, self._until))
            if since_ns >= until_ns:
                raise Wrong("--since must be before --until")
        if self._since is not None and self._since.ns_since_epoch(first_ns) > last_ns:
            self._since.within("--since", first_ns, last_ns)
        if self._until is not None and self._until.ns_since_epoch(first_ns) < first_ns:
            self._until.within("--until", first_ns, last_ns)


def compiled(
    text: str | None, options: Options, option: str, evidence: EvidenceIndex | None = None
) -> Filter | None:
    """The filter of another option than ``-Y``.

    :param evidence: computes ``finding``; without it a filter may not use findings.
    :raises Wrong: it is wrong; the text says where, and what was meant.
    """
    return None if text is None else _filter(text, options, None, option, evidence)


def _filter(
    text: str,
    options: Options,
    slowness: Slowness | None,
    option: str = "-Y",
    evidence: EvidenceIndex | None = None,
) -> Filter:
    from kdissect.filter.compiled import compile_filter
    from kdissect.filter.errors import FilterError
    from kdissect.filter.saved import hints_of_saved, searched

    try:
        found = compile_filter(text, options, slowness, evidence)
    except FilterError as error:
        raise Wrong(f"{option}: {error}", error.excerpt()) from None
    saved = hints_of_saved(text, saved_filters()) if searched(text) else ()
    for hint in (*saved, *found.hints):
        complain(f"{option}: {hint}")
    return found
