"""Runs the rules over the rows of facts, links causes, and puts the worst first.

judge = Judge()
for event in events: judge.feed(event)
judged = judge.judged()
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from kdissect.analysis.clients import Clients
from kdissect.analysis.cluster import ClusterBrokers
from kdissect.analysis.fold import SECOND, Row, Statistic
from kdissect.analysis.fold_set import Together
from kdissect.analysis.groups import Members, Stays
from kdissect.analysis.lag import Lag
from kdissect.analysis.offsets_asked import OffsetsAsked
from kdissect.analysis.payloads import Payloads
from kdissect.analysis.positions import Positions
from kdissect.analysis.stalls import Stalls
from kdissect.dissect import Event
from kdissect.insight.apart import ClustersApart, SubjectName, names_of
from kdissect.insight.catalogue import RULES
from kdissect.insight.causes import linked
from kdissect.insight.context import SLEPT, ClusterEnds, JudgingContext
from kdissect.insight.coverage import Coverage
from kdissect.insight.finding import CONFIDENCES, INFO, NOTICE, SEVERITIES, Finding
from kdissect.insight.logs import Logs
from kdissect.insight.nodes import are_several_clusters, names_of_several, nodes_by_address, read_elsewhere
from kdissect.insight.options import OwnNames
from kdissect.insight.rule import CAPTURE, LOGS, Facts, Rule
from kdissect.insight.words import named
from kdissect.limits import DEFAULTS, Limits

if TYPE_CHECKING:
    from kdissect.payload.decoder import PayloadDecoder


class NotJudged(NamedTuple):
    """A rule that could not judge."""

    rule: str
    why: str


class Judged(NamedTuple):
    """The results of all rules."""

    findings: list[Finding]
    """Causes, worst first, each followed by what it explains."""
    not_judged: list[NotJudged]
    rules: int
    """How many rules could judge."""
    context: JudgingContext = JudgingContext()
    incomplete: Sequence[str] = ()
    """Tables that rules read and that had no room for all rows."""


class CaptureReport(NamedTuple):
    """The findings of a capture, and its statistics."""

    findings: list[Finding]
    """Causes, worst first, each followed by what it explains."""
    not_judged: list[NotJudged]
    """Rules that could not judge, and why."""
    context: JudgingContext
    """What was captured."""
    tables: dict[str, list[Row]]
    """Rows of the requested statistics, by the name that was requested."""
    rules: int = 0
    """How many rules could judge."""
    left_out: dict[str, int] = {}  # noqa: RUF012 - nobody adds to it
    """How often each of these statistics left something out for want of room."""

    @property
    def judged(self) -> Judged:
        """The results of the rules."""
        return Judged(self.findings, self.not_judged, self.rules, self.context)


class RowsInTurn(Mapping[type[Statistic], list[Row]]):
    """Rows of statistics. Each table is made when a rule asks for it, and kept until no further rule needs
    it. All tables at once would take more memory than the statistics that they are made from.

    :param kept: tables that the caller needs too, and that are never dropped.
    """

    def __init__(
        self, statistics: Mapping[type[Statistic], Statistic], kept: Collection[type[Statistic]] = ()
    ) -> None:
        self._statistics = statistics
        self._kept = frozenset(kept)
        self._rows: dict[type[Statistic], list[Row]] = {}

    def __getitem__(self, need: type[Statistic]) -> list[Row]:
        found = self._rows.get(need)
        if found is None:
            found = self._rows[need] = self._statistics[need].result()
        return found

    def __iter__(self) -> Iterator[type[Statistic]]:
        return iter(self._statistics)

    def __len__(self) -> int:
        return len(self._statistics)

    def drop(self, done: Iterable[type[Statistic]]) -> None:
        """Drop the rows that no further rule needs."""
        for each in done:
            if each not in self._kept:
                self._rows.pop(each, None)


def in_turn(rules: Iterable[Rule]) -> Iterator[tuple[Rule, list[type[Statistic]]]]:
    """The rules, in an order that puts rules with the same statistics together.

    :returns: each rule with the statistics that no later rule needs.
    """
    every = list(rules)
    count = Counter(need for each in every for need in each.needs)
    place = {need: at for at, (need, _) in enumerate(count.most_common())}
    for each in sorted(every, key=lambda each: max((place[need] for need in each.needs), default=-1)):
        for need in each.needs:
            count[need] -= 1
        yield each, [need for need in each.needs if not count[need]]


def judge(
    rules: Mapping[str, Rule],
    rows: Mapping[type[Statistic], list[Row]],
    context: JudgingContext,
    thresholds: Mapping[str, Mapping[str, float]] | None = None,
) -> Judged:
    """Run the rules.

    :param rows: the rows of every statistic that a rule needs.
    :param thresholds: thresholds of the configuration, by rule.
    """
    if Stalls in rows and Stays in rows:
        context = context.with_halts(rows[Stalls], rows[Stays])
    twins: frozenset[str] = frozenset()
    are_several = ClusterBrokers in rows and are_several_clusters(rows[ClusterBrokers])
    if are_several and Positions in rows:
        nodes = nodes_by_address(rows[ClusterBrokers])
        # A tool that copies the offsets of a group to another cluster asks both clusters for them, and reads
        # no records.
        asked = [
            {"group": row["group"], "broker": broker}
            for row in rows.get(OffsetsAsked, ())
            for broker in row["brokers"]
        ]
        twins = names_of_several([*rows[Positions], *asked], "group", nodes)
    if ClusterBrokers in rows and Positions in rows:
        twins |= read_elsewhere(rows[Positions], rows[ClusterBrokers])
    twins |= _in_several_clusters(rows)
    clusters = ClustersApart(rows) if are_several else None
    if clusters is not None:
        context = context._replace(ends=ClusterEnds(clusters.ends(), context.last_ns))
    own_names = OwnNames.of(rows.get(Clients, ()), rows.get(Members, ()))
    said: dict[str, tuple[list[Finding], str | None]] = {}
    made: dict[Callable[[Facts], Any], Any] = {}
    for each, done in in_turn(rules.values()):
        facts = Facts(each, rows, context, thresholds or {}, made)
        told = list(each.judge(facts))
        is_joined = each.category in BY_GROUP or not _FACTS_BY_GROUP.isdisjoint(each.needs)
        shared = _SharedNames(
            twins if is_joined else frozenset(),
            clusters.shared(each) if clusters is not None else frozenset(),
            clusters is not None and each.of_cluster,
        )
        of_one = [one for one in told if not shared.has(one)]
        if clusters is not None and shared.has_any:
            apart = clusters.judged(each, context, thresholds or {}, shared.has)
            of_one += apart.known
            unknown = apart.vague
            if facts.not_judged is None and not apart.known and apart.why is not None:
                facts.cannot_judge(apart.why)
        else:
            unknown = [one for one in told if shared.has(one)]
        if unknown:
            facts.cannot_judge(shared.why(unknown))
        known = [one for one in of_one if not _is_by_a_wrong_clock(each, one, context)]
        if len(known) < len(of_one):
            facts.cannot_judge(SLEPT)
        if not known and facts.not_judged is None and each.category != CAPTURE:
            facts.not_judged = context.most_lacks
        said[each.id] = known, facts.not_judged
        if isinstance(rows, RowsInTurn):
            rows.drop(done)
    found = [each for id in rules for each in said[id][0]]
    silent = [NotJudged(id, why) for id in rules if (why := said[id][1]) is not None]
    found = [own_names.said(_resolved(each, context)) for each in linked(found)]
    return Judged(in_order(found), silent, len(rules) - len(silent), context)


def _in_several_clusters(rows: Mapping[type[Statistic], list[Row]]) -> frozenset[str]:
    """Groups that have rows of their own in several clusters. Rules join rows by the name of the group. Facts
    without the cluster of a group do not show that there is a second cluster."""
    return _of_several_clusters([row for facts in (Lag, Members) for row in rows.get(facts, ())], "group")


def _of_several_clusters(rows: Iterable[Row], name: str) -> frozenset[str]:
    """The names in a column that have rows of their own in several clusters. A row without a name shares
    none."""
    clusters: dict[str, set[str | None]] = {}
    for row in rows:
        if row[name] is not None:
            clusters.setdefault(row[name], set()).add(row.get("cluster_id"))
    return frozenset(each for each, found in clusters.items() if len(found - {None}) > 1)


class _SharedNames:
    """The names, by which a rule joins rows, that several clusters use.

    :param twins: groups.
    :param names: other names.
    :param has_all: whether all findings of the rule are about one cluster each.
    """

    def __init__(self, twins: frozenset[str], names: frozenset[SubjectName], has_all: bool) -> None:
        self._twins, self._names, self._has_all = twins, names, has_all
        self.has_any = has_all or bool(twins or names)
        """Whether there are any."""

    def has(self, found: Finding) -> bool:
        """Whether a finding is about such a name."""
        is_twin = self._has_all or found.subject.group in self._twins
        return is_twin or not self._names.isdisjoint(names_of(found))

    def why(self, findings: Sequence[Finding]) -> str:
        """Why findings on such names are left out."""
        if any(each.subject.group in self._twins for each in findings):
            return TWINS
        shared = {name for each in findings for name in names_of(each) if name in self._names}
        return TWIN_NAMES.format(named(sorted(name for _, name in shared))) if shared else NO_CLUSTER


def _is_by_a_wrong_clock(by: Rule, found: Finding, context: JudgingContext) -> bool:
    """Whether a finding rests on a time in which the clock was set back, or lasted mainly because the clock
    or the capture stood still."""
    if by.category == CAPTURE or by.id == CLOCK or context.first_ns is None or context.last_ns is None:
        return False
    if context.ends_earlier and by.category in IN_ORDER and found.severity in (NOTICE, INFO):
        return True  # such a finding is not worth the doubt
    from_ns = found.first_ns if found.first_ns is not None else context.first_ns
    to_ns = found.last_ns if found.last_ns is not None else context.last_ns
    from_ns, to_ns = min(from_ns, to_ns), max(from_ns, to_ns)
    if (
        by.category in IN_ORDER
        and found.lasts
        and context.halted_ns(from_ns, to_ns) * 2 >= to_ns - from_ns > 0
    ):
        return True
    rests_on_it = context.was_set_back(from_ns, to_ns) or (context.ends_earlier and to_ns >= context.last_ns)
    return rests_on_it and (by.category in IN_ORDER or by.is_timed or found.is_timed)


def of_captures(deep: bool = False) -> list[Rule]:
    """The rules of the catalogue that judge captures.

    :param deep: whether to include the rules that need every record unpacked.
    """
    rules = [each for each in RULES.values() if each.category != LOGS]
    return [each for each in rules if deep or not any(need.is_deep for need in each.needs)]


def judge_logs(
    logs: Logs,
    thresholds: Mapping[str, Mapping[str, float]] | None = None,
    ignored: Collection[str] = (),
) -> Judged:
    """The results of the rules on log directories."""
    rules = {
        id: each
        for id, each in RULES.items()
        if each.category == LOGS and not any(fnmatchcase(id, pattern) for pattern in ignored)
    }
    return judge(rules, {Logs: logs.result()}, JudgingContext(), thresholds)


_FACTS_PERCENT = 80
"""Percent of the memory for facts that the statistics may take. The rest is for the rows: rules look at those
of several statistics at a time, beside the statistics themselves."""
IN_ORDER = frozenset(
    (
        *("brokers", "cluster", "delivery", "groups", "lag", "latency", "offsets"),
        *("replication", "share", "streams", "transactions"),
    )
)
"""Categories of rules that rely on the order of events. If the clock was set back, the last events of the
capture may not be its end."""
BY_GROUP = frozenset(("groups", "lag", "streams", "share"))
"""Categories of rules that join rows of several connections by the name of the group. Rules that need one of
the facts below do so, too."""
_FACTS_BY_GROUP = frozenset((Lag, Members))
TWINS = "two clusters have groups of the same name, and the cluster of some facts about them is unknown"
TWIN_NAMES = (
    "two clusters have a topic, group or transactional id named {}, and the cluster of some facts about it "
    "is unknown"
)
NO_CLUSTER = "several clusters were captured, and the cluster of some facts is unknown"
CLOCK = "capture-clock"
"""The rule that judges the clock itself."""
CLEAR_NS = 60 * SECOND
"""How long a finding must not be seen to be over."""


def _resolved(each: Finding, context: JudgingContext) -> Finding:
    if each.resolved_ns is not None or each.last_ns is None or context.last_ns is None:
        return each
    is_over = context.last_ns - each.last_ns >= CLEAR_NS
    return each.changed(resolved_ns=each.last_ns) if is_over else each


class Judge:
    """Collects everything that rules need to know of a capture, from its events. Parts that were fed
    separately can be added, in the order of the events.

    :param rules: the rules to run; by default all of the catalogue for captures except those that unpack
        records.
    :param tables: further statistics that the caller needs, by their names for ``-z``. A statistic that a
        rule needs, too, is counted once.
    :param decoder: decodes keys and values, for rules that unpack records.
    """

    def __init__(
        self,
        limits: Limits = DEFAULTS,
        rules: Iterable[Rule] | None = None,
        tables: Mapping[str, Statistic] | None = None,
        decoder: PayloadDecoder | None = None,
    ) -> None:
        self._rules = {each.id: each for each in (of_captures() if rules is None else rules)}
        needed = dict.fromkeys(need for each in self._rules.values() for need in each.needs)
        self._statistics = {need: need(limits) for need in needed}
        by_name = {each.name: each for each in self._statistics.values()}
        self._tables = {text: by_name.get(text, each) for text, each in (tables or {}).items()}
        own = [each for text, each in self._tables.items() if text not in by_name]
        for each in self._statistics.values():
            if isinstance(each, Payloads) and decoder is not None:
                each.use(decoder)
        self._together = Together([*self._statistics.values(), *own], _FACTS_PERCENT)
        self._coverage = Coverage(limits)

    def __getstate__(self) -> dict[str, Any]:
        """The state without the rules. Rules are code, and another process has its own."""
        return {**self.__dict__, "_rules": list(self._rules)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._rules = {id: RULES[id] for id in state["_rules"]}

    def feed(self, event: Event, counts: bool = True) -> None:
        """Take in the next event.

        :param counts: whether the event is judged; otherwise it only serves to understand other events.
        """
        if counts:
            self._coverage.feed(event)
        else:
            self._coverage.see(event)
        self._together.feed(event, counts)

    def feed_all(self, events: Sequence[Event]) -> None:
        """Take in the next events, all of which are judged."""
        self._coverage.feed_all(events)
        self._together.feed_all(events)

    def set_open(self) -> None:
        """Accept more than the limits allow, until :meth:`close`. Call it before the first event."""
        self._together.set_open()

    @property
    def awaits_chapter(self) -> bool:
        """Whether a full statistic needs a judge for the current chapter."""
        return self._together.awaits_chapter

    def begin_chapter(self, chapter: Self) -> None:
        """Let the statistics of ``chapter`` take in the events of the current chapter for full ones."""
        self._together.begin_chapter(chapter._together)

    def end_chapter(self, new: Callable[[], Self]) -> None:
        """Add the current chapter to the full statistics, and apply the limits to the others.

        :param new: makes the same judge without any contents.
        """
        self._together.end_chapter(lambda: new()._together)

    def close(self) -> None:
        """Keep to the limits from now on, as events come."""
        self._together.close()

    def merge(self, later: Self) -> None:
        """Add the state of another judge that has the same rules."""
        self._coverage.merge(later._coverage)
        self._together.merge(later._together)

    def take(self, later: Self) -> None:
        """Add the same, and empty ``later`` meanwhile."""
        self._coverage.merge(later._coverage)
        self._together.take(later._together)

    def add_capture(self, later: Self) -> None:
        """Add the state of a judge of another capture, whose packets are counted from 1 again."""
        for each in (self, later):
            each._coverage.end_capture()
        self.merge(later)

    def context(self) -> JudgingContext:
        """What was captured so far."""
        return self._coverage.context()

    def judged(
        self,
        thresholds: Mapping[str, Mapping[str, float]] | None = None,
        ignored: Collection[str] = (),
        packets: int | None = None,
    ) -> Judged:
        """The results of the rules so far; feeding may go on.

        :param thresholds: thresholds of the configuration, by rule.
        :param ignored: rules that are not run, by id or pattern.
        :param packets: how many packets were read, of any protocol.
        """
        return self._judged(RowsInTurn(self._statistics), thresholds, ignored, packets)

    def report(
        self,
        thresholds: Mapping[str, Mapping[str, float]] | None = None,
        ignored: Collection[str] = (),
    ) -> CaptureReport:
        """The results, with the requested tables."""
        wanted = [type(each) for each in self._tables.values() if self._statistics.get(type(each)) is each]
        rows = RowsInTurn(self._statistics, wanted)
        judged = self._judged(rows, thresholds, ignored)
        tables = {
            text: rows[type(each)] if self._statistics.get(type(each)) is each else each.result()
            for text, each in self._tables.items()
        }
        left_out = {text: each.left_out for text, each in self._tables.items() if each.left_out}
        return CaptureReport(
            judged.findings, judged.not_judged, judged.context, tables, judged.rules, left_out
        )

    def _judged(
        self,
        rows: Mapping[type[Statistic], list[Row]],
        thresholds: Mapping[str, Mapping[str, float]] | None,
        ignored: Collection[str],
        packets: int | None = None,
    ) -> Judged:
        full = frozenset(each.name for each in self._statistics.values() if each.room.refused)
        context = self.context()._replace(packets_read=packets, incomplete=full)
        rules = {
            id: each
            for id, each in self._rules.items()
            if not any(fnmatchcase(id, pattern) for pattern in ignored)
        }
        run = {
            id: each
            for id, each in rules.items()
            if context.exchanges or each.category == CAPTURE or each.without_kafka
        }
        found = judge(run, rows, context, thresholds)
        found.not_judged.extend(NotJudged(id, "no Kafka was captured") for id in rules if id not in run)
        incomplete = [each.name for each in self._statistics.values() if each.room.refused]
        return found._replace(incomplete=incomplete)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Causes by the severity of them and of their effects, each followed by its effects. Among equally bad
    findings, those on the capture itself come first, because they limit what the others can know."""
    findings = list(findings)
    effects: dict[str, list[Finding]] = {}
    for each in sorted(findings, key=_badness):
        if each.because is not None:
            effects.setdefault(each.because, []).append(each)
    out: list[Finding] = []

    def worst(each: Finding) -> int:
        return min([SEVERITIES.index(each.severity), *map(worst, effects.get(each.key, ()))])

    def add(each: Finding) -> None:
        out.append(each)
        for effect in effects.pop(each.key, ()):
            add(effect)

    causes = [each for each in findings if each.because is None]
    for each in sorted(causes, key=lambda each: (worst(each), _badness(each))):
        add(each)
    return out


def _badness(each: Finding) -> tuple[int, bool, int, int, int, str]:
    return (
        SEVERITIES.index(each.severity),
        each.category != CAPTURE,
        CONFIDENCES.index(each.confidence),
        -(each.cost_ns or 0),
        -each.count,
        each.key,
    )
