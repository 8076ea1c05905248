"""``explain --rule ID``: the page of a rule."""

from __future__ import annotations

from kdissect.cli.errors import Wrong
from kdissect.cli.output import TextOutput, open_output
from kdissect.insight.catalogue import RULES
from kdissect.insight.rule import Rule
from kdissect.present.findings_text import page_lines
from kdissect.present.nearest import nearest


def rule_of(id: str, option: str) -> Rule:
    """A rule by its id.

    :raises Wrong: there is none; the text names the nearest.
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
