"""An exchange → what the tree and the bytes pane show of it.

A :class:`Spot` is a line of the tree: a text, and the bytes it was read from. Spots are made when the one
around them is opened; of an array with many elements they come in pages. A worker makes them, because
opening a record set unpacks it. Nothing here knows of the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kdissect.embedded.decoded import Context
from kdissect.exchange import Exchange
from kdissect.message import Message
from kdissect.model import Node
from kdissect.present.branch import Branch, message_branches
from kdissect.present.form import plural
from kdissect.present.options import Options
from kdissect.present.redact import REDACTED
from kdissect.present.sanitise import sanitise
from kdissect.present.tree import fault_text, value_text

PAGE = 500
"""Lines that are shown below one line; more are put into pages of so many."""

Ranges = Sequence[tuple[int, int]]


class Spot(NamedTuple):
    """A line of the tree."""

    text: str
    """Sanitised."""
    type: str = ""
    data: bytes = b""
    """The bytes that its range counts in."""
    start: int = 0
    end: int = 0
    branch: Branch | None = None
    below: Sequence[Branch] = ()
    """What a line that is no node itself has below it."""
    message: Message | None = None
    is_fault: bool = False

    @property
    def can_open(self) -> bool:
        """Whether there is anything below."""
        if self.branch is None:
            return bool(self.below)
        return self.branch.is_closed or bool(self.branch.node.children) or self.branch.node.fault is not None

    @property
    def is_hidden(self) -> bool:
        """Whether its value must not be shown."""
        return self.branch is not None and self.branch.is_hidden

    def open(self) -> list[Spot]:
        """The lines below it."""
        faults: list[Spot] = []
        below = self.below
        if self.branch is not None:
            self.branch.open()
            below = self.branch.inside()
            if self.branch.node.fault is not None:
                faults = [Spot(fault_text(self.branch.node.fault), is_fault=True)]
        if len(below) > PAGE and not _is_page(self):
            return [*faults, *(_page(below, at) for at in range(0, len(below), PAGE))]
        return [*faults, *map(_spot, below)]

    def holds(self, node: Node) -> bool:
        """Whether it is the line of a node, or a page with it."""
        if self.branch is not None:
            return self.branch.node is node
        return any(branch.node is node for branch in self.below)


def _is_page(spot: Spot) -> bool:
    return spot.branch is None and spot.message is None


def _page(below: Sequence[Branch], at: int) -> Spot:
    page = below[at : at + PAGE]
    first, last = page[0].node, page[-1].node
    text = f"{first.name} … {last.name}"
    return Spot(sanitise(text, None), "", page[0].data, first.start, last.end, below=page)


def _spot(branch: Branch) -> Spot:
    node = branch.node
    text = sanitise(node.name, None)
    if branch.is_hidden:
        text += f": {REDACTED}"
    elif branch.is_closed:
        text += f": {plural(node.end - node.start, 'byte')}"
    elif not node.children:
        text += f": {value_text(node)}"
    elif node.buffer is not None:
        text += f": unpacked, {plural(len(node.buffer), 'byte')}"
    return Spot(text, sanitise(node.type), branch.data, node.start, node.end, branch)


class Detail:
    """One exchange as the panes show it."""

    def __init__(self, exchange: Exchange, options: Options) -> None:
        self.exchange = exchange
        self._hidden: dict[int, tuple[bytes, Ranges]] = {}
        """By the identity of the bytes, which are kept so that it stays theirs."""
        self.spots = list(self._spots(options))
        """The topmost lines."""

    def _spots(self, options: Options) -> Iterator[Spot]:
        for fault in self.exchange.session_faults:
            yield Spot(fault_text(fault), is_fault=True)
        asked = self.exchange.request
        for message in self.exchange.messages:
            context = Context(asked.body() if asked is not None and message is not asked else None)
            below = message_branches(message, options, context)
            payload = message.frame.payload
            self._hidden[id(payload)] = payload, list(hidden_ranges(below))
            text = f"{message.kind}: {plural(message.frame.size, 'byte')}"
            if message.is_cut:
                text += f", {len(payload)} captured"
            yield Spot(text, "", payload, 0, len(payload), below=below, message=message)

    def open(self, spot: Spot) -> list[Spot]:
        """The lines below one."""
        lines = spot.open()
        node = spot.branch.node if spot.branch is not None else None
        if spot.branch is not None and node is not None and node.buffer is not None:
            self._hidden[id(node.buffer)] = node.buffer, list(hidden_ranges(spot.branch.inside()))
        return lines

    def hidden(self, data: bytes) -> Ranges:
        """The ranges of these bytes that must not be shown. Of bytes that it does not know, all."""
        known = self._hidden.get(id(data))
        return known[1] if known is not None else [(0, len(data))]

    def is_partly_hidden(self, spot: Spot) -> bool:
        """Whether any of its bytes must not be shown."""
        return any(start < spot.end and spot.start < end for start, end in self.hidden(spot.data))

    def path_to(self, data: bytes, offset: int) -> list[Node]:
        """The nodes around a byte, the outermost first; record sets on the way are opened."""
        for spot in self.spots:
            found = _descend(spot.below, data, offset)
            if found:
                return found
        return []


def _descend(branches: Iterable[Branch], data: bytes, offset: int) -> list[Node]:
    for branch in branches:
        node = branch.node
        if branch.data is data and not node.start <= offset < node.end:
            continue
        if branch.data is data:
            branch.open()
        is_elsewhere = node.buffer is not None and node.buffer is not data
        inside = [] if is_elsewhere and branch.data is data else _descend(branch.inside(), data, offset)
        if inside or branch.data is data:
            return [node, *inside]
    return []


def hidden_ranges(branches: Iterable[Branch]) -> Iterator[tuple[int, int]]:
    """Where the values stand that must not be shown, in order. What is packed counts as a whole if any of
    it is such a value. Record sets that can hold secrets are opened for it."""
    for branch in branches:
        if branch.holds_metadata:
            branch.open()
        node = branch.node
        if branch.is_hidden:
            yield node.start, node.end
        elif node.buffer is None:
            yield from hidden_ranges(branch.inside())
        elif next(hidden_ranges(branch.inside()), None) is not None:
            yield node.start, node.end
