"""The small text files of a log directory → facts.

| file | lines | class |
|---|---|---|
| ``*-offset-checkpoint`` | version 0, a count, ``<topic> <partition> <offset>`` … | ``OffsetCheckpoint`` |
| ``leader-epoch-checkpoint`` | version 0, a count, ``<epoch> <start offset>`` … | ``LeaderEpochCheckpoint`` |
| ``partition.metadata``, ``meta.properties`` | names and values | ``PartitionMetadataFile`` |
| ``quorum-state`` | one JSON object | ``FileQuorumStateStore`` |

Kafka has never written to a checkpoint that is empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from math import isfinite
from typing import Any

from kdissect.faults import fault
from kdissect.model import Fault
from kdissect.wording import plural

Found = dict[str, Any] | Fault

_FIELDS = {
    "offset-checkpoint": (("topic", str), ("partition", int), ("offset", int)),
    "leader-epoch-checkpoint": (("epoch", int), ("startOffset", int)),
}
LONGEST_QUOTED = 100
"""The most characters of a wrong line that its fault repeats."""

_INTEGER = re.compile(r"-?[0-9]{1,19}")


def read_facts(kind: str, data: bytes) -> Iterator[Found]:
    """The facts in a file of the ``kind``, and its faults; offsets of faults count bytes."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        yield fault("not-utf8", f"the file is not text: {error.reason}", offset=error.start, layer="file")
        return
    if kind in _FIELDS:
        yield from _checkpoint(kind, text)
    elif kind == "quorum-state":
        yield _json(text)
    else:
        yield from _properties(text)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that are not empty, with their position in bytes."""
    at = 0
    for line in text.split("\n"):
        if line.strip():
            yield at, line.rstrip("\r")
        at += len(line.encode("utf-8")) + 1


def _quoted(text: str) -> str:
    """A text of the file in quotes. A long text is shortened, because it may be as long as the file."""
    return repr(text) if len(text) <= LONGEST_QUOTED else f"{text[:LONGEST_QUOTED]!r}…"


def _checkpoint(kind: str, text: str) -> Iterator[Found]:
    lines = _lines(text)
    head = [line for _, line in (next(lines, (0, "")), next(lines, (0, "")))]
    if head == ["", ""]:
        return
    if head[0] != "0":
        yield fault("bad-entry", f"version {_quoted(head[0])} of a checkpoint, only 0 is known", offset=0)
        return
    if not _INTEGER.fullmatch(head[1]):
        yield fault("bad-entry", f"the count of entries is {_quoted(head[1])}", offset=len(head[0]) + 1)
        return
    count = 0
    for at, line in lines:
        fields, words = _FIELDS[kind], line.split(" ")
        if len(words) != len(fields) or not all(
            form is str or _INTEGER.fullmatch(word) for (_, form), word in zip(fields, words, strict=True)
        ):
            names = ", ".join(name for name, _ in fields)
            yield fault("bad-entry", f"{_quoted(line)} is not {names}", offset=at)
            continue
        count += 1
        yield {name: form(word) for (name, form), word in zip(fields, words, strict=True)}
    if count != int(head[1]):
        yield fault(
            "bad-entry",
            f"the file announces {plural(int(head[1]), 'entry', 'entries')}, "
            f"{plural(count, 'is', 'are')} there",
            offset=len(head[0]) + 1,
        )


def _no_number(word: str) -> float:
    """Reject ``NaN`` and ``Infinity``, which Python accepts in JSON."""
    raise ValueError(f"{word} is not a number")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is too large for a double")
    return number


def _json(text: str) -> Found:
    try:
        found = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        return fault("bad-entry", f"not JSON: {error}", offset=0)
    if not isinstance(found, dict):
        return fault("bad-entry", "not a JSON object", offset=0)
    return found


_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def _properties(text: str) -> Iterator[Found]:
    """All names and values as one fact; lines of another form are faults."""
    values: dict[str, Any] = {}
    faults = []
    for at, line in _lines(text):
        if line.lstrip()[0] in "#!":
            continue
        found = re.fullmatch(r"\s*((?:[^\\=:\s]|\\.)+)\s*[=:\s]\s*(.*)", line)
        if found is None:
            faults.append(fault("bad-entry", f"{_quoted(line)} is not a name and a value", offset=at))
        else:
            values[_unescape(found[1])] = _unescape(found[2])
    if values:
        yield values
    yield from faults


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda m: chr(int(m[1][1:], 16)) if len(m[1]) == 5 else _LETTERS.get(m[1], m[1]), text)
