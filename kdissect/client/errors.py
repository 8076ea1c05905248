"""Errors: the other side failed, or a request cannot be made."""

from __future__ import annotations


class OtherSideError(Exception):
    """A broker did not do what the client asked: it is absent, is not Kafka, refuses the login, sends
    garbage, or sends an error.

    The text is one line that says what happened and what to do.
    """

    def __init__(self, message: str, *, closed: bool = False) -> None:
        super().__init__(message)
        self.closed = closed
        """Whether the broker closed the connection instead of answering: brokers refuse unknown requests in
        this way."""


class AskingError(Exception):
    """This broker cannot do what the user wants: it lacks the version, or the version lacks a field. The text
    is one line."""
