"""Ten thousand expressions that nobody would write: each compiles, or fails with a position in it."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from kdissect.analysis.slow import Slowness
from kdissect.filter.compiled import Filter, compile_filter
from kdissect.filter.complete import complete
from kdissect.filter.errors import FilterError
from kdissect.filter.fields import own_fields
from tests.amount import times
from tests.filter.exchanges import known, stray_fault

Make = Callable[[random.Random], str]

NAMES = [
    *(name for field in own_fields() for name in (field.name, *field.aliases)),
    *("fetch.response.responses.partitions.highWatermark", "throttleTimeMs", "errorCode", "name", "leader"),
    *("topics[0]", "client_id[0:3]", "partition[-1]", "record.key[1-2]", "topics[", "topics[]", "topics[:]"),
    *("fetch.request.topics[0].partitions[-1].partition", "fetch[0].x", "topics[*][2:]", "topics[-]", "[0]"),
    *("request.header.clientId", "fetch.request.header.", "header", "fetch.request.body.maxWaitMs"),
    *("fetch.response", "fetch.", "record.header.x", "no_response", "slow", "nothing", "a.b", "..", "."),
]
VALUES = [
    *(
        "0",
        "-1",
        "3.5",
        "1e6",
        "1e999",
        "1e9999",
        "0x10",
        "0x",
        "50ms",
        "5 ms",
        "1GiB",
        "9" * 45,
        "-",
        "+",
        "½",
    ),
    *(
        "Fetch",
        "NOT_COORDINATOR",
        "gap",
        "true",
        "TRUE",
        "12:03:01",
        "99:99",
        "2023-11-14T22:13Z",
        "0001-01-01",
    ),
    *(
        "10.0.0.7",
        "10.0.0.0/8",
        "10.0.0.0/99",
        "::1",
        "[::1]:9092",
        "[::1",
        "::/0",
        "1.2.3.4:5:6",
        "all",
        "any",
    ),
    *("latency", "response_size", "group", "topics[0]", "throttleTimeMs", "fetch.highWatermark", "broker.ip"),
    *("9999-12-31T23:59:59+23:59", '"text"', "'text'", '"\\xff"', '"\\u20ac"', '"\\ud800"', '"', "'", '"\\'),
    *(
        "'('",
        "'(a+)+$'",
        "'[[:alpha:]]{1000}{1000}'",
        "'\\pL{1000}'",
        "r'\\d'",
        "'\udcff'",
        "\udcff",
        "ı",
        "ﬁ",
    ),
]
OPERATORS = [
    *(
        "==",
        "!=",
        "===",
        "!==",
        "<",
        "<=",
        ">",
        ">=",
        "contains",
        "matches",
        "~",
        "in",
        "not in",
        "eq",
        "ANY_NE",
    ),
    *("=", "&", "|", "=~", "<>", "!"),
]
GLUE = ["and", "or", "not", "&&", "||", "!", "any", "all", "(", ")", "{", "}", ",", "..", " ", "AND", "Not"]
CHARACTERS = "aeF0159.:-_ \t\n\"'\\(){}[],<>=!&|~+*?^$#@/;%µΩ\x00\x1b\u2028\ud800\udc80\udcff🦆"


def from_grammar(dice: random.Random, depth: int = 0) -> str:
    """An expression that is mostly right."""
    roll = dice.random()
    if depth < 6 and roll < 0.2:
        return f"{from_grammar(dice, depth + 1)} {dice.choice(GLUE[:5])} {from_grammar(dice, depth + 1)}"
    if depth < 6 and roll < 0.3:
        return f"({from_grammar(dice, depth + 1)})"
    if depth < 6 and roll < 0.4:
        return f"not {from_grammar(dice, depth + 1)}"
    if roll < 0.55:
        return dice.choice(NAMES + VALUES)
    if roll < 0.7:
        items = [dice.choice(VALUES) for _ in range(dice.randrange(4))]
        items += [f"{dice.choice(VALUES)}..{dice.choice(VALUES)}" for _ in range(dice.randrange(2))]
        return f"{dice.choice(NAMES)} in {{{', '.join(items)}}}"
    quantifier = dice.choice(("", "", "any ", "ALL "))
    return f"{quantifier}{dice.choice(NAMES)} {dice.choice(OPERATORS)} {dice.choice(VALUES + NAMES)}"


def from_pieces(dice: random.Random) -> str:
    """Words in any order."""
    pieces = NAMES + VALUES + OPERATORS + GLUE
    return dice.choice((" ", "")).join(dice.choice(pieces) for _ in range(dice.randrange(1, 12)))


def from_characters(dice: random.Random) -> str:
    return "".join(dice.choice(CHARACTERS) for _ in range(dice.randrange(40)))


def changed(dice: random.Random) -> str:
    """A right expression with one character changed, or cut off."""
    text = from_grammar(dice)
    at = dice.randrange(len(text) + 1)
    return text[:at] + dice.choice(("", dice.choice(CHARACTERS))) + text[at + dice.randrange(2) :]


def tried(text: str) -> Filter | FilterError:
    """What becomes of a text; anything else that is raised is a defect."""
    try:
        return compile_filter(text, slowness=Slowness(1))
    except FilterError as error:
        return error


def check_error(error: FilterError, text: str) -> None:
    """It tells what is wrong and where, in one line that is safe to show."""
    assert error.text == text
    assert 0 <= error.position <= len(text)
    assert error.reason
    assert "\n" not in error.reason
    line, carets = error.excerpt()
    assert line.isprintable()
    assert carets.strip(" ~") == "^"


@pytest.mark.parametrize("make", [from_grammar, from_pieces, from_characters, changed])
def test_fuzzed_expressions_compile_or_tell_a_position(make: Make) -> None:
    dice = random.Random(7)
    compiled = 0
    for _ in range(times(1_000, 2_500)):
        text = make(dice)
        found = tried(text)
        if isinstance(found, FilterError):
            check_error(found, text)
            continue
        compiled += 1
        if compiled % 10 == 0:
            assert {found.matches(exchange) for exchange in known()} <= {True, False}
            assert found.matches_fault(stray_fault()) in (True, False)
    assert compiled > 20


@pytest.mark.parametrize("make", [from_grammar, from_pieces, from_characters, changed])
def test_completion_of_fuzzed_expressions_never_fails(make: Make) -> None:
    dice = random.Random(11)
    for _ in range(300):
        text = make(dice)
        cursor = dice.randrange(len(text) + 1)
        for found in complete(text, cursor)[:5]:
            assert 0 <= found.start <= found.end == cursor


@pytest.mark.parametrize(
    "text",
    [
        "(" * 4_000,
        ")" * 4_000,
        "!" * 4_000,
        "not " * 1_000,
        "a " * 2_000,
        "a or " * 800 + "a",
        "(a or " * 500,
        "partition in {" + "1," * 2_000 + "1}",
        '"' * 4_001,
        "\\" * 4_000,
        "." * 4_000,
        "a." * 2_000,
        "topics" + "[0]" * 1_000,
        "topics[" + "9" * 4_000 + "]",
        "a[0]." * 800,
        "client == " + ":" * 4_000,
        "client in {" + "::/0, " * 600 + "::}",
        "all " * 1_000,
        "partition == partition and " * 150 + "error",
        "1" * 4_000,
        "partition == " + "1" * 4_000,
        'topic matches "' + "(" * 4_000 + '"',
        'topic matches "' + "(a*)*" * 800 + '"',
        'topic matches "' + "a{1000}" * 500 + '"',
    ],
)
def test_long_expressions_are_answered_at_once(text: str) -> None:
    found = tried(text)
    if isinstance(found, FilterError):
        check_error(found, text)
        return
    for exchange in known():
        found.matches(exchange)
