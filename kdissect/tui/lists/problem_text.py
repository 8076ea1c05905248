"""The text of an error, a fault or a note: its subject, what it means, why it happens, what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kdissect.analysis.fold import Row
from kdissect.present.error_pages import error_lines, error_page
from kdissect.present.form import plural
from kdissect.present.paragraphs import fold_text, paragraph
from kdissect.present.sanitise import sanitise
from kdissect.present.whole_record import TextLine
from kdissect.protocol.errors import errors

_WHOSE = {
    "client_id": "client",
    "principal": "principal",
    "group": "group",
    "transactional_id": "transactional id",
    "topic": "topic",
    "partition": "partition",
    "broker": "broker",
}
"""What the first line names, by the columns of a row."""
_MISSING = {
    "not captured": "The request or the response of these exchanges is not in the capture.",
    "gap": "The capture lacks the bytes of the request or the response.",
    "capture ended": "The capture ended before the response came.",
    "connection closed": "The connection ended before the response came.",
    "evicted": "kdissect reached a limit and forgot the request before the response came.",
}
"""What is meant where one side of an exchange is missing, by the reason."""


def text_of(row: Row, shown_by: str | None, time_text: Callable[[int], str], room: int) -> list[TextLine]:
    """The whole text of a row of the list.

    :param shown_by: the filter that shows its exchanges, if there is one.
    :param time_text: writes a time.
    :param room: cells of a line.
    """
    out = [TextLine(part, "heading") for part in fold_text(_heading(row), room)]
    out += [TextLine(part) for part in fold_text(_how_often(row, time_text), room)]
    if row["error_code"] is not None and row["error_code"] in errors():
        out.append(TextLine(""))
        out += map(TextLine, error_lines(error_page(errors()[row["error_code"]]), room))
    else:
        for text in filter(None, (row["said"], _MISSING.get(row["reason"] or ""))):
            out += [TextLine(""), *(TextLine(part) for part in fold_text(sanitise(text, None), room))]
    if shown_by is not None:
        see = paragraph(f"{shown_by}  (Enter; i shows what led to the first)", "", "see", room)
        out += [TextLine(""), *(TextLine(part, "fact") for part in see)]
    return out


def _heading(row: Row) -> str:
    api = f" of {row['api']}" if row["api"] is not None else ""
    return ", ".join((f"{row['severity'].upper()} {row['what']}{api}", *_whose(row)))


def _whose(row: Row) -> Iterator[str]:
    for name, word in _WHOSE.items():
        if row[name] is not None:
            yield f"{word} {sanitise(str(row[name]), None)}"


def _how_often(row: Row, time_text: Callable[[int], str]) -> str:
    parts = [plural(row["count"], "time")]
    first, last = row["first_ns"], row["last_ns"]
    if first is not None and last is not None and first != last:
        parts.append(f"from {time_text(first)} to {time_text(last)}")
    elif first is not None:
        parts.append(f"at {time_text(first)}")
    elif row["first_packet"] is not None:
        parts.append(f"first in packet {row['first_packet']:,}")
    if row["number"] is not None:
        parts.append(f"first in exchange No. {row['number']:,}")
    return ", ".join(parts)
