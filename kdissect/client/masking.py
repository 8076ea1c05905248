"""The places of secrets in a message, for a capture file that must not contain them."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.message import Message
from kdissect.present.branch import Branch, may_hide, message_branches
from kdissect.present.options import PLAIN

MASK = b"*"


def secret_ranges(message: Message) -> Iterator[tuple[int, int]]:
    """Start and end, in the frame's payload, of every value that no output shows: passwords, tokens, keys.

    The lengths before the values are not secret: they are needed to read the rest. Values inside compressed
    records cannot be masked and stay as they are.
    """
    if may_hide(message, PLAIN):
        for branch in message_branches(message, PLAIN):
            yield from _inside(branch, message.frame.payload)


def _inside(branch: Branch, payload: bytes) -> Iterator[tuple[int, int]]:
    node = branch.node
    if branch.is_hidden and branch.data is payload:
        value = node.value
        if isinstance(value, str):
            value = value.encode("utf-8", "surrogateescape")
        length = len(value) if isinstance(value, bytes) else node.end - node.start
        yield node.end - length, node.end
    if node.buffer is None:
        for child in branch.inside():
            yield from _inside(child, payload)
