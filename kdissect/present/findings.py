"""The table of findings, and of rules that could not judge."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kdissect.analysis.declared import TIME, unit_of
from kdissect.insight.finding import Finding, FindingSubject
from kdissect.present.columns import Column, Table, dict_column
from kdissect.present.options import Options
from kdissect.present.sanitise import valid_text


def _read(read: Callable[[Finding], Any], finding: Finding, _: Options) -> Any:
    value = read(finding)
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, tuple):
        return [valid_text(each) if isinstance(each, str) else each for each in value]
    return value


def _column(
    name: str, kind: str, meaning: str, read: Callable[[Finding], Any] | None = None, *, unit: str = ""
) -> Column:
    how = read if read is not None else partial(_attribute, name)
    return Column(name, kind, meaning, partial(_read, how), unit=unit or unit_of(name))


def _attribute(name: str, finding: Finding) -> Any:
    return getattr(finding, name)


_EXACT = 2.0**53


def plain_number(value: float | None) -> float | None:
    """A measured value as it is printed: a whole number has no point, whether it was counted or computed. A
    number beyond 53 bits stays unchanged, because Arrow does not accept such a whole number as a float."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT else value


def _part(name: str, finding: Finding) -> Any:
    return getattr(finding.subject, name)


_PARTS: dict[str, tuple[str, str]] = {
    "client": ("text", "address of the client; with the port if the finding is about one connection"),
    "client_id": ("text", "the name the client gives itself"),
    "software": ("text", "name and version of the client, from ApiVersions"),
    "principal": ("text", "user of the connection, from its login"),
    "broker": ("text", "node id of the broker if known, otherwise address:port"),
    "topic": ("text", "the topic"),
    "partition": ("int32", "the partition"),
    "group": ("text", "the group id"),
    "member_id": ("text", "the member of the group"),
    "transactional_id": ("text", "the transactional id"),
    "cluster_id": ("text", "id of the cluster, if several have a group, topic or transactional id so named"),
}
assert set(_PARTS) == set(FindingSubject._fields)

FINDINGS = Table(
    "findings",
    (
        _column("finding", "text", "the id of the rule (kdissect explain --rule ID)", lambda each: each.id),
        _column("severity", "text", "critical, warning, notice or info"),
        _column(
            "confidence",
            "text",
            "certain (the protocol says so), likely (by far the best explanation), possible (one "
            "explanation of several)",
        ),
        _column("category", "text", "the kind of rule"),
        _column(
            "subject", "text", "the subject in one line: client, group, topic, …", lambda each: each.where
        ),
        *(_column(name, kind, meaning, partial(_part, name)) for name, (kind, meaning) in _PARTS.items()),
        _column("count", "int64", "how often it was seen"),
        _column(
            "measure",
            "float64",
            "the measured value, in the unit of the column unit",
            lambda each: plain_number(each.measure),
        ),
        _column("unit", "text", "the unit of measure and threshold", lambda each: each.unit or None),
        _column(
            "threshold",
            "float64",
            "limit for a finding ([findings.ID] in the configuration)",
            lambda each: plain_number(each.threshold),
        ),
        _column("cost_ns", "int64", "time lost because of it; null if unknown"),
        _column("first_ns", "int64", "when it was seen first, ns since the epoch", unit=TIME),
        _column("last_ns", "int64", "when it was seen last, ns since the epoch", unit=TIME),
        _column(
            "resolved_ns", "int64", "when it was over, ns since the epoch; null while it goes on", unit=TIME
        ),
        _column("exchanges", "int64s", "exchanges that show it, at most 8"),
        _column("packets", "int64s", "numbers of packets that show it, at most 8"),
        _column("connections", "int64s", "numbers of connections that show it, at most 8"),
        _column("message", "text", "what was seen, with numbers"),
        _column("cause", "text", "why it happens"),
        _column("fix", "text", "what to do"),
        _column("configs", "texts", "names of configurations related to it"),
        _column("sources", "texts", "where the rule comes from"),
        _column("because", "text", "key of the finding that explains it; null if none does"),
        _column("filter", "text", "display filter that shows it", lambda each: each.filter or None),
        _column("key", "text", "identity of the finding while a capture goes on: rule and subject"),
    ),
)

NOT_JUDGED = Table(
    "not judged",
    (
        dict_column("rule", "text", "the id of the rule"),
        dict_column("why", "text", "why the capture is not enough to judge it"),
    ),
)
