"""What people type when they look for an action, and what each screen is for.

Nothing here imports Textual.
"""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, str] = {
    "findings": "happened wrong why trouble problem start overview timeline explain",
    "exchanges": "requests responses list packets all",
    "connections": "clients tcp hosts who sockets software",
    "topics": "lag behind throughput partitions consumers offsets traffic",
    "groups": "rebalance consumer members stuck generation assignment lag coordinator",
    "latency": "slow time quota throttle wait heatmap percentiles response",
    "problems": "errors failed faults broken exceptions",
    "records": "messages key value payload headers events",
    "capture": "interfaces dropped file info summary",
    "facts": "statistics tables everything share producers delivery quorum",
    "transactions": "commit abort fenced hanging exactly-once eos epoch",
    "cluster": "brokers leader isr replicas controller metadata changes settings config",
    "save": "export write download csv parquet ndjson pcap",
    "copy": "command clipboard kcat tshark send yank curl",
    "sort": "order largest slowest column",
    "order": "sort column slowest largest by",
    "turn": "reverse descending ascending",
    "story": "why cause led followed history trace",
    "of-transaction": "transactional commit abort",
    "of-group": "consumer members rebalance",
    "of-client": "same producer consumer application",
    "of-offset": "consumed read fetched produced who lost record",
    "next-story": "other related",
    "ladder": "sequence diagram flow arrows",
    "filter": "where only query find",
    "filter-off": "disable all unfiltered",
    "search": "find grep text bytes regex",
    "next-error": "failed problem fault",
    "error-before": "failed problem fault previous",
    "connection": "stream tcp follow this",
    "only-this": "equals filter value",
    "not-this": "exclude without",
    "and-this": "narrow more",
    "or-this": "widen also",
    "follow": "tail live last",
    "pause": "freeze stop hold",
    "times": "clock utc timezone relative",
    "columns": "fields show hide",
    "mark": "bookmark star flag",
    "comment": "note annotate",
    "bytes": "hex dump raw",
    "zoom": "maximize fullscreen pane",
    "more-list": "resize bigger layout",
    "less-list": "resize smaller layout",
    "more-bytes": "resize wider hex layout",
    "less-bytes": "resize narrower hex tree layout",
    "wireshark": "packets open external",
    "range": "time window interval select zoom",
    "explain": "why details fix advice",
    "next-rebalance": "rebalance stuck generation",
    "rebalance-before": "rebalance stuck generation previous",
    "group": "grouping by broker client topic group partition lag",
    "value-form": "json text hex decode",
    "editor": "vim open external",
    "out": "escape undo close",
    "before": "old first side exchanges",
    "after": "new second side exchanges",
    "help": "keys shortcuts manual documentation",
    "quit": "exit leave end",
    "suspend": "shell background",
}
"""By the name of an action; its own label and help are found too."""

ABOUT: Mapping[str, tuple[str, ...]] = {
    "findings": (
        "What happened: a time line of the whole capture, and what is wrong, worst first.",
        "Enter shows the exchanges of a finding, x all that is said of it, i its story.",
        "← → go to the time line; r begins a range, Enter makes it a filter on all screens.",
        "C shows the cluster as it was at the finding under the cursor.",
    ),
    "exchanges": (
        "Every request with its response; below, the one under the cursor as a tree and as bytes.",
        "/ filters, = only this value, e goes to the next error and its field.",
        "i tells what led to the exchange and what followed; T shows its transaction, C the cluster then.",
        "s orders by the next column, O lets you choose one; y copies, w saves what is shown.",
    ),
    "connections": (
        "Connections, or with g the clients that made them.",
        "Enter shows the exchanges of one, i its story.",
    ),
    "topics": (
        "Topics. g: their partitions, the lag of groups, the lag of clients.",
        "Enter shows the exchanges of a row, i its story.",
    ),
    "groups": (
        "Groups; below, rebalances, and members with what they own, their lag, and a time line.",
        "[ and ] go from rebalance to rebalance; Esc shows all of the time again.",
        "Enter shows the exchanges of the group, or of the rebalance that is shown.",
        "█ joins, ░ told to stop, ▒ not finished, † not heard of, ╳ left.",
    ),
    "latency": (
        "Response times by API; g: by broker, client, topic too.",
        "The bar, and the words below it, tell where the time goes.",
        "At the bottom response times over time; Tab goes there, Enter shows the exchanges of a band.",
    ),
    "problems": (
        "Errors, faults and what is missing, the gravest first.",
        "Enter shows the exchanges, i what led to the first of them: why it failed.",
    ),
    "records": (
        "Records of the exchanges that are shown; below, the one under the cursor whole.",
        "o tells who wrote it and who fetched it, = filters by the column under the cursor (key).",
        "Enter twice leads to its bytes. v shows values as JSON, text or hex.",
    ),
    "capture": ("The capture itself: files, interfaces, and what was lost.",),
    "facts": ("Every statistic that has no screen of its own; Enter goes to its rows.",),
    "transactions": (
        "Each transaction: how it ended, by whom, what it wrote, how long readers stood still.",
        "Below, each transactional id as a time line.",
        "Enter shows its exchanges, i its story.",
    ),
    "cluster": (
        "What changed in the cluster; below, how it was at the time under the cursor.",
        "▶ is the exchange or finding from which you came.",
        "g: partitions, topics, settings. Enter shows the exchange that told it.",
    ),
    "story": (
        "What led to an exchange, and what followed, on all connections.",
        "t p g c o: the story of this line's transaction, producer, group, client, offset.",
        "n goes to the next story of the exchange at the top. L draws it as a ladder.",
        "Enter shows the exchange of a line.",
    ),
    "diff": (
        "What changed between two captures; below, all that was measured of what is under the cursor.",
        "1 lists what is significant, 2 findings, 3 to 7 APIs, brokers, clients, topics, groups.",
        "Enter shows the exchanges: b those BEFORE, a those AFTER; ctrl+q there leads back here.",
        "s orders by the next column, x shows all that is said, w saves the list.",
    ),
    "ladder": (
        "Exchanges as arrows between clients and brokers: of a story, marked, of one client, or all shown.",
        "L goes from one of these to the next. Arrows name topics, groups, generations and what came of it.",
        "e goes to the next error, t writes times in another form. Enter shows the exchange, i its story.",
    ),
}
"""By the name of a screen: what it is for, in at most five lines."""

HINT = "? shows the keys of a screen, : finds commands by what you type, Esc takes back one thing"
"""Said when the screens are used for the first time."""
LEFT_SO = "As you left it the last time. Esc takes the filter away, --fresh begins anew."
"""Said when they begin as they were left."""
