"""A rule, and the facts that it judges.

    @rule("rebalance-long", CRITICAL, CERTAIN, needs=(Rebalances,), stopped_s=5)
    def rebalance_long(facts: Facts) -> Iterator[Finding]:
        for row in facts.rows(Rebalances):
            if row["stopped_ns"] >= facts.limit("stopped_s") * SECOND:
                yield facts.finding(Subject(group=row["group"]), "…", measure=…, unit="s", …)

Numbers after the names are thresholds, which ``[findings.ID]`` of the configuration changes. The cause, the
fix, the configurations and the sources come from the rule's page, unless the rule gives them itself.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from kdissect.analysis.fold import Row, Statistic
from kdissect.insight.context import JudgingContext
from kdissect.insight.finding import MOST_EVIDENCE, Finding, FindingSubject
from kdissect.insight.page import RulePage, page

CAPTURE = "capture"
"""The category of findings on the capture itself."""
LOGS = "logs"
"""The category of rules on log directories; they do not judge captures."""

WELL_KNOWN = 1024
"""Ports below this one belong to other services (RFC 6335)."""


_TIMES = ("_s", "_ms", "seconds", "minutes", "minute")
"""Endings of the names of thresholds that are times or rates."""
T = TypeVar("T")


class Rule(NamedTuple):
    """A rule of the catalogue."""

    id: str
    severity: str
    """The severity of its findings, unless they give another one."""
    confidence: str
    category: str
    """The module of :mod:`kdissect.insight.rules` that contains it; for a package of several modules, the
    package."""
    needs: tuple[type[Statistic], ...]
    """The statistics whose rows it reads."""
    judge: Callable[[Facts], Iterable[Finding]]
    thresholds: Mapping[str, float]
    without_kafka: bool = False
    """Whether it can judge a capture without Kafka: TLS that failed, for example."""
    of_cluster: bool = False
    """Whether each finding is about the state of one cluster: in a capture of several, each is judged by
    itself."""

    @property
    def is_timed(self) -> bool:
        """Whether one of its thresholds is a time or a rate."""
        return any(name.endswith(_TIMES) for name in self.thresholds)

    @property
    def page(self) -> RulePage:
        """What it means, why it happens, what to do."""
        return page(self.id)


class Facts:
    """The facts that a rule judges.

    :param rows: the rows of each statistic that any rule needs.
    :param thresholds: thresholds of the configuration, by rule.
    :param made: the results of :meth:`once`, which all rules of a judgement share.
    """

    def __init__(
        self,
        rule: Rule,
        rows: Mapping[type[Statistic], list[Row]],
        context: JudgingContext,
        thresholds: Mapping[str, Mapping[str, float]],
        made: dict[Callable[[Facts], Any], Any],
    ) -> None:
        self._rule = rule
        self._rows = rows
        self.context = context
        self._configured = thresholds
        self._made = made
        self._thresholds = {**rule.thresholds, **thresholds.get(rule.id, {})}
        self.not_judged: str | None = None
        """Why the rule could not judge; None if it could."""

    def rows(self, statistic: type[Statistic]) -> list[Row]:
        """The rows of a statistic that the rule needs."""
        assert statistic in self._rule.needs
        return self._rows[statistic]

    def once(self, make: Callable[[Facts], T]) -> T:
        """The result of a function that several rules use. The first of them calls it. It may use nothing of
        that rule but its facts: other rules get the same result."""
        if make not in self._made:
            self._made[make] = make(self)
        found: T = self._made[make]
        return found

    @property
    def written(self) -> RulePage:
        """The rule's page."""
        return self._rule.page

    def fix(self, named: Mapping[str, object]) -> str:
        """The fix from the rule's page, with names of the capture in its commands: ``{"GROUP": "orders"}``
        puts ``orders`` in place of GROUP. GROUP stays if its name is unknown (None) or cannot be typed."""
        told = {name: str(value) for name, value in named.items() if value is not None}
        known = {name: shlex.quote(value) for name, value in told.items() if value.isprintable()}
        names = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in known) or "(?!)")
        return names.sub(lambda found: known[found[0]], self._rule.page.do)

    def limit(self, name: str) -> float:
        """A threshold."""
        return self._thresholds[name]

    def limit_of(self, rule: str, name: str) -> float:
        """A threshold of another rule, if this rule uses the findings of that one."""
        configured = self._configured.get(rule, {})
        return configured[name] if name in configured else RULES[rule].thresholds[name]

    def may_be_kafka(self, broker: str) -> bool:
        """Whether a port may be a broker's. If the capture has no Kafka at all, ports below 1024 are not:
        other services have those."""
        return self.context.exchanges > 0 or int(broker.rpartition(":")[2]) >= WELL_KNOWN

    def cannot_judge(self, why: str) -> None:
        """Say that the rule cannot judge this capture, and why: ``needs 60 s``, ``needs traffic of
        followers``."""
        self.not_judged = why

    def finding(self, subject: FindingSubject, message: str, **more: Any) -> Finding:
        """Make a finding of this rule. ``more`` are fields of :class:`Finding`. Severity, confidence, cause,
        fix, configs and sources default to the rule's."""
        written = self._rule.page
        values: dict[str, Any] = {
            "severity": self._rule.severity,
            "confidence": self._rule.confidence,
            "category": self._rule.category,
            "cause": written.why,
            "fix": written.do,
            "configs": written.configs,
            "sources": written.sources,
            **more,
        }
        for name in ("exchanges", "packets", "connections"):
            values[name] = tuple(dict.fromkeys(values.get(name, ())))[:MOST_EVIDENCE]
        return Finding(self._rule.id, subject=subject, message=message, **values)


RULES: dict[str, Rule] = {}
"""The rules of all imported modules; :mod:`kdissect.insight.catalogue` imports all."""


def rule(
    id: str,
    severity: str,
    confidence: str,
    needs: tuple[type[Statistic], ...],
    without_kafka: bool = False,
    of_cluster: bool = False,
    **thresholds: float,
) -> Callable[[Callable[[Facts], Iterable[Finding]]], Callable[[Facts], Iterable[Finding]]]:
    """Make a function a rule of the catalogue. Its category is the name of its module, or of the package that
    contains the module."""

    def register(judge: Callable[[Facts], Iterable[Finding]]) -> Callable[[Facts], Iterable[Finding]]:
        assert id not in RULES
        category = (
            judge.__module__.partition(".rules.")[2].partition(".")[0] or judge.__module__.rpartition(".")[2]
        )
        RULES[id] = Rule(
            id, severity, confidence, category, needs, judge, thresholds, without_kafka, of_cluster
        )
        return judge

    return register
