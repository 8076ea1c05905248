"""Rules on what a capture itself lacks: bytes, sides, beginnings, Kafka. They accuse nobody."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.insight.context import JudgingContext, Some
from kdissect.insight.finding import CERTAIN, NOTICE, Finding, FindingSubject
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import of_connections
from kdissect.wording import plural

_THE_CAPTURE = FindingSubject()


def _finding(facts: Facts, message: str, some: Some, measure: float, unit: str) -> Finding:
    context = facts.context
    return facts.finding(
        _THE_CAPTURE,
        message,
        count=some.number,
        measure=measure,
        unit=unit,
        connections=some.first,
        first_ns=context.first_ns,
        last_ns=context.last_ns,
        filter=of_connections(some.first),
    )


@rule("capture-gaps", NOTICE, CERTAIN, needs=())
def capture_gaps(facts: Facts) -> Iterator[Finding]:
    """Bytes of Kafka connections are missing."""
    context = facts.context
    some = context.with_gaps
    if some.number and not context.cut_packets:
        share = 100 * context.gap_bytes / (context.gap_bytes + context.captured_bytes)
        message = (
            f"{context.gap_bytes:,} bytes ({_percent(share)}) of {plural(some.number, 'connection')} that "
            f"{'speak' if some.number > 1 else 'speaks'} Kafka are missing from the capture."
        )
        yield _finding(facts, message, some, context.gap_bytes, "bytes")


@rule("one-sided", NOTICE, CERTAIN, needs=())
def one_sided(facts: Facts) -> Iterator[Finding]:
    """Only one direction of a connection is there."""
    some = facts.context.with_one_side
    if some.number:
        message = (
            f"Of {plural(some.number, 'connection')} only one direction is in the capture: the messages of "
            "the other end and all response times are unknown."
        )
        yield _finding(facts, message, some, some.number, "connections")


@rule("mid-stream", NOTICE, CERTAIN, needs=())
def mid_stream(facts: Facts) -> Iterator[Finding]:
    """A connection began before the capture."""
    some = facts.context.in_mid_stream
    if some.number:
        message = (
            f"{plural(some.number, 'connection')} began before the capture. Logins, topic names and "
            "versions from their beginning may be missing here."
        )
        yield _finding(facts, message, some, some.number, "connections")


@rule("tls-dark", NOTICE, CERTAIN, needs=())
def tls_dark(facts: Facts) -> Iterator[Finding]:
    """TLS that is not decrypted."""
    context = facts.context
    some = context.in_the_dark
    if some.number:
        why = f": {context.why_dark}" if context.why_dark else ""
        message = f"{plural(some.number, 'connection')} of TLS {_is(some)} not decrypted{why}."
        found = _finding(facts, message, some, some.number, "connections")
        yield found.changed(filter="")  # these connections have no exchanges


@rule("sampled-by-snaplen", NOTICE, CERTAIN, needs=())
def sampled_by_snaplen(facts: Facts) -> Iterator[Finding]:
    """The capture tool kept only the beginning of packets."""
    context = facts.context
    if context.cut_packets:
        message = (
            f"The capture tool kept only the beginning of {plural(context.cut_packets, 'packet')} of "
            f"{plural(context.cut.number, 'connection')} (its snap length): {context.gap_bytes:,} bytes are "
            "missing."
        )
        yield _finding(facts, message, context.cut, context.cut_packets, "packets")


@rule("no-kafka", NOTICE, CERTAIN, needs=())
def no_kafka(facts: Facts) -> Iterator[Finding]:
    """The readable part of the capture has no exchange at all."""
    context = facts.context
    if context.is_unread:
        facts.cannot_judge("nothing of the capture could be read")
    elif not context.exchanges:
        where = "what could be read of the capture" if context.unread else "the capture"
        message = f"No Kafka was found in {where}: {_instead(context)}."
        yield _finding(facts, message, Some(), context.connections, "connections")


_WORDS = {"http": "HTTP", "tls": "TLS that is not decrypted", "unknown": "another protocol"}
_MOST_TOLD = 4


def _instead(context: JudgingContext) -> str:
    """What the capture has instead of Kafka."""
    if not context.connections:
        return "there is no TCP connection in it"
    told = []
    for each in context.spoken[:_MOST_TOLD]:
        what = (
            "without a byte" if each.protocol == "silent" else f"of {_WORDS.get(each.protocol, 'no message')}"
        )
        told.append(f"{each.number:,} {what} on port {each.port}")
    if len(context.spoken) > _MOST_TOLD:
        told.append("and others")
    text = f"{plural(context.connections, 'TCP connection')} ({', '.join(told)})"
    port = next((each.port for each in context.spoken if each.protocol in ("unknown", "silent")), None)
    return text if port is None else f"{text}; -d tcp.port=={port},kafka treats that port as Kafka"


def _is(some: Some) -> str:
    return "is" if some.number == 1 else "are"


def _percent(share: float) -> str:
    return f"{share:.1f} %" if share >= 0.1 else "less than 0.1 %"
