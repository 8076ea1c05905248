"""How often Textual draws."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from kdissect.tui import FRAMES_A_SECOND

TOLD = "import kdissect.tui.app; from textual import constants; print(constants.MAX_FPS)"


@pytest.mark.parametrize(("asked", "drawn"), [(None, FRAMES_A_SECOND), ("30", 30)])
def test_a_key_need_not_wait_for_frames_unless_the_user_says_so(asked: str | None, drawn: int) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TEXTUAL_FPS"}
    environment |= {} if asked is None else {"TEXTUAL_FPS": asked}
    ran = subprocess.run(
        [sys.executable, "-c", TOLD], env=environment, capture_output=True, text=True, check=True
    )
    assert int(ran.stdout) == drawn
