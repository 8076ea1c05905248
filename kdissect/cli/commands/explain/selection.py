"""Which findings are chosen, and which of them make a script fail: ``--severity``, ``--category``, ``--id``,
``--subject``, ``--fail-on``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from kdissect.cli.errors import Wrong
from kdissect.insight.catalogue import RULES
from kdissect.insight.finding import SEVERITIES, Finding, FindingSubject
from kdissect.present.nearest import nearest

_MOST_NAMED = 5
"""The most subjects that are named instead of one without findings."""


def _severity_of(text: str | None, option: str) -> int | None:
    """The rank of a severity; 0 is the worst.

    :raises Wrong: no severity has that name.
    """
    if text is None:
        return None
    if text not in SEVERITIES:
        raise Wrong(
            f"{option} {text}: there is no such severity"
            f"{nearest(text, SEVERITIES) or '; there are ' + ', '.join(SEVERITIES)}"
        )
    return SEVERITIES.index(text)


def _is_at_least(finding: Finding, severity: int) -> bool:
    """Whether a finding has this severity or a worse one."""
    return SEVERITIES.index(finding.severity) <= severity


class FindingChoice:
    """The choice of findings that the options make."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        """:raises Wrong: an option names something that does not exist."""
        self._severity = _severity_of(given["severity"], "--severity")
        self._fails_on = _severity_of(given["fail_on"], "--fail-on")
        if self._severity is not None and self._fails_on is not None and self._severity < self._fails_on:
            raise Wrong(
                f"--fail-on {given['fail_on']}: --severity {given['severity']} leaves out such findings; "
                f"give --severity {given['fail_on']}"
            )
        self._categories = _words(given["category"])
        known = {each.category for each in RULES.values()}
        for name in self._categories:
            if name not in known:
                hint = nearest(name, known) or f"; there are {', '.join(sorted(known))}"
                raise Wrong(f"--category {name}: there is no such category{hint}")
        self._ids = _words(given["ids"])
        for pattern in self._ids:
            if not any(fnmatchcase(id, pattern) for id in RULES):
                hint = nearest(pattern, RULES) or "; kdissect fields rules lists them"
                raise Wrong(f"--id {pattern}: there is no such rule{hint}")
        self._subject = [_part(text) for text in given["subject"]]

    def select(self, findings: Iterable[Finding]) -> list[Finding]:
        """The chosen findings, in their order."""
        return [each for each in findings if self._is_chosen(each)]

    def lines_without_findings(self, findings: Iterable[Finding]) -> list[str]:
        """For each chosen subject without findings, a line with the subjects that have some."""
        said = []
        for name, value in self._subject:
            subjects = [each.subject for each in findings]
            if any(_is_of(subject, name, value) for subject in subjects):
                continue
            known = sorted({str(own) for each in subjects if (own := getattr(each, name)) is not None})
            named = ", ".join([*known[:_MOST_NAMED], *("…" for _ in known[_MOST_NAMED : _MOST_NAMED + 1])])
            hint = nearest(value, known) or (f"; there are findings about {named}" if known else "")
            said.append(f"--subject {name}={value}: there is no finding about it{hint}")
        return said

    def fail(self, wanted: Iterable[Finding]) -> bool:
        """Whether one of the chosen findings has the severity of ``--fail-on`` or a worse one."""
        grave = self._fails_on
        return grave is not None and any(_is_at_least(each, grave) for each in wanted)

    def _is_chosen(self, each: Finding) -> bool:
        return (
            (self._severity is None or _is_at_least(each, self._severity))
            and (not self._categories or each.category in self._categories)
            and (not self._ids or any(fnmatchcase(each.id, pattern) for pattern in self._ids))
            and all(_is_of(each.subject, name, value) for name, value in self._subject)
        )


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _part(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    name = name.strip().replace(".", "_")
    if name in FindingSubject._fields and not (equals and value.strip()):
        raise Wrong(f"--subject {text}: a value is missing, as in {name}=VALUE")
    if not equals or name not in FindingSubject._fields:
        hint = nearest(name, FindingSubject._fields) or f"; there are {', '.join(FindingSubject._fields)}"
        raise Wrong(f"--subject {text}: NAME=VALUE is needed, with the name of a part of a subject{hint}")
    return name, value.strip()


def _is_of(subject: FindingSubject, name: str, value: str) -> bool:
    own = getattr(subject, name)
    if own is None:
        return False
    text = str(own)
    if name == "client" and text.rpartition(":")[0] == value:
        return True  # named without its port
    return fnmatchcase(text, value)
