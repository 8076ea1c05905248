"""An exchange → the contents of the tree and of the bytes pane.

A :class:`TreeSpot` is a line of the tree: a text, and the bytes it was read from. Spots are made when their
parent is opened. If there are many, only the first :data:`PAGE` are made, and one line for the rest. When
that line is chosen, the next spots replace it (:meth:`Spot.unfold`). A worker makes them, because opening a
record set unpacks it. This module does not use the terminal.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from kdissect.exchange import Exchange
from kdissect.message import Message
from kdissect.model import Node
from kdissect.names import Names
from kdissect.present.body import context_of
from kdissect.present.branch import RECORD_TYPES, Branch, may_hide, message_branches
from kdissect.present.form import plural
from kdissect.present.options import Options
from kdissect.present.records import Address
from kdissect.present.sanitise import CUT, sanitise
from kdissect.present.secret_names import REDACTED
from kdissect.present.tree import fault_text, value_text
from kdissect.protocol.errors import errors
from kdissect.system.heap import uncollected

PAGE = 500
"""The number of lines that are shown at a time below one line."""

_SHORT = 60
"""The most characters of key and value, each, in the line of a record; its own lines have more."""

Ranges = Sequence[tuple[int, int]]


class TreeSpot(NamedTuple):
    """A line of the tree."""

    text: str
    """Sanitised."""
    type: str = ""
    data: bytes = b""
    """The bytes that its range refers to."""
    start: int = 0
    end: int = 0
    branch: Branch | None = None
    below: Sequence[Branch] = ()
    """The branches below a line that is no node itself."""
    message: Message | None = None
    is_fault: bool = False
    rest: tuple[Branch, int, int] | None = None
    """For a line that stands for others: the branch with these children, the first of them and the one after
    the last."""

    @property
    def can_open(self) -> bool:
        """Whether there are lines below it."""
        if self.branch is None:
            return bool(self.below)
        return self.branch.is_closed or bool(self.branch.node.children) or self.branch.node.fault is not None

    @property
    def is_hidden(self) -> bool:
        """Whether its value must not be shown."""
        return self.branch is not None and self.branch.is_hidden

    def open(self) -> list[TreeSpot]:
        """The lines below it."""
        if self.branch is None:
            return list(map(_spot, self.below))
        self.branch.open()
        node = self.branch.node
        faults = [] if node.fault is None else [TreeSpot(fault_text(node.fault), is_fault=True)]
        return [*faults, *_stretch(self.branch, 0, len(node.children))]

    def unfold(self, wanted: Node | None = None) -> list[TreeSpot]:
        """The spots that replace a line that stands for others, with lines for those that are still not
        shown.

        They are the next of the others, or those around ``wanted``.

        :param wanted: a node that must be among them.
        """
        assert self.rest is not None
        branch, first, last = self.rest
        start = first
        if wanted is not None:
            at = _index_of(branch.node.children, wanted)
            assert at is not None
            start = first + (at - first) // PAGE * PAGE
        before = [_gap(branch, first, start)] if start > first else []
        return [*before, *_stretch(branch, start, last)]

    def holds(self, node: Node) -> bool:
        """Whether it is the line of a node, or stands for that line."""
        if self.rest is not None:
            branch, first, last = self.rest
            at = _index_of(branch.node.children, node)
            return at is not None and first <= at < last
        if self.branch is None:
            return any(branch.node is node for branch in self.below)
        return self.branch.node is node


def _index_of(children: Sequence[Node], wanted: Node) -> int | None:
    """The index of a node among children, which are in the order of their bytes; None if it is not among
    them."""
    at = bisect_left(children, wanted.start, key=_start_of)
    while at < len(children) and children[at].start == wanted.start:
        if children[at] is wanted:
            return at
        at += 1
    return None


def _stretch(branch: Branch, first: int, last: int) -> list[TreeSpot]:
    """Lines for the children from ``first`` to before ``last``, up to the limit of lines at a time."""
    # One line more is shown instead of a line that says so.
    end = last if last - first <= PAGE + 1 else first + PAGE
    lines = [_spot(each) for each in branch.inside(first, end)]
    return [*lines, _gap(branch, end, last)] if end < last else lines


def _gap(branch: Branch, first: int, last: int) -> TreeSpot:
    children = branch.node.children
    data = branch.data if branch.node.buffer is None else branch.node.buffer
    text = f"{CUT} {last - first:,} more"
    return TreeSpot(text, "", data, children[first].start, children[last - 1].end, rest=(branch, first, last))


def _spot(branch: Branch) -> TreeSpot:
    node = branch.node
    text = sanitise(node.name, None)
    if node.type in RECORD_TYPES and node.children:
        text += f": {_record_text(branch)}"
    elif branch.is_hidden:
        text += f": {REDACTED}"
    elif branch.is_closed:
        text += f": {plural(node.end - node.start, 'byte')}"
    elif not node.children:
        text += f": {value_text(node, branch.topic_name)}"
    elif node.buffer is not None:
        text += f": unpacked, {plural(len(node.buffer), 'byte')}"
    return TreeSpot(text, sanitise(node.type), branch.data, node.start, node.end, branch)


def _record_text(branch: Branch) -> str:
    """Key and value of a record, shortened."""
    values = {each.node.name: each for each in branch.inside() if each.node.name in ("key", "value")}
    shown = [
        REDACTED if each.is_hidden else value_text(each.node) if not each.node.children else CUT
        for each in (values.get("key"), values.get("value"))
        if each is not None
    ]
    return " → ".join(text if len(text) <= _SHORT else text[:_SHORT] + CUT for text in shown)


class Detail:
    """One exchange as the panes show it."""

    def __init__(self, exchange: Exchange, options: Options, names: Names | None = None) -> None:
        """:param names: the names of topic ids; by default those that the exchange knows."""
        self.exchange = exchange
        self._topic_names = exchange.topic_names if names is None else names
        self._hidden: dict[int, tuple[bytes, Ranges]] = {}
        """Hidden ranges by the identity of the bytes. The bytes are kept, so that no others get their
        identity."""
        self._names: dict[int, str] = {}
        """The names of bytes, by their identity."""
        with uncollected():
            self.spots = list(self._spots(options))
            """The top lines."""

    def records(self) -> list[TreeSpot]:
        """A line for each batch, with its records below. It opens the record sets."""
        out = []
        for path in (path for spot in self.spots for path in _record_sets(spot.below)):
            topic, partition = path[-1].partition
            path[-1].open()
            for batch in path[-1].inside():
                if batch.node.name == "(length)":
                    continue
                around = contents(batch) or batch
                self._know(around)
                topic = self._topic_names.get(topic or "") or topic
                where = f"{sanitise(topic or '?')}-{'?' if partition is None else partition}"
                about = [plural(batch.node.end - batch.node.start, "byte")]
                about += [str(each.value) for each in batch.node.children if each.name == "attributes"]
                text = f"{where} {batch.node.name}: {', '.join(about)}"
                out.append(_spot(around)._replace(text=text, type=batch.node.type))
        return out

    def _spots(self, options: Options) -> Iterator[TreeSpot]:
        for fault in self.exchange.session_faults:
            yield TreeSpot(fault_text(fault), is_fault=True)
        for message in self.exchange.messages:
            context = context_of(self.exchange, message, options)
            below = message_branches(message, options, context, self._topic_names)
            payload = message.frame.payload
            hidden = list(hidden_ranges(below)) if may_hide(message, options) else []
            self._hidden[id(payload)] = payload, hidden
            self._names[id(payload)] = f"{message.kind}, {plural(len(payload), 'byte')}"
            text = f"{message.kind}: {plural(message.frame.size, 'byte')}"
            if message.is_cut:
                text += f", {len(payload)} captured"
            yield TreeSpot(text, "", payload, 0, len(payload), below=below, message=message)

    def open(self, spot: TreeSpot) -> list[TreeSpot]:
        """The lines below a spot."""
        lines = spot.open()
        if spot.branch is not None:
            self._know(spot.branch)
        return lines

    def _know(self, branch: Branch) -> None:
        """Note the bytes that were unpacked from a branch's own."""
        buffer = branch.node.buffer
        if buffer is not None and id(buffer) not in self._hidden:
            self._hidden[id(buffer)] = buffer, list(hidden_ranges(branch.inside()))
            self._names[id(buffer)] = f"{branch.node.name} unpacked, {plural(len(buffer), 'byte')}"

    def hidden(self, data: bytes) -> Ranges:
        """The ranges of these bytes that must not be shown. If the bytes are unknown, that is all of them."""
        known = self._hidden.get(id(data))
        return known[1] if known is not None else [(0, len(data))]

    def name_of(self, data: bytes) -> str:
        """The name of these bytes: a message, or records that were unpacked."""
        return self._names.get(id(data), "")

    def buffers(self) -> list[bytes]:
        """The bytes that can be shown: those of the messages, and those unpacked so far."""
        return [data for data, _ in list(self._hidden.values())]  # a worker may add some meanwhile

    def is_partly_hidden(self, spot: TreeSpot) -> bool:
        """Whether any of its bytes must not be shown."""
        return any(start < spot.end and spot.start < end for start, end in self.hidden(spot.data))

    def path_to(self, data: bytes, offset: int) -> list[Node]:
        """The nodes around a byte, the outermost first; record sets on the way are opened."""
        for spot in self.spots:
            for branch in spot.below:
                found = _descend(branch, data, offset)
                if found:
                    return self._nodes(found)
        return []

    def _nodes(self, path: list[Branch]) -> list[Node]:
        for branch in path:
            self._know(branch)
        return [branch.node for branch in path]

    def path_to_line(self, matches: Callable[[str], bool]) -> list[Node]:
        """The nodes around the first line whose name and value match, the outermost first. It opens record
        sets. Lines that exist only for display, such as ``(length)``, do not count."""
        for spot in self.spots:
            for branch in spot.below:
                found = _line(branch, matches)
                if found:
                    return self._nodes(found)
        return []

    def path_to_names(self, names: Sequence[str]) -> list[Node]:
        """The nodes around the field with these names, the outermost first. If an array has no such element,
        its last one is used. The innermost nodes are missing if there are no such fields, or if their record
        set was not opened.

        :param names: the kind of the message, then the names of the fields around it, then its own name.
        """
        there = [spot for spot in self.spots if spot.message is not None and spot.message.kind in names[:1]]
        nodes, out = [branch.node for spot in there for branch in spot.below], []
        for name in names[1:]:
            found = _named(nodes, name)
            if found is None:
                break
            out.append(found)
            nodes = found.children
        return out

    def path_to_error(self) -> list[Node]:
        """The nodes around the first error code of the worst severity in the response, the outermost first.
        If every code is 0, the nodes around the first fault."""
        below = [branch for spot in self.spots for branch in spot.below]
        grave = self.exchange.error_class
        answer = [
            each for spot in self.spots if spot.message is self.exchange.response for each in spot.below
        ]

        def is_it(branch: Branch) -> bool:
            code = error_of(branch.node)
            return code is not None and self.exchange.class_of(code) == grave

        path = _way_to(answer, is_it) if grave is not None else []
        return self._nodes(path or _way_to(below, lambda branch: branch.node.fault is not None))

    def meaning_of(self, spot: TreeSpot) -> str | None:
        """The meaning of an error code or a fault, in one line; None for other lines, and for a code that
        Kafka does not have."""
        if spot.is_fault:
            return spot.text
        if spot.branch is not None and spot.branch.node.fault is not None:
            return fault_text(spot.branch.node.fault)
        code = error_of(spot.branch.node) if spot.branch is not None else None
        error = errors().get(code) if code is not None else None
        if error is None:
            return None
        return f"{error.name}, {self.exchange.class_of(error.code)}: {error.meaning}"

    def path_to_record(self, address: Address) -> list[Node]:
        """The nodes around a record, the outermost first. The innermost nodes are missing if its batch has
        too many records to draw."""
        sets = (found for spot in self.spots for found in _record_sets(spot.below))
        for number, path in enumerate(sets):
            if number == address.record_set:
                return self._nodes([*path, *_way_in(path[-1], address)])
        return []


def index_of_name(name: str) -> int | None:
    """The index in the name of an array's element, such as ``[3]``; None for other names."""
    return int(name[1:-1]) if name[:1] == "[" and name[1:-1].isdecimal() else None


def _named(nodes: Sequence[Node], name: str) -> Node | None:
    """The node with a name. If an array has no such element, its last one."""
    at = index_of_name(name)
    if at is None:
        return next((node for node in nodes if node.name == name), None)
    first = next((at for at, node in enumerate(nodes) if index_of_name(node.name) is not None), len(nodes))
    elements = nodes[first : first + at + 1]
    return elements[-1] if elements else None


def error_of(node: Node) -> int | None:
    """The error code of a field; None if it is 0, or if the field is no error code."""
    if not node.name.lower().endswith("errorcode") or not isinstance(node.value, int):
        return None
    return node.value or None


def _way_to(branches: Iterable[Branch], is_it: Callable[[Branch], bool]) -> list[Branch]:
    """The path to the first matching branch among some branches and those below them. It opens no record
    sets."""
    for branch in branches:
        if is_it(branch):
            return [branch]
        if branch.node.children and not branch.is_record_set:
            found = _way_to(branch.inside(), is_it)
            if found:
                return [branch, *found]
    return []


_CONTENTS = {False: "records", True: "value"}
"""The name of the node that contains the records of a batch, by whether the batch is a message of magic 0 or
1."""


def _is_whole(node: Node) -> bool:
    """Whether it is a record that rows include."""
    return node.type in RECORD_TYPES and (node.fault is None or node.fault.kind != "bad-record")


def _way_in(record_set: Branch, address: Address) -> list[Branch]:
    """The path from a record set to one of its records."""
    record_set.open()
    batches = [each for each in record_set.inside() if each.node.type in ("RecordBatch", "Message")]
    if address.batch >= len(batches):
        return []
    batch = batches[address.batch]
    around = contents(batch)
    if around is None:
        return [batch]
    records = [each for each in around.inside() if _is_whole(each.node)]
    return [batch, around, *records[address.record : address.record + 1]]


def contents(batch: Branch) -> Branch | None:
    """The branch that contains the records of a batch; None for a message of magic 0 or 1 that is itself a
    record."""
    is_message = batch.node.type == "Message"
    found = next((each for each in batch.inside() if each.node.name == _CONTENTS[is_message]), None)
    return None if found is None or (is_message and found.node.buffer is None) else found


def _record_sets(branches: Iterable[Branch]) -> Iterator[list[Branch]]:
    """The paths to the record sets, in the order of the wire."""
    for branch in branches:
        if branch.is_record_set:
            yield [branch]
        elif branch.node.children:
            for path in _record_sets(branch.inside()):
                yield [branch, *path]


def _descend(branch: Branch, data: bytes, offset: int) -> list[Branch]:
    """The path from a branch to the byte at an offset of ``data``; empty if the branch does not contain
    it."""
    node = branch.node
    if branch.data is data:
        if not node.start <= offset < node.end:
            return []
        branch.open()
    inner = branch.data if node.buffer is None else node.buffer
    if inner is data:
        at = bisect_right(node.children, offset, key=_start_of) - 1
        found = _descend(branch.inside(at, at + 1)[0], data, offset) if at >= 0 else []
        return [branch, *found] if found or branch.data is data else []
    if branch.data is data:
        return [branch]
    for each in branch.inside():
        if each.node.children and (found := _descend(each, data, offset)):
            return [branch, *found]
    return []


def _line(branch: Branch, matches: Callable[[str], bool]) -> list[Branch]:
    """The path from a branch to the first line in it that matches; empty if none does."""
    if branch.node.name.startswith("("):
        return []
    branch.open()
    if matches(_spot(branch).text):
        return [branch]
    for each in branch.inside():
        found = _line(each, matches)
        if found:
            return [branch, *found]
    return []


def _start_of(node: Node) -> int:
    return node.start


def hidden_ranges(branches: Iterable[Branch]) -> Iterator[tuple[int, int]]:
    """The ranges of values that must not be shown, in order. If a packed part contains such a value, all of
    that part counts. It opens record sets that can contain secrets."""
    for branch in branches:
        if branch.may_hide:
            branch.open()
        node = branch.node
        if branch.is_hidden:
            yield node.start, node.end
        elif node.buffer is None:
            yield from hidden_ranges(branch.inside())
        elif next(hidden_ranges(branch.inside()), None) is not None:
            yield node.start, node.end
