"""``explain --rule ID`` and ``--error NAME``: the pages of a rule and of an error, without a capture."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Any

from kdissect.cli.commands.explain.inputs import STORIES, refuse_choice
from kdissect.cli.errors import Wrong
from kdissect.cli.output import TextOutput, open_output
from kdissect.insight.catalogue import RULES
from kdissect.insight.rule import Rule
from kdissect.present.error_pages import ErrorPage, error_lines, error_page
from kdissect.present.findings_text import page_lines
from kdissect.present.nearest import nearest
from kdissect.present.tables import json_line
from kdissect.protocol.errors import errors


def print_page(given: dict[str, Any]) -> int:
    """Print the pages of rules.

    :raises Wrong: a rule is unknown, or another option asks for something else.
    """
    rules = _rules_of(given["rule"])
    if given["error"] is not None:
        raise Wrong("--rule and --error are given: give only one of them")
    if given["form"] != "text":
        raise Wrong(f"-T {given['form']}: the page of a rule prints as text")
    _refuse_captures(given, "--rule", f"; --id {given['rule']} chooses its findings")
    with open_output(given["output"]) as file:
        output = TextOutput(file, given["output"])
        for at, rule in enumerate(rules):
            output.lines(page_lines(rule) if at == 0 else ("", "", *page_lines(rule)))
    return 0


def _rules_of(text: str) -> list[Rule]:
    """The rules of ``--rule``: ids or patterns, separated by commas.

    :raises Wrong: there is no such rule; the text names the nearest.
    """
    found: dict[str, Rule] = {}
    for pattern in filter(None, map(str.strip, text.split(","))):
        matching = {id: rule for id, rule in RULES.items() if fnmatchcase(id, pattern)}
        if not matching:
            hint = nearest(pattern, RULES) or "; kdissect fields rules lists them"
            raise Wrong(f"--rule {pattern}: there is no such rule{hint}")
        found |= matching
    if not found:
        raise Wrong("--rule: an id is missing; kdissect fields rules lists them")
    return list(found.values())


def _refuse_captures(given: dict[str, Any], option: str, hint: str = "") -> None:
    """Refuse arguments about a capture.

    :raises Wrong: a capture, or an option about one, is given.
    """
    refuse_choice(given, option)
    for name, other in {"exchange": "--exchange", **STORIES}.items():
        if given[name] is not None:
            raise Wrong(f"{option} and {other} are given: give only one of them")
    for path in (*given["more_files"], *given["files"]):
        raise Wrong(f"{option} reads no capture{hint or '; leave out ' + path}")


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
        hint = (
            codes
            or nearest(name, [each for each in by_name if each != "NONE"])
            or "; kdissect fields errors lists them"
        )
        raise Wrong(f"--error {text}: there is no such error{hint}")
    return error_page(known)


def print_error(given: dict[str, Any]) -> int:
    """Print the page of an error.

    :raises Wrong: it is unknown, or another option asks for something else.
    """
    page, form = error_of(given["error"]), given["form"]
    if form not in ("text", "ndjson"):
        raise Wrong(f"-T {form}: an error prints as text or ndjson")
    _refuse_captures(given, "--error")
    with open_output(given["output"]) as file:
        if form == "ndjson":
            file.write(json_line(page._asdict()))
        else:
            TextOutput(file, given["output"]).lines(error_lines(page))
    return 0
