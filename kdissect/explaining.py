"""Captures → findings in one call, for programs."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from os import PathLike

from kdissect.analysis.catalogue import STATISTICS, statistic
from kdissect.analysis.part import gathered
from kdissect.analysis.whole import WholeFold
from kdissect.dissect import Event
from kdissect.insight import judge
from kdissect.insight.catalogue import RULES
from kdissect.insight.report_data import TABLES, whole_tables
from kdissect.limits import DEFAULTS, Limits
from kdissect.present.nearest import nearest
from kdissect.reading import read

__all__ = ["Report", "explain"]


class Report(judge.CaptureReport):
    """The result of :func:`explain`."""

    paths: tuple[str, ...] = ()
    """The captures."""

    def html(self) -> str:
        """The report as one page, as ``kdissect report`` makes it.

        :raises ValueError: its tables were not counted; :func:`explain` counts them with ``page=True``.
        """
        from kdissect.present.html.report import report_page
        from kdissect.present.html.sheet import ReportOptions

        if not self.tables.keys() >= set(TABLES):
            raise ValueError("the tables of a page were not counted: call explain(…, page=True)")
        return report_page(self, ReportOptions(tuple(map(os.path.basename, self.paths)), self.paths))


def _check(thresholds: Mapping[str, Mapping[str, float]], ignore: Collection[str]) -> None:
    """Check that rules and thresholds exist: a misspelt name would have no effect.

    :raises LookupError: a rule or threshold does not exist.
    :raises ValueError: a threshold is not above 0.
    """
    for pattern in (*thresholds, *ignore):
        if pattern not in RULES and (
            pattern in thresholds or not any(fnmatchcase(id, pattern) for id in RULES)
        ):
            raise LookupError(f"there is no rule {pattern!r}{nearest(pattern, RULES)}")
    for id, own in thresholds.items():
        known = RULES[id].thresholds
        for name, value in own.items():
            if name not in known:
                raise LookupError(f"there is no threshold {name!r} of {id}{nearest(name, known)}")
            if not value > 0:
                raise ValueError(f"the threshold {name} of {id} must be above 0")


def explain(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    tables: Iterable[str] = (),
    thresholds: Mapping[str, Mapping[str, float]] | None = None,
    ignore: Collection[str] = (),
    ports: Iterable[int] = (),
    two_pass: bool = False,
    limits: Limits = DEFAULTS,
    key_logs: Iterable[str | PathLike[str]] = (),
    rsa_keys: Iterable[str | PathLike[str]] = (),
    page: bool = False,
) -> Report:
    """Findings of a capture: what is wrong, why, and what to do.

    :param paths: capture files, which together are one capture; ``"-"`` is standard input.
    :param tables: statistics to count too, written as for ``kdissect stats -z``: ``srt,broker``.
    :param thresholds: thresholds by rule id; other rules keep those of the catalogue.
    :param ignore: ids of rules, or patterns; these rules do not run.
    :param page: also count all the tables that :meth:`Report.html` needs.

    The other parameters are those of :func:`kdissect.read`.

    :raises CaptureError: none of the files can be read as a capture, or a key log or key cannot be read.
    :raises LookupError: there is no such statistic, rule or threshold.
    :raises ValueError: a statistic has no such grouping or interval, or a threshold is not above 0.
    """
    _check(thresholds or {}, ignore)
    tables = tuple(tables)
    for text in tables:
        name = text.partition(",")[0].strip()
        if name not in STATISTICS:
            raise LookupError(f"there is no statistic {name!r}{nearest(name, STATISTICS)}")
    given = (paths,) if isinstance(paths, str | PathLike) else tuple(paths)

    def new() -> judge.Judge:
        asked = {text: statistic(text, limits)[1] for text in tables}
        return judge.Judge(limits, tables={**asked, **(whole_tables(limits) if page else {})})

    whole = WholeFold(new)
    came: list[Event] = []

    def events() -> Iterator[list[Event]]:
        for exchange in read(
            given,
            ports=ports,
            two_pass=two_pass,
            limits=limits,
            key_logs=key_logs,
            rsa_keys=rsa_keys,
            on_fault=came.append,
            on_connection=came.append,
        ):
            yield [*came, exchange]
            came.clear()
        yield came

    for together in gathered(events()):
        whole.feed_all(together)
    whole.finish()
    report = Report(*whole.counted.report(thresholds, ignore))
    report.paths = tuple(os.fspath(path) for path in given)
    return report
