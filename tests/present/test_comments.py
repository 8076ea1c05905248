"""What kdissect says of packets, as one line that people and programs read."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from kdissect.insight.finding import EvidenceStep, Finding, FindingSubject
from kdissect.present.columns import Column
from kdissect.present.comments import _text, finding_comments, with_packets
from kdissect.present.sanitise import sanitise

COLUMN = Column("client_id", "text", "", lambda source, _: source)


def unquoted(text: str) -> str:
    if not text.startswith('"'):
        return text
    return re.sub(r"\\(.)", r"\1", text[1:-1])


@given(st.text(max_size=40))
def test_a_value_reads_back_as_it_is_shown(value: str) -> None:
    text = _text(COLUMN, value)
    assert unquoted(text) == sanitise(value, None)
    assert text.isprintable()
    assert text.startswith('"') or not re.search(r'[\s"=]', text)


def finding(message: str, *steps: EvidenceStep) -> Finding:
    return Finding(
        *("rebalance-long", "warning", "certain", "groups", FindingSubject(group="orders"), message),
        exchanges=(4, 9),
        steps=steps,
    )


def test_exchanges_of_a_finding_tell_their_step() -> None:
    said = dict(finding_comments(finding("It took long.", EvidenceStep(0, "coop1 asked for it", 9))))
    assert said == {
        4: "kdissect warning rebalance-long: group orders: It took long.",
        9: "kdissect warning rebalance-long: group orders: coop1 asked for it",
        None: "kdissect warning rebalance-long: group orders: It took long.",
    }


def test_names_from_the_wire_do_not_end_the_line() -> None:
    for _, text in finding_comments(finding("of a\nb\x1b[2J\u202e")):
        assert text.isprintable()


def test_packets_that_are_not_there_are_not_told() -> None:
    assert with_packets("kdissect exchange: number=1", (7, None)) == (
        "kdissect exchange: number=1 request_packet=7"
    )
