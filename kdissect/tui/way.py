"""The way that was taken through the screens, and back along it.

There are two kinds of steps. A *turn* goes to a screen by its number or name: back from there is the screen
before, under whatever filter is set now. A *jump* follows something: a row's exchanges, a record's exchange,
the ladder of an exchange. Back from there is the screen before with its filter and its exchange. Turning to a
screen that is on the way already goes back to it, so that turning here and there makes no long way.
"""

from __future__ import annotations

from typing import NamedTuple

MOST_STEPS = 100
"""As many are kept; then the first are forgotten."""


class Step(NamedTuple):
    """A screen that was left."""

    page: str
    """Its name."""
    is_jump: bool
    place: int | None = None
    """Of the exchange that was under its cursor."""
    filters: int = 0
    """How many filters lay below the one that was set before a jump, …"""
    filters_there: int = 0
    """… and after it."""
    to_tree: bool = False
    """Whether it led to a line of a tree, not to one of a list."""
    order: tuple[str, bool] | None = None
    """The order that the list of exchanges had before, where the jump gave it its usual one."""


class Way:
    """The steps, the last one last."""

    def __init__(self) -> None:
        self._steps: list[Step] = []

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def last(self) -> Step | None:
        """What led to the screen that is shown."""
        return self._steps[-1] if self._steps else None

    def turn(self, here: str, there: str) -> None:
        """One screen is left for another, by its name."""
        names = [step.page for step in self._steps]
        if there in names:
            del self._steps[names.index(there) :]
        else:
            self._add(Step(here, is_jump=False))

    def jump(self, step: Step) -> None:
        """A screen is left by following something."""
        self._add(step)

    def _add(self, step: Step) -> None:
        self._steps = [*self._steps, step][-MOST_STEPS:]

    def back(self) -> Step | None:
        """Take the last step back; None if no step was taken."""
        return self._steps.pop() if self._steps else None
