from __future__ import annotations

from kdissect.embedded.decoded import Context, LeadingWord, opaque, plain, read_struct
from kdissect.faults import fault
from kdissect.model import Node
from kdissect.protocol.cursor import Cursor
from tests.protocol.structs import struct_of

OLD = struct_of("data 1 of 9.8\n    id  int16  0+\n", version=1)
NEW = struct_of("data 1 of 9.9\n    id  int16  0+\n    word  string  0+\n", version=1)
WORD = LeadingWord("(version)", "int16", 1, 0, 2)


def leaves(nodes: list[Node]) -> list[tuple[int, int]]:
    out = []
    for node in nodes:
        out += leaves(node.children) if node.children else [(node.start, node.end)]
    return out


def test_the_first_candidate_that_fits_to_the_last_byte_is_taken() -> None:
    found = read_struct("Thing", 1, Cursor(b"\0\7"), (), (NEW, OLD))
    assert (found.values, found.struct, found.is_exact, found.era) == ({"id": 7}, OLD, True, True)
    found = read_struct("Thing", 1, Cursor(b"\0\7\0\1x"), (), (NEW, OLD))
    assert (found.values, found.struct, found.era) == ({"id": 7, "word": "x"}, NEW, False)


def test_where_none_fits_the_first_stands_with_what_is_wrong() -> None:
    found = read_struct("Thing", 1, Cursor(b"\0\7\0\5x"), (), (NEW, OLD))
    assert (found.values, found.struct, found.is_exact) == ({"id": 7}, NEW, False)
    (problem,) = found.faults
    assert (problem.kind, problem.message) == ("truncated", "Thing: announces 5 bytes, but 1 is left")
    assert found.remainder == b"\0\5x"
    assert found.json()["_remainder"] == "AAV4"


def test_bytes_after_the_last_field_are_a_remainder_and_a_fault() -> None:
    found = read_struct("Thing", 1, Cursor(b"\0\7\xff"), (), (OLD,))
    assert [(each.kind, each.message, each.offset) for each in found.faults] == [
        ("remainder", "Thing: 1 byte is left after the last field", 2)
    ]
    assert found.json() == {"id": 7, "_remainder": "/w=="}


def test_defects_that_did_not_stop_the_reading_are_faults() -> None:
    found = read_struct("Thing", 1, Cursor(b"\0\7\0\1\xff"), (), (NEW,))
    assert [each.kind for each in found.faults] == ["not-utf8"]
    assert not found.is_exact


def test_the_words_before_it_and_what_follows_are_drawn_and_cover_every_byte() -> None:
    data = b"\0\1\0\7\xff\xff"
    cursor = Cursor(data, 2)
    found = read_struct("Thing", 1, cursor, (WORD,), (OLD,))
    nodes = found.draw()
    assert [node.name for node in nodes] == ["(version)", "Thing", "_remainder"]
    assert leaves(nodes) == [(0, 2), (2, 4), (4, 6)]
    assert nodes[-1].fault == found.faults[0]
    assert leaves(found.draw(b"???" + data, 3)) == [(3, 5), (5, 7), (7, 9)]


def test_a_struct_that_breaks_off_is_drawn_as_far_as_it_goes() -> None:
    found = read_struct("Thing", 1, Cursor(b"\0\7\0\5x"), (), (NEW,))
    thing, rest = found.draw()
    assert (thing.is_decoded, thing.fault and thing.fault.kind) == (False, "truncated")
    assert (rest.name, rest.value) == ("_remainder", b"\0\5x")


def test_opaque_bytes_say_why() -> None:
    found = opaque("Thing", 3, b"\0\1ab", [WORD], "unknown-version", "version 3")
    assert found.faults == (fault("unknown-version", "Thing: version 3", offset=2),)
    assert (found.json(), found.remainder, found.is_exact) == ({"_remainder": "YWI="}, b"ab", False)
    assert leaves(found.draw()) == [(0, 2), (2, 4)]
    assert opaque("", None, b"", (), "embedded", "empty").json() == {}


def test_whoever_presents_renders_the_struct() -> None:
    found = read_struct("Thing", 1, Cursor(b"\0\7"), (), (OLD,))._replace(context=Context(assignor="range"))
    seen = []

    def render(*given: object) -> dict[str, object]:
        seen.append(given)
        return {}

    assert found.json(render) == {}
    assert seen == [(OLD, {"id": 7}, b"", Context(assignor="range"))]
    assert plain(OLD, {"id": 7}, b"", Context()) == {"id": 7}
