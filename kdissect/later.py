"""Modules that are imported when something of them is first asked for: what most runs never need must not
cost every start."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Later:
    """A module, by its name. Its attributes are those of the module.

        if TYPE_CHECKING:
            import zstandard
        else:
            zstandard = Later("zstandard")

    :raises ImportError: it is asked for something, and cannot be imported.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        """What was not asked for before: from then on it stands here."""
        found = getattr(import_module(self.__dict__["_name"]), name)
        setattr(self, name, found)
        return found
