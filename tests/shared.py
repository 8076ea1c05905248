"""The place of the shared test material, if it exists."""

from __future__ import annotations

from pathlib import Path

import pytest

_beside = Path(__file__).resolve().parents[2] / "shared"
SHARED: Path | None = _beside if _beside.is_dir() else None

requires_shared = pytest.mark.skipif(
    SHARED is None, reason="the shared test material is not beside this checkout"
)


def shared(path: str) -> Path:
    """A path in the shared material. If the material exists but lacks this path, the test fails. Tests are
    skipped only if all of the material is missing."""
    assert SHARED is not None
    found = SHARED / path
    assert found.exists(), f"the shared material has no {path}"
    return found
