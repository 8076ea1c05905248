"""The location of the files that come with this package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def packaged(name: str) -> Traversable:
    """A file or folder beside the modules of this package."""
    path = Path(__file__).with_name(name)
    if path.exists():
        return path
    # The package is in an archive. Importing this module takes as long as reading ten definitions.
    from importlib.resources import files

    return files("kdissect.protocol") / name
