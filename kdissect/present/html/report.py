"""``kdissect report``: findings and tables of a capture, as one page that can be sent."""

from __future__ import annotations

from collections.abc import Callable

from kdissect import __version__
from kdissect.insight.judge import CaptureReport
from kdissect.present.html.cluster import clients, cluster, graph, rest, security
from kdissect.present.html.embedded import MARK, embedded
from kdissect.present.html.groups import groups, topics, transactions
from kdissect.present.html.head import findings, head, verdict
from kdissect.present.html.page import page, text
from kdissect.present.html.sheet import ReportOptions, Sheet
from kdissect.present.html.times import latency, timeline

LARGEST = 2_000_000
"""The most bytes of a page."""
MOST_ROWS = 200
"""The most rows of a table, on the page and inside it."""
_LEAST_ROWS = 5
_MORE = {"timeline": 600, "lag,1s": 600, "profile": 1_500, "stays": 400, "rebalance_steps": 400}
"""Tables that keep more rows inside the page."""

_PANELS: dict[str, tuple[str, Callable[[Sheet], str]]] = {
    "findings": ("Findings", findings),
    "timeline": ("Time line", timeline),
    "latency": ("Latency", latency),
    "topics": ("Topics", topics),
    "groups": ("Groups", groups),
    "transactions": ("Transactions", transactions),
    "clients": ("Clients", clients),
    "cluster": ("Cluster", cluster),
    "security": ("Security", security),
    "graph": ("Graph", graph),
    "rest": ("Not judged", rest),
}
"""The title in the navigation, and the function that draws the section, by the id of the section."""


def report_page(report: CaptureReport, made: ReportOptions) -> str:
    """The page, with as many rows as its size allows."""
    most = MOST_ROWS
    while True:
        out = _page(report, made, most)
        if len(out.encode()) <= LARGEST or most <= _LEAST_ROWS:
            return out
        most //= 2


def _page(report: CaptureReport, made: ReportOptions, most: int) -> str:
    sheet = Sheet(report, made, most)
    drawn = {name: draw(sheet) for name, (_, draw) in _PANELS.items()}
    links = [(name, title) for name, (title, _) in _PANELS.items() if drawn[name]]
    kept = {name: more * most // MOST_ROWS for name, more in _MORE.items()}
    return page(
        f"kdissect: {verdict(sheet)}",
        [
            head(sheet, links),
            '<main id="content">',
            *drawn.values(),
            "</main>",
            f"<footer><p>Made by kdissect {text(__version__)}. It holds names, addresses, counts and times; "
            "no key and no value of a record, no password and no token.</p></footer>",
            embedded(report, kept, most),
        ],
        MARK,
    )
