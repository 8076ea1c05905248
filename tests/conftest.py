"""What holds for every test."""

from __future__ import annotations

import os
from pathlib import Path

# Before anything looks for it: the tests know the definitions of this checkout, not those that the
# user has imported.
os.environ["KDISSECT_DATA_HOME"] = str(Path(__file__).parent / "no-user-data")
