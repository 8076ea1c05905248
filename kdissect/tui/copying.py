"""A line of the tree → texts to copy: value, path, filter, message, bytes, and commands.

Secrets are never copied.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from kdissect.exchange import Exchange
from kdissect.model import Node
from kdissect.present.body import context_of, message_object
from kdissect.present.detail import Detail, TreeSpot
from kdissect.present.options import Options
from kdissect.present.sanitise import CUT
from kdissect.present.secret_names import REDACTED
from kdissect.protocol.json_form import SIZE_SUFFIX, base64_text, dumps
from kdissect.protocol.topics import partition_of
from kdissect.tui.selecting import filter_of_line

_LEGAL_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
"""Kafka's ``Topic.validate``. A captured name may be anything, and users paste a command into a shell. Escape
codes and line feeds are dangerous there even between quotes."""


def kcat_command(exchange: Exchange, spots: Sequence[TreeSpot]) -> str | None:
    """The command that reads the partition of a tree line, from the offset in that line.

    If the line is not about a partition, the command reads the first partition with records. None without a
    partition, or if Kafka refuses the name of its topic.

    :param spots: the line, after the lines around it, the outermost first.
    """
    nodes = [spot.branch.node for spot in spots if spot.branch is not None]
    topic, topic_id, partition = partition_of(tuple(map(_values, nodes)))
    if topic is None and topic_id is not None:
        topic = exchange.topic_names.get(topic_id)
    offset = _offset(nodes) if spots and spots[0].message is not exchange.request else None
    offset = _value(nodes, "fetchOffset") if offset is None else offset
    if topic is None or partition is None:
        place = next((each for each in exchange.record_sets() if each.topic is not None), None)
        if place is None or place.topic is None or place.partition is None:
            return None
        topic, partition, offset = place.topic, place.partition, exchange.assigned_base_offset(place)
    if not _LEGAL_TOPIC.fullmatch(topic) or partition < 0:
        return None
    words = ["kcat", "-C", "-e", "-b", exchange.broker, "-t", topic, "-p", str(partition)]
    # A negative one would count from the end.
    return shlex.join([*words, "-o", "beginning" if offset is None or offset < 0 else str(offset)])


def _values(node: Node) -> dict[str, object]:
    return {child.name: child.value for child in node.children}


def _value(nodes: Sequence[Node], name: str) -> int | None:
    """A number in one of these structs, the innermost first."""
    found = (_values(node).get(name) for node in reversed(nodes))
    return next((value for value in found if isinstance(value, int)), None)


def _offset(nodes: Sequence[Node]) -> int | None:
    """The offset of the record around a line of a fetched record set, or else that of the batch."""
    base = _value(nodes, "baseOffset")
    return None if base is None else base + (_value(nodes, "offsetDelta") or 0)


def tshark_command(exchange: Exchange, paths: Sequence[str], key_logs: Sequence[str] | None = None) -> str:
    """The command that prints the packets of an exchange, with its broker's port as Kafka.

    :param key_logs: the key logs of the capture, if the connection is TLS; else None.
    """
    packets = {number for message in exchange.messages for number in message.frame.packets}
    wanted = f"frame.number in {{{', '.join(_ranges(packets))}}}"
    words = ["tshark", "-r", os.path.abspath(paths[0]), *_decode_as(exchange, key_logs), "-Y", wanted, "-V"]
    return shlex.join(words)


def _ranges(numbers: Iterable[int]) -> Iterator[str]:
    """Numbers in the form of a set of Wireshark's filters: ``4``, ``7..9``. A large message has more packets
    than a command line has room for."""
    for _, row in groupby(enumerate(sorted(numbers)), lambda placed: placed[1] - placed[0]):
        found = [number for _, number in row]
        yield str(found[0]) if len(found) == 1 else f"{found[0]}..{found[-1]}"


def wireshark_command(
    exchange: Exchange, paths: Sequence[str], key_logs: Sequence[str] | None = None
) -> list[str]:
    """The command that opens Wireshark at the packet that completed the exchange's first message."""
    packet = exchange.messages[0].frame.last_packet
    opened = ["wireshark", "-r", os.path.abspath(paths[0])]
    return [*opened, *_decode_as(exchange, key_logs), "-g", str(packet)]


def _decode_as(exchange: Exchange, key_logs: Sequence[str] | None) -> list[str]:
    """The options for the broker's port. As plain Kafka, TLS would stay encrypted; it takes one key log, and
    secrets in the capture itself without any option."""
    port = exchange.broker.rpartition(":")[2]
    if key_logs is None:
        return ["-d", f"tcp.port=={port},kafka"]
    with_keys = [os.path.abspath(path) for path in key_logs if os.path.isfile(path)]
    keys = ["-o", f"tls.keylog_file:{with_keys[0]}"] if len(with_keys) == 1 else []
    return ["-d", f"tcp.port=={port},tls", "-d", f"tls.port=={port},kafka", *keys]


OF_FILTER = "DuckDB query"
"""The form in :data:`FORMS` that uses the display filter."""
FORMS = (
    *("value", "path", "filter", "kdissect read", "kdissect client send", "body for client send --json"),
    *("JSON", "hex", "kcat command", "tshark command", OF_FILTER),
)
MOST_SAID = 60
"""The most characters of a copied text that are shown."""
_LONGEST_BODY = 4_000
"""The most characters of a body in a command line. A longer body is sent from the capture."""


def body_to_send(exchange: Exchange, options: Options) -> str | None:
    """The body of the request as ``kdissect client send --json`` takes it. None if the JSON form does not
    contain all of it: it has records, or secret values."""
    text = _body_text(exchange, options)
    return None if text is None or _is_partly_left_out(text) else text


def _body_text(exchange: Exchange, options: Options) -> str | None:
    """The body of the request in the JSON form; None if there is none, or it cannot be decoded."""
    if exchange.request is None:
        return None
    body = message_object(exchange.request, options._replace(embedded=False)).get("body")
    return None if body is None else dumps(body)


def _is_partly_left_out(text: str) -> bool:
    return SIZE_SUFFIX in text or REDACTED in text


def send_command(exchange: Exchange, options: Options, paths: Sequence[str]) -> str | None:
    """The command that sends the request again, to the same broker. If the body does not fit in a command
    line, the command takes it from the capture.

    :param paths: the files of the capture.
    """
    if exchange.request is None or exchange.api is None or exchange.api_version is None:
        return None
    words = ["kdissect", "client", "send", exchange.broker]
    body = body_to_send(exchange, options)
    if body is not None and len(body) <= _LONGEST_BODY and body.isprintable():
        return shlex.join(
            [*words, "--api", exchange.api, "--version", str(exchange.api_version), "--json", body]
        )
    return shlex.join([*words, "--capture", *_in_capture(exchange, paths)]) if len(paths) == 1 else None


def read_command(exchange: Exchange, paths: Sequence[str]) -> str | None:
    """The command that prints the exchange with all of its fields. None without a file.

    :param paths: the files of the capture. All are read again, because exchanges are numbered across all of
        them.
    """
    if not paths:
        return None
    return shlex.join(["kdissect", "read", *_in_capture(exchange, paths), "-V"])


def shown_command(text: str, paths: Sequence[str]) -> str:
    """The command that prints the exchanges of a filter."""
    return shlex.join(["kdissect", "read", *map(os.path.abspath, paths), "-Y", text])


_QUERY = (
    "select client_id, api, error, count(*) as exchanges, max(latency_ns) / 1e6 as max_ms "
    "from 'exchanges.parquet' group by all order by exchanges desc"
)


def query_command(shown: str, paths: Sequence[str]) -> str | None:
    """The commands that save the exchanges of a filter as a table and query it with DuckDB. They are a start
    for questions that no screen answers. None without a file.

    :param shown: the filter; empty for all.
    """
    if not paths:
        return None
    read = ["kdissect", "read", *map(os.path.abspath, paths), *(["-Y", shown] if shown else [])]
    saved = shlex.join([*read, "-T", "parquet", "-o", "exchanges.parquet"])
    return f"{saved} && {shlex.join(['duckdb', '-c', _QUERY])}"


def _in_capture(exchange: Exchange, paths: Sequence[str]) -> list[str]:
    return [*map(os.path.abspath, paths), "-Y", f"number == {exchange.number}"]


def copied(
    form: str,
    detail: Detail,
    spots: Sequence[TreeSpot],
    options: Options,
    paths: Sequence[str] = (),
    shown: str = "",
    key_logs: Sequence[str] | None = None,
) -> str | None:
    """The text for the clipboard; None if the line has no such form.

    :param form: one of :data:`FORMS`.
    :param spots: the line, after the lines around it, the outermost first.
    :param paths: the files of the capture.
    :param shown: the display filter.
    :param key_logs: as for :func:`tshark_command`.
    """
    spot = spots[-1]
    if form == "filter":
        return filter_of_line(detail, spots)
    if form == "kcat command":
        return kcat_command(detail.exchange, spots)
    if form == "tshark command":
        return tshark_command(detail.exchange, paths, key_logs) if len(paths) == 1 else None
    if form == OF_FILTER:
        return query_command(shown, paths)
    if form == "kdissect read":
        return read_command(detail.exchange, paths)
    if form == "kdissect client send":
        return send_command(detail.exchange, options, paths)
    if form == "body for client send --json":
        return body_to_send(detail.exchange, options)
    if form == "path":
        return path_of(detail, spots)
    if form == "JSON":
        return json_of(detail, spots[0], options)
    if form == "hex":
        if detail.is_partly_hidden(spot):
            return REDACTED
        return spot.data[spot.start : spot.end].hex()
    return value_of(spot)


def why_not_copied(form: str, detail: Detail, options: Options, paths: Sequence[str]) -> str:
    """The message for a form that a line does not have."""
    exchange = detail.exchange
    if form == "tshark command" and paths[1:]:
        return "tshark reads one file: open the file of this exchange alone"
    if form == "kdissect client send" and paths[1:] and exchange.api is not None:
        return "client send takes a request from one file: open the file of this exchange alone"
    text = _body_text(exchange, options) if form == "body for client send --json" else None
    if text is not None and _is_partly_left_out(text):
        return "JSON leaves out records and secrets of this body: copy kdissect client send instead"
    return f"there is no {form} for this line"


def copied_message(form: str, text: str) -> str:
    """The message after a text was copied."""
    lines = text.count("\n") + 1
    if lines > 1:
        return f"copied the {form}: {lines:,} lines"
    if text.startswith(f"{form} "):  # a command, which names itself
        return f"copied: {text[:MOST_SAID]}{CUT if len(text) > MOST_SAID else ''}"
    return f"copied the {form}: {text[:MOST_SAID]}{CUT if len(text) > MOST_SAID else ''}"


def value_of(spot: TreeSpot) -> str:
    """A field's value without quotes, bytes in base64 if they are no text; for other lines, their text."""
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


def path_of(detail: Detail, spots: Sequence[TreeSpot]) -> str:
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


def json_of(detail: Detail, top: TreeSpot, options: Options) -> str:
    """The message in Kafka's JSON form; for a fault, its text."""
    message = top.message
    if message is None:
        return dumps(top.text)
    return dumps(message_object(message, options, context_of(detail.exchange, message, options)))
