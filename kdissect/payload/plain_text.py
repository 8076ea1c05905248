"""Bytes → text, if they are clearly text; and text for one line."""

from __future__ import annotations

_BLANK = {ord(each): " " for each in "\t\n\r"}


def plain_text(data: bytes, is_cut: bool = False) -> str | None:
    """The bytes as text if they are clearly text: UTF-8, and printable except for line ends and tabs.

    :param is_cut: whether the bytes may end inside a character, which is then left out.
    :return: None if they are anything else, or empty.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        if not is_cut or error.start < len(data) - 3 or error.reason != "unexpected end of data":
            return None
        text = data[: error.start].decode("utf-8")
    return text if text and (text.isprintable() or text.translate(_BLANK).isprintable()) else None


def said_shortly(text: str, longest: int = 200) -> str:
    """A reason that fits into one line: names of schemas may have any characters, and be long."""
    text = text if len(text) <= longest else text[:longest] + "…"
    return text if text.isprintable() else "".join(each if each.isprintable() else "\ufffd" for each in text)
