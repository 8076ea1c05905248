"""The positions of the fields that limit the wait of a long poll, found once for each layout.

A Fetch or ShareFetch names the longest wait (``maxWaitMs``) and the bytes that end it sooner (``minBytes``).
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

from kdissect.protocol.plan import STRING, WIDTHS
from kdissect.protocol.schema import Struct


@cache
def place_of_wait(struct: Struct) -> int | None:
    """The position of ``maxWaitMs`` in the body of a request; ``minBytes`` follows it, and both have 4 bytes.
    None if the position depends on the values before them."""
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
