"""What of a line of the tree can be copied: its value, its path, the filter that finds it, its message, its
bytes; and the commands with which kcat and tshark show it.

Secrets are copied as they are shown: not at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from kdissect.present.body import context_of, message_object
from kdissect.present.options import Options
from kdissect.present.secret_names import REDACTED
from kdissect.protocol.json_form import base64_text, dumps
from kdissect.tui.commands import kcat_command, tshark_command
from kdissect.tui.detail import Detail, Spot
from kdissect.tui.selecting import filter_of_line

FORMS = ("value", "path", "filter", "JSON", "hex", "kcat command", "tshark command")


def copied(
    form: str, detail: Detail, spots: Sequence[Spot], options: Options, paths: Sequence[str] = ()
) -> str | None:
    """The text for the clipboard; None if there is none in that form.

    :param form: one of :data:`FORMS`.
    :param spots: the line, after those around it, the outermost first.
    :param paths: the files of the capture.
    """
    spot = spots[-1]
    if form == "filter":
        return filter_of_line(detail, spots)
    if form == "kcat command":
        return kcat_command(detail.exchange, spots)
    if form == "tshark command":
        return tshark_command(detail.exchange, paths) if len(paths) == 1 else None
    if form == "path":
        return path_of(detail, spots)
    if form == "JSON":
        return json_of(detail, spots[0], options)
    if form == "hex":
        if detail.is_partly_hidden(spot):
            return REDACTED
        return spot.data[spot.start : spot.end].hex()
    return value_of(spot)


def value_of(spot: Spot) -> str:
    """A field's value as it is, bytes in base64 where they are no text; of other lines the text."""
    node = spot.branch.node if spot.branch is not None else None
    if spot.is_hidden:
        return REDACTED
    if node is None or node.children or spot.can_open or node.value is None:
        return spot.text
    if isinstance(node.value, bytes):
        try:
            return node.value.decode("utf-8")
        except UnicodeDecodeError:
            return base64_text(node.value)
    if isinstance(node.value, bool):
        return "true" if node.value else "false"
    return str(node.value)


def path_of(detail: Detail, spots: Sequence[Spot]) -> str:
    """``fetch.request.topics[0].partitions[3].fetchOffset``, as the contract has it, with the indexes."""
    message = spots[0].message
    if message is None:
        return spots[-1].text
    path = f"{(detail.exchange.api or 'unknown').lower()}.{message.kind}"
    for spot in spots[1:]:
        if spot.branch is None or spot.branch.node.name == "body":
            continue
        name = spot.branch.node.name
        path += name if name.startswith("[") else f".{name}"
    return path


def json_of(detail: Detail, top: Spot, options: Options) -> str:
    """The message in Kafka's JSON form; of a fault its text."""
    message = top.message
    if message is None:
        return dumps(top.text)
    return dumps(message_object(message, options, context_of(detail.exchange, message, options)))
