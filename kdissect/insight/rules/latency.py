"""Rules on time that brokers take, and on requests that wait for others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import NamedTuple

from kdissect.analysis.cluster import ClusterBrokers
from kdissect.analysis.fold import MILLISECOND, SECOND, Row
from kdissect.analysis.medians import median
from kdissect.analysis.pace import Pace, is_own_id
from kdissect.analysis.producers import Producers
from kdissect.analysis.stalls import Spikes, Stalls
from kdissect.analysis.tcp import Tcp
from kdissect.analysis.waits import is_long_poll, may_wait
from kdissect.insight.causes import explains
from kdissect.insight.context import SLEPT
from kdissect.insight.finding import (
    CERTAIN,
    CRITICAL,
    INFO,
    LIKELY,
    NOTICE,
    POSSIBLE,
    WARNING,
    Finding,
    FindingSubject,
    key_of,
)
from kdissect.insight.grouping import group_rows
from kdissect.insight.nodes import ClusterNode, are_several_clusters, follower_of, nodes_by_address
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import of_numbers, quoted, span
from kdissect.wording import plural

MUST_NOT_WAIT = (
    *(
        "Produce",
        "OffsetCommit",
        "TxnOffsetCommit",
        "Heartbeat",
        "ConsumerGroupHeartbeat",
        "ShareGroupHeartbeat",
    ),
    *("StreamsGroupHeartbeat", "JoinGroup", "SyncGroup", "FindCoordinator"),
)
"""Requests that do harm if they are late."""
MAY_BE_LATE = ("ListOffsets", "OffsetForLeaderEpoch")
"""Requests that Kafka's own client sends behind its long polls by design, if there are few of them."""

explains("broker-stalled", "latency-spike", "slow-broker", shares=("broker",), within_s=5)
explains("throttled", "head-of-line", "throttle-ignored", shares=("client_id",))
explains("throttled", "zero-window", "request-abandoned", "too-many-in-flight", shares=("client_id",))
explains("broker-stalled", "too-many-in-flight", shares=("broker",), at_once=True)
explains("packet-loss", "head-of-line", "slow-transfer", "latency-spike", shares=("client_id",))
explains("network-outage", "head-of-line", "packet-loss", "request-abandoned", shares=("client_id",))
explains("broker-stalled", "request-abandoned", shares=("broker",), within_s=60)
explains("long-poll-blocks-others", "head-of-line", shares=("client_id", "broker"))


def _worst(rows: Iterable[Row], prefix: str) -> tuple[int, ...]:
    """The exchanges of several rows, taken in turns, so that each row has some."""
    lists = [row[f"{prefix}_exchanges"] for row in rows]
    out = [each[at] for at in range(8) for each in lists if at < len(each)]
    return tuple(sorted(out[:8]))


def _ms(ns: float) -> float:
    return round(ns / MILLISECOND, 3)


@rule(
    "slow-broker",
    WARNING,
    LIKELY,
    needs=(Pace,),
    exchanges=50,
    few=10,
    clients=3,
    times=3,
    more_ms=5,
    at_once=50,
)
def slow_broker(facts: Facts) -> Iterator[Finding]:
    """One broker answers slower than its peers at the same time. A broker that has just started is slow, so
    its first answers cannot be compared with the whole time of others. Nor can Produce requests of different
    clients: how long one takes depends on its size and on the confirmation that the client wants. If each of
    several clients gets slower answers from one broker than from others, few requests of each suffice."""
    slow: dict[str, list[tuple[str, float, float, Row]]] = defaultdict(list)
    of_kind: dict[tuple[str, str | None], list[Row]] = defaultdict(list)
    for row in facts.rows(Pace):
        of_kind[row["api"], row["client_id"] if row["api"] == "Produce" else None].append(row)
    for (api, _), rows in of_kind.items():
        if may_wait(api):
            continue
        found = {
            broker: some
            for (broker,), some in group_rows(rows, "broker").items()
            if sum(row["broker_count"] for row in some) >= facts.limit("exchanges")
        }
        for broker, own in found.items():
            others = [some for other, some in found.items() if other != broker]
            row = _most_asked(own)
            p50 = row["broker_p50_ns"]
            usual = _much_quicker(facts, p50, (_most_asked(some)["broker_p50_ns"] for some in others))
            if usual is None:
                continue
            # Clients come and go: another client may have sent more requests, but at another time.
            at_once = ([each for each in some if _were_asked_together(facts, row, each)] for some in others)
            usual = _much_quicker(
                facts, p50, (_most_asked(some)["broker_p50_ns"] for some in at_once if some)
            )
            if usual is None:
                facts.cannot_judge("no other broker was asked the same during the same time")
                continue
            slow[broker].append((api, p50, usual, row))
    for broker, compared in _slow_for_all(facts, of_kind):
        if broker not in slow:
            yield _slow_writes(facts, broker, compared)
    for broker, apis in slow.items():
        api, p50, usual, row = max(apis, key=lambda each: each[1] - each[2])
        produced = row["client_id"] if api == "Produce" else None
        requests = f"its {api} requests" if produced is None else f"the {api} requests of {produced}"
        of_client = "" if produced is None else f"client_id == {quoted(produced)} and "
        yield facts.finding(
            FindingSubject(broker=broker),
            f"This broker takes {span(int(p50))} for half of {requests}, where the others take "
            f"{span(int(usual))}.",
            count=len({api for api, *_ in apis}),
            measure=_ms(p50),
            unit="ms",
            threshold=_ms(max(usual * facts.limit("times"), usual + facts.limit("more_ms") * MILLISECOND)),
            first_ns=row["first_ns"],
            last_ns=row["last_ns"],
            filter=f"broker == {broker} and {of_client}api == {api} and broker_ns > {int(usual)}",
        )


class _ServedWrites(NamedTuple):
    """How one client's Produce requests are served by a broker and by others."""

    row: Row
    usual: float
    """The median of the others, in ns."""
    others: int
    """The number of requests to the others."""


def _slow_for_all(
    facts: Facts, of_kind: Mapping[tuple[str, str | None], list[Row]]
) -> Iterator[tuple[str, list[_ServedWrites]]]:
    """Brokers that serve the Produce requests of each of several clients much slower than others serve those
    of the same client, with the comparisons. Few requests of each suffice, because all agree."""
    found: dict[str, list[_ServedWrites]] = defaultdict(list)
    denied = set()
    writers = group_rows(
        (row for (api, _), rows in of_kind.items() if api == "Produce" for row in rows), "client", "client_id"
    )
    for rows in writers.values():
        known = [row for row in rows if row["broker_count"] >= facts.limit("few")]
        for row in known:
            others = [
                each
                for each in known
                if each["broker"] != row["broker"] and _were_asked_together(facts, row, each)
            ]
            usual = _much_quicker(facts, row["broker_p50_ns"], (each["broker_p50_ns"] for each in others))
            if usual is not None:
                count = sum(each["broker_count"] for each in others)
                found[row["broker"]].append(_ServedWrites(row, usual, count))
            elif others:
                denied.add(row["broker"])
    for broker, compared in sorted(found.items()):
        own = sum(each.row["broker_count"] for each in compared)
        enough = min(own, sum(each.others for each in compared)) >= facts.limit("exchanges")
        if broker not in denied and len(compared) >= facts.limit("clients") and enough:
            yield broker, compared


def _slow_writes(facts: Facts, broker: str, compared: list[_ServedWrites]) -> Finding:
    worst = max(compared, key=lambda each: each.row["broker_p50_ns"] - each.usual)
    least = min(compared, key=lambda each: each.row["broker_p50_ns"] / max(1, each.usual))
    p50, usual, who = worst.row["broker_p50_ns"], worst.usual, worst.row["client_id"] or "a client"
    return facts.finding(
        FindingSubject(broker=broker),
        f"This broker takes {span(int(p50))} for half of the Produce requests of {who}, where the others "
        f"take {span(int(usual))}. It is slower for each of {len(compared)} clients; at the least, it takes "
        f"{span(int(least.row['broker_p50_ns']))} instead of {span(int(least.usual))}.",
        measure=_ms(p50),
        unit="ms",
        threshold=_ms(max(usual * facts.limit("times"), usual + facts.limit("more_ms") * MILLISECOND)),
        first_ns=min(each.row["first_ns"] for each in compared),
        last_ns=max(each.row["last_ns"] for each in compared),
        client_ids=tuple(sorted({each.row["client_id"] for each in compared if each.row["client_id"]})),
        filter=f"broker == {broker} and api == Produce and broker_ns > {int(least.usual)}",
    )


def _most_asked(rows: list[Row]) -> Row:
    """Of a broker's rows, the row of the client that sent it most requests."""
    return max(rows, key=lambda row: row["broker_count"])


def _much_quicker(facts: Facts, p50: float, others: Iterable[float]) -> float | None:
    """The time that the other brokers take, if this one takes much longer."""
    found = list(others)
    usual = median(found) if found else None
    if usual is None or p50 < facts.limit("times") * usual:
        return None
    return usual if p50 - usual >= facts.limit("more_ms") * MILLISECOND else None


def _were_asked_together(facts: Facts, row: Row, other: Row) -> bool:
    """Whether two brokers had most of their requests at the same time."""
    both = min(row["last_ns"], other["last_ns"]) - max(row["first_ns"], other["first_ns"])
    longer = max(each["last_ns"] - each["first_ns"] for each in (row, other))
    return bool(both >= 0 and 100 * both >= facts.limit("at_once") * longer)


@rule("latency-spike", NOTICE, POSSIBLE, needs=(Spikes,))
def latency_spike(facts: Facts) -> Iterator[Finding]:
    """Requests of one API were much slower for a while."""
    for (api,), rows in group_rows(facts.rows(Spikes), "api").items():
        worst = max(rows, key=lambda row: row["worst_ns"])
        brokers = {each for row in rows for each in row["brokers"]}
        exchanges = [number for row in rows for number in row["exchanges"]]
        slow = sum(row["slow"] for row in rows)
        yield facts.finding(
            FindingSubject(broker=next(iter(brokers)) if len(brokers) == 1 else None),
            f"{plural(slow, f'{api} request')} took up to {span(worst['worst_ns'])} in "
            f"{plural(len(rows), 'short period')}; the usual median is {span(worst['p50_ns'])}.",
            subject_text=f"{api} requests"
            + (f" at {', '.join(sorted(brokers))}" if len(brokers) == 1 else ""),
            count=slow,
            measure=_ms(worst["p99_ns"]),
            unit="ms",
            threshold=max(100.0, _ms(10 * worst["p50_ns"])),
            first_ns=rows[0]["from_ns"],
            last_ns=rows[-1]["to_ns"],
            exchanges=exchanges,
            filter=of_numbers(exchanges[:8]),
        )


@rule(
    "head-of-line",
    WARNING,
    CERTAIN,
    needs=(Pace, Spikes, Stalls, Tcp, Producers, ClusterBrokers),
    share=20,
    times=20,
)
def head_of_line(facts: Facts) -> Iterator[Finding]:
    """Requests waited behind earlier ones on their connection."""
    stood, slow, cluster = stalls(facts), _slow_times(facts), _OneCluster(facts)
    rows = [row for row in facts.rows(Pace) if not may_wait(row["api"])]
    for (broker, client_id), some in group_rows(rows, "broker", "client_id").items():
        whole = sum(row["latency_sum_ns"] for row in some)
        waits = [each for row in some for each in row["behind_seconds"]]
        if whole <= 0 or not _are_often(facts, waits, whole):
            continue
        of_others = [row for row in slow.get(broker, ()) if client_id and set(row["clients"]) - {client_id}]
        if _was_a_moment(facts, some, waits, of_others):
            continue  # the rule latency-spike reports that
        because = None
        # Writes that all replicas confirm wait for any broker of the cluster that stands still.
        writes = [each for row in some if row["api"] == "Produce" for each in row["behind_seconds"]]
        others = [each for row in some if row["api"] != "Produce" for each in row["behind_seconds"]]
        for place in (
            broker,
            *(each for each in stood if each != broker and cluster.may_hold_up(each, broker)),
        ):
            held, free = (waits, []) if place == broker else (writes, others)
            left = [*free, *(each for each in held if not _is_within(each[0], stood.get(place, ())))]
            if because is None and len(left) < len(waits) and not _are_often(facts, left, whole):
                because = key_of("broker-stalled", FindingSubject(broker=place))
        if because is None and not _are_often(facts, others, whole):
            because = _lossy_follower(facts, broker, client_id)
        waited = [row for row in some if row["behind_count"]]
        behind, count = sum(each[2] for each in waits), sum(each[1] for each in waits)
        longest = max(row["behind_max_ns"] for row in waited)
        yield facts.finding(
            FindingSubject(client_id=client_id, broker=broker),
            f"{plural(count, 'request')} waited up to {span(longest)} until an earlier request of the same "
            f"connection was answered: {100 * behind / whole:.0f} % of the time that these requests took.",
            count=count,
            measure=round(100 * behind / whole, 1),
            unit="%",
            threshold=facts.limit("share"),
            cost_ns=behind,
            first_ns=max(min(row["behind_first_ns"] for row in waited), _weighs_from(waits)),
            last_ns=max(row["behind_last_ns"] for row in waited),
            exchanges=_worst(waited, "behind"),
            because=because,
            filter=f"broker == {broker} and client_id == {quoted(client_id)} and behind > 10ms"
            if client_id
            else of_numbers(_worst(waited, "behind")),
        )


STALLS = 3
"""If a follower's connection had to wait this often for a lost segment, writes waited for the follower."""


def _lossy_follower(facts: Facts, broker: str, client_id: str | None) -> str | None:
    """The key of the finding that segments of a follower's connection to the broker got lost, if the client's
    writes wait for all replicas. The worst of these connections counts."""
    acks = {each for row in facts.rows(Producers) if row["client_id"] == client_id for each in row["acks"]}
    if "all" not in acks:
        return None
    lossy = [
        row
        for row in facts.rows(Tcp)
        if row["broker"] == broker and follower_of(row["client_id"]) is not None and row["rto_like"] >= STALLS
    ]
    worst = max(lossy, key=lambda row: row["rto_like"], default=None)
    return None if worst is None else key_of("packet-loss", FindingSubject(client_id=worst["client_id"]))


class _OneCluster:
    """Knows which brokers may be of one cluster."""

    def __init__(self, facts: Facts) -> None:
        rows = facts.rows(ClusterBrokers)
        self._nodes = nodes_by_address(rows)
        self._is_one = not are_several_clusters(rows)

    def may_hold_up(self, one: str, other: str) -> bool:
        """Whether writes to the other broker may wait for this one. If there are several clusters, the
        clusters of both must be known."""
        first, second = self._nodes.get(one), self._nodes.get(other)
        return self._is_one or (first is not None and second is not None and first.may_meet(second))


def _slow_times(facts: Facts) -> dict[str, list[Row]]:
    """By broker, the times in which many of its answers were much slower than usual."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in facts.rows(Spikes):
        for broker in row["brokers"]:
            found[broker].append(row)
    return found


def _was_a_moment(
    facts: Facts, rows: list[Row], waits: list[tuple[int, int, int]], slow: Iterable[Row]
) -> bool:
    """Whether requests waited long only while the broker was slow for others too, and while it worked off the
    queue of that time. This must be less than half of the time in which the client used the broker, so that
    the usual delay is known. A queue takes no longer to work off than it took to build up."""
    waited = {second for second, *_ in waits}
    busy: set[int] = set()
    for row in slow:
        begin, end = row["from_ns"] // SECOND, -(-row["to_ns"] // SECOND)
        busy.update(range(begin, end))
        busy.update(takewhile(waited.__contains__, range(end, 2 * end - begin)))
    lived_ns = max(row["last_ns"] for row in rows) - min(row["first_ns"] for row in rows)
    if not busy or 2 * len(busy) * SECOND >= lived_ns:
        return False
    whole = sum(row["latency_sum_ns"] for row in rows)
    return not _are_often(facts, [each for each in waits if each[0] not in busy], whole)


def _are_often(facts: Facts, waits: list[tuple[int, int, int]], whole_ns: int) -> bool:
    """Whether these waits are many and long, even without the worst two seconds, which may be the start of a
    client."""
    by_second: Counter[int] = Counter()
    for second, count, _ in waits:
        by_second[second] += count
    most = max((count + by_second.get(second + 1, 0) for second, count in by_second.items()), default=0)
    long = 100 * sum(total for *_, total in waits) >= facts.limit("share") * whole_ns
    return long and by_second.total() - most >= facts.limit("times")


def _weighs_from(waits: list[tuple[int, int, int]]) -> int:
    """When the waiting became serious: all but a tenth of it comes later. For example, a client that always
    waits a little began to wait long when a broker was gone."""
    left_ns = sum(each[2] for each in waits) // 10
    for second, _, total_ns in sorted(waits):
        left_ns -= total_ns
        if left_ns < 0:
            return (second + 1) * SECOND
    return 0


def _is_within(second: int, stood: Iterable[Row]) -> bool:
    """Whether the broker stood still in a second, or worked off the queue of such a time."""
    ns = second * SECOND
    return any(row["from_ns"] - SECOND <= ns <= row["to_ns"] + SECOND for row in stood)


@rule(
    "long-poll-blocks-others",
    WARNING,
    CERTAIN,
    needs=(Pace,),
    times=5,
    share=50,
    by_design=20,
    few=3,
    long_ms=250,
)
def long_poll_blocks_others(facts: Facts) -> Iterator[Finding]:
    """A long poll delays other requests of the same connection."""
    for (broker, client_id), rows in group_rows(facts.rows(Pace), "broker", "client_id").items():
        late = [row for row in rows if row["polled_count"] and not is_long_poll(row["api"])]
        if not late:
            continue
        harmful = [row for row in late if _harms(facts, row)]
        shown = harmful or late
        count = sum(row["polled_count"] for row in shown)
        apis = ", ".join(sorted(row["api"] for row in shown))
        longest = max(row["polled_max_ns"] for row in shown)
        is_little = count < facts.limit("few") and longest < facts.limit("long_ms") * MILLISECOND
        if is_little and not harmful:
            continue  # every Java consumer does so at its start
        yield facts.finding(
            FindingSubject(client_id=client_id, broker=broker),
            f"{plural(count, 'request')} ({apis}) waited up to {span(longest)} because the client had a "
            "long poll for new records on the same connection. The broker answers that only when there "
            "are some.",
            severity=WARNING if harmful else INFO,
            count=count,
            measure=_ms(longest),
            unit="ms",
            threshold=50.0,
            cost_ns=sum(row["polled_sum_ns"] for row in shown),
            first_ns=min(row["behind_first_ns"] for row in shown),
            last_ns=max(row["behind_last_ns"] for row in shown),
            exchanges=_worst(shown, "polled"),
            filter=of_numbers(_worst(shown, "polled")),
        )


def _harms(facts: Facts, row: Row) -> bool:
    """Whether the late requests on a connection are ones that must not be late."""
    often = row["polled_count"] >= facts.limit("times")
    if row["api"] in MUST_NOT_WAIT:
        return bool(often and 100 * row["polled_count"] >= facts.limit("share") * row["count"])
    if row["api"] in MAY_BE_LATE:
        return bool(
            row["polled_count"] >= facts.limit("by_design") and 5 * row["polled_count"] >= row["count"]
        )
    return False


@rule("fetch-waits-for-min-bytes", NOTICE, CERTAIN, needs=(Pace,), times=20, share=30, least=5)
def fetch_waits_for_min_bytes(facts: Facts) -> Iterator[Finding]:
    """Records wait until there are more of them."""
    rows = [row for row in facts.rows(Pace) if row["held_count"]]
    for (client_id,), some in group_rows(rows, "client_id").items():
        held, count = sum(row["held_count"] for row in some), sum(row["count"] for row in some)
        share = 100 * held / count
        if held < facts.limit("times") and (held < facts.limit("least") or share < facts.limit("share")):
            continue
        bytes_, wait = (
            max(row["held_min_bytes"] for row in some),
            max(row["held_max_wait_ms"] for row in some),
        )
        yield facts.finding(
            FindingSubject(client_id=client_id),
            f"{plural(held, 'time')} the broker had records to read and held them back for up to {wait:,} "
            f"ms. The consumer asks for at least {bytes_:,} bytes at once.",
            count=held,
            measure=float(wait),
            unit="ms",
            threshold=facts.limit("times"),
            first_ns=min(row["held_first_ns"] for row in some),
            last_ns=max(row["held_last_ns"] for row in some),
            exchanges=_worst(some, "held"),
            filter=of_numbers(_worst(some, "held")),
        )


@rule("slow-consumer-loop", NOTICE, LIKELY, needs=(Pace,), away_s=1, times=10)
def slow_consumer_loop(facts: Facts) -> Iterator[Finding]:
    """The consumer does not fetch for a while although records wait for it."""
    for row in facts.rows(Pace):
        if row["away_count"] < facts.limit("times") or row["away_p90_ns"] < facts.limit("away_s") * SECOND:
            continue
        yield facts.finding(
            FindingSubject(client_id=row["client_id"], client=None if row["client_id"] else row["client"]),
            f"The consumer asks for more records only after {span(row['away_p50_ns'])} (median of "
            f"{plural(row['away_count'], 'time')}), although records are there. One time in ten it takes "
            f"{span(row['away_p90_ns'])} or more.",
            count=row["away_count"],
            measure=round(row["away_p90_ns"] / SECOND, 3),
            unit="s",
            threshold=facts.limit("away_s"),
            cost_ns=row["away_sum_ns"],
            first_ns=row["first_ns"],
            last_ns=row["last_ns"],
            exchanges=row["away_exchanges"],
            filter=of_numbers(row["away_exchanges"]),
        )


def stalls(facts: Facts) -> dict[str, list[Row]]:
    """Times in which brokers stood still, by broker, without times in which the network was cut."""
    outages = [
        (row["connection"], row["outage_from_ns"], row["outage_from_ns"] + row["outage_ns"])
        for row in facts.rows(Tcp)
        if row["outage_from_ns"] is not None
    ]
    stood: dict[str, list[Row]] = defaultdict(list)
    for row in facts.rows(Stalls):
        if not _was_the_network(row, outages):
            stood[row["broker"]].append(row)
    return stood


def of_one_broker(stood: dict[str, list[Row]], nodes: dict[str, ClusterNode]) -> dict[str, list[Row]]:
    """The stalls, with each broker only once. The cluster does not always tell which broker has a listener
    for controllers. If an unknown listener stood still at the same times as exactly one broker on its host,
    it belongs to that broker. If the cluster tells none of the brokers, a listener that only brokers and
    controllers use is one."""
    joined: dict[str, list[Row]] = {}
    for broker, rows in sorted(stood.items(), key=lambda each: (each[0] not in nodes, _is_inner(each[1]))):
        host, node = broker.rpartition(":")[0], nodes.get(broker)
        near = [
            one
            for one in joined
            if one in nodes
            and (node.is_also(nodes[one]) if node is not None else one.rpartition(":")[0] == host)
            and _at_once(stood[one], rows)
        ]
        if not near and node is None and _is_inner(rows):
            near = [one for one in joined if one.rpartition(":")[0] == host and _at_once(stood[one], rows)]
        if len(near) == 1:
            joined[near[0]] += rows
        else:
            joined[broker] = list(rows)
    return joined


def _is_inner(rows: list[Row]) -> bool:
    """Whether only brokers and controllers waited in these stalls."""
    return all(is_own_id(client) for row in rows for client in row["clients"])


def _at_once(one: list[Row], other: list[Row]) -> bool:
    """Whether two listeners stood still at the same times. At some of these times one listener may have had
    no waiting client."""
    few, many = sorted((one, other), key=len)
    return all(any(_is_same(row, each) for each in many) for row in few)


def _began_in(stall: Row, ready: dict[int, int]) -> bool:
    """Whether all connections that waited were new, so that their very first requests waited.

    :param ready: by connection that began in the capture, when its first requests were answered.
    """
    numbers = stall["connections"]
    return bool(numbers) and all(ready.get(each, 0) >= stall["to_ns"] for each in numbers)


def _ran_through(stall: Row, served: list[Row], ready: dict[int, int]) -> bool:
    """Whether a broker ran before and after a stall: it had answered on a connection that it did not close.

    :param served: connections of this broker.
    """
    return any(
        ready.get(row["connection"], stall["from_ns"]) < stall["from_ns"]
        and row["closed_by"] != "broker"
        and row["last_ns"] > stall["to_ns"]
        for row in served
    )


def _is_same(one: Row, other: Row) -> bool:
    """Whether two listeners stood still at the same time. A process that resumes answers on all listeners,
    within a second. For the start of the stall, only the first waiting request gives a time."""
    overlap = one["from_ns"] < other["to_ns"] and other["from_ns"] < one["to_ns"]
    return bool(overlap and abs(one["to_ns"] - other["to_ns"]) <= SECOND)


def _each_once(rows: list[Row]) -> list[Row]:
    """The rows, without those of another listener for the same time."""
    found: list[Row] = []
    for row in rows:
        if not any(_is_same(row, each) for each in found):
            found.append(row)
    return found


def _long_stalls(facts: Facts) -> dict[str, list[Row]]:
    """Stalls that were long enough to report, while the capture did not sleep. A broker that starts makes all
    clients wait that connect before it is ready. One of several brokers may have waited for another."""
    ready = {
        row["connection"]: row["first_ns"] + row["setup_ns"]
        for row in facts.rows(Tcp)
        if row["opening"] is not None and row["setup_ns"] is not None
    }
    served = group_rows(facts.rows(Tcp), "broker")
    for row in facts.rows(Stalls):
        if facts.context.slept(row["from_ns"], row["to_ns"]):
            facts.cannot_judge(SLEPT)
    is_only_one = len({row["node_id"] for row in facts.rows(ClusterBrokers)}) == 1
    long = {
        broker: [
            row
            for row in rows
            if row["stalled_ns"] >= facts.limit("stalled_s") * SECOND
            and facts.context.awake_ns(row["from_ns"], row["to_ns"]) == row["to_ns"] - row["from_ns"]
            and (not _began_in(row, ready) or _ran_through(row, served.get((broker,), []), ready))
            and (row["alone"] or is_only_one)
        ]
        for broker, rows in stalls(facts).items()
    }
    return {broker: rows for broker, rows in long.items() if rows}


@rule("broker-stalled", CRITICAL, LIKELY, needs=(Stalls, Tcp, ClusterBrokers), stalled_s=1)
def broker_stalled(facts: Facts) -> Iterator[Finding]:
    """A broker answered nobody for a while, and then all at once."""
    nodes = nodes_by_address(facts.rows(ClusterBrokers))
    for broker, stood in of_one_broker(_long_stalls(facts), nodes).items():
        own = _each_once(stood)
        longest = max(stood, key=lambda row: row["stalled_ns"])
        exchanges = [number for row in stood for number in row["exchanges"]]
        connections = sorted({each for row in stood for each in row["connections"]})
        times = "once" if len(own) == 1 else f"{len(own)} times"
        yield facts.finding(
            FindingSubject(broker=broker),
            f"The broker answered none of {plural(len(connections), 'connection')} for up to "
            f"{span(longest['stalled_ns'])}, {times}, although requests waited; then it answered all at "
            "once. Its machine was up, because it went on acknowledging packets.",
            count=len(own),
            measure=round(longest["stalled_ns"] / SECOND, 3),
            unit="s",
            threshold=facts.limit("stalled_s"),
            cost_ns=sum(row["stalled_ns"] for row in own),
            first_ns=min(row["from_ns"] for row in stood),
            last_ns=max(row["to_ns"] for row in stood),
            exchanges=exchanges,
            connections=connections,
            filter=of_numbers(exchanges[:8]),
        )


def _was_the_network(row: Row, outages: list[tuple[int, int, int]]) -> bool:
    """Whether a connection that waited only carried retransmitted bytes in that time."""
    return any(
        connection in row["connections"] and begin < row["to_ns"] and row["from_ns"] < end
        for connection, begin, end in outages
    )
