"""The frame of a page, and how text gets into it.

A page uses no network, and nothing in it can. Its policy allows one style and one script, those of kdissect,
by their checksums. Text reaches a page through :func:`text` only.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

from kdissect.present.sanitise import LONGEST, sanitise


def text(value: object, longest: int | None = LONGEST) -> str:
    """A value as safe text of a page, or of an attribute in double quotes."""
    return html.escape(sanitise(str(value), longest), quote=True)


@cache
def _own(name: str) -> str:
    """A file of this package, without the comment at its top."""
    return files("kdissect.present.html").joinpath(name).read_text("utf-8").strip() + "\n"


def _checksum(content: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() + "'"


def page(title: str, body: Iterable[str], mark: str = "") -> str:
    """A whole page.

    :param title: the title, not yet made safe; all parts of ``body`` are safe.
    :param mark: an attribute of the first tag.
    """
    style, script = _own("page.css"), _own("page.js")
    policy = (
        f"default-src 'none'; style-src {_checksum(style)}; script-src {_checksum(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return "".join(
        (
            f'<!doctype html>\n<html lang="en"{" " if mark else ""}{mark}>\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n',
            f"<title>{text(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n",
            '<a class="skip" href="#content">Skip to the content</a>\n',
            *body,
            f"\n<script>{script}</script>\n</body>\n</html>\n",
        )
    )


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    caption: str,
    numbers: Iterable[int] = (),
    more: int = 0,
) -> str:
    """A table that can be sorted and, if it is long, searched.

    :param numbers: the columns with numbers; such a cell may be ``(shown, value to sort by)``.
    :param more: the number of rows that are left out.
    """
    right = set(numbers) - {0}
    head = "".join(
        f'<th scope="col"{" class=n" if at in right else ""}>{text(name)}</th>'
        for at, name in enumerate(headings)
    )
    lines = []
    for row in rows:
        cells = "".join(_cell(each, at in right, at == 0) for at, each in enumerate(row))
        lines.append(f"<tr>{cells}</tr>")
    if not lines:
        return ""
    under = (
        f'<p class="more">{more:,} more {"row" if more == 1 else "rows"} are not in this report.</p>'
        if more
        else ""
    )
    kind = "scroll long" if len(lines) > _LONG else "scroll"
    return (
        f'<div class="{kind}" tabindex="0" role="group" aria-label="{text(caption)}">'
        f"<table><caption>{text(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>{under}"
    )


_LONG = 25
"""The number of rows from which on a table scrolls by itself on a screen. On paper all rows are shown."""
_LONGEST_LINE = 30
"""The most characters of a cell that is not broken into lines. Otherwise names with hyphens would be
broken."""


class Markup(str):
    """Text that is markup already."""


def _cell(value: object, is_number: bool, is_first: bool) -> str:
    key = ""
    if isinstance(value, tuple):
        value, number = value
        key = f' data-key="{"" if number is None else text(number)}"'
    is_long = isinstance(value, Markup) or len(str(value)) > _LONGEST_LINE
    shown = value if isinstance(value, Markup) else text("" if value is None else value)
    kind = " class=n" if is_number else " class=w" if is_long else ""
    if is_first:
        return f'<th scope="row"{" class=w" if is_long else ""}{key}>{shown}</th>'
    return f"<td{kind}{key}>{shown}</td>"


def section(name: str, title: str, parts: Iterable[str], lead: str = "") -> str:
    """A part of a page, with a heading for its navigation; empty without content.

    :param lead: a sentence below the heading, made safe.
    """
    content = "".join(parts)
    if not content:
        return ""
    before = f"<p class=lead>{lead}</p>" if lead else ""
    return (
        f'<section id="{text(name)}" aria-labelledby="{text(name)}-title"><h2 id="{text(name)}-title">'
        f"{text(title)}</h2>{before}{content}</section>\n"
    )


def switch() -> str:
    """The button for dark and light. The script shows it."""
    return '<button type="button" id="theme" hidden>Dark or light</button>'
