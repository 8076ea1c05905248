"""Which finding explains which: a cause, what it explains, and what the two must share.

A finding that is explained is listed below its cause, and is no trouble of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kdissect.insight.finding import Finding


class Cause(NamedTuple):
    """One finding explains another."""

    cause: str
    effect: str
    shares: tuple[str, ...] = ()
    """Fields of the subject that must be the same if both findings have them."""
    within_s: float | None = None
    """The longest time from the end of the cause to the beginning of the effect, which must not begin before
    the cause."""
    at_once: bool = False
    """Whether both findings must overlap in time."""
    is_named: bool = False
    """Whether the link counts only if the rule of the effect names the cause itself."""
    same: tuple[str, ...] = ()
    """Fields of the subject that both findings must have, with the same values."""


CAUSES: list[Cause] = []
"""The known causes. Modules of rules add theirs with :func:`explains`; if several fit, the first counts."""


def explains(
    cause: str,
    *effects: str,
    shares: tuple[str, ...] = (),
    within_s: float | None = None,
    at_once: bool = False,
    same: tuple[str, ...] = (),
) -> None:
    """Say that one finding explains others."""
    CAUSES.extend(Cause(cause, effect, shares, within_s, at_once, same=same) for effect in effects)


def may_explain(cause: str, *effects: str, within_s: float) -> None:
    """Say that one finding explains others if the rules of these others name it."""
    CAUSES.extend(Cause(cause, effect, within_s=within_s, is_named=True) for effect in effects)


def linked(findings: list[Finding], causes: Iterable[Cause] | None = None) -> list[Finding]:
    """The findings, each with the key of the finding that explains it. The links never form a circle. A rule
    may name a cause itself; that counts only if the cause was found, at a time when it can explain such
    effects."""
    known = list(CAUSES if causes is None else causes)
    by_key = {each.key: each for each in findings}
    findings = [_named_in_cluster(each, by_key) for each in findings]

    def explained(each: Finding) -> bool:
        cause = by_key.get(each.because or "")
        return cause is not None and _is_in_time(known, cause, each)

    findings = [
        each if each.because is None or explained(each) else each.changed(because=None) for each in findings
    ]
    by_id: dict[str, list[Finding]] = {}
    for each in findings:
        by_id.setdefault(each.id, []).append(each)
    by_effect: dict[str, list[Cause]] = {}
    for relation in known:
        if not relation.is_named and relation.cause in by_id:
            by_effect.setdefault(relation.effect, []).append(relation)
    because: dict[str, str] = {each.key: each.because for each in findings if each.because is not None}
    for each in findings:
        key = each.key
        for relation in () if key in because else by_effect.get(each.id, ()):
            fitting = [one for one in by_id[relation.cause] if _fits(relation, one, each)]
            fitting.sort(key=lambda one: not _overlap(one, each))
            cause = next((one for one in fitting if not _leads(because, one.key, key)), None)
            if cause is not None:
                because[key] = cause.key
                break
    return [each.changed(because=because[each.key]) if each.key in because else each for each in findings]


def _named_in_cluster(each: Finding, by_key: Mapping[str, Finding]) -> Finding:
    """A finding whose cause is of its own cluster, if its rule named a cause without the cluster."""
    cluster = each.subject.cluster_id
    if cluster is None or each.because is None or each.because in by_key:
        return each
    return each.changed(because=f"{each.because} cluster_id={cluster}")


def _fits(relation: Cause, cause: Finding, effect: Finding) -> bool:
    if cause.id == effect.id and cause.key == effect.key:
        return False
    clusters = {cause.subject.cluster_id, effect.subject.cluster_id} - {None}
    if len(clusters) > 1:
        return False
    for name in relation.shares:
        ours, theirs = _all_of(cause, name), _all_of(effect, name)
        if ours and theirs and ours.isdisjoint(theirs):
            return False
    for name in relation.same:
        one, other = getattr(cause.subject, name), getattr(effect.subject, name)
        if one is None or one != other:
            return False
    if relation.at_once and not _overlap(cause, effect):
        return False
    if relation.within_s is None or cause.first_ns is None or effect.first_ns is None:
        return True
    last_ns = cause.last_ns if cause.last_ns is not None else cause.first_ns
    return cause.first_ns <= effect.first_ns <= last_ns + relation.within_s * 1e9


def _all_of(finding: Finding, name: str) -> set[Any]:
    """The values of a field of the subject; for client ids, those of all clients of the finding."""
    also = finding.client_ids if name == "client_id" else ()
    return {getattr(finding.subject, name), *also} - {None}


def _overlap(cause: Finding, effect: Finding) -> bool:
    """Whether both findings overlap in time. Of several causes, one that overlaps is the likelier one."""
    if cause.first_ns is None or effect.first_ns is None:
        return False
    cause_ns = cause.last_ns if cause.last_ns is not None else cause.first_ns
    effect_ns = effect.last_ns if effect.last_ns is not None else effect.first_ns
    return cause.first_ns <= effect_ns and effect.first_ns <= cause_ns


def _is_in_time(known: list[Cause], cause: Finding, effect: Finding) -> bool:
    """Whether the effect is close enough in time to the cause that its rule names. The table says how close.
    The effect may be seen first: a broker that stops hands over before its connections end."""
    windows = [each.within_s for each in known if each.cause == cause.id and each.effect == effect.id]
    if not windows or None in windows or cause.first_ns is None or effect.first_ns is None:
        return True
    room_ns = max(window for window in windows if window is not None) * 1e9
    last_ns = cause.last_ns if cause.last_ns is not None else cause.first_ns
    return cause.first_ns - room_ns <= effect.first_ns <= last_ns + room_ns


def _leads(because: dict[str, str], start: str, end: str) -> bool:
    """Whether the chain of causes from ``start`` reaches ``end``."""
    at: str | None = start
    while at is not None:
        if at == end:
            return True
        at = because.get(at)
    return False
