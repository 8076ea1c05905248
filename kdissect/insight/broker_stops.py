"""Brokers that went and came back, judged by their connections and by what the cluster tells of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import NamedTuple

from kdissect.analysis.cluster import ClusterBrokers, ClusterChanges
from kdissect.analysis.cluster_statements import RAFT_CLIENT
from kdissect.analysis.errors import Errors
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.pace import is_own_id
from kdissect.analysis.tcp import Tcp
from kdissect.insight.finding import FindingSubject
from kdissect.insight.gaps import may_lack_after
from kdissect.insight.grouping import group_rows
from kdissect.insight.nodes import ClusterNode, NodeNames, addresses_of, follower_of, nodes_by_address
from kdissect.insight.rule import Facts

HANDED = ("leader-moved", "isr-shrunk", "broker-stopping")
"""Changes that the cluster reports of a broker that is about to stop."""
NO_LONGER = ("NOT_LEADER_OR_FOLLOWER", "NOT_COORDINATOR")
"""Errors that a broker answers for partitions and groups that it has handed over."""
STOPPING, LEFT = "broker-stopping", "broker-gone"
"""Changes that the cluster reports of a broker that leaves."""
IS_THERE = ("broker-appeared", "broker-registered", "broker-unfenced")
"""Changes that the cluster reports of a broker that is back."""
REPORT_DELAY_NS, STOPPING_NS = 10 * SECOND, 60 * SECOND
"""How far the cluster's report may be from the moment when a broker closed its connections: the report that
it is gone comes at most the first time later, the report that it stops at most the second time earlier."""
SEVERAL = 2
GIVING_UP_NS = 10 * SECOND
"""The longest time between the first answer of a stopping broker that it no longer leads, and its end."""
STALE_NS = 30 * SECOND
"""How long after the start of a broker clients may still ask it for what it led before."""
FAILED = ("refused", "unanswered")
"""How a connection opened whose SYN nobody accepted."""


class LostBroker(NamedTuple):
    """An address where nobody answers any more."""

    address: str
    last_ns: int
    """When the last of its connections ended."""
    began_ns: int | None
    """When the first of its connections began; None if that was before the capture."""
    ended: int
    """How many connections ended together."""
    failed: int
    """How many connection attempts failed since."""
    back_ns: int | None
    """When a connection attempt succeeded again."""
    connections: tuple[int, ...]


def _host(place: str) -> str:
    return place.rpartition(":")[0]


def served_until_ns(row: Row) -> int:
    """When the broker stopped serving a connection: when it closed its half, though the client may have kept
    the other half open for longer."""
    return int(row["closed_ns"] if row["closed_by"] == "broker" else row["last_ns"])


def _began_ns(rows: list[Row]) -> int | None:
    """When the first of these connections began; None if that was before the capture."""
    if any(row["opening"] is None for row in rows):
        return None
    return int(min(row["first_ns"] for row in rows))


def _losses(rows: list[Row], within_ns: float, patience_ns: float) -> Iterator[LostBroker]:
    """Addresses whose connections end together, and that no client reaches afterwards."""
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
            if any(row["end"] == "open" for row in together) or not _have_failed(since):
                continue
            yield LostBroker(
                address,
                last_ns,
                _began_ns(before),
                len(together),
                len(since),
                again,
                tuple(row["connection"] for row in (*together, *since)),
            )


def _farewells(
    changes: list[Row], nodes: dict[str, ClusterNode], within_ns: int
) -> dict[str, list[tuple[int, int]]]:
    """When the cluster reported that the broker at an address stops or is gone, and the time until which the
    broker may then close its connections. That time ends when the broker is back. If it is gone, the time is
    ``within_ns``."""
    found: dict[str, list[tuple[int, int]]] = {}
    there = [row for row in changes if row["what"] in IS_THERE]
    for row in changes:
        if row["what"] not in (STOPPING, LEFT):
            continue
        for address, node in nodes.items():
            if node.is_of(row):
                until_ns = row["ns"] + (STOPPING_NS if row["what"] == STOPPING else within_ns)
                back = (each["ns"] for each in there if node.is_of(each))
                back_ns = min((ns for ns in back if ns > row["ns"]), default=until_ns)
                found.setdefault(address, []).append((row["ns"], min(until_ns, back_ns)))
    return found


def _quiet_losses(
    facts: Facts, nodes: dict[str, ClusterNode], within_ns: float, known: list[LostBroker]
) -> Iterator[LostBroker]:
    """Addresses where the broker closed all connections together, no client tried to connect afterwards, and
    the cluster reported that the broker stops or is gone. Clients need not try to connect: they learn in time
    who leads instead."""
    told = _farewells(facts.rows(ClusterChanges), nodes, round(within_ns))
    brokers: dict[str, list[Row]] = {}
    for row in facts.rows(Tcp):
        if row["broker"] in told and row["opening"] not in FAILED and row["exchanges"]:
            brokers.setdefault(row["broker"], []).append(row)
    for address, lived in sorted(brokers.items()):
        taken = [each.last_ns for each in known if each.address == address]
        for told_ns, until_ns in told[address]:
            closed = [row["closed_ns"] for row in lived if row["closed_by"] == "broker"]
            near = [ns for ns in closed if told_ns - REPORT_DELAY_NS <= ns <= until_ns]
            last_ns = max(near, default=None)
            if last_ns is None or any(abs(last_ns - other) <= STOPPING_NS for other in taken):
                continue
            before = [row for row in lived if row["first_ns"] <= last_ns <= served_until_ns(row) + within_ns]
            if not before:
                continue  # the clock was set back during the last connection
            if any(served_until_ns(row) > last_ns or row["closed_by"] != "broker" for row in before):
                continue  # the broker went on
            taken.append(last_ns)
            yield LostBroker(
                address,
                last_ns,
                _began_ns(before),
                len(before),
                0,
                min((row["first_ns"] for row in lived if row["first_ns"] > last_ns), default=None),
                tuple(row["connection"] for row in before),
            )


MANY_TRIES = 3
"""With this many failed connection attempts, the capture cannot just have lost the answers to all."""


def _have_failed(failed: list[Row]) -> bool:
    """Whether these tries to connect show that nobody was there. If a SYN was sent once and not answered, the
    capture may have lost its answer, or all packets after it."""
    sure = any(row["opening"] == "refused" or (row["syns"] or 0) > 1 for row in failed)
    return sure or len(failed) >= MANY_TRIES


def gone_brokers(facts: Facts) -> list[BrokerStop]:
    """Brokers that ``broker-gone`` reports. Rules share the list: do not change it. The facts need
    :class:`Tcp`, :class:`ClusterBrokers`, :class:`ClusterChanges` and :class:`Errors`."""
    return facts.once(_broker_stops)


def _broker_stops(facts: Facts) -> list[BrokerStop]:
    """Brokers that stopped."""
    stopping_ns = facts.limit_of("broker-gone", "stopping_s") * SECOND
    nodes = nodes_by_address(facts.rows(ClusterBrokers))
    lost = [each for each in facts.once(_lost_together) if _lives_on(facts, each, nodes, stopping_ns) is None]
    by_broker = group_rows(facts.rows(Tcp), "broker") if lost else {}
    return [
        _stop(facts, each, nodes, [row for one in each for row in by_broker.get((one.address,), ())])
        for each in lost
    ]


def closed_listeners(facts: Facts) -> Iterator[tuple[LostBroker, ClusterNode, str]]:
    """Listeners that stopped while their broker went on: each with its node, and another address where that
    node answered. The facts need the statistics that :func:`gone_brokers` needs."""
    stopping_ns = facts.limit_of("broker-gone", "stopping_s") * SECOND
    nodes = nodes_by_address(facts.rows(ClusterBrokers))
    for several in facts.once(_lost_together):
        other = _lives_on(facts, several, nodes, stopping_ns)
        if other is not None and all(each.failed for each in several):
            for each in several:
                yield each, nodes[several[0].address], other


def _lost_together(facts: Facts) -> list[list[LostBroker]]:
    """Addresses where nobody answers any more, grouped by broker."""
    limit = partial(facts.limit_of, "broker-gone")
    nodes = nodes_by_address(facts.rows(ClusterBrokers))
    within_ns = limit("together_s") * SECOND
    losses = _losses(facts.rows(Tcp), within_ns, limit("patience_s") * SECOND)
    several = [each for each in losses if each.failed >= limit("tries")]
    several += _quiet_losses(facts, nodes, within_ns, several)
    return list(_of_one_broker(several, nodes, within_ns, limit("stopping_s") * SECOND))


def _lives_on(
    facts: Facts, several: list[LostBroker], nodes: dict[str, ClusterNode], stopping_ns: float
) -> str | None:
    """Another address of the same broker that shows that the broker did not stop, or None.

    The cluster had told the address before. The broker answered there on an older connection, and more than a
    second after the other connections had ended. A broker that stops in an orderly way closes that
    connection, too, within its time to stop; the listener of controllers comes last.
    """
    node, own = nodes.get(several[0].address), {each.address for each in several}
    others = _others_of(node, own, nodes)
    if not others:
        return None
    first_ns, last_ns = min(each.last_ns for each in several), max(each.last_ns for each in several)
    told = first_reported_ns(facts.rows(ClusterBrokers))
    for row in facts.rows(Tcp):
        if (
            row["broker"] not in others
            or max(row["first_ns"], told[row["broker"]]) >= first_ns
            or _last_answer(row) <= last_ns + SECOND
            or (row["closed_by"] == "broker" and row["closed_ns"] <= last_ns + stopping_ns)
            or (_is_for_controllers(row["client_id"]) and _last_answer(row) <= last_ns + stopping_ns)
        ):
            continue
        return str(row["broker"])
    return None


def _others_of(node: ClusterNode | None, own: set[str], nodes: dict[str, ClusterNode]) -> set[str]:
    """The other addresses of a node."""
    if node is None:
        return set()
    return {address for address, each in nodes.items() if address not in own and node.is_also(each)}


def _is_for_controllers(client_id: str | None) -> bool:
    """Whether a connection leads to the listener of controllers, by the client id."""
    return client_id is not None and is_own_id(client_id) and "fetcher" not in client_id


def is_of_quorum(client_id: str | None) -> bool:
    """Whether a client id is that of a node of KRaft that fetches the log of metadata or votes."""
    return client_id is not None and RAFT_CLIENT.fullmatch(client_id) is not None


def _last_answer(row: Row) -> int:
    """When a broker last answered on a connection, at the latest; 0 if its last message was a request."""
    if not row["exchanges"] or row["last_missing"] is not None:
        return 0
    end_ns = row["closed_ns"] if row["closed_ns"] is not None else row["last_ns"]
    return int(end_ns - (row["idle_ns"] or 0))


def returns(facts: Facts) -> list[BrokerStop]:
    """Nodes that were gone and came back. The facts need the statistics that :func:`gone_brokers` needs."""
    return [each for each in gone_brokers(facts) if each.node is not None and each.back_ns is not None]


def subject_of(stop: BrokerStop) -> FindingSubject:
    """The subject of the finding ``broker-gone``."""
    return FindingSubject(broker=stop.name)


def restarts(facts: Facts, stops: list[BrokerStop]) -> list[tuple[ClusterNode, int, int]]:
    """Brokers that were stopped in an orderly way and that came back within ``orderly_s`` of ``broker-gone``.

    Each is a node, with the start and the end of its absence.

    :param stops: the brokers of :func:`gone_brokers`.
    """
    return [
        (each.node, each.first_ns, each.back_ns)
        for each in stops
        if each.node is not None
        and each.back_ns is not None
        and each.away_ns is not None
        and each.is_orderly
        and each.away_ns <= longest_restart_ns(facts)
    ]


def longest_restart_ns(facts: Facts) -> float:
    """How long a broker may be away that somebody restarts."""
    return facts.limit_of("broker-gone", "orderly_s") * SECOND


def may_have_restarted(
    facts: Facts, stops: list[BrokerStop], told: Row, back_ns: int, catch_up_ns: float
) -> bool:
    """Whether the capture may lack the restart of a broker. Then bytes are missing, and no stop of the broker
    was captured. No connection shows that it went on: none has answers from before and after. The facts need
    the statistics that :func:`gone_brokers` needs.

    :param told: a change that the cluster reported of the broker, soon after the broker would have stopped.
    :param back_ns: when the broker had caught up.
    :param catch_up_ns: how long it may take to catch up.
    """
    most_ns = longest_restart_ns(facts) + catch_up_ns
    if not facts.context.gap_bytes or facts.context.awake_ns(told["ns"], back_ns) > most_ns:
        return False
    if any(each.node is not None and each.node.is_of(told) and each.first_ns < back_ns for each in stops):
        return False
    nodes = nodes_by_address(facts.rows(ClusterBrokers))
    return not any(
        row["first_ns"] < told["ns"] and _last_answer(row) > back_ns
        for row in facts.rows(Tcp)
        if (node := nodes.get(row["broker"])) is not None and node.is_of(told)
    )


def _of_one_broker(
    losses: list[LostBroker], nodes: dict[str, ClusterNode], within_ns: float, stopping_ns: float
) -> Iterator[list[LostBroker]]:
    """Lost addresses, grouped by broker: listeners of one broker go together. The cluster does not always
    tell the broker of a listener that only brokers use. If exactly one broker on its host went at the same
    time, the listener belongs to that broker."""
    gone: list[list[LostBroker]] = []
    for each in losses:
        if (node := nodes.get(each.address)) is None:
            continue
        mine = (
            of_one
            for of_one in gone
            if node.is_also(nodes[of_one[0].address])
            and all(_down_together(each, one, stopping_ns) for one in of_one)
        )
        if (one := next(mine, None)) is not None:
            one.append(each)
        else:
            gone.append([each])
    rest = [each for each in losses if each.address not in nodes]
    alone: list[list[LostBroker]] = []
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


def _down_together(one: LostBroker, other: LostBroker, stopping_ns: float) -> bool:
    """Whether two listeners were away at the same time, like listeners of one process. A broker that stops in
    an orderly way closes the listener of controllers last, after it has flushed its logs. That takes seconds.
    Service managers give it a minute or so at most (Kubernetes 30 s, systemd 90 s)."""
    overlap = (other.back_ns is None or one.last_ns <= other.back_ns) and (
        one.back_ns is None or other.last_ns <= one.back_ns
    )
    return overlap and abs(one.last_ns - other.last_ns) <= stopping_ns


class BrokerStop(NamedTuple):
    """A broker that is gone, with all of its listeners."""

    several: list[LostBroker]
    name: str
    """Its name in findings."""
    node: ClusterNode | None
    first_ns: int
    """When it began to stop."""
    last_ns: int
    """When the last of its connections ended."""
    back_ns: int | None
    before: list[Row]
    """Leader moves before its connections ended."""
    after: list[Row]
    """Leader moves after its connections ended."""
    is_orderly: bool
    """Whether somebody stopped it. Then it said so, or after its leaders had moved it still answered, or it
    answered that it no longer leads. A machine that dies answers nobody, though its clients may keep
    connections until after it is fenced."""
    away_ns: int | None
    """How long it was away at least, by the capture's clock; None while it is not back."""
    moved_to: str | None
    """The other address at which it is back, if it is."""
    gave_up: bool
    """Whether its answers alone show that it handed over."""
    is_controller: bool
    """Whether only nodes spoke to it, as they do to controllers."""
    refused_last: bool
    """Whether the last requests for records that clients sent to it were refused, because it no longer led.
    A broker that somebody stops does so. But its partition may have moved for another reason."""


def _stop(
    facts: Facts, several: list[LostBroker], nodes: dict[str, ClusterNode], own: list[Row]
) -> BrokerStop:
    """The stop of a broker that is gone, from all that the facts tell of it.

    :param own: the rows of the connections to it.
    """
    node = nodes.get(several[0].address)
    last_ns = max(each.last_ns for each in several)
    mine = [
        row
        for row in facts.rows(ClusterChanges)
        if node is not None and node.is_of(row) and row["by"] is None
    ]
    back = [each.back_ns for each in several if each.back_ns is not None]
    # The broker may be back although no client needs it.
    back += [row["ns"] for row in mine if row["what"] == "broker-registered" and row["ns"] > last_ns]
    back += _replicates_again(facts, node, nodes, last_ns)
    moved = _elsewhere(facts, several, nodes, last_ns)
    back += [ns for ns, _ in moved[:1]]
    near = [row for row in mine if abs(row["ns"] - last_ns) <= 30 * SECOND]
    moves = [row for row in near if row["what"] == "leader-moved"]
    before = [row for row in moves if row["ns"] < last_ns - SECOND // 10]
    after = [row for row in moves if row["ns"] >= last_ns - SECOND // 10]
    if len(before) <= len(after):
        before = []  # the leaders moved for another reason
    is_orderly = any(row["what"] == "broker-stopping" for row in near) or bool(
        before and _answered_until(own, several) > max(row["ns"] for row in before)
    )
    handed = [row["ns"] for row in near if (before or is_orderly) and row["what"] in HANDED]
    gave_up = False
    if not (before or after or is_orderly):
        # It may be that no client has asked for leaders since the capture began.
        handed = _given_up(facts, several, last_ns)
        is_orderly = gave_up = bool(handed)
    back_ns = min(back, default=None)
    away_ns = facts.context.awake_ns(last_ns, back_ns) if back_ns is not None else None
    begin_ns = min([last_ns, *handed])
    place = moved[0][1] if moved and not any(each.back_ns for each in several) else None
    return BrokerStop(
        several,
        several[0].address
        if node is None
        else NodeNames(facts.rows(ClusterBrokers)).at(node, several[0].address),
        node,
        begin_ns,
        last_ns,
        back_ns,
        before,
        after,
        is_orderly,
        away_ns,
        place,
        gave_up,
        _led_metadata(own),
        not (before or after or is_orderly) and _refused_last(facts, several, own, last_ns),
    )


def _replicates_again(
    facts: Facts, node: ClusterNode | None, nodes: dict[str, ClusterNode], last_ns: int
) -> list[int]:
    """When a broker that was gone connected to others of its cluster to copy their records. After a restart
    it leads nothing, so clients and the other brokers need not connect to it."""
    if node is None:
        return []
    return [
        row["first_ns"]
        for row in facts.once(_of_followers).get(node.number, ())
        if row["first_ns"] > last_ns
        and (leader := nodes.get(row["broker"])) is not None
        and node.may_meet(leader)
    ]


def _of_followers(facts: Facts) -> dict[int | None, list[Row]]:
    """The connections that brokers opened to copy records, by the number of the broker."""
    found: dict[int | None, list[Row]] = {}
    for row in facts.rows(Tcp):
        if row["exchanges"] and row["opening"] is not None:
            found.setdefault(follower_of(row["client_id"]), []).append(row)
    return found


def _led_metadata(own: list[Row]) -> bool:
    """Whether all connections to a broker were for controllers of KRaft. With ZooKeeper, the controller is a
    broker, and connects to the others with its number as client id."""
    ids = [row["client_id"] for row in own if row["exchanges"]]
    return all(map(_is_for_controllers, ids)) and any(map(is_of_quorum, ids))


def _given_up(facts: Facts, several: list[LostBroker], last_ns: int) -> list[int]:
    """The times, shortly before a broker was gone, when it first answered that it no longer leads a partition
    or a group. Empty unless it answered so for several of them. A broker that died gives none, and answers
    soon after its start do not count."""
    own = {each.address for each in several}
    since_ns = last_ns - GIVING_UP_NS
    came = [each.began_ns for each in several if each.began_ns is not None]
    if len(came) == len(several):
        since_ns = max(since_ns, min(came) + STALE_NS)
    rows = [
        row
        for row in _errors_at(facts, own)
        if row["error"] in NO_LONGER and since_ns <= row["first_ns"] <= last_ns
    ]
    what = {tuple(row[name] for name in ("topic", "partition", "group", "transactional_id")) for row in rows}
    return [row["first_ns"] for row in rows] if len(what) >= SEVERAL else []


def _errors_at(facts: Facts, brokers: Iterable[str]) -> Iterator[Row]:
    """The errors in answers of these brokers."""
    by_broker = facts.once(_errors_by_broker)
    return chain.from_iterable(by_broker.get(broker, ()) for broker in brokers)


def _errors_by_broker(facts: Facts) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in facts.rows(Errors):
        found.setdefault(row["broker"], []).append(row)
    return found


def may_hide_farewell(facts: Facts, several: list[LostBroker]) -> bool:
    """Whether missing bytes may hide that a broker handed over before it was gone. They may not if the broker
    served records to its end on a connection that lacks none, because a leader does so. The rule needs the
    statistics that :func:`gone_brokers` needs, and :class:`~kdissect.analysis.connections.Connections`."""
    own = {number for each in several for number in each.connections}
    last_ns = max(each.last_ns for each in several)
    lacking = may_lack_after(facts, own, last_ns - GIVING_UP_NS)
    if not lacking:
        return False
    places = {each.address for each in several}
    refused = any(
        row["error"] in NO_LONGER and row["first_ns"] <= last_ns and last_ns - GIVING_UP_NS <= row["last_ns"]
        for row in _errors_at(facts, places)
    )
    return refused or not any(
        row["connection"] in own - lacking
        and row["last_api"] in ("Produce", "Fetch")
        and row["last_missing"] in (None, "connection closed")
        and row["idle_ns"] is not None
        and row["closed_ns"] - row["idle_ns"] >= last_ns - SECOND
        for row in facts.rows(Tcp)
    )


def _refused_last(facts: Facts, several: list[LostBroker], own: list[Row], last_ns: int) -> bool:
    """Whether the last Produce or Fetch on each lost connection was refused, because the broker no longer
    led, and at least one was, shortly before the broker was gone.

    :param own: the rows of the connections to the broker.
    """
    places = {each.address for each in several}
    numbers = {number for each in several for number in each.connections}
    refused = {
        row["last_exchange"]
        for row in _errors_at(facts, places)
        if row["error"] in (*NO_LONGER, "FENCED_LEADER_EPOCH")
        and last_ns - GIVING_UP_NS <= row["last_ns"] <= last_ns
    }
    asked = [
        row["last_exchange"]
        for row in own
        if row["connection"] in numbers and row["last_api"] in ("Produce", "Fetch")
    ]
    return bool(asked) and refused.issuperset(asked)


def _elsewhere(
    facts: Facts, several: list[LostBroker], nodes: dict[str, ClusterNode], last_ns: int
) -> list[tuple[int, str]]:
    """When somebody reached the broker on another host that nobody had reached before, and that address. A
    pod gets a new address when it starts again. Another port of the same host is another listener. If the
    cluster tells of the old address again later, the broker did not move."""
    node, own = nodes.get(several[0].address), {each.address for each in several}
    others = _others_of(node, own, nodes)
    if not others:
        return []
    rows = facts.rows(ClusterBrokers)
    old_ns = max([last_ns, *(row["from_ns"] for row in rows if own & set(addresses_of(row)))])
    hosts = {_host(each) for each in own}
    served = [row for row in facts.rows(Tcp) if row["exchanges"] and row["broker"] in others]
    known = {row["broker"] for row in served if row["first_ns"] <= last_ns}
    told = {place for place, ns in first_reported_ns(rows).items() if ns > old_ns}
    return sorted(
        (row["first_ns"], row["broker"])
        for row in served
        if row["broker"] in told and row["broker"] not in known and _host(row["broker"]) not in hosts
    )


def first_reported_ns(rows: list[Row]) -> dict[str, int]:
    """When the cluster first told of an address."""
    found: dict[str, int] = {}
    for row in rows:
        for place in addresses_of(row):
            found[place] = min(row["from_ns"], found.get(place, row["from_ns"]))
    return found


def _answered_until(own: list[Row], several: list[LostBroker]) -> int:
    """When the last answer came on those lost connections whose last message was an answer; 0 if there are
    none.

    :param own: the rows of the connections to the broker.
    """
    numbers = {number for each in several for number in each.connections}
    return max(
        (
            row["closed_ns"] - row["idle_ns"]
            for row in own
            if row["connection"] in numbers
            and row["exchanges"]
            and row["closed_ns"] is not None
            and row["idle_ns"] is not None
            and row["last_missing"] is None
        ),
        default=0,
    )
