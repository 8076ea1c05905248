"""The errors of a live capture."""

from __future__ import annotations


class LiveError(Exception):
    """A capture cannot begin. The text has one line: what is wrong, and what to do."""


class BadFilterError(LiveError):
    """The capture filter is wrong."""


class NoCaptureError(LiveError):
    """The input from another program or host is no capture."""


class NoInterfaceError(LiveError):
    """The interface does not exist, or packets cannot be captured from it."""


class NotPermittedError(LiveError):
    """The system does not permit capturing."""


class NotPermittedThereError(NotPermittedError):
    """Another system does not permit capturing; the text says what to do."""
