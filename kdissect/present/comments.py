"""Comments of kdissect on packets, which are part of a pcapng file.

People read them in Wireshark. The plug-in that ``kdissect wireshark install`` installs reads them too, and
shows fields for filters. A comment is one line of one of these forms:

    kdissect warning rebalance-long: group orders: Generation 6 kept 2 members waiting.
    kdissect exchange: number=409 connection=3 api=Fetch api_version=13 client_id="my app" latency_ns=502000
    kdissect request: number=409 connection=3 api=Fetch …

A value that is not one plain word is in quotes, with a backslash before quotes and backslashes. It contains
no invisible characters and no line ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kdissect import __version__
from kdissect.exchange import Exchange
from kdissect.insight.finding import SEVERITIES, Finding
from kdissect.present.columns import EXCHANGES, Column, Table
from kdissect.present.form import plural
from kdissect.present.options import PLAIN, Options
from kdissect.present.sanitise import sanitise

if TYPE_CHECKING:
    from kdissect.insight.judge import Judged

OURS = "kdissect "
"""The beginning of kdissect's comments."""

_LEFT_OUT = (
    *("request", "response", "request_packet", "response_packet"),
    *("request_start_ns", "request_time_ns", "response_start_ns", "response_time_ns"),
)
"""Columns without a place in comments: Wireshark shows bodies and times itself. The number of the other
packet is added when it is known."""

COMMENT_TABLE = Table("comments", tuple(each for each in EXCHANGES.columns if each.name not in _LEFT_OUT))
"""The columns of an exchange in its comment."""

PACKETS = ("request_packet", "response_packet")
"""The columns that are added later: the packets that completed the messages, by their numbers in the file."""

_OF_REQUEST = COMMENT_TABLE.select(
    (
        *("number", "connection", "client", "broker", "api_key", "api", "api_version", "correlation_id"),
        *("client_id", "request_size", "topics", "groups", "transactional_ids"),
    )
)

_WORD = re.compile(r"[\w.:@/+\[\]-]+", re.ASCII)
_LONGEST = 1_000
"""The most characters of one value."""


def finding_comments(finding: Finding) -> Iterator[tuple[int | None, str]]:
    """The comments on the exchanges that show a finding, each with the number of its exchange; None for a
    comment on the finding's packets."""
    begin = f"{OURS}{finding.severity} {finding.id}: {finding.where}: "
    steps = {each.exchange: each.text for each in reversed(finding.steps) if each.exchange is not None}
    for number in dict.fromkeys((*finding.exchanges, *steps)):
        yield number, sanitise(begin + steps.get(number, finding.message), None)
    yield None, sanitise(begin + finding.message, None)


def exchange_comment(exchange: Exchange, options: Options = PLAIN) -> str:
    """The comment on the packet that completed an exchange."""
    return f"{OURS}exchange: {' '.join(_parts(COMMENT_TABLE, exchange, options))}"


def request_comment(exchange: Exchange, options: Options = PLAIN) -> str:
    """The comment on the packet that completed the request of an exchange."""
    return f"{OURS}request: {' '.join(_parts(_OF_REQUEST, exchange, options))}"


def with_packets(comment: str, packets: Iterable[int | None]) -> str:
    """The comment on an exchange, with the numbers of the packets that completed its request and response."""
    told = zip(PACKETS, packets, strict=True)
    return " ".join((comment, *(f"{name}={number}" for name, number in told if number is not None)))


def section_comment(judged: Judged, exchanges: int) -> str:
    """The comment on the whole capture: the findings, worst first."""
    counts = {name: sum(each.severity == name for each in judged.findings) for name in SEVERITIES}
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    lines = [f"kdissect {__version__}: {plural(exchanges, 'exchange')}, {told or 'no findings'}"]
    lines += (
        sanitise(f"{OURS}{each.severity} {each.id}: {each.where}: {each.message}", None)
        for each in judged.findings
    )
    return "\n".join(lines)


def is_of_section(comment: str) -> bool:
    """Whether :func:`section_comment` made a comment."""
    return re.match(r"kdissect [\d.]+\S*: [\d,]+ exchange", comment) is not None


def _parts(table: Table, exchange: Exchange, options: Options) -> Iterator[str]:
    for column in table.columns:
        value = _text(column, column.value(exchange, options))
        if value:
            yield f"{column.name}={value}"


def _text(column: Column, value: Any) -> str:
    if value is None or value == []:
        return ""
    if column.type == "faults":
        value = ",".join(dict.fromkeys(each["kind"] for each in value))
    elif isinstance(value, list):
        value = ",".join(map(str, value))
    elif isinstance(value, bool):
        value = str(value).lower()
    text = sanitise(str(value), _LONGEST)
    if _WORD.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
