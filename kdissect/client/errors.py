"""How the other side fails, and how a question cannot be asked."""

from __future__ import annotations


class OtherSideError(Exception):
    """A broker did not do what was asked of it: not there, not Kafka, not authenticated, garbage, an error.

    The text is one line that says what happened and what to do.
    """

    def __init__(self, message: str, *, closed: bool = False) -> None:
        super().__init__(message)
        self.closed = closed
        """Whether it closed the connection instead of answering: how a broker refuses a request that it
        does not know."""


class AskingError(Exception):
    """What the user asked for cannot be said to this broker: a version that neither side has, a field
    that the version does not have. The text is one line."""
