"""The lines that the user opened and closed in the tree of fields, and the selected line.

The tree of another exchange of the same API opens the same lines. They are found by the names of the fields
around them. Only the user's actions are kept. A line that is open at first, or that a search opened, does not
show what the user wants to see. There are limits for the kept lines, and for the
lines that are drawn for them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from textual.widgets.tree import TreeNode

from kdissect.present.detail import Detail, TreeSpot, index_of_name
from kdissect.tui.widgets.field_tree import fill

MOST_APIS = 64
"""The APIs with kept lines. Those that were left longest ago are forgotten."""
MOST_KEPT = 400
"""The most kept lines of an API."""
MOST_LOOKED_AT = 5_000
"""The most lines of a tree that are searched, the outermost first."""
MOST_DRAWN = 400
"""The most lines that are drawn to open lines again. With more of them a key would have to wait."""

Path = tuple[str, ...]
"""The names of the fields around a line, and its own name; the kind of the message comes first."""
_Line = TreeNode[TreeSpot]


class _KeptLines:
    """The kept lines of an API."""

    def __init__(self) -> None:
        self.lines: dict[Path, bool] = {}
        """For each line, whether the user opened it (or closed it)."""
        self.cursor: Path = ()


class KeptOpen:
    """The kept lines of each API, and the lines of the present tree that the user did not open."""

    def __init__(self) -> None:
        self._apis: dict[str | None, _KeptLines] = {}
        """The kept lines; the API that was left last is the last."""
        self._usual: set[int] = set()
        """The lines that are open at first."""
        self._on_the_way: set[int] = set()
        """The lines that were opened for a line below them."""

    def begin(self) -> None:
        """Prepare for another tree."""
        self._usual.clear()
        self._on_the_way.clear()

    def open_usual(self, node: _Line) -> None:
        """Open a line that is open at first."""
        self._usual.add(node.id)
        node.expand()

    def open_on_the_way(self, node: _Line) -> None:
        """Open a line for a line below it."""
        if not node.is_expanded:
            self._on_the_way.add(node.id)
        node.expand()

    def note_closed(self, node: _Line) -> None:
        """Note that a line was closed: if it is opened again, the user does it."""
        self._on_the_way.discard(node.id)

    def keep(self, api: str | None, root: _Line, cursor: _Line | None) -> None:
        """Keep the user's actions in the tree of an exchange."""
        kept = self._apis.pop(api, None) or _KeptLines()
        self._apis[api] = kept
        if len(self._apis) > MOST_APIS:
            del self._apis[next(iter(self._apis))]
        if cursor is not None:
            kept.cursor = path_of(cursor)
        for path, node in _lines(root):
            is_usual = node.id in self._usual
            if node.is_expanded == is_usual or (node.is_expanded and node.id in self._on_the_way):
                kept.lines.pop(path, None)
            elif path in kept.lines or len(kept.lines) < MOST_KEPT:
                kept.lines[path] = node.is_expanded

    def cursor(self, api: str | None) -> Path:
        """The selected line; empty if none was."""
        kept = self._apis.get(api)
        return () if kept is None else kept.cursor

    def open_again(self, detail: Detail, root: _Line, around: _Line | None = None) -> None:
        """Open and close the lines of a tree as the user did before. Record sets unpack their lines later.

        :param around: only the lines below this one.
        """
        kept, room = self._apis.get(detail.exchange.api), MOST_DRAWN
        if kept is None or not kept.lines:
            return
        start = () if around is None else path_of(around)
        inside: dict[int, dict[str, _Line]] = {}
        for path, is_open in sorted(kept.lines.items(), key=lambda line: len(line[0])):
            if path[: len(start)] != start or len(path) == len(start):
                continue
            node, is_exact = _find(root, path, inside)
            if node is None or (not is_exact and path_of(node) in kept.lines):
                continue
            if not is_open:
                node.collapse()
            elif not node.is_expanded and node.data is not None:
                branch = node.data.branch
                if not node.children and branch is not None and not branch.is_closed:
                    if room <= 0:
                        continue
                    fill(node, detail.open(node.data))
                    room -= len(node.children)
                if is_exact:
                    node.expand()
                else:
                    self.open_on_the_way(node)


def path_of(node: _Line) -> Path:
    """The names of the fields around a line. A line that is no field has the path of the line around it."""
    names = []
    here: _Line | None = node
    while here is not None and not here.is_root:
        names.append(_name_of(here))
        here = here.parent
    return tuple(name for name in reversed(names) if name)


def _name_of(node: _Line) -> str:
    spot = node.data
    if spot is None:
        return ""
    if spot.branch is not None:
        return spot.branch.node.name
    return "" if spot.message is None else spot.message.kind


def _lines(root: _Line) -> Iterator[tuple[Path, _Line]]:
    """The lines that can be opened, and their paths; the outermost first."""
    waiting: deque[tuple[Path, _Line]] = deque([((), root)])
    looked_at = 0
    while waiting and looked_at < MOST_LOOKED_AT:
        around, parent = waiting.popleft()
        looked_at += len(parent.children)
        for node in parent.children:
            name = _name_of(node) if node.allow_expand else ""
            if name:
                path = (*around, name)
                yield path, node
                if node.children:
                    waiting.append((path, node))


def _find(root: _Line, path: Path, inside: dict[int, dict[str, _Line]]) -> tuple[_Line | None, bool]:
    """The line with a path, and whether it is exactly that one: in a shorter array it is the last element.

    :param inside: the lines below lines by their names, as far as they were looked up.
    """
    here, is_exact = root, True
    for name in path:
        below = inside.get(here.id)
        if not below:
            below = inside[here.id] = {_name_of(node): node for node in here.children}
        found = below.get(name)
        if found is None and index_of_name(name) is not None and "" not in below:  # "": not all are shown
            last = next((each for each in reversed(below) if index_of_name(each) is not None), None)
            found, is_exact = None if last is None else below[last], False
        if found is None:
            return None, False
        here = found
    return here, is_exact
