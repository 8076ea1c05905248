"""Why a capture cannot begin, or ended."""

from __future__ import annotations


class LiveError(Exception):
    """A capture cannot begin. The text has one line: what is wrong, and the way out."""


class BadFilterError(LiveError):
    """The capture filter is wrong."""


class NoCaptureError(LiveError):
    """The input from another program or host is no capture."""


class NoInterfaceError(LiveError):
    """There is no such interface, or it cannot be captured from."""


class NotPermittedError(LiveError):
    """The system does not permit it."""


class NotPermittedThereError(NotPermittedError):
    """Another system does not permit it; the text tells the way out."""
