"""Rules on how quickly connections carry messages, and on losses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from kdissect.analysis.fold import MILLISECOND, SECOND, Row
from kdissect.analysis.medians import median
from kdissect.analysis.pace import Pace
from kdissect.analysis.producers import Producers
from kdissect.analysis.speakers import address
from kdissect.analysis.tcp import Tcp
from kdissect.insight.clocks import AHEAD_MS, behind_ms
from kdissect.insight.finding import CERTAIN, CRITICAL, INFO, LIKELY, NOTICE, WARNING, Finding, FindingSubject
from kdissect.insight.grouping import group_rows
from kdissect.insight.nodes import follower_of
from kdissect.insight.rule import Facts, rule
from kdissect.insight.rules.network.connections import by_client, common_fields
from kdissect.insight.words import named, span
from kdissect.wording import plural

SHORT = (
    "Heartbeat",
    "Metadata",
    "FindCoordinator",
    "Produce",
    "ApiVersions",
    "OffsetCommit",
    "ConsumerGroupHeartbeat",
)
"""Requests that brokers answer at once, so that the share of the network shows."""
UNSCALED = 65_535
"""The largest window without window scaling."""


@rule("far-away", INFO, CERTAIN, needs=(Tcp, Pace), rtt_ms=20, share=50)
def far_away(facts: Facts) -> Iterator[Finding]:
    """Network time dominates."""
    short: dict[tuple[str | None, str], list[Row]] = defaultdict(list)
    for row in facts.rows(Pace):
        if row["api"] in SHORT:
            short[row["client_id"], row["client"]].append(row)
    far = [
        row
        for row in facts.rows(Tcp)
        if (row["rtt_min_ns"] or 0) >= facts.limit("rtt_ms") * MILLISECOND
        and row["exchanges"]
        and row["handshake_ns"] is not None  # otherwise the ends may just delay their acknowledgements
    ]
    for (client_id, host), rows in by_client(far).items():
        rtt = median(row["rtt_min_ns"] for row in rows)
        here = median(row["rtt_broker_ns"] for row in rows)
        taken = [each for row in rows for each in short[row["client_id"], address(row["client"])]]
        # The client waits for the latency as captured, and for the way between it and the capture point.
        waited = [each["latency_p50_ns"] - here + rtt for each in taken if each["count"]]
        if not waited or 100 * rtt < facts.limit("share") * min(waited):
            continue
        yield facts.finding(
            FindingSubject(client_id=client_id, client=host),
            f"A message takes {span(int(rtt))} from the client to the broker and back; that is "
            f"{min(100.0, 100 * rtt / min(waited)):.0f} % of what its short requests take.",
            count=len(rows),
            measure=round(rtt / MILLISECOND, 3),
            unit="ms",
            threshold=facts.limit("rtt_ms"),
            **common_fields(rows),
        )


@rule("slow-transfer", WARNING, LIKELY, needs=(Tcp,), times=5, share=50, least=3)
def slow_transfer(facts: Facts) -> Iterator[Finding]:
    """Large messages arrive slowly."""
    slow = [row for row in facts.rows(Tcp) if row["slow_large"]]
    for (client_id, host), rows in by_client(slow).items():
        count, large = sum(row["slow_large"] for row in rows), sum(row["large"] for row in rows)
        if count < facts.limit("times") and (
            count < facts.limit("least") or 100 * count < facts.limit("share") * large
        ):
            continue
        worst = min(rows, key=lambda row: row["slow_large_bytes_per_s"])
        exchanges = [number for row in rows for number in row["slow_large_exchanges"]]
        yield facts.finding(
            FindingSubject(client_id=client_id, client=host),
            f"{plural(count, 'large message')} of {large:,} went at less than 2 MB/s, down to "
            f"{worst['slow_large_bytes_per_s'] / 1e6:.2f} MB/s: {_brake(worst)}.",
            count=count,
            measure=round(worst["slow_large_bytes_per_s"] / 1e6, 3),
            unit="MB/s",
            threshold=2.0,
            exchanges=exchanges,
            **common_fields(rows),
        )


def _brake(row: Row) -> str:
    """What slows the bytes of a connection down."""
    if row["retransmitted_segments"] >= 3:
        return f"{plural(row['retransmitted_segments'], 'segment')} had to be sent again"
    if row["zero_window_client_ns"] + row["zero_window_broker_ns"] >= 100 * MILLISECOND:
        return "the receiver had a zero window for part of the time"
    windows = [each for each in (row["window_max_client"], row["window_max_broker"]) if each]
    rtt = row["rtt_min_ns"]
    if windows and rtt and min(windows) * SECOND / rtt < 2 * row["slow_large_bytes_per_s"]:
        return (
            f"a window of {min(windows):,} bytes in a round trip of {span(rtt)} allows "
            f"{min(windows) * SECOND / rtt / 1e6:.2f} MB/s"
        )
    return "neither losses nor windows show why, so the path or the sender is slow"


@rule("tcp-window-scaling-lost", CRITICAL, CERTAIN, needs=(Tcp,), megabytes=1, life_s=60)
def tcp_window_scaling_lost(facts: Facts) -> Iterator[Finding]:
    """The client offers window scaling, and the answer to its SYN does not."""
    lost = [
        row
        for row in facts.rows(Tcp)
        if row["wscale_client"] is not None and row["mss_broker"] is not None and row["wscale_broker"] is None
    ]
    lost = [
        row
        for row in lost
        if row["bytes_to_broker"] + row["bytes_from_broker"] >= facts.limit("megabytes") * 2**20
        or row["last_ns"] - row["first_ns"] >= facts.limit("life_s") * SECOND
    ]
    for (broker,), rows in group_rows(lost, "broker").items():
        rtts = [row["rtt_min_ns"] for row in rows if row["rtt_min_ns"]]
        ceiling = f", which is {UNSCALED * SECOND / max(rtts) / 1e6:.2f} MB/s here" if rtts else ""
        yield facts.finding(
            FindingSubject(broker=broker),
            f"{plural(len(rows), 'connection')} can have only {UNSCALED:,} bytes under way at a time: the "
            f"broker's side did not agree to larger windows{ceiling}.",
            count=len(rows),
            measure=float(UNSCALED),
            unit="bytes",
            **common_fields(rows),
        )


@rule("zero-window", WARNING, CERTAIN, needs=(Tcp,), once_ms=200, share=5, least_ms=50)
def zero_window(facts: Facts) -> Iterator[Finding]:
    """One end could not take more bytes."""
    for side in ("client", "broker"):
        name = f"zero_window_{side}"
        shut = [row for row in facts.rows(Tcp) if row[f"{name}_count"] and _was_shut(facts, row, name)]
        for (client_id, host), rows in by_client(shut).items():
            whole, longest = (
                sum(row[f"{name}_ns"] for row in rows),
                max(row[f"{name}_max_ns"] for row in rows),
            )
            who = "client" if side == "client" else "broker"
            yield facts.finding(
                FindingSubject(
                    client_id=client_id, client=host, broker=rows[0]["broker"] if side == "broker" else None
                ),
                f"The {who} could take no more bytes for {span(whole)} in all, up to {span(longest)} at "
                "once: it does not read from the connection.",
                count=sum(row[f"{name}_count"] for row in rows),
                measure=round(longest / MILLISECOND, 3),
                unit="ms",
                threshold=facts.limit("once_ms"),
                cost_ns=whole,
                **common_fields(rows),
            )


def _was_shut(facts: Facts, row: Row, name: str) -> bool:
    if row[f"{name}_max_ns"] >= facts.limit("once_ms") * MILLISECOND:
        return True
    enough = row[f"{name}_ns"] >= facts.limit("least_ms") * MILLISECOND
    return bool(
        enough and 100 * row[f"{name}_ns"] >= facts.limit("share") * (row["last_ns"] - row["first_ns"])
    )


@rule("packet-loss", WARNING, CERTAIN, needs=(Tcp,), share=0.5, times=10, hit=3)
def packet_loss(facts: Facts) -> Iterator[Finding]:
    """Segments were lost and sent again."""
    used = [row for row in facts.rows(Tcp) if row["exchanges"]]
    for (client_id, host), rows in by_client(used).items():
        lost, packets = (
            sum(row["retransmitted_segments"] for row in rows),
            sum(row["packets"] for row in rows),
        )
        exchanges = [number for row in rows for number in row["hit_exchanges"]]
        often = lost >= facts.limit("times") and 100 * lost >= facts.limit("share") * packets
        if not often and len(exchanges) < facts.limit("hit"):
            continue
        late = sum(row["rto_like"] for row in rows)
        up, down = sum(row["lost_to_broker"] for row in rows), sum(row["lost_to_client"] for row in rows)
        some = [row for row in rows if row["retransmitted_segments"]]
        yield facts.finding(
            FindingSubject(client_id=client_id, client=host),
            f"{plural(lost, 'segment')} of {packets:,} packets ({100 * lost / packets:.1f} %) got lost and "
            f"were sent again, {up:,} on the way to the broker and {down:,} on the way back"
            + (f"; {late:,} of them only after 200 ms or more." if late else ".")
            + _copying(client_id, rows),
            count=lost,
            measure=round(100 * lost / packets, 2),
            unit="%",
            threshold=facts.limit("share"),
            exchanges=exchanges,
            packets=[packet for row in some for packet in row["rto_packets"]],
            **common_fields(some),
        )


def _copying(client_id: str | None, rows: list[Row]) -> str:
    """What the client copies over these connections, if it is a follower."""
    node, leaders = follower_of(client_id), sorted({row["broker"] for row in rows})
    if node is None:
        return ""
    return (
        f" Broker {node} copies what {named(leaders)} {'leads' if len(leaders) == 1 else 'lead'} over it, so "
        "writes that all replicas confirm (acks=all) are late too."
    )


@rule("slow-connect", NOTICE, CERTAIN, needs=(Tcp,), setup_ms=500, times=10)
def slow_connect(facts: Facts) -> Iterator[Finding]:
    """Setting up a connection takes long."""
    ready = [row for row in facts.rows(Tcp) if row["setup_ns"] is not None]
    for (client_id, host), rows in by_client(ready).items():
        if len(rows) < facts.limit("times"):
            continue
        setup = median(row["setup_ns"] for row in rows)
        if setup < facts.limit("setup_ms") * MILLISECOND:
            continue
        handshake = median(row["handshake_ns"] or 0 for row in rows)
        login = median(row["login_ns"] for row in rows)
        rest = max(0, setup - handshake - login)
        kind = "TLS and the rest" if any(row["tls"] for row in rows) else "the rest"
        yield facts.finding(
            FindingSubject(client_id=client_id, client=host),
            f"Half of {plural(len(rows), 'connection')} are ready only {span(int(setup))} after they were "
            f"begun: {span(int(handshake))} to connect, {span(int(login))} to log in, "
            f"{span(int(rest))} for {kind}.",
            count=len(rows),
            measure=round(setup / MILLISECOND, 3),
            unit="ms",
            threshold=facts.limit("setup_ms"),
            **common_fields(rows),
        )


@rule("capture-clock", INFO, CERTAIN, needs=(Pace, Producers), times=5)
def capture_clock(facts: Facts) -> Iterator[Finding]:
    """The capture's clock goes back or is behind, or its interfaces disagree."""
    rows = [row for row in facts.rows(Pace) if row["backwards_count"]]
    count = sum(row["backwards_count"] for row in rows)
    longest = max((row["backwards_max_ns"] for row in rows), default=0)
    if facts.context.set_back:
        message = (
            "Packets that came later have earlier times: the clock of the capture was set back, or its "
            "interfaces do not agree. Times that include that moment mean nothing."
        )
    elif count >= facts.limit("times"):
        message = (
            f"{plural(count, 'answer')} were captured up to {span(longest)} before the requests that they "
            "answer: the clock of the capture went back, or its interfaces do not agree. Shorter times in "
            "this capture mean nothing."
        )
    else:
        yield from _behind(facts)
        return
    yield facts.finding(
        FindingSubject(),
        message,
        count=max(count, 1),
        measure=round(longest / MILLISECOND, 3) if rows else None,
        unit="ms",
        threshold=1.0,
        exchanges=[number for row in rows for number in row["backwards_exchanges"]],
        first_ns=min((row["first_ns"] for row in rows), default=facts.context.first_ns),
        last_ns=max((row["last_ns"] for row in rows), default=facts.context.last_ns),
        filter="latency < 0" if rows else "",
    )


def _behind(facts: Facts) -> Iterator[Finding]:
    rows = [row for row in facts.rows(Producers) if row["skew_max_ms"] is not None]
    behind = behind_ms(rows)
    if behind is None:
        return
    hosts = {row["client"] for row in rows}
    yield facts.finding(
        FindingSubject(),
        f"The records of all producers, on {len(hosts)} hosts, are dated {span(behind * MILLISECOND)} after "
        "they were captured. So the clock of the capturing machine seems to be behind theirs.",
        confidence=LIKELY,
        count=len(hosts),
        measure=float(behind),
        unit="ms",
        threshold=float(AHEAD_MS),
        first_ns=min(row["first_ns"] for row in rows),
        last_ns=max(row["last_ns"] for row in rows),
        exchanges=[number for row in rows for number in row["exchanges"][:1]],
        filter="api == Produce",
    )
