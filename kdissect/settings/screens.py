"""What a user has set for the screens."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from kdissect.settings.coloring import ColoringRule
from kdissect.settings.session import LastSession

WENT_BACK = 64
"""The exit code of screens that ``kdissect diff`` opened, when the user goes back to it."""


class Rules(NamedTuple):
    """What is configured of the rules that findings come from (``[findings]``)."""

    thresholds: Mapping[str, Mapping[str, float]] = {}
    """By rule."""
    ignored: Collection[str] = ()
    """Rules that are not run, by id or pattern."""


class Settings(NamedTuple):
    """From the configuration and the command line."""

    time: str = "r"
    """The form of times (:data:`kdissect.present.form.TIMES`)."""
    theme: str | None = None
    """The name of a theme that is known."""
    columns: tuple[str, ...] = ()
    """Those of the list of exchanges; none for as many as there is room for."""
    keys: Mapping[str, str] = {}
    """Actions' keys that are not the default ones."""
    filter: str = ""
    """The display filter to begin with."""
    slow_ms: int | None = None
    """What takes longer is slow; None: what takes longer than nearly all of its API."""
    rules: Rules = Rules()
    """What is configured of the rules that findings come from."""
    page: str | None = None
    """The screen to begin with; None for what happened, or with a filter the exchanges that it shows."""
    before: LastSession = LastSession()
    """How the screens were left the last time; what is set here otherwise wins."""
    is_first: bool = False
    """Whether the screens were never used before."""
    commands: Mapping[str, str] = {}
    """Templates of commands that can be copied, by name."""
    coloring: tuple[ColoringRule, ...] = ()
    """Rules that colour rows of the list of exchanges."""
    compared_as: str = ""
    """What the screen of differences calls the capture, if that one opened these: ``BEFORE old.pcapng``."""
    mistakes: tuple[tuple[str, ...], ...] = ()
    """What is wrong in the configuration, each in some lines. The screens use the defaults instead."""
