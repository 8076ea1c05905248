"""What people type when they look for an action, and what each screen is for.

Nothing here imports Textual.
"""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, str] = {
    "findings": (
        "happened wrong why trouble problem incident cause alerts start overview timeline explain "
        "severity range window interval plot rca root"
    ),
    "exchanges": (
        "requests responses list packets all produce fetch api calls bookmarks wireshark mark star note "
        "comment ladder sequence diagram arrows columns follow tail live pause freeze hex bytes raw json "
        "tree clock utc zone zoom detail kcat"
    ),
    "connections": (
        "clients tcp hosts who sockets software disconnect reset retransmit network ip port tls "
        "ssl certificate churn"
    ),
    "topics": "lag lagging behind throughput partitions consumers offsets traffic committed skew hot rate",
    "groups": (
        "rebalance consumer members stuck generation assignment lag coordinator heartbeat session "
        "poll join left kicked"
    ),
    "latency": (
        "slow time quota throttle wait heatmap percentiles p99 response timeout delay performance "
        "histogram distribution chart graph plot"
    ),
    "problems": (
        "errors failed faults broken exceptions timeout denied refused acl authorization authentication "
        "login sasl retry missing fatal"
    ),
    "records": (
        "messages key value payload headers events poison duplicate tombstone schema avro corrupt "
        "protobuf decode decompress gzip unpacked hex editor"
    ),
    "capture": ("interfaces dropped file info summary loss gaps damage snaplen missing decode load open"),
    "facts": (
        "statistics tables everything share producers delivery quorum compression batches versions "
        "retries lost replication sql query table reports charts size chart graph stats idempotent "
        "histogram"
    ),
    "transactions": (
        "commit abort fenced hanging open exactly-once eos epoch zombie lso idempotent producer"
    ),
    "cluster": (
        "brokers leader isr replicas controller metadata changes settings config election "
        "under-replicated offline topology"
    ),
    "save": (
        "export write download dump store subset csv parquet ndjson pcap sql duckdb pandas report html print"
    ),
    "copy": "command clipboard kcat tshark send yank curl export json",
    "sort": "order largest slowest column biggest size top severity",
    "order": "sort column slowest largest by",
    "turn": "reverse descending ascending",
    "story": "why cause led followed history trace",
    "of-transaction": "transactional commit abort",
    "of-producer": "idempotent epoch fenced",
    "of-group": "consumer members rebalance",
    "of-client": "same producer consumer application",
    "of-offset": "consumed read fetched produced who lost record",
    "next-story": "other related",
    "ladder": "sequence diagram flow arrows",
    "filter": "where only query find search",
    "filter-off": "clear disable remove reset all unfiltered",
    "search": "find grep text bytes regex",
    "next-match": "find again search",
    "match-before": "find again search previous",
    "next-error": "failed problem fault",
    "error-before": "failed problem fault previous",
    "connection": "stream tcp follow this",
    "next-of-connection": "stream tcp conversation same following",
    "before-of-connection": "stream tcp conversation same previous",
    "jump-back": "history return undo",
    "jump-forward": "history redo",
    "only-this": "equals filter value",
    "not-this": "exclude without",
    "and-this": "narrow more",
    "or-this": "widen also",
    "filters-used": "history recent previous filter",
    "trouble": "only errors faults bad failed problems",
    "narrow": "only rows with filter list contains find",
    "follow": "tail live last",
    "pause": "freeze stop hold",
    "times": "clock utc timezone time zone relative",
    "columns": "fields show hide",
    "field-column": "apply as column field show hide add",
    "mark": "bookmark star flag",
    "mark-shown": "bookmark star flag select everything",
    "reference": "time zero relative since set",
    "only-marked": "bookmarks starred flagged",
    "differences": "diff compare two beside different marked",
    "mark-below": "range several bookmark next",
    "mark-above": "range several bookmark previous",
    "next-mark": "bookmark starred flagged",
    "color": "colorize coloring rules highlight paint",
    "comment": "note annotate",
    "bytes": "hex dump raw",
    "other-bytes": "decompressed unpacked raw",
    "other-side": "jump answer request response",
    "tab-after": "records timing tcp request response",
    "tab-before": "records timing tcp request response",
    "open": "enter show details",
    "fold": "collapse close",
    "unfold": "expand",
    "zoom": "maximize fullscreen pane full maximise",
    "more-list": "resize bigger layout wider taller pane zoom",
    "less-list": "resize smaller layout narrower pane",
    "open-all": "expand unfold everything subtree whole",
    "more-bytes": "resize wider hex layout",
    "less-bytes": "resize narrower hex tree layout",
    "wireshark": "packets open external",
    "range": "time window interval select zoom",
    "explain": "why details fix advice fullscreen full zoom severity",
    "next-rebalance": "rebalance stuck generation",
    "rebalance-before": "rebalance stuck generation previous",
    "group": "grouping by broker client topic group partition lag group-by groupby aggregate compare",
    "value-form": "json text hex decode",
    "editor": "vim open external",
    "out": "escape undo close",
    "out-or-end": "escape undo close exit quit",
    "page-before": "previous tab view",
    "page-after": "following tab view",
    "save-filter": "name keep store",
    "older": "history recent",
    "newer": "history recent",
    "diff-changes": "significant regression all overview",
    "diff-findings": "problems new gone wrong",
    "diff-apis": "requests latency slow errors rates",
    "diff-brokers": "nodes latency slow errors",
    "diff-clients": "applications versions software",
    "diff-topics": "throughput rates records",
    "diff-groups": "consumers rebalances lag",
    "before": "old first side exchanges",
    "after": "new second side exchanges",
    "help": "keys shortcuts manual docs documentation mouse about hotkeys bindings ?",
    "quit": "exit leave end",
    "suspend": "shell background",
}
"""By the name of an action; its own label and help are found too. Of several actions with a word, that comes
first whose first word it is."""

WORDS_OF_COMMANDS: Mapping[str, str] = {
    "save-exchanges": "pcap pcapng packets save write download dump subset wireshark",
    "go-to": "jump goto number packet frame time offset position seek line",
    "compare": "diff differences before after two baseline versus vs regression captures",
}
"""The same of commands that have no key, and no line in the table of actions."""

ABOUT: Mapping[str, tuple[str, ...]] = {
    "findings": (
        "What happened: a time line of the whole capture, and what is wrong, worst first.",
        "Enter shows the exchanges of a finding, x its whole text, i its story.",
        "← → go to the time line; r begins a range, Enter makes it a filter on all screens.",
        "C shows the cluster as it was at the finding under the cursor.",
        "With a filter, only the time line changes: · stands where there are other requests.",
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
        "Lag here and of clients is that of the last Fetch; :lag shows how far behind commits are.",
        "Below a topic are its partitions, below a partition its readers; Tab goes there.",
        "Enter shows the exchanges of a row, i its story.",
    ),
    "groups": (
        "Groups; below, rebalances, and members with what they own, their lag, and a time line.",
        "Last, Longest: first JoinGroup to last SyncGroup. Stood still: a partition without a Fetch.",
        "[ and ] go from rebalance to rebalance; Esc shows all of the time again.",
        "Enter shows the exchanges of the group, or of the rebalance that is shown.",
        "█ joins, ░ told to stop, ▒ not finished, † silent too long, ╳ left.",
    ),
    "latency": (
        "Response times by API; g: by broker, client, topic too.",
        "The bar and the words below it show where the time goes.",
        "█ broker worked, ┄ long poll, ▤ either, ▒ behind another request, ▓ quota, · network, ▸ ◂ transfer.",
        "At the bottom response times over time; Tab goes there, Enter shows the exchanges of a band.",
        "There, ← → choose a moment: then Enter shows what the band has in it.",
    ),
    "problems": (
        "Errors, faults and what is missing, the gravest first.",
        "Below: what the error under the cursor means, why it happens, and what to do.",
        "Enter shows the exchanges, i what led to the first of them: why it failed.",
    ),
    "records": (
        "Records of the shown exchanges; below, the whole record under the cursor.",
        "o shows who wrote it and who fetched it, = filters by the column under the cursor (key).",
        "Enter twice leads to its bytes. v shows values as JSON, text or hex. n searches them.",
    ),
    "capture": ("The capture itself: files, interfaces, and what was lost.",),
    "facts": ("Every statistic that has no screen of its own; Enter goes to its rows.",),
    "transactions": (
        "Each transaction: how and by whom it ended, what it wrote, how long readers waited.",
        "Below, each transactional id as a time line.",
        "Enter shows its exchanges, i its story.",
    ),
    "cluster": (
        "What changed in the cluster; below, its state at the time under the cursor.",
        "▶ is the exchange or finding from which you came.",
        "g: partitions, topics, settings. Enter shows the exchange with this information.",
    ),
    "story": (
        "What led to an exchange, and what followed, on all connections.",
        "t p g c o: the story of this line's transaction, producer, group, client, offset.",
        "n goes to the next story of the exchange at the top. L draws it as a ladder.",
        "Enter shows the exchange of a line.",
    ),
    "diff": (
        "What changed between two captures; below, all that was measured for the line under the cursor.",
        "1 lists what is significant, 2 findings, 3 to 7 APIs, brokers, clients, topics, groups.",
        "Enter shows the exchanges: b those BEFORE, a those AFTER; Esc or q there leads back here.",
        "s orders by the next column, x shows the whole text, w saves the list.",
    ),
    "ladder": (
        "Exchanges as arrows between clients and brokers: those of a story, marked ones, one client's, or "
        "all shown.",
        "L switches between these. Arrows name topics, groups, generations and the result.",
        "e goes to the next error, t changes the form of times. Enter shows the exchange, i its story.",
    ),
}
"""By the name of a screen: what it is for, in at most five lines."""

HINT = "? shows the keys of a screen, : finds commands as you type, Esc goes back"
"""Said when the screens are used for the first time."""
LEFT_SO = "As you left it the last time. --fresh starts as usual."
"""Said when they begin as they were left, and the first one shows something else than usual, …"""
LEFT_FILTERED = "As you left it the last time. Esc removes the filter, --fresh starts without it."
"""… or all show only what a filter does."""
