"""Faults of files, in the form in which they are reported."""

from __future__ import annotations

from collections.abc import Sequence

from kdissect.model import Fault


def named(fault: Fault, paths: Sequence[str]) -> Fault:
    """A fault of one of these files, with the name of its file. If there are several files, it already has
    it."""
    if len(paths) != 1 or fault.message.startswith(paths[0]):
        return fault
    return fault._replace(message=f"{paths[0]}: {fault.message}")
