"""The user's settings of the screens."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from kdissect.settings.coloring import ColoringRule
from kdissect.settings.session import LastSession

WENT_BACK = 64
"""The exit code of screens that ``kdissect diff`` opened, when the user goes back to it."""


class Rules(NamedTuple):
    """The configuration of the rules that make findings (``[findings]``)."""

    thresholds: Mapping[str, Mapping[str, float]] = {}
    """Thresholds by rule."""
    ignored: Collection[str] = ()
    """Rules that are not run, by id or pattern."""


class Settings(NamedTuple):
    """Settings from the configuration and the command line."""

    time: str = "r"
    """The form of times (:data:`kdissect.present.form.TIMES`)."""
    theme: str | None = None
    """The name of a known theme."""
    columns: tuple[str, ...] = ()
    """The columns of the list of exchanges; empty for as many as fit."""
    keys: Mapping[str, str] = {}
    """Changed keys, by action."""
    filter: str = ""
    """The display filter at the start."""
    slow_ms: int | None = None
    """Exchanges that take longer are slow; None for exchanges that take longer than nearly all of their
    API."""
    rules: Rules = Rules()
    """The configuration of the rules that make findings."""
    page: str | None = None
    """The first screen. None for what happened, or, with a filter, for the exchanges that it shows."""
    before: LastSession = LastSession()
    """The state of the screens at their last end. Settings here have precedence."""
    is_first: bool = False
    """Whether the screens are used for the first time."""
    commands: Mapping[str, str] = {}
    """Templates of commands that can be copied, by name."""
    coloring: tuple[ColoringRule, ...] = ()
    """Rules that colour rows of the list of exchanges."""
    compared_as: str = ""
    """The name of the capture on the screen of differences, if that screen opened this one: ``BEFORE
    old.pcapng``."""
    mistakes: tuple[tuple[str, ...], ...] = ()
    """Mistakes in the configuration, each in some lines. The screens use the defaults instead."""
