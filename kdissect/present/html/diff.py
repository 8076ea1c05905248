"""``kdissect diff -T html``: the changes between two captures, as a page."""

from __future__ import annotations

from collections.abc import Sequence

from kdissect.insight.difference import FINDING, Difference
from kdissect.present.diffs import measured
from kdissect.present.html.page import page, section, switch, table, text

_TITLES = {
    FINDING: "Findings",
    "api": "APIs",
    "broker": "Brokers",
    "client": "Clients",
    "topic": "Topics",
    "group": "Groups",
}


def diff_page(before: str, after: str, found: Sequence[Difference], summary: str) -> str:
    """The page.

    :param before: the name of a file.
    :param after: the name of the other.
    :param summary: the result, in a sentence.
    """
    head = (
        f'<header>{switch()}<p class="brand">kdissect diff</p><h1>What changed</h1>'
        f'<p class="verdict">{text(summary[:1].upper() + summary[1:], None)}.</p>'
        f'<dl class="facts"><dt>before</dt><dd>{text(before)}</dd><dt>after</dt><dd>{text(after)}</dd></dl>'
        "</header>"
    )
    parts = [_section(area, [each for each in found if each.area == area]) for area in _TITLES]
    return page("kdissect diff", [head, '<main id="content">', *parts, "</main>"])


def _section(area: str, found: Sequence[Difference]) -> str:
    if area == FINDING:
        return section(area, _TITLES[area], map(_card, found))
    rows = [
        (
            each.subject,
            each.what,
            (measured(each, each.before), each.before),
            (measured(each, each.after), each.after),
            each.delta_text,
            each.verdict,
        )
        for each in found
    ]
    headings = (area, "what", "before", "after", "change", "verdict")
    return section(area, _TITLES[area], [table(headings, rows, f"{_TITLES[area]} that changed", (2, 3))])


def _card(each: Difference) -> str:
    values = " → ".join(filter(None, (measured(each, each.before), measured(each, each.after))))
    return (
        f'<article class="card {text(each.verdict)}"><h3><span class="word">{text(each.verdict)}</span>'
        f'<span>{text(each.what)}</span><span class="measure">{text(values)}</span></h3>'
        f'<p class="where">{text(each.subject, None)}</p><p>{text(each.delta_text, None)}</p></article>'
    )
