"""The positions of the fields that limit the wait of a long poll, found once for each layout.

A Fetch or ShareFetch names the longest wait (``maxWaitMs``) and the bytes that end it sooner (``minBytes``).
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

from kdissect.protocol.plan import ARRAY, COMPACT_ARRAY, STRING, STRUCT, WIDTHS, least_bytes
from kdissect.protocol.schema import Struct


@cache
def place_of_wait(struct: Struct) -> int | None:
    """Where in the body of a request ``maxWaitMs`` stands, with ``minBytes`` behind it; both have 4 bytes.
    None where that depends on what is before them."""
    at, names = 0, [field.name for field in struct.fields]
    if ("maxWaitMs", "minBytes") not in pairwise(names):
        return None
    for opcode, name, _ in struct.plan[1]:
        if name == "maxWaitMs":
            return at
        if opcode >= STRING:
            return None
        at += WIDTHS[opcode]
    return None


@cache
def least_with_topic(struct: Struct) -> int:
    """The fewest bytes of a response that tells anything of a topic; 0 where that is not known."""
    for opcode, name, argument in struct.plan[1]:
        if name == "responses" and opcode in (ARRAY, COMPACT_ARRAY):
            return least_bytes(STRUCT, struct.plan) + int(argument[3])
    return 0
