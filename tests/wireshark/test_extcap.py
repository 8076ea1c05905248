"""Answers in the extcap protocol."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from kdissect.wireshark.extcap import argument_lines, interface_lines, link_type_line

# As Wireshark cuts a sentence (extcap_parser.c).
SENTENCE = re.compile(r"(\w+) ((?:\{[^{}=]+=[^{}]*\})+)")


def parsed(line: str) -> tuple[str, dict[str, str]]:
    found = SENTENCE.fullmatch(line)
    assert found is not None, line
    return found[1], dict(re.findall(r"\{([^{}=]+)=([^{}]*)\}", found[2]))


@given(st.text(max_size=20), st.text(max_size=20))
def test_names_cannot_end_a_sentence(name: str, description: str) -> None:
    head, interface = interface_lines([(name, description)])
    assert parsed(head)[0] == "extcap"
    word, values = parsed(interface)
    assert word == "interface"
    assert values["value"].startswith("kdissect-")


def test_link_types_have_number_and_name() -> None:
    assert parsed(link_type_line(1)) == ("dlt", {"number": "1", "name": "EN10MB", "display": "Ethernet"})
    assert parsed(link_type_line(276))[1]["name"] == "LINUX_SLL2"


def test_arguments_count_from_0() -> None:
    found = [parsed(line) for line in argument_lines()]
    assert [word for word, _ in found] == ["arg"] * len(found)
    assert [values["number"] for _, values in found] == [str(at) for at in range(len(found))]
    assert all(values["call"].startswith("--") for _, values in found)
