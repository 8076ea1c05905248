"""The tree of a message says the same as its decoded values, and leaves no byte out."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.message import Message, Token
from kdissect.model import Node
from tests.lab import CLEAR_CASES, dissected_case
from tests.protocol.official import leaves, values_of


def uncovered(root: Node) -> str | None:
    """Where the leaves of a tree do not cover its bytes once, in order."""
    position = root.start
    for leaf in leaves(root):
        if leaf.start != position or leaf.end < leaf.start:
            return f"{leaf.name} begins at {leaf.start}, not {position}"
        position = leaf.end
    return None if position == root.end else f"the leaves end at {position} of {root.end}"


def messages(name: str) -> list[Message]:
    return [message for exchange in dissected_case(name).exchanges for message in exchange.messages]


@pytest.mark.parametrize("name", CLEAR_CASES)
def test_every_byte_of_every_message_is_in_one_leaf(name: str) -> None:
    for message in messages(name):
        root = message.annotate()
        where = f"{message.kind} {message.api_key} v{message.api_version} at {message.frame.offset}"
        assert (root.start, root.end) == (0, len(message.frame.payload)), where
        assert uncovered(root) is None, where


@pytest.mark.parametrize("name", CLEAR_CASES)
def test_the_tree_has_the_values_that_decoding_gives(name: str) -> None:
    for message in messages(name):
        body = message.decoded()
        broken = message.is_cut or any(fault.kind == "truncated" for fault in body.faults)
        if broken or isinstance(message, Token):
            continue
        want: dict[str, Any] = {"header": message.header()}
        if body.struct is not None:
            want["body"] = body.values
        nodes = {node.name: node for node in message.annotate().children}
        got = {part: values_of(nodes[part]) if nodes[part].children else {} for part in want}
        assert got == want
