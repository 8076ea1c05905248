"""``explain --rule ID`` and ``--error NAME``: what is known of a rule and of an error, without a capture."""

from __future__ import annotations

import re

from kdissect.cli.errors import Wrong
from kdissect.cli.output import TextOutput, open_output
from kdissect.insight.catalogue import RULES
from kdissect.insight.rule import Rule
from kdissect.present.error_pages import ErrorPage, error_lines, error_page
from kdissect.present.findings_text import page_lines
from kdissect.present.nearest import nearest
from kdissect.present.tables import json_line
from kdissect.protocol.errors import errors


def rule_of(id: str, option: str) -> Rule:
    """A rule by its id.

    :raises Wrong: it is unknown; the text names the nearest.
    """
    if id not in RULES:
        raise Wrong(f"{option} {id}: there is no such rule{nearest(id, RULES)}")
    return RULES[id]


def print_page(id: str) -> int:
    """Print what is known of a rule."""
    rule = rule_of(id, "--rule")
    with open_output(None) as file:
        TextOutput(file).lines(page_lines(rule))
    return 0


def error_of(text: str) -> ErrorPage:
    """An error by its name or code.

    :raises Wrong: it is unknown; the text names the nearest.
    """
    by_name = {each.name: each for each in errors().values()}
    name = text.strip().upper().replace("-", "_")
    known = by_name.get(name)
    is_code = re.fullmatch(r"-?[0-9]{1,9}", text.strip())
    if known is None and is_code:
        known = errors().get(int(text))
    if known is None:
        codes = f"; their codes are {min(errors())} to {max(errors())}" if is_code else ""
        raise Wrong(f"--error {text}: there is no such error{codes or nearest(name, by_name)}")
    return error_page(known)


def print_error(text: str, form: str) -> int:
    """Print what is known of an error."""
    page = error_of(text)
    if form not in ("text", "ndjson"):
        raise Wrong(f"-T {form}: an error prints as text or ndjson")
    with open_output(None) as file:
        if form == "ndjson":
            file.write(json_line(page._asdict()))
        else:
            TextOutput(file).lines(error_lines(page))
    return 0
