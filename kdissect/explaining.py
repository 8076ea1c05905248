"""Captures → findings in one call, for programs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from os import PathLike
from typing import NamedTuple

from kdissect.analysis.catalogue import statistic
from kdissect.analysis.fold import Row
from kdissect.analysis.together import Together
from kdissect.dissect import Event
from kdissect.insight.context import Context
from kdissect.insight.finding import Finding
from kdissect.insight.judge import Judge, NotJudged
from kdissect.limits import DEFAULTS, Limits
from kdissect.reading import read


class Report(NamedTuple):
    """What is wrong in a capture."""

    findings: list[Finding]
    """Notes on the capture itself, then causes, worst first, each followed by what it explains."""
    not_judged: list[NotJudged]
    """Rules that could say nothing, and why."""
    context: Context
    """What was captured."""
    tables: dict[str, list[Row]]
    """Rows of the statistics that were asked for, by what was asked."""


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
) -> Report:
    """Findings of a capture: what is wrong, why, and what to do.

    :param paths: capture files, which together are one capture; ``"-"`` is standard input.
    :param tables: statistics to count beside, as ``kdissect stats -z`` has them: ``srt,broker``.
    :param thresholds: of rules, by their ids; others are those of the catalogue.
    :param ignore: ids of rules, or patterns, that are not run.

    The others are those of :func:`kdissect.read`.

    :raises CaptureError: none of the files can be read as a capture, or not all key logs and keys can be.
    :raises LookupError: there is no such statistic.
    :raises ValueError: a statistic cannot be asked so.
    """
    judge = Judge(limits)
    counted = {text: statistic(text, limits)[1] for text in tables}
    together = Together(counted.values())

    def feed(event: Event) -> None:
        judge.feed(event)
        together.feed(event)

    for exchange in read(
        paths,
        ports=ports,
        two_pass=two_pass,
        limits=limits,
        key_logs=key_logs,
        rsa_keys=rsa_keys,
        on_fault=feed,
        on_connection=feed,
    ):
        feed(exchange)
    judged = judge.judged(thresholds, ignore)
    rows = {text: each.result() for text, each in counted.items()}
    return Report(judged.findings, judged.not_judged, judged.context, rows)
