"""The terminal screens.

Their contents come from :mod:`kdissect.feed`, which needs no Textual. The screens do not decode. They show
the index, and read one exchange at a time from the spool when it is to be shown.
"""

from __future__ import annotations

import os

FRAMES_A_SECOND = 120
"""How often Textual draws per second at most, unless TEXTUAL_FPS says otherwise. A key right after a frame
waits for the second next frame: 33 ms at Textual's usual 60, which is longer than all other steps. Unchanged
parts are not drawn."""

os.environ.setdefault("TEXTUAL_FPS", str(FRAMES_A_SECOND))  # Textual reads it when it is imported
