"""Text from the wire → text that is safe to show.

Text from a capture may hold escape sequences that rewrite the screen. It may hold characters that turn the
direction of writing around, and characters that cannot be seen. :func:`sanitise` is the one function that
such text passes before it reaches a terminal or a cell; it makes all of that visible.
"""

from __future__ import annotations

from functools import lru_cache
from unicodedata import east_asian_width

LONGEST = 256
"""The most characters shown of one value; Kafka's topic names have at most 249."""

CUT = "…"
"""The sign in place of the text that was cut off."""

_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    chr(code) for code in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
}
"""Characters that count as letters or marks but show nothing."""

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def sanitise(text: str, longest: int | None = LONGEST) -> str:
    """``text`` with every character that is not plainly visible as ``\\n``, ``\\x1b``, ``\\u202e`` …

    That is what Unicode does not call printable. These are C0 and C1 controls, DEL, bidirectional controls,
    zero-width and tag characters, line and paragraph separators, and unusual spaces. A byte that was not
    UTF-8 (a lone surrogate, PEP 383) shows as ``\\xff``.

    :param longest: cut after so many characters; None is no limit.
    """
    cut = longest is not None and len(text) > longest
    if cut:
        text = text[:longest]
    if not (text.isprintable() and (text.isascii() or _INVISIBLE.isdisjoint(text))):
        text = "".join(map(_visible, text))
    return text + CUT if cut else text


def _visible(character: str) -> str:
    if character.isprintable() and character not in _INVISIBLE:
        return character
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def valid_text(text: str) -> str:
    """``text`` in which bytes that were not UTF-8 appear as ``\\xff``: what a column of text can hold.

    JSON may contain half of a surrogate pair, which no bytes represent; that appears as ``\\ud800``.
    """
    if text.isascii():
        return text
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        text = "".join(_visible(each) if "\ud800" <= each <= "\udfff" else each for each in text)
        data = text.encode("utf-8")
    return data.decode("utf-8", "backslashreplace")


def cell(text: str) -> str:
    """A text for a CSV or TSV cell. Nothing in it ends the line or controls a terminal. A spreadsheet treats
    it as text, not as a formula (OWASP, CSV injection).
    """
    text = sanitise(text, None)
    return "'" + text if text[:1] in _FORMULA else text


_FORMULA = ("=", "+", "-", "@")
"""The characters that begin a formula. Tabs and line ends, which OWASP also names, are ``\\t`` here
already."""


def width(text: str) -> int:
    """Columns that sanitised text takes on a terminal."""
    return len(text) if text.isascii() else _measured(text)


@lru_cache(maxsize=4096)
def _measured(text: str) -> int:
    """The width, character by character. It is kept, because the cells of a column repeat."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def pad(text: str, columns: int, right: bool = False) -> str:
    """``text`` padded with spaces to ``columns``; longer text stays unchanged."""
    fill = " " * (columns - width(text))
    return fill + text if right else text + fill


_SPACES = [" " * count for count in range(256)]


def aligned(columns: list[list[str]], cells: list[int], count: int, gap: int) -> list[str]:
    """Lines of a table, without spaces at their ends. Texts that are too short are padded with spaces.

    :param columns: for each column, its texts; a single one if all lines have the same.
    :param cells: for each column, the least characters of its texts. A negative number aligns them right.
    :param count: the number of lines.
    :param gap: the number of spaces between two columns.
    """
    lines: list[str] = []
    last, most = len(columns), len(_SPACES)
    for row in range(count):
        parts: list[str] = []
        missing = 0
        for at in range(last):
            texts, wanted = columns[at], cells[at]
            text = texts[0 if len(texts) == 1 else row]
            size = len(text)
            if wanted < 0:
                missing += max(0, -wanted - size)
            if size:
                if missing:
                    parts.append(_SPACES[missing] if missing < most else " " * missing)
                parts.append(text)
                missing = 0
            missing += gap
            if wanted > size:
                missing += wanted - size
        lines.append("".join(parts).rstrip())
    return lines
