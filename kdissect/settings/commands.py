"""Commands of the user: templates that are copied with values of the exchange under the cursor.

Nothing here imports Textual: the command line uses this too.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from string import Formatter

from kdissect.exchange import Exchange
from kdissect.present.nearest import nearest
from kdissect.present.sanitise import sanitise


def _first(names: list[str]) -> str | None:
    return names[0] if names else None


PLACEHOLDERS: Mapping[str, Callable[[Exchange], object]] = {
    "broker": lambda each: each.broker,
    "client": lambda each: each.client,
    "client_id": lambda each: each.client_id,
    "api": lambda each: each.api,
    "topic": lambda each: _first(each.topics),
    "group": lambda each: _first(each.groups),
    "transactional_id": lambda each: _first(each.transactional_ids),
    "correlation_id": lambda each: each.correlation_id,
    "number": lambda each: each.number,
}
"""The names that a template may have in braces. If there are several topics or groups, the value is the
first."""


class WrongTemplateError(ValueError):
    """A template cannot be filled in; the text is one line."""


def names_in(template: str) -> Iterator[str]:
    """The placeholders of a template.

    :raises WrongTemplateError: one of them is unknown, or its braces do not match.
    """
    return (name for _, name in _places(template))


def _places(template: str) -> Iterator[tuple[str, str]]:
    """The placeholders, each after the text before it. Earlier values in that text are :data:`_VALUE`."""
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise WrongTemplateError(f"{error}; two braces {{{{ stand for one") from None
    before = ""
    for text, name, form, conversion in parts:
        before += text
        if name is None:
            continue
        if form or conversion or name not in PLACEHOLDERS:
            there = "; there are " + ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
            hint = nearest(name, PLACEHOLDERS) or there
            raise WrongTemplateError(f"there is no placeholder {{{name}}}{hint}")
        if _is_quoted(before):
            raise WrongTemplateError(
                f"{{{name}}} is inside quotes: remove them, kdissect quotes values itself"
            )
        yield before, name
        before += _VALUE


_VALUE = "x"
_OPERATORS = frozenset("();<>|&")
"""The characters that end a command, or that group commands."""


def _may_be_option(before: str) -> bool:
    """Whether a value that begins with ``-`` after a text may be taken as an option. It is none after ``--``,
    nor if it continues a word: ``--group={group}``. A variable may be empty, so a value after one may begin a
    word."""
    lexer = shlex.shlex(f"{before}{_VALUE}".replace("\n", ";"), posix=True, punctuation_chars=True)
    lexer.commenters, lexer.whitespace_split = "", True
    *words, last = lexer
    start = max((at for at, word in enumerate(words, 1) if word and _OPERATORS.issuperset(word)), default=0)
    begun = last.removesuffix(_VALUE)
    return "--" not in words[start:] and (not begun.strip("-") or "$" in begun)


def _is_quoted(before: str) -> bool:
    """Whether the text leaves a quote of the shell open. There, the quotes of a value would end the outer
    ones."""
    quote, at = "", 0
    while at < len(before):
        character = before[at]
        if character == "\\" and quote != "'":
            at += 1
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"`":
            quote = character
        at += 1
    return bool(quote) or at > len(before) or "<<" in before


def filled_in(template: str, exchange: Exchange) -> str:
    """The command with the values of an exchange, each quoted for a shell.

    :raises WrongTemplateError: the exchange lacks a value, or a value cannot be pasted into a shell.
    """
    values = {}
    for before, name in _places(template):
        value = PLACEHOLDERS[name](exchange)
        if value is None or value == "":
            raise WrongTemplateError(f"this exchange has no {name}")
        if sanitise(str(value), None) != str(value):
            raise WrongTemplateError(f"the {name} has characters that cannot be shown: no command gets them")
        if str(value).startswith("-") and _may_be_option(before):
            raise WrongTemplateError(
                f"the {name} begins with -, so it may be an option: write -- or --name= before {{{name}}}"
            )
        values[name] = shlex.quote(str(value))
    return template.format(**values)
