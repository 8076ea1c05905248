"""Statistics, findings and reports as questions for :mod:`kdissect.spark.folds`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from kdissect.analysis.fold_set import Together
from kdissect.analysis.part import Counted
from kdissect.dissect import Event
from kdissect.insight.judge import Judge
from kdissect.insight.report_data import TABLES, whole_judge
from kdissect.limits import Limits
from kdissect.present.columns import Table, dict_column
from kdissect.present.findings import FINDINGS
from kdissect.present.html.report import report_page
from kdissect.present.html.sheet import ReportOptions
from kdissect.present.statistics import STATISTICS, statistic_of
from kdissect.spark.fold_question import FoldQuestion, FoldRows


@dataclass(frozen=True)
class AskedStatistics:
    """Statistics, as ``stats -z`` names them; several statistics share what they count alike.

    :raises LookupError: no statistic has that name.
    :raises ValueError: the rest after a name is not understood; the text lists what is allowed.
    """

    texts: tuple[str, ...]
    limits: Limits

    def __post_init__(self) -> None:
        self.new()

    @property
    def tables(self) -> Sequence[Table]:
        return [STATISTICS[each.name] for each in self.new().statistics]

    def new(self) -> Together:
        return Together([statistic_of(text, self.limits) for text in self.texts])

    def rows(self, whole: Together) -> Sequence[FoldRows]:
        return [FoldRows(each.result(), each.left_out) for each in whole.statistics]


@dataclass(frozen=True)
class Judgement:
    """Findings, as ``explain --all`` gives them.

    :param limits: the limits of the judged facts.
    :param thresholds: changed thresholds of rules, by id.
    :param ignored: rules that are not run, by id or pattern.
    """

    limits: Limits
    thresholds: Mapping[str, Mapping[str, float]]
    ignored: Collection[str]

    @property
    def tables(self) -> Sequence[Table]:
        return [FINDINGS]

    def new(self) -> Judge:
        return Judge(self.limits)

    def rows(self, whole: Judge) -> Sequence[FoldRows]:
        return [FoldRows(whole.judged(self.thresholds, self.ignored).findings)]


PAGE = Table("report", (dict_column("page", "text", "the page of kdissect report, as HTML"),))


@dataclass(frozen=True)
class WholeReport:
    """The contents of ``kdissect report``: findings, its tables, and the page.

    :param thresholds: changed thresholds of rules, by id.
    :param ignored: rules that are not run, by id or pattern.
    :param made: the text on the page about how it was made.
    """

    limits: Limits
    thresholds: Mapping[str, Mapping[str, float]]
    ignored: Collection[str]
    made: ReportOptions

    titles = (FINDINGS.name, *TABLES, PAGE.name)
    """The name of each table, as ``-z`` has it."""

    @property
    def tables(self) -> Sequence[Table]:
        return [FINDINGS, *(STATISTICS[text.partition(",")[0]] for text in TABLES), PAGE]

    def new(self) -> Judge:
        return whole_judge(self.limits)

    def rows(self, whole: Judge) -> Sequence[FoldRows]:
        report = whole.report(self.thresholds, self.ignored)
        tables = [FoldRows(report.tables[text], report.left_out.get(text, 0)) for text in TABLES]
        return [FoldRows(report.findings), *tables, FoldRows([{"page": report_page(report, self.made)}])]


class Fed:
    """Several folds that take in the same events. Each has the same results as alone."""

    def __init__(self, several: Sequence[Counted]) -> None:
        self.several = several

    def feed(self, event: Event, counts: bool = True) -> None:
        """Take in the next event. An event that does not count helps to understand others."""
        for each in self.several:
            each.feed(event, counts)

    def feed_all(self, events: Sequence[Event]) -> None:
        """Take in the next events, all of which count."""
        for each in self.several:
            each.feed_all(events)

    def merge(self, later: Self) -> None:
        """Add later counts."""
        for mine, theirs in zip(self.several, later.several, strict=True):
            mine.merge(theirs)

    def take(self, later: Self) -> None:
        """Add later counts, and empty ``later`` meanwhile."""
        for mine, theirs in zip(self.several, later.several, strict=True):
            mine.take(theirs)

    def set_open(self) -> None:
        """Accept more than the limits allow, until :meth:`close`. Call it before the first event."""
        for each in self.several:
            each.set_open()

    @property
    def awaits_chapter(self) -> bool:
        """Whether one of them needs a fold for the current chapter."""
        return any(each.awaits_chapter for each in self.several)

    def begin_chapter(self, chapter: Self) -> None:
        """Let those of ``chapter`` take in the events of the current chapter for what is too full."""
        for mine, theirs in zip(self.several, chapter.several, strict=True):
            mine.begin_chapter(theirs)

    def end_chapter(self, new: Callable[[], Self]) -> None:
        """Add the current chapter to what is too full, and apply the limits to the rest.

        :param new: makes the same without any contents.
        """
        for place, each in enumerate(self.several):
            each.end_chapter(partial(_at, new, place))

    def close(self) -> None:
        """Keep to the limits from now on, as events come."""
        for each in self.several:
            each.close()


def _at(new: Callable[[], Fed], place: int) -> Counted:
    """One of several new folds."""
    return new().several[place]


def asked_tables(texts: Sequence[str], judgement: Judgement) -> tuple[Several, tuple[str, ...]]:
    """The question for statistics, with findings if ``findings`` is among them; and the name of each of its
    tables. Findings come last.

    :raises LookupError: no statistic has that name.
    :raises ValueError: the rest after a name is not understood; the text lists what is allowed.
    """
    others = tuple(text for text in dict.fromkeys(texts) if text != FINDINGS.name)
    asked: list[FoldQuestion[Any]] = [AskedStatistics(others, judgement.limits)] if others else []
    if len(others) == len(set(texts)):
        return Several(tuple(asked)), others
    return Several((*asked, judgement)), (*others, FINDINGS.name)


@dataclass(frozen=True)
class Several:
    """Several questions, for which captures are read once. Their tables follow one another, in the order of
    the questions."""

    questions: tuple[FoldQuestion[Any], ...]

    @property
    def tables(self) -> Sequence[Table]:
        return [table for each in self.questions for table in each.tables]

    def new(self) -> Fed:
        return Fed([each.new() for each in self.questions])

    def rows(self, whole: Fed) -> Sequence[FoldRows]:
        both = zip(self.questions, whole.several, strict=True)
        return [rows for question, counted in both for rows in question.rows(counted)]
