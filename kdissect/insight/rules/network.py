"""Rules on the network between clients and brokers, and on the connections themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from kdissect.analysis.connections import Connections
from kdissect.analysis.exposure import Exposure
from kdissect.analysis.fold import MILLISECOND, SECOND, Row, address
from kdissect.analysis.medians import median
from kdissect.analysis.pace import Pace
from kdissect.analysis.tcp import Tcp
from kdissect.insight.causes import may_explain
from kdissect.insight.expired_logins import LOGIN_NS, client_and_user, closed_when_login_expired
from kdissect.insight.finding import (
    CERTAIN,
    CRITICAL,
    INFO,
    LIKELY,
    NOTICE,
    WARNING,
    Finding,
    FindingSubject,
    key_of,
)
from kdissect.insight.gaps import without_gaps
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import of_connections, of_numbers, span
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
"""Requests that brokers answer at once, so that the network's part shows."""
UNSCALED = 65_535
"""The largest window without a scale."""


def _who(row: Row) -> tuple[str | None, str | None]:
    """Client id, or else the address."""
    return (row["client_id"], None) if row["client_id"] else (None, address(row["client"]))


def _by_client(rows: list[Row]) -> dict[tuple[str | None, str | None], list[Row]]:
    out: dict[tuple[str | None, str | None], list[Row]] = defaultdict(list)
    for row in rows:
        out[_who(row)].append(row)
    return out


def _about(rows: list[Row]) -> dict[str, Any]:
    """What findings on connections say alike."""
    connections = [row["connection"] for row in rows]
    return {
        "first_ns": min(row["first_ns"] for row in rows),
        "last_ns": max(row["last_ns"] for row in rows),
        "connections": connections,
        "filter": of_connections(connections),
    }


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
        and row["handshake_ns"] is not None  # else the ends may just delay what they acknowledge
    ]
    for (client_id, host), rows in _by_client(far).items():
        rtt = median(row["rtt_min_ns"] for row in rows)
        here = median(row["rtt_broker_ns"] for row in rows)
        taken = [each for row in rows for each in short[row["client_id"], address(row["client"])]]
        # What the client waits is the latency as captured, and the way between it and the capture point.
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
            **_about(rows),
        )


@rule("slow-transfer", WARNING, LIKELY, needs=(Tcp,), times=5, share=50, least=3)
def slow_transfer(facts: Facts) -> Iterator[Finding]:
    """Large messages arrive slowly."""
    slow = [row for row in facts.rows(Tcp) if row["slow_large"]]
    for (client_id, host), rows in _by_client(slow).items():
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
            **_about(rows),
        )


def _brake(row: Row) -> str:
    """What holds the bytes of a connection up."""
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
    for (broker,), rows in _merged(lost, "broker").items():
        rtts = [row["rtt_min_ns"] for row in rows if row["rtt_min_ns"]]
        ceiling = f", which is {UNSCALED * SECOND / max(rtts) / 1e6:.2f} MB/s here" if rtts else ""
        yield facts.finding(
            FindingSubject(broker=broker),
            f"{plural(len(rows), 'connection')} can have only {UNSCALED:,} bytes under way at a time: the "
            f"broker's side did not agree to larger windows{ceiling}.",
            count=len(rows),
            measure=float(UNSCALED),
            unit="bytes",
            **_about(rows),
        )


def _merged(rows: list[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    out: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        out[tuple(row[name] for name in names)].append(row)
    return out


@rule("zero-window", WARNING, CERTAIN, needs=(Tcp,), once_ms=200, share=5, least_ms=50)
def zero_window(facts: Facts) -> Iterator[Finding]:
    """One end could not take more bytes."""
    for side in ("client", "broker"):
        name = f"zero_window_{side}"
        shut = [row for row in facts.rows(Tcp) if row[f"{name}_count"] and _was_shut(facts, row, name)]
        for (client_id, host), rows in _by_client(shut).items():
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
                **_about(rows),
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
    """Segments were lost, and sent again."""
    used = [row for row in facts.rows(Tcp) if row["exchanges"]]
    for (client_id, host), rows in _by_client(used).items():
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
            + (f"; {late:,} of them only after 200 ms or more." if late else "."),
            count=lost,
            measure=round(100 * lost / packets, 2),
            unit="%",
            threshold=facts.limit("share"),
            exchanges=exchanges,
            packets=[packet for row in some for packet in row["rto_packets"]],
            **_about(some),
        )


@rule(
    "request-abandoned",
    WARNING,
    LIKELY,
    needs=(Tcp, Connections, Exposure),
    age_s=1,
    leave_s=1,
    spread=5,
    cut=3,
    again_s=5,
    lasted_s=1,
    apart=10,
)
def request_abandoned(facts: Facts) -> Iterator[Finding]:
    """The client gave up waiting, or was cut off while it waited and asked again. Where bytes of a
    connection are missing, the answer may be among them."""
    if 2 * facts.context.one_sided > facts.context.exchanges:
        facts.cannot_judge("only one direction was captured")
        return
    for (client_id, host), rows in _by_client(without_gaps(facts, _given_up(facts), "an answer")).items():
        ages = sorted(row["waiting_ns"] for row in rows)
        middle = median(ages)
        alike = len(ages) > 1 and all(
            100 * abs(age - middle) <= facts.limit("spread") * middle for age in ages
        )
        guess = f" That looks like a timeout of {span(middle)}." if alike else ""
        yield _abandoned(
            facts,
            FindingSubject(client_id=client_id, client=host, broker=rows[0]["broker"]),
            f"The client closed {plural(len(rows), 'connection')} on which a request ({_apis(rows)}) had "
            f"waited up to {span(ages[-1])} for its answer.{guess}",
            rows,
        )
    for (client_id, host), cut in _by_client(_cut_off(facts)).items():
        rows = without_gaps(facts, cut, "an answer") if len(cut) >= facts.limit("cut") else []
        if len(rows) >= facts.limit("cut"):
            lasted = _alike_ns(facts, rows)
            each = f" Each of them had lasted {span(lasted)}." if lasted is not None else ""
            expired = lasted is not None and all(row["login_ns"] for row in rows)
            yield _abandoned(
                facts,
                FindingSubject(client_id=client_id, client=host, broker=rows[0]["broker"]),
                f"{plural(len(rows), 'connection')} ended from the broker's side while a request "
                f"({_apis(rows)}) waited for its answer; the client connected again and asked again.{each}",
                rows,
                cause=_EXPIRED_WHY if expired else _CUT_OFF_WHY,
                fix=_EXPIRED_DO if expired else _CUT_OFF_DO,
                because=_expired_login(facts, rows),
            )


def _alike_ns(facts: Facts, rows: list[Row]) -> int | None:
    """How long connections lasted of which the beginning was captured, if all lasted about as long and did
    not end together: whatever happens once may cut off connections of one age."""
    if any(row["handshake_ns"] is None for row in rows):
        return None
    lives = [row["closed_ns"] - row["first_ns"] for row in rows]
    middle = median(lives)
    is_alike = all(100 * abs(life - middle) <= facts.limit("spread") * middle for life in lives)
    ends: list[int] = []
    for ns in sorted(row["closed_ns"] for row in rows):
        if not ends or 100 * (ns - ends[-1]) > facts.limit("apart") * middle:
            ends.append(ns)
    is_long = middle >= facts.limit("lasted_s") * SECOND
    return int(middle) if is_alike and is_long and len(ends) >= facts.limit("cut") else None


_EXPIRED_WHY = (
    "A broker closes a connection whose login is older than connections.max.reauth.ms as soon as a request "
    "comes, and this client did not log in again. Or something between the two ends every connection after "
    "that time: a load balancer, a firewall."
)
_EXPIRED_DO = (
    "Compare that time with connections.max.reauth.ms of the broker and with the life of the tokens. If it "
    "is one of these, update the client library: it must log in again in time (KIP-368). Otherwise look at "
    "the limits of what is between the client and the broker."
)


_CUT_OFF_WHY = (
    "The client did not give up, and the broker went on: it answered such requests before and after. So "
    "something between the two closed these connections: a proxy, a load balancer, a firewall, a tunnel."
)
_CUT_OFF_DO = (
    "Find out what is between the client and the broker, and read its log at these times: restarts, "
    "limits for connections or for their duration. A longer timeout of the client does not help. Set "
    "enable.idempotence=true in producers, so that what they send again is written once."
)


def _abandoned(
    facts: Facts, subject: FindingSubject, message: str, rows: list[Row], **written: str | None
) -> Finding:
    exchanges = [number for row in rows for number in row["waiting_exchanges"]]
    return facts.finding(
        subject,
        message,
        count=len(exchanges),
        measure=round(max(row["waiting_ns"] for row in rows) / SECOND, 3),
        unit="s",
        threshold=facts.limit("age_s"),
        exchanges=exchanges,
        **{
            **_about(rows),
            "first_ns": min(row["closed_ns"] for row in rows),
            "last_ns": max(row["closed_ns"] for row in rows),
            "filter": of_numbers(exchanges[:8]),
            **written,
        },
    )


def _apis(rows: list[Row]) -> str:
    return ", ".join(sorted({api for row in rows for api in row["waiting_apis"]}))


def _given_up(facts: Facts) -> list[Row]:
    """Connections that the client closed though it had waited for long, and did not just leave its group."""
    left: dict[tuple[str | None, str], list[int]] = defaultdict(list)
    for row in facts.rows(Tcp):
        if row["left_ns"] is not None:
            left[row["client_id"], address(row["client"])].append(row["left_ns"])
    found = []
    for row in facts.rows(Tcp):
        if row["closed_by"] != "client":
            continue
        if (row["waiting_ns"] or 0) < facts.limit("age_s") * SECOND:
            continue
        leaves = left[row["client_id"], address(row["client"])]
        if not any(0 <= row["closed_ns"] - ns <= facts.limit("leave_s") * SECOND for ns in leaves):
            found.append(row)
    return found


def _cut_off(facts: Facts) -> list[Row]:
    """Connections that the broker's side closed while requests waited that it answers before and after: so
    neither the broker nor the client was at its end."""
    rows = [row for row in facts.rows(Tcp) if row["exchanges"]]
    found = []
    for row in rows:
        asked = set(row["waiting_apis"]) & set(row["answered_apis"])
        if row["closed_by"] != "broker" or not asked:
            continue
        later = (other for other in rows if _who(other) == _who(row) and other["broker"] == row["broker"])
        if any(
            0 <= other["first_ns"] - row["closed_ns"] <= facts.limit("again_s") * SECOND
            and asked & set(other["answered_apis"])
            for other in later
        ):
            found.append(row)
    return found


def _expired_login(facts: Facts, rows: list[Row]) -> str | None:
    """The key of the finding that the broker closed these connections when their login expired. That must be
    known of half of them; of the login of others the capture may lack the beginning. They must be of the
    same clients and brokers."""
    expired = {row["connection"]: row for row in closed_when_login_expired(facts)}
    known = [row for row in rows if row["connection"] in expired]
    if 2 * len(known) < len(rows) or not {*map(_ends, rows)} <= {*map(_ends, known)}:
        return None
    return key_of("reauthentication-missed", client_and_user(expired[known[0]["connection"]]))


def _ends(row: Row) -> tuple[str, str | None, str]:
    """The client and the broker of a connection."""
    return address(row["client"]), row["client_id"], row["broker"]


may_explain("reauthentication-missed", "request-abandoned", within_s=LOGIN_NS / SECOND)


@rule("slow-connect", NOTICE, CERTAIN, needs=(Tcp,), setup_ms=500, times=10)
def slow_connect(facts: Facts) -> Iterator[Finding]:
    """Getting a connection ready takes long."""
    ready = [row for row in facts.rows(Tcp) if row["setup_ns"] is not None]
    for (client_id, host), rows in _by_client(ready).items():
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
            **_about(rows),
        )


@rule("capture-clock", INFO, CERTAIN, needs=(Pace,), times=5)
def capture_clock(facts: Facts) -> Iterator[Finding]:
    """The capture's clock goes back, or its interfaces disagree."""
    rows = [row for row in facts.rows(Pace) if row["backwards_count"]]
    count = sum(row["backwards_count"] for row in rows)
    is_set_back = bool(facts.context.set_back)
    if count < facts.limit("times") and not is_set_back:
        return
    longest = max((row["backwards_max_ns"] for row in rows), default=0)
    message = (
        "Packets that came later have earlier times: the clock of the capture was set back, or its "
        "interfaces do not agree. Times that include that moment mean nothing."
        if is_set_back
        else f"{plural(count, 'answer')} were captured up to {span(longest)} before the requests that they "
        "answer: the clock of the capture went back, or its interfaces do not agree. Shorter times in "
        "this capture mean nothing."
    )
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


@rule("network-outage", CRITICAL, LIKELY, needs=(Tcp,), outage_s=3)
def network_outage(facts: Facts) -> Iterator[Finding]:
    """A client's connections carried only what was sent again, while others went on."""
    rows = facts.rows(Tcp)
    out = [row for row in rows if row["outage_from_ns"] is not None and row["exchanges"]]
    out = [row for row in out if row["outage_ns"] >= facts.limit("outage_s") * SECOND]
    for (client_id, host), some in _by_client(out).items():
        worst = max(some, key=lambda row: row["outage_ns"])
        begin, end = worst["outage_from_ns"], worst["outage_from_ns"] + worst["outage_ns"]
        others = [row for row in rows if _who(row) != (client_id, host) and row["exchanges"]]
        if not any(row["first_ns"] < end and row["last_ns"] > begin for row in others):
            continue  # nothing shows that it was not the capture, or everything
        yield facts.finding(
            FindingSubject(client_id=client_id, client=host),
            f"For {span(worst['outage_ns'])} nothing that was sent between this client and the broker was "
            "acknowledged. The same bytes were sent again and again, while other connections went on.",
            count=len(some),
            measure=round(worst["outage_ns"] / SECOND, 3),
            unit="s",
            threshold=facts.limit("outage_s"),
            cost_ns=worst["outage_ns"],
            **{**_about(some), "first_ns": begin, "last_ns": end},
        )
