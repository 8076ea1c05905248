"""Captures → findings in one call, for programs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from os import PathLike

from kdissect.analysis.catalogue import statistic
from kdissect.insight.judge import Judge, Report
from kdissect.limits import DEFAULTS, Limits
from kdissect.reading import read

__all__ = ["Report", "explain"]


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
    judge = Judge(limits, tables={text: statistic(text, limits)[1] for text in tables})
    for exchange in read(
        paths,
        ports=ports,
        two_pass=two_pass,
        limits=limits,
        key_logs=key_logs,
        rsa_keys=rsa_keys,
        on_fault=judge.feed,
        on_connection=judge.feed,
    ):
        judge.feed(exchange)
    return judge.report(thresholds, ignore)
