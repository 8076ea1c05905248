"""Words that people type when they search for an action, and the purpose of each screen.

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
    "bars": "throughput bandwidth rate traffic volume",
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
"""Search words by the name of an action. Its own label and help are searched too. If several actions have a
word, the action with that word first comes first."""

WORDS_OF_COMMANDS: Mapping[str, str] = {
    "save-exchanges": "pcap pcapng packets save write download dump subset wireshark",
    "go-to": "jump goto number packet frame time offset position seek line",
    "compare": "diff differences before after two baseline versus vs regression captures",
}
"""Search words of commands without a key and without a line in the table of actions."""

ABOUT: Mapping[str, tuple[str, ...]] = {
    "findings": (
        "What happened: a time line of all, and what is wrong, worst first.",
        "Enter shows its exchanges, x its whole text, i its story.",
        "← → go to the time line: r begins a range, Enter filters by it.",
        "C shows the cluster as it was then. / filters, Ctrl-F searches.",
        "F and ! show only some rows. s or O orders, w saves, y copies.",
    ),
    "exchanges": (
        "Every request and its response; below, one as a tree and as bytes.",
        "Enter goes to the fields, x shows bytes, e E go to errors and faults.",
        "/ filters, = only this value, ! not this. Ctrl-F searches, n goes on.",
        "i story, T transaction, C cluster then, f connection, L ladder.",
        "s or O orders, c columns, m marks, D compares, y copies, w saves.",
    ),
    "connections": (
        "Connections, or with g the clients that made them.",
        "Enter shows the exchanges of one, i its story.",
        "F shows only rows with a text, ! only trouble; Ctrl-F searches.",
        "s orders by the next column, O by a chosen one, S turns the order.",
        "w saves the table, y copies a row, a command or a query.",
    ),
    "topics": (
        "Topics; g: their partitions, the lag of groups, that of clients.",
        "Enter shows the exchanges of a row, i its story.",
        "Below are its partitions, or readers of a partition; Tab goes there.",
        "F and ! show only some rows. s or O orders, S turns the order.",
        "Ctrl-F searches, w saves the table, y copies a row or a command.",
    ),
    "groups": (
        "Groups; below, rebalances, members, what they own, and their lag.",
        "[ ] go from rebalance to rebalance; Esc shows all of the time again.",
        "Enter shows the exchanges of the group or of its rebalance, i a story.",
        "Tab goes to the lower pane; + gives it more room.",
        "F and ! show only some rows. s or O orders, w saves, y copies.",
    ),
    "latency": (
        "Response times by API; g: by broker, client, topic too.",
        "The bar and the words below it show where the time goes.",
        "Enter shows the exchanges. Tab goes to response times over time:",
        "there, ← → choose a moment, and Enter shows what the band has in it.",
        "F and ! show only some rows. s or O orders, w saves, y copies.",
    ),
    "problems": (
        "Errors, faults and what is missing, the gravest first.",
        "Enter shows the exchanges, i what led to the first of them.",
        "Below: what the error means, why it happens, and what to do.",
        "F shows only rows with a text; Ctrl-F searches, n goes on.",
        "s or O orders, S turns the order, w saves, y copies.",
    ),
    "records": (
        "Records of the shown exchanges; below, the whole one under the cursor.",
        "Enter twice leads to its bytes, v shows values as JSON, text or hex.",
        "o shows who wrote it and who fetched it, i the story of its exchange.",
        "= filters by the column under the cursor, ! excludes; / filters.",
        "Ctrl-F searches, n goes on. y copies, O opens an editor, t times.",
    ),
    "capture": (
        "The capture itself: files, interfaces, and what was lost.",
        "Enter shows the exchanges of a row, where it has any.",
        "s or O orders, S turns the order, F shows only rows with a text.",
        "w saves the table, y copies a row or a command.",
    ),
    "facts": (
        "Every statistic without a screen of its own; : finds one by name.",
        "Enter goes to its rows, and from a row to its exchanges; i its story.",
        "F shows only rows with a text, ! only trouble; Ctrl-F searches.",
        "s orders by the next column, O by a chosen one, S turns the order.",
        "w saves the table, y copies a row, a command or a query.",
    ),
    "transactions": (
        "Each transaction: its end, what it wrote, how long readers waited.",
        "Below, each transactional id as a time line; Tab goes there.",
        "Enter shows its exchanges, i its story.",
        "F shows only rows with a text, ! only trouble; Ctrl-F searches.",
        "s or O orders, S turns the order, w saves, y copies.",
    ),
    "cluster": (
        "What changed in the cluster; below, its state at that time.",
        "▶ is the exchange or finding from which you came.",
        "g: partitions, topics, settings. Tab goes to the lower pane.",
        "Enter shows the exchange with this information, i a story.",
        "F and ! show only some rows. s or O orders, w saves, y copies.",
    ),
    "story": (
        "What led to an exchange, and what followed, on all connections.",
        "t p g c o: story of its transaction, producer, group, client, offset.",
        "n goes to the next story of the exchange at the top.",
        "Enter shows the exchange of a line, L draws all as a ladder.",
        "F and ! show only some rows; w saves the story, y copies a row.",
    ),
    "diff": (
        "What changed between two captures; below, all of the chosen line.",
        "1 what is significant, 2 findings, 3 to 7 APIs, brokers, clients …",
        "Enter shows the exchanges: b those BEFORE, a those AFTER; q goes back.",
        "s orders by the next column, x shows the whole text, w saves.",
        "F shows only rows with a text, ! only trouble; Ctrl-F searches.",
    ),
    "ladder": (
        "Exchanges as arrows between clients and brokers.",
        "L draws others: marked ones, those of one client, or all shown.",
        "Arrows name topics, groups, generations and the result.",
        "e E go to errors. Enter shows the exchange, i its story.",
        "t changes the form of times.",
    ),
}
"""The purpose and the keys of each screen, in at most five lines of 80 columns."""

READ_SO: Mapping[str, tuple[str, ...]] = {
    "findings": ("With a filter, only the time line changes: · stands where there are other requests.",),
    "topics": ("Lag here and of clients is that of the last Fetch; :lag shows how far behind commits are.",),
    "groups": (
        "Last, Longest: first JoinGroup to last SyncGroup. Stood still: a partition without a Fetch.",
        "█ joins, ░ told to stop, ▒ not finished, † silent too long, ╳ left.",
    ),
    "latency": (
        "█ broker worked, ┄ long poll, ▤ either, ▒ behind another request, ▓ quota, · network, ▸ ◂ transfer.",
    ),
    "ladder": ("L goes through the exchanges of a story, marked ones, those of one client, and all shown.",),
}
"""How to read the figures and signs of each screen. It is shown below the keys."""

HINT = "? shows the keys of a screen, : finds commands as you type, Esc goes back"
"""The message when the screens are used for the first time."""
LEFT_SO = "As you left it the last time. --fresh starts as usual."
"""The message when they start in the last state, and the first screen differs from the default, …"""
LEFT_FILTERED = "As you left it the last time. Esc removes the filter, --fresh starts without it."
"""… or when all screens show only what a filter selects."""
