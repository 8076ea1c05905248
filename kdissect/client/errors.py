"""Errors: the other side failed, or a question cannot be asked."""

from __future__ import annotations


class OtherSideError(Exception):
    """A broker did not do what the client asked: it is absent, is not Kafka, refuses the login, sends
    garbage, or sends an error.

    The text is one line that says what happened and what to do.
    """

    def __init__(self, message: str, *, closed: bool = False) -> None:
        super().__init__(message)
        self.closed = closed
        """Whether it closed the connection instead of answering: how a broker refuses a request that it
        does not know."""


class AskingError(Exception):
    """This broker cannot be asked for what the user wants: a version that neither side has, a field
    that the version does not have. The text is one line."""
