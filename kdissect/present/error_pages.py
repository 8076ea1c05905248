"""A page about one of Kafka's errors, as text and as a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kdissect.exchange import Exchange
from kdissect.insight.errors import causes
from kdissect.present.paragraphs import WIDTH, paragraph
from kdissect.protocol.errors import FATAL, RETRIABLE, KafkaError, errors


class ErrorPage(NamedTuple):
    """One error, for people."""

    code: int
    name: str
    error_class: str | None
    """The class of the error; None for code 0, which is no error."""
    meaning: str
    routine: str | None
    """How long it is an ordinary step; None if it never is."""
    causes: tuple[str, ...]
    do: str | None


_CLASSES = {
    FATAL: "Fatal: the client gives the request up.",
    RETRIABLE: "Retriable: the client goes on by itself.",
}


def error_page(error: KafkaError) -> ErrorPage:
    """The page of an error."""
    known = causes()[error.name]
    return ErrorPage(
        error.code,
        error.name,
        error.error_class or None,
        error.meaning,
        None if error.bound is None else error.bound.words(),
        known.causes,
        known.do or None,
    )


def explained(exchange: Exchange) -> Iterator[str]:
    """The pages of the errors of an exchange, each once, for printing below it."""
    known = errors()
    for code in dict.fromkeys(code for code, _ in exchange.error_codes()):
        if code in known:
            for line in error_lines(error_page(known[code])):
                yield f"  {line}"


def error_lines(page: ErrorPage, room: int = WIDTH) -> Iterator[str]:
    """The lines of the page.

    :param room: cells of a line.
    """
    yield f"{page.name}   code {page.code}"
    yield from paragraph(page.meaning, "  ", room=room)
    if page.error_class is not None:
        yield from paragraph(_CLASSES[page.error_class], "  ", room=room)
    if page.routine is not None:
        yield from paragraph(f"An ordinary step {page.routine}.", "  ", room=room)
    for at, cause in enumerate(page.causes):
        yield from paragraph(cause, "  ", "why" if at == 0 else "", room=room)
    if page.do is not None:
        yield from paragraph(page.do, "  ", "do", room=room)
    elif page.error_class is not None:
        yield from paragraph("nothing", "  ", "do", room=room)
