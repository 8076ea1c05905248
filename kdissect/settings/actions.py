"""Every action of the screens, once: its name, its keys, its words, and where it works.

The bindings of pages and panes (:mod:`kdissect.tui.keys`), the footer, the help and the command palette come
from this table. So do ``kdissect fields actions`` and the names that ``[keymap]`` in the configuration may
use. An action is the method ``action_…`` of the page or pane. A new one needs a line here and that method.

Names say what an action does, not where: ``sort`` is the same word, and by default the same key, in every
list. Nothing here imports Textual: the command line uses the table too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kdissect.settings.places import DIFF_VIEWS, PAGE_CONTENTS, PAGE_KEYS, PAGES


class Action(NamedTuple):
    """An action: a line of the table."""

    id: str
    """The name in ``[keymap]``."""
    where: str
    """One or more of :data:`~kdissect.settings.places.PLACES`, separated by blanks."""
    keys: str
    """The default keys, separated by blanks, in the form of :func:`kdissect.settings.key_names.key_name`."""
    label: str
    """The word in the footer."""
    help: str
    """What it does."""
    call: str
    """The method, without ``action_``, with its arguments."""
    in_footer: bool = False


_A = Action

ACTIONS: tuple[Action, ...] = (
    # -- everywhere
    _A(
        "palette",
        "everywhere",
        ": ctrl+p",
        "Commands",
        "all commands; :43 goes to No. 43 or packet 43, :2.5s or :08:44:35 to that time",
        "command_palette",
    ),
    _A("help", "everywhere", "? f1", "Help", "the keys of what has the focus", "help", True),
    _A("quit", "everywhere", "ctrl+q", "Quit", "end kdissect without a question", "quit"),
    _A("suspend", "everywhere", "ctrl+z", "Suspend", "back to the shell; fg comes back", "suspend_process"),
    # -- without a capture
    _A("up", "start", "up", "Above", "put the path or interface above into the field", "choose_path(-1)"),
    _A(
        "down",
        "start",
        "down",
        "Below",
        "put the path or interface below into the field",
        "choose_path(1)",
        True,
    ),
    _A(
        "take",
        "start",
        "tab",
        "Complete",
        "complete the path; in a folder list its captures",
        "complete",
        True,
    ),
    # -- every screen
    *(
        _A(
            name,
            "page",
            PAGE_KEYS[name],
            title,
            f"show {title}: {PAGE_CONTENTS[name]}",
            f"app.page('{name}')",
        )
        for name, title in PAGES.items()
    ),
    _A("page-before", "page", "[", "Previous screen", "show the previous screen", "app.turn_page(-1)"),
    _A("page-after", "page", "]", "Next screen", "show the next screen", "app.turn_page(1)"),
    _A("out", "page", "escape", "Back", "back to where you came from", "out"),
    _A(
        "out-or-end",
        "page",
        "q",
        "Back",
        "back to where you came from; at the first list, end",
        "out_or_end",
        True,
    ),
    _A("filter", "page", "/", "Filter", "write a filter", "filter", True),
    _A("filters-used", "page", "ctrl+r", "Filters used", "choose a filter that was used", "filters_used"),
    _A("filter-off", "page", "ctrl+t", "Filter off", "turn the filter off, or on again", "filter_off"),
    _A("pane-after", "page", "tab", "Next pane", "go to the next pane", "app.focus_next"),
    _A("pane-before", "page", "shift+tab", "Previous pane", "go to the previous pane", "app.focus_previous"),
    # -- an exchange under the cursor
    _A("mark", "exchanges", "m", "Mark", "mark the exchange, or remove its mark", "mark", True),
    _A(
        "only-marked",
        "exchanges",
        "M",
        "Only marked",
        "show only the marked exchanges; again for all",
        "only_marked",
    ),
    _A(
        "mark-shown",
        "exchanges",
        "A",
        "Mark all",
        "mark all exchanges that are shown; again: remove their marks",
        "mark_shown",
    ),
    _A(
        "color",
        "exchanges",
        "H",
        "Colour",
        "colour all rows with the value of this field or column",
        "color",
    ),
    _A(
        "mark-below",
        "exchanges",
        "shift+down",
        "Mark down",
        "mark this exchange and the one below",
        "mark_on(1)",
    ),
    _A(
        "mark-above",
        "exchanges",
        "shift+up",
        "Mark up",
        "mark this exchange and the one above",
        "mark_on(-1)",
    ),
    _A("next-mark", "exchanges", "'", "Next mark", "go to the next marked exchange", "next_mark"),
    _A("differences", "exchanges", "D", "Differences", "how the two marked exchanges differ", "differences"),
    _A("comment", "exchanges", ";", "Comment", "write a comment; pcapng files keep it", "comment"),
    _A(
        "copy",
        "exchanges",
        "y",
        "Copy",
        "copy value, filter, JSON, hex, or a command that reads or sends it",
        "copy",
    ),
    _A("save", "exchanges", "w", "Save", "save shown, marked or this one to a file", "save", True),
    _A("wireshark", "exchanges", "W", "Wireshark", "open Wireshark at this exchange", "wireshark"),
    _A("columns", "exchanges", "c", "Columns", "choose the columns of the list", "columns"),
    _A(
        "field-column",
        "exchanges",
        "a",
        "As column",
        "make this field of the tree a column of the list, or remove it",
        "field_column",
    ),
    # -- the list of exchanges
    _A(
        "next-error",
        "exchanges",
        "e",
        "Next error",
        "go to the next exchange with an error or fault",
        "next_bad(1)",
        True,
    ),
    _A(
        "error-before",
        "exchanges",
        "E",
        "Previous error",
        "go to the previous exchange with an error or fault",
        "next_bad(-1)",
    ),
    _A("sort", "exchanges statistics diff", "s", "Sort", "order by the next column", "sort"),
    _A("order", "exchanges statistics diff", "O", "Order by", "choose the column to order by", "order"),
    _A("turn", "exchanges statistics diff", "S", "Turn", "reverse the order", "turn"),
    _A("connection", "exchanges", "f", "Connection", "only this connection", "connection"),
    _A(
        "next-of-connection",
        "exchanges",
        "}",
        "Next of connection",
        "go to the next exchange of this connection",
        "next_of_connection(1)",
    ),
    _A(
        "before-of-connection",
        "exchanges",
        "{",
        "Previous of connection",
        "go to the previous exchange of this connection",
        "next_of_connection(-1)",
    ),
    _A(
        "jump-back",
        "exchanges",
        "alt+left ctrl+o",
        "Jump back",
        "back to where the last jump led away from",
        "jump(-1)",
    ),
    _A("jump-forward", "exchanges", "alt+right", "Jump forward", "forward again after that", "jump(1)"),
    _A("follow", "exchanges", "F", "Follow", "stay at the last exchange", "follow"),
    _A(
        "times",
        "exchanges",
        "t",
        "Times",
        "times: relative, of day, delta, UTC, since the epoch",
        "times",
    ),
    _A(
        "reference",
        "exchanges",
        "R",
        "Count from here",
        "times count from this exchange; again: from the start",
        "reference",
    ),
    _A(
        "bytes",
        "exchanges",
        "x",
        "Bytes",
        "bytes on and off; on a narrow screen tree or bytes",
        "bytes",
        True,
    ),
    _A("zoom", "exchanges", "\\", "Zoom", "show only this pane; again for all", "zoom"),
    _A("more-list", "exchanges", "+", "More list", "more room for the list", "room(1)"),
    _A("less-list", "exchanges", "- _", "Less list", "less room for the list", "room(-1)"),
    _A("more-bytes", "exchanges", "<", "More bytes", "more room for the bytes", "bytes_room(1)"),
    _A(
        "less-bytes",
        "exchanges",
        ">",
        "Less bytes",
        "less room for the bytes, more for the tree",
        "bytes_room(-1)",
    ),
    _A("more-list", "statistics records diff", "+", "More room", "more room for this pane", "room(1)"),
    _A("less-list", "statistics records diff", "- _", "Less room", "less room for this pane", "room(-1)"),
    _A("pause", "exchanges", "space", "Pause", "stop updating the list; decoding goes on", "pause"),
    _A(
        "other-side",
        "exchanges",
        "o",
        "Other side",
        "from the request to the response, and back",
        "other_side",
    ),
    _A(
        "only-this",
        "exchanges records",
        "=",
        "Only this",
        "filter by the field or column: only this value",
        "by('only')",
    ),
    _A(
        "not-this",
        "exchanges records",
        "!",
        "Not this",
        "filter by the field or column: not this value",
        "by('not')",
    ),
    _A(
        "and-this",
        "exchanges records",
        "&",
        "And this",
        "filter also by this value: both must hold",
        "by('and')",
    ),
    _A(
        "or-this", "exchanges records", "|", "Or this", "filter also by this value: one must hold", "by('or')"
    ),
    _A("search", "exchanges", "ctrl+f", "Search", "search: text, hex 'de ad', regex '/…/'", "search"),
    _A("next-match", "exchanges", "n", "Next match", "next exchange with a match", "match(1)"),
    _A("match-before", "exchanges", "N", "Previous match", "previous exchange with a match", "match(-1)"),
    # -- the filter line
    _A("take", "filter", "tab", "Take", "accept the suggestion", "want('take')"),
    _A("older", "filter", "up", "Older", "the previous filter; the suggestion above", "want('older')"),
    _A("newer", "filter", "down", "Newer", "the next filter; the suggestion below", "want('newer')"),
    _A("save-filter", "filter", "ctrl+s", "Save", "save it under a name", "want('save')"),
    _A("leave", "filter", "escape", "Leave", "leave the filter as it was", "want('leave')"),
    # -- records
    _A(
        "value-form",
        "records",
        "v",
        "Value as",
        "show key and value as JSON, text, hex, or decoded",
        "form",
        True,
    ),
    _A(
        "editor", "records", "O", "Editor", "open the value in the editor of VISUAL or EDITOR", "editor", True
    ),
    _A("copy", "records", "y", "Copy", "copy value, key, headers, record as JSON, hex", "copy", True),
    _A("times", "records", "t", "Times", "times: UTC, of day, since the epoch", "times"),
    _A(
        "search",
        "records",
        "ctrl+f",
        "Search",
        "search keys, values and headers: text, hex, /regex/",
        "search",
    ),
    _A("next-match", "records", "n", "Next match", "next record with a match", "match(1)"),
    _A("match-before", "records", "N", "Previous match", "previous record with a match", "match(-1)"),
    # -- the ladder
    _A(
        "ladder",
        "exchanges records ladder story",
        "L",
        "Ladder",
        "ladder: story, marks, client; again: all shown",
        "app.ladder",
    ),
    _A(
        "story",
        "exchanges records ladder statistics",
        "i",
        "Story",
        "what led to this, and what followed",
        "app.story",
        True,
    ),
    _A("story", "story", "i", "Story", "the story of this line's exchange", "app.story"),
    _A("save", "story", "w", "Save", "save the story: CSV, NDJSON, Parquet", "save"),
    _A(
        "of-transaction",
        "story",
        "t",
        "Transaction",
        "story of this line's transactional id",
        "tell('transactional id')",
        True,
    ),
    _A("of-producer", "story", "p", "Producer", "story of this line's producer", "tell('producer')", True),
    _A("of-group", "story", "g", "Group", "story of this line's group", "tell('group')", True),
    _A("of-client", "story", "c", "Client", "story of this line's client", "tell('client')", True),
    _A(
        "of-offset",
        "story records",
        "o",
        "Fetched by",
        "who wrote this offset, who fetched it, who is past it",
        "tell('offset')",
        True,
    ),
    _A(
        "next-story",
        "story",
        "n",
        "Next story",
        "the next story of the exchange at the top",
        "next_story",
        True,
    ),
    _A("next-error", "ladder", "e", "Next error", "next response with an error", "next_bad(1)", True),
    _A("error-before", "ladder", "E", "Previous error", "previous response with an error", "next_bad(-1)"),
    _A("times", "ladder", "t", "Times", "times: relative, of day", "times"),
    # -- tree and bytes
    _A("tab-after", "panes", ".", "Next tab", "request, response, records, timing, TCP", "turn_tab(1)"),
    _A("tab-before", "panes", ",", "Previous tab", "the previous tab", "turn_tab(-1)"),
    _A(
        "open-all",
        "panes",
        "*",
        "Open all",
        "open the line with everything below it; again: close it",
        "open_all",
    ),
    _A(
        "other-bytes",
        "panes",
        "b",
        "Other bytes",
        "bytes of the messages, and unpacked records",
        "next_bytes",
    ),
    # -- a text
    _A("up", "text", "up k", "Up", "a line up", "scroll_up"),
    _A("down", "text", "down j", "Down", "a line down", "scroll_down"),
    _A("page-up", "text", "pageup", "Page up", "a screen of lines up", "page_up"),
    _A("page-down", "text", "pagedown", "Page down", "a screen of lines down", "page_down"),
    _A("first", "text", "g home", "First", "first line", "scroll_home"),
    _A("last", "text", "G end", "Last", "last line", "scroll_end"),
    _A("open", "text", "enter", "Into", "show its exchanges; of a record, its bytes", "choose"),
    # -- the time line
    _A("earlier", "time", "left h", "Earlier", "a moment earlier", "move(-1)", True),
    _A("later", "time", "right l", "Later", "a moment later", "move(1)", True),
    _A("range-earlier", "time", "shift+left", "Range earlier", "begin a range and go earlier", "stretch(-1)"),
    _A("range-later", "time", "shift+right", "Range later", "begin a range and go later", "stretch(1)"),
    _A("range", "time", "r", "Range", "begin a range here; again: none", "begin", True),
    _A("open", "time", "enter", "Only this", "show only this time, on all screens", "choose", True),
    _A("page-up", "time", "pageup", "Much earlier", "ten moments earlier", "page(-1)"),
    _A("page-down", "time", "pagedown", "Much later", "ten moments later", "page(1)"),
    _A("first", "time", "g home", "Start", "the start of the capture", "to(0)"),
    _A("last", "time", "G end", "End", "the end of the capture", "to(-1)"),
    # -- findings
    _A(
        "bars",
        "findings",
        "B",
        "Bytes",
        "on a low screen: bytes a second in the time line instead of requests; again: requests",
        "bars",
    ),
    _A(
        "explain",
        "findings diff",
        "x",
        "All of it",
        "show the whole text; again: the list",
        "explain",
        True,
    ),
    # -- groups
    _A(
        "rebalance-before",
        "groups",
        "<",
        "Previous rebalance",
        "the previous rebalance",
        "rebalance(-1)",
    ),
    _A(
        "next-rebalance",
        "groups",
        ">",
        "Next rebalance",
        "the next rebalance; Esc: the whole time",
        "rebalance(1)",
    ),
    _A("page-before", "groups", "[", "Previous rebalance", "the previous rebalance", "rebalance(-1)"),
    _A(
        "page-after",
        "groups",
        "]",
        "Next rebalance",
        "the next rebalance; Esc: the whole time",
        "rebalance(1)",
        True,
    ),
    # -- figures
    _A("group", "grouped", "g", "Group", "group the figures in another way", "group", True),
    _A("save", "statistics diff", "w", "Save", "save the table: CSV, NDJSON, Parquet", "save", True),
    _A("narrow", "statistics diff", "F", "Only rows", "only rows with a text, or without (!text)", "narrow"),
    _A("trouble", "statistics diff", "!", "Only trouble", "only rows with trouble; again: all", "trouble"),
    _A("search", "statistics diff", "ctrl+f", "Search", "search for a row by a part of any column", "search"),
    _A("next-match", "statistics diff", "n", "Next match", "next row with what was searched for", "match(1)"),
    _A(
        "match-before",
        "statistics diff",
        "N",
        "Previous match",
        "previous row with what was searched for",
        "match(-1)",
    ),
    _A("copy", "statistics diff", "y", "Copy", "copy the row, the list, its filter or a command", "copy"),
    # -- differences of two captures
    *(
        _A(f"diff-{title.lower()}", "diff", str(key), title, f"show {title}", f"view('{name}')")
        for key, (name, title) in enumerate(DIFF_VIEWS.items(), 1)
    ),
    _A("page-before", "diff", "[", "Previous list", "show the previous list", "turn_view(-1)"),
    _A("page-after", "diff", "]", "Next list", "show the next list", "turn_view(1)"),
    _A("before", "diff", "b", "Before", "its exchanges in the capture BEFORE", "side(0)", True),
    _A("after", "diff", "a", "After", "its exchanges in the capture AFTER", "side(1)", True),
    _A("pane-after", "diff", "tab", "Next pane", "go to the next pane", "app.focus_next"),
    _A("pane-before", "diff", "shift+tab", "Previous pane", "go to the previous pane", "app.focus_previous"),
    _A("out", "diff", "escape", "Back", "back to the list of changes", "out"),
    _A(
        "out-or-end",
        "diff",
        "q",
        "Quit",
        "back to the list of changes; there, end kdissect",
        "out_or_end",
        True,
    ),
    # -- a list
    _A("up", "list", "up k", "Up", "previous row", "move(-1)"),
    _A("down", "list", "down j", "Down", "next row", "move(1)"),
    _A("page-up", "list", "pageup", "Page up", "a screen of rows up", "page(-1)"),
    _A("page-down", "list", "pagedown", "Page down", "a screen of rows down", "page(1)"),
    _A("first", "list", "g home", "First", "first row", "first"),
    _A("last", "list", "G end", "Last", "last row", "last"),
    _A("column-before", "list", "left h", "Previous column", "to the column on the left", "column(-1)"),
    _A("column-after", "list", "right l", "Next column", "to the column on the right", "column(1)"),
    _A("open", "list", "enter", "Open", "open what the row shows", "choose", True),
    # -- the tree
    _A("up", "tree", "up k", "Up", "previous line", "cursor_up"),
    _A("down", "tree", "down j", "Down", "next line", "cursor_down"),
    _A("page-up", "tree", "pageup", "Page up", "a screen of lines up", "page_up"),
    _A("page-down", "tree", "pagedown", "Page down", "a screen of lines down", "page_down"),
    _A("first", "tree", "g home", "First", "first line", "scroll_home"),
    _A("last", "tree", "G end", "Last", "last line", "scroll_end"),
    _A("unfold", "tree", "right l", "Open", "open the line", "open"),
    _A("fold", "tree", "left h", "Shut", "close the line, or go to the line around it", "shut"),
    _A("open", "tree", "enter", "Open", "open or close the line", "select_cursor"),
    # -- the bytes
    _A("fold", "bytes", "left h", "Previous byte", "previous byte", "move(-1)"),
    _A("unfold", "bytes", "right l", "Byte after", "next byte", "move(1)"),
    _A("up", "bytes", "up k", "Previous line", "previous line", "move_lines(-1)"),
    _A("down", "bytes", "down j", "Line after", "next line", "move_lines(1)"),
    _A("page-up", "bytes", "pageup", "Page up", "a screen of lines up", "move_pages(-1)"),
    _A("page-down", "bytes", "pagedown", "Page down", "a screen of lines down", "move_pages(1)"),
    _A("first", "bytes", "g home", "First", "first byte", "to(0)"),
    _A("last", "bytes", "G end", "Last", "last byte", "to(-1)"),
)

HEAT_HELP = {
    "column-before": "a moment earlier; from the whole band, to its last one",
    "column-after": "a moment later; from the whole band, to its first one",
    "open": "show the exchanges of the band, or of the moment in it",
}
"""The effects of a list's keys in the heat map, by the names of their actions."""

IDS = tuple(dict.fromkeys(action.id for action in ACTIONS))
"""The names, each once."""


def actions_of(where: str) -> Iterator[Action]:
    """The actions that work in one of the :data:`~kdissect.settings.places.PLACES`."""
    return (action for action in ACTIONS if where in action.where.split())
