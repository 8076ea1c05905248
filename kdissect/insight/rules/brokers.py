"""Rules on brokers and controllers: those that went, stood still, were fenced, and elections."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from kdissect.analysis.cluster import ClusterBrokers, ClusterChanges
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.quorum import Quorum
from kdissect.analysis.tcp import Tcp
from kdissect.insight.causes import explains
from kdissect.insight.finding import (
    CERTAIN,
    CRITICAL,
    INFO,
    NOTICE,
    WARNING,
    EvidenceStep,
    Finding,
    FindingSubject,
    key_of,
)
from kdissect.insight.repeated import once
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import showing
from kdissect.wording import plural

HANDED = ("leader-moved", "isr-shrunk", "broker-stopping")
"""What happens to a broker that is about to stop."""
FAILED = ("refused", "unanswered")
"""What came of a SYN that nobody took."""


class _LostBroker(NamedTuple):
    """An address where nobody answers any more."""

    address: str
    last_ns: int
    """When its connections had ended."""
    ended: int
    """How many ended together."""
    failed: int
    """How many tries to connect came to nothing since."""
    back_ns: int | None
    """When one succeeded again."""
    connections: tuple[int, ...]


def _host(place: str) -> str:
    return place.rpartition(":")[0]


def addresses_of(row: Row) -> list[str]:
    """The addresses of a node that the cluster tells. ``localhost`` is this machine's own."""
    hosts = ("127.0.0.1", "[::1]") if row["host"] == "localhost" else (row["host"],)
    places = (f"[{host}]" if ":" in host and not host.startswith("[") else host for host in hosts)
    return [f"{place}:{row['port']}" for place in places]


def nodes_by_address(rows: list[Row]) -> dict[str, int]:
    """Which node is at an address, as the cluster tells it. ``localhost`` is this machine's own address; of
    an address that several nodes have had, none is told."""
    found: dict[str, set[int]] = {}
    for row in rows:
        for place in addresses_of(row):
            found.setdefault(place, set()).add(row["node_id"])
    return {address: next(iter(nodes)) for address, nodes in found.items() if len(nodes) == 1}


def served_until_ns(row: Row) -> int:
    """How long the broker served a connection: until it closed it, though the client may have kept its half
    open for longer."""
    return int(row["closed_ns"] if row["closed_by"] == "broker" else row["last_ns"])


def _losses(rows: list[Row], within_ns: float, patience_ns: float) -> Iterator[_LostBroker]:
    """Addresses whose connections end together, and that nobody reaches after."""
    brokers: dict[str, list[Row]] = {}
    for row in rows:
        brokers.setdefault(row["broker"], []).append(row)
    for address, mine in sorted(brokers.items()):
        lived = [row for row in mine if row["opening"] not in FAILED and row["exchanges"]]
        failed = sorted((row for row in mine if row["opening"] in FAILED), key=lambda row: row["first_ns"])
        after = 0
        while failed:
            first_ns = failed[0]["first_ns"]
            before = [row for row in lived if after <= row["first_ns"] < first_ns]
            again = min((row["first_ns"] for row in lived if row["first_ns"] > first_ns), default=None)
            since = [row for row in failed if again is None or row["first_ns"] < again]
            failed = failed[len(since) :]
            after = again if again is not None else first_ns
            last_ns = max(map(served_until_ns, before), default=None)
            if last_ns is None or first_ns - last_ns > patience_ns or last_ns > first_ns + within_ns:
                continue
            together = [row for row in before if served_until_ns(row) >= last_ns - within_ns]
            if any(row["end"] == "open" for row in together) or not _came_to_nothing(since):
                continue
            yield _LostBroker(
                address,
                last_ns,
                len(together),
                len(since),
                again,
                tuple(row["connection"] for row in (*together, *since)),
            )


MANY_TRIES = 3


def _came_to_nothing(failed: list[Row]) -> bool:
    """Whether these tries to connect show that nobody was there. One that was sent once and not answered may
    have had its answer, or all that followed, lost on the way to the capture."""
    sure = any(row["opening"] == "refused" or (row["syns"] or 0) > 1 for row in failed)
    return sure or len(failed) >= MANY_TRIES


@rule(
    "broker-gone",
    CRITICAL,
    CERTAIN,
    needs=(Tcp, ClusterBrokers, ClusterChanges),
    together_s=1,
    patience_s=30,
    stopping_s=60,
    tries=1,
    orderly_s=300,
)
@once
def broker_gone(facts: Facts) -> Iterator[Finding]:
    """All connections of a broker end at once, and nobody reaches it after."""
    for stop in _stops(facts, facts.limit):
        yield _gone(facts, stop)


def _stops(facts: Facts, limit: Callable[[str], float]) -> Iterator[_BrokerStop]:
    """Brokers that went.

    :param limit: tells a threshold of the rule ``broker-gone``.
    """
    within_ns = limit("together_s") * SECOND
    nodes = nodes_by_address(facts.rows(ClusterBrokers))
    losses = _losses(facts.rows(Tcp), within_ns, limit("patience_s") * SECOND)
    several = [each for each in losses if each.failed >= limit("tries")]
    for each in _of_one_broker(several, nodes, within_ns, limit("stopping_s") * SECOND):
        yield _stop(facts, each, nodes)


def returns(facts: Facts) -> list[tuple[int, int, int]]:
    """Brokers that were gone and came back: the node, when its connections had ended, and when a client
    reached it again. The facts need what those of :func:`restarts` need."""
    return [
        (each.node, each.last_ns, each.back_ns)
        for each in _stops(facts, partial(facts.limit_of, "broker-gone"))
        if each.node is not None and each.back_ns is not None
    ]


def restarts(facts: Facts) -> list[tuple[int, int, int]]:
    """Brokers that were stopped in an orderly way and that came back within ``orderly_s`` of ``broker-gone``.

    Each is the node, and from when to when it was away. The facts need :class:`Tcp`, :class:`ClusterBrokers`
    and :class:`ClusterChanges`.
    """
    limit = partial(facts.limit_of, "broker-gone")
    return [
        (each.node, each.first_ns, each.back_ns)
        for each in _stops(facts, limit)
        if each.node is not None
        and each.back_ns is not None
        and each.away_ns is not None
        and each.is_orderly
        and each.away_ns <= limit("orderly_s") * SECOND
    ]


def _of_one_broker(
    losses: list[_LostBroker], nodes: dict[str, int], within_ns: float, stopping_ns: float
) -> Iterator[list[_LostBroker]]:
    """Listeners of one broker go together. Which broker has a listener that only brokers use is not always
    told; where one broker of its host went at the same time, it is that one's."""
    gone: list[list[_LostBroker]] = []
    for each in losses:
        if (node := nodes.get(each.address)) is None:
            continue
        mine = (
            of_one
            for of_one in gone
            if nodes[of_one[0].address] == node
            and all(_down_together(each, one, stopping_ns) for one in of_one)
        )
        if (one := next(mine, None)) is not None:
            one.append(each)
        else:
            gone.append([each])
    rest = [each for each in losses if each.address not in nodes]
    alone: list[list[_LostBroker]] = []
    for other in rest:
        host = _host(other.address)
        near = [
            of_one
            for of_one in gone
            if _host(of_one[0].address) == host and abs(of_one[0].last_ns - other.last_ns) <= within_ns
        ]
        if len(near) == 1:
            near[0].append(other)
        else:
            alone.append([other])
    yield from (*gone, *alone)


def _down_together(one: _LostBroker, other: _LostBroker, stopping_ns: float) -> bool:
    """Whether two listeners were away at the same time, as those of one process are. A broker that stops in
    an orderly way closes that of controllers last, after it has flushed its logs. That takes seconds, and
    what stops services gives them no more than a minute or so (Kubernetes 30 s, systemd 90 s)."""
    overlap = (other.back_ns is None or one.last_ns <= other.back_ns) and (
        one.back_ns is None or other.last_ns <= one.back_ns
    )
    return overlap and abs(one.last_ns - other.last_ns) <= stopping_ns


class _BrokerStop(NamedTuple):
    """A broker that is gone, with all of its listeners."""

    several: list[_LostBroker]
    node: int | None
    first_ns: int
    """When it began to stop."""
    last_ns: int
    """When the last of its connections had ended."""
    back_ns: int | None
    before: list[Row]
    """Leaders that moved away before that."""
    after: list[Row]
    """And after it."""
    is_orderly: bool
    """Whether somebody stopped it: it said so, or it still answered after its leaders had moved. A machine
    that dies answers nobody, though its clients may hang on until after it is fenced."""
    away_ns: int | None
    """How long it was away at least, by the capture's clock; None as long as it is not back."""
    moved_to: str | None
    """The other address at which it is back, if it is."""


def _stop(facts: Facts, several: list[_LostBroker], nodes: dict[str, int]) -> _BrokerStop:
    """What is told of a broker that is gone."""
    node = nodes.get(several[0].address)
    last_ns = max(each.last_ns for each in several)
    mine = [
        row
        for row in facts.rows(ClusterChanges)
        if node is not None and row["node_id"] == node and row["by"] is None
    ]
    back = [each.back_ns for each in several if each.back_ns is not None]
    # It may be back, and no client needs it.
    back += [row["ns"] for row in mine if row["what"] == "broker-registered" and row["ns"] > last_ns]
    moved = _elsewhere(facts, several, nodes, last_ns)
    back += [ns for ns, _ in moved[:1]]
    near = [row for row in mine if abs(row["ns"] - last_ns) <= 30 * SECOND]
    moves = [row for row in near if row["what"] == "leader-moved"]
    before = [row for row in moves if row["ns"] < last_ns - SECOND // 10]
    after = [row for row in moves if row["ns"] >= last_ns - SECOND // 10]
    if len(before) <= len(after):
        before = []  # they moved for another reason
    is_orderly = any(row["what"] == "broker-stopping" for row in near) or bool(
        before and _answered_until(facts, several) > max(row["ns"] for row in before)
    )
    handed = [row["ns"] for row in near if (before or is_orderly) and row["what"] in HANDED]
    back_ns = min(back, default=None)
    away_ns = facts.context.awake_ns(last_ns, back_ns) if back_ns is not None else None
    begin_ns = min([last_ns, *handed])
    place = moved[0][1] if moved and not any(each.back_ns for each in several) else None
    return _BrokerStop(several, node, begin_ns, last_ns, back_ns, before, after, is_orderly, away_ns, place)


def _elsewhere(
    facts: Facts, several: list[_LostBroker], nodes: dict[str, int], last_ns: int
) -> list[tuple[int, str]]:
    """When somebody reached the broker on another host, where nobody had before, and that address: a pod
    gets a new one when it starts again. Another port of the same host is another listener. If the cluster
    tells of the old address again later, the broker did not move."""
    node, own = nodes.get(several[0].address), {each.address for each in several}
    rows = facts.rows(ClusterBrokers)
    old_ns = max([last_ns, *(row["from_ns"] for row in rows if own & set(addresses_of(row)))])
    hosts = {_host(each) for each in own}
    served = [
        row
        for row in facts.rows(Tcp)
        if row["exchanges"] and row["broker"] not in own and nodes.get(row["broker"], -1) == node
    ]
    known = {row["broker"] for row in served if row["first_ns"] <= last_ns}
    told = {place for place, ns in first_told(rows).items() if ns > old_ns}
    return sorted(
        (row["first_ns"], row["broker"])
        for row in served
        if row["broker"] in told and row["broker"] not in known and _host(row["broker"]) not in hosts
    )


def first_told(rows: list[Row]) -> dict[str, int]:
    """When the cluster first told of an address."""
    found: dict[str, int] = {}
    for row in rows:
        for place in addresses_of(row):
            found[place] = min(row["from_ns"], found.get(place, row["from_ns"]))
    return found


def _answered_until(facts: Facts, several: list[_LostBroker]) -> int:
    """When the last message of a connection that ended was an answer; the latest of these times, else 0."""
    numbers = {number for each in several for number in each.connections}
    return max(
        (
            row["closed_ns"] - row["idle_ns"]
            for row in facts.rows(Tcp)
            if row["connection"] in numbers
            and row["exchanges"]
            and row["closed_ns"] is not None
            and row["idle_ns"] is not None
            and row["last_missing"] is None
        ),
        default=0,
    )


def _may_be_cut(facts: Facts, several: list[_LostBroker]) -> bool:
    """Whether packets of the broker's connections may be cut: only the first of those with such packets are
    known by number."""
    cut = facts.context.cut
    own = {number for each in several for number in each.connections}
    return cut.number > len(cut.first) or not own.isdisjoint(cut.first)


def _gone(facts: Facts, stop: _BrokerStop) -> Finding:
    several, node, first_ns, last_ns, back_ns, before, after, is_orderly, away_ns, moved_to = stop
    first = several[0]
    ended, failed = sum(each.ended for each in several), sum(each.failed for each in several)
    name = f"Broker {node}" if node is not None else f"The broker at {first.address}"
    tries = plural(failed, "later try", "later tries")
    took_ns = last_ns - min(each.last_ns for each in several)
    message = f"{name} is gone: {_ended(ended, took_ns)}, and {tries} to connect failed."
    if before and is_orderly:
        message += " It had handed over its partitions before, so somebody stopped it in an orderly way."
    elif is_orderly:
        message += " It had said before that it would stop."
    elif before or after:
        message += f" {plural(len(before or after), 'partition')} had to get another leader."
    if back_ns is not None and away_ns is not None:
        is_sure = away_ns == back_ns - last_ns
        message += f" It came back {f'{away_ns / 1e9:.1f} s ' if is_sure else ''}later"
        message += f" at another address, {moved_to}." if moved_to is not None else "."
    steps = [EvidenceStep(last_ns, f"{ended} of its connections had ended")]
    steps += [
        EvidenceStep(
            row["ns"], f"{row['subject']}: leader {row['before']}, then {row['after']}", row["exchange"]
        )
        for row in (*before, *after)[:5]
    ]
    if back_ns is not None:
        where = f" at {moved_to}" if moved_to is not None else ""
        steps.append(EvidenceStep(back_ns, f"it answers again{where}"))
    subject = FindingSubject(broker=str(node) if node is not None else first.address)
    severity = CRITICAL
    is_cut = _may_be_cut(facts, several) and not is_orderly and not before
    if is_cut and away_ns is not None and away_ns <= facts.limit("orderly_s") * SECOND:
        facts.cannot_judge("packets are cut, so nobody knows whether a broker was stopped in an orderly way")
        severity = NOTICE
    elif away_ns is not None and (before or is_orderly):
        is_short = away_ns <= facts.limit("orderly_s") * SECOND
        severity = NOTICE if is_orderly and is_short else WARNING
    return facts.finding(
        subject,
        message,
        severity=severity,
        subject_text=subject.text(first.address),
        count=failed,
        measure=None if away_ns is None else away_ns / 1e9,
        unit="s",
        cost_ns=away_ns,
        first_ns=first_ns,
        last_ns=back_ns if back_ns is not None else facts.context.last_ns,
        resolved_ns=back_ns,
        connections=tuple(number for each in several for number in each.connections),
        exchanges=tuple(row["exchange"] for row in (*before, *after)),
        steps=tuple(sorted(steps)),
        filter=showing((row["exchange"] for row in (*before, *after)), f'broker == "{first.address}"'),
    )


def _ended(count: int, took_ns: int) -> str:
    within = "a second" if took_ns <= SECOND else f"{took_ns / 1e9:.1f} s"
    return "its only connection ended" if count == 1 else f"its {count} connections ended within {within}"


def _changes(facts: Facts, *what: str) -> list[Row]:
    return [row for row in facts.rows(ClusterChanges) if row["what"] in what]


@rule("controller-moved", NOTICE, CERTAIN, needs=(ClusterChanges,))
@once
def controller_moved(facts: Facts) -> Iterator[Finding]:
    """Another node is the controller."""
    for row in _changes(facts, "controller-moved"):
        yield facts.finding(
            FindingSubject(broker=row["after"]),
            f"Node {row['after']} became the controller of the cluster instead of node {row['before']}.",
            because=key_of("broker-gone", FindingSubject(broker=row["before"])),
            first_ns=row["ns"],
            last_ns=row["ns"],
            exchanges=(row["exchange"],),
            steps=(
                EvidenceStep(row["ns"], f"controller {row['before']}, then {row['after']}", row["exchange"]),
            ),
            filter=f"number == {row['exchange']}",
        )


@rule("broker-restarted", INFO, CERTAIN, needs=(ClusterChanges,))
@once
def broker_restarted(facts: Facts) -> Iterator[Finding]:
    """A broker registers anew."""
    rows = _changes(facts, "broker-registered", "broker-refused")
    for node in sorted({row["node_id"] for row in rows}):
        mine = [row for row in rows if row["node_id"] == node]
        for at, row in enumerate(mine):
            if row["what"] != "broker-registered":
                continue
            refused = [each for each in mine[:at] if each["what"] == "broker-refused"]
            lost_ns = row["ns"] - refused[0]["ns"] if refused else None
            message = f"Broker {node} restarted."
            if lost_ns is not None:
                message += (
                    f" The controller refused it for {lost_ns / 1e9:.1f} s, because the session of its "
                    "earlier start had not ended."
                )
            yield facts.finding(
                FindingSubject(broker=str(node)),
                message,
                measure=None if lost_ns is None else lost_ns / 1e9,
                unit="s",
                cost_ns=lost_ns,
                first_ns=refused[0]["ns"] if refused else row["ns"],
                last_ns=row["ns"],
                exchanges=(*(each["exchange"] for each in refused), row["exchange"]),
                filter=f"number == {row['exchange']}",
            )


@rule("broker-fenced", CRITICAL, CERTAIN, needs=(ClusterChanges, Quorum))
@once
def broker_fenced(facts: Facts) -> Iterator[Finding]:
    """The controller fences a broker that goes on sending heartbeats."""
    beats = {row["node"]: row for row in facts.rows(Quorum)}
    for row in _changes(facts, "broker-fenced"):
        if row["after"] != "alive":
            continue
        gap_ns = beats.get(row["node_id"], {}).get("heartbeat_max_ns") or 0
        why = (
            f" One of its heartbeats came {gap_ns / 1e9:.1f} s after the one before."
            if gap_ns >= 4.5 * SECOND
            else " Its heartbeats came in time."
        )
        yield facts.finding(
            FindingSubject(broker=str(row["node_id"])),
            f"The controller fenced broker {row['node_id']}, although the broker is alive and sends "
            f"heartbeats.{why}",
            measure=gap_ns / 1e9,
            unit="s",
            first_ns=row["ns"],
            last_ns=row["ns"],
            exchanges=(row["exchange"],),
            filter="api == BrokerHeartbeat",
        )


@rule("log-dir-offline", CRITICAL, CERTAIN, needs=(ClusterChanges,))
@once
def log_dir_offline(facts: Facts) -> Iterator[Finding]:
    """A broker tells the controller that a disk failed."""
    nodes: dict[int, list[Row]] = {}
    for row in _changes(facts, "log-dirs-offline"):
        nodes.setdefault(row["node_id"], []).append(row)
    for node, rows in sorted(nodes.items()):
        count = max(int(row["after"]) for row in rows)
        yield facts.finding(
            FindingSubject(broker=str(node)),
            f"Broker {node} says that {plural(count, 'log directory', 'log directories')} of it failed: "
            "the replicas there cannot be read or written.",
            count=len(rows),
            measure=count,
            unit="directories",
            first_ns=rows[0]["ns"],
            last_ns=rows[-1]["ns"],
            exchanges=tuple(row["exchange"] for row in rows),
            filter="api == BrokerHeartbeat",
        )


@rule("heartbeat-late", NOTICE, CERTAIN, needs=(Quorum,), gap_s=4.5)
@once
def heartbeat_late(facts: Facts) -> Iterator[Finding]:
    """The heartbeats of a broker come late."""
    if facts.context.gap_bytes:
        facts.cannot_judge("bytes are missing in the capture, heartbeats perhaps among them")
        return
    for row in facts.rows(Quorum):
        gap_ns, from_ns = row["heartbeat_max_ns"] or 0, row["heartbeat_gap_ns"]
        if gap_ns >= facts.limit("gap_s") * SECOND:
            yield facts.finding(
                FindingSubject(broker=str(row["node"])),
                f"{gap_ns / 1e9:.1f} s passed between two heartbeats of broker {row['node']} to the "
                "controller; 2 s are usual, and after 9 s the controller fences it.",
                count=max(1, row["heartbeat_late"]),
                measure=gap_ns / 1e9,
                unit="s",
                threshold=facts.limit("gap_s"),
                first_ns=from_ns,
                last_ns=from_ns + gap_ns if from_ns is not None else None,
                filter="api == BrokerHeartbeat",
            )


@rule("election-storm", CRITICAL, CERTAIN, needs=(Quorum,), elections=4)
@once
def election_storm(facts: Facts) -> Iterator[Finding]:
    """The controllers elect again and again."""
    rows = facts.rows(Quorum)
    most = max((row["elections_60s"] for row in rows), default=0)
    if most >= facts.limit("elections"):
        told = ", ".join(
            f"node {row['node']} asked in {plural(row['elections'], 'election')}"
            for row in rows
            if row["elections"]
        )
        yield facts.finding(
            FindingSubject(),
            f"The controllers held {most} elections within a minute: {told}. Without a leader of the "
            "controllers nothing in the cluster can change: no topic and no partition leader.",
            count=most,
            measure=most,
            unit="elections in 60 s",
            threshold=facts.limit("elections"),
            filter="api in {Vote, BeginQuorumEpoch}",
        )


@rule("voter-behind", WARNING, CERTAIN, needs=(Quorum,), offsets=1000, lag_s=5)
@once
def voter_behind(facts: Facts) -> Iterator[Finding]:
    """A controller does not keep up with the log of metadata."""
    for row in facts.rows(Quorum):
        if row["role"] not in ("voter", "follower") or row["lag_offsets"] is None:
            continue
        lag_ns = row["lag_ns"] or 0
        if row["lag_offsets"] >= facts.limit("offsets") or lag_ns >= facts.limit("lag_s") * SECOND:
            yield facts.finding(
                FindingSubject(broker=str(row["node"])),
                f"Node {row['node']} lacked {row['lag_offsets']:,} records of the cluster's metadata at the "
                f"end, and had been behind for {lag_ns / 1e9:.1f} s.",
                measure=row["lag_offsets"],
                unit="records",
                threshold=facts.limit("offsets"),
                filter="api == Fetch and topic == __cluster_metadata",
            )


explains("broker-gone", "broker-restarted", shares=("broker",), within_s=60)
explains("broker-gone", "controller-moved", "election-storm", "heartbeat-late", within_s=60)
explains("broker-gone", "request-abandoned", "head-of-line", "latency-spike", within_s=60)
explains("broker-stalled", "heartbeat-late", "broker-fenced", "controller-moved", within_s=30)
explains("heartbeat-late", "broker-fenced", shares=("broker",))
