"""The row of ``doctor`` about Wireshark."""

from __future__ import annotations

from kdissect.wireshark.folders import find_program, folders_of, program_text
from kdissect.wireshark.installing import ABSENT, INSTALLED, places, state_of


def wireshark_row() -> tuple[str, str, str]:
    """Whether Wireshark is installed, and kdissect in it."""
    program = find_program()
    states = {place.kind: state_of(place) for place in places(folders_of(program))}
    if program is None and set(states.values()) == {ABSENT}:
        return "wireshark", "absent", "neither tshark nor Wireshark is found (optional)"
    told = ", ".join(f"{kind} {state}" for kind, state in states.items())
    if set(states.values()) == {INSTALLED}:
        return "wireshark", "ok", f"{program_text(program)}; {told}"
    return "wireshark", "absent", f"{program_text(program)}; {told}: kdissect wireshark install (optional)"
