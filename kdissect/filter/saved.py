"""Names of saved filters inside other filters. Such a name does not insert the saved filter. It is searched
as text, like any other word alone, and the author gets a note."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from kdissect.filter.computed import MACROS
from kdissect.filter.errors import FilterError
from kdissect.filter.field import plain
from kdissect.filter.fields import by_name
from kdissect.filter.syntax import Bare, Joined, Negated, Syntax, Word, parse


def hints_of_saved(text: str, named: Mapping[str, str]) -> tuple[str, ...]:
    """Notes about words that are names of saved filters.

    :param named: the saved filters by their name.
    """
    if not named:
        return ()
    return tuple(
        f"{word} is searched as text; the saved filter of that name is: {named[word]}"
        for word in searched(text)
        if word in named
    )


@lru_cache(16)
def searched(text: str) -> tuple[str, ...]:
    """The words of a filter that are searched as text, except words in quotes. Empty if the filter is
    wrong."""
    try:
        words = list(_alone(parse(text)))
    except FilterError:
        return ()
    known = {*by_name(), *map(plain, MACROS)}
    return tuple(
        dict.fromkeys(word.text for word in words if not word.quoted and plain(word.text) not in known)
    )


def _alone(syntax: Syntax) -> Iterator[Word]:
    if isinstance(syntax, Joined):
        for part in syntax.parts:
            yield from _alone(part)
    elif isinstance(syntax, Negated):
        yield from _alone(syntax.part)
    elif isinstance(syntax, Bare):
        yield syntax.word
