"""What holds for every test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Before anything looks for it: the tests know the definitions of this checkout and no configuration,
# not those of the user.
_NOWHERE = str(Path(__file__).parent / "no-user-data")
for _name in [name for name in os.environ if name.startswith("KDISSECT_")]:
    del os.environ[_name]
os.environ["KDISSECT_DATA_HOME"] = os.environ["XDG_CONFIG_HOME"] = _NOWHERE


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden texts anew")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden texts are to be written instead of compared."""
    return bool(request.config.getoption("--update-golden"))
