"""The screens, and the places on them where actions work: their names and titles.

Nothing here imports Textual: the command line uses these tables too.
"""

from __future__ import annotations

PAGES = {
    "exchanges": "Exchanges",
    "connections": "Connections",
    "topics": "Topics",
    "groups": "Groups",
    "latency": "Latency",
    "problems": "Errors",
    "records": "Records",
    "capture": "Capture",
    "findings": "Findings",
    "facts": "Facts",
    "transactions": "Transactions",
    "cluster": "Cluster",
}
"""The screens that have a key, in that order, and their titles."""

PAGE_CONTENTS = {
    "exchanges": "every request with its response",
    "connections": "who talks to whom, and how much",
    "topics": "what is written and read, lag",
    "groups": "members, what each owns, rebalances",
    "latency": "response times, their parts, over time",
    "problems": "what was refused or broken, and whose",
    "records": "every record written or read",
    "capture": "files, interfaces, what was not decoded",
    "findings": "what happened, why, and what to do",
    "facts": "every table that no other screen shows",
    "transactions": "each from its beginning to its end",
    "cluster": "brokers, leaders, settings at a time",
}
"""The contents of each screen."""

SHORT_TITLES = {"Connections": "Conns", "Transactions": "Txns"}
"""Titles for narrow terminals."""

DIFF_VIEWS = {
    "changes": "Changes",
    "findings": "Findings",
    "api": "APIs",
    "broker": "Brokers",
    "client": "Clients",
    "topic": "Topics",
    "group": "Groups",
}
"""The lists of ``kdissect diff``, and their titles."""

PAGE_KEYS = dict(zip(PAGES, (*"1234567890", "T", "C"), strict=True))
"""The default key of each screen: first numbers, then letters."""

PLACES = {
    "everywhere": "Everywhere",
    "page": "On every screen",
    **PAGES,
    "statistics": "On the screens of figures",
    "grouped": "On the screens of figures",
    "ladder": "Ladder",
    "story": "Story",
    "list": "In the list",
    "tree": "In the tree",
    "bytes": "In the bytes",
    "panes": "In tree and bytes",
    "text": "In the text",
    "time": "In the time line",
    "filter": "In the filter line",
    "start": "At the start",
    "diff": "Differences",
}
"""The places where actions work, and their headings in the help."""


PANES = ("list", "tree", "bytes", "text", "time", "panes", "ladder")
"""The places within a screen."""
