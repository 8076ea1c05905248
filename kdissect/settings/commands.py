"""Commands of the user: templates that are copied with values of the exchange under the cursor.

Nothing here imports Textual: the command line reads this too.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from string import Formatter

from kdissect.exchange import Exchange
from kdissect.present.nearest import nearest


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
"""What a template may name in braces. Of several topics or groups it is the first."""
_PLAIN = re.compile(r"[^\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]*")
"""Text without control characters: in a shell they do harm whatever is quoted."""


class WrongTemplateError(ValueError):
    """A template cannot be filled in; the text is one line."""


def names_in(template: str) -> Iterator[str]:
    """The placeholders of a template.

    :raises WrongTemplateError: it has one that is not known, or its braces do not belong together.
    """
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise WrongTemplateError(f"{error}; two braces {{{{ stand for one") from None
    for _, name, form, conversion in parts:
        if name is None:
            continue
        if form or conversion or name not in PLACEHOLDERS:
            raise WrongTemplateError(f"there is no placeholder {{{name}}}{nearest(name, PLACEHOLDERS)}")
        yield name


def filled_in(template: str, exchange: Exchange) -> str:
    """The command with values of an exchange, each quoted for a shell.

    :raises WrongTemplateError: the exchange lacks a value, or one has control characters.
    """
    values = {}
    for name in names_in(template):
        value = PLACEHOLDERS[name](exchange)
        if value is None or value == "":
            raise WrongTemplateError(f"this exchange has no {name}")
        if not _PLAIN.fullmatch(str(value)):
            raise WrongTemplateError(f"the {name} has control characters, which no command gets")
        values[name] = shlex.quote(str(value))
    return template.format(**values)
