"""Bytes without a capture → trees: what ``kdissect bytes`` prints for one message, record set or record."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.embedded.decoded import read_struct
from kdissect.embedded.internal import annotate_internal
from kdissect.model import Fault
from kdissect.present.options import PLAIN, Options
from kdissect.present.questions import Object, optional_hex
from kdissect.present.raw import bare_message, data_structs, inner_faults, is_whole_request, whole_request
from kdissect.present.tree import fault_text, message_tree, struct_tree
from kdissect.protocol.cursor import Cursor
from kdissect.record.annotate import annotate_record_set


def message_tree_of(
    asked: Object, data: bytes, options: Options = PLAIN, dump: bool = False
) -> Iterator[str]:
    """The tree of a body, of a whole request, or of any other message class."""
    if asked["kind"] == "data":
        struct, structs = data_structs(asked)
        found = read_struct(struct.name, struct.version, Cursor(data, limits=options.limits), (), structs)
        for node in found.draw():
            yield from struct_tree(node, data, options, dump, struct.name)
        yield from _faults(found.faults)
        return
    limits = options.limits
    whole = is_whole_request(asked)
    message = whole_request(data, limits) if whole else bare_message(asked, data, limits)
    yield from message_tree(message, options, dump)
    yield from _faults((*message.faults, *inner_faults(message, options)))


def records_tree(_: Object, data: bytes, options: Options = PLAIN, dump: bool = False) -> Iterator[str]:
    """The tree of a record set."""
    for node in annotate_record_set(data, 0, options.limits):
        yield from struct_tree(node, data, options, dump)


def internal_tree(asked: Object, data: bytes, options: Options = PLAIN, dump: bool = False) -> Iterator[str]:
    """The tree of a record of an internal topic; ``data`` is its value."""
    key = optional_hex(asked, "key_hex")
    root = annotate_internal(asked["family"], key, data, asked.get("name"), options.limits)
    for part in root.children:
        yield from struct_tree(part, root.buffer or b"", options, dump)


def _faults(found: tuple[Fault, ...]) -> Iterator[str]:
    return map(fault_text, found)
