"""Text → syntax: the structure of a filter, before its names are resolved.

The grammar is LALR, read by lark. A word is anything between blanks, brackets, commas, quotes and operators,
so that ``10.0.0.0/8``, ``12:03:01``, ``50ms``, ``connect-offsets`` and ``topics[0].name`` need no quotes.
Words that are operators (``and``, ``in``, ``contains`` …) must be quoted to be values. ``any`` and ``all``
must be quoted only to be searched as text.

In ``"…"`` and ``'…'`` a backslash begins ``\\n``, ``\\t``, ``\\xff``, ``\\u20ac`` or stands before the
character itself. In ``r"…"`` and in regular expressions it is a backslash.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from kdissect.durations import DURATIONS
from kdissect.filter.errors import FilterError
from kdissect.filter.units import SIZES

if TYPE_CHECKING:
    from lark import Lark, Token

LONGEST = 4_096
"""The most characters of a filter."""
DEEPEST = 64
"""The deepest nesting of parentheses and negations."""

GRAMMAR = r"""
start: or_
or_: and_ (OR and_)*
and_: not_ (AND not_)*
?not_: NOT not_                       -> negated
     | "(" or_ ")"                    -> group
     | QUANTIFIER? WORD (OPERATOR | CONTAINS | MATCHES) value -> compared
     | QUANTIFIER? WORD NOT? IN ("{" item ("," item)* "}" | item) -> compared
     | text+                          -> bare
item: value (RANGE value)?
value: (WORD | QUANTIFIER) WORD? | STRING
text: WORD | STRING

OPERATOR.3: /===|!==|==|!=|<=|>=|<|>|(?:any_eq|all_eq|any_ne|all_ne|eq|ne|gt|lt|ge|le)(?!IN_A_WORD)/i
CONTAINS.3: /contains(?!IN_A_WORD)/i
MATCHES.3: /~|matches(?!IN_A_WORD)/i
IN.3: /in(?!IN_A_WORD)/i
AND.3: /&&|and(?!IN_A_WORD)/i
OR.3: /\|\||or(?!IN_A_WORD)/i
NOT.3: /!(?!=)|not(?!IN_A_WORD)/i
QUANTIFIER.3: /any(?!IN_A_WORD)|all(?!IN_A_WORD)/i
RANGE.2: ".."
STRING.4: /r?"(?:[^"\\]|\\.)*"|r?'(?:[^'\\]|\\.)*'/s
WORD.1: /(?:(?!\.)IN_A_WORD|\.(?!\.))+/
%ignore /\s+/
""".replace("IN_A_WORD", r"""[^\s(){},"'=<>!&|~]""")

OPERATORS = {"eq": "==", "any_eq": "==", "ne": "!=", "all_ne": "!=", "any_ne": "!==", "all_eq": "==="} | {
    "gt": ">",
    "lt": "<",
    "ge": ">=",
    "le": "<=",
    "~": "matches",
}
"""Other spellings of operators, with the spelling that is used here."""

SPELLINGS = {
    "AND": "and",
    "OR": "or",
    "NOT": "not",
    "LPAR": "(",
    "RPAR": ")",
    "LBRACE": "{",
    "RBRACE": "}",
    "COMMA": ",",
    "RANGE": "..",
    "OPERATOR": "==",
    "CONTAINS": "contains",
    "MATCHES": "matches",
    "IN": "in",
    "QUANTIFIER": "any",
}
"""The spelling of each terminal of the grammar, except words and strings."""


class Word(NamedTuple):
    """A word or string."""

    text: str
    """The word; for a string, without quotes and escapes."""
    raw: str
    """The characters between the quotes of a string."""
    quoted: bool
    start: int
    end: int

    def error(self, reason: str) -> FilterError:
        """An error at the word's position."""
        return FilterError(reason, self.start, self.end - self.start)


class Joined(NamedTuple):
    """``a and b and c``, ``a or b or c``."""

    operator: str
    parts: tuple[Syntax, ...]


class Negated(NamedTuple):
    """``not a``."""

    part: Syntax


class ComparedField(NamedTuple):
    """``field == value``, ``field in {value, low..high}``, with or without ``any`` or ``all`` before it."""

    field: Word
    operator: str
    """One of ``== != === !== < <= > >= contains matches in``."""
    at: Word
    """The operator as written, with its position."""
    items: tuple[tuple[Word, Word | None], ...]
    """Values, and the upper end of each that is a range."""
    every: bool | None = None
    """True after ``all``, False after ``any``, None without either."""


class Bare(NamedTuple):
    """A word alone."""

    word: Word


Syntax = Joined | Negated | ComparedField | Bare


@cache
def parser() -> Lark:
    """The parser. It is made for the first filter: importing lark takes longer than importing most of
    kdissect."""
    from lark import Lark

    return Lark(GRAMMAR, parser="lalr", lexer="basic", maybe_placeholders=False, keep_all_tokens=False)


def parse(text: str) -> Syntax:
    """:raises FilterError: the text is no filter."""
    _check(text)
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

    try:
        tree = parser().parse(text)
    except UnexpectedCharacters as error:
        raise _unreadable(text, int(error.pos_in_stream or 0)) from None
    except UnexpectedToken as error:
        raise _unexpected(text, error) from None
    except UnexpectedInput as error:
        raise FilterError("this is not a filter", max(0, error.pos_in_stream or 0)) from None
    return _build(tree, 0)


def _check(text: str) -> None:
    if len(text) > LONGEST:
        raise FilterError(f"the filter has {len(text):,} characters; {LONGEST:,} are the limit", LONGEST)
    if not text.strip():
        raise FilterError("the filter is empty", 0)
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise FilterError("this is not a valid character", error.start) from None


def _unreadable(text: str, position: int) -> FilterError:
    """The error of characters that begin no token."""
    character = text[position]
    if character in "\"'":
        return FilterError("the closing quote is missing", position, len(text) - position)
    hints = {"=": "'=='", "&": "'&&' or 'and'", "|": "'||' or 'or'"}
    meant = f"; did you mean {hints[character]}?" if character in hints else ""
    return FilterError(f"{character!r} is not expected here{meant}", position)


def _unexpected(text: str, error: Any) -> FilterError:
    """The error of a token that cannot follow the text before it."""
    token = error.token
    if token.type == "$END":
        return FilterError(
            f"the filter is incomplete: {_accepted_text(accepted_after(text))} should follow", len(text)
        )
    if token.type in ("OPERATOR", "CONTAINS", "MATCHES", "IN"):
        return FilterError(f"there is no field before {token!s}", token.start_pos, len(token))
    reason = f"{_accepted_text(accepted_after(text[: token.start_pos]))} should be here"
    return FilterError(reason, token.start_pos, len(token))


def accepted_after(text: str) -> set[str]:
    """The terminals that the grammar accepts after this text; empty if the text itself is wrong."""
    from lark.exceptions import UnexpectedInput

    reading = parser().parse_interactive(text)
    try:
        reading.exhaust_lexer()
    except UnexpectedInput:
        return set()
    return set(reading.accepts())  # type: ignore[no-untyped-call]


def _accepted_text(accepted: set[str]) -> str:
    """The accepted terminals, in words."""
    if "LPAR" in accepted:
        return "a field or a word"
    if accepted == {"WORD"}:
        return "a field"
    if accepted <= {"STRING", "WORD", "QUANTIFIER"}:
        return "a value"
    if accepted == {"STRING", "WORD", "QUANTIFIER", "LBRACE"}:
        return "a value or '{'"
    # After a complete comparison, do not list the operators and units that could also follow.
    told = {"AND", "OR", "RPAR"} if "AND" in accepted else set(SPELLINGS)
    words = [f"'{text}'" for each, text in SPELLINGS.items() if each in accepted & told]
    words += ["the end"] if "$END" in accepted else []
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


# -- lark's tree → ours -----------------------------------------------------------------------------


def _build(tree: Any, depth: int) -> Syntax:
    kind, children = tree.data, tree.children
    if kind == "start":
        return _build(children[0], depth)
    if kind in ("or_", "and_"):
        parts = tuple(_build(each, depth) for each in children if not _is_token(each))
        return parts[0] if len(parts) == 1 else Joined(kind[:-1], parts)
    if kind == "group":
        return _build(children[0], _deeper(depth, _first(children[0])))
    if kind == "negated":
        return Negated(_build(children[1], _deeper(depth, children[0].start_pos)))
    if kind == "bare":
        words = tuple(Bare(_word(each.children[0])) for each in children)
        return words[0] if len(words) == 1 else Joined("and", words)
    return _compared(children)


def _compared(children: list[Any]) -> Syntax:
    *before, operator = (each for each in children if _is_token(each))
    every = before.pop(0).lower() == "all" if before[0].type == "QUANTIFIER" else None
    items = tuple(_item(each) for each in children if not _is_token(each))
    found = ComparedField(_word(before[0]), _operator(operator), _word(operator), items, every)
    return Negated(found) if len(before) > 1 else found


def _is_token(child: Any) -> bool:
    return hasattr(child, "start_pos")


def _first(tree: Any) -> int:
    """Where the first token of a tree begins."""
    while not _is_token(tree):
        tree = tree.children[0]
    return int(tree.start_pos)


def _deeper(depth: int, position: int) -> int:
    if depth >= DEEPEST:
        raise FilterError(f"nested deeper than {DEEPEST}", position)
    return depth + 1


def _operator(token: Token) -> str:
    text = token.lower()
    return OPERATORS.get(text, text)


def _item(tree: Any) -> tuple[Word, Word | None]:
    """A value, or the two ends of a range."""
    values = [_value(each.children) for each in tree.children if not _is_token(each)] or [
        _value(tree.children)
    ]
    return values[0], values[1] if len(values) > 1 else None


def _value(tokens: list[Token]) -> Word:
    first = _word(tokens[0])
    if len(tokens) == 1:
        return first
    unit = _word(tokens[1])
    if unit.text not in DURATIONS and unit.text not in SIZES:
        raise unit.error("'and', 'or' or the end should be here; put a value of several words in quotes")
    text = first.text + unit.text
    return Word(text, text, False, first.start, unit.end)


_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SHORT = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}


def _word(token: Token) -> Word:
    text, start = str(token), int(token.start_pos or 0)
    end = start + len(text)
    if token.type != "STRING":
        return Word(text, text, False, start, end)
    is_raw = text[0] == "r"
    inside = text[1 + is_raw : -1]
    if is_raw:
        return Word(inside, inside, True, start, end)
    try:
        return Word(_ESCAPE.sub(_unescaped, inside), inside, True, start, end)
    except ValueError:
        raise FilterError("the string has an escape that is not a character", start, end - start) from None


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if len(code) == 1:
        return _SHORT.get(code, code)
    number = int(code[1:], 16)
    if code[0] == "x" and number >= 0x80:
        return chr(0xDC00 + number)  # the byte itself (PEP 383), not the character of that number
    if 0xD800 <= number < 0xE000:
        raise ValueError
    return chr(number)
