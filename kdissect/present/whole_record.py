"""A record → lines that show all of it: its place, key, value and headers; and texts to copy.

This module does not use the terminal.
"""

from __future__ import annotations

import io
from typing import Any, NamedTuple

from kdissect.payload.framing import REGISTRIES, framing_of
from kdissect.present.catalogue import RECORDS
from kdissect.present.decoded import part_of
from kdissect.present.form import Clock, plural
from kdissect.present.hexdump import hexdump
from kdissect.present.options import Options
from kdissect.present.payload import lines_of, one_line
from kdissect.present.record_text import header_objects
from kdissect.present.sanitise import sanitise
from kdissect.present.secret_names import REDACTED
from kdissect.present.writers import table_writer
from kdissect.protocol.json_form import dumps

COPY_FORMS = ("value", "key", "headers", "record as JSON", "value as hex")


class TextLine(NamedTuple):
    """A line, sanitised."""

    text: str
    kind: str = "plain"
    """``heading``, ``fact`` or ``plain``."""


def is_redacted(row: dict[str, Any], side: str) -> bool:
    """Whether a value is hidden. A value may also just contain the same text: then its size differs."""
    return side == "value" and row["value"] == REDACTED.encode() and row["value_size"] != len(REDACTED)


def record_lines(row: dict[str, Any], form: str) -> list[TextLine]:
    """The whole record.

    :param form: the form of key and value: one of :data:`kdissect.present.payload.FORMS`.
    """
    out = [TextLine(_where(row), "heading"), *(TextLine(each, "fact") for each in _facts(row))]
    for side in ("key", "value"):
        heading, lines = _part(row, side, form)
        out += [TextLine(""), TextLine(heading, "heading"), *map(TextLine, lines)]
    headers = row["headers"]
    out += [TextLine(""), TextLine(f"headers: {len(headers)}", "heading")]
    out += [
        TextLine(f"{sanitise(name)}: {'null' if value is None else one_line(value)}")
        for name, value in headers
    ]
    return out


def _where(row: dict[str, Any]) -> str:
    topic = row["topic"] or row["topic_id"] or "(topic not known)"
    offset = f"offset {row['offset']}"
    if row["assigned_offset"] is not None:
        offset = f"offset {row['assigned_offset']} (sent as {row['offset']})"
    elif row["direction"] == "produce":
        offset = f"offset {row['offset']} as sent; the response does not contain the broker's offset"
    partition = "?" if row["partition"] is None else row["partition"]
    return f"{sanitise(topic)}-{partition}  {offset}"


def _facts(row: dict[str, Any]) -> list[str]:
    api = row["api"] or row["direction"].capitalize()
    timestamp = row["timestamp"]
    time = row["timestamp_type"]
    if timestamp is not None:
        time += f" {Clock('u').text(timestamp * 1_000_000)} ({timestamp} ms)"
    batch = [f"batch at offset {row['batch_offset']}", f"magic {row['magic']}", f"codec {row['codec']}"]
    if row["producer_id"] is not None:
        producer, epoch, sequence = row["producer_id"], row["producer_epoch"], row["sequence"]
        batch.append(f"producer {producer} epoch {epoch} sequence {sequence}")
    if row["transactional"]:
        batch.append("transactional")
    if row["control"] is not None:
        batch.append("control record")
    if row["crc_valid"] is False:
        batch.append("its checksum is wrong")
    exchange = f"exchange {row['exchange']}, {api} v{row['api_version']}, connection {row['connection']}"
    return [exchange, time, ", ".join(batch)]


def _part(row: dict[str, Any], side: str, form: str) -> tuple[str, list[str]]:
    """The heading and the lines of key or value."""
    data, count = row[side], row[f"{side}_size"]
    if data is None:
        what = " (a tombstone)" if side == "value" and row["key"] is not None else ""
        return f"{side}: null{what}", []
    bytes_text = plural(count, "byte")
    decoded, control = part_of(row, side), row["control"]
    if form in ("auto", "json") and decoded is not None:
        about = f", {sanitise(decoded.about)}" if decoded.about else ""
        return f"{side}: {sanitise(decoded.name)}{about}, {bytes_text}", _json_lines(decoded.value)
    if form in ("auto", "json") and control is not None and side == "value":
        return f"{side}: control record, {bytes_text}", _json_lines(control)
    if is_redacted(row, side):
        return f"{side}: {bytes_text}", [REDACTED]
    problem = (row.get(f"{side}Format") or {}).get("problem")
    why = "" if problem is None else f", {sanitise(problem)}"
    framing = framing_of(data, row["headers"], side)
    if framing is None or not framing.size or form != "auto":
        used, lines = lines_of(data, form)
    else:
        used, lines = lines_of(data[framing.size :])
        used += f" after {framing.size} bytes"
    if framing is None:
        return f"{side}: {used}, {bytes_text}{why}", lines
    if not framing.size:
        return f"{side}: {used}, {bytes_text}, {framing} in a header{why}", lines
    # Such bytes cannot be told from others with the same beginning.
    registry = REGISTRIES[framing.registry]
    return f"{side}: {used}, {bytes_text}, begins as {registry} does: {framing}{why}", lines


def _json_lines(value: Any) -> list[str]:
    return lines_of(dumps(value).encode("ascii"), "json")[1]


def is_shown_decoded(row: dict[str, Any], form: str) -> bool:
    """Whether the value is shown by its meaning instead of its bytes."""
    return form in ("auto", "json") and (part_of(row, "value") is not None or row["control"] is not None)


def value_file(row: dict[str, Any], form: str) -> tuple[str, bytes]:
    """The ending of a file's name, and the text that an editor gets.

    That is the bytes, a dump of all of them in hex, or the decoded text if that is shown. For a secret value,
    the editor gets only a line that says so.
    """
    data = row["value"] or b""
    if is_shown_decoded(row, form):
        return ".json", "\n".join(_part(row, "value", form)[1]).encode() + b"\n"
    if is_redacted(row, "value"):
        return ".txt", REDACTED.encode() + b"\n"
    used, _ = lines_of(data, form)
    if used == "hex":
        return ".txt", "\n".join(hexdump(data)).encode() + b"\n"
    return ".json" if used == "json" else ".txt", data


def record_copied(row: dict[str, Any], what: str, options: Options) -> str:
    """The text for the clipboard; bytes that are no text become hex.

    :param what: one of :data:`COPY_FORMS`.
    """
    if what in ("value", "key"):
        data = row[what]
        if data is None:
            return "null"
        try:
            return str(data.decode("utf-8"))
        except UnicodeDecodeError:
            return str(data.hex())
    if what == "value as hex":
        return REDACTED if is_redacted(row, "value") else (row["value"] or b"").hex()
    if what == "headers":
        return dumps(header_objects(row["headers"], options.bytes_form))
    file = io.BytesIO()
    table_writer("ndjson", RECORDS, file, options).write(row)
    return file.getvalue().decode("ascii").rstrip("\n")
